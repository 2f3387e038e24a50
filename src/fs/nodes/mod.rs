//! What every mounted file system does with its inodes, whatever its format: between [`Volume`](super::volume::Volume) and the
//! file systems.
//!
//! | file | content |
//! |---|---|
//! | [`names`] | the rules of names: make, link, unlink, rename, exchange, ancestors |
//! | `inodes` | the inodes in memory: which stay, which leave, and who references them |
//! | `parts` | a range of bytes, block by block |
//! | `references` | counts of references in a few bytes each |

pub(in crate::fs) mod inodes;
pub mod names;
pub(in crate::fs) mod parts;
mod references;
