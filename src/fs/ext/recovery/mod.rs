//! Opening a volume, and checking it.
//!
//! | file | content |
//! |---|---|
//! | `check` | the check of all structures, and their repair |
//! | `copies` | the copies of the superblock: they name the journal, and stand for a damaged one |
//! | `open` | the steps of a mount |
//! | `region` | a journal in non-volatile memory: found, begun, and left |
//! | `replay`, `log_scan` | what the log says that is not home, and whether its end is torn or damaged |
//! | `fast_scan`, `fast_changes`, `fast_replay` | fast commits: found, checked and made in memory, and written |
//! | `orphans` | files that nobody has any more, or that were being cut off |

mod check;
mod copies;
mod fast_changes;
mod fast_replay;
mod fast_scan;
mod log_scan;
mod memory;
mod open;
mod orphans;
mod region;
mod replay;
mod retention;

pub use memory::wanted_memory;
pub use region::usable_region;
pub use retention::{hold_memory_of, refuse_kept};
