//! The options of a cache in SLC mode.

use crate::device::nand::Geometry;
use crate::expression::{Choice, ExpressionError, OptionKind, Settings, Values, words};

pub(crate) const SLC_CACHE: OptionKind = OptionKind {
    name: "slc-cache",
    values: Values::Choice(words::<SlcCacheKind>),
    default: "",
    about: "erase blocks in SLC mode, to which hosts write first; needs cells= of nand (not set: none)",
};
pub(crate) const SLC_SHARE: OptionKind = OptionKind {
    name: "slc-share",
    values: Values::Share(0.0001, 0.9),
    default: "5%",
    about: "the share of the erase blocks that are in SLC mode at most; each holds a page for each word line",
};
pub(crate) const SLC_FULL: OptionKind = OptionKind {
    name: "slc-full",
    values: Values::Choice(words::<WhenFull>),
    default: "bypass",
    about: "host writes when the cache is full",
};

/// The options that need `slc-cache`.
const NEED_CACHE: [&str; 2] = ["slc-share", "slc-full"];

/// The words of `slc-cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlcCacheKind {
    Static,
    Dynamic,
}

impl Choice for SlcCacheKind {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("static", SlcCacheKind::Static, "blocks that are always in SLC mode, taken from the spare space"),
        ("dynamic", SlcCacheKind::Dynamic, "erased blocks beyond those that collection keeps, given back when folded"),
    ];
}

/// The words of `slc-full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhenFull {
    Bypass,
    Fold,
}

impl Choice for WhenFull {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("bypass", WhenFull::Bypass, "go to blocks of all bits"),
        ("fold", WhenFull::Fold, "wait until a block is folded, and go to the cache"),
    ];
}

/// The parsed options of a cache in SLC mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlcSettings {
    /// True if its blocks are always the same.
    pub is_static: bool,
    /// The most blocks in SLC mode.
    pub most_blocks: u32,
    /// True if host writes wait for a fold when the cache is full.
    pub folds_when_full: bool,
}

impl SlcSettings {
    /// The blocks of a static cache: the first of the drive.
    pub fn fixed_blocks(&self) -> u32 {
        if self.is_static { self.most_blocks } else { 0 }
    }

    /// Reads the options for a drive of this geometry, whose copies may go to the blocks of hosts; `None` without a cache. Errors point at the wrong option.
    pub(super) fn read(
        settings: &Settings,
        geometry: &Geometry,
        shares_frontiers: bool,
    ) -> Result<Option<SlcSettings>, ExpressionError> {
        if !settings.is_set("slc-cache") {
            if let Some(name) = NEED_CACHE.into_iter().find(|name| settings.is_given(name)) {
                let message = format!("{name} has no effect without slc-cache");
                return Err(settings.error(name, message, "add slc-cache=dynamic, or remove it".to_string()));
            }
            return Ok(None);
        }
        let refuse = |message: &str, help: &str| Err(settings.error("slc-cache", message.into(), help.into()));
        match geometry.cell_bits {
            0 => return refuse("the flash does not say how many bits its cells have", "add cells=tlc behind nand:"),
            1 => return refuse("the cells of the flash have one bit: all of it is SLC", "remove slc-cache"),
            _ => {}
        }
        if shares_frontiers {
            return refuse("copies do not go to SLC blocks, and share no blocks with hosts", "remove frontiers=shared");
        }
        if settings.is_set("pace") {
            return refuse("a pace keeps a level of free pages, which SLC mode changes", "remove pace, or slc-cache");
        }
        let most_blocks = (f64::from(geometry.blocks) * settings.share("slc-share")) as u32;
        if most_blocks == 0 {
            let least = 100.0 / f64::from(geometry.blocks.max(1));
            let message = format!("of {} erase blocks, {} is none", geometry.blocks, settings.text("slc-share"));
            let help = format!("take at least slc-share={}%", (least * 1000.0).ceil() / 1000.0);
            return Err(settings.error("slc-share", message, help));
        }
        Ok(Some(SlcSettings {
            is_static: settings.choice::<SlcCacheKind>("slc-cache") == SlcCacheKind::Static,
            most_blocks,
            folds_when_full: settings.choice::<WhenFull>("slc-full") == WhenFull::Fold,
        }))
    }

    /// Checks that a static cache fits in the spare blocks that are neither open nor in reserve; returns those that are left.
    pub(super) fn check_room(
        cache: Option<&SlcSettings>,
        settings: &Settings,
        geometry: &Geometry,
        spare_blocks: u32,
    ) -> Result<u32, ExpressionError> {
        let fixed = cache.map_or(0, SlcSettings::fixed_blocks);
        if fixed <= spare_blocks {
            return Ok(spare_blocks - fixed);
        }
        let message = format!(
            "a static cache of {fixed} blocks is not to be had: {spare_blocks} are spare, and neither open nor in reserve"
        );
        let percent = (f64::from(spare_blocks) / f64::from(geometry.blocks) * 1e5).floor() / 1e3;
        let help = match percent > 0.0 {
            true => format!("take at most slc-share={percent}%, or a smaller export"),
            false => "take a smaller export, or slc-cache=dynamic".to_string(),
        };
        Err(settings.error("slc-share", message, help))
    }

    /// The options without effect, given the others.
    pub(super) fn meaningless(settings: &Settings) -> &'static [&'static str] {
        if settings.is_set("slc-cache") { &[] } else { &NEED_CACHE }
    }
}
