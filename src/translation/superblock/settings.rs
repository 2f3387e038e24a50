//! The options of `superblock`.

use super::SuperblockFtl;
use crate::device::nand::{Geometry, Nand, Timing};
use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};
use crate::translation::buffer::{BUFFER, BUFFER_POLICY};
use crate::translation::exported::{EXPORT, Exported, OP};
use crate::translation::page_level::settings::RESERVE;
use crate::translation::{BufferSettings, FlashLayer};

/// The station `superblock`.
///
/// The paper's abstract fixes the scheme, not its numbers; they are options. The three-level map with groups of eight
/// fits the spare area of a 2 KiB page: eight 2-byte entries on each level take 48 of its 64 bytes. The size of a
/// superblock follows from the spare space: a superblock without a spare block must take one from another before it can
/// be written, at the cost of compacting both, so there are at most half as many superblocks as spare blocks.
pub static KIND: Kind = Kind {
    name: "superblock",
    about: "neighbouring logical blocks share physical blocks, in which any page goes anywhere (Superblock FTL, EMSOFT '06)",
    options: &[
        OptionKind {
            name: "blocks",
            values: Values::Count(1, 4096),
            default: "",
            about: "logical blocks of a superblock, and its D-blocks (data) (not set: a power of two that leaves two spare blocks to each superblock)",
        },
        OptionKind {
            name: "updates",
            values: Values::Count(1, 4096),
            default: "8",
            about: "additional blocks of a superblock, U-blocks (updates), if there are spare ones",
        },
        OptionKind {
            name: "group",
            values: Values::Count(1, 4096),
            default: "8",
            about: "pages whose map entries are in one spare area, and are cached together",
        },
        OptionKind {
            name: "levels",
            values: Values::Count(1, 8),
            default: "3",
            about: "levels of the map: spare areas read on a miss",
        },
        OptionKind {
            name: "cache",
            values: Values::Count(1, 1 << 30),
            default: "8192",
            about: "groups of map entries cached in RAM; the least recently used is evicted",
        },
        EXPORT,
        OP,
        RESERVE,
        BUFFER,
        BUFFER_POLICY,
    ],
};

/// The parsed options of `superblock`.
#[derive(Debug, Clone)]
pub struct SuperblockSettings {
    /// Superblocks of the drive.
    pub superblocks: u32,
    /// Logical blocks of each.
    pub blocks: u32,
    /// U-blocks of each.
    pub updates: u32,
    /// Pages of a map group.
    pub group: u32,
    /// Levels of the map: spare areas read on a miss.
    pub levels: u32,
    /// Groups cached in RAM.
    pub cache: u32,
    /// Pages offered to the host.
    pub exported_pages: u64,
    /// Erased blocks reserved for copies.
    pub reserve: u32,
    /// The write buffer, if there is one.
    pub buffer: Option<BufferSettings>,
    /// The term with all option values.
    pub written_out: String,
}

impl SuperblockSettings {
    /// Parses a term for a drive of this geometry. Errors point at the wrong option.
    pub fn read(term: &Term, geometry: &Geometry) -> Result<SuperblockSettings, ExpressionError> {
        let mut settings = term.settle(&KIND)?;
        let buffer = BufferSettings::read(&settings, geometry)?;
        if geometry.pages_per_program > 1 && !buffer.is_some_and(|buffer| buffer.is_protected) {
            let message = "each superblock has an open page of flash, which a power cut would take".to_string();
            let help = "add buffer=32M, whose capacitors keep them, or remove unit= behind nand".to_string();
            return Err(term.error(term.span.clone(), message, help));
        }
        let capacity = Exported::read(&settings)?;
        let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let exported = capacity.count(geometry.blocks.into(), 1, block_bytes).min(geometry.blocks.into()) as u32;
        if !settings.is_set("blocks") {
            let spare = (geometry.blocks - exported).max(1);
            let fitting = (2 * exported).div_ceil(spare).next_power_of_two().clamp(1, exported.clamp(1, 4096));
            settings.set_default("blocks", &fitting.to_string());
        }
        let count = |name: &str| settings.count(name) as u32;
        let (blocks, reserve) = (count("blocks"), count("reserve"));
        let superblock_bytes = u64::from(blocks) * block_bytes;
        let superblocks = capacity.count(geometry.blocks.into(), blocks.into(), superblock_bytes);
        let spare = u64::from(geometry.blocks).saturating_sub(superblocks * u64::from(blocks)) as u32;
        if superblocks == 0 {
            let message =
                format!("the drive is too small: it exports less than a superblock, which has {blocks} blocks");
            let help = format!("take at most blocks={exported}");
            return Err(settings.error("blocks", message, help));
        }
        if spare <= reserve {
            let message = format!(
                "the drive is too small for its reserve: {spare} blocks are spare, and {reserve} are kept for copies"
            );
            let bytes = superblocks * superblock_bytes;
            let help = capacity.help_for_spare_blocks(&settings, geometry, bytes, reserve + 1);
            let option = if settings.is_given("op") { "op" } else { "export" };
            return Err(settings.error(option, message, help));
        }
        // Those that leave spare blocks are fewer than the blocks of the drive.
        let superblocks = superblocks as u32;
        let exported_pages = u64::from(superblocks * blocks) * u64::from(geometry.pages_per_block);
        let group = count("group");
        let export = settings.is_given("op").then_some("export");
        let meaningless: Vec<&str> = export.into_iter().chain(BufferSettings::meaningless(&settings)).collect();
        Ok(SuperblockSettings {
            superblocks,
            blocks,
            updates: count("updates"),
            group,
            levels: count("levels"),
            cache: settings.count("cache").min(exported_pages.div_ceil(u64::from(group))) as u32,
            exported_pages,
            reserve,
            buffer,
            written_out: settings.written_out(&meaningless),
        })
    }
}

impl FlashLayer for SuperblockSettings {
    type On<T: Timing + Send + 'static> = SuperblockFtl<T>;

    fn read(term: &Term, geometry: &Geometry) -> Result<SuperblockSettings, ExpressionError> {
        SuperblockSettings::read(term, geometry)
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

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, _seed: u64) -> SuperblockFtl<T> {
        SuperblockFtl::new(flash, self)
    }
}
