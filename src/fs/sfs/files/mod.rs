//! Files and names: the calls, and their structures in memory.
//!
//! | file | content |
//! |---|---|
//! | `attributes`, `bytes`, `reading`, `names`, `renames`, `extended` | the calls, by subject |
//! | `inode`, `inodes` | an inode; the inodes in memory |
//! | `directory` | a directory's blocks, and the index of its names |
//! | `map` | the virtual blocks of a file, by block index |
//! | `attribute_blocks` | storage of a file's extended attributes |
//! | `dirty_blocks` | dirty data blocks |

pub(super) mod attribute_blocks;
pub(super) mod attributes;
mod bytes;
pub(super) mod directory;
pub(super) mod dirty_blocks;
pub(super) mod extended;
pub(super) mod inode;
pub(super) mod inodes;
pub(super) mod map;
mod names;
pub(super) mod reading;
mod renames;
