//! Fields of the superblock against the metadata files and the log of a loaded checkpoint: checked by a mount,
//! corrected by a lenient opener.
//!
//! The strongest single check is the last partial segment of a checkpoint: it holds the usage file, so that its summary
//! vouches for the volume's number, and for the number and checksum behind which the log goes on.

use super::finding::{Finding, Structure};
use super::log_tail;
use super::recount;
use super::superblocks::{AllFound, Found};
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::segments::State;
use crate::fs::sfs::log::{LogReader, Summary};
use crate::fs::sfs::media::format::{Kind, LARGEST, SummaryHeader, Superblock};
use crate::fs::sfs::media::invariants::{CheckResult, ensure};
use crate::task::Task;
use std::collections::BTreeMap;

/// Blocks that the summary of a usage file has at most: there is one of those that it describes for each 85 segments.
const MOST_SUMMARY_BLOCKS: u32 = 64;

fn damaged(what: &str, ensure: CheckResult) -> Result<(), SfsError> {
    ensure.map_err(|why| SfsError::Damaged { what: what.to_string(), why })
}

/// The superblock of a loaded checkpoint, and what it speaks of.
pub(super) struct CheckpointFields<'a> {
    pub task: &'a Task<'a>,
    pub superblock: &'a mut Superblock,
    pub files: &'a mut Files,
}

