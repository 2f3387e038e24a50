//! Files and names: the calls, and what they work on in memory.
//!
//! | file | what it is |
//! |---|---|
//! | `attributes`, `bytes`, `reading`, `names`, `renames`, `extended` | the calls, by what they are about |
//! | `inode`, `inodes` | an inode; the inodes in memory |
//! | `directory` | a directory's blocks, and the index of its names |
//! | `map` | the virtual blocks of a file, by their place |
//! | `attribute_blocks` | where a file's extended attributes are |
//! | `waiting` | blocks that are buffered |

pub(super) mod attribute_blocks;
pub(super) mod attributes;
mod bytes;
pub(super) mod directory;
pub(super) mod extended;
pub(super) mod inode;
pub(super) mod inodes;
pub(super) mod map;
mod names;
pub(super) mod reading;
mod renames;
pub(super) mod waiting;
