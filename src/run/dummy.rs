//! The file that takes space in a volume beside what a workload writes (section 4.1 of the SFS paper: dummy blocks).

use super::blocks::{AT_ONCE, TORN, parts};
use crate::device::holding;
use crate::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs, SfsError};
use crate::label::Content;

/// What its blocks hold: a stamp that no workload comes to.
const STAMP: u32 = TORN - 1;

/// Writes it once, in order, into the root of an empty volume, and makes it durable. It is never written again.
pub(super) fn write_dummy(volume: &mut Sfs, blocks: u64) -> Result<(), SfsError> {
    let new = NewFile {
        kind: FileKind::Regular,
        permissions: 0o644,
        user: 0,
        group: 0,
        device: 0,
        target: b"",
        attributes: &[],
    };
    let dummy = volume.make(InodeNumber::ROOT, b"dummy", &new)?;
    let width = volume.block_width();
    let mut buffer = vec![0; AT_ONCE as usize * width];
    holding(STAMP, &mut buffer);
    for (at, count) in parts(0..blocks) {
        volume.write_whole(dummy, at, &buffer[..count as usize * width], Content::Data)?;
    }
    volume.sync()
}
