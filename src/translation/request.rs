//! Splits requests of bytes into pages of a translation layer.
//!
//! A host counts in bytes or 4 KiB blocks; a drive's page has 2 to 16 KiB. For a write that covers a page in part, the
//! drive reads the old page first and programs it whole. Where several pages are a page of flash, a request that reads ends
//! with [`Translation::end_reads`], and one that writes to a drive without a buffer with a flush.

use super::{MomentOf, PageWrite, Translation, TranslationError};
use crate::device::nand::{LogicalPage, Timing};
use crate::label::Provenance;

/// Splits requests into the pages of a drive.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    page_bits: u32,
    /// True if several pages are a page of flash.
    joins: bool,
    /// True if a write ends with a flush.
    flushes: bool,
}

/// The end of a request that reads, of whose pages some may be read together. Apart, since most drives have none.
#[cold]
#[inline(never)]
fn end_reads<T: Translation>(drive: &mut T, done: MomentOf<T>, at: MomentOf<T>) -> MomentOf<T> {
    let there = drive.end_reads(at);
    drive.timing().later(done, there)
}

/// The end of a request that writes to pages of flash which may wait for more.
#[cold]
#[inline(never)]
fn end_write<T: Translation>(
    drive: &mut T,
    done: MomentOf<T>,
    at: MomentOf<T>,
) -> Result<MomentOf<T>, TranslationError> {
    let flushed = drive.flush(at)?;
    Ok(drive.timing().later(done, flushed))
}

impl Requests {
    /// For the pages of a drive.
    pub fn of<T: Translation>(drive: &T) -> Requests {
        let geometry = *drive.flash().geometry;
        assert!(geometry.page_bytes.is_power_of_two());
        let joins = geometry.pages_per_program > 1;
        Requests { page_bits: geometry.page_bytes.trailing_zeros(), joins, flushes: joins && drive.writes_through() }
    }

    /// The pages that a request touches.
    #[inline]
    pub fn pages(&self, offset: u64, length: u64) -> std::ops::Range<u32> {
        let first = offset >> self.page_bits;
        let end = (offset + length + (1 << self.page_bits) - 1) >> self.page_bits;
        first as u32..end as u32
    }

    /// The page that holds the byte at `offset`.
    #[inline]
    pub fn first_page(&self, offset: u64) -> LogicalPage {
        LogicalPage((offset >> self.page_bits) as u32)
    }

    /// The page of a request that touches one, and the whole of it.
    #[inline]
    fn whole_page(&self, offset: u64, length: u64) -> Option<LogicalPage> {
        let page_bytes = 1u64 << self.page_bits;
        (length == page_bytes && offset & (page_bytes - 1) == 0).then(|| self.first_page(offset))
    }

    /// The number of pages that a request touches.
    #[inline]
    pub fn count(&self, offset: u64, length: u64) -> u64 {
        match self.whole_page(offset, length) {
            Some(_) => 1,
            None => self.pages(offset, length).len() as u64,
        }
    }

    /// Writes `length` bytes at `offset`; returns the time at which the last page is on flash. A page that is covered in
    /// part takes the provenance of the write.
    #[inline(always)]
    pub fn write<T: Translation>(
        &self,
        drive: &mut T,
        (offset, length): (u64, u64),
        (provenance, stream, stamp): (Provenance, u8, u32),
        at: MomentOf<T>,
    ) -> Result<MomentOf<T>, TranslationError> {
        match self.whole_page(offset, length).filter(|_| !self.flushes) {
            Some(page) => {
                let written = drive.write(PageWrite { page, provenance, stream, stamp }, at)?;
                Ok(drive.timing().later(at, written))
            }
            None => self.write_pages(drive, (offset, length), (provenance, stream, stamp), at),
        }
    }

    /// [`Requests::write`] of any pages. Apart, since most requests of a simulation are whole pages, and the split costs a
    /// sixth of such a write.
    #[inline(never)]
    fn write_pages<T: Translation>(
        &self,
        drive: &mut T,
        (offset, length): (u64, u64),
        (provenance, stream, stamp): (Provenance, u8, u32),
        at: MomentOf<T>,
    ) -> Result<MomentOf<T>, TranslationError> {
        let whole = (1u64 << self.page_bits) - 1;
        let mut done = at;
        let pages = self.pages(offset, length);
        for page in pages.clone() {
            let cut_head = page == pages.start && offset & whole != 0;
            let cut_tail = page + 1 == pages.end && (offset + length) & whole != 0;
            let mut begin = at;
            if cut_head || cut_tail {
                (_, begin) = drive.read(LogicalPage(page), at)?;
                if self.joins {
                    begin = end_reads(drive, begin, at);
                }
            }
            let write = PageWrite { page: LogicalPage(page), provenance, stream, stamp };
            let written = drive.write(write, begin)?;
            done = drive.timing().later(done, written);
        }
        if self.flushes {
            done = end_write(drive, done, at)?;
        }
        Ok(done)
    }

    /// Reads `length` bytes at `offset`; returns the completion time. `see` gets each page's stamp.
    #[inline]
    pub fn read<T: Translation>(
        &self,
        drive: &mut T,
        (offset, length): (u64, u64),
        at: MomentOf<T>,
        mut see: impl FnMut(LogicalPage, Option<u32>),
    ) -> Result<MomentOf<T>, TranslationError> {
        let mut done = at;
        for page in self.pages(offset, length) {
            let (stamp, there) = drive.read(LogicalPage(page), at)?;
            see(LogicalPage(page), stamp);
            done = drive.timing().later(done, there);
        }
        if self.joins {
            done = end_reads(drive, done, at);
        }
        Ok(done)
    }

    /// The pages that a discard covers completely: only those can be dropped.
    pub fn covered(&self, offset: u64, length: u64) -> std::ops::Range<u32> {
        let first = (offset + (1 << self.page_bits) - 1) >> self.page_bits;
        let end = (offset + length) >> self.page_bits;
        first as u32..end.max(first) as u32
    }
}
