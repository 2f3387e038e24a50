//! Keeps a file system's journal in memory instead of on the device below.
//!
//! | file | role |
//! |---|---|
//! | `settings` | the options of `hold-journal` |
//! | `blocks` | the held blocks |
//! | `journals` | the journal's superblock, and the marker in its place on the device |
//! | `selection` | the journals to hold among those that are found |
//! | `marking` | the markers before the first block is held |
//! | `spill` | the file of the held blocks between two servers |
//! | `release` | the end of a hold: to the spill file, or home to the device |
//!
//! **Assumption.** Held blocks count as stable: a flush of journal writes does not reach the device. So they survive the
//! death of the file system above (a guest), and not the loss of this process or of power. A lost journal is detected:
//! before the first block is held, a marker replaces the journal's superblock on the device, and it stays until the
//! journal is home again.
//!
//! **Order of steps.** Hold: the spill file is marked as empty, the marker is written and flushed, blocks are held. Home:
//! all other held blocks are written, then flushed, then the superblock replaces the marker, then flushed.

mod blocks;
mod journals;
mod marking;
mod release;
mod selection;
mod settings;
mod spill;

pub use settings::{HoldJournalSettings, KIND};

use super::block::{blocks_in, check_range};
use super::station::StationError;
use super::{Abilities, Account, BlockDevice, DeviceError, Epochs, Extent, Lba, NO_HINT, Warnings};
use crate::label::{Cause, Content, Label, Tally};
use crate::time::Time;
use crate::units::{BLOCK_BYTES, human_size};
use blocks::HeldBlocks;
use selection::check_owner;
use spill::{Owner, SpillFile};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The label of a marker, and of a superblock that was read from the device.
const OWN: Label = Label::first(Cause::JournalCommit, Content::Journal);

/// The meaning of the mode, for the user.
const ASSUMPTION: &str = "journals are held in memory: if power fails or this process is killed, they are lost and file \
systems can be inconsistent; the loss of a client, such as a virtual machine, loses nothing";

/// A device whose journals are in memory.
pub struct HeldJournal {
    device: Box<dyn BlockDevice>,
    /// The maximum number of held blocks.
    most: u64,
    access_ns: u64,
    /// True if the content of the device outlasts this process: a loss must be detected.
    is_stored: bool,
    drains: bool,
    /// Locked for writing while the places change, and while a marker replaces a block that readers may look for on the
    /// device.
    places: RwLock<Places>,
    state: Mutex<State>,
    /// Changes of the device below that were answered.
    changes: AtomicU64,
    /// The number of changes that a flush has covered.
    flushed: AtomicU64,
}

/// The blocks to be held.
#[derive(Default)]
struct Places {
    /// True if the label of a write decides: nobody has named places, and the device is in memory.
    by_label: bool,
    /// In order.
    journals: Vec<Range<Lba>>,
    superblocks: Vec<Lba>,
}

struct State {
    held: HeldBlocks,
    /// The marks on the device and in the spill file. Each marker's place has a held block.
    owner: Owner,
    spill: Option<SpillFile>,
    /// True while the spill file has exactly the held blocks.
    is_spilled: bool,
    received: Tally,
    sent: Tally,
    read_blocks: u64,
    events: Events,
    warnings: Warnings,
    /// The completion of the last flush below.
    flushed_until: Time,
    /// The latest time of a request.
    now: Time,
}

#[derive(Default)]
struct Events {
    written: u64,
    read: u64,
    discarded: u64,
    flushes: u64,
    drained: u64,
    spilled: u64,
}

impl Places {
    fn holds(&self, place: Lba, label: Label) -> bool {
        if self.by_label {
            return label.content == Content::Journal;
        }
        let after = self.journals.partition_point(|range| range.end <= place);
        self.journals.get(after).is_some_and(|range| range.start <= place)
    }

    /// The runs of a write, and true for those to be held.
    fn runs(&self, range: Range<Lba>, label: Label) -> Vec<(Range<Lba>, bool)> {
        let mut runs: Vec<(Range<Lba>, bool)> = Vec::new();
        for place in (range.start.0..range.end.0).map(Lba) {
            let is_held = self.holds(place, label);
            match runs.last_mut() {
                Some((run, known)) if *known == is_held => run.end = place + 1,
                _ => runs.push((place..place + 1, is_held)),
            }
        }
        runs
    }
}

