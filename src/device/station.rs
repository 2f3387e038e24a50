//! A device of a path: its options, the devices below it, and how all of them are opened.
//!
//! [`DeviceSettings`] is implemented in each station's folder, beside its `Kind`. A [`DeviceNode`] is a station at its
//! position in a path, with the nodes below it.

use super::wait_log::WaitLog;
use super::{BlockDevice, DeviceError, ImageError, Medium, STAMP_BYTES};
use crate::expression::Term;
use crate::units::BLOCK_BYTES;
use std::any::Any;
use std::error::Error;
use std::fmt::{self, Debug};
use std::path::Path as FilePath;
use std::sync::Arc;

/// The interface that a station offers to the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Pages that are programmed once, in blocks that are erased.
    Flash,
    /// Zones, each written in order.
    Zones,
    /// Blocks that can be written in any order.
    Blocks,
    /// Memory: bytes in lines, which have no blocks.
    Memory,
    /// Files.
    Files,
}

/// The content of the blocks of a device in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Bytes, which a reader uses.
    Bytes,
    /// Stamps that stand for bytes: a simulation. An image always holds bytes.
    Stamps,
}

impl Payload {
    /// Bytes of a buffer for one block.
    pub fn width(self) -> usize {
        match self {
            Payload::Bytes => BLOCK_BYTES as usize,
            Payload::Stamps => STAMP_BYTES,
        }
    }
}

/// The storage of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage<'a> {
    /// On the devices below it.
    Below,
    /// In memory: new in each run.
    Memory,
    /// In an image, or on a block device of the system.
    File(&'a FilePath),
    /// In the memory of another process, which outlasts this one.
    Process,
}

/// Options for opening devices.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The content of blocks in memory.
    pub holds: Payload,
    /// The seed of the devices' random choices.
    pub seed: u64,
    /// True if everything is in memory, and so new: volumes are made, not opened.
    pub is_new: bool,
    /// Where the devices record the waits of their operations, if somebody asks.
    pub wait_log: Option<&'a WaitLog>,
}

/// Options for making volumes on images.
#[derive(Debug, Clone, Copy)]
pub struct MakeOptions {
    /// True to replace existing images.
    pub force: bool,
    /// The seed of the volumes' UUIDs: each volume needs another.
    pub seed: u64,
}

/// The reason why a station cannot be opened or made.
#[derive(Debug, thiserror::Error)]
pub enum StationError {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An image cannot be used.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The devices below do not hold a volume of this station, or cannot.
    #[error("{source}")]
    Volume {
        /// True if there is a volume with an inconsistent structure.
        is_damaged: bool,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Only a part of the path is in memory, or all of it although a volume should persist.
    #[error("storage in memory is new in each run: give every device an image=, or none")]
    Mixed,
}

/// The options of a station that is a device, and how it is opened on the devices below.
///
/// The table of stations ensures that `below` has the number and the kinds of devices that the station takes.
pub trait DeviceSettings: Debug + Any + Send + Sync {
    /// The term with all option values.
    fn written_out(&self) -> String;

    /// The station's storage.
    fn storage(&self) -> Storage<'_> {
        Storage::Below
    }

    /// The number of devices, the first of `below`, whose content need not outlast a run.
    fn scratch_devices(&self, _below: usize) -> usize {
        0
    }

    /// True if it keeps a volume on the devices below; [`make`](DeviceSettings::make) makes it.
    fn has_volume(&self) -> bool {
        false
    }

    /// An estimate of the bytes of memory that the station takes when all of it is written, without those of the devices
    /// below.
    fn memory_bytes(&self, _holds: Payload) -> u64 {
        0
    }

    /// Opens the station in its last state, or new.
    fn open(&self, below: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError>;

    /// Makes its image, or an empty volume on the devices below, and opens it.
    fn make(&self, below: Vec<Medium>, making: &MakeOptions) -> Result<Medium, StationError> {
        self.open(below, &OpenOptions { holds: Payload::Bytes, seed: making.seed, is_new: false, wait_log: None })
    }
}

/// A device of a path: a station, and those below it.
#[derive(Clone)]
pub struct DeviceNode {
    /// The term that names the station.
    pub term: Term,
    /// Its interface: [`Offer::Blocks`], [`Offer::Zones`] or [`Offer::Memory`].
    pub offers: Offer,
    settings: Arc<dyn DeviceSettings>,
    /// The devices below it.
    pub below: Vec<DeviceNode>,
}

/// Equal nodes print alike, however they were written.
impl Debug for DeviceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceNode").field("settings", &self.settings).field("below", &self.below).finish()
    }
}

impl DeviceNode {
    /// A station at its position in a path.
    pub fn new(term: Term, offers: Offer, settings: Arc<dyn DeviceSettings>, below: Vec<DeviceNode>) -> DeviceNode {
        DeviceNode { term, offers, settings, below }
    }

    /// Its options, if they have this type.
    pub fn settings<S: DeviceSettings>(&self) -> Option<&S> {
        let settings: &dyn Any = &*self.settings;
        settings.downcast_ref()
    }

    /// The expression with all option values.
    pub fn written_out(&self) -> String {
        let below: Vec<String> = self.below.iter().map(DeviceNode::written_out).collect();
        let own = self.settings.written_out();
        if below.is_empty() { own } else { format!("{own}/{}", below.join("+")) }
    }

