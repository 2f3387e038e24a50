//! The dummy file, which takes space in a volume besides the workload's files (section 4.1 of the SFS paper: dummy
//! blocks).

use super::blocks::{AT_ONCE, TORN, parts};
use crate::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume, VolumeError};
use crate::units::BLOCK_BYTES;

/// What its blocks begin with: a stamp that no workload comes to.
const STAMP: u32 = TORN - 1;

/// Writes it once, in order, into the root of an empty volume, and makes it durable. It is never written again.
pub(super) fn write_dummy(volume: &dyn Volume, call: &Call, blocks: u64) -> Result<(), VolumeError> {
    let new = NewFile {
        kind: FileKind::Regular,
        permissions: 0o644,
        user: 0,
        group: 0,
        device: 0,
        target: b"",
        attributes: &[],
    };
    let dummy = volume.make(call, (InodeNumber::ROOT, b"dummy"), &new, Hold::No, None)?.inode;
    let mut buffer = vec![0; (AT_ONCE * BLOCK_BYTES) as usize];
    for block in buffer.chunks_exact_mut(BLOCK_BYTES as usize) {
        block[..size_of_val(&STAMP)].copy_from_slice(&STAMP.to_le_bytes());
    }
    for (at, count) in parts(0..blocks) {
        volume.write(call, dummy, at * BLOCK_BYTES, &buffer[..(count * BLOCK_BYTES) as usize], None)?;
    }
    volume.sync(call)
}
