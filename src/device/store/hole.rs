//! Holes in files.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The size of a write of zeros, if the file system cannot punch holes.
const ZEROS: usize = 1 << 20;

/// Punches a hole or, if the file system cannot, writes zeros.
pub(super) fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, offset, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            let zeros = vec![0; ZEROS];
            for from in (offset..offset + length).step_by(ZEROS) {
                let piece = (offset + length - from).min(ZEROS as u64) as usize;
                file.write_all_at(&zeros[..piece], from)?;
            }
            Ok(())
        }
        done => Ok(done?),
    }
}
