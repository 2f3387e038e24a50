//! Opening a volume, and checking it.
//!
//! | file | content |
//! |---|---|
//! | `check` | the check of all structures, and their repair |
//! | `open` | the steps of a mount |
//! | `replay` | what the log says that is not home |
//! | `orphans` | files that nobody has any more, or that were being cut off |

mod check;
mod open;
mod orphans;
mod replay;

pub use replay::{FoundLog, Replayed};
