//! Holes in files.

use crate::device::ZEROS;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Punches a hole or, if the file system cannot, writes zeros.
pub(super) fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, offset, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            for from in (offset..offset + length).step_by(ZEROS.len()) {
                let piece = (offset + length - from).min(ZEROS.len() as u64) as usize;
                file.write_all_at(&ZEROS[..piece], from)?;
            }
            Ok(())
        }
        done => Ok(done?),
    }
}
