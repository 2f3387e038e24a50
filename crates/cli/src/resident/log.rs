//! `--log`: messages go to a file, each line with its time (UTC).

use super::cannot;
use crate::failure::Failure;
use crate::output;
use flashpath::report::WriteError;
use std::fs::{File, OpenOptions};
use std::path::Path;

/// Opens a log for appending.
pub fn open(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| WriteError::new(path, error).into())
}

/// Redirects standard error to the log.
pub fn begin(log: &File) -> Result<(), Failure> {
    nix::unistd::dup2_stderr(log).map_err(|error| cannot("write the log", error))?;
    output::begin_log();
    Ok(())
}
