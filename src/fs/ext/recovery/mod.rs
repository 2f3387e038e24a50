//! Opening a volume, and checking it.
//!
//! | file | content |
//! |---|---|
//! | `check` | everything that is named, against everything that is in use |
//! | `open` | the steps of a mount |
//! | `replay` | what the log says that is not home |
//! | `orphans` | files that nobody has any more, or that were being cut off |

mod check;
mod open;
mod orphans;
mod replay;

pub use replay::FoundLog;
