//! A device as a path names it: its options, the devices it stands on, and how all of them are opened.
//!
//! [`DeviceSettings`] is what a station brings: it lies in the station's folder, beside its `Kind`. A [`DeviceNode`] is
//! a station in its place in a path, with the nodes below it.

use super::{BlockDevice, DeviceError, ImageError, Medium, STAMP_BYTES};
use crate::expression::Term;
use crate::units::BLOCK_BYTES;
use std::any::Any;
use std::error::Error;
use std::fmt::{self, Debug};
use std::path::Path as FilePath;
use std::sync::Arc;

/// What a station offers to the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Pages that are programmed once, and blocks of them that are erased.
    Flash,
    /// Zones that are written in order.
    Zones,
    /// Blocks that can be written anywhere.
    Blocks,
    /// Files.
    Files,
}

/// What the blocks of a device in memory hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Bytes: a reader will look at them.
    Bytes,
    /// Stamps that stand for bytes: a simulation. What lies in an image holds bytes all the same.
    Stamps,
}

impl Holds {
    /// Bytes of a buffer that are a block.
    pub fn width(self) -> usize {
        match self {
            Holds::Bytes => BLOCK_BYTES as usize,
            Holds::Stamps => STAMP_BYTES,
        }
    }
}

/// Where a station keeps what it stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage<'a> {
    /// On the devices below it.
    Below,
    /// In memory: it is new each time.
    Memory,
    /// In an image, or on a device of the system.
    File(&'a FilePath),
}

/// How devices are opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// What blocks in memory hold.
    pub holds: Holds,
    /// The seed of the choices that devices make.
    pub seed: u64,
    /// True if all is in memory, and so new: volumes are made, not opened.
    pub is_new: bool,
}

/// How volumes are made on images.
#[derive(Debug, Clone, Copy)]
pub struct Making {
    /// Replace images that are there.
    pub force: bool,
    /// The seed of the numbers (UUIDs) of volumes: no two volumes should have one seed.
    pub seed: u64,
}

/// Why a station cannot be opened or made.
#[derive(Debug, thiserror::Error)]
pub enum StationError {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An image cannot be used.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The devices below hold no volume of this station, or cannot.
    #[error("{source}")]
    Volume {
        /// True if there is a volume, and a structure of it says what cannot be.
        is_damaged: bool,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Only a part of a path is in memory, or all of it where a volume should stay.
    #[error("what is in memory is new each time: give every device an image=, or none")]
    Mixed,
}

/// The options of a station that is a device, and how it is opened on what stands below it.
///
/// The table of stations has made sure that `below` is as many devices, of such kinds, as the station takes.
pub trait DeviceSettings: Debug + Any + Send + Sync {
    /// The term with every option written out.
    fn written_out(&self) -> String;

    /// Where it keeps what it stores.
    fn storage(&self) -> Storage<'_> {
        Storage::Below
    }

    /// Of `below` devices, the first so many hold nothing that must outlast a run.
    fn scratch_devices(&self, _below: usize) -> usize {
        0
    }

    /// True if it keeps a volume on the devices below, which [`make`](DeviceSettings::make) makes.
    fn has_volume(&self) -> bool {
        false
    }

    /// Opens it as it was left, or new.
    fn open(&self, below: Vec<Medium>, opening: &Opening) -> Result<Medium, StationError>;

    /// Makes its image, or an empty volume on the devices below, and opens it.
    fn make(&self, below: Vec<Medium>, making: &Making) -> Result<Medium, StationError> {
        self.open(below, &Opening { holds: Holds::Bytes, seed: making.seed, is_new: false })
    }
}

/// A device of a path: a station, and those below it.
#[derive(Clone)]
pub struct DeviceNode {
    /// The term that names the station.
    pub term: Term,
    /// What it offers: [`Offer::Blocks`] or [`Offer::Zones`].
    pub offers: Offer,
    settings: Arc<dyn DeviceSettings>,
    /// The devices that it stands on.
    pub below: Vec<DeviceNode>,
}

/// What it is, not how it was written.
impl Debug for DeviceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceNode").field("settings", &self.settings).field("below", &self.below).finish()
    }
}

impl DeviceNode {
    /// A station in its place.
    pub fn new(term: Term, offers: Offer, settings: Arc<dyn DeviceSettings>, below: Vec<DeviceNode>) -> DeviceNode {
        DeviceNode { term, offers, settings, below }
    }