impl CheckpointFields<'_> {
    fn reader(&self) -> LogReader<'_> {
        LogReader::new(self.task, &self.files.media, self.superblock.identity)
    }

    /// Checks the loaded checkpoint, before the log behind it is applied.
    pub(super) fn check_checkpoint(&mut self) -> Result<(), SfsError> {
        damaged("the superblock", self.counts_hold())?;
        damaged("the usage file", self.usage_holds())?;
        self.check_last_partial()?;
        let ends: Vec<_> = self.superblock.open_ends().collect();
        ends.iter().try_for_each(|(_, segment, block)| self.check_open_segment(*segment, *block))?;
        if self.superblock.clean.get() == 1 && self.log_goes_on()? {
            let why = "it says that the volume was unmounted, and the log goes on behind it".to_string();
            return Err(SfsError::Damaged { what: "the superblock".to_string(), why });
        }
        Ok(())
    }

    /// Checks the counts of the superblock against the metadata files.
    pub(super) fn counts_hold(&mut self) -> CheckResult {
        let taken = self.files.metadata.dat.taken().saturating_sub(1);
        ensure(taken == self.files.metadata.dat.used(), || {
            format!("{} virtual blocks are said to be used, and {taken} are taken", self.files.metadata.dat.used())
        })?;
        let allocated = self.files.metadata.inode_file.allocated();
        ensure(allocated == self.files.metadata.inode_file.used(), || {
            format!(
                "{} inodes are said to be used, and {allocated} numbers are given out",
                self.files.metadata.inode_file.used()
            )
        })
    }

    /// Checks the usage of segments against the blocks of the metadata files.
    fn usage_holds(&mut self) -> CheckResult {
        let (segment_blocks, log_blocks) =
            (u64::from(self.files.media.segment_blocks()), self.files.media.log_blocks());
        let mut live: BTreeMap<u32, u32> = BTreeMap::new();
        let (dat, inodes) =
            (self.files.metadata.dat.file().addresses(), self.files.metadata.inode_file.file().addresses());
        let mut blocks = 0;
        for (_, address) in dat.chain(inodes).chain(self.files.metadata.usage_file.addresses()) {
            ensure(address < log_blocks, || format!("a metadata file names block {address}"))?;
            *live.entry((address / segment_blocks) as u32).or_default() += 1;
            blocks += 1;
        }
        for (segment, blocks) in live {
            let said = self.files.segments.get(segment);
            ensure(said.state == State::Written && said.live >= blocks, || {
                format!("{} blocks live in segment {segment}, it says, where {blocks} of metadata files lie", said.live)
            })?;
        }
        let most = self.files.metadata.dat.used() + blocks;
        ensure(self.files.segments.live() <= most, || {
            format!("{} blocks live, it says, of {most}", self.files.segments.live())
        })
    }

    /// The last partial segment before the checkpoint is the one that holds the usage file. Nothing if its summary is
    /// damaged.
    pub(super) fn last_partial(&mut self) -> Result<Option<SummaryHeader>, SfsError> {
        let Some((_, address)) = self.files.metadata.usage_file.addresses().next() else { return Ok(None) };
        let segment_blocks = u64::from(self.files.media.segment_blocks());
        let (segment, block) = ((address / segment_blocks) as u32, (address % segment_blocks) as u32);
        for back in 1..=block.min(MOST_SUMMARY_BLOCKS) {
            let partial = match self.reader().at(segment, block - back) {
                Summary::Valid(partial) | Summary::Foreign(partial) => partial,
                Summary::Unreadable(error) => return Err(error.into()),
                Summary::Broken(_) | Summary::Nothing => continue,
            };
            // A summary that was written to a wrong place describes other blocks.
            let is_usage = partial.blocks().next().is_some_and(|(_, first)| first.kind == Kind::UsageFile as u8);
            if is_usage && partial.header.summary_blocks.get() == back {
                return Ok(Some(partial.header));
            }
        }
        Ok(None)
    }

    /// Checks that the superblock names the number and the checksum of the last partial segment.
    pub(super) fn check_last_partial(&mut self) -> Result<(), SfsError> {
        let Some(last) = self.last_partial()? else { return Ok(()) };
        let (number, next) = (last.sequence.get(), self.superblock.next_partial.get());
        // Behind a crash numbers are skipped before a checkpoint, never behind its last partial segment.
        damaged(
            "the superblock",
            ensure(last.identity == self.superblock.identity, || {
                "its volume has another number than the last partial segment before it".to_string()
            }),
        )?;
        let is_last = number.checked_add(1) == Some(next) && last.crc == self.superblock.chain;
        damaged(
            "the superblock",
            ensure(is_last, || {
                format!(
                    "it goes on with partial segment {next}, and the one before it is not {number}, which is the last"
                )
            }),
        )
    }

    /// Checks that an open segment ends where the superblock says.
    fn check_open_segment(&mut self, segment: u32, block: u32) -> Result<(), SfsError> {
        if segment >= self.files.segments.count() {
            return Ok(());
        }
        let is_used = matches!(self.files.segments.get(segment).state, State::Written | State::Emptied);
        // If a summary is damaged, the end is not known; a mount then does not go on there.
        let next = self.superblock.next_partial.get();
        let end = self.reader().end_before(segment, next)?;
        damaged(
            "the superblock",
            ensure(is_used && end <= block, || {
                format!("segment {segment} is said to be open at block {block}, and is written up to block {end}")
            }),
        )
    }

    /// True if a partial segment follows the checkpoint where the first one would be.
    pub(super) fn log_goes_on(&mut self) -> Result<bool, SfsError> {
        let open = self.superblock.open_ends().map(|(_, segment, block)| (segment, block));
        let next = self.superblock.next_segment.get().checked_sub(1).map(|segment| (segment, 0));
        let places: Vec<(u32, u32)> = open.chain(next).collect();
        for (segment, block) in places {
            if segment >= self.files.segments.count() {
                continue;
            }
            if let Some(partial) = self.reader().at(segment, block).valid()?
                && (partial.header.sequence, partial.header.chain)
                    == (self.superblock.next_partial, self.superblock.chain)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Of two superblocks of a checkpoint that say differently where the log goes on, the higher number counts if the
    /// log vouches for neither: behind the lower one may lie what is older than the checkpoint.
    pub(super) fn follow_the_higher(&mut self, chosen: &Found, found: &AllFound) {
        let end = |found: &Found| (found.superblock.next_partial.get(), found.superblock.chain);
        let address = |found: &Found| found.superblock.usage_file.top.address;
        let is_copy = |found: &&Found| address(found) == address(chosen);
        if let Some((next, chain)) = found.whole.iter().filter(is_copy).map(end).max_by_key(|(next, _)| *next)
            && next > self.superblock.next_partial.get()
        {
            (self.superblock.next_partial, self.superblock.chain) = (next.into(), chain);
        }
    }

    /// Corrects where the log goes on behind the loaded checkpoint: the log counts, and not the superblock.
    pub(super) fn correct_checkpoint(&mut self, is_clean: &mut bool) -> Result<Vec<Finding>, OpenSfsError> {
        let mut findings = Vec::new();
        let mut log_record = |why: &str, repair: &str| {
            findings.push(Finding::new(Structure::Superblock, "the superblock", why, "what the log says", repair));
        };
        if let Err(error) = self.check_last_partial() {
            if let Some(last) = self.last_partial()? {
                self.superblock.next_partial = (last.sequence.get().min(LARGEST) + 1).into();
                self.superblock.chain = last.crc;
                self.superblock.identity = last.identity;
            }
            log_record(&error.to_string(), "the log goes on behind that one");
        }
        let ends: Vec<_> = self.superblock.open_ends().collect();
        for (_, segment, block) in ends {
            if let Err(error) = self.check_open_segment(segment, block) {
                self.superblock.close_end(segment);
                log_record(&error.to_string(), "the log goes on in another one");
            }
        }
        // The first of the log may be damaged, too: what follows it is looked for, which a mount leaves out.
        if *is_clean
            && (self.log_goes_on()?
                || !log_tail::behind(self.superblock, self.reader(), &self.files.segments)?.partials.is_empty())
        {
            *is_clean = false;
            log_record("it says that the volume was unmounted, and the log goes on behind it", "the log is applied");
        }
        Ok(findings)
    }

    /// Corrects the counts of the superblock.
    pub(super) fn correct_counts(&mut self) -> Result<Option<Finding>, SfsError> {
        let Err(why) = self.counts_hold() else { return Ok(None) };
        recount::dat(self.task, &mut self.files.metadata.dat)?;
        recount::inodes(self.task, self.files)?;
        let expected = "as many as the metadata files hold";
        Ok(Some(Finding::new(Structure::Count, "the superblock's counts", why, expected, "they are counted anew")))
    }
}
