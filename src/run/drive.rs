//! A translation layer on flash in a path: as a block device, or run directly by the engine.

use super::EngineRun;
use super::backend::DriveBackend;
use super::outcome::Outcome;
use crate::device::conv::{self, ConvSettings};
use crate::device::nand::errors::Age;
use crate::device::nand::{self, Geometry, Nand, NandSettings, Reserving, Scheduled, Timing, Untimed};
use crate::device::station::{DeviceSettings, OpenOptions, Payload, StationError, Storage};
use crate::device::{BlockDevice, DeviceError, Medium};
use crate::expression::{ExpressionError, Term, parse_term};
use crate::translation::{Asked, Buffered, Drive, FlashLayer, Translation};
use crate::units::{BLOCK_BYTES, format_size, human_size};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// A [`FlashLayer`] of any type.
pub(super) trait AnyLayer: Debug + Any + Send + Sync {
    fn written_out(&self) -> &str;

    fn exported_pages(&self) -> u64;

    /// The pages of its write buffer.
    fn buffered_pages(&self) -> u64;

    /// Why it cannot serve on flash whose reads and blocks fail, and what can.
    fn refuses_errors(&self) -> Option<(&'static str, &'static str)>;

    /// A new drive with its first `blocks` blocks; as one `medium` of several, if that has a name.
    fn device(&self, flash: &NandSettings, opening: &OpenOptions, offered: Offered) -> Box<dyn BlockDevice>;

    /// Runs the engine on a new drive, with no dynamic call per page. `keeps_versions`: a read returns the stamp that
    /// was written.
    fn run(&self, flash: &NandSettings, keeps_versions: bool, run: EngineRun<'_>) -> Outcome;
}

/// The interface of a drive to the station above.
#[derive(Clone, Copy)]
pub(super) struct Offered {
    pub blocks: u64,
    /// The station's name in the ledger, if the drive is the inside of one.
    pub medium: Option<&'static str>,
}

/// New flash: its errors, and all else but the timing.
#[derive(Clone, Copy)]
struct NewFlash<'a> {
    settings: &'a NandSettings,
    keeps_versions: bool,
    age: Option<&'a Age>,
    seed: u64,
}

impl NewFlash<'_> {
    /// Erased flash, with one kind of timing.
    fn with<T: Timing>(self, timing: T) -> Nand<T> {
        let NewFlash { settings, keeps_versions, age, seed } = self;
        let flash = Nand::new(settings.geometry, settings.endurance, keeps_versions, timing)
            .with_cells(settings.cells.as_ref())
            .with_energy(settings.energy.as_ref());
        match &settings.errors {
            None => flash,
            Some(errors) => flash.with_errors(errors, age, seed),
        }
    }
}

impl<L: FlashLayer> AnyLayer for L {
    fn written_out(&self) -> &str {
        FlashLayer::written_out(self)
    }

    fn exported_pages(&self) -> u64 {
        FlashLayer::exported_pages(self)
    }

    fn buffered_pages(&self) -> u64 {
        self.buffer().map_or(0, |buffer| buffer.pages.into())
    }

    fn refuses_errors(&self) -> Option<(&'static str, &'static str)> {
        FlashLayer::refuses_errors(self)
    }

    fn device(&self, flash: &NandSettings, opening: &OpenOptions, offered: Offered) -> Box<dyn BlockDevice> {
        fn boxed<L: FlashLayer, T: Timing + Send + 'static>(
            layer: &L,
            flash: Nand<T>,
            opening: &OpenOptions,
            offered: Offered,
        ) -> Box<dyn BlockDevice> {
            let on_flash = layer.on(flash, opening.seed);
            match layer.buffer() {
                None => drive(on_flash, opening, offered),
                Some(buffer) => drive(Buffered::new(on_flash, buffer), opening, offered),
            }
        }
        fn drive<L: Translation + Send + 'static>(
            layer: L,
            opening: &OpenOptions,
            offered: Offered,
        ) -> Box<dyn BlockDevice> {
            let drive = Drive::new(layer, offered.blocks, opening.holds.width());
            Box::new(match offered.medium {
                Some(station) => drive.into_medium(station),
                None => drive,
            })
        }
        let new = NewFlash { settings: flash, keeps_versions: false, age: None, seed: opening.seed };
        match flash.latencies {
            None => boxed(self, new.with(Untimed), opening, offered),
            Some(latencies) => {
                let log = opening.wait_log.map(|log| log.with_buffer(self.buffer().is_some()));
                let timing = Reserving::new(flash.geometry, latencies, log.as_ref())
                    .with_commands(&flash.geometry, flash.commands)
                    .with_cells(flash.cells.as_ref());
                boxed(self, new.with(timing), opening, offered)
            }
        }
    }

    fn run(&self, flash: &NandSettings, keeps_versions: bool, run: EngineRun<'_>) -> Outcome {
        let seed = run.seed;
        let log = run.options.log.as_ref().map(|log| log.waits().with_buffer(self.buffer().is_some()));
        let new = NewFlash { settings: flash, keeps_versions, age: run.options.age.as_ref(), seed };
        match (flash.latencies, self.buffer()) {
            (None, None) => run.run(DriveBackend::new(self.on(new.with(Untimed), seed))),
            (None, Some(buffer)) => {
                let layer = self.on(new.with(Untimed), seed);
                run.run(DriveBackend::new(Buffered::new(layer, buffer)))
            }
            (Some(latencies), buffer) => {
                let timing = Scheduled::new(flash.geometry, latencies, log.as_ref())
                    .with_commands(flash.commands)
                    .with_suspension(flash.suspension)
                    .with_cells(flash.cells.as_ref());
                let layer = self.on(new.with(timing), seed);
                match buffer {
                    None => run.run(DriveBackend::new(layer)),
                    Some(buffer) => run.run(DriveBackend::new(Buffered::new(layer, buffer))),
                }
            }
        }
    }
}

