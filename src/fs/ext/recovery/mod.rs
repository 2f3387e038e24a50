//! Opening a volume.
//!
//! | file | content |
//! |---|---|
//! | `open` | the steps of a mount |
//! | `replay` | what the log says that is not home |
//! | `orphans` | files that nobody has any more, or that were being cut off |

mod open;
mod orphans;
mod replay;

pub use replay::FoundLog;
