//! The table of stations: what each offers, what it takes below it, and how its term is read.

use super::drive::{AnyLayer, ReadLayer, read_conventional, read_layer};
use crate::device::monitor::{self, MonitorSettings};
use crate::device::nand::Geometry;
use crate::device::station::{DeviceNode, DeviceSettings, Offer};
use crate::device::zns::{self, ZnsSettings};
use crate::device::{cache, conv, hold_journal, nand, nvm};
use crate::expression::{ExpressionError, Kind, Term, one_of};
use crate::fs::ext::{self, ExtSettings};
use crate::fs::kernel::{self, KernelFileSystem, KernelSettings};
use crate::fs::sfs::{self, SfsSettings};
use crate::fs::station::VolumeSettings;
use crate::fs::tree::{self, TreeSettings};
use crate::translation::dftl::{self, DftlSettings};
use crate::translation::fast::{self, FastSettings};
use crate::translation::fdp::FdpSettings;
use crate::translation::page_level::{self, PageSettings};
use crate::translation::superblock::{self, SuperblockSettings};
use crate::translation::{FlashLayer, zoned};
use std::sync::Arc;

/// A file system on top of a path.
#[derive(Debug, Clone)]
pub enum FileSystemSettings {
    /// One of the running kernel's.
    Kernel(KernelSettings),
    /// One of this program.
    Own(Arc<dyn VolumeSettings>),
}

impl FileSystemSettings {
    pub(super) fn written_out(&self) -> &str {
        match self {
            FileSystemSettings::Kernel(settings) => &settings.written_out,
            FileSystemSettings::Own(settings) => settings.written_out(),
        }
    }
}

/// A kind of station: a row of the table.
#[derive(Debug, Clone)]
pub struct Station {
    /// Name, options, and what they mean.
    pub kind: &'static Kind,
    /// The level it belongs to, in words.
    pub level: &'static str,
    /// The interface that it offers to the station above.
    pub offers: Offer,
    /// The stations that it needs below.
    pub below: Below,
    pub(super) read: Read,
}

/// The stations that a station needs below.
#[derive(Debug, Clone, Copy)]
pub struct Below {
    /// The interfaces that it takes.
    pub takes: &'static [Offer],
    /// Those that its second device and further ones may also have.
    pub later: &'static [Offer],
    /// The least and the greatest number of devices.
    pub count: (usize, usize),
    /// An example of what to write behind it, where the table alone does not tell.
    pub example: Option<&'static str>,
    /// What several devices are for, and how they are written.
    pub several: Option<&'static str>,
}

impl Below {
    /// True if a device of this interface can be the one at `position`, from 0.
    pub fn takes_at(&self, position: usize, offer: Offer) -> bool {
        self.takes.contains(&offer) || position > 0 && self.later.contains(&offer)
    }
}

/// The function that parses the term of a station.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// Flash.
    Flash,
    /// A translation layer on flash.
    Layer(ReadLayer),
    /// A device.
    Device(ReadDevice),
    /// A file system of this program.
    Volume(ReadVolume),
    /// A file system of the kernel.
    Kernel(fn(&Term) -> Result<KernelSettings, ExpressionError>),
}

/// Parses the term of a file system of this program.
pub type ReadVolume = fn(&Term) -> Result<Arc<dyn VolumeSettings>, ExpressionError>;

/// Parses the term of a device, with the devices below it.
pub type ReadDevice = fn(&Term, &[DeviceNode]) -> Result<Arc<dyn DeviceSettings>, ExpressionError>;

/// Nothing: a medium, which stands at the bottom.
const NOTHING: Below = Below { takes: &[], later: &[], count: (0, 0), example: None, several: None };

/// One device.
const fn one(takes: &'static [Offer]) -> Below {
    Below { takes, later: &[], count: (1, 1), example: None, several: None }
}

/// The interface below a file system of the kernel.
const BLOCKS: &[Offer] = &[Offer::Blocks];
const BLOCKS_OR_ZONES: &[Offer] = &[Offer::Blocks, Offer::Zones];

