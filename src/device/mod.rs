//! Devices and media.
//!
//! | file | role |
//! |---|---|
//! | `lba`, `zone` | the address of a block; a zone and its state |
//! | `block` | the seam below file systems and front ends: blocks that can be written in any order |
//! | `zoned` | the seam below dm-zoned: zones, each written in order |
//! | `memory` | the seam below a journal in memory: bytes in lines, durable after a fence |
//! | `frame` | the bytes of a block in memory |
//! | `epochs` | order without flushes: barriers |
//! | `kept` | the seam below a journal in the volume's own memory: a monitor, which keeps that when the process dies |
//! | `medium` | an opened device of any kind |
//! | `station` | a device of a path: its options, and how it is opened |
//! | `error` | errors of a device |
//! | `account` | the counts of a device, for the ledger |
//! | `unit_map` | the state of each erase block, zone or segment |
//! | `wait_log` | where the time of requests goes, if somebody asks |
//! | `warning` | the warnings of a device |
//! | `store` | the storage of blocks: in memory, or in an image |
//! | `conv` | a conventional device |
//! | `cache` | a write-back cache on a device |
//! | `hold_journal` | keeps the journal in memory instead of on the device |
//! | `zns` | a ZNS drive |
//! | `nand` | flash: the inside of a drive, page by page |
//! | `nvm` | non-volatile memory |
//! | `monitor` | monitors, in this process or in one of their own |

mod account;
mod block;
pub mod cache;
pub mod conv;
mod epochs;
mod error;
mod frame;
pub(crate) mod hold_journal;
mod kept;
mod lba;
mod medium;
mod memory;
pub(crate) mod monitor;
pub mod nand;
pub mod nvm;
mod placement;
pub mod station;
mod store;
mod unit_map;
pub mod wait_log;
mod warning;
mod zeros;
pub mod zns;
mod zone;
mod zoned;

pub use account::{
    Account, BufferAccount, DriveAccount, EnergyAccount, FlashAccount, ModesAccount, OperationEnergy, PageCover,
    WriteRequests,
};
pub use block::{Abilities, BlockDevice, Extent, STAMP_BYTES, fill_with_stamp};
pub(crate) use block::{blocks_in, check_range};
pub use epochs::Epochs;
pub use error::{DeviceError, ZoneError};
/// The frames of a guest, whose memory a monitor keeps.
pub use flashpath_vmm::{Arena, HeldName, NameError};
pub use frame::Frame;
pub use kept::{KeptBlocks, KeptVolume, Monitor};
pub use lba::Lba;
pub use medium::Medium;
pub use memory::{LINE_BYTES, Nvm, Survival};
pub use monitor::OwnMonitor;
pub use placement::{
    HandleAccount, Isolation, MOST_EVENTS, MOST_IDENTIFIERS, NO_HINT, Placement, PlacementAccount, PlacementEvent,
    PlacementEventKind,
};
pub(crate) use store::Memory;
pub use store::{Disk, FileDisk, ImageError};
pub use unit_map::UnitMap;
pub use warning::{Warning, Warnings};
pub(crate) use zeros::ZEROS;
pub use zone::{Zone, ZoneKind, ZoneState};
pub use zoned::{RandomWriteAreas, ZonedDevice, ZonedShape};
