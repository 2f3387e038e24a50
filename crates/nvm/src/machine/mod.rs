//! The instructions of the processor: stores, reads, fences.
//!
//! | file | role |
//! |---|---|
//! | `x86` | x86-64: non-temporal stores, and instructions that write lines back |
//! | `portable` | other processors: plain stores |

#[cfg(not(target_arch = "x86_64"))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(not(target_arch = "x86_64"))]
pub use portable::{REACHES_MEMORY, Way, fence, read, store, way};
#[cfg(target_arch = "x86_64")]
pub use x86::{REACHES_MEMORY, Way, fence, read, store, way};