    /// Its options, if they are of this type.
    pub fn settings<S: DeviceSettings>(&self) -> Option<&S> {
        let settings: &dyn Any = &*self.settings;
        settings.downcast_ref()
    }

    /// The expression with every option written out.
    pub fn written_out(&self) -> String {
        let below: Vec<String> = self.below.iter().map(DeviceNode::written_out).collect();
        let own = self.settings.written_out();
        if below.is_empty() { own } else { format!("{own}/{}", below.join("+")) }
    }

    /// True if it keeps a volume on what is below it, or a node below does.
    pub fn has_volume(&self) -> bool {
        self.settings.has_volume() || self.below.iter().any(DeviceNode::has_volume)
    }

    /// Where it, and what is below it, keep what must outlast a run.
    fn storages(&self) -> Vec<Storage<'_>> {
        let scratch = self.settings.scratch_devices(self.below.len());
        let below = self.below.iter().skip(scratch).flat_map(DeviceNode::storages);
        let own = Some(self.settings.storage()).filter(|storage| *storage != Storage::Below);
        own.into_iter().chain(below).collect()
    }

    /// True if all of it is in memory, and so new each time.
    pub fn is_in_memory(&self) -> bool {
        self.storages().iter().all(|storage| *storage == Storage::Memory)
    }

    /// True if some of it is in memory.
    pub fn is_partly_in_memory(&self) -> bool {
        self.storages().contains(&Storage::Memory)
    }

    /// Every image, and every device of the system.
    pub fn files(&self) -> Vec<&FilePath> {
        let own = match self.settings.storage() {
            Storage::File(file) => Some(file),
            Storage::Below | Storage::Memory => None,
        };
        own.into_iter().chain(self.below.iter().flat_map(DeviceNode::files)).collect()
    }

    fn opening(&self, holds: Holds, seed: u64) -> Result<Opening, StationError> {
        let is_new = self.is_in_memory();
        if !is_new && self.is_partly_in_memory() {
            return Err(StationError::Mixed);
        }
        Ok(Opening { holds: if is_new { holds } else { Holds::Bytes }, seed, is_new })
    }

    /// Opens it: what is in memory is new; what lies in images is as it was left, and carries bytes, whatever `holds`
    /// says. `seed` is that of the choices that devices make.
    pub fn open(&self, holds: Holds, seed: u64) -> Result<Medium, StationError> {
        self.open_as(&self.opening(holds, seed)?)
    }

    /// Opens the devices below it alone.
    pub fn open_below(&self, holds: Holds, seed: u64) -> Result<Vec<Medium>, StationError> {
        let opening = self.opening(holds, seed)?;
        self.below.iter().map(|node| node.open_as(&opening)).collect()
    }

    fn open_as(&self, opening: &Opening) -> Result<Medium, StationError> {
        let below = self.below.iter().map(|node| node.open_as(opening)).collect::<Result<_, _>>()?;
        self.settings.open(below, opening)
    }

    /// Makes the images and the volumes, from the bottom up. Images that are there are replaced only with `force`; those
    /// that a failure leaves half made are removed.
    pub fn make(&self, making: &Making) -> Result<Medium, StationError> {
        if self.is_partly_in_memory() {
            return Err(StationError::Mixed);
        }
        let files = self.files();
        if let Some(image) = files.iter().find(|file| file.is_file() && !making.force) {
            let bytes = image.metadata().map_or(0, |metadata| metadata.len());
            return Err(ImageError::Exists { image: image.display().to_string(), bytes }.into());
        }
        let new: Vec<&FilePath> = files.into_iter().filter(|file| !file.exists()).collect();
        self.make_all(making).inspect_err(|_| remove(&new))
    }

    fn make_all(&self, making: &Making) -> Result<Medium, StationError> {
        let below = self.below.iter().map(|node| node.make_all(making)).collect::<Result<_, _>>()?;
        self.settings.make(below, making)
    }
}

/// Removes images that are half made. An error of the removal would hide the one that led to it.
pub(crate) fn remove(images: &[&FilePath]) {
    for image in images {
        let _ = std::fs::remove_file(image);
    }
}

/// The one device below a station that takes one device of blocks.
///
/// # Panics
///
/// If there is another number, or another kind: the table of stations is wrong.
pub fn only_blocks(below: Vec<Medium>) -> Box<dyn BlockDevice> {
    match <[Medium; 1]>::try_from(below) {
        Ok([Medium::Blocks(device)]) => device,
        _ => panic!("the station takes one device of blocks"),
    }
}
