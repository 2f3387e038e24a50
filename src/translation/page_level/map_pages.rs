//! The part of the map that is on flash: its pages are read when an entry is missed, and written when entries leave RAM or
//! name pages that were moved.

use super::{Miss, PageLevel, PageMap};
use crate::device::nand::{LogicalPage, PhysicalPage, Spare, Timing};
use crate::label::{Cause, Content};
use crate::time::Time;
use crate::translation::{NOWHERE, TranslationError};

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// Brings the mapping of `page` into RAM, if it is not there, and says when it is.
    #[inline]
    pub(super) fn bring(&mut self, page: LogicalPage, at: Time) -> Result<Time, TranslationError> {
        match self.map.request(page) {
            Some(miss) if M::ON_FLASH => self.load(miss, at),
            _ => Ok(at),
        }
    }

    /// Does what a miss takes: the dirty entries that it pushes out are written, then the entry is read.
    pub(super) fn load(&mut self, miss: Miss, at: Time) -> Result<Time, TranslationError> {
        let mut at = at;
        if let Some(page) = miss.write {
            at = self.write_map_page(page, Cause::Mapping, at)?;
        }
        let place = miss.read.map_or(NOWHERE, |page| self.map.place(page));
        if place != NOWHERE {
            (.., at) = self.nand.read(PhysicalPage(place), Cause::Mapping, at)?;
        }
        Ok(at)
    }

    /// Writes a page of the map anew: what it said before is read, unless it is the first, and the page goes to the
    /// frontier of such pages.
    pub(super) fn write_map_page(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        at: Time,
    ) -> Result<Time, TranslationError> {
        let mut at = at;
        let before = self.map.place(page);
        if before != NOWHERE {
            (.., at) = self.nand.read(PhysicalPage(before), cause, at)?;
        }
        let stream = self.settings.streams.count();
        let to = match cause {
            Cause::Mapping => match self.host[stream].take() {
                Some(to) => to,
                None => self.refill(stream, at)?,
            },
            _ => self.copy_run(stream, cause, 1)?.0,
        };
        // Finding room may have moved the page.
        let before = self.map.place(page);
        if before != NOWHERE {
            self.invalidate(PhysicalPage(before));
        }
        self.map.written(page, to);
        self.valid.set(to);
        self.written += 1;
        self.sent.add(cause, Content::Mapping, 1);
        Ok(self.nand.program(to, Spare::new(page, Content::Mapping), 0, cause, at)?)
    }

    /// Pages were moved whose entries are not in RAM: the pages of the map that name them are written anew, each once.
    /// The last erased block is left to the copies of the next collection: without room, new entries wait in RAM.
    pub(super) fn write_moved(&mut self, cause: Cause, at: Time) -> Result<Time, TranslationError> {
        let mut done = at;
        while (self.free.count() > 1 || self.moved_has_room(cause))
            && let Some(page) = self.map.next_stale()
        {
            done = done.max(self.write_map_page(page, cause, at)?);
        }
        Ok(done)
    }

    /// Whether a page of the map can be written for this cause without an erased block. Planes whose open block is full are
    /// passed over: one of them would take the last erased block though another plane has room.
    pub(super) fn moved_has_room(&mut self, cause: Cause) -> bool {
        let stream = self.settings.streams.count();
        match cause {
            Cause::WearLevelling => self.settled.has_room(),
            Cause::Mapping => self.host[stream].seek_room(),
            _ => self.copy_frontier(stream).seek_room(),
        }
    }
}
