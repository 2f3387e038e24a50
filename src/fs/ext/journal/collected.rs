//! A journal that stores nothing: changes stay in memory, and the caller asks for the blocks. A replay makes its
//! changes in it, before any of them is written.

use super::common::{Common, Counts, locked};
use super::handle::Inside;
use super::{Handle, Journal, TransactionId};
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::media::Media;
use crate::fs::volume::{Timestamp, VolumeError};
use crate::label::Content;
use crate::task::Task;
use crate::time::Time;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Changed blocks by number.
pub type Changed = Arc<Mutex<BTreeSet<u64>>>;

/// A journal whose only transaction stays in memory.
pub struct CollectedJournal {
    common: Common,
    id: TransactionId,
    changed: Changed,
}

impl CollectedJournal {
    /// A journal with this one transaction, and the place where its changed blocks are counted.
    pub fn new(
        (media, blocks): (Arc<Media>, Arc<Blocks>),
        id: TransactionId,
        origin: Timestamp,
    ) -> (CollectedJournal, Changed) {
        let changed = Changed::default();
        let journal =
            CollectedJournal { common: Common::new(media, blocks, origin), id, changed: Arc::clone(&changed) };
        (journal, changed)
    }
}

impl Journal for CollectedJournal {
    fn most_blocks(&self) -> usize {
        usize::MAX
    }

    fn begin<'j>(&'j self, task: &'j Task<'j>, blocks: usize) -> Result<Handle<'j>, VolumeError> {
        self.common.check()?;
        Ok(Handle::new(self, task, self.id, blocks, Inside::Nothing))
    }

    fn running(&self) -> TransactionId {
        self.id
    }

    fn begun(&self) -> Option<Time> {
        None
    }

    fn commit(&self, _: &Task<'_>, _: TransactionId) -> Result<(), VolumeError> {
        self.common.check()
    }

    fn commit_freed(&self, _: &Task<'_>) -> Result<(), VolumeError> {
        self.common.check()
    }

    fn wants_checkpoint(&self) -> bool {
        false
    }

    fn checkpoint(&self, _: &Task<'_>) -> Result<(), VolumeError> {
        Ok(())
    }

    fn end(&self, _: &Task<'_>) -> Result<(), VolumeError> {
        self.common.check()
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn joins(&self, _: &Handle<'_>, block: u64, _: Content) {
        locked(&self.changed).insert(block);
    }

    fn frees(&self, _: &Handle<'_>, range: Range<u64>, _: bool) {
        locked(&self.changed).retain(|block| !range.contains(block));
    }

    fn ends(&self, _: &mut Handle<'_>) {}

    fn abandons(&self, _: &mut Handle<'_>) {}
}
