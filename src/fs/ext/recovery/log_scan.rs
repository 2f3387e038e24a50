//! The scan of a log: its committed transactions, and their damage.
//!
//! Transactions follow each other by number, each to its commit. Where something else lies, the log ends: the last
//! transaction was never committed, and a cut of power may have left any blocks of it. Or a record is damaged. The blocks
//! behind tell: a transaction is stored only when the one before it is durable, so a commit that lies behind, of this
//! transaction or a later one, says that all before it was there. Blocks of older rounds of the log have lower numbers.
//!
//! With checksums, a record of which one bit is flipped is read as it was: the checksum says which bit.

use crate::fs::ext::error::damaged;
use crate::fs::ext::format::log::{Dialect, LogSuperblock, Tag, feature, head, kind};
use crate::fs::ext::found_log::FoundLog;
use crate::fs::ext::journal::TransactionId;
use crate::fs::volume::VolumeError;
use crate::task::Task;

const NAME: &str = "the journal";

/// A copy in the log: its block there, its tag, its transaction.
pub struct Copy {
    pub at: u32,
    pub tag: Tag,
    pub id: TransactionId,
}

/// The loss by a fault of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: the rest of the log has it.
    Nothing,
    /// Records of its transaction.
    Records,
}

/// A damaged record.
pub struct Fault {
    pub id: TransactionId,
    /// The block of the log.
    pub at: u32,
    pub why: String,
    pub loss: Loss,
}

/// The content of the log.
pub struct Scanned {
    /// Of committed transactions, in their order.
    pub copies: Vec<Copy>,
    /// Blocks that transactions have revoked.
    pub revoked: Vec<(u64, TransactionId)>,
    pub committed: Vec<TransactionId>,
    pub faults: Vec<Fault>,
    /// The last transaction of which records are lost that may have revoked blocks.
    pub unsure: Option<TransactionId>,
    /// The number of the first transaction that is not committed.
    pub end: TransactionId,
    /// The last transaction of which records may lie behind: their numbers are not used again.
    pub newest: TransactionId,
}

impl Scanned {
    /// Nothing before this transaction.
    pub fn up_to(end: TransactionId) -> Scanned {
        Scanned {
            copies: Vec::new(),
            revoked: Vec::new(),
            committed: Vec::new(),
            faults: Vec::new(),
            unsure: None,
            end,
            newest: end,
        }
    }

    /// Leaves out all behind transaction `last`.
    pub fn end_behind(&mut self, last: TransactionId) {
        self.copies.retain(|copy| !copy.id.is_after(last));
        self.revoked.retain(|(_, id)| !id.is_after(last));
        self.committed.retain(|id| !id.is_after(last));
        self.faults.retain(|fault| !fault.id.is_after(last));
        self.unsure = self.unsure.map(|unsure| if unsure.is_after(last) { last } else { unsure });
        if self.end.is_after(last) {
            self.end = last.next();
        }
    }
}

/// Reads a log from its beginning on.
#[derive(Clone)]
pub struct Reader<'r> {
    task: &'r Task<'r>,
    log: &'r FoundLog,
    at: u32,
    /// Blocks that may still follow: the log goes round once.
    left: u64,
}

impl<'r> Reader<'r> {
    pub fn new(task: &'r Task<'r>, log: &'r FoundLog) -> Reader<'r> {
        let records = log.superblock.blocks() - log.superblock.first();
        Reader { task, log, at: log.superblock.start(), left: records.into() }
    }

    /// A block of the log.
    pub fn read(&self, number: u32) -> Result<Vec<u8>, VolumeError> {
        let place = &self.log.place;
        let (at, _) = place.find(number).ok_or_else(|| damaged(NAME, format!("it has no block {number}")))?;
        let mut bytes = vec![0; self.log.place.media.block_bytes()];
        place.media.read(self.task, at, &mut bytes)?;
        Ok(bytes)
    }

    /// The superblock of the log.
    pub fn log_superblock(&self) -> &'r LogSuperblock {
        &self.log.superblock
    }

    /// Goes on by a block, and answers its number; `None` if the log has gone round.
    pub fn go_on(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at += 1;
        if self.at >= self.log.superblock.records_end() {
            self.at = self.log.superblock.first();
        }
        Some(at)
    }
}

/// A record that is whole.
pub enum Record {
    Descriptor(Vec<Tag>),
    Revokes(Vec<u64>),
    Commit,
}

