//! A write buffer in front of any translation layer.
//!
//! A write is answered when it is in the buffer. There a newer version of a page takes the place of the older one, which is
//! never written ([`Cause::Joined`]), and pages wait for others: a full buffer gives up the page that was written longest
//! ago, with those that follow it by their numbers, so that a sequential run goes to all planes. The layer packs what it
//! gets into pages of flash by its streams, and keeps the last one of each open.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the buffer as a layer: writes, reads, flushes, a cut of power |
//! | `contents` | the pages in it |
//! | `settings` | the options |
//!
//! A page leaves the buffer when its page of flash is programmed. The layer does not know the time, so places are free in
//! the order in which pages were given up: a write waits for the programs from so many pages ago as may be under way.
//!
//! Fault model: with `protected`, capacitors keep the buffer and the open pages of flash through a power cut. With
//! `volatile` both are lost, and a flush makes durable all that was answered before.
//!
//! A *barrier* begins an epoch. Pages leave a volatile buffer in the order of epochs, and a page that was written in several
//! epochs once for each: it is not joined across a barrier. The flash is programmed in the order in which pages leave, as far as the
//! layer does so; where it has several pages of flash open, those are filled before a page of a later epoch. The order of
//! programs is the order of what is there after a power cut: of programs under way on several planes, a drive that recovers in
//! order drops those behind one that is missing, which costs nothing before (Won and others' in-order recovery).

mod contents;
mod settings;

pub use settings::BufferSettings;
pub(crate) use settings::{BUFFER, BUFFER_POLICY};

use super::{Flash, MomentOf, PageWrite, Translation, TranslationError};
use crate::device::PlacementAccount;
use crate::device::nand::{LogicalPage, Timing};
use crate::label::{Cause, Label, Tally};
use crate::time::Time;
use contents::{Contents, Place};
use std::collections::VecDeque;

/// The stripes of pages that may be under way to the flash: one is programmed, one is transferred.
const STRIPES_UNDER_WAY: u32 = 2;

/// The pages, of those that will be given up next, whose map entries are prefetched, and the first of these, of which also
/// what the entries lead to.
const ENTRIES_AHEAD: usize = 12;
const OLD_AHEAD: usize = 4;

/// The counts of a write buffer, in pages, since the drive was new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BufferCounts {
    /// Pages written to it.
    pub received: Tally,
    /// Versions of pages that newer ones replaced in it.
    pub joined: Tally,
    /// Pages that were discarded in it, or lost with it.
    pub dropped: Tally,
    /// Pages that it holds now.
    pub held: Tally,
}

/// A translation layer behind a write buffer.
pub struct Buffered<L: Translation> {
    layer: L,
    contents: Contents,
    is_protected: bool,
    /// The most pages in it that are not under way to the flash.
    most: u32,
    /// The numbers of pages that were given up together, and when they are on flash.
    under_way: VecDeque<(u32, MomentOf<L>)>,
    pages_under_way: u32,
    most_under_way: u32,
    /// Pages of flash on all planes, in pages.
    stripe: u32,
    pages_per_program: u32,
    received: Tally,
    joined: Tally,
    dropped: Tally,
    /// The pages to give up: kept for its memory.
    leaving: Vec<Place>,
    /// The epoch of the last page that was given up.
    epoch_given_up: u32,
}

impl<L: Translation> Buffered<L> {
    /// An empty buffer in front of a layer.
    pub fn new(layer: L, settings: BufferSettings) -> Buffered<L> {
        let geometry = layer.flash().geometry;
        let pages_per_program = geometry.pages_per_program;
        let stripe = geometry.units() * pages_per_program;
        assert!(settings.pages >= stripe, "a buffer holds a stripe");
        let most_under_way = (STRIPES_UNDER_WAY * stripe).min(settings.pages / 2);
        let most = settings.pages - most_under_way;
        Buffered {
            contents: Contents::new(most),
            is_protected: settings.is_protected,
            most,
            under_way: VecDeque::new(),
            pages_under_way: 0,
            most_under_way,
            stripe,
            pages_per_program,
            received: Tally::default(),
            joined: Tally::default(),
            dropped: Tally::default(),
            leaving: Vec::with_capacity(stripe as usize),
            epoch_given_up: 0,
            layer,
        }
    }

    /// Gives up the page that was written longest ago and those that go with it. Returns when there is room.
    fn make_room(&mut self, at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.clear();
        for first in self.contents.oldest_first() {
            if !leaving.contains(&first) {
                self.add_run(first, &mut leaving);
            }
            if leaving.len() as u32 >= self.pages_per_program {
                break;
            }
        }
        let free = self.give_up(&leaving, at);
        self.leaving = leaving;
        self.prefetch_oldest();
        free
    }

