//! The content of a region after a crash.
//!
//! The commit with the greatest number whose record is whole says how far each partition is committed; the last checkpoint
//! says where it begins. Between the two, partitions are scanned side by side: a block lies in one partition only, so its
//! newest image is found there (J13). A slot in that range that is not whole is damage, since the commit was recorded after
//! all of its slots were durable (J12): it is reported and never skipped in silence. Slots beyond the cut are those of a
//! commit that did not come to its end.

use super::layout::{Header, Record, SUPERBLOCKS, Shape, Superblock, ranges_of_bytes};
use super::ring::Kept;
use crate::device::nvm::Nvm;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::journal::TransactionId;
use crate::fs::volume::VolumeError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

/// A region that was formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRegion {
    pub superblock: Superblock,
}

/// Committed blocks of a region that are not home.
#[derive(Default)]
pub struct Replayable {
    /// Blocks with their newest committed bytes.
    pub blocks: BTreeMap<u64, Bytes>,
    /// The last committed transaction; `None` if none is.
    pub last: Option<TransactionId>,
    /// Slots and records that cannot be used.
    pub damaged: Vec<VolumeError>,
}

/// Committed blocks of a partition that are not home.
#[derive(Default)]
struct Scanned {
    newest: BTreeMap<u64, (u64, Vec<u8>)>,
    revoked: Vec<(u64, Vec<Range<u64>>)>,
    damaged: Vec<VolumeError>,
}

const NAME: &str = "the journal in non-volatile memory";

impl FoundRegion {
    /// True if memory begins with zeros where a region has its superblocks.
    pub fn is_blank(nvm: &dyn Nvm) -> bool {
        let mut bytes = [0; 4096];
        SUPERBLOCKS.into_iter().all(|at| {
            nvm.read(at, &mut bytes);
            bytes.iter().all(|byte| *byte == 0)
        })
    }

    /// The superblock of the region once all that it has is home.
    pub fn emptied(&self) -> Superblock {
        Superblock { sequence: self.superblock.sequence + 1, is_in_use: false, ..self.superblock }
    }

    /// All that the region has is home: from now on it has nothing, in a new generation. It is in use until the volume
    /// does not name it any more.
    pub fn let_go(&self, nvm: &dyn Nvm) -> FoundRegion {
        let (sequence, generation) = (self.superblock.sequence + 1, self.superblock.generation + 1);
        let superblock = Superblock { sequence, generation, is_in_use: true, ..self.superblock };
        superblock.write(nvm);
        FoundRegion { superblock }
    }

    /// Looks for a region's superblock; `None` if there is none.
    ///
    /// # Errors
    ///
    /// There is one, and the memory is shorter than it says.
    pub fn find(nvm: &dyn Nvm) -> Result<Option<FoundRegion>, String> {
        let Some(superblock) = Superblock::read(nvm) else { return Ok(None) };
        let (wanted, found) = (superblock.shape.bytes(), nvm.bytes());
        if wanted > found {
            return Err(format!("it was made with {wanted} bytes, and has {found}: it was cut off"));
        }
        Ok(Some(FoundRegion { superblock }))
    }

