//! Files: their inodes, where their blocks lie, their bytes and their extended attributes.
//!
//! | file | content |
//! |---|---|
//! | `node` | inodes in memory, each behind its gate |
//! | `map` | where a block of a file lies |
//! | `reading` | the bytes of a file |
//! | `attributes` | extended attributes |

pub mod attributes;
pub mod map;
pub mod node;
pub mod reading;