    /// Gives up pages. Returns when there is room for as many.
    fn give_up(&mut self, leaving: &[Place], at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        let programmed = self.write_out(leaving, at)?;
        let count = leaving.len() as u32;
        self.under_way.push_back((count, programmed));
        self.pages_under_way += count;
        let mut free = at;
        while self.pages_under_way > self.most_under_way
            && let Some((count, programmed)) = self.under_way.pop_front()
        {
            self.pages_under_way -= count;
            free = self.layer.timing().later(free, programmed);
        }
        Ok(free)
    }

    /// Prefetches what the layer touches when the next pages are given up.
    fn prefetch_oldest(&self) {
        for (number, place) in self.contents.oldest_first().take(ENTRIES_AHEAD).enumerate() {
            let page = self.contents.at(place).0.page;
            if number < OLD_AHEAD { self.layer.prefetch_old(page) } else { self.layer.prefetch(page) }
        }
    }

    /// Adds a page, and those of its epoch, its stream and its content that follow it, up to a stripe.
    fn add_run(&self, first: Place, leaving: &mut Vec<Place>) {
        let alike = |(write, epoch): (&PageWrite, u32)| (epoch, write.stream, write.provenance.content);
        let (of_first, before) = (alike(self.contents.at(first)), leaving.len());
        let mut page = self.contents.at(first).0.page;
        let mut next = Some(first);
        while (leaving.len() as u32) < self.stripe
            && let Some(place) = next.filter(|place| !leaving[..before].contains(place))
            && alike(self.contents.at(place)) == of_first
        {
            leaving.push(place);
            page = LogicalPage(page.0 + 1);
            next = self.contents.place_of(page);
        }
    }

    /// Writes the pages of a placement identifier to the layer: the host wrote them before it gave up the unit.
    fn give_up_all_of(&mut self, identifier: u8, at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        let Some(placement) = self.layer.placement() else { return Ok(at) };
        let (identifiers, handles) = (placement.identifiers() as u8, placement.handles.len() as u8);
        let is_default = identifier % handles == placement.default_handle;
        // In the order of epochs the others leave, too.
        let takes_all = !self.contents.is_of_one_epoch();
        let is_of = |place: &Place| {
            let hint = self.contents.at(*place).0.stream;
            takes_all || if (1..=identifiers).contains(&hint) { hint - 1 == identifier } else { is_default }
        };
        let pages: Vec<Place> = self.contents.by_number().into_iter().filter(is_of).collect();
        self.write_out(&pages, at)
    }

    /// Writes pages of the buffer to the layer; returns when those are on flash whose pages of flash are complete. A page
    /// leaves the buffer when the layer has it.
    fn write_out(&mut self, pages: &[Place], at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        let mut done = None;
        for &place in pages {
            let (write, epoch) = self.contents.at(place);
            let write = *write;
            if epoch != self.epoch_given_up {
                self.end_epoch_on_flash(epoch, at)?;
            }
            let programmed = self.layer.write(write, at)?;
            self.contents.remove(place);
            done = Some(match done {
                None => programmed,
                Some(done) => self.layer.timing().later(done, programmed),
            });
        }
        Ok(done.unwrap_or(at))
    }

    /// The next page is of another epoch: those before it are programmed before it is.
    #[cold]
    fn end_epoch_on_flash(&mut self, next: u32, at: MomentOf<L>) -> Result<(), TranslationError> {
        let is_in_order = self.pages_per_program == 1 || self.layer.programs_in_order();
        if !self.is_protected && !is_in_order {
            self.layer.flush(at)?;
        }
        self.epoch_given_up = next;
        Ok(())
    }
}

impl<L: Translation> Translation for Buffered<L> {
    type Timing = L::Timing;

    fn timing(&mut self) -> &mut L::Timing {
        self.layer.timing()
    }

