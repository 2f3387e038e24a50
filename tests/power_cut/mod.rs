//! Devices whose power can be cut at any operation, and their state after it.
//!
//! Fault model. Data written before a completed flush is stored. Of later operations:
//! - a conventional device has kept any of the writes and discards, block by block, in any combination; a block of the
//!   metadata area may be torn, part old and part new, at any 512 bytes; discarded blocks read as zeros;
//! - one that keeps order has kept all writes of some epochs, any of those of the next one, and none behind it; one that lies
//!   takes barriers, and keeps no order;
//! - memory has kept any of the lines that were stored and not fenced;
//! - a zone has kept its operations up to some point, and a first part of the write at that point.
//!
//! Some cuts keep none of the later operations, some all, some all but one block or the operations of one zone: these
//! reveal missing barriers first.
//!
//! The operation during which the power fails counts as a later one. Nothing else is lost or corrupted.

#![allow(dead_code, reason = "each test uses its part")]

use flashpath::device::nvm::lines::Lines;
use flashpath::device::nvm::{Nvm, Survival};
use flashpath::device::{
    Abilities, Account, BlockDevice, DeviceError, Epochs, Frame, KeptBlocks, KeptVolume, Lba, Monitor, OwnMonitor,
    Zone, ZoneError, ZoneKind, ZoneState, ZonedDevice, ZonedShape,
};
use flashpath::label::{Label, Tally};
use flashpath::random::Random;
use flashpath::time::Time;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

const BLOCK: usize = 4096;
const SECTOR: usize = 512;

type Block = Arc<[u8]>;

/// The power of all devices of a machine.
#[derive(Clone)]
pub struct Power(Arc<Mutex<Supply>>);

struct Supply {
    operations: u64,
    /// The operation during which it fails.
    cut_at: Option<u64>,
    is_off: bool,
    /// The time of a read or write, in nanoseconds.
    latency_ns: u64,
}

impl Power {
    pub fn new() -> Power {
        Power(Arc::new(Mutex::new(Supply { operations: 0, cut_at: None, is_off: false, latency_ns: 0 })))
    }

    /// Fails after `operations` more.
    pub fn cut_after(&self, operations: u64) {
        let mut supply = self.0.lock().unwrap();
        supply.cut_at = Some(supply.operations + operations);
    }

    /// Sets the time of every read and write.
    pub fn set_latency(&self, latency_ns: u64) {
        self.0.lock().unwrap().latency_ns = latency_ns;
    }

    /// The completion time of a read or write that begins at `at`.
    fn done(&self, at: Time) -> Time {
        at + self.0.lock().unwrap().latency_ns
    }

    /// The number of operations of all devices so far.
    pub fn operations(&self) -> u64 {
        self.0.lock().unwrap().operations
    }

    pub fn is_off(&self) -> bool {
        self.0.lock().unwrap().is_off
    }

    /// Restores the power for good.
    pub fn restore(&self) {
        let mut supply = self.0.lock().unwrap();
        (supply.cut_at, supply.is_off) = (None, false);
    }

    /// Counts an operation; true if the power fails during it.
    fn operation(&self) -> Result<bool, DeviceError> {
        let mut supply = self.0.lock().unwrap();
        if supply.is_off {
            return Err(no_power());
        }
        supply.operations += 1;
        supply.is_off = supply.cut_at.is_some_and(|at| supply.operations > at);
        Ok(supply.is_off)
    }
}

/// The surviving part of the unflushed operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Luck {
    Nothing,
    Everything,
    /// All but one.
    AllBut(usize),
    /// Each at random.
    Each,
}

impl Luck {
    /// For this many operations.
    fn of(random: &mut Random, things: usize) -> Luck {
        match random.below(8) {
            0 => Luck::Nothing,
            1 => Luck::Everything,
            2..=4 if things > 0 => Luck::AllBut(random.below(things as u64) as usize),
            _ => Luck::Each,
        }
    }
}

