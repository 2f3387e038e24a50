//! Address mapping: translation layers on flash, and dm-zoned on zones.
//!
//! A [`Translation`] is the inside of a drive. The replayer calls it without a lock and without a dynamic call per
//! page: it is generic over the translation, which is generic over the flash's timing.

mod buffer;
pub mod dftl;
mod drive;
mod exported;
pub mod fast;
pub mod fdp;
mod free_blocks;
mod frontier;
mod layer;
pub mod page_level;
mod request;
mod segmented_lru;
pub mod superblock;
mod valid_pages;
mod victim_policy;
mod victims;
pub mod zoned;

pub use buffer::{BufferCounts, BufferSettings, Buffered};
pub(crate) use drive::{Drive, account_in_pages};
pub(crate) use exported::Asked;
pub use layer::FlashLayer;
pub use request::Requests;
pub use victim_policy::{Candidate, VictimChooser, VictimPolicy, VictimSettings};

use crate::device::nand::errors::ErrorCounts;
use crate::device::nand::{
    EraseBlock, Found, Geometry, LogicalPage, ModesView, Nand, NandCounts, NandError, PhysicalPage, Timing,
};
use crate::device::{EnergyAccount, PlacementAccount};
use crate::label::{Provenance, Tally};
use crate::time::Time;

/// In a map: the page was never written, or was discarded.
const UNMAPPED: u32 = u32::MAX;

/// A write of a logical page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWrite {
    /// The page.
    pub page: LogicalPage,
    /// Its content and its origin.
    pub provenance: Provenance,
    /// The host's placement hint.
    pub stream: u8,
    /// A number that stands for the bytes; a read returns it if the flash keeps versions.
    pub stamp: u32,
}

/// The reason why a translation layer cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// The flash rejected an operation: a bug of the layer.
    #[error("the translation layer misused its flash: {0}")]
    Flash(#[from] NandError),
    /// Too many blocks are worn out to hold the exported pages.
    #[error(
        "the drive is worn out: {retired} of its {blocks} blocks have reached their endurance of {endurance} erases, and the rest cannot hold what it exports"
    )]
    WornOut {
        /// Blocks out of use.
        retired: u32,
        /// Blocks of the drive.
        blocks: u32,
        /// The maximum number of erases of a block.
        endurance: u32,
    },
    /// A page cannot be read: the correction of its errors has failed.
    #[error(
        "page {page} cannot be read: it has more wrong bits than can be corrected; what it held is lost until it is written again"
    )]
    Uncorrectable {
        /// The logical page. Of a request, all pages before it were served.
        page: u32,
    },
    /// The spare blocks are used up by bad ones.
    #[error(
        "the drive is read-only: {retired} of its {blocks} blocks are bad or worn out, and it had {spare} to spare; reads go on"
    )]
    ReadOnly {
        /// The logical page that was to be changed. Of a request, all pages before it were served.
        page: u32,
        /// Blocks out of use.
        retired: u32,
        /// Blocks of the drive.
        blocks: u32,
        /// Those that it could lose.
        spare: u32,
    },
    /// A victim policy of the caller chose blocks that free no space.
    #[error(
        "the victim policy freed no block in {collections} collections in a row: it must choose blocks with invalid pages"
    )]
    NothingFreed {
        /// Collections for one write.
        collections: u32,
    },
}

impl TranslationError {
    /// The error for `retired` blocks out of use.
    fn worn_out<T: Timing>(nand: &Nand<T>, retired: u32) -> TranslationError {
        TranslationError::WornOut { retired, blocks: nand.geometry().blocks, endurance: nand.endurance() }
    }

    /// The page at which a request was ended, if it was served up to there, and the drive goes on.
    pub fn page(&self) -> Option<LogicalPage> {
        match self {
            TranslationError::Uncorrectable { page } | TranslationError::ReadOnly { page, .. } => {
                Some(LogicalPage(*page))
            }
            _ => None,
        }
    }

    /// The same error of a request for `page`, for which a drive was asked to write another one.
    fn for_page(self, page: LogicalPage) -> TranslationError {
        match self {
            TranslationError::ReadOnly { retired, blocks, spare, .. } => {
                TranslationError::ReadOnly { page: page.0, retired, blocks, spare }
            }
            other => other,
        }
    }
}

/// The end of an operation in a layer, as far as its timing model knows it.
pub type MomentOf<L> = <<L as Translation>::Timing as Timing>::Moment;

