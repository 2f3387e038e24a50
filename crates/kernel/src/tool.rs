//! The programs of a file system: mkfs and fsck.

use crate::{KernelError, failed};
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a program of this package on a device, without a terminal to ask.
///
/// Fails if it is not installed; the error names the package.
pub fn run(program: &str, package: &str, arguments: &[String], device: &Path) -> Result<Output, KernelError> {
    let mut command = Command::new(program);
    command.args(arguments).arg(device).stdin(Stdio::null()).env("LC_ALL", "C");
    command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => KernelError::missing(
            format!("the program {program} is not installed"),
            format!("install the package {package} (apt-get install {package})"),
        ),
        _ => failed(format!("run {program}"))(error),
    })
}

/// The output of a program on one line: its first `most` lines that are not blank.
pub fn on_one_line(output: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(most);
    lines.collect::<Vec<_>>().join("; ")
}
