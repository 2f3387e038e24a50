//! The dummy file, which takes space in a volume besides the workload's files (section 4.1 of the SFS paper: dummy
//! blocks).

use super::blocks::{AT_ONCE, TORN, parts};
use crate::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume, VolumeError};
use crate::units::BLOCK_BYTES;

/// The stamp that its blocks begin with, which no workload reaches.
const STAMP: u32 = TORN - 1;

/// A file of root that only root may write: the files that a run makes besides those of a workload.
pub(super) const PLAIN_FILE: NewFile<'static> =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// Writes the dummy file once, in order, in the root of an empty volume, and makes it durable. It is never overwritten.
pub(super) fn write_dummy(volume: &dyn Volume, call: &Call, blocks: u64) -> Result<(), VolumeError> {
    let dummy = volume.make(call, (InodeNumber::ROOT, b"dummy"), &PLAIN_FILE, Hold::No, None)?.inode;
    let mut buffer = vec![0; (AT_ONCE * BLOCK_BYTES) as usize];
    for block in buffer.chunks_exact_mut(BLOCK_BYTES as usize) {
        block[..size_of_val(&STAMP)].copy_from_slice(&STAMP.to_le_bytes());
    }
    for (at, count) in parts(0..blocks) {
        volume.write(call, dummy, at * BLOCK_BYTES, &buffer[..(count * BLOCK_BYTES) as usize], None)?;
    }
    volume.sync(call)
}
