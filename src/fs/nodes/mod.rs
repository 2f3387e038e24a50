//! What every mounted file system does with its inodes, whatever its format: between [`Volume`](super::volume::Volume) and the
//! file systems.
//!
//! | file | content |
//! |---|---|
//! | [`names`] | the rules of names: make, link, unlink, rename, exchange, ancestors |

pub mod names;
