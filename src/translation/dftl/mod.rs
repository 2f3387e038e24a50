//! DFTL: a page-level translation layer with its map on flash and recently used entries in RAM (Gupta, Kim and
//! Urgaonkar, ASPLOS '09).
//!
//! It is [`PageLevel`] with a [`CachedMap`]. Translation pages are written to blocks of their own and collected like
//! all others; collection updates the entries of moved pages in the cached table, or, one translation page at a time,
//! on flash.

mod cached_map;

pub use cached_map::CachedMap;

use super::buffer::{BUFFER, BUFFER_POLICY};
use super::exported::{EXPORT, OP};
use super::page_level::settings::{
    AHEAD, BACKGROUND, D, FRONTIERS, Frontiers, HINTS, PACE, RESERVE, SCOPE, STREAMS, VICTIM, WEAR, WEAR_GAP,
};
use super::page_level::slc_settings::{SLC_CACHE, SLC_FULL, SLC_SHARE};
use super::page_level::{PageLevel, PageSettings, ReadVictim, VICTIMS};
use super::{BufferSettings, FlashLayer};
use crate::device::nand::{Geometry, Nand, Timing};
use crate::expression::{ExpressionError, Kind, OptionKind, Row, Term, Values};

/// The station `dftl`. Values that the paper leaves open are options: the protected share of the table (the paper names
/// segmented LRU without a split), and the size of an entry.
pub static KIND: Kind = Kind {
    name: "dftl",
    about: "page-level translation with its map on flash and recently used entries in RAM (DFTL, ASPLOS '09)",
    options: &[
        OptionKind {
            name: "table",
            values: Values::Count(1, 1 << 30),
            default: "65536",
            about: "entries of the cached mapping table; one for each exported page holds the whole map",
        },
        OptionKind {
            name: "protected",
            values: Values::Share(0.0, 0.99),
            default: "50%",
            about: "the share of the table for entries that were used again (segmented LRU); 0% is plain LRU",
        },
        OptionKind {
            name: "entry",
            values: Values::Count(4, 8),
            default: "4",
            about: "bytes of an entry in a translation page: 512 entries of 4 bytes fill one of 2 KiB",
        },
        EXPORT,
        OP,
        VICTIM,
        D,
        FRONTIERS,
        STREAMS,
        HINTS,
        SCOPE,
        RESERVE,
        AHEAD,
        PACE,
        WEAR,
        WEAR_GAP,
        BACKGROUND,
        SLC_CACHE,
        SLC_SHARE,
        SLC_FULL,
        BUFFER,
        BUFFER_POLICY,
    ],
};

/// The parsed options of `dftl`.
#[derive(Debug, Clone)]
pub struct DftlSettings {
    /// The options shared with `page`.
    pub page: PageSettings,
    /// Entries of the cached mapping table.
    pub table_entries: u32,
    /// Protected entries of the table: those that were used again.
    pub protected_entries: u32,
    /// Entries in a translation page.
    pub entries_per_page: u32,
}

impl DftlSettings {
    /// Parses a term for a drive of this geometry. Errors point at the wrong option.
    pub fn read(term: &Term, geometry: &Geometry) -> Result<DftlSettings, ExpressionError> {
        DftlSettings::read_with(term, geometry, &KIND, VICTIMS)
    }

    /// Parses a term with the caller's victim policies, as [`PageSettings::read_with`] does.
    pub fn read_with(
        term: &Term,
        geometry: &Geometry,
        kind: &'static Kind,
        victims: &[Row<ReadVictim>],
    ) -> Result<DftlSettings, ExpressionError> {
        let settings = term.settle(kind)?;
        let entries_per_page = geometry.page_bytes / settings.count("entry") as u32;
        // Besides the translation pages: their open blocks, and one block that collection may invalidate before it can
        // free any.
        let frontiers = settings.choice::<Frontiers>("frontiers").count();
        let open = (u64::from(geometry.units()) * frontiers + 1) * u64::from(geometry.pages_per_block);
        let beside = |exported: u64| exported.div_ceil(u64::from(entries_per_page)) + open;
        let page = PageSettings::of(&settings, geometry, victims, beside)?;
        let table_entries = settings.count("table").min(page.exported_pages) as u32;
        let protected_entries = (f64::from(table_entries) * settings.share("protected")) as u32;
        Ok(DftlSettings {
            protected_entries: protected_entries.min(table_entries - 1),
            page,
            table_entries,
            entries_per_page,
        })
    }
}

impl FlashLayer for DftlSettings {
    type On<T: Timing + Send + 'static> = PageLevel<T, CachedMap>;

    fn read(term: &Term, geometry: &Geometry) -> Result<DftlSettings, ExpressionError> {
        DftlSettings::read(term, geometry)
    }

    fn written_out(&self) -> &str {
        &self.page.written_out
    }

    fn exported_pages(&self) -> u64 {
        self.page.exported_pages
    }

    fn buffer(&self) -> Option<BufferSettings> {
        self.page.buffer
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> PageLevel<T, CachedMap> {
        let table = (self.table_entries, self.protected_entries);
        let map = CachedMap::new(self.page.exported_pages, self.entries_per_page, table);
        PageLevel::new(flash, &self.page, map, seed)
    }
}
