//! What maps addresses: translation layers on flash.
//!
//! A [`Translation`] is the inside of a drive. The replayer drives it with no lock and no dynamic call per page: it is
//! generic over the translation, which is generic over the flash's timing.

pub mod dftl;
mod drive;
pub mod fast;
mod free_blocks;
mod frontier;
mod layer;
pub mod page_level;
mod prefetch;
mod request;
mod segmented_lru;
pub mod superblock;
mod valid_pages;
mod victims;
pub mod zoned;

pub use drive::{Drive, account_in_pages};
pub use layer::FlashLayer;
pub use request::Requests;
pub use victims::VictimPolicy;

use crate::device::nand::{
    EraseBlock, Found, Geometry, LogicalPage, Nand, NandCounts, NandError, PhysicalPage, Timing,
};
use crate::label::{Cause, Content, Tally};
use crate::time::Time;

/// In a map: the page is nowhere, as it was never written or was discarded.
const NOWHERE: u32 = u32::MAX;

/// A logical page that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageWrite {
    /// Which.
    pub page: LogicalPage,
    /// What it holds.
    pub content: Content,
    /// The host's placement hint.
    pub stream: u8,
    /// Stands for the bytes; a read returns it if the flash keeps versions.
    pub stamp: u32,
}

/// Why a translation layer cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// The flash refused: a bug of the layer, as it must not ask for what flash cannot do.
    #[error("the translation layer misused its flash: {0}")]
    Flash(#[from] NandError),
    /// So many blocks are worn out that the rest cannot hold what is exported.
    #[error(
        "the drive is worn out: {retired} of its {blocks} blocks have reached their endurance of {endurance} erases, and the rest cannot hold what it exports"
    )]
    WornOut {
        /// Blocks out of use.
        retired: u32,
        /// Blocks of the drive.
        blocks: u32,
        /// Erases a block stands.
        endurance: u32,
    },
}

impl TranslationError {
    /// So many blocks of this flash are out of use that the layer cannot go on.
    fn worn_out<T: Timing>(nand: &Nand<T>, retired: u32) -> TranslationError {
        TranslationError::WornOut { retired, blocks: nand.geometry().blocks, endurance: nand.endurance() }
    }
}

/// A translation layer on flash: the inside of a drive.
///
/// Pages are logical pages of the flash's page size, from 0 to [`Translation::exported_pages`]; asking beyond is a bug
/// of the caller and panics.
pub trait Translation: Sized {
    /// Whether times mean anything.
    const TIMED: bool;

    /// The station's name in a path and in the ledger.
    fn name(&self) -> &'static str;

    /// Writes a page, and says when it is on flash.
    fn write(&mut self, write: PageWrite, at: Time) -> Result<Time, TranslationError>;

    /// Reads a page: its stamp, and when it is there. A page that was never written, or was discarded, has no stamp
    /// and costs nothing.
    fn read(&mut self, page: LogicalPage, at: Time) -> Result<(Option<u32>, Time), TranslationError>;

    /// Says that a page is no longer needed. Answers when that is noted: a layer with its map on flash may have to fetch
    /// it first. What is noted in RAM alone is forgotten in a power cut, and an older version may come back.
    fn discard(&mut self, page: LogicalPage, at: Time) -> Result<Time, TranslationError>;

    /// Nothing is asked for from `from` until `until`: what the layer does in that time disturbs no one. A layer
    /// without background work does nothing.
    fn idle(&mut self, _from: Time, _until: Time) -> Result<(), TranslationError> {
        Ok(())
    }

    /// `page` will be asked for soon: brings what is known of it into the processor's cache. Changes nothing.
    fn prefetch(&self, page: LogicalPage);

    /// Pages that can be written.
    fn exported_pages(&self) -> u64;

    /// Pages it asked its flash to program, by cause and content: its own count, which the flash's must equal.
    fn sent(&self) -> &Tally;

    /// The flash below.
    fn flash(&self) -> Flash<'_>;

    /// Spare pages over exported pages, as collection finds them: without the reserve, and without what open blocks
    /// still have to take.
    fn effective_overprovisioning(&self) -> f64;

    /// Bytes of mapping that a real drive would hold in RAM.
    fn mapping_ram_bytes(&self) -> u64;

    /// What the layer does beyond programs, reads and erases, by name, since the drive was new: merges by kind, hits and
    /// misses of a table.
    fn events(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The drive after a cut of power and its return: RAM is lost, and the mapping is rebuilt from the spare areas of the
    /// flash, which must keep versions. Reading them is neither timed nor counted, writes that it takes are.
    ///
    /// Every page returns the newest write that was answered; one that was not is there or is not. A discard may be
    /// forgotten: the page then returns an earlier write to it.
    fn after_power_cut(self) -> Result<Self, TranslationError>;
}

/// What can be seen of the flash under a translation layer.
#[derive(Debug, Clone, Copy)]
pub struct Flash<'a> {
    /// Its shape.
    pub geometry: &'a Geometry,
    /// What it has done since it was new.
    pub counts: &'a NandCounts,
    /// How often each block has been erased.
    pub erase_counts: &'a [u32],
    /// How often a block can be erased.
    pub endurance: u32,
    /// How many pages of each block are programmed now.
    pub programmed_pages: &'a [u32],
}

impl<'a> Flash<'a> {
    /// What can be seen of `nand`.
    pub fn of<T: Timing>(nand: &'a Nand<T>) -> Flash<'a> {
        Flash {
            geometry: nand.geometry(),
            counts: nand.counts(),
            erase_counts: nand.erase_counts(),
            endurance: nand.endurance(),
            programmed_pages: nand.programmed_pages(),
        }
    }
}

/// Where the newest version of each of so many logical pages is, as the spare areas tell: the copy, if it is on flash
/// twice, so that a collection that a power cut interrupted goes on where it was.
fn newest_versions<T: Timing>(nand: &Nand<T>, pages: u64) -> Vec<u32> {
    let mut newest = vec![((0, 0), NOWHERE); pages as usize];
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

/// Reads the newest version of `page` for the host, which the map says is at `from`.
#[inline]
fn read_newest<T: Timing>(
    nand: &mut Nand<T>,
    page: LogicalPage,
    from: PhysicalPage,
    at: Time,
) -> Result<(Option<u32>, Time), TranslationError> {
    let (spare, stamp, done) = nand.read(from, Cause::HostWrite, at)?;
    assert_eq!(spare.logical_page(), page, "the map and the spare area name the same page");
    Ok((Some(stamp), done))
}

/// Bits that tell so many values (at least 1) apart.
fn bits_for(values: u64) -> u64 {
    u64::from(u64::BITS - (values - 1).leading_zeros())
}
