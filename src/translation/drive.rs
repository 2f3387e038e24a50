//! A drive: a translation layer on flash as a block device.
//!
//! The flash stores no bytes, so the drive keeps them in memory: a write goes to both, a read returns the bytes after
//! the time the flash takes. The drive itself survives power cuts; [`Translation::after_power_cut`] tests those of the
//! layer's map.

use super::{BufferCounts, Flash, MomentOf, Requests, Translation, TranslationError};
use crate::device::UnitMap;
use crate::device::nand::errors::ErrorCounts;
use crate::device::nand::{LogicalPage, ModesView, Timing, cell_name};
use crate::device::{
    Abilities, Account, BlockDevice, BufferAccount, DeviceError, DriveAccount, Epochs, Extent, FlashAccount, Lba,
    Memory, ModesAccount, NO_HINT, PageCover, Placement, PlacementAccount, blocks_in, check_range,
};
use crate::label::{Cause, Content, Label, Tally};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::{Mutex, MutexGuard};

/// A translation layer on flash, as a block device. Layer, flash and clock are one state behind one lock.
///
/// A write of any cause from the station above is a host write to the layer; its content and origin are passed on.
pub struct Drive<T> {
    blocks: u64,
    width: usize,
    name: &'static str,
    /// The name in the ledger, if the drive is one medium of several.
    medium: Option<&'static str>,
    /// True if writes are placed by the host's identifiers.
    is_placed: bool,
    keeps_order: bool,
    state: Mutex<State<T>>,
}

struct State<T> {
    layer: T,
    requests: Requests,
    bytes: Memory,
    received: Tally,
    /// The pages of the layer that the writes cover, in part or completely.
    covered: Tally,
    cover: PageCover,
    read_blocks: u64,
    /// The completion time of the latest request.
    last_done: Time,
    /// The end of the idle time that the layer has used.
    idle_until: Time,
}

impl<T: Translation> State<T> {
    /// The end of a request that was issued at `at`. Nothing else is issued before.
    fn done(&mut self, moment: MomentOf<T>, at: Time) -> Time {
        let end = Time(u64::MAX);
        let done = match T::Timing::TIMED {
            true => self.layer.timing().settle(moment, end).expect("every operation has an end"),
            false => at,
        };
        self.last_done = self.last_done.max(done);
        done
    }
}

impl<T: Translation> Drive<T> {
    /// A drive with the first `blocks` blocks of the layer's pages, each with `block_width` bytes in a buffer.
    ///
    /// # Panics
    ///
    /// If the layer exports fewer: a bug of the caller.
    pub fn new(layer: T, blocks: u64, block_width: usize) -> Drive<T> {
        let page_bytes = layer.flash().geometry.page_bytes;
        assert!(blocks <= layer.exported_pages() * u64::from(page_bytes) / BLOCK_BYTES, "the layer exports that many");
        let name = layer.name();
        let is_placed = layer.placement().is_some_and(|placement| placement.is_by_identifier);
        let keeps_order = layer.keeps_order();
        let state = State {
            requests: Requests::of(&layer),
            layer,
            bytes: Memory::new(block_width),
            received: Tally::default(),
            covered: Tally::default(),
            cover: PageCover { page_bytes: page_bytes.into(), ..PageCover::default() },
            read_blocks: 0,
            last_done: Time::ZERO,
            idle_until: Time::ZERO,
        };
        Drive { blocks, width: block_width, name, medium: None, is_placed, keeps_order, state: Mutex::new(state) }
    }

    /// The same drive as one medium of several: its account lists no stations within it, and its sent blocks are those
    /// that its flash programmed.
    pub fn into_medium(self, station: &'static str) -> Drive<T> {
        Drive { medium: Some(station), ..self }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no thread panicked in the drive")
    }

    fn bytes_of(first: Lba, blocks: u64) -> (u64, u64) {
        (first.0 * BLOCK_BYTES, blocks * BLOCK_BYTES)
    }

