//! The map on flash: its pages are read on a miss, and written when dirty entries are evicted or pages that they map
//! are moved.

use super::{Miss, PageLevel, PageMap};
use crate::device::nand::{LogicalPage, PhysicalPage, Timing};
use crate::label::{Cause, Content, Label, Provenance};
use crate::translation::{TranslationError, UNMAPPED};

/// The layer alone writes its map, and for the mapping, whatever makes it do so now.
const OF_MAP_PAGE: Provenance = Provenance { origin: Cause::Mapping, content: Content::Mapping };

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// Loads the map entry of `page` into RAM; returns the completion time.
    #[inline]
    pub(super) fn load_entry(&mut self, page: LogicalPage, at: T::Moment) -> Result<T::Moment, TranslationError> {
        match self.map.request(page) {
            Some(miss) if M::ON_FLASH => self.serve_miss(miss, at),
            _ => Ok(at),
        }
    }

    /// Serves a miss: writes the evicted dirty entries, then reads the entry.
    pub(super) fn serve_miss(&mut self, miss: Miss, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut at = at;
        if let Some(page) = miss.write {
            at = self.write_map_page(page, Cause::Mapping, at)?;
        }
        let place = miss.read.map_or(UNMAPPED, |page| self.map.lookup(page));
        if place != UNMAPPED {
            (.., at) = self.nand.read(PhysicalPage(place), Cause::Mapping, at)?;
        }
        Ok(at)
    }

    /// Writes a page of the map to its frontier. The old version is read before, unless there is none.
    pub(super) fn write_map_page(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        at: T::Moment,
    ) -> Result<T::Moment, TranslationError> {
        let mut at = at;
        let before = self.map.lookup(page);
        if before != UNMAPPED {
            (.., at) = self.nand.read(PhysicalPage(before), cause, at)?;
        }
        let stream = self.settings.streams.count();
        let to = match cause {
            Cause::Mapping => match self.host[stream].take() {
                Some(to) => to,
                None => self.refill(stream, page, at)?,
            },
            _ => self.copy_run(stream, cause, 1)?.0,
        };
        // Collection may have moved the page.
        let before = self.map.lookup(page);
        if before != UNMAPPED {
            self.invalidate(PhysicalPage(before));
        }
        self.map.record_write(page, to);
        self.valid.set(to);
        self.written += 1;
        self.sent.add(Label::again(cause, OF_MAP_PAGE), 1);
        Ok(self.nand.program(to, (page, OF_MAP_PAGE), 0, cause, at)?)
    }

    /// Writes the map pages of moved pages whose entries are not in RAM, each once. The last erased block is left to
    /// the copies of the next collection: without space, new entries wait in RAM.
    pub(super) fn write_moved(&mut self, cause: Cause, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        while (self.free.count() > 1 || self.moved_has_room(cause))
            && let Some(page) = self.map.next_stale()
        {
            let one = self.write_map_page(page, cause, at)?;
            done = self.nand.timing().later(done, one);
        }
        Ok(done)
    }

    /// True if a map page can be written for `cause` without an erased block. Planes with a full open block are
    /// skipped: one of them would take the last erased block although another plane has space.
    pub(super) fn moved_has_room(&mut self, cause: Cause) -> bool {
        let stream = self.settings.streams.count();
        match cause {
            Cause::WearLevelling => self.cold.has_room(),
            Cause::Mapping => self.host[stream].seek_room(),
            _ => self.copy_frontier(stream).seek_room(),
        }
    }
}
