//! The options of `conv`.

use super::ServiceTimes;
use crate::device::ImageError;
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Term, Values};
use crate::units::{BLOCK_BYTES, format_size};
use std::path::PathBuf;

/// The station `conv`.
///
/// Its times are those of FEMU's black-box drive as it is delivered (`bbssd/ftl.h`: 8 channels of 8 chips of 4 KiB pages, 40 us a
/// read, 200 us a program, nothing for the channel): the conventional drive of the journal separation paper's Table 1.
pub static KIND: Kind = Kind {
    name: "conv",
    about: "a conventional device: blocks that can be written anywhere; its own flash is not looked at",
    options: &[
        OptionKind {
            name: "image",
            values: Values::File,
            default: "",
            about: "a raw image, or a block device of the system (not set: in memory)",
        },
        OptionKind {
            name: "size",
            values: Values::Size(BLOCK_BYTES, 1 << 44),
            default: "1G",
            about: "bytes, in whole blocks of 4K; an image that is there has its own",
        },
        OptionKind {
            name: "timing",
            values: Values::Switch,
            default: "on",
            about: "whether operations take time; off is faster and counts the same",
        },
        OptionKind {
            name: "read",
            values: Values::Duration(0, 1_000_000_000),
            default: "40us",
            about: "a block of 4K to be read",
        },
        OptionKind {
            name: "write",
            values: Values::Duration(0, 1_000_000_000),
            default: "200us",
            about: "a block of 4K to be stored",
        },
        OptionKind {
            name: "units",
            values: Values::Count(1, 4096),
            default: "64",
            about: "blocks that are read or stored at once",
        },
    ],
};

/// The options of `conv`, read.
#[derive(Debug, Clone)]
pub struct ConvSettings {
    /// The image or block device; `None` for one in memory.
    pub image: Option<PathBuf>,
    /// Bytes of a new device.
    pub size_bytes: u64,
    /// The timing model; `None` for `timing=off`.
    pub times: Option<ServiceTimes>,
    /// The term with every option written out that means something.
    pub written_out: String,
    is_size_given: bool,
}

impl ConvSettings {
    /// Reads a term; no file is opened. Errors point at the option that is wrong.
    pub fn read(term: &Term) -> Result<ConvSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let size_bytes = settings.size("size");
        if !size_bytes.is_multiple_of(BLOCK_BYTES) {
            let message = format!("a device of {} is not made of blocks of 4K", settings.text("size"));
            let near = (size_bytes / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
            return Err(settings.error("size", message, format!("take {}", format_size(near))));
        }
        let image = settings.is_set("image").then(|| PathBuf::from(settings.text("image")));
        let times = settings.switch("timing").then(|| ServiceTimes {
            read_ns: settings.duration_ns("read"),
            write_ns: settings.duration_ns("write"),
            units: settings.count("units") as u32,
        });
        Ok(ConvSettings {
            is_size_given: settings.is_given("size"),
            written_out: settings.written_out(meaningless(&image, &settings)),
            image,
            size_bytes,
            times,
        })
    }

    /// Blocks of a new device.
    pub fn blocks(&self) -> u64 {
        self.size_bytes / BLOCK_BYTES
    }

    /// Refuses a size that was asked for and is not the image's.
    pub(super) fn check_size(&self, image: &str, length: u64) -> Result<(), ImageError> {
        if self.is_size_given && self.size_bytes != length {
            return Err(ImageError::Contradicts {
                image: image.to_string(),
                option: "size",
                asked: format_size(self.size_bytes),
                made: format_size(length),
            });
        }
        Ok(())
    }
}

/// Without timing there are no times, and an image has a size of its own.
fn meaningless(image: &Option<PathBuf>, settings: &Settings) -> &'static [&'static str] {
    match (image.is_some(), settings.switch("timing")) {
        (true, true) => &["size"],
        (true, false) => &["size", "read", "write", "units"],
        (false, true) => &[],
        (false, false) => &["read", "write", "units"],
    }
}
