//! File systems through FUSE: a mounted volume as a directory of this machine, and a device as one file, for losetup
//! and any program that reads and writes a file.
//!
//! | file | content |
//! |---|---|
//! | `one_file` | requests to a file system with one file |
//! | `file_system` | requests to a mounted volume |
//! | `attributes`, `caller`, `asked` | attributes, callers and arguments, translated from and to the kernel's format |
//! | `recorder` | a recording of the requests to a mounted volume |
//! | `answers` | sending answers: at once, or at their completion time |
//! | `mounted` | a mount, from mounting to unmounting |
//! | `mount_point` | mount points, and the mounts at them |
//! | `error` | causes of failed mounts |
//!
//! The library serves requests to a volume: the rules of POSIX are in `fs::posix`, the file system is behind
//! `fs::volume::Volume`.
//!
//! The one file always has the device's size. A write reaches the device before it is answered: a crash of this program
//! loses no answered write. A crash loses unsynced changes to a volume's files, as with any file system. Neither root
//! nor libfuse is needed; without root, the program fusermount3 is.

#![allow(clippy::disallowed_methods, reason = "a front end has threads, and waits for the kernel")]

mod answers;
mod asked;
mod attributes;
mod caller;
mod error;
mod file_system;
mod mount_point;
mod mounted;
mod one_file;
mod recorder;

pub use error::MountError;
pub use file_system::Caching;
pub use mount_point::{FuseMount, check_mount_point, unmount};
pub use mounted::{Forbidden, Leaving, Mounted, Wishes};
pub use recorder::Recorder;
