//! A device as one file, through FUSE: for losetup, and for whatever reads and writes a file.
//!
//! | file | what it is |
//! |---|---|
//! | `one_file` | a file system that has one file, and its requests |
//! | `answers` | how answers leave: promptly, or when their time has come |
//! | `mounted` | the mount, from its beginning to its end in good order |
//!
//! The file has the device's size, always. Writes go to the device when they are made, not later: a crash of this program loses
//! nothing that was answered. Neither root nor libfuse is needed; without root, the program fusermount3 is.

#![allow(clippy::disallowed_methods, reason = "a front end has threads, and waits for the kernel")]

mod answers;
mod mounted;
mod one_file;

pub use mounted::{Leaving, MountError, Mounted};
