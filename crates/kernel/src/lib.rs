//! The running kernel's file systems, as something to measure and to stand on.
//!
//! | file | what it is |
//! |---|---|
//! | `namespace` | mounts that nobody else sees, and that vanish with the process |
//! | `scratch` | a sparse file without a name, as big as a device is to be |
//! | `loop_device` | a file as a block device |
//! | `make` | mkfs: which file system, with which journal |
//! | `check` | fsck: whether what it left fits together |
//! | `mount` | a mount that ends with its guard |
//! | `volume` | all of these: a file system in a scratch file, ready to be written |
//! | `memory` | a memory limit for what a process writes |
//! | `zoned` | a zoned block device: its zones, and writes past the page cache |
//! | `tracing` | the kernel's block events, in a private instance of tracefs |
//!
//! Every guard undoes what it made when it is dropped, and also when the process is killed: a scratch file has no name,
//! a loop device detaches itself when its last user goes, and in a private namespace a mount goes with its processes. Only
//! a tracing instance and an empty directory can be left behind; the next run removes the one, and is not troubled by the
//! other. Linux only; almost everything here needs root.

#![allow(clippy::disallowed_methods, reason = "it waits for the kernel, which the library never does")]

pub mod tracing;

mod check;
mod error;
mod loop_device;
mod make;
mod memory;
mod mount;
mod namespace;
mod scratch;
mod volume;
mod zoned;

pub use error::KernelError;
pub use loop_device::LoopDevice;
pub use make::{DataMode, FileSystem, Make};
pub use memory::MemoryLimit;
pub use mount::{Mount, users_of};
pub use namespace::make_mounts_private;
pub use scratch::ScratchFile;
pub use volume::Volume;
pub use zoned::{BlockZone, BlockZoneCondition, BlockZoneKind, ZoneRequest, ZonedBlockDevice, parse_report};

use error::failed;