    fn name(&self) -> &'static str {
        self.layer.name()
    }

    #[inline]
    fn write(&mut self, write: PageWrite, at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        debug_assert!(u64::from(write.page.0) < self.exported_pages(), "the host has no page {}", write.page.0);
        let received = Label::again(Cause::HostWrite, write.provenance);
        if let Some(before) = self.contents.replace(write) {
            self.received.add(received, 1);
            self.joined.add(Label::again(Cause::HostWrite, before.provenance), 1);
            return Ok(at);
        }
        let done = match self.contents.count() < self.most {
            true => at,
            false => self.make_room(at).map_err(|error| error.for_page(write.page))?,
        };
        self.received.add(received, 1);
        self.contents.insert(write);
        Ok(done)
    }

    #[inline]
    fn read(&mut self, page: LogicalPage, at: MomentOf<L>) -> Result<(Option<u32>, MomentOf<L>), TranslationError> {
        match self.contents.get(page) {
            Some(write) => Ok((Some(write.stamp), at)),
            None => self.layer.read(page, at),
        }
    }

    fn failed_read(&mut self) -> Option<MomentOf<L>> {
        self.layer.failed_read()
    }

    fn rest(&mut self, rest_ns: u64) {
        self.layer.rest(rest_ns);
    }

    fn end_reads(&mut self, at: MomentOf<L>) -> MomentOf<L> {
        self.layer.end_reads(at)
    }

    fn writes_through(&self) -> bool {
        false
    }

    fn flush(&mut self, at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        if self.is_protected {
            return Ok(at);
        }
        let pages = self.contents.by_number();
        let mut done = self.write_out(&pages, at)?;
        self.pages_under_way = 0;
        for (_, programmed) in self.under_way.drain(..) {
            done = self.layer.timing().later(done, programmed);
        }
        let flushed = self.layer.flush(at)?;
        Ok(self.layer.timing().later(done, flushed))
    }

    fn discard(&mut self, page: LogicalPage, at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        if !self.contents.is_of_one_epoch() && self.contents.place_of(page).is_some() {
            // A version of an earlier epoch would come behind the discard.
            let all = self.contents.by_number();
            self.give_up(&all, at)?;
        }
        // A layer that refuses it leaves the page as it is, here too.
        let done = self.layer.discard(page, at)?;
        if let Some(place) = self.contents.place_of(page) {
            let write = self.contents.remove(place);
            self.dropped.add(Label::again(Cause::HostWrite, write.provenance), 1);
        }
        Ok(done)
    }

    fn keeps_order(&self) -> bool {
        true
    }

    /// A protected buffer has nothing to keep in order: what was answered is safe.
    fn begin_epoch(&mut self) {
        if !self.is_protected {
            self.contents.begin_epoch();
        }
    }

    fn idle(&mut self, from: Time, until: Time) -> Result<(), TranslationError> {
        self.layer.idle(from, until)
    }

    /// For a read: a write is given up much later.
    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        self.layer.prefetch(page);
    }

    fn exported_pages(&self) -> u64 {
        self.layer.exported_pages()
    }

    fn sent(&self) -> &Tally {
        self.layer.sent()
    }

    fn programmed(&self) -> Tally {
        self.layer.programmed()
    }

    fn buffer(&self) -> Option<BufferCounts> {
        let held = self.contents.writes().map(|write| (Label::again(Cause::HostWrite, write.provenance), 1)).collect();
        let (received, joined, dropped) = (self.received.clone(), self.joined.clone(), self.dropped.clone());
        Some(BufferCounts { received, joined, dropped, held })
    }

    fn flash(&self) -> Flash<'_> {
        self.layer.flash()
    }

    fn free_blocks(&self) -> u64 {
        self.layer.free_blocks()
    }

    fn spare_blocks(&self) -> Option<u32> {
        self.layer.spare_blocks()
    }

    fn effective_overprovisioning(&self) -> f64 {
        self.layer.effective_overprovisioning()
    }

    fn mapping_ram_bytes(&self) -> u64 {
        self.layer.mapping_ram_bytes()
    }

    /// The host wrote what the buffer received.
    fn placement(&self) -> Option<PlacementAccount> {
        let placement = self.layer.placement()?;
        Some(PlacementAccount { host_bytes: self.received.total() * placement.page_bytes, ..placement })
    }

    fn note_time(&mut self, at: Time) {
        self.layer.note_time(at);
    }

    fn update_handle(&mut self, identifier: u8, at: MomentOf<L>) -> Result<MomentOf<L>, TranslationError> {
        let done = self.give_up_all_of(identifier, at)?;
        let updated = self.layer.update_handle(identifier, at)?;
        Ok(self.layer.timing().later(done, updated))
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        self.layer.events()
    }

    fn after_power_cut(self) -> Result<Self, TranslationError> {
        let Buffered { layer, mut contents, mut dropped, is_protected, most, .. } = self;
        if !is_protected {
            contents.writes().for_each(|write| dropped.add(Label::again(Cause::HostWrite, write.provenance), 1));
            contents = Contents::new(most);
        }
        let layer = layer.after_power_cut()?;
        let under_way = VecDeque::new();
        Ok(Buffered { layer, contents, dropped, under_way, pages_under_way: 0, ..self })
    }
}
