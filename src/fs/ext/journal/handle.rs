//! Handles: changes that are committed together.

use super::tracker::Tracker;
use super::{Journal, TransactionId};
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::{ReadGuard, Task};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// A part of the running transaction: changes that are committed together. Its task [ends](Handle::end) it, also
/// where its changes have failed. Only a panic drops one that has not ended, which the journal then [abandons](Journal::abandons).
pub struct Handle<'j> {
    journal: &'j dyn Journal,
    /// The task that has begun it.
    pub task: &'j Task<'j>,
    /// The transaction.
    pub id: TransactionId,
    promised: usize,
    /// Its changes, for a journal that asks when it ends.
    pub(super) done: RefCell<Done>,
    /// The tracker knows all that it changes.
    is_tracked: Cell<bool>,
    /// The transaction cannot be closed before it has left.
    pub(super) inside: Inside<'j>,
    has_ended: bool,
}

/// The hold of a handle on its transaction, which stays open.
pub(super) enum Inside<'j> {
    /// A gate.
    Gate(#[expect(dead_code, reason = "it is dropped")] ReadGuard<'j, ()>),
    /// The journal counts its handles, this one in a cell of this number.
    Cell(usize),
    /// Nothing any more.
    Nothing,
}

/// The changes of a handle, in their order; a block may be there more than once.
#[derive(Default)]
pub(super) struct Done {
    pub(super) changed: Vec<(u64, Content)>,
    pub(super) freed: Vec<Range<u64>>,
    /// Those of the freed blocks that may be in the journal.
    pub(super) revoked: Vec<Range<u64>>,
}

impl<'j> Handle<'j> {
    pub(super) fn new(
        journal: &'j dyn Journal,
        task: &'j Task<'j>,
        id: TransactionId,
        promised: usize,
        inside: Inside<'j>,
    ) -> Handle<'j> {
        let (done, is_tracked) = (RefCell::default(), Cell::new(false));
        Handle { journal, task, id, promised, done, is_tracked, inside, has_ended: false }
    }

    /// The tracker of the transaction's changes, if fast commits are written.
    pub fn tracker(&self) -> Option<&Tracker> {
        self.journal.tracker()
    }

    /// Tells the tracker the changes of this handle, beside inodes, which tell themselves when they are stored. A
    /// handle that says nothing excludes its transaction from fast commits.
    pub fn tracked(&self, tell: impl FnOnce(&Tracker)) {
        if let Some(tracker) = self.tracker() {
            self.is_tracked.set(true);
            tell(tracker);
        }
    }

    /// True if the tracker knows all that it changes.
    pub(super) fn is_tracked(&self) -> bool {
        self.is_tracked.get()
    }

    /// A block will be changed, which is in memory. False if it has left memory meanwhile: it must be read again.
    pub fn change(&self, block: u64, content: Content, change: impl FnOnce(&mut [u8])) -> bool {
        self.journal.joins(self, block, content);
        self.journal.common().blocks.change(block, change)
    }

    /// Changes a block of metadata, which `read` reads if it is not in memory.
    pub fn change_block(
        &self,
        block: u64,
        read: &dyn Fn(&Task<'_>) -> Result<(), VolumeError>,
        change: impl Fn(&mut [u8]),
    ) -> Result<(), VolumeError> {
        while !self.change(block, Content::Metadata, &change) {
            read(self.task)?;
        }
        Ok(())
    }

    /// A block is new: these are its bytes, and the older ones do not count.
    pub fn set(&self, block: u64, content: Content, bytes: &[u8]) {
        self.journal.joins(self, block, content);
        self.journal.common().blocks.set(block, bytes);
    }

    /// Blocks are free from now on, and can be used once this is committed. `is_logged`: they may be in the journal, which
    /// must not bring them back.
    pub fn free(&self, range: Range<u64>, is_logged: bool) {
        self.journal.frees(self, range.clone(), is_logged);
        self.journal.common().withhold(range);
    }

    /// Ends it: hands its changes to the journal, which stores them now or when the transaction is committed.
    pub fn end(mut self) {
        self.has_ended = true;
        self.journal.ends(&mut self);
    }

    /// Blocks that this handle may still change.
    pub fn promised(&self) -> usize {
        self.promised
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            debug_assert!(std::thread::panicking(), "a handle of {:?} is dropped, and has not ended", self.id);
            self.journal.abandons(self);
        }
    }
}
