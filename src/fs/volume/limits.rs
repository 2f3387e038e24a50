//! Limits of Linux that apply to every file system, and the rules for names.

use super::error::VolumeError;

/// The longest name, in bytes (`NAME_MAX`).
pub const LONGEST_NAME: usize = 255;
/// The longest target of a symbolic link, in bytes (`PATH_MAX` without the terminating zero).
pub const LONGEST_TARGET: usize = 4095;
/// The maximum number of hard links to a file, as on ext4.
pub const MOST_LINKS: u32 = 65_000;
/// The maximum file size in bytes: `loff_t`, rounded down to blocks of 4 KiB.
pub const LONGEST_FILE: u64 = i64::MAX as u64 / 4096 * 4096;
/// The longest value of an extended attribute, in bytes (`XATTR_SIZE_MAX`).
pub const LONGEST_VALUE: usize = 64 << 10;
/// The maximum length of the list of a file's attribute names in bytes, each with a terminating zero
/// (`XATTR_LIST_MAX`).
pub const LONGEST_LIST: usize = 64 << 10;

/// Refuses a name that no file can have, or that cannot be changed.
pub fn check_name(name: &[u8]) -> Result<(), VolumeError> {
    match name {
        b"" => Err(VolumeError::NotFound),
        b"." | b".." => Err(VolumeError::Invalid("'.' and '..' can be neither created nor removed")),
        name if name.len() > LONGEST_NAME => Err(VolumeError::NameTooLong),
        name if name.contains(&b'/') || name.contains(&0) => {
            Err(VolumeError::Invalid("a name has no '/' and no zero byte"))
        }
        _ => Ok(()),
    }
}

/// Refuses a name that no directory can be removed by.
pub fn check_removed_name(name: &[u8]) -> Result<(), VolumeError> {
    match name {
        b"." => Err(VolumeError::Invalid("'.' cannot be removed")),
        b".." => Err(VolumeError::NotEmpty),
        name => check_name(name),
    }
}