fn no_power() -> DeviceError {
    DeviceError::Station { station: "test", reason: "no power".to_string() }
}

/// A monitor that goes on when the process of its volume dies, which it does when the power of the devices fails. Clones
/// share what it keeps.
#[derive(Clone)]
pub struct Keeper(OwnMonitor, Power);

impl Keeper {
    pub fn new(power: &Power) -> Keeper {
        Keeper(OwnMonitor::new(), power.clone())
    }

    /// One that keeps the same.
    pub fn copy(&self, power: &Power) -> Keeper {
        let copy = Keeper::new(power);
        if let Some(kept) = self.0.kept_of([0; 16]).unwrap() {
            let blocks: Vec<(u64, Frame)> = kept.blocks.into_iter().collect();
            let (uuid, name) = (kept.volume, kept.name);
            let volume = KeptVolume { uuid, name, blocks: u64::MAX, width: 4096, most_in_memory: u64::MAX };
            copy.0.begin(volume, kept.last).unwrap();
            copy.0.commit(Time::ZERO, kept.last, &blocks, &[]).unwrap();
        }
        copy
    }

    /// If the process dies during a call, the call has come to the monitor, or has not.
    fn call<T>(&self, call: impl FnOnce(&OwnMonitor) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        let dies = self.1.operation()?;
        if dies && self.1.operations().is_multiple_of(2) {
            return Err(no_power());
        }
        let done = call(&self.0);
        if dies { Err(no_power()) } else { done }
    }
}

impl Monitor for Keeper {
    fn kept_of(&self, volume: [u8; 16]) -> Result<Option<KeptBlocks>, DeviceError> {
        self.0.kept_of(volume)
    }

    fn begin(&self, volume: KeptVolume, first: u32) -> Result<(), DeviceError> {
        self.call(|monitor| monitor.begin(volume, first))
    }

    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError> {
        self.call(|monitor| monitor.commit(at, number, blocks, freed))
    }

    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError> {
        self.call(|monitor| monitor.let_go(at, next))
    }

    fn end(&self) -> Result<(), DeviceError> {
        self.call(OwnMonitor::end)
    }
}

fn check_range(first: Lba, count: usize, blocks: u64) -> Result<(), DeviceError> {
    let count = count as u64;
    match first.0.checked_add(count) {
        Some(end) if end <= blocks => Ok(()),
        _ => Err(DeviceError::BeyondEnd { first, count, blocks }),
    }
}

/// What a device makes of barriers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It has none.
    Refused,
    Kept,
    /// It takes them, and keeps no order.
    Ignored,
}

/// A conventional device. Clones share its content.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<DiskState>>, Power);

#[derive(Clone)]
struct DiskState {
    blocks: u64,
    /// The blocks below this one may be torn, but for one.
    torn_below: u64,
    never_torn: Option<u64>,
    live: BTreeMap<u64, Block>,
    durable: BTreeMap<u64, Block>,
    /// Since the last flush, in order, each with its epoch.
    pending: Vec<(u64, Block, u64)>,
    order: Order,
    epoch: u64,
    received: Tally,
    read_blocks: u64,
}

impl Disk {
    pub fn new(power: &Power, blocks: u64, torn_below: u64) -> Disk {
        let state = DiskState {
            blocks,
            torn_below,
            never_torn: None,
            live: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            order: Order::Refused,
            epoch: 0,
            received: Tally::default(),
            read_blocks: 0,
        };
        Disk(Arc::new(Mutex::new(state)), power.clone())
    }

    /// This block is kept whole, old or new.
    pub fn never_tears(&self, block: u64) {
        self.0.lock().unwrap().never_torn = Some(block);
    }

    /// Takes barriers from now on.
    pub fn takes_barriers(&self, order: Order) {
        self.0.lock().unwrap().order = order;
    }

