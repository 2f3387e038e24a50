//! Writing back: what is in memory goes to the log, and segments become free.
//!
//! | file | what it is |
//! |---|---|
//! | `groups` | segment writing: buffered blocks in groups of like hotness |
//! | `cleaning` | live blocks of victims are buffered, to be written anew |
//! | `checkpoint` | all changes, and a superblock that names them |
//! | `syncs` | one file, and all changes of names |
//! | `room` | which of these is done next, when there is little room |
//! | `discards` | the device is told which segments are free |
//!
//! [`WriteBack`] works in turns. Within a turn it has the volume; between two turns the device reads, writes and flushes,
//! and others have theirs, if threads share the volume. So each turn relies on nothing that others can change but what it
//! looks at itself. One task at a time writes back.

mod checkpoint;
mod cleaning;
mod discards;
mod groups;
mod room;
mod syncs;

pub(super) use discards::Discards;

use super::media::Media;
use super::{Sfs, SfsError};
use crate::task::Task;
use std::sync::Arc;

/// A volume, for one turn after the other.
pub(super) trait Turns {
    /// Has the volume while `act` runs.
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs) -> Result<R, SfsError>) -> Result<R, SfsError>;
}

/// A volume that nobody else uses.
pub(super) struct Alone<'s>(&'s mut Sfs);

impl Turns for Alone<'_> {
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs) -> Result<R, SfsError>) -> Result<R, SfsError> {
        act(self.0)
    }
}

/// The one that writes back.
pub(super) struct WriteBack<'t, T> {
    turns: T,
    task: &'t Task<'t>,
    media: Arc<Media>,
}

impl Sfs {
    /// Writes back while nobody else uses the volume.
    pub(super) fn write_back<'t>(&'t mut self, task: &'t Task<'t>) -> WriteBack<'t, Alone<'t>> {
        let media = Arc::clone(&self.media);
        WriteBack::new(Alone(self), task, media)
    }
}

impl<'t, T: Turns> WriteBack<'t, T> {
    /// Writes back to these media.
    pub fn new(turns: T, task: &'t Task<'t>, media: Arc<Media>) -> WriteBack<'t, T> {
        WriteBack { turns, task, media }
    }

    /// Has a turn, then has the device make the changes of the log that it queued.
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs, &Task<'_>) -> Result<R, SfsError>) -> Result<R, SfsError> {
        let task = self.task;
        let answer = self.turns.turn(|sfs| act(sfs, task));
        if let Err(error) = self.media.make_changes(task) {
            // What is in memory is no longer what is on the media.
            self.turns.turn(|sfs| {
                sfs.fail(format!("a write failed: {error}"));
                Ok(())
            })?;
            return Err(error.into());
        }
        answer
    }

    /// Looks at the volume.
    fn look<R>(&mut self, look: impl FnOnce(&mut Sfs) -> R) -> Result<R, SfsError> {
        self.turns.turn(|sfs| Ok(look(sfs)))
    }
}
