//! The fast commits of a log: those of the transaction that follows the last committed one, from the beginning of the area
//! on, each to its tail. Where something else lies they end: a cut of power has torn the last one, or a block is damaged. A
//! whole fast commit of the same transaction behind it tells: each is stored only when the one before it is durable.

use super::log_scan::Reader;
use crate::fs::ext::error::damaged;
use crate::fs::ext::format::fast_commit::{self, FastCommit};
use crate::fs::ext::format::log::LogSuperblock;
use crate::fs::ext::journal::{LogPlace, TransactionId};
use crate::fs::volume::{Damage, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use std::ops::Range;

const LABEL: Label = Label::first(Cause::JournalCommit, Content::Journal);

/// Fast commits that can be replayed, in their order.
pub struct FastCommits {
    pub commits: Vec<FastCommit>,
    /// The transaction that they belong to.
    pub id: TransactionId,
    /// The first block of the area, counted in the log.
    pub first: u32,
    pub damage: Option<Damage>,
}

impl FastCommits {
    /// None of this transaction.
    pub fn none(id: TransactionId) -> FastCommits {
        FastCommits { commits: Vec::new(), id, first: 0, damage: None }
    }
}

/// Clears the head of fast commits in a log whose blocks are home: e2fsck 1.47 does not replay a log behind which there
/// are some of an older transaction.
pub fn clear_fast(task: &Task<'_>, place: &LogPlace, log: &LogSuperblock) -> Result<(), VolumeError> {
    let Some((at, _)) = log.fast_area().next().and_then(|first| place.find(first)) else { return Ok(()) };
    if place.media.holds_stamps() {
        // Nothing is read back, and nobody replays it.
        return Ok(());
    }
    let mut block = vec![0; place.media.block_bytes()];
    place.media.read(task, at, &mut block)?;
    if fast_commit::begins(&block) {
        block.fill(0);
        place.media.write_metadata(task, at, &block, LABEL)?;
        place.media.flush(task)?;
    }
    Ok(())
}

/// Blocks that a fast commit takes at the most, where one is looked for behind a damaged block: any that this program writes
/// has fewer, and so have those of the kernel but for the largest.
const MOST_BLOCKS: usize = 16;

/// Reads the fast commits of transaction `id` in these blocks of the log.
pub fn fast_commits(reader: &Reader<'_>, area: Range<u32>, id: TransactionId) -> Result<FastCommits, VolumeError> {
    let mut found = FastCommits { first: area.start, ..FastCommits::none(id) };
    let mut blocks = Vec::new();
    let mut tags = fast_commit::Reader::new(id.0, 0, true);
    let why = loop {
        let at = area.start + blocks.len() as u32;
        if at >= area.end {
            return Ok(found);
        }
        let block = reader.read(at)?;
        let read = tags.block(&block);
        blocks.push(block);
        match read {
            Ok(Some(commit)) => found.commits.push(commit),
            Ok(None) => {}
            Err(why) => break why,
        }
    };
    let broken = blocks.len() - 1;
    for at in area.start + blocks.len() as u32..area.end {
        blocks.push(reader.read(at)?);
    }
    let behind = (broken + 1..blocks.len()).filter(|at| is_whole(&blocks[*at..], id)).count();
    if behind > 0 {
        let what = format!("block {} of the journal, a part of a fast commit", area.start + broken as u32);
        let what = format!("{}; {behind} fast commits of transaction {} lie behind it", damaged(what, why), id.0);
        let repair = "those before it are replayed; what it and those behind it have changed is lost".to_string();
        found.damage = Some(Damage { what, repair });
    }
    Ok(found)
}

/// True if a whole fast commit of this transaction begins in the first of these blocks.
fn is_whole(blocks: &[Vec<u8>], id: TransactionId) -> bool {
    let mut tags = fast_commit::Reader::new(id.0, 0, false);
    for block in blocks.iter().take(MOST_BLOCKS) {
        match tags.block(block) {
            Ok(Some(commit)) => return !commit.changes.is_empty(),
            Ok(None) => {}
            Err(_) => return false,
        }
    }
    false
}
