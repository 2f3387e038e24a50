//! The process of a server: begins in the foreground or background, reports readiness, waits for the end.

use super::signals::Signals;
use super::{background, log};
use crate::failure::Failure;
use flashpath_kernel::limit_arenas;
use std::path::PathBuf;

/// Arenas of the allocator: a thread that finds one locked takes the other. No measured load was faster with more.
const ARENAS: u16 = 2;

/// The options of a server's process.
#[derive(clap::Args)]
pub struct Process {
    /// Return when it is ready; print the number of the serving process
    #[arg(long)]
    background: bool,
    /// Append messages to this file once it is ready, each line with its time
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// The child process of `--background`
    #[arg(long, hide = true, conflicts_with = "background")]
    detached: bool,
}

impl Process {
    /// Begins. Returns the signals that will end this process, or `None` if a child process serves and is ready.
    pub fn begin(&self) -> Result<Option<Signals>, Failure> {
        if let Some(log) = &self.log {
            // Fail early if the log cannot be opened.
            log::open(log)?;
        }
        if self.background {
            return background::start().map(|()| None);
        }
        if self.detached {
            background::detach()?;
        }
        limit_arenas(ARENAS);
        Signals::catch().map(Some)
    }

    /// Reports readiness with this message, and waits for a request to end.
    pub fn wait(&self, ready: &str, signals: &Signals) -> Result<(), Failure> {
        let log = self.log.as_deref().map(log::open).transpose()?;
        if self.detached {
            background::report_ready(ready, log.as_ref())?;
        } else {
            crate::print(ready)?;
            log.as_ref().map_or(Ok(()), log::begin)?;
        }
        signals.wait();
        Ok(())
    }
}
