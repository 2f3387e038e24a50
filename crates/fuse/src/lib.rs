//! File systems through FUSE: an SFS volume as a directory of this machine, and a device as one file, for losetup and
//! for whatever reads and writes a file.
//!
//! | file | what it is |
//! |---|---|
//! | `one_file` | a file system that has one file, and its requests |
//! | `file_system` | the requests to a mounted volume, and their answers |
//! | `files` | what these requests do: names, attributes, contents, listings, extended attributes |
//! | `shared_volume` | the volume behind its lock, with its clock |
//! | `sharing` | how it is shared |
//! | `error` | why a request or a mount fails |
//! | `unasked` | when changes are made durable although nobody syncs |
//! | `complaints` | what is told of failures, and how often |
//! | `answers` | how answers leave: promptly, or when their time has come |
//! | `mounted` | the mount, from its beginning to its end in good order |
//! | `mount_point` | the directory that becomes one, and what is mounted at it |
//!
//! The one file has the device's size, always. Writes go to the device when they are made, not later: a crash of this
//! program loses nothing that was answered. What a crash loses of a volume's files is what was not synced, as with any
//! file system. Neither root nor libfuse is needed; without root, the program fusermount3 is.

#![allow(clippy::disallowed_methods, reason = "a front end has threads, and waits for the kernel")]

mod answers;
mod complaints;
mod error;
mod file_system;
mod files;
mod mount_point;
mod mounted;
mod one_file;
mod shared_volume;
mod sharing;
mod unasked;

pub use complaints::Tell;
pub use error::{CallError, MountError};
pub use file_system::Caching;
pub use mount_point::{FuseMount, unmount};
pub use mounted::{Forbidden, Leaving, Mounted, Wishes};
pub use shared_volume::{SharedVolume, Traffic};
pub use sharing::{AccessTimes, VolumeSharing};