    /// Applies a random part of the unflushed operations.
    pub fn lose_power(&self, random: &mut Random) {
        let mut state = self.0.lock().unwrap();
        let mut pending = std::mem::take(&mut state.pending);
        if state.order == Order::Kept {
            let mut epochs: Vec<u64> = pending.iter().map(|(.., epoch)| *epoch).collect();
            epochs.dedup();
            // That in which the device was.
            let within = epochs.get(random.below(epochs.len() as u64 + 1) as usize).copied().unwrap_or(u64::MAX);
            for (block, new, _) in pending.iter().filter(|(.., epoch)| *epoch < within) {
                state.durable.insert(*block, new.clone());
            }
            pending.retain(|(.., epoch)| *epoch == within);
        }
        let luck = Luck::of(random, pending.len());
        for (at, (block, new, _)) in pending.into_iter().enumerate() {
            let may_tear = block < state.torn_below && state.never_torn != Some(block);
            let fate = match luck {
                Luck::Nothing => 0,
                Luck::Everything => 1,
                Luck::AllBut(lost) if at != lost => 1,
                Luck::AllBut(_) if !may_tear => 0,
                Luck::AllBut(_) => 2 * random.below(2),
                Luck::Each => random.below(if may_tear { 3 } else { 2 }),
            };
            let left = match fate {
                0 => continue,
                1 => new,
                _ => {
                    let mut left = state.durable.get(&block).map_or(vec![0; BLOCK], |bytes| bytes.to_vec());
                    for sector in 0..BLOCK / SECTOR {
                        if random.below(2) == 0 {
                            let bytes = sector * SECTOR..(sector + 1) * SECTOR;
                            left[bytes.clone()].copy_from_slice(&new[bytes]);
                        }
                    }
                    left.into()
                }
            };
            state.durable.insert(block, left);
        }
        state.live = state.durable.clone();
    }

    /// A copy of the device.
    pub fn copy(&self, power: &Power) -> Disk {
        Disk(Arc::new(Mutex::new(self.0.lock().unwrap().clone())), power.clone())
    }

    /// The bytes of a block, as they are read.
    pub fn bytes(&self, block: u64) -> Vec<u8> {
        self.0.lock().unwrap().live.get(&block).map_or(vec![0; BLOCK], |bytes| bytes.to_vec())
    }

    /// Stores bytes durably.
    pub fn put(&self, block: u64, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap();
        state.live.insert(block, bytes.into());
        state.durable.insert(block, bytes.into());
    }
}

impl BlockDevice for Disk {
    fn blocks(&self) -> u64 {
        self.0.lock().unwrap().blocks
    }

    fn block_width(&self) -> usize {
        BLOCK
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        if self.1.is_off() {
            return Err(no_power());
        }
        let mut state = self.0.lock().unwrap();
        check_range(first, buffer.len() / BLOCK, state.blocks)?;
        for (block, bytes) in (first.0..).zip(buffer.chunks_exact_mut(BLOCK)) {
            match state.live.get(&block) {
                Some(live) => bytes.copy_from_slice(live),
                None => bytes.fill(0),
            }
        }
        state.read_blocks += (buffer.len() / BLOCK) as u64;
        Ok(self.1.done(at))
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        check_range(first, buffer.len() / BLOCK, self.blocks())?;
        let fails = self.1.operation()?;
        let mut state = self.0.lock().unwrap();
        for (block, bytes) in (first.0..).zip(buffer.chunks_exact(BLOCK)) {
            let epoch = state.epoch;
            state.pending.push((block, bytes.into(), epoch));
            state.live.insert(block, bytes.into());
            state.received.add(label, 1);
        }
        if fails { Err(no_power()) } else { Ok(self.1.done(at)) }
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        if self.1.is_off() {
            return Err(no_power());
        }
        let mut state = self.0.lock().unwrap();
        check_range(first, blocks as usize, state.blocks)?;
        let zeros: Block = Arc::from([0; BLOCK]);
        for block in first.0..first.0 + blocks {
            let epoch = state.epoch;
            state.pending.push((block, zeros.clone(), epoch));
            state.live.remove(&block);
        }
        Ok(at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        if self.1.operation()? {
            return Err(no_power());
        }
        let mut state = self.0.lock().unwrap();
        for (block, bytes, _) in std::mem::take(&mut state.pending) {
            state.durable.insert(block, bytes);
        }
        Ok(at)
    }

    fn account(&self) -> Account {
        let state = self.0.lock().unwrap();
        let received = state.received.clone();
        Account {
            station: "conv",
            sent: received.clone(),
            received,
            read_blocks: state.read_blocks,
            ..Account::default()
        }
    }
}

impl Abilities for Disk {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }

