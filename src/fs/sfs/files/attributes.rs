//! What the interface for file systems says of a file.

pub use crate::fs::volume::{
    Attributes, Change, DirectoryEntry, FileKind, IfExists, InodeNumber, NewFile, Space, Timestamp,
};
