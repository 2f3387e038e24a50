//! fsck: checks the consistency of a file system on its device.

use crate::{FileSystem, KernelError, failed};
use std::path::Path;
use std::process::{Command, Stdio};

impl FileSystem {
    /// Checks a file system that is not mounted, without changing it.
    ///
    /// Fails if the program is not installed or finds an error; the error holds its output.
    pub fn check(self, device: &Path) -> Result<(), KernelError> {
        let (program, arguments): (&str, &[&str]) = match self {
            FileSystem::Ext3 | FileSystem::Ext4 => ("e2fsck", &["-f", "-n"]),
            FileSystem::Xfs => ("xfs_repair", &["-n"]),
            FileSystem::Btrfs => ("btrfs", &["check", "--readonly"]),
        };
        let output = Command::new(program)
            .args(arguments)
            .arg(device)
            .stdin(Stdio::null())
            .env("LC_ALL", "C")
            .output()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => KernelError::missing(
                    format!("the program {program} is not installed"),
                    format!("install the package {} (apt-get install {0})", self.package()),
                ),
                _ => failed(format!("run {program}"))(error),
            })?;
        if output.status.success() {
            return Ok(());
        }
        let lines = [&output.stdout[..], &output.stderr[..]].concat();
        let lines = String::from_utf8_lossy(&lines);
        let lines: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).collect();
        let source = std::io::Error::other(lines.join("; "));
        Err(KernelError::Failed { doing: format!("find the file system whole ({program})"), source })
    }
}

/// The maximum number of lines of a program's output in an error.
const LINES: usize = 12;
