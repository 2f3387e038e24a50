//! Directories: names in blocks, and the index of hashed ones.
//!
//! | file | content |
//! |---|---|
//! | `blocks` | the blocks of a directory, and an entry in them |
//! | `hashed` | the way through an index |
//! | `listing` | names found, and all of them in order |
//! | `changing` | names put into a directory, and taken out |
//! | `index_growth` | an index that grows |
//! | `gates` | the files of a call, behind their gates |
//! | `known` | names that were found lately |
//! | `making` | files made, linked, unlinked |
//! | `renames` | names moved |

pub mod blocks;
pub mod changing;
pub mod gates;
pub mod hashed;
pub mod index_growth;
pub mod known;
pub mod listing;
pub mod making;
pub mod renames;

use super::allocation::Allocation;
use super::changes::Changes;
use super::files::inodes::Inodes;
use super::files::map::Maps;
use super::files::writing::Writes;
use super::metadata::Metadata;
use super::settings::ExtSettings;
use crate::task::Gate;
use known::KnownNames;
use std::sync::atomic::AtomicU64;

/// The blocks of directories: names and indexes, read and changed.
#[derive(Clone, Copy)]
pub struct Directories<'e> {
    pub metadata: &'e Metadata,
    pub maps: Maps<'e>,
    /// Names that are forgotten when they are changed.
    pub known_names: &'e KnownNames,
}

/// Names of files: made, linked, removed and moved, with the files that they name.
#[derive(Clone, Copy)]
pub struct Names<'e> {
    pub settings: &'e ExtSettings,
    pub metadata: &'e Metadata,
    pub changes: &'e Changes,
    pub writes: Writes<'e>,
    pub known_names: &'e KnownNames,
    /// Files made since the mount.
    pub generations: &'e AtomicU64,
    /// Renames across directories go through it.
    pub renames: &'e Gate<()>,
}

impl<'e> Names<'e> {
    fn inodes(&self) -> Inodes<'e> {
        self.writes.write_back.inodes
    }

    fn maps(&self) -> Maps<'e> {
        self.writes.maps()
    }

    fn allocation(&self) -> Allocation<'e> {
        self.writes.allocation()
    }

    fn directories(&self) -> Directories<'e> {
        Directories { metadata: self.metadata, maps: self.maps(), known_names: self.known_names }
    }
}
