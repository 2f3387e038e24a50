//! File systems through FUSE: a mounted volume as a directory of this machine, and a device as one file, for losetup
//! and for whatever reads and writes a file.
//!
//! | file | content |
//! |---|---|
//! | `one_file` | a file system that has one file, and its requests |
//! | `file_system` | the requests to a mounted volume, and their answers |
//! | `attributes`, `caller`, `asked` | what is known of a file, who makes a request, and what it asks for: the kernel's words |
//! | `answers` | how answers leave: promptly, or when their time has come |
//! | `mounted` | the mount, from its beginning to its end in good order |
//! | `mount_point` | the directory that becomes one, and what is mounted at it |
//! | `error` | why a mount fails |
//!
//! The work of requests to a volume is in the library: the rules of every file system in `fs::posix`, the rest behind
//! `fs::volume::Volume`.
//!
//! The one file has the device's size, always. Writes go to the device when they are made, not later: a crash of this
//! program loses nothing that was answered. What a crash loses of a volume's files is what was not synced, as with any
//! file system. Neither root nor libfuse is needed; without root, the program fusermount3 is.

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

pub use error::MountError;
pub use file_system::Caching;
pub use mount_point::{FuseMount, unmount};
pub use mounted::{Forbidden, Leaving, Mounted, Wishes};
