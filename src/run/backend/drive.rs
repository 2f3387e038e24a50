//! A translation layer on flash as a backend of the engine.

use super::{Backend, HostWrite};
use crate::device::nand::{LogicalPage, Telling, Timing};
use crate::device::{Account, PageCover};
use crate::label::Label;
use crate::run::accounts::Stored;
use crate::run::error::RunError;
use crate::time::Time;
use crate::translation::{MomentOf, Requests, Translation, account_in_pages};

/// A translation layer on flash as a backend.
pub struct DriveBackend<L> {
    layer: L,
    requests: Requests,
    page_bytes: u64,
    cover: PageCover,
}

impl<L: Translation> DriveBackend<L> {
    pub fn new(layer: L) -> DriveBackend<L> {
        let page_bytes = layer.flash().geometry.page_bytes;
        let cover = PageCover { page_bytes: page_bytes.into(), ..PageCover::default() };
        DriveBackend { requests: Requests::of(&layer), layer, page_bytes: page_bytes.into(), cover }
    }
}

impl<L: Translation<Timing: Telling>> Backend for DriveBackend<L> {
    type Moment = MomentOf<L>;

    #[inline]
    fn is_timed(&self) -> bool {
        L::Timing::TIMED
    }

    #[inline]
    fn unit_bytes(&self) -> u64 {
        self.page_bytes
    }

    fn exported_bytes(&self) -> u64 {
        self.layer.exported_pages() * self.page_bytes
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.layer.prefetch(self.requests.first_page(offset));
    }

    #[inline]
    fn prefetch_old(&self, offset: u64) {
        self.layer.prefetch_old(self.requests.first_page(offset));
    }

    #[inline]
    fn issue(&mut self, at: Time) -> MomentOf<L> {
        self.layer.timing().instant(at)
    }

    #[inline]
    fn later(&mut self, sum: MomentOf<L>, other: MomentOf<L>) -> MomentOf<L> {
        self.layer.timing().later(sum, other)
    }

    #[inline]
    fn watch(&mut self, number: u64, moment: MomentOf<L>) {
        self.layer.timing().watch(number, moment);
    }

    #[inline]
    fn next_done(&mut self, until: Time) -> Option<(u64, Time)> {
        self.layer.timing().next_done(until)
    }

    fn idle(&mut self, from: Time, until: Time) -> Result<(), RunError> {
        Ok(self.layer.idle(from, until)?)
    }

    #[inline]
    fn write(&mut self, range: (u64, u64), write: HostWrite, at: MomentOf<L>) -> Result<MomentOf<L>, RunError> {
        let page = (Label::host(write.content).provenance(), write.stream, write.stamp);
        self.cover.write(range.1, self.requests.count(range.0, range.1));
        Ok(self.requests.write(&mut self.layer, range, page, at)?)
    }

    #[inline]
    fn read(
        &mut self,
        range: (u64, u64),
        at: MomentOf<L>,
        mut see: impl FnMut(u64, Option<u32>),
    ) -> Result<MomentOf<L>, RunError> {
        let cover = &mut self.cover;
        Ok(self.requests.read(&mut self.layer, range, at, |page, stamp| {
            cover.read(stamp.is_some());
            see(page.0.into(), stamp);
        })?)
    }

    fn failed_read(&mut self, at: MomentOf<L>) -> MomentOf<L> {
        let failed = self.layer.failed_read().unwrap_or(at);
        // What was to be read together with the page is read, too.
        let there = self.layer.end_reads(at);
        self.layer.timing().later(there, failed)
    }

    fn rest(&mut self, rest_ns: u64) {
        self.layer.rest(rest_ns);
    }

    fn discard(
        &mut self,
        (offset, length): (u64, u64),
        at: MomentOf<L>,
    ) -> Result<(std::ops::Range<u64>, MomentOf<L>), RunError> {
        let pages = self.requests.covered(offset, length);
        let mut done = at;
        for page in pages.clone() {
            let noted = self.layer.discard(LogicalPage(page), at)?;
            done = self.layer.timing().later(done, noted);
        }
        Ok((pages.start.into()..pages.end.into(), done))
    }

    fn flush(&mut self, at: MomentOf<L>) -> Result<MomentOf<L>, RunError> {
        Ok(self.layer.flush(at)?)
    }

    fn account(&self) -> Account {
        Account { cover: Some(self.cover), ..account_in_pages(&self.layer) }
    }

    fn stored(&self) -> Stored {
        let (tally, free_blocks) = (self.layer.programmed(), Some(self.layer.free_blocks()));
        Stored { tally, unit_bytes: self.page_bytes, free_blocks }
    }
}