/// The record of a transaction in a block; fails with its fault.
pub fn record(dialect: &Dialect, block: &[u8], id: TransactionId) -> Result<Record, String> {
    let (kind, number) = head(block).ok_or("it is no record")?;
    let wrong_sum = || "its checksum is wrong".to_string();
    match kind {
        _ if number != id.0 => Err(format!("it is of transaction {number}")),
        kind::DESCRIPTOR => dialect.read_descriptor(block).map(Record::Descriptor).ok_or_else(wrong_sum),
        kind::REVOKES => dialect.read_revokes(block).map(Record::Revokes).ok_or_else(wrong_sum),
        kind::COMMIT if dialect.is_commit(block) => Ok(Record::Commit),
        kind::COMMIT => Err(wrong_sum()),
        kind => Err(format!("it is of kind {kind}")),
    }
}

/// Records of the transaction at hand.
#[derive(Default)]
struct Pending {
    copies: Vec<Copy>,
    revoked: Vec<u64>,
    faults: Vec<Fault>,
    /// The checksum of its blocks, if commits have one.
    sum: Option<u32>,
}

/// The first record behind a damaged one.
struct Behind<'r> {
    /// Just before it.
    reader: Reader<'r>,
    id: TransactionId,
    /// Blocks before it.
    distance: usize,
}

struct Scan<'r> {
    dialect: Dialect,
    is_asynchronous: bool,
    reader: Reader<'r>,
    id: TransactionId,
    /// Behind the last record, and the number of copies that belong to it.
    behind_record: (Reader<'r>, usize),
    pending: Pending,
    found: Scanned,
    /// The time of the last commit.
    time: u128,
}

/// Scans a log that is not empty.
pub fn scan(reader: &Reader<'_>) -> Result<Scanned, VolumeError> {
    let superblock = &reader.log.superblock;
    let (dialect, id) = (Dialect::of(superblock), TransactionId(superblock.sequence()));
    let found = Scanned::up_to(id);
    let scan = Scan {
        dialect,
        is_asynchronous: superblock.has(feature::ASYNC_COMMIT),
        reader: reader.clone(),
        id,
        behind_record: (reader.clone(), 0),
        pending: Pending { sum: dialect.begin_sum(), ..Pending::default() },
        found,
        time: 0,
    };
    scan.all()
}

impl<'r> Scan<'r> {
    fn all(mut self) -> Result<Scanned, VolumeError> {
        while let Some(at) = self.reader.go_on() {
            let block = self.reader.read(at)?;
            let why = match self.record(at, &block) {
                Ok(Record::Descriptor(tags)) => {
                    self.behind_record = (self.reader.clone(), tags.len());
                    self.pending.sum = Dialect::add_to_sum(self.pending.sum, &block);
                    if self.take_copies(tags)? {
                        continue;
                    }
                    "the log ends before its last copy".to_string()
                }
                Ok(Record::Revokes(revoked)) => {
                    self.behind_record = (self.reader.clone(), 0);
                    self.pending.revoked.extend(revoked);
                    continue;
                }
                Ok(Record::Commit) => {
                    self.behind_record = (self.reader.clone(), 0);
                    if !self.take_commit(at, &block)? {
                        break;
                    }
                    continue;
                }
                Err(why) => why,
            };
            let Some(behind) = self.behind(self.id, &self.behind_record.0)? else { break };
            self.lose(at, why, behind);
        }
        self.drop_torn()?;
        (self.found.end, self.found.newest) = (self.id, self.id);
        Ok(self.found)
    }

    /// The record in a block, also if one of its bits is flipped.
    fn record(&mut self, at: u32, block: &[u8]) -> Result<Record, String> {
        let why = match record(&self.dialect, block, self.id) {
            Err(why) => why,
            read => return read,
        };
        let Some((mended, byte)) = self.dialect.mended_record(block, self.id.0) else { return Err(why) };
        let mended = record(&self.dialect, &mended, self.id);
        if mended.is_ok() {
            let why = format!("a bit of its byte {byte} is flipped");
            self.pending.faults.push(Fault { id: self.id, at, why, loss: Loss::Nothing });
        }
        mended
    }

    /// Takes the copies that follow a descriptor; false if the log has gone round before.
    fn take_copies(&mut self, tags: Vec<Tag>) -> Result<bool, VolumeError> {
        for tag in tags {
            let Some(at) = self.reader.go_on() else { return Ok(false) };
            if self.pending.sum.is_some() {
                self.pending.sum = Dialect::add_to_sum(self.pending.sum, &self.reader.read(at)?);
            }
            self.pending.copies.push(Copy { at, tag, id: self.id });
        }
        Ok(true)
    }

