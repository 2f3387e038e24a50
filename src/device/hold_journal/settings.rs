//! The options of `hold-journal`.

use super::HeldJournal;
use crate::device::Medium;
use crate::device::station::{DeviceNode, DeviceSettings, OpenOptions, StationError, only_blocks};
use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};
use crate::units::BLOCK_BYTES;
use std::path::PathBuf;

/// The station `hold-journal`.
pub static KIND: Kind = Kind {
    name: "hold-journal",
    about: "keeps the journal of the file system above in memory instead of on the device; a loss of power, or of this process, loses it",
    options: &[
        OptionKind {
            name: "spill",
            values: Values::File,
            default: "",
            about: "the file that takes the held journal at a clean end, and returns it at the next start; without it, the journal is written to the device",
        },
        OptionKind {
            name: "memory",
            values: Values::Size(BLOCK_BYTES, 1 << 42),
            default: "1G",
            about: "the most that is held, in blocks of 4K; a larger journal is refused",
        },
        OptionKind {
            name: "drain",
            values: Values::Switch,
            default: "off",
            about: "write a spilled journal to the device at the start, and hold nothing",
        },
        OptionKind {
            name: "access",
            values: Values::Duration(0, 1_000_000_000),
            default: "1us",
            about: "the time to copy a held block of 4K, if the device below is timed",
        },
    ],
};

/// The parsed options of `hold-journal`.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldJournalSettings {
    /// The spill file.
    pub spill: Option<PathBuf>,
    /// The maximum number of held blocks of 4 KiB.
    pub blocks: u64,
    /// True to write a spilled journal to the device, and to hold nothing.
    pub drain: bool,
    /// The time to copy a held block, in nanoseconds.
    pub access_ns: u64,
    /// The term with all option values.
    pub written_out: String,
}

impl HoldJournalSettings {
    /// Parses a term above `below`.
    pub fn read(term: &Term, below: &[DeviceNode]) -> Result<HoldJournalSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let is_set = settings.is_set("spill");
        if is_set && below.iter().all(DeviceNode::is_in_memory) {
            let message = "the device below is in memory, and its journal has no use after the end".to_string();
            let help = "leave spill= out, or give the device below an image=".to_string();
            return Err(settings.error("spill", message, help));
        }
        if settings.switch("drain") && !is_set {
            let help = "add spill= with the file of the last server".to_string();
            return Err(settings.error("drain", "there is no file to drain".to_string(), help));
        }
        Ok(HoldJournalSettings {
            spill: is_set.then(|| PathBuf::from(settings.text("spill"))),
            blocks: settings.size("memory") / BLOCK_BYTES,
            drain: settings.switch("drain"),
            access_ns: settings.duration_ns("access"),
            written_out: settings.written_out(&[]),
        })
    }
}

impl DeviceSettings for HoldJournalSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn open(&self, below: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError> {
        let device = only_blocks(below);
        Ok(Medium::Blocks(Box::new(HeldJournal::open(self, device, opening.is_new)?)))
    }
}