/// A translation layer on flash: the inside of a drive.
///
/// A layer is told when a request is issued, and returns when it is done; both are moments of the timing model of its flash,
/// which may not know them yet. So a layer decides by the order of requests, and never by a time.
///
/// Pages are logical pages of the flash's page size, from 0 to [`Translation::exported_pages`]; asking beyond is a bug
/// of the caller and panics.
pub trait Translation: Sized {
    /// The timing model of its flash.
    type Timing: Timing;

    /// The timing model.
    fn timing(&mut self) -> &mut Self::Timing;

    /// The station's name in a path and in the ledger.
    fn name(&self) -> &'static str;

    /// Writes a page; returns the time at which it is on flash.
    fn write(&mut self, write: PageWrite, at: MomentOf<Self>) -> Result<MomentOf<Self>, TranslationError>;

    /// Reads a page; returns its stamp and the completion time. A page that was never written, or was discarded, has no
    /// stamp and costs nothing. If several pages are a page of flash, those that are read one after the other may be read
    /// together: the end of the last such read is that of [`Translation::end_reads`].
    fn read(
        &mut self,
        page: LogicalPage,
        at: MomentOf<Self>,
    ) -> Result<(Option<u32>, MomentOf<Self>), TranslationError>;

    /// The end of the last read that failed with [`TranslationError::Uncorrectable`].
    fn failed_read(&mut self) -> Option<MomentOf<Self>> {
        None
    }

    /// The drive lies without power for so long. A layer on flash without errors is not changed by it.
    fn rest(&mut self, _rest_ns: u64) {}

    /// Ends a request that reads: returns the end of what is still to be read together, or else `at`.
    fn end_reads(&mut self, at: MomentOf<Self>) -> MomentOf<Self> {
        at
    }

    /// True if a write is on flash when it is done. If several pages are a page of flash, [`Translation::flush`] follows
    /// the last write of a request.
    fn writes_through(&self) -> bool {
        true
    }

    /// Makes all answered writes durable; returns the completion time. A layer of whole pages of flash has nothing to do.
    fn flush(&mut self, at: MomentOf<Self>) -> Result<MomentOf<Self>, TranslationError> {
        Ok(at)
    }

    /// True if pages that were written before [`Translation::begin_epoch`] are durable before those that are written behind
    /// it, without a flush: the layer is a write buffer.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Begins another epoch, if the layer keeps order.
    fn begin_epoch(&mut self) {}

    /// True if pages are programmed in the order in which they were written, also if several are a page of flash: one page of
    /// flash is open at a time.
    fn programs_in_order(&self) -> bool {
        false
    }

    /// Discards a page; returns the completion time: a layer with its map on flash may have to read the map first. A
    /// discard noted in RAM alone is lost in a power cut, and an older version may return.
    fn discard(&mut self, page: LogicalPage, at: MomentOf<Self>) -> Result<MomentOf<Self>, TranslationError>;

    /// Uses the idle time from `from` until `until` for background work. A layer without background work does nothing.
    fn idle(&mut self, _from: Time, _until: Time) -> Result<(), TranslationError> {
        Ok(())
    }

    /// Prefetches the map entry of `page` into the processor's cache. Changes nothing.
    fn prefetch(&self, page: LogicalPage);

    /// Prefetches what a write of `page` touches through its map entry, which was prefetched before. Changes nothing.
    fn prefetch_old(&self, _page: LogicalPage) {}

    /// The number of pages offered to the host.
    fn exported_pages(&self) -> u64;

    /// Pages that the layer sent to its flash, by label: its own count, which must equal the flash's.
    fn sent(&self) -> &Tally;

    /// Pages that its flash has programmed since it was new, by label.
    fn programmed(&self) -> Tally {
        self.flash().counts.programmed
    }

    /// The counts of its write buffer, if it has one.
    fn buffer(&self) -> Option<BufferCounts> {
        None
    }

    /// The flash below.
    fn flash(&self) -> Flash<'_>;

    /// Erased blocks that it has not begun to write.
    fn free_blocks(&self) -> u64;

    /// The blocks that the drive can still lose; `None` if its blocks do not go bad.
    fn spare_blocks(&self) -> Option<u32> {
        None
    }

    /// Spare pages over exported pages, as collection finds them: without the reserve, and without the unwritten pages
    /// of open blocks.
    fn effective_overprovisioning(&self) -> f64;

    /// The bytes of RAM that the mapping takes in a real drive.
    fn mapping_ram_bytes(&self) -> u64;

    /// The placement by hints, if it has one: its state, and its counts since the drive was new.
    fn placement(&self) -> Option<PlacementAccount> {
        None
    }

    /// Requests from now on are issued at this time: for records of events alone.
    fn note_time(&mut self, _at: Time) {}

