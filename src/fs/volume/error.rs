//! Why a call to a volume fails, and what a failed write or flush has cost.

use crate::device::DeviceError;
use rustix::io::Errno;
use std::{fmt, io};

/// Why a call fails. What fails leaves the volume as it was.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// Nothing has this name, or the inode is gone (ENOENT).
    #[error("no such file or directory")]
    NotFound,
    /// Something has this name (EEXIST).
    #[error("the name is taken")]
    Exists,
    /// A directory is needed (ENOTDIR).
    #[error("not a directory")]
    NotDirectory,
    /// A directory cannot be used so (EISDIR).
    #[error("a directory")]
    IsDirectory,
    /// A directory holds names (ENOTEMPTY).
    #[error("the directory is not empty")]
    NotEmpty,
    /// A name has more than 255 bytes, or a symbolic link's target more than 4095 (ENAMETOOLONG).
    #[error("the name is too long")]
    NameTooLong,
    /// The request makes no sense (EINVAL).
    #[error("{0}")]
    Invalid(&'static str),
    /// Only the owner, or root, may do that, or nobody (EPERM).
    #[error("{0}")]
    NotPermitted(&'static str),
    /// The mode or the access control list does not let the caller (EACCES).
    #[error("permission denied")]
    Denied,
    /// A file system does not know such a thing (EOPNOTSUPP).
    #[error("{0}")]
    Unsupported(&'static str),
    /// A file cannot have so many names (EMLINK).
    #[error("too many links")]
    TooManyLinks,
    /// A file cannot be so long (EFBIG).
    #[error("the file would be too large")]
    TooLarge,
    /// There is no space left (ENOSPC).
    #[error("no space left: {free} of {blocks} blocks are free")]
    NoSpace {
        /// Blocks of 4 KiB that are free.
        free: u64,
        /// Blocks that there are.
        blocks: u64,
    },
    /// There is no such extended attribute (ENODATA).
    #[error("no such attribute")]
    NoAttribute,
    /// The value of an extended attribute has more than 64 KiB (E2BIG).
    #[error("the value of an attribute has at most 64 KiB")]
    LongValue,
    /// A file cannot have so many extended attributes, or so large ones (ENOSPC).
    #[error("a file's attributes may take {most} bytes here, and their names 64 KiB")]
    ManyAttributes {
        /// Bytes that all attributes of a file may take on this volume.
        most: u64,
    },
    /// The volume can only be read (EROFS).
    #[error("the volume can only be read: {0}")]
    ReadOnly(String),
    /// Stored bytes are not those that were written (EIO).
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The structure, and where it lies.
        what: String,
        /// The defect.
        why: String,
    },
    /// The device fails (EIO).
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It was unmounted (EIO).
    #[error("the volume is unmounted")]
    Unmounted,
    /// A write or a flush failed, and what it stood for was not stored (EIO).
    #[error("{0}")]
    Lost(Box<Lost>),
}

impl VolumeError {
    /// The error number of a system call.
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
    /// With the number, so that its kind is the one that a system call's error would have, and the words.
    fn from(error: VolumeError) -> io::Error {
        match error {
            VolumeError::Damaged { .. } | VolumeError::Device(_) | VolumeError::Unmounted | VolumeError::Lost(_) => {
                io::Error::other(error.to_string())
            }
            error => error.errno().into(),
        }
    }
}

/// The cost of a failed write or flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The failure.
    pub why: String,
    /// Files and directories that were changed since the last checkpoint. An fsync may have stored some of these
    /// changes.
    pub inodes: u64,
    /// The first of them by number.
    pub first_inodes: Vec<u64>,
    /// Blocks that waited, or were written and not flushed.
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
