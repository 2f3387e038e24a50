//! Directories: names in blocks, and the index of hashed ones.
//!
//! | file | content |
//! |---|---|
//! | `blocks` | the blocks of a directory, and a name in them |
//! | `hashed` | the way through an index |
//! | `listing` | the names in order |

pub mod blocks;
pub mod hashed;
pub mod listing;
