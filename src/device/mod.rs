//! What stores bits.
//!
//! | file | what it is |
//! |---|---|
//! | `lba`, `zone` | the address of a block; a zone and its state |
//! | `block` | the seam on which file systems and front ends stand: blocks that can be written anywhere |
//! | `zoned` | the seam on which dm-zoned stands: zones that are written in order |
//! | `medium` | an opened device of either kind |
//! | `station` | a device as a path names it, and how it is opened on what stands below it |
//! | `error` | why a device cannot serve |
//! | `account` | what a device counts, for the ledger |
//! | `warning` | what a device warns of |
//! | `store` | where a device's blocks lie: in memory, or in an image |
//! | `conv` | a conventional device |
//! | `cache` | a write-back cache on a device |
//! | `zns` | a ZNS drive |
//! | `nand` | flash, the inside of a drive, driven page by page |

mod account;
mod block;
pub mod cache;
pub mod conv;
mod error;
mod lba;
mod medium;
pub mod nand;
pub mod station;
mod store;
mod warning;
pub mod zns;
mod zone;
mod zoned;

pub use account::{Account, DriveAccount, FlashAccount};
pub use block::{Abilities, BlockDevice, Extent, STAMP_BYTES, holding};
pub(crate) use block::{blocks_in, check_range};
pub use error::{DeviceError, ZoneError};
pub use lba::Lba;
pub use medium::Medium;
pub(crate) use store::Memory;
pub use store::{Disk, FileDisk, ImageError};
pub use warning::{Warning, Warnings};
pub use zone::{Zone, ZoneKind, ZoneState};
pub use zoned::{ZonedDevice, ZonedShape};
