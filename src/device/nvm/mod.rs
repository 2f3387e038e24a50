//! Non-volatile memory: bytes in lines, mapped from a file, or simulated line by line.
//!
//! | file | role |
//! |---|---|
//! | `mapped` | a mapped file, a device of memory, or memory of this process |
//! | `model` | the timing model: latencies, and a bandwidth that all accesses share |
//! | `channel` | one direction of it: the queue for the bandwidth |
//! | `cached` | flash behind a cache of DRAM: hits, misses, and what the flash is asked for |
//! | `counts` | bytes and fences, counted by threads side by side |
//! | `settings` | the options of `nvm` |
//! | `lines` | a memory for tests, whose lines survive a loss of power in any combination |
//!
//! The seam to the stations above, [`Nvm`], is `device/memory.rs`.

mod cached;
mod channel;
mod counts;
pub mod lines;
mod mapped;
mod model;
mod settings;

pub use super::memory::{LINE_BYTES, Nvm, Survival};
pub use cached::{CacheCounts, FlashTimes};
pub use channel::Direction;
pub use flashpath_nvm::{Method, Persist, Unsupported};
pub use mapped::Mapped;
pub use model::{MemoryKind, MemoryModel, MemoryTimes};
pub use settings::{KIND, NvmSettings};

/// The station's name.
const NAME: &str = "nvm";
