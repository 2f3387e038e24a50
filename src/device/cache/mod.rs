//! A write-back cache of blocks, in memory or on a device of its own.
//!
//! | file | role |
//! |---|---|
//! | `settings` | the options of `cache` |
//! | `order` | the order of eviction |
//!
//! A write is answered when the cache holds it. A dirty block is written back, with adjacent dirty blocks, when it is
//! evicted, when it is old enough, and by a flush: a successful flush has written back all dirty blocks, in address
//! order, and has flushed the device below. So flushed data survives a power cut, and the cache's own device may lose
//! everything. If a write to the device below fails, its blocks stay dirty.
//!
//! A dirty block keeps the label of its write. The content of a block that was only read is unknown.

mod order;
mod settings;

pub use settings::{CacheSettings, KIND, Policy};

use super::block::{blocks_in, check_range};
use super::{Abilities, Account, BlockDevice, DeviceError, Epochs, Extent, Lba, Memory, Placement};
use crate::label::{Cause, Content, Label, Tally};
use crate::time::Time;
use order::Order;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The maximum number of blocks in a write-back.
const WRITE_BACK_BLOCKS: u64 = 256;

/// A clean block that was read.
const FILL: Label = Label::first(Cause::CacheFill, Content::Data);

/// The storage of a cache.
pub struct Place(Holder);

enum Holder {
    Memory(Memory),
    Device(Box<dyn BlockDevice>),
}

impl Place {
    /// In memory, as blocks of `width` bytes.
    pub fn memory(width: usize) -> Place {
        Place(Holder::Memory(Memory::new(width)))
    }

    /// On a device, whose content is lost.
    pub fn device(device: Box<dyn BlockDevice>) -> Place {
        Place(Holder::Device(device))
    }
}

/// A cached block.
#[derive(Clone, Copy)]
struct Slot {
    lba: u64,
    label: Label,
    /// The time at which it became dirty.
    dirty_since: Option<Time>,
    /// The time from which its bytes are there: an earlier read waits until then.
    there_from: Time,
}

#[derive(Default)]
struct Events {
    read_hits: u64,
    write_hits: u64,
    written_back: u64,
    evicted: u64,
}

/// A write-back cache on a device. Its map and its blocks are one state behind one lock.
pub struct Cache {
    cached: Arc<dyn BlockDevice>,
    state: Mutex<State>,
}

struct State {
    cached: Arc<dyn BlockDevice>,
    place: Holder,
    width: usize,
    /// The maximum number of slots.
    capacity: u32,
    age_ns: u64,
    access_ns: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    order: Order,
    /// The slot of each block.
    map: BTreeMap<u64, u32>,
    /// The slots of dirty blocks.
    dirty: BTreeMap<u64, u32>,
    /// Blocks in the order in which they became dirty; some are clean again.
    ages: VecDeque<(Time, u64)>,
    /// The time at which all blocks that were written back are stored below.
    written_back: Time,
    received: Tally,
    sent: Tally,
    read_blocks: u64,
    events: Events,
}

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    ///
    /// If the cache's device and the cached device differ in their block width.
    pub fn new(settings: &CacheSettings, Place(place): Place, cached: Box<dyn BlockDevice>) -> Cache {
        let width = cached.block_width();
        let most = match &place {
            Holder::Memory(memory) => {
                assert_eq!(memory.width(), width, "blocks are of one width");
                u64::MAX
            }
            Holder::Device(device) => {
                assert_eq!(device.block_width(), width, "blocks are of one width");
                device.blocks()
            }
        };
        let capacity = settings.blocks.min(most).min(cached.blocks()).min(u64::from(u32::MAX - 1));
        assert!(capacity > 0, "a cache holds a block at least");
        let cached: Arc<dyn BlockDevice> = Arc::from(cached);
        let state = State {
            access_ns: if cached.is_timed() { settings.access_ns } else { 0 },
            cached: Arc::clone(&cached),
            place,
            width,
            capacity: capacity as u32,
            age_ns: settings.age_ns,
            slots: Vec::new(),
            free: Vec::new(),
            order: Order::new(settings.policy),
            map: BTreeMap::new(),
            dirty: BTreeMap::new(),
            ages: VecDeque::new(),
            written_back: Time::ZERO,
            received: Tally::default(),
            sent: Tally::default(),
            read_blocks: 0,
            events: Events::default(),
        };
        Cache { cached, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panicked in the cache")
    }
}

impl State {
    /// When the next copy of a request begins that was made at `at`, and whose copies so far are done: memory is copied block
    /// by block, and a device does as much at once as it can.
    fn begin_of_copy(&self, at: Time, copied: Time) -> Time {
        match self.place {
            Holder::Memory(_) => at.max(copied),
            Holder::Device(_) => at,
        }
    }

    fn load(&mut self, slot: u32, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let at = at.max(self.slots[slot as usize].there_from);
        match &mut self.place {
            Holder::Memory(memory) => {
                memory.read(Lba(slot.into()), buffer);
                Ok(at + self.access_ns)
            }
            Holder::Device(device) => device.read(Lba(slot.into()), buffer, at),
        }
    }

