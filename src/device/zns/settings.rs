//! The options of `zns`.

use super::shape::ZnsShape;
use super::{Zns, open_system_device};
use crate::device::nand::{Latencies, PageBytes, Preset};
use crate::device::station::{DeviceSettings, MakeOptions, OpenOptions, Payload, StationError, Storage};
use crate::device::{ImageError, Medium};
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::units::{BLOCK_BYTES, format_size};
use std::path::PathBuf;

/// The maximum duration of a flash operation, in nanoseconds.
pub(super) const MOST_NS: u64 = 10_000_000_000;

/// The station `zns`. By default its flash is a quarter of the drive of preset `tlc`, with the same chips: 16 planes of
/// 16 KiB pages store 1.2 GB a second.
pub static KIND: Kind = Kind {
    name: "zns",
    about: "a ZNS drive: zones that are written in order and reset whole, each on erase blocks of flash that wears out",
    options: &[
        OptionKind {
            name: "image",
            values: Values::File,
            default: "",
            about: "a file for data, states, write pointers and erase counts (not set: in memory)",
        },
        OptionKind {
            name: "device",
            values: Values::File,
            default: "",
            about: "a zoned block device of the system; excludes all other options",
        },
        OptionKind {
            name: "size",
            values: Values::Size(8192, 1 << 44),
            default: "4G",
            about: "bytes of all zones, in whole zones; an existing image has its own geometry",
        },
        OptionKind {
            name: "zone",
            values: Values::Size(8192, 1 << 40),
            default: "64M",
            about: "bytes from a zone's start to the next zone's start; a power of two",
        },
        OptionKind {
            name: "capacity",
            values: Values::Size(BLOCK_BYTES, 1 << 40),
            default: "",
            about: "writable bytes of a zone (not set: all)",
        },
        OptionKind {
            name: "conventional",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "the number of conventional zones, the first ones, as on SMR disks; NVMe has none",
        },
        OptionKind {
            name: "max-open",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "the maximum number of open zones (0: no limit)",
        },
        OptionKind {
            name: "max-active",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "the maximum number of open and closed zones (0: no limit)",
        },
        OptionKind {
            name: "zrwa",
            values: Values::Size(0, (1 << 28) - BLOCK_BYTES),
            default: "0",
            about: "bytes of a zone's random write area, if it is opened with one (0: none)",
        },
        OptionKind {
            name: "zrwa-flush",
            values: Values::Size(BLOCK_BYTES, 1 << 28),
            default: "16K",
            about: "the write pointer of a zone with such an area moves by a multiple of these bytes",
        },
        OptionKind {
            name: "max-zrwa",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "the maximum number of zones with such an area (0: as many as can be active)",
        },
        OptionKind {
            name: "preset",
            values: Values::Choice(words::<&'static Preset>),
            default: "",
            about: "a known drive's pages, channels, dies, planes, times and endurance; options written beside it take precedence",
        },
        OptionKind {
            name: "page",
            values: Values::Choice(words::<PageBytes>),
            default: "16K",
            about: "bytes of a flash page; a partial page waits in the drive's buffer",
        },
        OptionKind {
            name: "channels",
            values: Values::Count(1, 64),
            default: "4",
            about: "buses that transfer at once",
        },
        OptionKind { name: "dies", values: Values::Count(1, 64), default: "2", about: "dies on each channel" },
        OptionKind { name: "planes", values: Values::Count(1, 16), default: "2", about: "planes in each die" },
        OptionKind {
            name: "timing",
            values: Values::Switch,
            default: "on",
            about: "on: operations take time; off is faster and counts the same",
        },
        OptionKind {
            name: "read",
            values: Values::Duration(0, 1_000_000_000),
            default: "58us",
            about: "the time to read a page from the array to its register",
        },
        OptionKind {
            name: "program",
            values: Values::Duration(0, 1_000_000_000),
            default: "187us",
            about: "the time to program a page from its register to the array",
        },
        OptionKind {
            name: "erase",
            values: Values::Duration(0, MOST_NS),
            default: "3500us",
            about: "the time to erase a zone, on all planes in parallel",
        },
        OptionKind {
            name: "transfer",
            values: Values::Duration(0, 1_000_000_000),
            default: "36us",
            about: "the time to transfer a page over the channel",
        },
        OptionKind {
            name: "endurance",
            values: Values::Count(1, 10_000_000),
            default: "3000",
            about: "erases before a zone is worn out; the last one takes it offline",
        },
    ],
};

/// The options that an image stores: other values than the image's are rejected.
const KEPT: [&str; 14] = [
    "size",
    "zone",
    "capacity",
    "conventional",
    "max-open",
    "max-active",
    "zrwa",
    "zrwa-flush",
    "max-zrwa",
    "page",
    "channels",
    "dies",
    "planes",
    "endurance",
];
/// The options of random write areas, of a drive with some.
const OF_AREAS: [&str; 2] = ["zrwa-flush", "max-zrwa"];
/// The options that an image stores as defaults: they may differ from run to run.
const TIMES: [&str; 4] = ["read", "program", "erase", "transfer"];

/// The parsed options of `zns`.
#[derive(Debug, Clone)]
pub struct ZnsSettings {
    /// The image, if the drive has one.
    pub image: Option<PathBuf>,
    /// The zoned block device of the system, if one replaces the drive.
    pub device: Option<PathBuf>,
    /// True if operations take time.
    pub is_timed: bool,
    /// The term with all option values that have an effect.
    pub written_out: String,
    settings: Settings,
}

impl ZnsSettings {
    /// Parses a term without opening a file. Errors point at the wrong option. The geometry of an image is validated
    /// when the image is created or opened.
    pub fn read(term: &Term) -> Result<ZnsSettings, ExpressionError> {
        let mut settings = term.settle(&KIND)?;
        if settings.is_set("preset") {
            let preset: &'static Preset = settings.choice("preset");
            // The size and the erase blocks follow from the zones here, and a zone has no units.
            let is_of_flash = |option: &str| !["size", "pages-per-block", "unit"].contains(&option);
            for (option, value) in preset.values.iter().filter(|(option, _)| is_of_flash(option)) {
                settings.set_default(option, value);
            }
        }
        let path = |option: &str| settings.is_set(option).then(|| PathBuf::from(settings.text(option)));
        let (image, device) = (path("image"), path("device"));
        if device.is_some() {
            let others = KIND.options.iter().map(|option| option.name).filter(|name| *name != "device");
            if let Some(other) = others.into_iter().find(|name| settings.is_given(name)) {
                let message = format!("{other} is determined by the device");
                return Err(settings.error(other, message, "leave it out, or leave device= out".to_string()));
            }
            let written_out = format!("{}:device={}", KIND.name, settings.text("device"));
            return Ok(ZnsSettings { image, device, is_timed: false, written_out, settings });
        }
        let mut meaningless: Vec<&str> = Vec::new();
        if image.is_some() {
            meaningless.extend(KEPT);
            meaningless.extend(TIMES);
        } else {
            if !settings.switch("timing") {
                meaningless.extend(TIMES);
            }
            if settings.size("zrwa") == 0 {
                meaningless.extend(OF_AREAS);
            }
        }
        let read = ZnsSettings {
            is_timed: settings.switch("timing"),
            written_out: settings.written_out(&meaningless),
            image,
            device,
            settings,
        };
        if read.image.is_none() {
            read.shape()?;
        }
        Ok(read)
    }

    /// True for a new drive in memory.
    pub fn is_in_memory(&self) -> bool {
        self.image.is_none() && self.device.is_none()
    }

    /// The geometry of a new drive.
    pub fn shape(&self) -> Result<ZnsShape, ExpressionError> {
        let settings = &self.settings;
        let (size, zone) = (settings.size("size"), settings.size("zone"));
        let capacity = if settings.is_set("capacity") { settings.size("capacity") } else { zone };
        let (area, area_flush) = (settings.size("zrwa"), settings.size("zrwa-flush"));
        for (option, bytes) in [("zone", zone), ("capacity", capacity), ("zrwa", area), ("zrwa-flush", area_flush)] {
            if !bytes.is_multiple_of(BLOCK_BYTES) {
                let message = format!("a {option} of {} is not made of blocks of 4K", format_size(bytes));
                return Err(settings.error(
                    option,
                    message,
                    format!("take {}", format_size(bytes / BLOCK_BYTES * BLOCK_BYTES)),
                ));
            }
        }
        if !size.is_multiple_of(zone) {
            let message = format!("{} is not made of zones of {}", format_size(size), format_size(zone));
            let below = size / zone * zone;
            let help = match below {
                0 => format!("take {}, or smaller zones (zone=)", format_size(zone)),
                below => format!("take {} or {}", format_size(below), format_size(below + zone)),
            };
            return Err(settings.error("size", message, help));
        }
        let count = |name: &str| settings.count(name) as u32;
        let shape = ZnsShape {
            zones: u32::try_from(size / zone).unwrap_or(u32::MAX),
            conventional: count("conventional"),
            zone_blocks: zone / BLOCK_BYTES,
            capacity_blocks: capacity / BLOCK_BYTES,
            max_open: count("max-open"),
            max_active: count("max-active"),
            area_blocks: area / BLOCK_BYTES,
            area_flush_blocks: if area == 0 { 0 } else { area_flush / BLOCK_BYTES },
            max_areas: if area == 0 { 0 } else { count("max-zrwa") },
            page_bytes: settings.choice::<PageBytes>("page").0,
            channels: count("channels"),
            dies: count("dies"),
            planes: count("planes"),
            endurance: count("endurance"),
            latencies: {
                let [read, program, erase, transfer] = TIMES.map(|name| settings.duration_ns(name));
                Latencies::new(read, program, erase, transfer)
            },
        };
        match shape.flaw() {
            None => Ok(shape),
            Some(flaw) => {
                let message = format!("{} cannot be {}", flaw.option, flaw.found);
                Err(settings.error(flaw.option, message, format!("{} takes {}", flaw.option, flaw.expected)))
            }
        }
    }

    /// The geometry of an image: its own, with the times that are written here. An option that contradicts the image is
    /// rejected.
    pub(super) fn of_image(&self, image: &str, mut shape: ZnsShape) -> Result<ZnsShape, ImageError> {
        let settings = &self.settings;
        for option in KEPT.into_iter().filter(|option| settings.is_given(option)) {
            let (asked, made) = (settings.normalised(option), shape.option(option));
            if asked != made {
                return Err(ImageError::Contradicts { image: image.to_string(), option, asked, made });
            }
        }
        let is_asked_for = |option: &str| settings.is_given(option) || settings.is_set("preset");
        let Latencies { read_ns, program_ns, erase_ns, read_transfer_ns: transfer_ns, .. } = shape.latencies;
        let mut times = [read_ns, program_ns, erase_ns, transfer_ns];
        for (kept, option) in times.iter_mut().zip(TIMES).filter(|(_, option)| is_asked_for(option)) {
            *kept = settings.duration_ns(option);
        }
        let [read, program, erase, transfer] = times;
        shape.latencies = Latencies::new(read, program, erase, transfer);
        Ok(shape)
    }
}

impl DeviceSettings for ZnsSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn storage(&self) -> Storage<'_> {
        self.image.as_deref().or(self.device.as_deref()).map_or(Storage::Memory, Storage::File)
    }

    fn memory_bytes(&self, holds: Payload) -> u64 {
        let is_in_memory = self.storage() == Storage::Memory;
        if is_in_memory { self.settings.size("size") / BLOCK_BYTES * holds.width() as u64 } else { 0 }
    }

    fn open(&self, _: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError> {
        Ok(Medium::Zones(match (&self.device, &self.image) {
            (Some(device), _) => open_system_device(device)?,
            (None, Some(_)) => Box::new(Zns::open(self)?.recording(opening.wait_log)),
            (None, None) => Box::new(Zns::new(self, opening.holds.width()).recording(opening.wait_log)),
        }))
    }

    /// A device of the system is used unchanged.
    fn make(&self, _: Vec<Medium>, making: &MakeOptions) -> Result<Medium, StationError> {
        Ok(Medium::Zones(match &self.device {
            Some(device) => open_system_device(device)?,
            None => Box::new(Zns::create(self, making.force)?),
        }))
    }
}