    /// Reads the committed blocks that are not home.
    pub fn replayable(&self, nvm: &dyn Nvm) -> Replayable {
        let superblock = &self.superblock;
        let latest = |records: &mut dyn Iterator<Item = Record>| {
            records.reduce(|one, other| {
                let is_later = TransactionId(other.transaction).is_after(TransactionId(one.transaction));
                if is_later { other } else { one }
            })
        };
        if !superblock.is_in_use {
            return Replayable::default();
        }
        let checkpoint = latest(&mut Record::checkpoints(nvm, superblock));
        let flipped = Record::flipped_commit(nvm, superblock);
        let Some(commit) = latest(&mut Record::commits(nvm, superblock).chain(flipped)) else {
            let is_lost = checkpoint.is_some() || Record::are_commits_lost(nvm, superblock);
            let lost = is_lost.then(|| damaged(NAME, "no record of a commit is whole, and there was one".to_string()));
            return Replayable { damaged: lost.into_iter().collect(), ..Replayable::default() };
        };
        let partitions = superblock.shape.partitions as usize;
        let home = checkpoint.map_or(vec![0; partitions], |record| record.cut);
        let last = Some(TransactionId(commit.transaction));
        for (number, (head, cut)) in home.iter().zip(&commit.cut).enumerate() {
            if cut < head || cut - head > superblock.shape.slots {
                let why = format!("partition {number} is home up to {head}, and committed up to {cut}");
                return Replayable { last, damaged: vec![damaged(NAME, why)], ..Replayable::default() };
            }
        }
        let scans = scan_all(nvm, superblock, &commit, &home);
        let mut all = Replayable { last, ..Replayable::default() };
        let mut versions: BTreeMap<u64, (u64, Vec<u8>)> = BTreeMap::new();
        let mut revoked = Vec::new();
        for scanned in scans {
            versions.extend(scanned.newest);
            revoked.extend(scanned.revoked);
            all.damaged.extend(scanned.damaged);
        }
        for (version, ranges) in revoked {
            for range in ranges {
                let older: Vec<u64> =
                    versions.range(range).filter(|(_, (of, _))| *of < version).map(|(block, _)| *block).collect();
                older.iter().for_each(|block| {
                    versions.remove(block);
                });
            }
        }
        all.blocks = versions.into_iter().map(|(block, (_, bytes))| (block, bytes.into())).collect();
        all
    }
}

/// Scans the partitions side by side.
fn scan_all(nvm: &dyn Nvm, superblock: &Superblock, commit: &Record, home: &[u64]) -> Vec<Scanned> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(home.len());
    let ranges: Vec<(u32, Range<u64>)> =
        (0..).zip(home.iter().zip(&commit.cut)).map(|(number, (head, cut))| (number, *head..*cut)).collect();
    thread::scope(|scope| {
        let scan = |ranges: Vec<(u32, Range<u64>)>| {
            let scan_one = |(number, range)| scan(nvm, superblock, commit.transaction, number, range);
            ranges.into_iter().map(scan_one).collect::<Vec<Scanned>>()
        };
        let share = |thread: usize| ranges.iter().skip(thread).step_by(threads).cloned().collect::<Vec<_>>();
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || scan(share(thread)))).collect();
        running
            .into_iter()
            .flat_map(|scanned| scanned.join().expect("a scan does not panic on what it reads"))
            .collect()
    })
}

fn scan(nvm: &dyn Nvm, superblock: &Superblock, last: u32, partition: u32, indexes: Range<u64>) -> Scanned {
    let shape: &Shape = &superblock.shape;
    let mut scanned = Scanned::default();
    for index in indexes {
        let slot = index % shape.slots;
        let what = || format!("{NAME}, slot {slot} of partition {partition}");
        let (header, data) = match Header::read(nvm, shape, partition, slot) {
            Ok(read) => read,
            Err(why) => {
                scanned.damaged.push(damaged(what(), why));
                continue;
            }
        };
        let Header { block, version, transaction, .. } = header;
        if header.index != index || header.generation != superblock.generation {
            let why = format!("it has index {}, and {index} was committed", header.index);
            scanned.damaged.push(damaged(what(), why));
        } else if TransactionId(transaction).is_after(TransactionId(last)) {
            let why = format!("it is of transaction {transaction}, and {last} is the last");
            scanned.damaged.push(damaged(what(), why));
        } else if header.what == Kept::Revoke {
            let ranges: Vec<Range<u64>> = ranges_of_bytes(&data).collect();
            match ranges.iter().find(|range| range.is_empty()) {
                Some(range) => {
                    let why = format!("it frees blocks {} to {}, which are none", range.start, range.end);
                    scanned.damaged.push(damaged(what(), why));
                }
                None => scanned.revoked.push((version, ranges)),
            }
        } else if shape.partition_of(block) != partition {
            scanned.damaged.push(damaged(what(), format!("block {block} belongs to another partition")));
        } else if scanned.newest.get(&block).is_none_or(|(known, _)| *known < version) {
            scanned.newest.insert(block, (version, data));
        }
    }
    scanned
}
