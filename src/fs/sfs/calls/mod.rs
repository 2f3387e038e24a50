//! The calls of a volume: may it be written, is there space, what goes to the log, and is memory short? The files themselves are
//! changed by [`Files`](super::files::Files) and what works on them.
//!
//! | file | content |
//! |---|---|
//! | `names` | names, and references to inodes |
//! | `bytes` | data and allocation |
//! | `attributes` | attributes, and extended attributes |

mod attributes;
mod bytes;
mod names;
