//! fsck: checks the consistency of a file system on its device.

use crate::tool::{self, on_one_line};
use crate::{FileSystem, KernelError};
use std::path::Path;

impl FileSystem {
    /// Checks a file system that is not mounted, without changing it.
    ///
    /// Fails if the program is not installed or finds an error; the error holds its output.
    pub fn check(self, device: &Path) -> Result<(), KernelError> {
        let (program, arguments): (&str, &[&str]) = match self {
            FileSystem::Ext3 | FileSystem::Ext4 => ("e2fsck", &["-f", "-n"]),
            FileSystem::Xfs => ("xfs_repair", &["-n"]),
            FileSystem::Btrfs => ("btrfs", &["check", "--readonly"]),
            FileSystem::F2fs => ("fsck.f2fs", &["--dry-run"]),
            // It has no program that checks it: each mount recovers it.
            FileSystem::Nilfs2 => return Ok(()),
        };
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
        let output = tool::run(program, self.package(), &arguments, device)?;
        if output.status.success() {
            return Ok(());
        }
        let lines = [&output.stdout[..], &output.stderr[..]].concat();
        let source = std::io::Error::other(on_one_line(&lines, LINES));
        Err(KernelError::Failed { doing: format!("find the file system whole ({program})"), source })
    }
}

/// The maximum number of lines of a program's output in an error.
const LINES: usize = 12;
