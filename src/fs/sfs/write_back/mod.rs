//! Writeback: dirty data and metadata are written to the log, and segments are freed.
//!
//! | file | content |
//! |---|---|
//! | `steps` | what writeback does: syncs, background work, freeing of segments and memory |
//! | `checkpoint` | all changes, and a superblock that refers to them |
//! | `cleaning` | live blocks of victims become dirty |
//! | `syncs` | what an fsync writes |
//! | `small_syncs` | changed bytes as log records of an fsync |
//! | `groups` | writeback of data: dirty blocks in groups of similar hotness |
//! | `writer` | partial segments: blocks get addresses and are written |
//! | `room`, `schedule` | space and memory against their limits; the times of background work |
//! | `discards` | discards of free segments |
//!
//! Calls go down this table: a step takes a checkpoint, cleans or syncs, each of which writes groups, which the writer writes.
//!
//! [`WriteBack`] works in turns. Within a turn it has the volume; between turns the device reads, writes and flushes,
//! and other calls run if the volume is shared. So a turn relies only on state that it checks itself, or that only
//! writeback changes. One task at a time writes back.

mod checkpoint;
mod cleaning;
mod discards;
mod groups;
mod room;
mod schedule;
mod small_syncs;
mod steps;
mod syncs;
mod writer;

pub(super) use checkpoint::Checkpoint;
pub(super) use discards::Discards;
pub(super) use room::{Room, release_by_log};
pub(super) use schedule::Schedule;
pub(super) use writer::Writer;

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

impl<'s> Exclusive<'s> {
    /// Writes back this volume.
    pub fn write_back(volume: &'s mut Sfs, task: &'s Task<'s>) -> WriteBack<'s, Exclusive<'s>> {
        let media = Arc::clone(&volume.files.media);
        WriteBack::new(Exclusive(volume), task, media)
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
                sfs.writer.fail(&sfs.files, format!("a write failed: {error}"));
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

    /// Makes all log writes durable.
    fn flush(&mut self) -> Result<(), SfsError> {
        self.flush_after(|_, _| Ok(()))
    }

    /// Runs a turn, then makes all log writes durable.
    fn flush_after(&mut self, act: impl FnOnce(&mut Sfs, &Task<'_>) -> Result<(), SfsError>) -> Result<(), SfsError> {
        let task = self.task;
        let begun = self.turns.turn(|sfs| {
            act(sfs, task)?;
            Ok(sfs.writer.log.begin_flush())
        });
        match begun {
            Ok(true) => {
                // The flush makes the changes of this turn.
                let flushed = self.media.flush(task);
                self.turn(|sfs, _| sfs.writer.end_flush(&sfs.files, flushed))
            }
            Ok(false) => Ok(()),
            // Changes queued before the failure are still written.
            Err(error) => self.turn(|_, _| Err(error)),
        }
    }
}