    fn epochs(&self) -> Option<&dyn Epochs> {
        let takes = self.0.lock().unwrap().order != Order::Refused;
        takes.then_some(self as &dyn Epochs)
    }
}

impl Epochs for Disk {
    fn barrier(&self, at: Time) -> Result<Time, DeviceError> {
        if self.1.is_off() {
            return Err(no_power());
        }
        self.0.lock().unwrap().epoch += 1;
        Ok(at)
    }
}

/// Memory beside the devices. Clones share its content. Lines that were not fenced survive in any combination.
#[derive(Clone)]
pub struct Memory(Arc<Mutex<Lines>>, Power);

impl Memory {
    pub fn new(power: &Power, bytes: u64) -> Memory {
        Memory(Arc::new(Mutex::new(Lines::new(bytes))), power.clone())
    }

    fn lines(&self) -> Lines {
        self.0.lock().unwrap().clone()
    }

    /// Counts an operation. Without power, stores are lost.
    fn operation(&self) -> Lines {
        let lines = self.lines();
        if !matches!(self.1.operation(), Ok(false)) && !lines.is_cut() {
            lines.cut_before(lines.operations());
        }
        lines
    }

    /// Keeps a random part of the unfenced lines.
    pub fn lose_power(&self, random: &mut Random) {
        let mut lines = self.0.lock().unwrap();
        let left = lines.sample(random);
        *lines = Lines::of(left);
    }

    /// The content, as it is read.
    pub fn contents(&self) -> Vec<u8> {
        let lines = self.lines();
        let mut contents = vec![0; lines.bytes() as usize];
        lines.read(0, &mut contents);
        contents
    }

    /// Stores other contents durably.
    pub fn replace(&self, contents: Vec<u8>) {
        *self.0.lock().unwrap() = Lines::of(contents);
    }

    /// A copy, with other contents.
    pub fn of(power: &Power, contents: Vec<u8>) -> Memory {
        Memory(Arc::new(Mutex::new(Lines::of(contents))), power.clone())
    }
}

impl Nvm for Memory {
    fn bytes(&self) -> u64 {
        self.lines().bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.lines().read(at, into);
    }

    fn store(&self, at: u64, from: &[u8]) {
        self.operation().store(at, from);
    }

    fn fence(&self) {
        self.operation().fence();
    }

    fn stored_by(&self, at: Time, _: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        at
    }

    fn read_by(&self, at: Time, _: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        at
    }

    fn survival(&self) -> Survival {
        Survival::PowerLoss
    }

    fn is_timed(&self) -> bool {
        false
    }
}

/// A zoned device. Clones share its content.
#[derive(Clone)]
pub struct Zones(Arc<Mutex<ZonesState>>, Power);

#[derive(Clone, Default)]
struct ZoneMemory {
    written: Vec<Block>,
}

#[derive(Clone)]
enum ZoneOperation {
    Write(Vec<Block>),
    Reset,
}

#[derive(Clone)]
struct ZonesState {
    zone_blocks: u64,
    conventional: u32,
    states: Vec<ZoneState>,
    live: Vec<ZoneMemory>,
    durable: Vec<ZoneMemory>,
    pending: Vec<Vec<ZoneOperation>>,
    /// The content of the conventional zones; they lose nothing.
    random: BTreeMap<u64, Block>,
    received: Tally,
    read_blocks: u64,
}

