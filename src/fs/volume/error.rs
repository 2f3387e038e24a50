//! Errors of calls to a volume, and the changes lost by a failed write or flush.

use crate::device::DeviceError;
use rustix::io::Errno;
use std::{fmt, io};

/// Failure of a call. A failed call leaves the volume unchanged.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// No such name, or the inode was freed (ENOENT).
    #[error("no such file or directory")]
    NotFound,
    /// The name exists (EEXIST).
    #[error("the name is taken")]
    Exists,
    /// The file is not a directory (ENOTDIR).
    #[error("not a directory")]
    NotDirectory,
    /// The file is a directory (EISDIR).
    #[error("is a directory")]
    IsDirectory,
    /// The directory is not empty (ENOTEMPTY).
    #[error("the directory is not empty")]
    NotEmpty,
    /// A name longer than 255 bytes, or a symbolic link's target longer than 4095 bytes (ENAMETOOLONG).
    #[error("the name is too long")]
    NameTooLong,
    /// An invalid request (EINVAL).
    #[error("{0}")]
    Invalid(&'static str),
    /// The operation needs the owner or root, or is never permitted (EPERM).
    #[error("{0}")]
    NotPermitted(&'static str),
    /// The mode or the access control list denies the access (EACCES).
    #[error("permission denied")]
    Denied,
    /// The file system does not support the operation (EOPNOTSUPP).
    #[error("{0}")]
    Unsupported(&'static str),
    /// The file has the maximum number of links (EMLINK).
    #[error("too many links")]
    TooManyLinks,
    /// The file would exceed the maximum size (EFBIG).
    #[error("the file would be too large")]
    TooLarge,
    /// No space left (ENOSPC).
    #[error("no space left: {free} of {blocks} blocks are free")]
    NoSpace {
        /// Free blocks of 4 KiB.
        free: u64,
        /// Total blocks of 4 KiB.
        blocks: u64,
    },
    /// The extended attribute does not exist (ENODATA).
    #[error("no such attribute")]
    NoAttribute,
    /// The value of an extended attribute is longer than 64 KiB (E2BIG).
    #[error("the value of an attribute has at most 64 KiB")]
    LongValue,
    /// The extended attributes of a file exceed their limit (ENOSPC).
    #[error("a file's attributes may take {most} bytes here, and their names 64 KiB")]
    ManyAttributes {
        /// The limit of the volume, in bytes, for all attributes of a file.
        most: u64,
    },
    /// The volume is read-only (EROFS).
    #[error("the volume can only be read: {0}")]
    ReadOnly(String),
    /// Stored bytes differ from the written ones (EIO).
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The structure and its address.
        what: String,
        /// The defect.
        why: String,
    },
    /// The device failed (EIO).
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The volume is unmounted (EIO).
    #[error("the volume is unmounted")]
    Unmounted,
    /// A write or a flush failed, and its changes are lost (EIO).
    #[error("{0}")]
    Lost(Box<Lost>),
}

impl VolumeError {
    /// The errno of a system call.
    pub fn errno(&self) -> Errno {
        match self {
            VolumeError::NotFound => Errno::NOENT,
            VolumeError::Exists => Errno::EXIST,
            VolumeError::NotDirectory => Errno::NOTDIR,
            VolumeError::IsDirectory => Errno::ISDIR,
            VolumeError::NotEmpty => Errno::NOTEMPTY,
            VolumeError::NameTooLong => Errno::NAMETOOLONG,
            VolumeError::Invalid(_) => Errno::INVAL,
            VolumeError::NotPermitted(_) => Errno::PERM,
            VolumeError::Denied => Errno::ACCESS,
            VolumeError::Unsupported(_) => Errno::OPNOTSUPP,
            VolumeError::TooManyLinks => Errno::MLINK,
            VolumeError::TooLarge => Errno::FBIG,
            VolumeError::NoSpace { .. } => Errno::NOSPC,
            VolumeError::NoAttribute => Errno::NODATA,
            VolumeError::LongValue => Errno::TOOBIG,
            VolumeError::ManyAttributes { .. } => Errno::NOSPC,
            VolumeError::ReadOnly(_) => Errno::ROFS,
            VolumeError::Damaged { .. } | VolumeError::Device(_) | VolumeError::Unmounted | VolumeError::Lost(_) => {
                Errno::IO
            }
        }
    }
}

impl From<VolumeError> for io::Error {
    /// Converts with the errno, so that the error kind matches that of a system call. I/O errors keep their message.
    fn from(error: VolumeError) -> io::Error {
        match error {
            VolumeError::Damaged { .. } | VolumeError::Device(_) | VolumeError::Unmounted | VolumeError::Lost(_) => {
                io::Error::other(error.to_string())
            }
            error => error.errno().into(),
        }
    }
}

/// The changes lost by a failed write or flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The failure.
    pub why: String,
    /// Number of files and directories changed since the last checkpoint. An fsync may have stored some of these
    /// changes.
    pub inodes: u64,
    /// The lowest of their inode numbers.
    pub first_inodes: Vec<u64>,
    /// Dirty blocks, and blocks written but not flushed.
    pub blocks: u64,
}

impl fmt::Display for Lost {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lost { why, inodes, first_inodes, blocks } = self;
        write!(
            to,
            "{why}; lost is what was not synced since the last checkpoint: changes to {inodes} files and directories"
        )?;
        if !first_inodes.is_empty() {
            let numbers: Vec<String> = first_inodes.iter().map(u64::to_string).collect();
            let more = if first_inodes.len() as u64 == *inodes { "" } else { ", ..." };
            write!(to, " (inodes {}{more})", numbers.join(", "))?;
        }
        write!(to, ", {blocks} blocks of 4 KiB")
    }
}
