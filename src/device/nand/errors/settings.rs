//! The options of errors.

use super::codewords::Correction;
use super::rates::Rates;
use crate::expression::{ExpressionError, OptionKind, Settings, Values};

pub(in crate::device::nand) const ERRORS: OptionKind = OptionKind {
    name: "errors",
    values: Values::Switch,
    default: "off",
    about: "on: bits of pages are wrong, reads are retried or fail, and blocks go bad; under page only",
};
pub(in crate::device::nand) const RBER: OptionKind = OptionKind {
    name: "rber",
    values: Values::Real(0.0, 0.5),
    default: "1.48e-3",
    about: "the raw bit error rate of an unworn block right after its program",
};
pub(in crate::device::nand) const RBER_WEAR: OptionKind = OptionKind {
    name: "rber-wear",
    values: Values::Real(0.0, 1e6),
    default: "1",
    about: "a factor of what wear adds to the rate; 0: nothing",
};
pub(in crate::device::nand) const RETENTION: OptionKind = OptionKind {
    name: "retention",
    values: Values::Real(0.0, 1e6),
    default: "1",
    about: "a factor of what the time since the program adds to the rate, as by temperature; 0: nothing",
};
pub(in crate::device::nand) const READ_DISTURB: OptionKind = OptionKind {
    name: "read-disturb",
    values: Values::Real(0.0, 1e6),
    default: "1",
    about: "a factor of what reads of the block add to the rate; 0: nothing",
};
pub(in crate::device::nand) const ECC: OptionKind = OptionKind {
    name: "ecc",
    values: Values::Count(1, 4000),
    default: "72",
    about: "wrong bits that are corrected in a codeword of 1 KiB",
};
pub(in crate::device::nand) const RETRY: OptionKind = OptionKind {
    name: "retry",
    values: Values::Count(0, 100),
    default: "7",
    about: "the most reads again of a page that was not corrected, each a read and a transfer on its plane",
};
pub(in crate::device::nand) const RETRY_GAIN: OptionKind = OptionKind {
    name: "retry-gain",
    values: Values::Share(0.0, 0.9),
    default: "15%",
    about: "the share of the error rate that each of them takes away, by better voltages",
};
pub(in crate::device::nand) const PROGRAM_FAILURES: OptionKind = OptionKind {
    name: "program-failures",
    values: Values::Share(0.0, 0.999999),
    default: "1%",
    about: "the share of blocks in which a program fails within their endurance",
};
pub(in crate::device::nand) const ERASE_FAILURES: OptionKind = OptionKind {
    name: "erase-failures",
    values: Values::Share(0.0, 0.999999),
    default: "1%",
    about: "the share of blocks whose erase fails within their endurance",
};
pub(in crate::device::nand) const REFRESH: OptionKind = OptionKind {
    name: "refresh",
    values: Values::Share(0.001, 0.999999),
    default: "",
    about: "a block is written anew when a read finds more wrong bits to be expected than this share of ecc (not set: never)",
};
pub(in crate::device::nand) const SCRUB: OptionKind = OptionKind {
    name: "scrub",
    values: Values::Duration(1_000_000, 9_000_000_000_000_000_000),
    default: "",
    about: "the time in which all valid pages are read in the background, for refresh (not set: they are not)",
};

/// The options besides the switch.
const OTHERS: [&str; 11] = [
    "rber",
    "rber-wear",
    "retention",
    "read-disturb",
    "ecc",
    "retry",
    "retry-gain",
    "program-failures",
    "erase-failures",
    "refresh",
    "scrub",
];

/// The errors of flash, and what its controller does about them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorSettings {
    /// The raw bit error rate.
    pub rates: Rates,
    /// The correction of wrong bits.
    pub correction: Correction,
    /// The share of blocks in which a program fails within their endurance.
    pub program_failures: f64,
    /// The share of blocks whose erase fails within their endurance.
    pub erase_failures: f64,
    /// The share of what the code corrects from which on a block is written anew; `None`: never.
    pub refresh: Option<f64>,
    /// The time in which all valid pages are read in the background, in nanoseconds.
    pub scrub_ns: Option<u64>,
}

impl ErrorSettings {
    /// Reads the options; `None` with `errors=off`. Errors point at an option that would have no effect.
    pub(in crate::device::nand) fn read(settings: &Settings) -> Result<Option<ErrorSettings>, ExpressionError> {
        if !settings.switch("errors") {
            for name in OTHERS {
                if settings.is_given(name) {
                    let message = format!("{name} has no effect without errors");
                    return Err(settings.error(name, message, "add errors=on, or remove it".to_string()));
                }
            }
            return Ok(None);
        }
        let share = |name: &str| settings.is_set(name).then(|| settings.share(name));
        let refresh = share("refresh");
        let scrub_ns = settings.is_set("scrub").then(|| settings.duration_ns("scrub"));
        if scrub_ns.is_some() && refresh.is_none() {
            let message = "scrub reads pages to find blocks that refresh would write anew".to_string();
            return Err(settings.error("scrub", message, "add refresh=60%, or remove it".to_string()));
        }
        if scrub_ns.is_some() && !settings.switch("timing") {
            let message = "without times no scrub is ever due".to_string();
            return Err(settings.error("scrub", message, "remove timing=off, or scrub".to_string()));
        }
        Ok(Some(ErrorSettings {
            rates: Rates {
                fresh: settings.real("rber"),
                wear: settings.real("rber-wear"),
                retention: settings.real("retention"),
                disturb: settings.real("read-disturb"),
            },
            correction: Correction {
                bits: settings.count("ecc") as u32,
                retries: settings.count("retry") as u32,
                gain: settings.share("retry-gain"),
            },
            program_failures: settings.share("program-failures"),
            erase_failures: settings.share("erase-failures"),
            refresh,
            scrub_ns,
        }))
    }

    /// The options without effect, given the others.
    pub(in crate::device::nand) fn meaningless(settings: &Settings) -> Vec<&'static str> {
        match settings.switch("errors") {
            true => Vec::new(),
            // The switch itself is not written where it is off: paths of earlier results stay as they are.
            false => OTHERS.into_iter().chain(["errors"]).collect(),
        }
    }
}