    /// True if this node or one below it keeps a volume on the devices below.
    pub fn has_volume(&self) -> bool {
        self.settings.has_volume() || self.below.iter().any(DeviceNode::has_volume)
    }

    /// An estimate of the bytes of memory that this node and those below it take when all of them is written.
    pub fn memory_bytes(&self, holds: Payload) -> u64 {
        let below = self.below.iter().map(|node| node.memory_bytes(holds));
        below.fold(self.settings.memory_bytes(holds), u64::saturating_add)
    }

    /// The storage of this node and those below it that must outlast a run.
    fn storages(&self) -> Vec<Storage<'_>> {
        let scratch = self.settings.scratch_devices(self.below.len());
        let below = self.below.iter().skip(scratch).flat_map(DeviceNode::storages);
        let own = Some(self.settings.storage()).filter(|storage| *storage != Storage::Below);
        own.into_iter().chain(below).collect()
    }

    /// True if all of it is in memory, and so new in each run.
    pub fn is_in_memory(&self) -> bool {
        self.storages().iter().all(|storage| *storage == Storage::Memory)
    }

    /// An error if a part of it is in memory, as a volume on it would not outlast the run.
    pub fn check_outlasts_a_run(&self) -> Result<(), StationError> {
        if self.storages().contains(&Storage::Memory) { Err(StationError::Mixed) } else { Ok(()) }
    }

    /// All images and block devices of the system.
    pub fn files(&self) -> Vec<&FilePath> {
        let own = match self.settings.storage() {
            Storage::File(file) => Some(file),
            Storage::Below | Storage::Memory | Storage::Process => None,
        };
        own.into_iter().chain(self.below.iter().flat_map(DeviceNode::files)).collect()
    }

    fn opening(&self, holds: Payload, seed: u64) -> Result<OpenOptions<'static>, StationError> {
        let is_new = self.is_in_memory();
        if !is_new {
            self.check_outlasts_a_run()?;
        }
        Ok(OpenOptions { holds: if is_new { holds } else { Payload::Bytes }, seed, is_new, wait_log: None })
    }

    /// Opens it: storage in memory is new; an image has its last state, and holds bytes whatever `holds` says. `seed`
    /// is that of the devices' random choices.
    pub fn open(&self, holds: Payload, seed: u64) -> Result<Medium, StationError> {
        self.open_as(&self.opening(holds, seed)?)
    }

    /// The same; the devices record the waits of their operations in this log.
    pub fn open_recorded(&self, holds: Payload, seed: u64, wait_log: Option<&WaitLog>) -> Result<Medium, StationError> {
        self.open_as(&OpenOptions { wait_log, ..self.opening(holds, seed)? })
    }

    /// Opens only the devices below it.
    pub fn open_below(&self, holds: Payload, seed: u64) -> Result<Vec<Medium>, StationError> {
        let opening = self.opening(holds, seed)?;
        self.below.iter().map(|node| node.open_as(&opening)).collect()
    }

    fn open_as(&self, opening: &OpenOptions) -> Result<Medium, StationError> {
        let below = self.below.iter().map(|node| node.open_as(opening)).collect::<Result<_, _>>()?;
        self.settings.open(below, opening)
    }

    /// An error if a part of it is in memory, or if an image exists that would be replaced without `force`.
    pub fn check_makeable(&self, making: &MakeOptions) -> Result<(), StationError> {
        self.check_outlasts_a_run()?;
        match self.files().iter().find(|file| file.is_file() && !making.force) {
            Some(image) => {
                let bytes = image.metadata().map_or(0, |metadata| metadata.len());
                Err(ImageError::Exists { image: image.display().to_string(), bytes }.into())
            }
            None => Ok(()),
        }
    }

    /// Makes the images and the volumes, from the bottom up. Existing images are replaced only with `force`; after a
    /// failure, unfinished images are removed.
    pub fn make(&self, making: &MakeOptions) -> Result<Medium, StationError> {
        self.check_makeable(making)?;
        let new: Vec<&FilePath> = self.files().into_iter().filter(|file| !file.exists()).collect();
        self.make_all(making).inspect_err(|_| remove(&new))
    }

    fn make_all(&self, making: &MakeOptions) -> Result<Medium, StationError> {
        let below = self.below.iter().map(|node| node.make_all(making)).collect::<Result<_, _>>()?;
        self.settings.make(below, making)
    }
}

/// Removes unfinished images. An error here would hide the one that led to it.
pub(crate) fn remove(images: &[&FilePath]) {
    for image in images {
        let _ = std::fs::remove_file(image);
    }
}

/// The only device below a station that takes one.
///
/// # Panics
///
/// With another number: the table of stations is wrong.
pub fn only_medium(below: Vec<Medium>) -> Medium {
    match <[Medium; 1]>::try_from(below) {
        Ok([medium]) => medium,
        Err(below) => panic!("the station takes one device, not {}", below.len()),
    }
}

/// The only device below a station that takes one device of blocks.
///
/// # Panics
///
/// With another number, or another kind: the table of stations is wrong.
pub fn only_blocks(below: Vec<Medium>) -> Box<dyn BlockDevice> {
    match only_medium(below) {
        Medium::Blocks(device) => device,
        Medium::Zones(_) | Medium::Memory(_) | Medium::Monitor(_) => panic!("the station takes one device of blocks"),
    }
}