/// A drive: a translation layer and its flash.
#[derive(Debug, Clone)]
pub struct DriveSettings {
    layer: Arc<dyn AnyLayer>,
    /// The flash.
    pub nand: NandSettings,
}

/// Parses the term of a translation layer, for flash of this geometry.
pub(super) type ReadLayer = fn(&Term, &Geometry) -> Result<Arc<dyn AnyLayer>, ExpressionError>;

/// Parses the options of one kind of translation layer.
pub(super) fn read_layer<L: FlashLayer>(
    term: &Term,
    geometry: &Geometry,
) -> Result<Arc<dyn AnyLayer>, ExpressionError> {
    Ok(Arc::new(L::read(term, geometry)?))
}

/// Parses the term of flash below a layer. If the layer exports a size, the size of the flash follows from it.
///
/// Fails if both are written, and differ.
pub(super) fn flash_below(layer: &Term, flash: &Term) -> Result<NandSettings, ExpressionError> {
    let Some(asked) = Asked::of(layer) else { return NandSettings::read(flash) };
    asked.check(layer)?;
    let Some((_, size)) = flash.options.iter().find(|(name, _)| name.text == "size") else {
        return NandSettings::holding(flash, asked.raw_bytes);
    };
    let found = NandSettings::read(flash)?;
    let geometry = &found.geometry;
    let of_planes = geometry.raw_bytes() / u64::from(geometry.blocks.max(1)) * u64::from(geometry.units());
    if !asked.has_spare || geometry.raw_bytes().abs_diff(asked.raw_bytes) < of_planes {
        return Ok(found);
    }
    let (raw, written) = (asked.raw_bytes, &asked.written);
    let message = format!("{written} are {} of flash, and size= says otherwise", human_size(raw as f64));
    let follows = format_size(raw.next_multiple_of(of_planes.max(1)));
    let help = format!("remove size=, which follows from them ({follows}), or op=: size= says what is spare");
    let span = size.as_ref().map_or(flash.span.clone(), |size| size.span.clone());
    Err(flash.error(span, message, help))
}

/// Bytes of memory for a flash page: its spare area with an origin, and a valid bit.
const PAGE_BYTES: u64 = 5;
/// Bytes for its version, if reads are verified or the power can be cut.
const VERSION_BYTES: u64 = 16;
/// Bytes for an exported page: the entry of its map.
const MAPPED_PAGE_BYTES: u64 = 4;
/// Bytes for an erase block, in the lists of a layer and the flash, about.
const FLASH_BLOCK_BYTES: u64 = 256;

/// Bytes for a page in a write buffer: its write, its place in the order, and its entry in the table.
const BUFFERED_PAGE_BYTES: u64 = 48;

/// More flash than any preset reserves.
const MOST_RESERVED: u64 = 64 << 30;

impl DriveSettings {
    /// Parses the term of a translation layer for this flash.
    pub(super) fn read(
        read: ReadLayer,
        term: &Term,
        nand: NandSettings,
        of_flash: &Term,
    ) -> Result<DriveSettings, ExpressionError> {
        let layer = read(term, &nand.geometry)?;
        match layer.refuses_errors().filter(|_| nand.errors.is_some()) {
            Some(reason) => Err(NandSettings::errors_refused(&term.name.text, reason, of_flash)),
            None => Ok(DriveSettings { layer, nand }),
        }
    }