    fn store(&mut self, slot: u32, bytes: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        match &mut self.place {
            Holder::Memory(memory) => {
                memory.write(Lba(slot.into()), bytes);
                Ok(at + self.access_ns)
            }
            Holder::Device(device) => {
                let done = device.write(Lba(slot.into()), bytes, label, at)?;
                self.sent.add(label, 1);
                Ok(done)
            }
        }
    }

    /// Takes a slot for a block without one. Returns the time at which it can be written.
    fn take_slot(&mut self, lba: u64, at: Time) -> Result<(u32, Time), DeviceError> {
        let mut done = at;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.capacity as usize => {
                self.slots.push(Slot { lba, label: FILL, dirty_since: None, there_from: at });
                self.slots.len() as u32 - 1
            }
            None => {
                let victim = self.order.victim();
                let Slot { lba: old, dirty_since, .. } = self.slots[victim as usize];
                if dirty_since.is_some() {
                    done = self.write_back(self.dirty_run(old), at)?;
                }
                self.events.evicted += 1;
                self.forget(old);
                self.free.pop().expect("it was just given back")
            }
        };
        self.slots[slot as usize] = Slot { lba, label: FILL, dirty_since: None, there_from: at };
        self.map.insert(lba, slot);
        self.order.add(slot);
        Ok((slot, done))
    }

    /// Removes a block from the cache.
    fn forget(&mut self, lba: u64) {
        if let Some(slot) = self.map.remove(&lba) {
            self.dirty.remove(&lba);
            self.order.remove(slot);
            self.free.push(slot);
        }
    }

    /// The run of dirty blocks with one label around a dirty block, as long as one write-back.
    fn dirty_run(&self, lba: u64) -> Range<u64> {
        let label = self.slots[self.dirty[&lba] as usize].label;
        let is_alike = |lba: u64| self.dirty.get(&lba).is_some_and(|slot| self.slots[*slot as usize].label == label);
        let from = (lba.saturating_sub(WRITE_BACK_BLOCKS / 2)..lba).rev().take_while(|lba| is_alike(*lba)).last();
        let from = from.unwrap_or(lba);
        let end = (lba + 1..from + WRITE_BACK_BLOCKS).find(|lba| !is_alike(*lba)).unwrap_or(from + WRITE_BACK_BLOCKS);
        from..end
    }

    /// Writes a run of dirty blocks of one label to the device below, and marks them clean.
    fn write_back(&mut self, run: Range<u64>, at: Time) -> Result<Time, DeviceError> {
        let label = self.slots[self.dirty[&run.start] as usize].label;
        let count = run.end - run.start;
        let mut bytes = vec![0; count as usize * self.width];
        let mut loaded = at;
        for (lba, part) in run.clone().zip(bytes.chunks_exact_mut(self.width)) {
            let begin = self.begin_of_copy(at, loaded);
            loaded = loaded.max(self.load(self.dirty[&lba], part, begin)?);
        }
        let done = self.cached.write(Lba(run.start), &bytes, label, loaded)?;
        for lba in run {
            let slot = self.dirty.remove(&lba).expect("it was dirty");
            self.slots[slot as usize].dirty_since = None;
        }
        self.sent.add(label, count);
        self.events.written_back += count;
        self.written_back = self.written_back.max(done);
        Ok(done)
    }

    /// Writes back all dirty blocks, in address order. Returns when they, and all blocks that were written back before, are
    /// stored below.
    fn write_back_all(&mut self, at: Time) -> Result<Time, DeviceError> {
        let mut done = at.max(self.written_back);
        while let Some((&lba, _)) = self.dirty.first_key_value() {
            done = done.max(self.write_back(self.dirty_run(lba), at)?);
        }
        self.ages.clear();
        Ok(done)
    }

    /// Reads blocks that are not cached, and caches them. The read does not wait for the copy, nor fail with it: a
    /// block that cannot be cached is read again.
    fn fill(&mut self, first: u64, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let done = self.cached.read(Lba(first), buffer, at)?;
        for (lba, bytes) in (first..).zip(buffer.chunks_exact(self.width)) {
            let Ok((slot, room)) = self.take_slot(lba, done) else { break };
            if self.store(slot, bytes, FILL, room).is_err() {
                self.forget(lba);
                break;
            }
            self.slots[slot as usize].there_from = done;
        }
        Ok(done)
    }

    /// Writes a block of a request that was made at `at`, and whose blocks before are in the cache at `copied`.
    fn write_block(
        &mut self,
        (lba, bytes): (u64, &[u8]),
        label: Label,
        at: Time,
        copied: Time,
    ) -> Result<Time, DeviceError> {
        let known = self.map.get(&lba).copied();
        self.events.write_hits += u64::from(known.is_some());
        let (slot, room) = known.map_or_else(|| self.take_slot(lba, at), |slot| Ok((slot, at)))?;
        let begin = self.begin_of_copy(room, copied);
        let stored = self.store(slot, bytes, label, begin);
        if stored.is_err() && known.is_none() {
            self.forget(lba);
        }
        let done = stored?;
        self.order.touch(slot);
        let slot_of = &mut self.slots[slot as usize];
        slot_of.label = label;
        slot_of.there_from = slot_of.there_from.max(done);
        if slot_of.dirty_since.is_none() {
            slot_of.dirty_since = Some(at);
            self.dirty.insert(lba, slot);
            self.ages.push_back((at, lba));
        }
        Ok(done)
    }

    /// The dirty block that is oldest, and the time at which it became dirty.
    fn oldest(&mut self) -> Option<(Time, u64)> {
        while let Some(&(since, lba)) = self.ages.front() {
            let slot = self.dirty.get(&lba).map(|slot| &self.slots[*slot as usize]);
            if slot.is_some_and(|slot| slot.dirty_since == Some(since)) {
                return Some((since, lba));
            }
            self.ages.pop_front();
        }
        None
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.width);
        check_range(first, count, self.cached.blocks())?;
        let (mut done, mut copied, mut next) = (at, at, first.0);
        let end = first.0 + count;
        while next < end {
            let place = (next - first.0) as usize * self.width;
            if let Some(&slot) = self.map.get(&next) {
                let begin = self.begin_of_copy(at, copied);
                copied = self.load(slot, &mut buffer[place..place + self.width], begin)?;
                done = done.max(copied);
                self.order.touch(slot);
                self.events.read_hits += 1;
                next += 1;
            } else {
                let missing = self.map.range(next..end).next().map_or(end, |(lba, _)| *lba);
                let length = (missing - next) as usize * self.width;
                done = done.max(self.fill(next, &mut buffer[place..place + length], at)?);
                next = missing;
            }
        }
        self.read_blocks += count;
        Ok(done)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.width);
        check_range(first, count, self.cached.blocks())?;
        let mut done = at;
        for (lba, bytes) in (first.0..).zip(buffer.chunks_exact(self.width)) {
            done = done.max(self.write_block((lba, bytes), label, at, done)?);
            self.received.add(label, 1);
        }
        Ok(done)
    }

    fn discard(&mut self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.cached.blocks())?;
        let done = self.cached.discard(first, blocks, at)?;
        let gone: Vec<u64> = self.map.range(first.0..first.0 + blocks).map(|(lba, _)| *lba).collect();
        gone.into_iter().for_each(|lba| self.forget(lba));
        Ok(done)
    }

    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.cached.blocks())?;
        let end = first.0 + blocks;
        if self.dirty.contains_key(&first.0) {
            let run = (first.0..end).take_while(|lba| self.dirty.contains_key(lba)).count() as u64;
            return Ok(Extent { blocks: run, is_stored: true });
        }
        let clean = self.dirty.range(first.0..end).next().map_or(end, |(lba, _)| *lba) - first.0;
        self.cached.extent(first, clean)
    }

    fn work(&mut self, now: Time) -> Result<Option<Time>, DeviceError> {
        let below = self.cached.work(now)?;
        let due = |since: Time, age: u64| since + age;
        if let Some((since, lba)) = self.oldest()
            && due(since, self.age_ns) <= now
        {
            self.write_back(self.dirty_run(lba), now)?;
        }
        let own = self.oldest().map(|(since, _)| due(since, self.age_ns));
        Ok(below.into_iter().chain(own).min())
    }

    fn account(&self) -> Account {
        let own = match &self.place {
            Holder::Memory(_) => None,
            Holder::Device(device) => Some(device.account()),
        };
        Account {
            station: KIND.name,
            received: self.received.clone(),
            sent: self.sent.clone(),
            read_blocks: self.read_blocks,
            events: vec![
                ("cache_read_hits", self.events.read_hits),
                ("cache_write_hits", self.events.write_hits),
                ("cache_evicted_blocks", self.events.evicted),
                ("cache_written_back_blocks", self.events.written_back),
            ],
            below: own.into_iter().chain([self.cached.account()]).collect(),
            ..Account::default()
        }
    }
}

impl BlockDevice for Cache {
    fn blocks(&self) -> u64 {
        self.cached.blocks()
    }

    fn block_width(&self) -> usize {
        self.cached.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.state().read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.state().write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.state().discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        let done = self.state().write_back_all(at)?;
        self.cached.flush(done)
    }

    fn account(&self) -> Account {
        self.state().account()
    }
}

impl Abilities for Cache {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&*self.cached)
    }

    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        self.state().extent(first, blocks)
    }

    fn work(&self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.state().work(now)
    }

    /// What is written back later has no hint.
    fn placement(&self) -> Option<&dyn Placement> {
        None
    }

    /// Blocks are written back in the order of their addresses and their last use.
    fn epochs(&self) -> Option<&dyn Epochs> {
        None
    }
}
