//! The options of `fast`.

use super::Fast;
use crate::device::nand::{Geometry, Nand, Timing};
use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};
use crate::translation::buffer::{BUFFER, BUFFER_POLICY};
use crate::translation::exported::{EXPORT, Exported, OP};
use crate::translation::{BufferSettings, FlashLayer};

/// The station `fast`. The paper leaves the number of log blocks open; the default is all spare blocks.
pub static KIND: Kind = Kind {
    name: "fast",
    about: "block-mapped data, and log blocks for updates, shared by all data (FAST, ACM TECS '07)",
    options: &[
        OptionKind {
            name: "random-logs",
            values: Values::Count(1, 1 << 24),
            default: "",
            about: "log blocks for updates in any order (not set: all spare blocks except the sequential log block and a merge target)",
        },
        EXPORT,
        OP,
        BUFFER,
        BUFFER_POLICY,
    ],
};

/// Spare blocks beyond the random log blocks: the sequential log block, and the target of a merge.
const MERGE_BLOCKS: u32 = 2;

/// The parsed options of `fast`.
#[derive(Debug, Clone)]
pub struct FastSettings {
    /// Logical blocks offered to the host.
    pub logical_blocks: u32,
    /// Log blocks for updates in any order.
    pub random_logs: u32,
    /// Pages offered to the host.
    pub exported_pages: u64,
    /// The write buffer, if there is one.
    pub buffer: Option<BufferSettings>,
    /// The term with all option values.
    pub written_out: String,
}

impl FastSettings {
    /// Parses a term for a drive of this geometry. Errors point at the wrong option.
    pub fn read(term: &Term, geometry: &Geometry) -> Result<FastSettings, ExpressionError> {
        let mut settings = term.settle(&KIND)?;
        if geometry.pages_per_program > 1 {
            let message = format!(
                "fast maps blocks, and programs each page at its place in them: it has no unit smaller than a page of {} bytes",
                geometry.program_bytes()
            );
            let help = "remove unit= behind nand, or take page, dftl or superblock".to_string();
            return Err(term.error(term.span.clone(), message, help));
        }
        let buffer = BufferSettings::read(&settings, geometry)?;
        let exported = Exported::read(&settings)?;
        let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let logical = exported.count(geometry.blocks.into(), 1, block_bytes);
        let logical_blocks = logical.min(geometry.blocks.into()) as u32;
        let spare = geometry.blocks - logical_blocks;
        let wanted = if settings.is_set("random-logs") { settings.count("random-logs") as u32 } else { 1 };
        if logical_blocks == 0 || spare < wanted + MERGE_BLOCKS {
            let message = format!(
                "the drive is too small for its log blocks: {spare} blocks are spare, and {wanted} random log blocks, a sequential one and one to merge into are asked for"
            );
            let help =
                exported.help_for_spare_blocks(&settings, geometry, logical * block_bytes, wanted + MERGE_BLOCKS);
            let option = ["random-logs", "op"].into_iter().find(|option| settings.is_given(option));
            return Err(settings.error(option.unwrap_or("export"), message, help));
        }
        let random_logs = if settings.is_set("random-logs") { wanted } else { spare - MERGE_BLOCKS };
        settings.set_default("random-logs", &random_logs.to_string());
        let export = settings.is_given("op").then_some("export");
        let meaningless: Vec<&str> = export.into_iter().chain(BufferSettings::meaningless(&settings)).collect();
        Ok(FastSettings {
            logical_blocks,
            random_logs,
            exported_pages: u64::from(logical_blocks) * u64::from(geometry.pages_per_block),
            buffer,
            written_out: settings.written_out(&meaningless),
        })
    }

    /// The minimum number of usable blocks.
    pub fn needed_blocks(&self) -> u32 {
        self.logical_blocks + self.random_logs + MERGE_BLOCKS
    }
}

impl FlashLayer for FastSettings {
    type On<T: Timing + Send + 'static> = Fast<T>;

    fn read(term: &Term, geometry: &Geometry) -> Result<FastSettings, ExpressionError> {
        FastSettings::read(term, geometry)
    }

    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn exported_pages(&self) -> u64 {
        self.exported_pages
    }

    fn buffer(&self) -> Option<BufferSettings> {
        self.buffer
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, _seed: u64) -> Fast<T> {
        Fast::new(flash, self)
    }
}
