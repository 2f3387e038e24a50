//! The replay of a log: which blocks its committed transactions have changed, and where their newest copies lie.
//!
//! 1. *Scan* (`log_scan`): transactions follow each other by number, each to its commit record; a transaction without one was never
//!    committed. (`prefix_scan`: an optimistic log, which ends before the first transaction that is not whole.)
//! 2. *Revokes*: a block that was freed by a transaction is not brought back by that one or those before it.
//! 3. *Copies*: of the others, the newest copy counts.
//!
//! A copy is a whole block, and needs no other. So of a damaged log all is replayed that can be read: the check of all
//! structures mends what the rest leaves inconsistent. One thing is in doubt: if a record is lost that may have revoked a
//! block, an older copy of that block may be one of directory entries where a file has its bytes now.

use super::fast_scan::{FastCommits, fast_commits};
use super::log_scan::{Copy, Fault, Loss, Reader, Scanned, scan};
use super::prefix_scan::scan_prefix;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::format::log::{Dialect, feature};
use crate::fs::ext::format::shape::Shape;
use crate::fs::ext::found_log::FoundLog;
use crate::fs::ext::journal::TransactionId;
use crate::fs::volume::{Damage, VolumeError};
use crate::task::Task;
use std::collections::BTreeMap;

/// The blocks of a journal that are not home.
pub struct Replayed {
    /// Blocks with their newest bytes.
    pub blocks: BTreeMap<u64, Bytes>,
    /// The number that the next transaction has.
    pub next: TransactionId,
    /// Copies that cannot be used.
    pub damaged: Vec<VolumeError>,
}

/// The blocks of a log that are not home.
pub struct ReplayedLog {
    pub blocks: BTreeMap<u64, Bytes>,
    /// Blocks whose newest copy may have been revoked by a lost record.
    pub doubtful: BTreeMap<u64, Bytes>,
    /// The number that the next transaction has.
    pub next: TransactionId,
    pub damage: Vec<Damage>,
    /// Changes are lost.
    pub has_lost: bool,
    /// The fast commits behind it.
    pub fast: FastCommits,
}

/// Reads the blocks of the log that are not home.
pub fn replayed(task: &Task<'_>, shape: &Shape, log: &FoundLog) -> Result<ReplayedLog, VolumeError> {
    let next = TransactionId(log.superblock.sequence());
    let mut replayed = ReplayedLog {
        blocks: BTreeMap::new(),
        doubtful: BTreeMap::new(),
        next,
        damage: log.flipped.iter().map(|why| mended_superblock(why)).collect(),
        has_lost: false,
        fast: FastCommits::none(next),
    };
    if log.superblock.start() == 0 {
        return Ok(replayed);
    }
    let reader = Reader::new(task, log);
    let is_optimistic = log.superblock.has(feature::OPTIMISTIC);
    let scanned = if is_optimistic { scan_prefix(&reader)? } else { scan(&reader)? };
    // A transaction that was not committed has this number, and is still there: it is not used again.
    replayed.next = scanned.newest.next();
    replayed.has_lost = scanned.faults.iter().any(|fault| fault.loss == Loss::Records);
    replayed.damage.extend(scanned.faults.iter().map(|fault| told(fault, &scanned)));
    let end = scanned.end;
    take_copies(&reader, shape, &Dialect::of(&log.superblock), scanned, &mut replayed)?;
    replayed.fast = fast_commits(&reader, log.superblock.fast_area(), end)?;
    if replayed.has_lost && !replayed.fast.commits.is_empty() {
        replayed.damage.push(left_out(&replayed.fast));
        replayed.fast.commits.clear();
    }
    Ok(replayed)
}

fn take_copies(
    reader: &Reader<'_>,
    shape: &Shape,
    dialect: &Dialect,
    scanned: Scanned,
    replayed: &mut ReplayedLog,
) -> Result<(), VolumeError> {
    let mut revoked: BTreeMap<u64, TransactionId> = BTreeMap::new();
    for (block, id) in scanned.revoked {
        revoked.insert(block, id);
    }
    let mut newest: BTreeMap<u64, TransactionId> = BTreeMap::new();
    let mut lost: BTreeMap<u64, Damage> = BTreeMap::new();
    for Copy { at, tag, id } in scanned.copies {
        let block = tag.block;
        if revoked.get(&block).is_some_and(|revoked| !id.is_after(*revoked)) {
            continue;
        }
        let what = |why: &str| damaged(format!("block {at} of the journal, a copy of block {block}"), why).to_string();
        let leaves_out = |why: &str| {
            let repair = "the copy is left out, and the block stays as it was".to_string();
            Damage { what: what(why), repair }
        };
        if !shape.holds(block, 1) && block != shape.superblock_block(0) {
            lost.insert(block, leaves_out("the volume has no such block"));
            continue;
        }
        let mut copy = reader.read(at)?;
        if !dialect.is_copy(&tag, &copy, id.0) {
            let Some(mended) = dialect.mended_copy(&tag, &copy, id.0) else {
                lost.insert(block, leaves_out("its checksum is wrong"));
                continue;
            };
            let repair = "it is flipped back, as the checksum says: nothing is lost".to_string();
            replayed.damage.push(Damage { what: what("a bit of it is flipped"), repair });
            copy = mended;
        }
        if let Some(Damage { what, .. }) = lost.remove(&block) {
            replayed.damage.push(Damage { what, repair: "a later copy takes its place: nothing is lost".to_string() });
        }
        Dialect::unescape(&tag, &mut copy);
        newest.insert(block, id);
        replayed.blocks.insert(block, copy.into());
    }
    replayed.has_lost |= !lost.is_empty();
    replayed.damage.extend(lost.into_values());
    if let Some(unsure) = scanned.unsure {
        let in_doubt: Vec<u64> =
            newest.into_iter().filter(|(_, id)| !id.is_after(unsure)).map(|(block, _)| block).collect();
        for block in in_doubt {
            replayed.doubtful.extend(replayed.blocks.remove_entry(&block));
        }
    }
    Ok(())
}

/// Fast commits that follow a log of which changes are lost.
fn left_out(fast: &FastCommits) -> Damage {
    let what = format!("{} fast commits of the journal follow records that are damaged", fast.commits.len());
    Damage { what, repair: "they are left out: they may contradict what is left of the log".to_string() }
}

fn mended_superblock(why: &str) -> Damage {
    let repair = "its other fields say what is right: nothing is lost".to_string();
    Damage { what: damaged("the journal's superblock", why).to_string(), repair }
}

/// A damaged record, for people.
fn told(fault: &Fault, scanned: &Scanned) -> Damage {
    let behind = scanned.committed.iter().filter(|id| id.is_after(fault.id)).count();
    let Fault { id, at, why, loss } = fault;
    let what = format!("transaction {} in block {at} of the journal", id.0);
    let what = format!("{}; {behind} committed transactions lie behind it", damaged(what, why));
    let repair = match loss {
        Loss::Nothing => "nothing is lost: it is replayed",
        Loss::Records => {
            "they are replayed; what it has changed and none of them has is lost, and all structures are checked"
        }
    };
    Damage { what, repair: repair.to_string() }
}
