//! Attributes of a file, in the kernel's format.

use flashpath::fs::volume::{Attributes, FileKind, Timestamp};
use fuser::{FileAttr, FileType, INodeNo};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Sectors of 512 bytes in a block: the unit of `st_blocks`.
const SECTORS: u64 = 8;
const BLOCK_BYTES: u32 = 4096;
/// The bits of a mode that hold the file's kind.
const KIND_BITS: u32 = 0o170_000;

/// The attributes in the kernel's format.
pub fn system_attributes(attributes: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(attributes.inode.0),
        size: attributes.size,
        blocks: attributes.blocks.saturating_mul(SECTORS),
        atime: system_time(attributes.times.accessed),
        mtime: system_time(attributes.times.modified),
        ctime: system_time(attributes.times.changed),
        crtime: system_time(attributes.times.created),
        kind: system_kind(attributes.kind),
        perm: attributes.permissions,
        nlink: attributes.links,
        uid: attributes.user,
        gid: attributes.group,
        // The number came from the kernel with 32 bits.
        rdev: attributes.device as u32,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// The kind in the kernel's format.
pub fn system_kind(kind: FileKind) -> FileType {
    match kind {
        FileKind::Regular => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharacterDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

/// The kind in the mode of mknod; `None` if mknod cannot make it.
pub fn kind_of_mode(mode: u32) -> Option<FileKind> {
    Some(match mode & KIND_BITS {
        0o100_000 | 0 => FileKind::Regular,
        0o010_000 => FileKind::Fifo,
        0o140_000 => FileKind::Socket,
        0o020_000 => FileKind::CharacterDevice,
        0o060_000 => FileKind::BlockDevice,
        _ => return None,
    })
}

fn system_time(time: Timestamp) -> SystemTime {
    let distance = Duration::from_nanos(time.0.unsigned_abs());
    let shifted = if time.0 < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    // 292 years fit into the system's range.
    shifted.unwrap_or(UNIX_EPOCH)
}

/// A time in a request, clamped to 292 years around 1970, the range that a volume stores.
pub fn timestamp(time: SystemTime) -> Timestamp {
    let clamped = |nanoseconds: i128| nanoseconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(clamped(since.as_nanos() as i128)),
        Err(before) => {
            // The kernel sends negative seconds and nanoseconds that count forward from them. fuser 0.18 subtracts both
            // from 1970 (its `system_time_from_time`): the nanoseconds are added back twice.
            let distance = before.duration();
            Timestamp(clamped(i128::from(distance.subsec_nanos()) - i128::from(distance.as_secs()) * 1_000_000_000))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_come_as_fuser_reads_them_and_go_as_they_are() {
        // -1.5 s is sent as (-2 s, +0.5 s), and fuser makes 1970 - 2.5 s of it.
        let sent = UNIX_EPOCH - Duration::new(2, 500_000_000);
        assert_eq!(timestamp(sent), Timestamp(-1_500_000_000));
        assert_eq!(system_time(Timestamp(-1_500_000_000)), UNIX_EPOCH - Duration::from_millis(1500));
        let later = UNIX_EPOCH + Duration::new(7, 9);
        assert_eq!(system_time(timestamp(later)), later);
        assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(1 << 40)), Timestamp(i64::MAX));
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1 << 40)), Timestamp(i64::MIN));
    }

    #[test]
    fn mknod_makes_all_kinds_but_directories_and_links() {
        for (mode, kind) in [
            (0o100_644, Some(FileKind::Regular)),
            (0o600, Some(FileKind::Regular)),
            (0o010_600, Some(FileKind::Fifo)),
            (0o140_600, Some(FileKind::Socket)),
            (0o020_600, Some(FileKind::CharacterDevice)),
            (0o060_600, Some(FileKind::BlockDevice)),
            (0o040_755, None),
            (0o120_777, None),
        ] {
            assert_eq!(kind_of_mode(mode), kind, "{mode:o}");
        }
    }
}
