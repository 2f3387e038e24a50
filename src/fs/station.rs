//! A file system of this program as a path names it: its options, and what can be done with its volumes.
//!
//! [`VolumeSettings`] is what a station brings: it lies in the station's folder, beside its `Kind`.

use super::volume::{Damage, Timestamp, Volume};
use crate::device::Medium;
use std::any::Any;
use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

/// The circumstances in which a volume is made or mounted.
#[derive(Clone, Copy, Debug)]
pub struct Mounting {
    /// The number of what is made, and that of the choices it makes.
    pub seed: u64,
    /// The time on the wall clock at [`Time::ZERO`](crate::time::Time::ZERO); 0 in a simulation.
    pub origin: Timestamp,
    /// Bytes of memory that it may take, unless its options say so; `None`: as it likes.
    pub memory_bytes: Option<u64>,
}

impl Mounting {
    /// One with this seed at this time on the wall clock, in nanoseconds.
    pub fn at(seed: u64, wall_origin_ns: i64) -> Mounting {
        Mounting { seed, origin: Timestamp(wall_origin_ns), memory_bytes: None }
    }
}

/// The use that may be made of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing is changed.
    ReadOnly,
    /// It may be written, if nothing of it is damaged.
    IfWhole,
    /// It may be written although parts are damaged: what they said is lost then.
    DespiteDamage,
}

/// Why a volume cannot be made, mounted, checked or looked at.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct VolumeFault {
    /// True if there was a volume, and nothing of it can be used any more.
    pub is_lost: bool,
    /// The cause.
    pub source: Box<dyn Error + Send + Sync>,
}

/// The options of a file system, and what can be done with its volumes.
pub trait VolumeSettings: Debug + Any + Send + Sync {
    /// The term with every option written out.
    fn written_out(&self) -> &str;

    /// The type that mount(8) shows behind `fuse.`, and for which umount(8) looks for a program: `flashpath`, or the name
    /// of its kind. A mount of another type is not recognised as one of this program.
    fn mounted_as(&self) -> &'static str {
        "flashpath"
    }

    /// Why it cannot be simulated with these options, if so.
    fn refuses_simulation(&self) -> Option<&'static str> {
        None
    }

    /// Makes an empty volume, whatever is below holds, and mounts it. `below`: what the table of stations says that it
    /// stands on.
    fn create(&self, below: Option<Medium>, mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault>;

    /// Operations on volumes that lie on a medium; `None` if none does.
    fn stored(&self) -> Option<&dyn StoredVolumes> {
        None
    }
}

/// Operations on volumes that lie on a medium.
pub trait StoredVolumes {
    /// Mounts the volume on a medium.
    fn open(&self, medium: Medium, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, VolumeFault>;

    /// Checks it, and changes nothing.
    fn check(&self, medium: Medium) -> Result<Vec<Damage>, VolumeFault>;

    /// Checks it, and puts right what is wrong.
    fn repair(&self, medium: Medium, mounting: &Mounting) -> Result<Mended, VolumeFault>;

    /// Marks the volume with this number as one whose last mount lost changes, so that the next mount and check say so.
    fn mark_lost(&self, medium: Medium, number: [u8; 16]) -> Result<(), VolumeFault>;

    /// Looks at it, and changes nothing.
    fn inspect(&self, medium: Medium) -> Result<Inspection, VolumeFault>;
}

/// The outcome of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Damage that was repaired.
    pub repaired: Vec<Damage>,
    /// Damage that is left.
    pub left: Vec<Damage>,
}

/// The content of a volume, for people to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// In words and a table.
    pub summary: String,
    /// A line for each of its parts.
    pub parts: String,
    /// All of it as JSON.
    pub json: String,
    /// As a picture.
    pub picture: Picture,
}

/// Parts of equal size, as they can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The title.
    pub title: String,
    /// The parts, in their order on the medium.
    pub parts: Vec<DrawnPart>,
    /// Groups of like hotness, and how hot each is.
    pub groups: Vec<(String, f64)>,
}

/// A part of a volume, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnPart {
    /// Its use.
    pub used_for: PartUse,
    /// Live blocks over what fits.
    pub utilization: f64,
}

/// The use of a part of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartUse {
    /// Nothing.
    Free,
    /// Metadata.
    Metadata,
    /// Data of a group; `None`: of several.
    Data(Option<u8>),
}
