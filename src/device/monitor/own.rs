//! A monitor in this process.

use crate::device::{DeviceError, Frame, KeptBlocks, KeptVolume, Monitor};
use crate::time::Time;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    fn kept_of(&self, _: [u8; 16]) -> Result<Option<KeptBlocks>, DeviceError> {
        Ok(self.kept().as_ref().map(|kept| KeptBlocks {
            volume: kept.volume,
            name: kept.name,
            last: kept.last,
            blocks: kept.blocks.iter().map(|(block, (frame, _))| (*block, frame.clone())).collect(),
        }))
    }

    fn begin(&self, KeptVolume { uuid, name, .. }: KeptVolume, first: u32) -> Result<(), DeviceError> {
        *self.kept() = Some(Kept { volume: uuid, name, last: first.wrapping_sub(1), blocks: BTreeMap::new() });
        Ok(())
    }

    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError> {
        let mut kept = self.kept();
        let kept = kept.as_mut().expect(IDLE);
        assert_eq!(number, kept.last.wrapping_add(1), "transactions follow one another");
        for block in freed {
            kept.blocks.remove(block);
        }
        kept.blocks.extend(blocks.iter().map(|(block, frame)| (*block, (frame.clone(), number))));
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
        let kept = monitor.kept_of([1; 16]).unwrap().expect("it has begun");
        kept.blocks.iter().map(|(block, frame)| (*block, frame[0])).collect()
    }

    #[test]
    fn the_newest_bytes_of_a_block_are_kept_until_their_transaction_is_let_go() {
        let monitor = OwnMonitor::new();
        assert!(monitor.kept_of([1; 16]).unwrap().is_none());
        let volume = KeptVolume { uuid: [1; 16], name: [2; 16], blocks: 10, width: 4, most_in_memory: 10 };
        monitor.begin(volume, u32::MAX).unwrap();
        monitor.commit(Time::ZERO, u32::MAX, &[(7, frame(1)), (8, frame(2))], &[]).unwrap();
        monitor.commit(Time::ZERO, 0, &[(7, frame(3)), (9, frame(4))], &[]).unwrap();
        assert_eq!(blocks(&monitor), [(7, 3), (8, 2), (9, 4)]);
        monitor.let_go(Time::ZERO, 0).unwrap();
        assert_eq!(blocks(&monitor), [(7, 3), (9, 4)], "8 was of the transaction before 0");
        monitor.commit(Time::ZERO, 1, &[], &[9]).unwrap();
        assert_eq!((blocks(&monitor), monitor.bytes()), (vec![(7, 3)], 4), "9 was freed");
        monitor.let_go(Time::ZERO, 2).unwrap();
        assert_eq!((blocks(&monitor), monitor.kept_of([1; 16]).unwrap().unwrap().last), (vec![], 1));
        monitor.end().unwrap();
        assert!(monitor.kept_of([1; 16]).unwrap().is_none());
    }
}
