//! The stations of a path: which there are, what each can stand on, and the translation layers on flash.

use crate::device::nand::{self, Geometry, Nand, NandSettings, Reserving, Timing, Untimed};
use crate::device::{conv, zns};
use crate::expression::{ExpressionError, Kind, Term, parse_term};
use crate::fs::{kernel, sfs};
use crate::translation::dftl::{self, DftlSettings};
use crate::translation::fast::{self, Fast, FastSettings};
use crate::translation::page_level::{self, PageLevel, PageSettings, RamMap};
use crate::translation::superblock::{self, SuperblockFtl, SuperblockSettings};
use crate::translation::{Translation, zoned};

/// A kind of station, and its place.
#[derive(Debug)]
pub struct Station {
    /// Name, options, and what they mean.
    pub kind: &'static Kind,
    /// The level it belongs to, in words.
    pub level: &'static str,
    /// The names of the stations it can stand on; empty for media, which stand at the bottom.
    pub stands_on: &'static [&'static str],
}

impl Station {
    /// Whether a block can be written again at its address, so that a workload or a file system can stand on it.
    pub fn is_rewritable(&self) -> bool {
        !["nand", "zns"].contains(&self.kind.name)
    }
}

/// What offers blocks that can be written anywhere, and so carries a file system.
const BLOCKS: &[&str] = &["dm-zoned", "page", "dftl", "fast", "superblock", "conv"];

/// What carries sfs: a segment can be a zone, too.
const BLOCKS_OR_ZONES: &[&str] = &["page", "dftl", "fast", "superblock", "conv", "zns", "dm-zoned"];

/// All stations, from the top of a path to the bottom.
pub static STATIONS: &[Station] = &[
    Station { kind: &sfs::KIND, level: "file system", stands_on: BLOCKS_OR_ZONES },
    Station { kind: &kernel::EXT4, level: "file system", stands_on: BLOCKS },
    Station { kind: &kernel::BTRFS, level: "file system", stands_on: BLOCKS },
    Station { kind: &kernel::XFS, level: "file system", stands_on: BLOCKS },
    Station { kind: &zoned::KIND, level: "translation", stands_on: &["conv", "zns"] },
    Station { kind: &page_level::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &dftl::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &fast::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &superblock::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &conv::KIND, level: "media", stands_on: &[] },
    Station { kind: &zns::KIND, level: "media", stands_on: &[] },
    Station { kind: &nand::KIND, level: "media", stands_on: &[] },
];

/// A translation layer on flash.
#[derive(Debug, Clone)]
pub enum Layer {
    /// `page`.
    Page(PageSettings),
    /// `dftl`.
    Dftl(DftlSettings),
    /// `fast`.
    Fast(FastSettings),
    /// `superblock`.
    Superblock(SuperblockSettings),
}

impl Layer {
    fn read(term: &Term, geometry: &Geometry) -> Result<Layer, ExpressionError> {
        Ok(match term.name.text.as_str() {
            "page" => Layer::Page(PageSettings::read(term, geometry)?),
            "dftl" => Layer::Dftl(DftlSettings::read(term, geometry)?),
            "fast" => Layer::Fast(FastSettings::read(term, geometry)?),
            "superblock" => Layer::Superblock(SuperblockSettings::read(term, geometry)?),
            name => unreachable!("{name} is no translation layer on flash"),
        })
    }

    fn exported_pages(&self) -> u64 {
        match self {
            Layer::Page(settings) => settings.exported_pages,
            Layer::Dftl(settings) => settings.page.exported_pages,
            Layer::Fast(settings) => settings.exported_pages,
            Layer::Superblock(settings) => settings.exported_pages,
        }
    }

    fn written_out(&self) -> &str {
        match self {
            Layer::Page(settings) => &settings.written_out,
            Layer::Dftl(settings) => &settings.page.written_out,
            Layer::Fast(settings) => &settings.written_out,
            Layer::Superblock(settings) => &settings.written_out,
        }
    }
}

/// A drive: a translation layer and its flash.
#[derive(Debug, Clone)]
pub struct DriveSettings {
    /// The translation layer.
    pub layer: Layer,
    /// The flash.
    pub nand: NandSettings,
}

/// More flash than any preset keeps in reserve.
const MOST_RESERVED: u64 = 64 << 30;

/// What is to be done with a drive, whichever translation layer and timing it has.
pub(super) trait WithDrive {
    /// What comes of it.
    type Output;

    /// Does it.
    fn with<T: Translation + Send + 'static>(self, drive: T) -> Self::Output;
}

impl DriveSettings {
    /// Reads the terms of a translation layer and its flash.
    pub(super) fn read(layer: &Term, flash: &Term) -> Result<DriveSettings, ExpressionError> {
        let nand = NandSettings::read(flash)?;
        Ok(DriveSettings { layer: Layer::read(layer, &nand.geometry)?, nand })
    }

    /// A translation layer, with its defaults, on the least flash of these options that lets it export `bytes`: within a
    /// 256th, as a size must suit reserves that grow with it. The error is that of the largest size tried.
    pub(super) fn exporting(bytes: u64, layer: &str, flash: &str) -> Result<DriveSettings, ExpressionError> {
        let layer = parse_term(layer)?;
        let step = (bytes / 256).max(1 << 20);
        let mut size = bytes + step;
        loop {
            let flash = parse_term(&format!("nand:{flash},size={size}"))?;
            match DriveSettings::read(&layer, &flash) {
                Ok(drive) if drive.exported_bytes() >= bytes => return Ok(drive),
                Err(error) if size > 4 * bytes + MOST_RESERVED => return Err(error),
                _ => size += step,
            }
        }
    }

    /// Bytes that the drive offers.
    pub fn exported_bytes(&self) -> u64 {
        self.layer.exported_pages() * u64::from(self.nand.geometry.page_bytes)
    }

    /// Both terms with every option written out.
    pub fn written_out(&self) -> String {
        format!("{}/{}", self.layer.written_out(), self.nand.written_out)
    }

    /// Makes a new drive, and does with it what is to be done. `keeps_versions`: whether a read returns the stamp that was
    /// written.
    pub(super) fn make<W: WithDrive>(&self, keeps_versions: bool, seed: u64, with: W) -> W::Output {
        match self.nand.latencies {
            None => self.make_timed(Untimed, keeps_versions, seed, with),
            Some(latencies) => {
                let timing = Reserving::new(self.nand.geometry, latencies);
                self.make_timed(timing, keeps_versions, seed, with)
            }
        }
    }

    fn make_timed<T: Timing + Send + 'static, W: WithDrive>(
        &self,
        timing: T,
        keeps_versions: bool,
        seed: u64,
        with: W,
    ) -> W::Output {
        let flash = Nand::new(self.nand.geometry, self.nand.endurance, keeps_versions, timing);
        match &self.layer {
            Layer::Page(settings) => {
                with.with(PageLevel::new(flash, settings, RamMap::new(settings.exported_pages), seed))
            }
            Layer::Dftl(settings) => with.with(settings.drive(flash, seed)),
            Layer::Fast(settings) => with.with(Fast::new(flash, settings)),
            Layer::Superblock(settings) => with.with(SuperblockFtl::new(flash, settings)),
        }
    }
}