impl HeldJournal {
    /// Opens the device: takes over the journal in the spill file, if it holds one of this device.
    fn open(
        settings: &HoldJournalSettings,
        device: Box<dyn BlockDevice>,
        is_new: bool,
    ) -> Result<HeldJournal, StationError> {
        let owner = Owner { id: [0; 16], device_blocks: device.blocks(), markers: Vec::new() };
        let mut state = State {
            held: HeldBlocks::default(),
            owner,
            spill: None,
            is_spilled: false,
            received: Tally::default(),
            sent: Tally::default(),
            read_blocks: 0,
            events: Events::default(),
            warnings: Warnings::default(),
            flushed_until: Time::ZERO,
            now: Time::ZERO,
        };
        if let Some(path) = &settings.spill {
            let file = SpillFile::open(path)?;
            if let Some(spilled) = file.load(settings.blocks)? {
                check_owner(&*device, &spilled, file.name())?;
                (state.owner, state.held, state.is_spilled) = (spilled.owner, spilled.held, true);
            }
            state.spill = Some(file);
        }
        if !is_new && !settings.drain {
            state.warnings.add("journal-held", ASSUMPTION);
        }
        let opened = HeldJournal {
            most: settings.blocks,
            access_ns: if device.is_timed() { settings.access_ns } else { 0 },
            is_stored: !is_new,
            drains: settings.drain,
            places: RwLock::new(Places { by_label: is_new, ..Places::default() }),
            state: Mutex::new(state),
            changes: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            device,
        };
        if settings.drain {
            opened.drain_all(Time::ZERO)?;
        }
        Ok(opened)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panicked beside held blocks")
    }

    fn places(&self) -> RwLockReadGuard<'_, Places> {
        self.places.read().expect("no thread panicked beside the places of journals")
    }

    fn places_to_change(&self) -> RwLockWriteGuard<'_, Places> {
        self.places.write().expect("no thread panicked beside the places of journals")
    }

    fn width(&self) -> usize {
        self.device.block_width()
    }

    /// A block as the device below has it.
    fn read_below(&self, place: Lba) -> Result<Vec<u8>, DeviceError> {
        let mut block = vec![0; self.width()];
        self.device.read(place, &mut block, self.state().now)?;
        Ok(block)
    }

    /// Takes the state for a change: from then on, the spill file holds nothing.
    fn state_to_change(&self, at: Time) -> Result<MutexGuard<'_, State>, DeviceError> {
        let mut state = self.state();
        state.now = state.now.max(at);
        if state.is_spilled {
            state.mark_running()?;
        }
        Ok(state)
    }

    fn hold(&self, first: Lba, bytes: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let width = self.width();
        let mut state = self.state_to_change(at)?;
        let count = blocks_in(bytes.len(), width);
        let new = (first.0..first.0 + count).filter(|place| !state.held.contains(Lba(*place))).count() as u64;
        if state.held.count() + new > self.most {
            return Err(DeviceError::Full {
                what: "the memory of hold-journal".to_string(),
                why: format!("memory= allows {}", human_size((self.most * BLOCK_BYTES) as f64)),
            });
        }
        for (place, block) in (first.0..).zip(bytes.chunks_exact(width)) {
            state.held.put(Lba(place), block, label);
        }
        state.received.add(label, count);
        state.events.written += count;
        Ok(at + self.access_ns)
    }

    fn forward(
        &self,
        run: Range<Lba>,
        bytes: &[u8],
        (label, hint): (Label, u8),
        at: Time,
    ) -> Result<Time, DeviceError> {
        drop(self.state_to_change(at)?);
        let done = self.device.write_placed(run.start, bytes, label, hint, at)?;
        let count = run.end.0 - run.start.0;
        let mut state = self.state();
        state.received.add(label, count);
        state.sent.add(label, count);
        state.forget(run);
        self.changes.fetch_add(1, AcqRel);
        Ok(done)
    }
}

impl State {
    fn mark_running(&mut self) -> Result<(), DeviceError> {
        if let Some(spill) = &self.spill {
            let doing = format!("write to the spill file {}", spill.name());
            spill.mark_running(&self.owner).map_err(DeviceError::io(doing))?;
        }
        self.is_spilled = false;
        Ok(())
    }

