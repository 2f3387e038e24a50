//! `--log`: what is told goes into a file, a line at a time, each with its time (UTC).

use super::cannot;
use crate::failure::Failure;
use crate::output;
use flashpath::report::WriteError;
use std::fs::{File, OpenOptions};
use std::path::Path;

/// Opens a log, behind whose end lines will be added.
pub fn open(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| WriteError::new(path, error).into())
}

/// From now on what goes to standard error goes there.
pub fn begin(log: &File) -> Result<(), Failure> {
    nix::unistd::dup2_stderr(log).map_err(|error| cannot("write the log", error))?;
    output::tells_times();
    Ok(())
}