    fn error(&self, error: TranslationError, page_bytes: u64) -> DeviceError {
        match error {
            TranslationError::Uncorrectable { page } => DeviceError::Uncorrectable {
                station: self.name,
                first: Lba(u64::from(page) * page_bytes / BLOCK_BYTES),
                count: page_bytes.div_ceil(BLOCK_BYTES),
            },
            TranslationError::ReadOnly { .. } => {
                DeviceError::ReadOnly { what: self.name.to_string(), why: error.to_string() }
            }
            _ => DeviceError::Station { station: self.name, reason: error.to_string() },
        }
    }
}

impl<T: Translation> State<T> {
    /// A request that reads has failed: what was read together with others is ended.
    fn fail(&mut self, error: &TranslationError, issued: MomentOf<T>, at: Time) {
        if matches!(error, TranslationError::Uncorrectable { .. }) {
            let there = self.layer.end_reads(issued);
            self.done(there, at);
        }
    }

    /// A write has failed at a page: those before it are written, and count.
    fn write_in_part(&mut self, error: &TranslationError, first: Lba, buffer: &[u8], width: usize, label: Label) {
        let Some(page) = error.page() else { return };
        let end = u64::from(page.0) * self.cover.page_bytes;
        let offset = first.0 * BLOCK_BYTES;
        let written = end.saturating_sub(offset).min((buffer.len() / width) as u64 * BLOCK_BYTES);
        let blocks = written / BLOCK_BYTES;
        self.bytes.write(first, &buffer[..blocks as usize * width]);
        self.received.add(label, blocks);
        let covered = self.requests.count(offset, written);
        self.cover.write(written, covered);
        self.covered.add(Label::again(Cause::HostWrite, label.provenance()), covered);
    }
}

impl<T: Translation + Send> BlockDevice for Drive<T> {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_width(&self) -> usize {
        self.width
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.width);
        check_range(first, count, self.blocks)?;
        let state = &mut *self.state();
        let issued = state.layer.timing().instant(at);
        let (range, cover) = (Self::bytes_of(first, count), &mut state.cover);
        let read = state.requests.read(&mut state.layer, range, issued, |_, stamp| cover.read(stamp.is_some()));
        let there = read.map_err(|error| {
            state.fail(&error, issued, at);
            self.error(error, state.cover.page_bytes)
        })?;
        state.bytes.read(first, buffer);
        state.read_blocks += count;
        Ok(state.done(there, at))
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.write_placed(first, buffer, label, NO_HINT, at)
    }

    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, hint: u8, at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.width);
        check_range(first, count, self.blocks)?;
        let state = &mut *self.state();
        let (range, page) = (Self::bytes_of(first, count), (label.provenance(), hint, 0));
        state.layer.note_time(at);
        let issued = state.layer.timing().instant(at);
        let written = state.requests.write(&mut state.layer, range, page, issued);
        let there = written.map_err(|error| {
            state.fail(&error, issued, at);
            state.write_in_part(&error, first, buffer, self.width, label);
            self.error(error, state.cover.page_bytes)
        })?;
        state.bytes.write(first, buffer);
        state.received.add(label, count);
        let covered = state.requests.count(range.0, range.1);
        state.cover.write(range.1, covered);
        state.covered.add(Label::again(Cause::HostWrite, label.provenance()), covered);
        Ok(state.done(there, at))
    }

    /// The layer drops only pages that are covered completely; all blocks read as zeros.
    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        let state = &mut *self.state();
        let (offset, length) = Self::bytes_of(first, blocks);
        let issued = state.layer.timing().instant(at);
        let mut done = issued;
        for page in state.requests.covered(offset, length) {
            let noted = state.layer.discard(LogicalPage(page), issued);
            let noted = noted.map_err(|error| self.error(error, state.cover.page_bytes))?;
            done = state.layer.timing().later(done, noted);
        }
        state.bytes.clear(first, blocks);
        Ok(state.done(done, at))
    }

    /// A flush waits for the requests in flight; it costs nothing itself where a write is on flash when it is done.
    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        let state = &mut *self.state();
        let at = state.last_done.max(at);
        let issued = state.layer.timing().instant(at);
        let flushed = state.layer.flush(issued).map_err(|error| self.error(error, state.cover.page_bytes))?;
        Ok(state.done(flushed, at))
    }

    fn account(&self) -> Account {
        let state = self.state();
        let mut account = account_in_pages(&state.layer);
        let drive = account.drive.take().unwrap_or_default();
        let mut nand = account.below.pop().unwrap_or_default();
        let in_blocks = |pages: &Tally| in_blocks(pages, drive.page_bytes);
        if let Some(station) = self.medium {
            account = Account { station, sent: in_blocks(&nand.sent), flash: nand.flash, map: nand.map, ..account };
        } else {
            let read_blocks = nand.read_blocks * drive.page_bytes / BLOCK_BYTES;
            nand = Account { received: in_blocks(&nand.received), sent: in_blocks(&nand.sent), read_blocks, ..nand };
            account = Account { sent: in_blocks(&account.sent), below: vec![nand], ..account };
        }
        let covered = Some(in_blocks(&state.covered));
        let cover = Some(state.cover);
        if let Some(placement) = &mut account.placement {
            placement.host_bytes = state.cover.written_bytes;
        }
        Account { received: state.received.clone(), covered, cover, read_blocks: state.read_blocks, ..account }
    }
}

