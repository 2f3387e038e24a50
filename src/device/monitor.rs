//! The seam below a journal that writes nothing: a monitor, which keeps the memory of committed blocks when the process of
//! their volume dies.
//!
//! Memory is handed over, not copied: a block's bytes are shared, and a volume that changes them later copies them first.

use super::DeviceError;
use crate::time::Time;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes of a committed block.
pub type Frame = Arc<[u8]>;

/// The memory that a monitor keeps for a volume.
#[derive(Clone, Debug)]
pub struct Retained {
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
    /// The memory that it keeps; `None` if it keeps none for any volume.
    fn retained(&self) -> Result<Option<Retained>, DeviceError>;

    /// Begins to keep the memory of a volume, whose first transaction has the number `first`. It keeps nothing else.
    fn begin(&self, volume: [u8; 16], name: [u8; 16], first: u32) -> Result<(), DeviceError>;

    /// Keeps the blocks of a transaction, in place of older ones with the same numbers, and no longer those that it has
    /// freed: all in one step. Answers when that is done.
    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError>;

    /// Keeps these blocks no longer, unless a transaction from `next` on has changed them: they are home. Answers when the
    /// volume may use their memory for something else. Numbers of transactions go round after 2^32.
    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError>;

    /// Keeps nothing of the volume any more.
    fn end(&self) -> Result<(), DeviceError>;
}

/// A monitor in this process: what it keeps lives as long as it does, whatever becomes of the volume.
#[derive(Clone, Default)]
pub struct OwnMonitor {
    kept: Arc<Mutex<Option<Kept>>>,
}

struct Kept {
    volume: [u8; 16],
    name: [u8; 16],
    last: u32,
    /// The bytes of each block, and the transaction that they are of.
    blocks: BTreeMap<u64, (Frame, u32)>,
}

impl OwnMonitor {
    /// A monitor that keeps nothing.
    pub fn new() -> OwnMonitor {
        OwnMonitor::default()
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        // Nothing between two changes of it can panic.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of blocks that it keeps.
    pub fn bytes(&self) -> u64 {
        self.kept().iter().flat_map(|kept| kept.blocks.values()).map(|(frame, _)| frame.len() as u64).sum()
    }
}

impl fmt::Debug for OwnMonitor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnMonitor").field("bytes", &self.bytes()).finish()
    }
}

/// A call came before `begin`, or after `end`.
const IDLE: &str = "a monitor keeps the memory of a volume that has begun";

impl Monitor for OwnMonitor {
    fn retained(&self) -> Result<Option<Retained>, DeviceError> {
        Ok(self.kept().as_ref().map(|kept| Retained {
            volume: kept.volume,
            name: kept.name,
            last: kept.last,
            blocks: kept.blocks.iter().map(|(block, (frame, _))| (*block, Arc::clone(frame))).collect(),
        }))
    }

    fn begin(&self, volume: [u8; 16], name: [u8; 16], first: u32) -> Result<(), DeviceError> {
        *self.kept() = Some(Kept { volume, name, last: first.wrapping_sub(1), blocks: BTreeMap::new() });
        Ok(())
    }

    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError> {
        let mut kept = self.kept();
        let kept = kept.as_mut().expect(IDLE);
        assert_eq!(number, kept.last.wrapping_add(1), "transactions follow one another");
        for block in freed {
            kept.blocks.remove(block);
        }
        kept.blocks.extend(blocks.iter().map(|(block, frame)| (*block, (Arc::clone(frame), number))));
        kept.last = number;
        Ok(at)
    }

    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError> {
        let mut kept = self.kept();
        let is_before = |number: u32| (number.wrapping_sub(next) as i32) < 0;
        kept.as_mut().expect(IDLE).blocks.retain(|_, (_, number)| !is_before(*number));
        Ok(at)
    }

    fn end(&self) -> Result<(), DeviceError> {
        *self.kept() = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(byte: u8) -> Frame {
        vec![byte; 4].into()
    }

    fn blocks(monitor: &OwnMonitor) -> Vec<(u64, u8)> {
        let retained = monitor.retained().unwrap().expect("it has begun");
        retained.blocks.iter().map(|(block, frame)| (*block, frame[0])).collect()
    }

    #[test]
    fn the_newest_bytes_of_a_block_are_kept_until_their_transaction_is_let_go() {
        let monitor = OwnMonitor::new();
        assert!(monitor.retained().unwrap().is_none());
        monitor.begin([1; 16], [2; 16], u32::MAX).unwrap();
        monitor.commit(Time::ZERO, u32::MAX, &[(7, frame(1)), (8, frame(2))], &[]).unwrap();
        monitor.commit(Time::ZERO, 0, &[(7, frame(3)), (9, frame(4))], &[]).unwrap();
        assert_eq!(blocks(&monitor), [(7, 3), (8, 2), (9, 4)]);
        monitor.let_go(Time::ZERO, 0).unwrap();
        assert_eq!(blocks(&monitor), [(7, 3), (9, 4)], "8 was of the transaction before 0");
        monitor.commit(Time::ZERO, 1, &[], &[9]).unwrap();
        assert_eq!((blocks(&monitor), monitor.bytes()), (vec![(7, 3)], 4), "9 was freed");
        monitor.let_go(Time::ZERO, 2).unwrap();
        assert_eq!((blocks(&monitor), monitor.retained().unwrap().unwrap().last), (vec![], 1));
        monitor.end().unwrap();
        assert!(monitor.retained().unwrap().is_none());
    }
}
