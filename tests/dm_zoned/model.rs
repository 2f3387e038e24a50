//! Random operations on a volume, compared with an array of the newest stamps, and of those that a power cut may
//! restore.

use super::{Machine, block_of, read, try_read};
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::label::{Content, Label, Tally};
use flashpath::random::Random;
use flashpath::time::Time;
use flashpath::translation::zoned::DmZoned;

/// The possible contents of each block.
pub struct Model {
    /// At the last answered flush.
    flushed: Vec<u32>,
    /// Since then, in order; a read returns the last.
    since: Vec<Vec<u32>>,
    next_stamp: u32,
    now: Time,
}

/// The blocks of the journal.
pub const JOURNAL: std::ops::Range<u64> = 40..90;

fn content_of(block: u64, has_journal: bool) -> Content {
    if has_journal && JOURNAL.contains(&block) { Content::Journal } else { Content::Data }
}

impl Model {
    pub fn new(blocks: u64) -> Model {
        Model {
            flushed: vec![0; blocks as usize],
            since: vec![Vec::new(); blocks as usize],
            next_stamp: 1,
            now: Time::ZERO,
        }
    }

    fn newest(&self, block: u64) -> u32 {
        self.since[block as usize].last().copied().unwrap_or(self.flushed[block as usize])
    }

