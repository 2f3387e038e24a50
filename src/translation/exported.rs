//! The capacity that a layer on flash exports: its options `export` and `op`.
//!
//! | written | exported | flash |
//! |---|---|---|
//! | `export=90%` | the share of the flash | `size=` of `nand` |
//! | `op=7%` | flash / 1.07 | `size=` of `nand` |
//! | `export=480G`, and `size=` of `nand` | 480G | `size=` |
//! | `export=480G,op=7%` | 480G | 480G x 1.07, in whole blocks on all planes |
//! | `export=480G` | 480G | as with the default share |
//!
//! `fast` and `superblock` map whole blocks, and round an exported size up to them.

use crate::device::nand::Geometry;
use crate::expression::{Capacity, ExpressionError, MOST_BYTES, OptionKind, Settings, Spanned, Term, Values};
use crate::units::{format_size, human_size, parse_share};

pub(crate) const EXPORT: OptionKind = OptionKind {
    name: "export",
    values: Values::Capacity(0.01, 0.999),
    default: "90%",
    about: "the exported capacity: a share of the raw pages, or a size such as 480G. With a size, op= gives the spare space beside it, and the size of nand follows",
};
pub(crate) const OP: OptionKind = OptionKind {
    name: "op",
    values: Values::Share(0.001, 99.0),
    default: "",
    about: "over-provisioning: spare pages over exported ones (not set: what export leaves)",
};

/// The exported capacity of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Exported {
    /// A share of the raw pages.
    Share(f64),
    /// Bytes, whatever the flash.
    Bytes(u64),
}

impl Exported {
    /// The capacity that `export` and `op` ask for.
    pub fn read(settings: &Settings) -> Result<Exported, ExpressionError> {
        match (settings.is_given("op"), settings.is_given("export"), settings.capacity("export")) {
            (_, _, Capacity::Bytes(bytes)) => Ok(Exported::Bytes(bytes)),
            (true, true, Capacity::Share(_)) => {
                let help = "op=7% exports raw / 1.07; export=90% exports 0.9 of raw: write one of them, or a size to export \
                            and the spare space beside it, such as export=480G,op=7%";
                Err(settings.error("op", "both export and op are written".to_string(), help.to_string()))
            }
            (true, false, _) => Ok(Exported::Share(1.0 / (1.0 + settings.share("op")))),
            (false, _, Capacity::Share(share)) => Ok(Exported::Share(share)),
        }
    }

    /// The exported number of units of `unit_bytes`, each of `per` of the flash's `total`: of a share as many as fit, of a
    /// size as many as hold it.
    pub fn count(self, total: u64, per: u64, unit_bytes: u64) -> u64 {
        match self {
            Exported::Share(share) => (total as f64 * share / per as f64) as u64,
            Exported::Bytes(bytes) => bytes.div_ceil(unit_bytes),
        }
    }

    /// The help for a drive that needs `spare_blocks` beside its `exported_bytes`.
    pub fn help_for_spare_blocks(
        self,
        settings: &Settings,
        geometry: &Geometry,
        exported_bytes: u64,
        spare_blocks: u32,
    ) -> String {
        if let Exported::Bytes(_) = self {
            return Exported::more_spare(settings, geometry, exported_bytes, spare_blocks.into());
        }
        let most = f64::from(geometry.blocks.saturating_sub(spare_blocks)) / f64::from(geometry.blocks.max(1));
        let percent = (most * 1000.0).floor() / 10.0;
        if percent >= 1.0 {
            format!("take a larger size, or export={percent}%")
        } else {
            "take a larger size".to_string()
        }
    }

    /// The help for a drive that exports a size, and needs `spare_blocks` beside it.
    pub fn more_spare(settings: &Settings, geometry: &Geometry, exported_bytes: u64, spare_blocks: u64) -> String {
        let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let spare_bytes = (spare_blocks + 1) * block_bytes;
        if settings.is_given("op") {
            let percent = (spare_bytes as f64 / exported_bytes.max(1) as f64 * 1000.0).ceil() / 10.0;
            return format!("take op={percent}%, or blocks of fewer pages (pages-per-block= behind nand)");
        }
        format!(
            "take size={} or more behind nand, or remove it and write op=",
            format_size(exported_bytes + spare_bytes)
        )
    }
}

/// A size to export and the spare space beside it, as a term asks for them before its layer is read: flash is made first.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The flash that both need, in bytes; before it is rounded up to whole blocks.
    pub raw_bytes: u64,
    /// True if `op` is written: the flash cannot have another size then.
    pub has_spare: bool,
    /// Both as written.
    pub written: String,
}

impl Asked {
    /// The flash that the term of a layer asks for; `None` if it exports no size, or if its values are wrong, which its layer says.
    pub fn of(layer: &Term) -> Option<Asked> {
        let value = |option: &OptionKind| -> Option<&Spanned> {
            let (_, value) = layer.options.iter().find(|(name, _)| name.text == option.name)?;
            value.as_ref().filter(|value| option.values.accepts(&value.text))
        };
        let (export, op) = (value(&EXPORT)?, value(&OP));
        let Capacity::Bytes(bytes) = Capacity::parse(&export.text)? else { return None };
        let spare = match op {
            Some(op) => parse_share(&op.text)?,
            // The share that is left by default.
            None => 1.0 / parse_share(EXPORT.default)? - 1.0,
        };
        let spare_bytes = (bytes as f64 * spare).round() as u64;
        let op = op.map_or(String::new(), |op| format!(" and op={}", op.text));
        let written = format!("export={}{op}", export.text);
        Some(Asked { raw_bytes: bytes + spare_bytes, has_spare: !op.is_empty(), written })
    }

    /// Refuses more flash than a path may have.
    pub fn check(&self, layer: &Term) -> Result<(), ExpressionError> {
        // Rounded up to whole blocks on all planes it still is a size.
        let most = MOST_BYTES / 2;
        if self.raw_bytes <= most {
            return Ok(());
        }
        let message = format!("{} are {} of flash", self.written, human_size(self.raw_bytes as f64));
        Err(layer.error(layer.span.clone(), message, format!("take at most {} together", format_size(most))))
    }
}