    /// Drops the held blocks of a range. Returns their number.
    fn forget(&mut self, range: Range<Lba>) -> u64 {
        self.owner.markers.retain(|place| !range.contains(place));
        self.held.remove(range)
    }
}

impl BlockDevice for HeldJournal {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let width = self.width();
        let count = blocks_in(buffer.len(), width);
        check_range(first, count, self.blocks())?;
        let _places = self.places();
        let missing = {
            let mut state = self.state();
            let (held, missing) = state.held.read(first, buffer, width);
            state.events.read += held;
            state.read_blocks += count;
            missing
        };
        let is_any_held = missing.iter().map(|run| run.end.0 - run.start.0).sum::<u64>() < count;
        let mut done = if is_any_held { at + self.access_ns } else { at };
        for run in missing {
            let [from, to] = [run.start, run.end].map(|place| (place.0 - first.0) as usize * width);
            done = done.max(self.device.read(run.start, &mut buffer[from..to], at)?);
        }
        Ok(done)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.write_placed(first, buffer, label, NO_HINT, at)
    }

    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, hint: u8, at: Time) -> Result<Time, DeviceError> {
        let width = self.width();
        let count = blocks_in(buffer.len(), width);
        check_range(first, count, self.blocks())?;
        let mut places = self.places();
        let mut runs = places.runs(first..first + count, label);
        let mut begun = at;
        while runs.iter().any(|(_, is_held)| *is_held) && !self.is_marked(&places) {
            drop(places);
            begun = self.mark(begun)?;
            places = self.places();
            runs = places.runs(first..first + count, label);
        }
        let mut done = begun;
        for (run, is_held) in runs {
            let [from, to] = [run.start, run.end].map(|place| (place.0 - first.0) as usize * width);
            let bytes = &buffer[from..to];
            done = done.max(match is_held {
                true => self.hold(run.start, bytes, label, begun)?,
                false => self.forward(run, bytes, (label, hint), begun)?,
            });
        }
        Ok(done)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.blocks())?;
        let _places = self.places();
        drop(self.state_to_change(at)?);
        let done = self.device.discard(first, blocks, at)?;
        let mut state = self.state();
        let gone = state.forget(first..first + blocks);
        state.events.discarded += gone;
        self.changes.fetch_add(1, AcqRel);
        Ok(done)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        let changes = self.changes.load(Acquire);
        if self.flushed.load(Acquire) >= changes {
            let mut state = self.state();
            state.events.flushes += 1;
            return Ok(at.max(state.flushed_until));
        }
        let done = self.device.flush(at)?;
        let mut state = self.state();
        state.flushed_until = state.flushed_until.max(done);
        self.flushed.fetch_max(changes, AcqRel);
        Ok(done)
    }

    fn account(&self) -> Account {
        let state = self.state();
        Account {
            station: KIND.name,
            received: state.received.clone(),
            sent: state.sent.clone(),
            read_blocks: state.read_blocks,
            events: vec![
                ("held_blocks_written", state.events.written),
                ("held_blocks_read", state.events.read),
                ("held_blocks_discarded", state.events.discarded),
                ("held_flushes", state.events.flushes),
                ("held_blocks_drained", state.events.drained),
                ("held_blocks_spilled", state.events.spilled),
            ],
            warnings: state.warnings.clone(),
            below: vec![self.device.account()],
            ..Account::default()
        }
    }
}

impl Abilities for HeldJournal {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&*self.device)
    }

    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.blocks())?;
        let _places = self.places();
        let free = self.state().held.free_run(first, blocks);
        match free {
            0 => Ok(Extent { blocks: 1, is_stored: true }),
            free => self.device.extent(first, free),
        }
    }

    fn set_journal(&self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        let mut places = self.places_to_change();
        let selected = self.select(journal)?;
        self.device.set_journal(journal)?;
        self.release_outside(&selected)?;
        *places = selected;
        Ok(())
    }

    /// What is held is written later than what is not.
    fn epochs(&self) -> Option<&dyn Epochs> {
        None
    }

    fn make_portable(&self, at: Time) -> Result<Time, DeviceError> {
        let _places = self.places_to_change();
        let done = self.end(at)?;
        self.device.make_portable(done)
    }
}