impl ZoneMemory {
    fn apply(&mut self, operation: &ZoneOperation) {
        match operation {
            ZoneOperation::Write(blocks) => self.written.extend(blocks.iter().cloned()),
            ZoneOperation::Reset => self.written.clear(),
        }
    }
}

impl Zones {
    pub fn new(power: &Power, zones: u32, zone_blocks: u64, conventional: u32) -> Zones {
        let count = zones as usize;
        let state = ZonesState {
            zone_blocks,
            conventional,
            states: vec![ZoneState::Empty; count],
            live: vec![ZoneMemory::default(); count],
            durable: vec![ZoneMemory::default(); count],
            pending: (0..count).map(|_| Vec::new()).collect(),
            random: BTreeMap::new(),
            received: Tally::default(),
            read_blocks: 0,
        };
        Zones(Arc::new(Mutex::new(state)), power.clone())
    }

    /// Applies a random part of the unflushed operations.
    pub fn lose_power(&self, random: &mut Random) {
        let mut state = self.0.lock().unwrap();
        let state = &mut *state;
        let pending = state.pending.iter().filter(|operations| !operations.is_empty()).count();
        let luck = Luck::of(random, pending);
        let changed = state.pending.iter_mut().zip(&mut state.durable).filter(|(operations, _)| !operations.is_empty());
        for (at, (operations, memory)) in changed.enumerate() {
            let kept = match luck {
                Luck::Nothing => 0,
                Luck::Everything => operations.len(),
                Luck::AllBut(lost) if at != lost => operations.len(),
                _ => random.below(operations.len() as u64 + 1) as usize,
            };
            for operation in &operations[..kept] {
                memory.apply(operation);
            }
            if let Some(ZoneOperation::Write(blocks)) = operations.get(kept).filter(|_| luck != Luck::Nothing) {
                let part = random.below(blocks.len() as u64 + 1) as usize;
                memory.written.extend(blocks[..part].iter().cloned());
            }
            operations.clear();
        }
        state.live = state.durable.clone();
    }

    /// A copy of the device.
    pub fn copy(&self, power: &Power) -> Zones {
        Zones(Arc::new(Mutex::new(self.0.lock().unwrap().clone())), power.clone())
    }

    /// The blocks of a zone, as they are read.
    pub fn blocks_of(&self, zone: u32) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().live[zone as usize].written.iter().map(|block| block.to_vec()).collect()
    }

    /// Sets the state of a zone, such as read-only.
    pub fn set_state(&self, zone: u32, zone_state: ZoneState) {
        self.0.lock().unwrap().states[zone as usize] = zone_state;
    }

    /// Stores the content of a zone durably.
    pub fn put(&self, zone: u32, blocks: Vec<Vec<u8>>) {
        let mut state = self.0.lock().unwrap();
        let written: Vec<Block> = blocks.into_iter().map(Block::from).collect();
        state.live[zone as usize].written = written.clone();
        state.durable[zone as usize].written = written;
    }

    fn place(state: &ZonesState, first: Lba, count: usize) -> Result<(u32, u64), DeviceError> {
        let (zone, from) = ((first.0 / state.zone_blocks) as u32, first.0 % state.zone_blocks);
        let end = from + count as u64;
        if end > state.zone_blocks {
            return Err(ZoneError::BoundaryError { zone, from, end, capacity: state.zone_blocks }.into());
        }
        match state.states[zone as usize] {
            ZoneState::Offline => Err(ZoneError::IsOffline { zone }.into()),
            _ => Ok((zone, from)),
        }
    }

    fn change(&mut self, zone: u32, operation: ZoneOperation, at: Time) -> Result<Time, DeviceError> {
        let fails = self.1.operation()?;
        let mut state = self.0.lock().unwrap();
        match state.states[zone as usize] {
            ZoneState::ReadOnly => return Err(ZoneError::IsReadOnly { zone }.into()),
            ZoneState::Offline => return Err(ZoneError::IsOffline { zone }.into()),
            _ => {}
        }
        state.live[zone as usize].apply(&operation);
        state.pending[zone as usize].push(operation);
        if fails { Err(no_power()) } else { Ok(self.1.done(at)) }
    }
}