impl Station {
    /// A station that offers blocks, zones or memory.
    pub const fn device(
        kind: &'static Kind,
        level: &'static str,
        offers: Offer,
        below: Below,
        read: ReadDevice,
    ) -> Station {
        Station { kind, level, offers, below, read: Read::Device(read) }
    }

    /// A translation layer on flash.
    pub const fn layer<L: FlashLayer>(kind: &'static Kind) -> Station {
        Station::layer_read(kind, read_layer::<L>)
    }

    /// A translation layer on flash, of which options choose one of several.
    const fn layer_read(kind: &'static Kind, read: ReadLayer) -> Station {
        let below = one(&[Offer::Flash]);
        Station { kind, level: "translation", offers: Offer::Blocks, below, read: Read::Layer(read) }
    }

    /// A file system of this program.
    pub const fn volume(kind: &'static Kind, below: Below, read: ReadVolume) -> Station {
        Station { kind, level: "file system", offers: Offer::Files, below, read: Read::Volume(read) }
    }

    /// A file system of the kernel.
    const fn of_kernel(kind: &'static Kind, read: fn(&Term) -> Result<KernelSettings, ExpressionError>) -> Station {
        let below = one(BLOCKS);
        Station { kind, level: "file system", offers: Offer::Files, below, read: Read::Kernel(read) }
    }

    /// True for a file system of this program.
    pub fn is_volume(&self) -> bool {
        matches!(self.read, Read::Volume(_))
    }

    /// True if a workload can stand on it.
    pub fn carries_workloads(&self) -> bool {
        matches!(self.offers, Offer::Blocks | Offer::Files)
    }
}

/// All stations, from the top of a path to the bottom.
pub static STATIONS: &[Station] = &[
    Station::volume(&sfs::KIND, one(BLOCKS_OR_ZONES), |term| Ok(Arc::new(SfsSettings::read(term)?))),
    Station::volume(
        &ext::KIND,
        Below {
            takes: BLOCKS,
            later: &[Offer::Memory],
            count: (1, 2),
            example: None,
            several: Some(
                "a second device is the journal's, of blocks or memory: ext/DATA+JOURNAL, such as ext/page/nand:size=4G+conv:size=128M",
            ),
        },
        |term| Ok(Arc::new(ExtSettings::read(term)?)),
    ),
    Station::volume(&tree::KIND, NOTHING, |term| Ok(Arc::new(TreeSettings::read(term)?))),
    Station::of_kernel(&kernel::EXT4, |term| kernel_settings(term, KernelFileSystem::Ext4, &kernel::EXT4)),
    Station::of_kernel(&kernel::BTRFS, |term| kernel_settings(term, KernelFileSystem::Btrfs, &kernel::BTRFS)),
    Station::of_kernel(&kernel::XFS, |term| kernel_settings(term, KernelFileSystem::Xfs, &kernel::XFS)),
    Station::of_kernel(&kernel::F2FS, |term| kernel_settings(term, KernelFileSystem::F2fs, &kernel::F2FS)),
    Station::of_kernel(&kernel::NILFS2, |term| kernel_settings(term, KernelFileSystem::Nilfs2, &kernel::NILFS2)),
    Station::device(
        &cache::KIND,
        "cache",
        Offer::Blocks,
        Below {
            takes: BLOCKS,
            later: &[],
            count: (1, 2),
            example: None,
            several: Some("the cache in memory has one device; of two, the first holds the cache: cache/CACHE+DEVICE"),
        },
        |term, below| Ok(Arc::new(cache::CacheSettings::read(term, below.len())?)),
    ),
    Station::device(
        &hold_journal::KIND,
        "cache",
        Offer::Blocks,
        Below {
            // A file name can contain a slash.
            example: Some(
                "/conv:image=DISK after it; behind a file name, after a comma: hold-journal:spill=FILE,memory=64M/conv:image=DISK",
            ),
            ..one(BLOCKS)
        },
        |term, below| Ok(Arc::new(hold_journal::HoldJournalSettings::read(term, below)?)),
    ),
    Station::device(
        &zoned::KIND,
        "translation",
        Offer::Blocks,
        Below {
            takes: BLOCKS_OR_ZONES,
            later: &[],
            count: (1, usize::MAX),
            example: Some("/conv:size=1G+zns:size=4G after it, or /zns:conventional=16"),
            several: Some("several devices are one address space: dm-zoned/CONVENTIONAL+ZONED+ZONED..."),
        },
        |term, below| Ok(Arc::new(zoned::station::read(term, below)?)),
    ),
    Station::layer_read(&page_level::KIND, read_page),
    Station::layer::<DftlSettings>(&dftl::KIND),
    Station::layer::<FastSettings>(&fast::KIND),
    Station::layer::<SuperblockSettings>(&superblock::KIND),
    Station::device(&conv::KIND, "media", Offer::Blocks, NOTHING, |term, _| {
        read_conventional(term, |layer| layer_named(STATIONS, layer))
    }),
    Station::device(&zns::KIND, "media", Offer::Zones, NOTHING, |term, _| Ok(Arc::new(ZnsSettings::read(term)?))),
    Station::device(&nvm::KIND, "media", Offer::Memory, NOTHING, |term, _| Ok(Arc::new(nvm::NvmSettings::read(term)?))),
    Station::device(&monitor::KIND, "media", Offer::Memory, NOTHING, |term, _| {
        Ok(Arc::new(MonitorSettings::read(term)?))
    }),
    Station { kind: &nand::KIND, level: "media", offers: Offer::Flash, below: NOTHING, read: Read::Flash },
];

