//! The file of a trace, or standard input, which is copied first: a trace is read at least twice.

use crate::failure::Failure;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// A trace that can be read several times.
pub struct TraceFile {
    /// Its name, or that of its copy.
    path: PathBuf,
    /// The name in messages, if it is not the path.
    name: Option<&'static str>,
    /// The copy of standard input. It has no name, and its room is free when the program ends, however it ends.
    _copy: Option<File>,
}

impl TraceFile {
    /// The trace at `path`, or on standard input for `-`.
    pub fn open(path: &Path) -> Result<TraceFile, Failure> {
        if path.as_os_str() != STANDARD_INPUT {
            return Ok(TraceFile { path: path.to_path_buf(), name: None, _copy: None });
        }
        let (stdin, name) = (io::stdin(), "standard input");
        if stdin.is_terminal() {
            let help = "send a trace to it, such as zcat trace.gz | flashpath run - --on PATH";
            return Err(Failure::input("standard input is a terminal", Some(help.to_string())));
        }
        let copied = || -> io::Result<File> {
            let mut copy = tempfile::tempfile()?;
            io::copy(&mut stdin.lock(), &mut copy)?;
            Ok(copy)
        };
        let copy = copied().map_err(|error| Failure::input(format!("cannot copy {name} to a file: {error}"), None))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        Ok(TraceFile { path, name: Some(name), _copy: Some(copy) })
    }

    /// Where it is read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in messages, if it is not the path.
    pub fn name(&self) -> Option<&'static str> {
        self.name
    }
}