    /// A translation layer with its defaults, on the smallest flash with these options that lets it export `bytes`:
    /// within a 256th, as reserves grow with the size. The error is that of the largest size tried.
    fn exporting(bytes: u64, flash: &str, layer: &Term, read: ReadLayer) -> Result<DriveSettings, ExpressionError> {
        let step = (bytes / 256).max(1 << 20);
        let mut size = bytes + step;
        loop {
            let of_flash = parse_term(&format!("nand:{flash},size={size}"))?;
            match DriveSettings::read(read, layer, NandSettings::read(&of_flash)?, &of_flash) {
                Ok(drive) if drive.exported_bytes() >= bytes => return Ok(drive),
                Err(error) if size > 4 * bytes + MOST_RESERVED => return Err(error),
                _ => size += step,
            }
        }
    }

    /// The options of the layer, if they have this type.
    pub fn layer<L: FlashLayer>(&self) -> Option<&L> {
        let layer: &dyn Any = &*self.layer;
        layer.downcast_ref()
    }

    /// The exported bytes of the drive.
    pub fn exported_bytes(&self) -> u64 {
        self.layer.exported_pages() * u64::from(self.nand.geometry.page_bytes)
    }

    /// An estimate of the bytes of memory of a drive: the spare areas, the valid bits and the map of its pages, and the
    /// lists of its blocks. `keeps_versions`: the flash keeps a stamp and a sequence number of each page.
    pub(super) fn memory_bytes_of(&self, keeps_versions: bool) -> u64 {
        let geometry = &self.nand.geometry;
        let of_page = if keeps_versions { PAGE_BYTES + VERSION_BYTES } else { PAGE_BYTES };
        geometry.page_slots() as u64 * of_page
            + self.layer.exported_pages() * MAPPED_PAGE_BYTES
            + self.layer.buffered_pages() * BUFFERED_PAGE_BYTES
            + u64::from(geometry.blocks) * FLASH_BLOCK_BYTES
    }

    /// Runs the engine on a new drive.
    pub(super) fn run(&self, keeps_versions: bool, run: EngineRun<'_>) -> Outcome {
        self.layer.run(&self.nand, keeps_versions, run)
    }
}

impl DeviceSettings for DriveSettings {
    fn written_out(&self) -> String {
        format!("{}/{}", self.layer.written_out(), self.nand.written_out)
    }

    fn storage(&self) -> Storage<'_> {
        Storage::Memory
    }

    fn memory_bytes(&self, holds: Payload) -> u64 {
        self.memory_bytes_of(false) + self.exported_bytes() / BLOCK_BYTES * holds.width() as u64
    }

    /// Flash on which a later read interrupts an earlier operation cannot say when that ends, as a block device must at once.
    fn open(&self, _: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError> {
        if let Some(name) = self.nand.needs_queues() {
            let reason = format!(
                "{name} needs a block workload that runs on the translation layer alone: here each request is answered at once, \
                 before a later one is known; remove {name}"
            );
            return Err(DeviceError::Station { station: nand::KIND.name, reason }.into());
        }
        let offered = Offered { blocks: self.exported_bytes() / BLOCK_BYTES, medium: None };
        Ok(Medium::Blocks(self.layer.device(&self.nand, opening, offered)))
    }
}

/// A conventional device with a model of its own translation layer.
#[derive(Debug)]
struct ConventionalDrive {
    settings: ConvSettings,
    drive: DriveSettings,
}

/// Parses the term of a conventional device. `find` finds the layer that it names.
pub(super) fn read_conventional(
    term: &Term,
    find: impl Fn(&Term) -> Result<ReadLayer, ExpressionError>,
) -> Result<Arc<dyn DeviceSettings>, ExpressionError> {
    let settings = ConvSettings::read(term)?;
    Ok(match &settings.ftl {
        None => Arc::new(settings),
        Some(ftl) => {
            let layer = parse_term(&ftl.layer)?;
            let drive = DriveSettings::exporting(settings.size_bytes, &ftl.flash, &layer, find(&layer)?)?;
            Arc::new(ConventionalDrive { settings, drive })
        }
    })
}

impl DeviceSettings for ConventionalDrive {
    fn written_out(&self) -> String {
        self.settings.written_out.clone()
    }

    fn storage(&self) -> Storage<'_> {
        Storage::Memory
    }

    fn memory_bytes(&self, holds: Payload) -> u64 {
        self.drive.memory_bytes(holds)
    }

    fn open(&self, _: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError> {
        let offered = Offered { blocks: self.settings.blocks(), medium: Some(conv::KIND.name) };
        Ok(Medium::Blocks(self.drive.layer.device(&self.drive.nand, opening, offered)))
    }
}
