//! The dummy file, which takes space in a volume besides the workload's files (section 4.1 of the SFS paper: dummy
//! blocks).

use super::blocks::{AT_ONCE, TORN, parts};
use crate::device::fill_with_stamp;
use crate::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs, SfsError};
use crate::label::Content;
use crate::task::Task;

/// The stamp of its blocks, which no workload reaches.
const STAMP: u32 = TORN - 1;

/// A file of root that only root may write: the files that a run makes besides those of a workload.
pub(super) const PLAIN_FILE: NewFile<'static> =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// Writes the dummy file once, in order, in the root of an empty volume, and makes it durable. It is never overwritten.
pub(super) fn write_dummy(task: &Task<'_>, volume: &mut Sfs, blocks: u64) -> Result<(), SfsError> {
    let dummy = volume.make(task, InodeNumber::ROOT, b"dummy", &PLAIN_FILE)?;
    let width = volume.block_width();
    let mut buffer = vec![0; AT_ONCE as usize * width];
    fill_with_stamp(STAMP, &mut buffer);
    for (at, count) in parts(0..blocks) {
        volume.write_whole(task, dummy, at, &buffer[..count as usize * width], Content::Data)?;
    }
    volume.sync(task)
}
