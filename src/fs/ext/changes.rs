//! The way of a change: within a handle of the journal. A volume that can only be read refuses it.

use super::journal::{Handle, Journal};
use crate::fs::volume::VolumeError;
use crate::task::Task;

/// The journal of a mounted volume, or the reason why the volume can only be read.
#[derive(Default)]
pub struct Changes {
    /// `None` if the volume can only be read.
    pub journal: Option<Box<dyn Journal>>,
    /// Why it can only be read.
    pub read_only: Option<String>,
}

impl Changes {
    /// The transactions of a volume that can be written.
    pub fn journal(&self) -> Result<&dyn Journal, VolumeError> {
        let read_only = || VolumeError::ReadOnly(self.read_only.clone().unwrap_or_default());
        self.journal.as_deref().ok_or_else(read_only)
    }

    /// Does work within a handle that changes `blocks` at the most, and ends the handle, however the work has ended. The task
    /// has no handle yet.
    pub fn within<T>(
        &self,
        task: &Task<'_>,
        blocks: usize,
        work: impl FnOnce(&Handle<'_>) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let handle = self.journal()?.begin(task, blocks)?;
        let done = work(&handle);
        handle.end();
        done
    }

    /// Makes changes that belong together, within a handle. If they fail halfway, nothing more is changed: a
    /// crash leaves the last commit.
    pub fn changing<T>(&self, change: impl FnOnce() -> Result<T, VolumeError>) -> Result<T, VolumeError> {
        let changed = change();
        if let Err(error) = &changed
            && !matches!(error, VolumeError::NoSpace { .. })
        {
            self.journal()?.common().abort(&format!("a change failed halfway: {error}"));
        }
        changed
    }
}
