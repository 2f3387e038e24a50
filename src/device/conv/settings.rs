//! The options of `conv`.

use super::{Conventional, ServiceTimes};
use crate::device::nand::Preset;
use crate::device::station::{DeviceSettings, MakeOptions, OpenOptions, Payload, StationError, Storage};
use crate::device::{ImageError, Medium};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::units::{BLOCK_BYTES, format_size};
use std::path::PathBuf;

/// The station `conv`.
///
/// The default times are those of FEMU's black-box drive as delivered (`bbssd/ftl.h`: 8 channels of 8 chips of 4 KiB
/// pages, 40 us a read, 200 us a program, nothing for the channel): the conventional drive in Table 1 of the journal
/// separation paper.
pub static KIND: Kind = Kind {
    name: "conv",
    about: "a conventional device: blocks that can be written in any order",
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
            about: "bytes, in whole blocks of 4K; an existing image has its own",
        },
        OptionKind {
            name: "timing",
            values: Values::Switch,
            default: "on",
            about: "on: operations take time; off is faster and counts the same",
        },
        OptionKind {
            name: "read",
            values: Values::Duration(0, 1_000_000_000),
            default: "40us",
            about: "the time to read a block of 4K",
        },
        OptionKind {
            name: "write",
            values: Values::Duration(0, 1_000_000_000),
            default: "200us",
            about: "the time to store a block of 4K",
        },
        OptionKind {
            name: "units",
            values: Values::Count(1, 4096),
            default: "64",
            about: "blocks that are read or stored in parallel",
        },
        OptionKind {
            name: "ftl",
            values: Values::Choice(words::<Ftl>),
            default: "",
            about: "its own translation layer, on as much flash as exports just the size (not set: its flash is not modelled)",
        },
        OptionKind {
            name: "preset",
            values: Values::Choice(words::<&'static Preset>),
            default: "",
            about: "with ftl: the flash below it (not set: the defaults of nand)",
        },
    ],
};

/// A conventional device that is a translation layer on flash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvFtl {
    /// The layer's name: `page`, `dftl`, `fast`, `superblock`.
    pub layer: String,
    /// The flash's options except its size: `preset=tlc,timing=off`.
    pub flash: String,
}

/// The parsed options of `conv`.
#[derive(Debug, Clone)]
pub struct ConvSettings {
    /// The image or block device; `None` for a device in memory.
    pub image: Option<PathBuf>,
    /// The size of a new device, in bytes.
    pub size_bytes: u64,
    /// The timing model; `None` for `timing=off`.
    pub times: Option<ServiceTimes>,
    /// Its own translation layer, if its flash is modelled.
    pub ftl: Option<ConvFtl>,
    /// The term with all option values that have an effect.
    pub written_out: String,
    is_size_given: bool,
}

impl ConvSettings {
    /// Parses a term without opening a file. Errors point at the wrong option.
    pub fn read(term: &Term) -> Result<ConvSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let size_bytes = settings.size("size");
        if !size_bytes.is_multiple_of(BLOCK_BYTES) {
            let message = format!("a device of {} is not made of blocks of 4K", settings.text("size"));
            let near = (size_bytes / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
            return Err(settings.error("size", message, format!("take {}", format_size(near))));
        }
        let image = settings.is_set("image").then(|| PathBuf::from(settings.text("image")));
        let ftl = ftl(&settings)?;
        let times = settings.switch("timing").then(|| ServiceTimes {
            read_ns: settings.duration_ns("read"),
            write_ns: settings.duration_ns("write"),
            units: settings.count("units") as u32,
        });
        Ok(ConvSettings {
            is_size_given: settings.is_given("size"),
            written_out: settings.written_out(meaningless(&image, &settings)),
            ftl,
            image,
            size_bytes,
            times,
        })
    }

    /// The number of blocks of a new device.
    pub fn blocks(&self) -> u64 {
        self.size_bytes / BLOCK_BYTES
    }

    /// Rejects a written size that differs from the image's.
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

impl DeviceSettings for ConvSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn storage(&self) -> Storage<'_> {
        self.image.as_deref().map_or(Storage::Memory, Storage::File)
    }

    fn memory_bytes(&self, holds: Payload) -> u64 {
        if self.image.is_some() { 0 } else { self.blocks() * holds.width() as u64 }
    }

    fn open(&self, _: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError> {
        let device = match self.image {
            Some(_) => Conventional::open(self)?,
            None => Conventional::new(self, opening.holds.width()),
        };
        Ok(Medium::Blocks(Box::new(device.recording(opening.wait_log))))
    }

    fn make(&self, _: Vec<Medium>, making: &MakeOptions) -> Result<Medium, StationError> {
        // A device in memory can be made, too: the content of a cache's device need not outlast a run.
        Ok(Medium::Blocks(Box::new(match self.image {
            Some(_) => Conventional::create(self, making.force)?,
            None => Conventional::new(self, BLOCK_BYTES as usize),
        })))
    }
}

/// The translation layer. Options without effect are rejected.
fn ftl(settings: &Settings) -> Result<Option<ConvFtl>, ExpressionError> {
    if !settings.is_set("ftl") {
        if settings.is_given("preset") {
            let help = "add ftl=page, or remove it".to_string();
            return Err(settings.error("preset", "preset has no effect without ftl".to_string(), help));
        }
        return Ok(None);
    }
    for option in ["read", "write", "units", "image"] {
        if settings.is_given(option) {
            let message = format!("{option} has no effect with ftl");
            let help = match option {
                "image" => "remove one of them: the map of a translation layer is in memory",
                _ => "remove it: its flash has its own times (preset=)",
            };
            return Err(settings.error(option, message, help.to_string()));
        }
    }
    let timing = if settings.switch("timing") { "on" } else { "off" };
    let preset = settings.is_set("preset").then(|| format!("preset={},", settings.text("preset")));
    let flash = format!("{}timing={timing}", preset.unwrap_or_default());
    Ok(Some(ConvFtl { layer: settings.choice::<Ftl>("ftl").0.to_string(), flash }))
}

/// Options without effect: `timing=off` has no times, an existing image has its size, and flash has its own times.
fn meaningless(image: &Option<PathBuf>, settings: &Settings) -> &'static [&'static str] {
    if settings.is_set("ftl") {
        return &["read", "write", "units"];
    }
    match (image.is_some(), settings.switch("timing")) {
        (true, true) => &["size"],
        (true, false) => &["size", "read", "write", "units"],
        (false, true) => &[],
        (false, false) => &["read", "write", "units"],
    }
}

/// A word of `ftl`, the name of a station.
#[derive(Clone, Copy)]
struct Ftl(&'static str);

impl Choice for Ftl {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("page", Ftl("page"), "the page-level layer"),
        ("dftl", Ftl("dftl"), "DFTL"),
        ("fast", Ftl("fast"), "FAST"),
        ("superblock", Ftl("superblock"), "the Superblock FTL"),
    ];
}