impl ZonedDevice for Zones {
    fn shape(&self) -> ZonedShape {
        let state = self.0.lock().unwrap();
        ZonedShape {
            zones: state.states.len() as u32,
            zone_blocks: state.zone_blocks,
            max_open: 0,
            max_active: 0,
            areas: None,
        }
    }

    fn block_width(&self) -> usize {
        BLOCK
    }

    fn zone(&self, zone: u32) -> Zone {
        let state = self.0.lock().unwrap();
        let written = state.live[zone as usize].written.len() as u64;
        let kind = if zone < state.conventional { ZoneKind::Conventional } else { ZoneKind::Sequential };
        let zone_state = match state.states[zone as usize] {
            ZoneState::Empty if written == state.zone_blocks => ZoneState::Full,
            ZoneState::Empty if written > 0 => ZoneState::Closed,
            other => other,
        };
        Zone { kind, state: zone_state, write_pointer: written, capacity: state.zone_blocks, has_area: false }
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        if self.1.is_off() {
            return Err(no_power());
        }
        let mut state = self.0.lock().unwrap();
        let (zone, from) = Self::place(&state, first, buffer.len() / BLOCK)?;
        for (block, bytes) in (from..).zip(buffer.chunks_exact_mut(BLOCK)) {
            let stored = match zone < state.conventional {
                true => state.random.get(&(u64::from(zone) * state.zone_blocks + block)),
                false => state.live[zone as usize].written.get(block as usize),
            };
            match stored {
                Some(live) => bytes.copy_from_slice(live),
                None => bytes.fill(0),
            }
        }
        state.read_blocks += (buffer.len() / BLOCK) as u64;
        Ok(self.1.done(at))
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let (zone, from) = Self::place(&self.0.lock().unwrap(), first, buffer.len() / BLOCK)?;
        let count = (buffer.len() / BLOCK) as u64;
        if zone < self.0.lock().unwrap().conventional {
            let mut state = self.0.lock().unwrap();
            for (block, bytes) in (first.0..).zip(buffer.chunks_exact(BLOCK)) {
                state.random.insert(block, bytes.into());
            }
            state.received.add(label, count);
            return Ok(self.1.done(at));
        }
        let write_pointer = self.zone(zone).write_pointer;
        if from != write_pointer {
            return Err(ZoneError::InvalidWrite { zone, from, write_pointer }.into());
        }
        let blocks = buffer.chunks_exact(BLOCK).map(Block::from).collect();
        let done = self.change(zone, ZoneOperation::Write(blocks), at)?;
        self.0.lock().unwrap().received.add(label, count);
        Ok(done)
    }

    fn open(&mut self, _zone: u32, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn close(&mut self, _zone: u32, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn finish(&mut self, _zone: u32, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn reset(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.change(zone, ZoneOperation::Reset, at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        if self.1.operation()? {
            return Err(no_power());
        }
        let mut state = self.0.lock().unwrap();
        let state = &mut *state;
        for (operations, memory) in state.pending.iter_mut().zip(&mut state.durable) {
            operations.drain(..).for_each(|operation| memory.apply(&operation));
        }
        Ok(at)
    }

    fn account(&self) -> Account {
        let state = self.0.lock().unwrap();
        let received = state.received.clone();
        Account {
            station: "zns",
            sent: received.clone(),
            received,
            read_blocks: state.read_blocks,
            ..Account::default()
        }
    }
}
