//! Opening a volume, and checking it.
//!
//! | file | content |
//! |---|---|
//! | `check` | the check of all structures, and their repair |
//! | `copies` | the copies of the superblock, which stand for a damaged one |
//! | `opening` | a volume that is being opened, which ends as a mounted one |
//! | `open` | the steps of a mount |
//! | `memory` | the memory that a mount wants for its journal |
//! | `region` | a journal in non-volatile memory: found, begun, and left |
//! | `vm_aware` | VM-aware journaling: the memory that a monitor keeps of a volume, found, written home, and begun |
//! | `replay`, `log_scan`, `prefix_scan` | the blocks of the log that are not home, and whether its end is torn or damaged |
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
mod opening;
mod orphans;
mod prefix_scan;
mod region;
mod replay;
mod vm_aware;

pub use check::{check, repair};
pub use memory::wanted_memory;
pub use open::{mark_errors, open, recover};
pub use opening::Opening;
pub use region::usable_region;
pub use vm_aware::refuse_kept;
