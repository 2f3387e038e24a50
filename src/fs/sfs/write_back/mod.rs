//! Writeback: dirty data and metadata are written to the log, and segments are freed.
//!
//! | file | content |
//! |---|---|
//! | `groups` | writeback of data: dirty blocks in groups of similar hotness |
//! | `cleaning` | live blocks of victims become dirty |
//! | `checkpoint` | all changes, and a superblock that refers to them |
//! | `syncs` | fsync and sync |
//! | `small_syncs` | changed bytes as log records of an fsync |
//! | `room` | choice of the next step when space or memory is short |
//! | `discards` | discards of free segments |
//!
//! [`WriteBack`] works in turns. Within a turn it has the volume; between turns the device reads, writes and flushes,
//! and other calls run if the volume is shared. So a turn relies only on state that it checks itself, or that only
//! writeback changes. One task at a time writes back.

mod checkpoint;
mod cleaning;
mod discards;
mod groups;
mod room;
mod small_syncs;
mod syncs;

pub(super) use discards::Discards;

use super::media::Media;
use super::{Sfs, SfsError};
use crate::task::Task;
use std::sync::Arc;

/// Access to a volume, one turn after the other.
pub(super) trait Turns {
    /// Runs `act` with the volume.
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs) -> Result<R, SfsError>) -> Result<R, SfsError>;
}

/// A volume that is not shared.
pub(super) struct Exclusive<'s>(&'s mut Sfs);

impl Turns for Exclusive<'_> {
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs) -> Result<R, SfsError>) -> Result<R, SfsError> {
        act(self.0)
    }
}

/// The task that writes back.
pub(super) struct WriteBack<'t, T> {
    turns: T,
    task: &'t Task<'t>,
    media: Arc<Media>,
}

impl Sfs {
    /// Writes back a volume that is not shared.
    pub(super) fn write_back<'t>(&'t mut self, task: &'t Task<'t>) -> WriteBack<'t, Exclusive<'t>> {
        let media = Arc::clone(&self.files.media);
        WriteBack::new(Exclusive(self), task, media)
    }
}

impl<'t, T: Turns> WriteBack<'t, T> {
    /// A task that writes back to these media.
    pub fn new(turns: T, task: &'t Task<'t>, media: Arc<Media>) -> WriteBack<'t, T> {
        WriteBack { turns, task, media }
    }

    /// Runs a turn, then lets the device make the queued changes of the log.
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs, &Task<'_>) -> Result<R, SfsError>) -> Result<R, SfsError> {
        let task = self.task;
        let answer = self.turns.turn(|sfs| act(sfs, task));
        if let Err(error) = self.media.make_changes(task) {
            // Memory is now ahead of the media.
            self.turns.turn(|sfs| {
                sfs.fail(format!("a write failed: {error}"));
                Ok(())
            })?;
            return Err(error.into());
        }
        answer
    }

    /// Reads the state of the volume.
    fn read_state<R>(&mut self, read: impl FnOnce(&mut Sfs) -> R) -> Result<R, SfsError> {
        self.turns.turn(|sfs| Ok(read(sfs)))
    }
}
