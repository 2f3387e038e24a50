//! The limits that are Linux's, and so every file system's; and what a name may be.

use super::error::VolumeError;

/// The longest name, in bytes (`NAME_MAX`).
pub const LONGEST_NAME: usize = 255;
/// The longest target of a symbolic link, in bytes (`PATH_MAX` without the zero behind it).
pub const LONGEST_TARGET: usize = 4095;
/// Names that a file can have, as on ext4.
pub const MOST_LINKS: u32 = 65_000;
/// The longest file, in bytes, as whole blocks of 4 KiB (`loff_t`).
pub const LONGEST_FILE: u64 = i64::MAX as u64 / 4096 * 4096;
/// The longest value of an extended attribute (`XATTR_SIZE_MAX`).
pub const LONGEST_VALUE: usize = 64 << 10;
/// The longest list of the names of a file's attributes, each with a zero behind it (`XATTR_LIST_MAX`).
pub const LONGEST_LIST: usize = 64 << 10;

/// Refuses what cannot be made or taken away under this name.
pub fn check_name(name: &[u8]) -> Result<(), VolumeError> {
    match name {
        b"" => Err(VolumeError::NotFound),
        b"." | b".." => Err(VolumeError::Invalid("'.' and '..' can be neither made nor taken away")),
        name if name.len() > LONGEST_NAME => Err(VolumeError::NameTooLong),
        name if name.contains(&b'/') || name.contains(&0) => {
            Err(VolumeError::Invalid("a name has no '/' and no zero byte"))
        }
        _ => Ok(()),
    }
}

/// Refuses a directory that cannot be removed for its name alone.
pub fn check_removed_name(name: &[u8]) -> Result<(), VolumeError> {
    match name {
        b"." => Err(VolumeError::Invalid("'.' cannot be removed")),
        b".." => Err(VolumeError::NotEmpty),
        name => check_name(name),
    }
}
