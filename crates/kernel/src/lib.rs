//! The running kernel's file systems and block devices, to measure and to build on.
//!
//! | file | role |
//! |---|---|
//! | `namespace` | private mounts that vanish with the process |
//! | `scratch` | an unnamed sparse file that backs a device |
//! | `loop_device` | a file as a block device |
//! | `mkfs` | makes a file system, with or without a journal |
//! | `check` | fsck: checks the consistency of a file system |
//! | `tool` | runs a program of a file system |
//! | `mount` | a mount that ends with its guard |
//! | `volume` | a mounted file system on a loop device on a scratch file |
//! | `memory` | a memory limit for a process and its page cache |
//! | `zoned` | a zoned block device: its zones, and direct writes |
//! | `allocator` | the C library's allocator: how many arenas a server takes |
//! | `tracing` | the kernel's block events, in a private instance of tracefs |
//!
//! Every guard undoes its work when it is dropped, and the kernel does when the process is killed: a scratch file has
//! no name, a loop device detaches with its last user, and mounts of a private namespace end with its processes. Only a
//! tracing instance and an empty directory can remain: the next run removes the instance, and the directory does no
//! harm. Linux only; almost everything here needs root.

#![allow(clippy::disallowed_methods, reason = "it waits for the kernel, which the library never does")]

pub mod tracing;

mod allocator;
mod check;
mod error;
mod loop_device;
mod memory;
mod mkfs;
mod mount;
mod namespace;
mod scratch;
mod tool;
mod volume;
mod zoned;

pub use allocator::limit_arenas;
pub use error::KernelError;
pub use loop_device::LoopDevice;
pub use memory::MemoryLimit;
pub use mkfs::{DataMode, FileSystem, Mkfs};
pub use mount::{Mount, users_of};
pub use namespace::make_mounts_private;
pub use scratch::ScratchFile;
pub use volume::Volume;
pub use zoned::{BlockZone, BlockZoneCondition, BlockZoneKind, ZoneRequest, ZonedBlockDevice, parse_report};

use error::failed;
