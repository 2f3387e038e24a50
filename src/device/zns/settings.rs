//! The options of `zns`.

use super::shape::ZnsShape;
use super::{Zns, open_system_device};
use crate::device::nand::{Latencies, PageBytes, Preset};
use crate::device::station::{DeviceSettings, Making, Opening, StationError, Storage};
use crate::device::{ImageError, Medium};
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::units::{BLOCK_BYTES, format_size};
use std::path::PathBuf;

/// The longest that an operation of the flash may take.
pub(super) const MOST_NS: u64 = 10_000_000_000;

/// The station `zns`. Its flash is by default a quarter of the drive of preset `tlc`, chip for chip: 16 planes of 16 KiB pages
/// store 1.2 GB a second.
pub static KIND: Kind = Kind {
    name: "zns",
    about: "a ZNS drive: zones that are written in order and reset whole, each erase blocks on flash that wears out",
    options: &[
        OptionKind {
            name: "image",
            values: Values::File,
            default: "",
            about: "a file that keeps data, states, write pointers and erase counts (not set: in memory)",
        },
        OptionKind {
            name: "device",
            values: Values::File,
            default: "",
            about: "a zoned block device of the system, which has all of this itself: no other option goes with it",
        },
        OptionKind {
            name: "size",
            values: Values::Size(8192, 1 << 44),
            default: "4G",
            about: "bytes of all zones, in whole zones; like all of the shape, an image that is there has its own",
        },
        OptionKind {
            name: "zone",
            values: Values::Size(8192, 1 << 40),
            default: "64M",
            about: "from the start of a zone to the start of the next; a power of two",
        },
        OptionKind {
            name: "capacity",
            values: Values::Size(BLOCK_BYTES, 1 << 40),
            default: "",
            about: "bytes of a zone that can be written (not set: all)",
        },
        OptionKind {
            name: "conventional",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "the first so many zones can be written anywhere, as on SMR disks; NVMe has none such",
        },
        OptionKind {
            name: "max-open",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "zones that may be open at once (0: no limit)",
        },
        OptionKind {
            name: "max-active",
            values: Values::Count(0, 1 << 20),
            default: "0",
            about: "zones that may be open or closed at once (0: no limit)",
        },
        OptionKind {
            name: "preset",
            values: Values::Choice(words::<&'static Preset>),
            default: "",
            about: "a known drive's pages, channels, dies, planes, times and endurance; options written beside it come first",
        },
        OptionKind {
            name: "page",
            values: Values::Choice(words::<PageBytes>),
            default: "16K",
            about: "bytes programmed at once; less waits in the drive's buffer",
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
            about: "whether operations take time; off is faster and counts the same",
        },
        OptionKind {
            name: "read",
            values: Values::Duration(0, 1_000_000_000),
            default: "58us",
            about: "a page from the array to its register",
        },
        OptionKind {
            name: "program",
            values: Values::Duration(0, 1_000_000_000),
            default: "187us",
            about: "a page from its register to the array",
        },
        OptionKind {
            name: "erase",
            values: Values::Duration(0, MOST_NS),
            default: "3500us",
            about: "a zone, on all planes at once",
        },
        OptionKind {
            name: "transfer",
            values: Values::Duration(0, 1_000_000_000),
            default: "36us",
            about: "a page over the channel",
        },
        OptionKind {
            name: "endurance",
            values: Values::Count(1, 10_000_000),
            default: "3000",
            about: "erases a zone stands; the last leaves it offline",
        },
    ],
};

/// The options that an image keeps and that say what it is: others than the image's are refused.
const KEPT: [&str; 11] = [
    "size",
    "zone",
    "capacity",
    "conventional",
    "max-open",
    "max-active",
    "page",
    "channels",
    "dies",
    "planes",
    "endurance",
];
/// The options that an image keeps as defaults: they can be other ones from run to run.
const TIMES: [&str; 4] = ["read", "program", "erase", "transfer"];

/// The options of `zns`, read.
#[derive(Debug, Clone)]
pub struct ZnsSettings {
    /// The image, if the drive has one.
    pub image: Option<PathBuf>,
    /// The zoned block device of the system that is taken instead of a drive.
    pub device: Option<PathBuf>,
    /// Whether operations take time.
    pub is_timed: bool,
    /// The term with every option written out that means something.
    pub written_out: String,
    settings: Settings,
}

impl ZnsSettings {
    /// Reads a term; no file is opened. Errors point at the option that is wrong. The shape of what has an image is looked
    /// at when the image is made or opened.
    pub fn read(term: &Term) -> Result<ZnsSettings, ExpressionError> {
        let mut settings = term.settle(&KIND)?;
        if settings.is_set("preset") {
            let preset: &'static Preset = settings.choice("preset");
            // The size and the erase blocks are the zones' own matter here.
            let is_of_flash = |option: &str| option != "size" && option != "pages-per-block";
            for (option, value) in preset.values.iter().filter(|(option, _)| is_of_flash(option)) {
                settings.set_default(option, value);
            }
        }
        let path = |option: &str| settings.is_set(option).then(|| PathBuf::from(settings.text(option)));
        let (image, device) = (path("image"), path("device"));
        if device.is_some() {
            let others = KIND.options.iter().map(|option| option.name).filter(|name| *name != "device");
            if let Some(other) = others.into_iter().find(|name| settings.is_given(name)) {
                let message = format!("{other} is the device's own matter");
                return Err(settings.error(other, message, "leave it out, or leave device= out".to_string()));
            }
            let written_out = format!("{}:device={}", KIND.name, settings.text("device"));
            return Ok(ZnsSettings { image, device, is_timed: false, written_out, settings });
        }
        let mut meaningless: Vec<&str> = Vec::new();
        if image.is_some() {
            meaningless.extend(KEPT);
            meaningless.extend(TIMES);
        } else if !settings.switch("timing") {
            meaningless.extend(TIMES);
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

    /// Whether the drive is a new one in memory.
    pub fn is_in_memory(&self) -> bool {
        self.image.is_none() && self.device.is_none()
    }

    /// The shape of a new drive.
    pub fn shape(&self) -> Result<ZnsShape, ExpressionError> {
        let settings = &self.settings;
        let (size, zone) = (settings.size("size"), settings.size("zone"));
        let capacity = if settings.is_set("capacity") { settings.size("capacity") } else { zone };
        for (option, bytes) in [("zone", zone), ("capacity", capacity)] {
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
            page_bytes: settings.choice::<PageBytes>("page").0,
            channels: count("channels"),
            dies: count("dies"),
            planes: count("planes"),
            endurance: count("endurance"),
            latencies: Latencies {
                read_ns: settings.duration_ns("read"),
                program_ns: settings.duration_ns("program"),
                erase_ns: settings.duration_ns("erase"),
                transfer_ns: settings.duration_ns("transfer"),
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

    /// The shape of an image as these settings ask for it: the image's own, with the times that are written here. An
    /// option that says other than the image is refused.
    pub(super) fn of_image(&self, image: &str, mut shape: ZnsShape) -> Result<ZnsShape, ImageError> {
        let settings = &self.settings;
        for option in KEPT.into_iter().filter(|option| settings.is_given(option)) {
            let asked = match option {
                "size" | "zone" | "capacity" | "page" => format_size(settings.size(option)),
                _ => settings.count(option).to_string(),
            };
            let made = shape.option(option);
            if asked != made {
                return Err(ImageError::Contradicts { image: image.to_string(), option, asked, made });
            }
        }
        let is_asked_for = |option: &str| settings.is_given(option) || settings.is_set("preset");
        let latencies = &mut shape.latencies;
        let times = [
            (&mut latencies.read_ns, TIMES[0]),
            (&mut latencies.program_ns, TIMES[1]),
            (&mut latencies.erase_ns, TIMES[2]),
            (&mut latencies.transfer_ns, TIMES[3]),
        ];
        for (kept, option) in times.into_iter().filter(|(_, option)| is_asked_for(option)) {
            *kept = settings.duration_ns(option);
        }
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

    fn open(&self, _: Vec<Medium>, opening: &Opening) -> Result<Medium, StationError> {
        Ok(Medium::Zones(match (&self.device, &self.image) {
            (Some(device), _) => open_system_device(device)?,
            (None, Some(_)) => Box::new(Zns::open(self)?),
            (None, None) => Box::new(Zns::new(self, opening.holds.width())),
        }))
    }

    /// A device of the system is taken as it is.
    fn make(&self, _: Vec<Medium>, making: &Making) -> Result<Medium, StationError> {
        Ok(Medium::Zones(match &self.device {
            Some(device) => open_system_device(device)?,
            None => Box::new(Zns::create(self, making.force)?),
        }))
    }
}