/// Parses `page`: with fdp= it collects reclaim units, and otherwise blocks.
fn read_page(term: &Term, geometry: &Geometry) -> Result<Arc<dyn AnyLayer>, ExpressionError> {
    let has_units = term.options.iter().any(|(option, _)| option.text == "fdp");
    if has_units { read_layer::<FdpSettings>(term, geometry) } else { read_layer::<PageSettings>(term, geometry) }
}

fn kernel_settings(
    term: &Term,
    file_system: KernelFileSystem,
    kind: &'static Kind,
) -> Result<KernelSettings, ExpressionError> {
    KernelSettings::read(term, file_system, kind)
}

/// The row with a term's name.
pub(super) fn named<'s>(stations: &'s [Station], term: &Term) -> Result<&'s Station, ExpressionError> {
    let kinds: Vec<&Kind> = stations.iter().map(|station| station.kind).collect();
    let kind = term.find("station", &kinds)?;
    Ok(stations.iter().find(|station| station.kind.name == kind.name).expect("found among them"))
}

/// The function that parses the translation layer of a term.
fn layer_named(stations: &[Station], term: &Term) -> Result<ReadLayer, ExpressionError> {
    match named(stations, term)?.read {
        Read::Layer(read) => Ok(read),
        Read::Flash | Read::Device(_) | Read::Volume(_) | Read::Kernel(_) => {
            let message = format!("{} is no translation layer on flash", term.name.text);
            let layers = stations.iter().filter(|station| matches!(station.read, Read::Layer(_)));
            let help = format!("take {}", one_of(layers.map(|station| station.kind.name)));
            Err(term.error(term.span.clone(), message, help))
        }
    }
}

/// The names of the stations that offer one of these.
pub fn names_offering<'s>(stations: &'s [Station], offers: &'s [Offer]) -> impl Iterator<Item = &'static str> + 's {
    stations.iter().filter(|station| offers.contains(&station.offers)).map(|station| station.kind.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Path;

    #[test]
    fn a_mount_of_every_volume_shows_the_name_of_its_kind_or_of_the_program() {
        for row in STATIONS.iter().filter(|row| row.is_volume()) {
            let below = if row.below.takes.is_empty() { "" } else { "/conv:size=1G" };
            let path = Path::read(&format!("{}{below}", row.kind.name)).unwrap();
            let shown = path.volume_settings().unwrap().mounted_as();
            assert!(shown == "flashpath" || shown == row.kind.name, "{} is shown as {shown}", row.kind.name);
        }
    }
}