    /// One random operation. The model knows the possible changes even if it fails.
    pub fn step(
        &mut self,
        volume: &mut DmZoned,
        random: &mut Random,
        zone_blocks: u64,
        has_journal: bool,
    ) -> Result<(), DeviceError> {
        let blocks = self.flushed.len() as u64;
        // Most go to a few chunks, so that others get old.
        let first = match random.below(4) {
            0 => random.below(blocks),
            1 if has_journal => JOURNAL.start + random.below(JOURNAL.end - JOURNAL.start),
            _ => random.below(blocks / 4),
        };
        let count = (1 + random.below(6)).min(blocks - first);
        self.now = self.now + random.below(2_000_000);
        while volume.work(self.now)?.is_some_and(|next| next <= self.now) {}
        match random.below(20) {
            0 => self.flush(volume)?,
            1 => {
                // Idle for the time of a reclaim or two.
                self.now = self.now + 11_000_000_000;
                for _ in 0..random.below(12) {
                    volume.work(self.now)?;
                }
            }
            2 | 3 => {
                let count = count * random.below(6).max(1);
                let count = count.min(blocks - first);
                (first..first + count).for_each(|block| self.since[block as usize].push(0));
                volume.discard(Lba(first), count, self.now)?;
            }
            4 => {
                // A whole chunk in order, like a large file.
                let first = first / zone_blocks * zone_blocks;
                for block in first..(first + zone_blocks).min(blocks) {
                    self.write(volume, block, 1, has_journal)?;
                }
            }
            5..8 => {
                for block in first..first + count {
                    assert_eq!(try_read(volume, block)?, self.newest(block), "block {block}");
                }
            }
            _ => {
                let same = (first..first + count)
                    .take_while(|block| content_of(*block, has_journal) == content_of(first, has_journal));
                self.write(volume, first, same.count() as u64, has_journal)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, volume: &mut DmZoned, first: u64, count: u64, has_journal: bool) -> Result<(), DeviceError> {
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        (first..first + count).for_each(|block| self.since[block as usize].push(stamp));
        let bytes = block_of(stamp).repeat(count as usize);
        volume.write(Lba(first), &bytes, Label::host(content_of(first, has_journal)), self.now)?;
        Ok(())
    }

    pub fn flush(&mut self, volume: &mut DmZoned) -> Result<(), DeviceError> {
        volume.flush(self.now)?;
        self.settle();
        Ok(())
    }

    /// Opens the volume again; its time begins anew.
    pub fn begin_anew(&mut self) {
        self.now = Time::ZERO;
    }

    /// The time of the next request.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The number of writes of each block since the last flush.
    pub fn mark(&self) -> Vec<usize> {
        self.since.iter().map(Vec::len).collect()
    }

    /// Everything before this mark is durable. Later operations failed: they may be durable or not.
    pub fn settle_before(&mut self, mark: &[usize]) {
        for (block, mark) in mark.iter().enumerate() {
            if let Some(flushed) = self.since[block].drain(..*mark).next_back() {
                self.flushed[block] = flushed;
            }
        }
    }

    /// Everything is durable.
    pub fn settle(&mut self) {
        for block in 0..self.flushed.len() {
            self.flushed[block] = self.newest(block as u64);
            self.since[block].clear();
        }
    }

    /// Checks that every block is the newest.
    pub fn check(&self, volume: &mut DmZoned) {
        for block in 0..self.flushed.len() as u64 {
            assert_eq!(read(volume, block), self.newest(block), "block {block}");
        }
    }

    /// After a failed operation: checks that every block is the newest or, where that operation wrote, the previous
    /// one, and keeps what it found.
    pub fn check_after_failure(&mut self, volume: &mut DmZoned) {
        for block in 0..self.flushed.len() {
            let found = read(volume, block as u64);
            let (flushed, since) = (self.flushed[block], &mut self.since[block]);
            let before = since.len().checked_sub(2).map_or(flushed, |before| since[before]);
            let newest = since.last().copied().unwrap_or(flushed);
            assert!(found == newest || found == before, "block {block} holds {found}, not {newest} or {before}");
            if found != newest {
                since.push(found);
            }
        }
    }

    /// After a power cut: checks that every block is the flushed one, or one written since, and keeps what it found.
    pub fn check_after_power_cut(&mut self, volume: &mut DmZoned) {
        for block in 0..self.flushed.len() {
            let found = read(volume, block as u64);
            let (flushed, since) = (self.flushed[block], &mut self.since[block]);
            assert!(
                found == flushed || since.contains(&found),
                "block {block} holds {found}: {flushed} was flushed, and {since:?} written since"
            );
            since.clear();
            self.flushed[block] = found;
        }
        self.now = Time::ZERO;
    }
}

/// Checks that the volume's sent blocks since `opened` are those that its devices received, for each label.
pub fn check_sums(volume: &DmZoned, opened: &Account) {
    let account = volume.account().since(opened);
    let below: Tally = account.below.iter().flat_map(|device| device.received.entries()).collect();
    assert_eq!(account.sent.entries().collect::<Vec<_>>(), below.entries().collect::<Vec<_>>());
}

#[test]
fn a_volume_returns_what_was_written_whatever_is_reclaimed() {
    for seed in 0..24 {
        let mut random = Random::new(seed, "dm-zoned model");
        let has_journal = seed % 2 == 1;
        let zone_blocks = [16, 32, 64][seed as usize % 3];
        let text = if has_journal { "dm-zoned:reserved=3,journal-zone,idle=5s" } else { "dm-zoned:reserved=2,idle=5s" };
        let machine = Machine::new(zone_blocks, 12, 24);
        machine.mkfs(text);
        let mut volume = machine.open(text);
        let mut model = Model::new(volume.blocks());
        for life in 0..6 {
            let opened = volume.account();
            for _ in 0..400 {
                model.step(&mut volume, &mut random, zone_blocks, has_journal).unwrap();
            }
            model.check(&mut volume);
            check_sums(&volume, &opened);
            // Closed and opened again, at times without the option.
            volume.close(Time::ZERO).unwrap();
            model.settle();
            drop(volume);
            let text = if life == 3 { "dm-zoned:idle=5s" } else { text };
            volume = machine.open(text);
            assert!(super::warnings(&volume).is_empty(), "{:?}", super::warnings(&volume));
            model.check(&mut volume);
            model = Model { now: Time::ZERO, ..model };
        }
        let account = volume.account();
        assert!(account.below[0].received.total() > 0);
    }
}

#[test]
fn a_block_is_never_valid_in_both_zones_of_its_chunk() {
    // A write at the write pointer replaces the block in the buffer: only one of them is valid.
    let machine = Machine::new(16, 8, 12);
    machine.mkfs("dm-zoned:reserved=2");
    let mut volume = machine.open("dm-zoned:idle=1s");
    let stamps = |volume: &mut DmZoned, first, stamp: u32, count| {
        super::write(volume, first, &vec![stamp; count], Content::Data, Time::ZERO)
    };
    stamps(&mut volume, 0, 1, 4);
    let mut now = Time(2_000_000_000);
    while let Some(next) = volume.work(now).unwrap().filter(|next| *next <= Time(3_000_000_000)) {
        now = now.max(next);
    }
    // The chunk is in a sequential zone with 4 written blocks: 6 is buffered, and then 4 to 7 come in order.
    stamps(&mut volume, 6, 2, 1);
    stamps(&mut volume, 4, 3, 4);
    assert_eq!((read(&mut volume, 6), read(&mut volume, 4)), (3, 3));
    volume.flush(Time::ZERO).unwrap();
    drop(volume);
    let mut volume = machine.open("dm-zoned");
    assert_eq!((0..8).map(|block| read(&mut volume, block)).collect::<Vec<_>>(), [1, 1, 1, 1, 3, 3, 3, 3]);
}
