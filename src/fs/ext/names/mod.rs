//! Directories: names in blocks, and the index of hashed ones.
//!
//! | file | content |
//! |---|---|
//! | `blocks` | the blocks of a directory, and a name in them |
//! | `hashed` | the way through an index |
//! | `listing` | the names in order |
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

use super::files::map::Maps;
use super::metadata::Metadata;
use known::KnownNames;

/// The blocks of directories: names and indexes, read and changed.
#[derive(Clone, Copy)]
pub struct Directories<'e> {
    pub metadata: &'e Metadata,
    pub maps: Maps<'e>,
    /// Names that are forgotten when they are changed.
    pub known_names: &'e KnownNames,
}
