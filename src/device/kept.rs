//! The seam below a journal that writes nothing: a monitor, which keeps the memory of committed blocks when the process of
//! their volume dies.
//!
//! Memory is handed over, not copied: a block's bytes are shared, and a volume that changes them later copies them first.

use super::{Account, Arena, DeviceError, Frame};
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A volume whose memory is to be kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptVolume {
    /// Its UUID.
    pub uuid: [u8; 16],
    /// The UUID by which its superblock names its journal meanwhile.
    pub name: [u8; 16],
    /// The number of its blocks.
    pub blocks: u64,
    /// Bytes of a block in memory.
    pub width: usize,
    /// The most blocks in memory at once: those that are kept, and others.
    pub most_in_memory: u64,
}

/// The memory that a monitor keeps for a volume.
#[derive(Clone, Debug)]
pub struct KeptBlocks {
    /// The UUID of the volume.
    pub volume: [u8; 16],
    /// The UUID by which the volume's superblock names its journal while this is kept.
    pub name: [u8; 16],
    /// The last transaction; that before the first one if none was committed.
    pub last: u32,
    /// Each block as the last transaction that changed it left it.
    pub blocks: BTreeMap<u64, Frame>,
}

/// Keeps the memory of one volume.
pub trait Monitor: Send + Sync {
    /// The memory that it keeps of a volume, or, if it can keep that of one alone, of any; `None` if it keeps none. From then
    /// on nobody else can ask for it.
    fn kept_of(&self, volume: [u8; 16]) -> Result<Option<KeptBlocks>, DeviceError>;

    /// The path that names the volume, for a recovery that the monitor begins by itself.
    fn note_path(&self, _: &str) {}

    /// Begins to keep the memory of a volume, whose first transaction has the number `first`. It keeps nothing else.
    fn begin(&self, volume: KeptVolume, first: u32) -> Result<(), DeviceError>;

    /// The memory in which the blocks of a volume must be that are handed over; `None` for any. Known when it has begun.
    fn arena(&self) -> Option<Arc<Arena>> {
        None
    }

    /// True if it keeps nothing any more, nor ever will: a journal has to be somewhere else from now on.
    fn is_gone(&self) -> bool {
        false
    }

    /// Its counts and warnings, if it is a station of a path.
    fn account(&self) -> Option<Account> {
        None
    }

    /// The most blocks that it keeps of a volume. Known when it has begun.
    fn most_blocks(&self) -> u32 {
        u32::MAX
    }

    /// Keeps the blocks of a transaction, in place of older ones with the same numbers, and no longer those that it has
    /// freed: all in one step. Answers when that is done.
    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError>;

    /// Keeps these blocks no longer, unless a transaction from `next` on has changed them: they are home. Answers when the
    /// volume may use their memory for something else. Numbers of transactions go round after 2^32.
    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError>;

    /// Keeps nothing of the volume any more.
    fn end(&self) -> Result<(), DeviceError>;
}
