//! mkfs: makes a file system, with or without a journal.

use crate::KernelError;
use crate::mount::check_known;
use crate::tool::{self, on_one_line};
use std::path::Path;

/// A file system of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext3: block maps, and a journal.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// f2fs.
    F2fs,
    /// NILFS2.
    Nilfs2,
}

/// The data mode of ext3 and ext4: the part of a write that is journalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// Metadata; data is written at any time.
    Writeback,
    /// Metadata; its data is written before.
    Ordered,
    /// Metadata and data.
    Journal,
}

impl DataMode {
    /// The mount option's value.
    pub fn name(self) -> &'static str {
        match self {
            DataMode::Writeback => "writeback",
            DataMode::Ordered => "ordered",
            DataMode::Journal => "journal",
        }
    }
}

impl FileSystem {
    /// The name that mount takes.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext3 => "ext3",
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
            FileSystem::F2fs => "f2fs",
            FileSystem::Nilfs2 => "nilfs2",
        }
    }

    /// True for the ext family, whose journal has data modes.
    pub fn is_ext(self) -> bool {
        matches!(self, FileSystem::Ext3 | FileSystem::Ext4)
    }

    fn has_journal(self) -> bool {
        !matches!(self, FileSystem::Btrfs | FileSystem::F2fs | FileSystem::Nilfs2)
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            FileSystem::Ext3 | FileSystem::Ext4 => "e2fsprogs",
            FileSystem::Xfs => "xfsprogs",
            FileSystem::Btrfs => "btrfs-progs",
            FileSystem::F2fs => "f2fs-tools",
            FileSystem::Nilfs2 => "nilfs-tools",
        }
    }
}

/// Options of mkfs: blocks of 4 KiB at any size, otherwise its defaults. Inode tables and journal are written at once,
/// not lazily.
#[derive(Clone, Debug)]
pub struct Mkfs {
    /// The type of the file system.
    pub file_system: FileSystem,
    /// The journal's size in bytes; `None` for mkfs's default. btrfs, f2fs and NILFS2 have no journal.
    pub journal_bytes: Option<u64>,
    /// More arguments for mkfs, appended.
    pub extra_arguments: Vec<String>,
}

impl Mkfs {
    /// Rejects options that are invalid on any device.
    pub fn check(&self) -> Result<(), KernelError> {
        let unfit =
            |what: &str, help: &str| Err(KernelError::Invalid { what: what.to_string(), help: help.to_string() });
        match self.journal_bytes {
            Some(_) if !self.file_system.has_journal() => {
                unfit(&format!("{} has no journal", self.file_system.name()), "leave its size out")
            }
            Some(bytes) if bytes == 0 || !bytes.is_multiple_of(1 << 20) => {
                unfit("the journal's size is not a multiple of 1M", "write a size such as 64M")
            }
            _ => Ok(()),
        }
    }

    /// Makes the file system on a device; its content is lost.
    ///
    /// Fails if the kernel lacks the file system, or if the program is not installed, or fails; the error holds its output.
    pub fn run(&self, device: &Path) -> Result<(), KernelError> {
        self.check()?;
        check_known(self.file_system.name())?;
        let name = format!("mkfs.{}", self.file_system.name());
        let output = tool::run(&name, self.file_system.package(), &self.arguments(), device)?;
        if output.status.success() {
            return Ok(());
        }
        Err(KernelError::Invalid {
            what: format!("{name} failed: {}", on_one_line(&output.stderr, usize::MAX)),
            help: "another size of the file system or of its journal may do".to_string(),
        })
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = match self.file_system {
            FileSystem::Ext3 | FileSystem::Ext4 => {
                ["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]
                    .map(str::to_string)
                    .to_vec()
            }
            FileSystem::Xfs => ["-q", "-f", "-K"].map(str::to_string).to_vec(),
            FileSystem::Btrfs => ["-q", "-f", "-K"].map(str::to_string).to_vec(),
            FileSystem::F2fs => ["-q", "-f", "-t", "0"].map(str::to_string).to_vec(),
            FileSystem::Nilfs2 => ["-q", "-f", "-K"].map(str::to_string).to_vec(),
        };
        if let Some(bytes) = self.journal_bytes {
            match self.file_system {
                FileSystem::Xfs => arguments.extend(["-l".to_string(), format!("size={bytes}")]),
                FileSystem::Ext3 | FileSystem::Ext4 => {
                    arguments.extend(["-J".to_string(), format!("size={}", bytes >> 20)]);
                }
                FileSystem::Btrfs | FileSystem::F2fs | FileSystem::Nilfs2 => {
                    unreachable!("a journal's size was refused: {} has none", self.file_system.name())
                }
            }
        }
        arguments.extend_from_slice(&self.extra_arguments);
        arguments
    }
}