impl<T: Translation + Send> Placement for Drive<T> {
    fn placement_account(&self) -> PlacementAccount {
        let state = self.state();
        let placement = state.layer.placement().expect("a drive without placement offers none");
        PlacementAccount { host_bytes: state.cover.written_bytes, ..placement }
    }

    fn update_handle(&self, identifier: u8, at: Time) -> Result<Time, DeviceError> {
        let state = &mut *self.state();
        state.layer.note_time(at);
        let issued = state.layer.timing().instant(at);
        let page_bytes = state.cover.page_bytes;
        let updated = state.layer.update_handle(identifier, issued).map_err(|error| self.error(error, page_bytes))?;
        Ok(state.done(updated, at))
    }
}

impl<T: Translation + Send> Epochs for Drive<T> {
    fn barrier(&self, at: Time) -> Result<Time, DeviceError> {
        self.state().layer.begin_epoch();
        Ok(at)
    }
}

impl<T: Translation + Send> Abilities for Drive<T> {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }

    fn is_timed(&self) -> bool {
        T::Timing::TIMED
    }

    fn placement(&self) -> Option<&dyn Placement> {
        self.is_placed.then_some(self as &dyn Placement)
    }

    fn epochs(&self) -> Option<&dyn Epochs> {
        self.keeps_order.then_some(self as &dyn Epochs)
    }

    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        Ok(self.state().bytes.extent(first, blocks))
    }

    /// Gives the layer the time in which nothing was in flight.
    fn work(&self, now: Time) -> Result<Option<Time>, DeviceError> {
        let state = &mut *self.state();
        let from = state.last_done.max(state.idle_until);
        if now > from {
            state.layer.idle(from, now).map_err(|error| self.error(error, state.cover.page_bytes))?;
            state.idle_until = now;
        }
        Ok(None)
    }
}

