//! Why an operation of the file system fails.

use super::lost::Lost;
use crate::device::DeviceError;
use crate::units::format_size;
use rustix::io::Errno;
use std::io;

/// Why an operation of the file system fails. What fails leaves the file system as it was.
#[derive(Debug, thiserror::Error)]
pub enum SfsError {
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
    /// What is asked for makes no sense (EINVAL).
    #[error("{0}")]
    Invalid(&'static str),
    /// A directory cannot be moved into itself, nor a directory linked (EPERM, EINVAL by the call).
    #[error("{0}")]
    NotPermitted(&'static str),
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
    /// What is stored is not what was written (EIO).
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The structure, and where it lies.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The device fails (EIO).
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A write or a flush failed, and what it stood for was not stored (EIO).
    #[error("{0}")]
    Lost(Box<Lost>),
}

impl SfsError {
    /// What a system call would fail with.
    pub fn errno(&self) -> Errno {
        match self {
            SfsError::NotFound => Errno::NOENT,
            SfsError::Exists => Errno::EXIST,
            SfsError::NotDirectory => Errno::NOTDIR,
            SfsError::IsDirectory => Errno::ISDIR,
            SfsError::NotEmpty => Errno::NOTEMPTY,
            SfsError::NameTooLong => Errno::NAMETOOLONG,
            SfsError::Invalid(_) => Errno::INVAL,
            SfsError::NotPermitted(_) => Errno::PERM,
            SfsError::TooManyLinks => Errno::MLINK,
            SfsError::TooLarge => Errno::FBIG,
            SfsError::NoSpace { .. } => Errno::NOSPC,
            SfsError::NoAttribute => Errno::NODATA,
            SfsError::LongValue => Errno::TOOBIG,
            SfsError::ManyAttributes { .. } => Errno::NOSPC,
            SfsError::ReadOnly(_) => Errno::ROFS,
            SfsError::Damaged { .. } | SfsError::Device(_) | SfsError::Lost(_) => Errno::IO,
        }
    }
}

impl From<SfsError> for io::Error {
    /// With the number, so that its kind is the one that a system call's error would have, and the words.
    fn from(error: SfsError) -> io::Error {
        match error {
            SfsError::Damaged { .. } | SfsError::Device(_) | SfsError::Lost(_) => io::Error::other(error.to_string()),
            error => error.errno().into(),
        }
    }
}

/// Why a volume cannot be made or mounted.
#[derive(Debug, thiserror::Error)]
pub enum OpenSfsError {
    /// There is no superblock, and nothing that was one.
    #[error("it holds no volume of sfs; 'flashpath mkfs' makes one")]
    NoVolume,
    /// Superblocks are there, and none can be used.
    #[error(
        "no superblock can be used ({0}): what the volume holds may still be there, but only an older copy of the image has its roots"
    )]
    Superblocks(String),
    /// It was made by another version.
    #[error("it is of version {found} of the format, and this program knows version {known}")]
    Version {
        /// What the superblock says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// The device is not the one that the volume was made on.
    #[error("the volume was made on {expected} blocks, and the device has {found}")]
    Shape {
        /// What the superblock says.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The volume has other segments than asked for.
    #[error("the volume has segments of {found} bytes, and segment={asked} was written; leave it away")]
    Segment {
        /// What the superblock says, in bytes.
        found: u64,
        /// What was asked for.
        asked: u64,
    },
    /// There are too few segments.
    #[error("a volume needs {needed} segments, and {found} of {bytes} bytes fit: {advice}")]
    TooSmall {
        /// How many it needs.
        needed: u32,
        /// How many there are.
        found: u32,
        /// Bytes of a segment.
        bytes: u64,
        /// What would help.
        advice: String,
    },
    /// The volume that was asked for is not there any more.
    #[error("it holds another volume now")]
    Another,
    /// The bound on memory is too low for the segments.
    #[error("memory={} is too little for segments of {}: write memory={} or more, or leave it away", format_size(*asked), format_size(*segment), format_size(*least))]
    Memory {
        /// What was asked for, in bytes.
        asked: u64,
        /// The least, in bytes.
        least: u64,
        /// Bytes of a segment.
        segment: u64,
    },
    /// Something in it is damaged or fails.
    #[error("{0}; 'flashpath fsck' says more")]
    Inside(#[from] SfsError),
}

impl From<DeviceError> for OpenSfsError {
    fn from(error: DeviceError) -> OpenSfsError {
        OpenSfsError::Inside(error.into())
    }
}
