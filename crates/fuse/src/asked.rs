//! Arguments of requests, translated from the kernel's numbers and flags.

use crate::attributes::timestamp;
use flashpath::fs::posix::NewTime;
use flashpath::fs::volume::{Allocation, IfExists, Renaming, Seek};
use fuser::{Errno, RenameFlags, TimeOrNow};
use nix::fcntl::FallocateFlags;

/// The values of `whence` (`linux/fs.h`).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;
/// The flags of setxattr (`linux/xattr.h`).
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// The new value of a time stamp in setattr.
pub fn new_time(time: TimeOrNow) -> NewTime {
    match time {
        TimeOrNow::Now => NewTime::Now,
        TimeOrNow::SpecificTime(time) => NewTime::At(timestamp(time)),
    }
}

/// The options of renameat2. A whiteout belongs to `owner`, a user and a group.
pub fn renaming(flags: RenameFlags, owner: (u32, u32)) -> Result<Renaming, Errno> {
    let whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT).then_some(owner);
    let flags = flags - RenameFlags::RENAME_WHITEOUT;
    let taken = if flags.is_empty() {
        IfExists::Replace
    } else if flags == RenameFlags::RENAME_NOREPLACE {
        IfExists::Refuse
    } else if flags == RenameFlags::RENAME_EXCHANGE {
        IfExists::Exchange
    } else {
        return Err(Errno::EINVAL);
    };
    Ok(Renaming { if_exists: taken, whiteout })
}

/// The operation that the mode of fallocate selects.
pub fn allocation(mode: i32) -> Result<Allocation, Errno> {
    let mode = FallocateFlags::from_bits(mode).ok_or(Errno::EOPNOTSUPP)?;
    let keep_size = mode.contains(FallocateFlags::FALLOC_FL_KEEP_SIZE);
    let what = mode - FallocateFlags::FALLOC_FL_KEEP_SIZE;
    if what.is_empty() {
        Ok(Allocation::Reserve { keep_size })
    } else if what == FallocateFlags::FALLOC_FL_PUNCH_HOLE {
        Ok(Allocation::Punch)
    } else if what == FallocateFlags::FALLOC_FL_ZERO_RANGE {
        Ok(Allocation::Zero { keep_size })
    } else {
        Err(Errno::EOPNOTSUPP)
    }
}

/// The offset and the target of lseek.
pub fn seek(offset: i64, whence: i32) -> Result<(u64, Seek), Errno> {
    let what = match whence {
        SEEK_DATA => Seek::Data,
        SEEK_HOLE => Seek::Hole,
        _ => return Err(Errno::EINVAL),
    };
    Ok((u64::try_from(offset).map_err(|_| Errno::ENXIO)?, what))
}

/// `Some(true)`: the extended attribute must exist; `Some(false)`: it must not exist; `None`: either.
pub fn must_exist(flags: i32) -> Result<Option<bool>, Errno> {
    match flags {
        0 => Ok(None),
        XATTR_CREATE => Ok(Some(false)),
        XATTR_REPLACE => Ok(Some(true)),
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_arguments_are_translated_and_all_others_are_refused() {
        let (punch, zero) = (Allocation::Punch, Allocation::Zero { keep_size: true });
        let reserve = Allocation::Reserve { keep_size: false };
        for (mode, asked) in [(0, Ok(reserve)), (3, Ok(punch)), (0x11, Ok(zero)), (8, Err(Errno::EOPNOTSUPP.code()))] {
            assert_eq!(allocation(mode).map_err(|errno| errno.code()), asked, "{mode}");
        }
        let both = RenameFlags::RENAME_NOREPLACE | RenameFlags::RENAME_EXCHANGE;
        assert!(renaming(both, (0, 0)).is_err());
        let whiteout = renaming(RenameFlags::RENAME_WHITEOUT, (1, 2)).ok().unwrap();
        assert_eq!(whiteout, Renaming { if_exists: IfExists::Replace, whiteout: Some((1, 2)) });
        assert!(seek(-1, SEEK_DATA).is_err() && seek(0, 0).is_err() && must_exist(3).is_err());
    }
}