/// The account of a layer that is the whole path, with its flash, in pages, since they were new.
pub fn account_in_pages<T: Translation>(layer: &T) -> Account {
    let Flash {
        geometry,
        counts,
        erase_counts,
        endurance,
        programmed_pages,
        timing_events,
        modes,
        errors,
        worn,
        energy,
    } = layer.flash();
    let page_bytes = u64::from(geometry.page_bytes);
    let for_host: Tally = layer.sent().entries().filter(|(label, _)| label.cause == Cause::HostWrite).collect();
    let buffer = layer.buffer().map(|BufferCounts { received, joined, dropped, held }| {
        Box::new(BufferAccount {
            page_bytes,
            received,
            passed: for_host.clone(),
            joined,
            dropped,
            held,
            held_before: Tally::default(),
        })
    });
    let received = buffer.as_ref().map_or(for_host, |buffer| buffer.received.clone());
    let of_mapping = counts.read.entries().filter(|(label, _)| label.content == Content::Mapping);
    let nand = Account {
        station: "nand",
        received: layer.sent().clone(),
        sent: counts.programmed.clone(),
        read_blocks: counts.read.total(),
        events: timing_events
            .into_iter()
            .chain(errors.iter().flat_map(error_events))
            .chain(errors.map(|_| ("scrub_reads", counts.read.of_cause(Cause::Scrub))))
            .collect(),
        flash: Some(FlashAccount {
            page_bytes,
            pages_per_block: u64::from(geometry.pages_per_block),
            programmed_pages: counts.programmed.total(),
            programs: counts.programs,
            program_bytes: geometry.program_bytes().into(),
            read_pages: counts.read.total(),
            erased_blocks: counts.erased_blocks,
            erased_unprogrammed_pages: counts.erased_unprogrammed,
            programmed_before: 0,
            free_blocks: layer.free_blocks(),
            programmed_now: programmed_pages.iter().map(|&pages| u64::from(pages)).sum(),
            erase_counts: erase_counts.to_vec(),
            endurance,
            worn_before: worn,
            bad_blocks: errors.map(|errors| errors.bad_blocks),
            spare_blocks_left: layer.spare_blocks().map(u64::from),
            raw_bytes: geometry.raw_bytes(),
            by_mode: modes.and_then(|modes| by_mode(modes, erase_counts, endurance)).map(Box::new),
            energy: energy.map(Box::new),
        }),
        map: Some(UnitMap {
            unit: "erase block",
            size: u64::from(geometry.pages_per_block),
            written: programmed_pages.to_vec(),
            erases: erase_counts.to_vec(),
            ..UnitMap::default()
        }),
        ..Account::default()
    };
    Account {
        station: layer.name(),
        received,
        sent: layer.sent().clone(),
        buffer,
        events: layer.events(),
        placement: layer.placement().map(Box::new),
        drive: Some(DriveAccount {
            page_bytes,
            mapping_reads: of_mapping.map(|(_, count)| count).sum(),
            effective_overprovisioning: layer.effective_overprovisioning(),
            mapping_ram_bytes: layer.mapping_ram_bytes(),
        }),
        below: vec![nand],
        ..Account::default()
    }
}

/// The wear of blocks by mode, if some are or were in SLC mode.
fn by_mode(modes: ModesView<'_>, erase_counts: &[u32], endurance: u32) -> Option<ModesAccount> {
    let slc_erases: u64 = modes.slc_erases.iter().map(|&erases| u64::from(erases)).sum();
    if slc_erases == 0 && !modes.is_slc.contains(&true) {
        return None;
    }
    let all: u64 = erase_counts.iter().map(|&erases| u64::from(erases)).sum();
    let used = |(block, &erases): (usize, &u32)| {
        let (slc, other) = modes.used(block, erases, endurance);
        slc + other
    };
    let used: Vec<f64> = erase_counts.iter().enumerate().map(used).collect();
    let (blocks, fixed) = (erase_counts.len() as u64, u64::from(modes.fixed));
    Some(ModesAccount {
        cells: cell_name(modes.bits),
        blocks: if fixed > 0 { [fixed, blocks - fixed] } else { [blocks; 2] },
        erases: [slc_erases, all - slc_erases],
        endurance: [modes.slc_endurance, endurance],
        is_dynamic: fixed == 0,
        most_used: used.iter().copied().fold(0.0, f64::max),
        worn_out: used.iter().filter(|&&used| used >= 1.0 - 1e-9).count() as u64,
    })
}

/// The counts of errors, by name.
fn error_events(counts: &ErrorCounts) -> [(&'static str, u64); 6] {
    [
        ("retried_reads", counts.retried_reads),
        ("read_retries", counts.retries),
        ("uncorrectable_reads", counts.uncorrectable_reads),
        ("lost_pages", counts.lost_pages),
        ("program_failures", counts.program_failures),
        ("erase_failures", counts.erase_failures),
    ]
}

/// Converts a tally of pages to blocks; the remainder below a block is dropped, which happens with pages of 2 KiB only.
fn in_blocks(pages: &Tally, page_bytes: u64) -> Tally {
    pages.entries().map(|(label, count)| (label, count * page_bytes / BLOCK_BYTES)).collect()
}
