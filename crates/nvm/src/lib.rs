//! A mapped region of memory, and the ways to make durable what is stored to it.
//!
//! | file | role |
//! |---|---|
//! | `region` | the region: made, opened, read, stored to |
//! | `file` | the file of a region: locked, allocated in full, and of a size that is known |
//! | `mapping` | the mapped bytes, and copies from and to them |
//! | `method` | the methods of persistence |
//! | `persist` | a method that the processor has |
//! | `machine` | the instructions of the processor |
//! | `error` | errors of making and opening a region |
//!
//! **Durability.** A store and a later fence of the same thread bring bytes to memory. What memory keeps is that of the
//! mapping: non-volatile memory that is mapped synchronously ([`Region::is_synchronous`]) keeps them when power fails;
//! the page cache below another file keeps them when the process ends; memory of the process keeps nothing.
//!
//! **Threads.** Threads share a region. Accesses to one range at the same time are no undefined behaviour, as they are
//! made by instructions that the compiler does not see, or are atomic; but a reader may then see a part of a store.
//!
//! Linux only.

mod error;
mod file;
mod machine;
mod mapping;
mod method;
mod persist;
mod region;

pub use error::RegionError;
pub use method::Method;
pub use persist::{Persist, Unsupported};
pub use region::Region;

/// Bytes of a line: what a processor writes back at once.
pub const LINE_BYTES: usize = 64;