    /// Lets the handle of this placement identifier refer to an empty unit from now on; returns when that is done. A layer without
    /// placement has nothing to do.
    fn update_handle(&mut self, _identifier: u8, at: MomentOf<Self>) -> Result<MomentOf<Self>, TranslationError> {
        Ok(at)
    }

    /// Counters beyond programs, reads and erases, by name, since the drive was new: merges by kind, hits and misses of
    /// a table.
    fn events(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The drive after a power cut: RAM is lost, and the mapping is rebuilt from the spare areas of the flash, which
    /// must keep versions. The scan is neither timed nor counted; writes of the recovery are.
    ///
    /// Every page returns its newest acknowledged write; an unacknowledged one is there or not. A discard may be
    /// forgotten: the page then returns an earlier write.
    fn after_power_cut(self) -> Result<Self, TranslationError>;
}

/// A view of the flash below a translation layer.
#[derive(Debug, Clone)]
pub struct Flash<'a> {
    /// Its geometry.
    pub geometry: &'a Geometry,
    /// Its counts since it was new.
    pub counts: NandCounts,
    /// The number of erases of each block.
    pub erase_counts: &'a [u32],
    /// The maximum number of erases of a block.
    pub endurance: u32,
    /// The number of programmed pages of each block.
    pub programmed_pages: &'a [u32],
    /// The counts of the timing model, by the names of results.
    pub timing_events: Vec<(&'static str, u64)>,
    /// The modes of blocks, if cells have several bits.
    pub modes: Option<ModesView<'a>>,
    /// The counts of errors; `None` without errors.
    pub errors: Option<ErrorCounts>,
    /// Erases of each block before the flash was made.
    pub worn: u32,
    /// The energy of its operations, if that is asked for.
    pub energy: Option<EnergyAccount>,
}

impl<'a> Flash<'a> {
    /// The view of `nand`.
    pub fn of<T: Timing>(nand: &'a Nand<T>) -> Flash<'a> {
        Flash {
            geometry: nand.geometry(),
            counts: nand.counts(),
            erase_counts: nand.erase_counts(),
            endurance: nand.endurance(),
            programmed_pages: nand.programmed_pages(),
            timing_events: nand.timing_events(),
            modes: nand.modes(),
            errors: nand.error_counts(),
            worn: nand.worn(),
            energy: nand.energy(),
        }
    }
}

/// The physical page of the newest version of each of `pages` logical pages, from the spare areas. Of two equal
/// versions it is the copy, so that an interrupted collection continues where it was.
fn newest_versions<T: Timing>(nand: &Nand<T>, pages: u64) -> Vec<u32> {
    let mut newest = vec![((0, 0), UNMAPPED); pages as usize];
    for block in (0..nand.geometry().blocks).map(EraseBlock) {
        for Found { page, spare, sequence } in nand.found(block) {
            if spare.is_filler() {
                continue;
            }
            let known = &mut newest[spare.logical_page().0 as usize];
            if sequence > known.0 {
                *known = (sequence, page.0);
            }
        }
    }
    newest.into_iter().map(|(_, place)| place).collect()
}

/// Reads the newest version of `page`, which the map has at `from`.
#[inline]
fn read_newest<T: Timing>(
    nand: &mut Nand<T>,
    page: LogicalPage,
    from: PhysicalPage,
    at: T::Moment,
) -> Result<(Option<u32>, T::Moment), TranslationError> {
    let (spare, stamp, done) = nand.read_joined(from, at).map_err(|error| match error {
        NandError::Uncorrectable { .. } => TranslationError::Uncorrectable { page: page.0 },
        other => other.into(),
    })?;
    assert_eq!(spare.logical_page(), page, "the map and the spare area name the same page");
    Ok((Some(stamp), done))
}

/// Settles the pages of flash that were not complete at a power cut: capacitors keep them (`is_protected`), and they are
/// filled and programmed; otherwise they are lost.
fn settle_open_pages<T: Timing>(nand: &mut Nand<T>, is_protected: bool) -> Result<(), TranslationError> {
    if !is_protected {
        nand.lose_open_pages();
        return Ok(());
    }
    let at = nand.timing().instant(Time::ZERO);
    for block in (0..nand.geometry().blocks).map(EraseBlock) {
        while let Some(place) = nand.open_place(block) {
            nand.program_padding(place, at)?;
        }
    }
    Ok(())
}

/// The number of bits for `values` different values (at least 1).
fn bits_for(values: u64) -> u64 {
    u64::from(u64::BITS - (values - 1).leading_zeros())
}
