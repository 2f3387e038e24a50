//! How what stays begins, says that it is ready, and waits for its end: in the foreground, or in a process of its own.

use super::signals::Signals;
use super::{background, log};
use crate::failure::Failure;
use std::path::PathBuf;

/// The options of whatever stays.
#[derive(clap::Args)]
pub struct Stay {
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Return as soon as it can be used; the number of the process that serves it is printed
    #[arg(long)]
    background: bool,
    /// Add what is told once it is ready to this file, each line with its time
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// This is the process that `--background` has started
    #[arg(long, hide = true, conflicts_with = "background")]
    detached: bool,
}

impl Stay {
    /// Begins: answers who will tell this process to end, or `None` if another one serves in its place, and is ready.
    pub fn begin(&self) -> Result<Option<Signals>, Failure> {
        if let Some(log) = &self.log {
            // What can be refused comes first.
            log::open(log)?;
        }
        if self.background {
            return background::start().map(|()| None);
        }
        if self.detached {
            background::leave_the_terminal()?;
        }
        Signals::catch().map(Some)
    }

    /// Says that it is ready, in these words, and waits until it is told to end.
    pub fn wait(&self, said: &str, signals: &Signals) -> Result<(), Failure> {
        let log = self.log.as_deref().map(log::open).transpose()?;
        if self.detached {
            background::tell_that_it_is_ready(said, log.as_ref())?;
        } else {
            crate::print(said)?;
            log.as_ref().map_or(Ok(()), log::begin)?;
        }
        signals.wait();
        Ok(())
    }
}
