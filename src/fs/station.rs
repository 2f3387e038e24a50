//! A file system in a path expression: its options, and the operations on its volumes.
//!
//! A station implements [`VolumeSettings`] in its own folder, beside its `Kind`.

use super::volume::{Damage, Timestamp, Volume};
use crate::device::Medium;
use std::any::Any;
use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

/// The circumstances in which a volume is made or mounted.
#[derive(Clone, Copy, Debug)]
pub struct Mounting {
    /// The seed of all random choices, and of the volume's number.
    pub seed: u64,
    /// Wall-clock time at [`Time::ZERO`](crate::time::Time::ZERO); 0 in a simulation.
    pub origin: Timestamp,
    /// The maximum memory in bytes, unless the volume's options set it; `None` if unlimited.
    pub memory_bytes: Option<u64>,
}

impl Mounting {
    /// Mounting with this seed, at this wall-clock time in nanoseconds.
    pub fn at(seed: u64, wall_origin_ns: i64) -> Mounting {
        Mounting { seed, origin: Timestamp(wall_origin_ns), memory_bytes: None }
    }
}

/// The permitted access to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    ReadOnly,
    /// Read and write, if the volume has no damage.
    IfWhole,
    /// Read and write in spite of damage: the content of damaged structures is lost.
    DespiteDamage,
}

/// Failure to make, mount, check or inspect a volume.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct VolumeFault {
    /// True if there is a volume, but nothing of it can be used.
    pub is_lost: bool,
    /// The cause.
    pub source: Box<dyn Error + Send + Sync>,
}

/// The options of a file system, and the operations on its volumes.
pub trait VolumeSettings: Debug + Any + Send + Sync {
    /// The term with all options written out.
    fn written_out(&self) -> &str;

    /// The subtype that mount(8) shows behind `fuse.`, and by which umount(8) finds its program: `flashpath`, or the
    /// name of the kind. A mount of another subtype is not recognised as one of this program.
    fn mounted_as(&self) -> &'static str {
        "flashpath"
    }

    /// The reason why these options cannot be simulated, if any.
    fn refuses_simulation(&self) -> Option<&'static str> {
        None
    }

    /// Makes an empty volume, discarding the content of `below`, and mounts it. `below` are as many devices, of the kinds,
    /// as the table of stations says.
    fn create(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault>;

    /// The operations on stored volumes; `None` if the file system stores nothing.
    fn stored(&self) -> Option<&dyn StoredVolumes> {
        None
    }
}

/// Operations on volumes that are stored on devices: as many, of the kinds, as the table of stations says.
pub trait StoredVolumes {
    /// Mounts the volume on these devices.
    fn open(&self, below: Vec<Medium>, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, VolumeFault>;

    /// Checks the volume without changing it.
    fn check(&self, below: Vec<Medium>) -> Result<Vec<Damage>, VolumeFault>;

    /// Checks the volume and repairs it.
    fn repair(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<RepairOutcome, VolumeFault>;

    /// Marks the volume of this number: its last mount lost changes. The next mount and check report the mark.
    fn mark_lost(&self, below: Vec<Medium>, number: [u8; 16]) -> Result<(), VolumeFault>;

    /// Writes home what a monitor below keeps of the volume, and changes nothing else. Nothing is to be done if the file system
    /// takes no monitor.
    fn recover(&self, _below: Vec<Medium>, _mounting: &Mounting) -> Result<(), VolumeFault> {
        Ok(())
    }

    /// Describes the volume without changing it.
    fn inspect(&self, below: Vec<Medium>) -> Result<Inspection, VolumeFault>;
}

/// The outcome of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOutcome {
    /// Repaired damage.
    pub repaired: Vec<Damage>,
    /// Remaining damage.
    pub left: Vec<Damage>,
}

/// A description of a volume for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Text and a table.
    pub summary: String,
    /// One line for each part.
    pub parts: String,
    /// The whole description as JSON.
    pub json: String,
    /// A picture.
    pub picture: Picture,
}

/// Parts of equal size, to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The title.
    pub title: String,
    /// The parts, in their order on the medium.
    pub parts: Vec<DrawnPart>,
    /// Groups of similar hotness: name and hotness.
    pub groups: Vec<(String, f64)>,
}

/// A part of a volume in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnPart {
    /// Its use.
    pub used_for: PartUse,
    /// Live blocks divided by capacity.
    pub utilization: f64,
}

/// The use of a part of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartUse {
    /// Unused.
    Free,
    /// Metadata.
    Metadata,
    /// Data of this group; `None` if of several groups.
    Data(Option<u8>),
}