    /// Takes a commit; false if it was written before its transaction, which a cut of power has torn.
    fn take_commit(&mut self, at: u32, block: &[u8]) -> Result<bool, VolumeError> {
        if !self.dialect.agrees(block, self.pending.sum) {
            if self.is_asynchronous && self.behind(self.id.next(), &self.reader)?.is_none() {
                return Ok(false);
            }
            let why = "its checksum is not that of the transaction, which is left out".to_string();
            self.pending.copies.clear();
            self.pending.faults.push(Fault { id: self.id, at, why, loss: Loss::Records });
        }
        self.time = Dialect::time_of_commit(block);
        self.commit();
        self.id = self.id.next();
        Ok(true)
    }

    /// Takes the transaction at hand: it is committed.
    fn commit(&mut self) {
        let fresh = Pending { sum: self.dialect.begin_sum(), ..Pending::default() };
        let Pending { copies, revoked, faults, .. } = std::mem::replace(&mut self.pending, fresh);
        self.found.copies.extend(copies);
        self.found.revoked.extend(revoked.into_iter().map(|block| (block, self.id)));
        self.found.faults.extend(faults);
        self.found.committed.push(self.id);
    }

    /// Looks for a commit behind `from`, of transaction `id` or a later one, and answers the first record there; `None` if
    /// the log ends here.
    ///
    /// A transaction takes a block at least, which limits its number by the distance. In a log without checksums,
    /// records of another life of the device may have such numbers, too: they are older than the last commit.
    fn behind(&self, id: TransactionId, from: &Reader<'r>) -> Result<Option<Behind<'r>>, VolumeError> {
        let (mut ahead, mut first) = (from.clone(), None);
        for distance in 0.. {
            let here = ahead.clone();
            let Some(at) = ahead.go_on() else { break };
            let block = ahead.read(at)?;
            let Some((kind, number)) = head(&block) else { continue };
            let number = TransactionId(number);
            let lead = number.0.wrapping_sub(id.0);
            if lead as usize > distance || record(&self.dialect, &block, number).is_err() {
                continue;
            }
            first.get_or_insert(Behind { reader: here, id: number, distance });
            let is_later = self.dialect.has_sums() || Dialect::time_of_commit(&block) >= self.time;
            if kind == kind::COMMIT && is_later {
                return Ok(first);
            }
        }
        Ok(None)
    }

    /// Goes on behind the damaged record in block `at`, which was durable.
    fn lose(&mut self, at: u32, why: String, behind: Behind<'r>) {
        let (_, copies) = self.behind_record;
        // A descriptor without checksum may name too many.
        let unnamed = copies.saturating_sub(behind.distance);
        self.pending.copies.truncate(self.pending.copies.len().saturating_sub(unnamed));
        // The block directly before the next transaction is the commit.
        let is_commit = behind.id == self.id.next() && behind.distance == copies + 1;
        let loss = if is_commit { Loss::Nothing } else { Loss::Records };
        let why = if is_commit { format!("it should be the commit, and {why}") } else { why };
        self.pending.faults.push(Fault { id: self.id, at, why, loss });
        if behind.id != self.id {
            self.commit();
        }
        if loss == Loss::Records {
            let last = if behind.id == self.id { self.id } else { TransactionId(behind.id.0.wrapping_sub(1)) };
            self.found.unsure = Some(last);
        }
        self.id = behind.id;
        self.reader = behind.reader;
        self.behind_record = (self.reader.clone(), 0);
    }

    /// Drops the last transaction if its commit was written before its copies, and a cut of power has torn these.
    fn drop_torn(&mut self) -> Result<(), VolumeError> {
        let Some(last) = self.found.committed.last().copied().filter(|_| self.is_asynchronous) else { return Ok(()) };
        for copy in self.found.copies.iter().filter(|copy| copy.id == last) {
            let bytes = self.reader.read(copy.at)?;
            if !self.dialect.is_copy(&copy.tag, &bytes, last.0) {
                self.found.copies.retain(|copy| copy.id != last);
                self.found.revoked.retain(|(_, id)| *id != last);
                self.found.faults.retain(|fault| fault.id != last);
                self.found.committed.pop();
                break;
            }
        }
        Ok(())
    }
}
