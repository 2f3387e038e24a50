//! DFTL: a page-level translation layer whose map is on flash, and in RAM only what was used of late (Gupta, Kim and
//! Urgaonkar, ASPLOS '09).
//!
//! It is [`PageLevel`] with a [`CachedMap`]. Translation pages are written to blocks of their own and collected as all
//! blocks are; collection brings the entries of what it moved up to date in the cached table, or, a translation page at a
//! time, on flash.

mod cached_map;

pub use cached_map::CachedMap;

use super::FlashLayer;
use super::page_level::settings::{
    BACKGROUND, D, EXPORT, FRONTIERS, Frontiers, HINTS, OP, RESERVE, STREAMS, VICTIM, WEAR, WEAR_GAP,
};
use super::page_level::{PageLevel, PageSettings};
use crate::device::nand::{Geometry, Nand, Timing};
use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};

/// The station `dftl`. What the paper leaves open is an option: the share of the table that is protected (it names
/// segmented LRU and no split), and what an entry takes.
pub static KIND: Kind = Kind {
    name: "dftl",
    about: "page-level translation with its map on flash and the entries used of late in RAM (DFTL, ASPLOS '09)",
    options: &[
        OptionKind {
            name: "table",
            values: Values::Count(1, 1 << 30),
            default: "65536",
            about: "entries of the cached mapping table; as many as there are exported pages hold the whole map",
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
        RESERVE,
        WEAR,
        WEAR_GAP,
        BACKGROUND,
    ],
};

/// The options of `dftl`, read.
#[derive(Debug, Clone)]
pub struct DftlSettings {
    /// Those it shares with `page`.
    pub page: PageSettings,
    /// Entries of the cached mapping table.
    pub table_entries: u32,
    /// Of them, those for entries that were used again.
    pub protected_entries: u32,
    /// Entries of a translation page.
    pub entries_per_page: u32,
}

impl DftlSettings {
    /// Reads a term for a drive of this shape. Errors point at the option that is wrong.
    pub fn read(term: &Term, geometry: &Geometry) -> Result<DftlSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let entries_per_page = geometry.page_bytes / settings.count("entry") as u32;
        // Beside the translation pages themselves: their open blocks, and a block's worth that collection may make
        // invalid before it can free any.
        let frontiers = settings.choice::<Frontiers>("frontiers").count();
        let open = (u64::from(geometry.units()) * frontiers + 1) * u64::from(geometry.pages_per_block);
        let beside = |exported: u64| exported.div_ceil(u64::from(entries_per_page)) + open;
        let page = PageSettings::of(&settings, geometry, beside)?;
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

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> PageLevel<T, CachedMap> {
        let table = (self.table_entries, self.protected_entries);
        let map = CachedMap::new(self.page.exported_pages, self.entries_per_page, table);
        PageLevel::new(flash, &self.page, map, seed)
    }
}
