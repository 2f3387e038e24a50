//! Telling the device which segments are free.
//!
//! A drive is told at once: it collects the better for it. The system may take longer to punch a hole into an image
//! than to write the segment anew (50 ms of 32 MiB were seen on ext4). There it waits until nothing was written for a
//! while, and a segment that is used again before is never discarded. What is left at the end is made up for after the
//! next mount, when all free segments wait.

use crate::fs::sfs::log::segments::State;
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;
use crate::time::Time;
use std::collections::BTreeSet;

/// Nothing was written for so long: nobody is hurried.
const IDLE_NS: u64 = 1_000_000_000;
/// One discard follows another after so long, so that whoever begins to write waits for one at the most.
const PAUSE_NS: u64 = 100_000_000;

/// Free segments of which the device was not told.
#[derive(Debug, Default)]
pub(in crate::fs::sfs) struct Discards {
    segments: BTreeSet<u32>,
    /// When the next one may be told.
    next: Time,
}

impl Discards {
    /// A segment is used again.
    pub fn forget(&mut self, segment: u32) {
        self.segments.remove(&segment);
    }

    /// Something was written.
    pub fn wait(&mut self, now: Time) {
        self.next = now + IDLE_NS;
    }

    /// When there is one to be told.
    pub fn due(&self) -> Option<Time> {
        (!self.segments.is_empty()).then_some(self.next)
    }
}

impl Sfs {
    /// A segment is free: tells the device, now or later.
    pub(in crate::fs::sfs) fn discard(&mut self, task: &Task<'_>, segment: u32) -> Result<(), SfsError> {
        assert_eq!(self.log.segments.get(segment).state, State::Free, "segment {segment} would lose what it holds");
        if !self.settings.discard {
            return Ok(());
        }
        if self.media.discards_slowly() {
            self.discards.segments.insert(segment);
        } else {
            self.media.discard(task, segment)?;
        }
        Ok(())
    }

    /// The volume was mounted: what earlier mounts have not told is made up for.
    pub(in crate::fs::sfs) fn discard_what_is_free(&mut self, task: &Task<'_>) {
        if self.settings.discard && self.media.discards_slowly() {
            let segments = 0..self.log.segments.count();
            self.discards.segments =
                segments.filter(|segment| self.log.segments.get(*segment).state == State::Free).collect();
            self.discards.wait(task.now());
        }
    }

    /// Tells the device of one, if that is due.
    pub(in crate::fs::sfs) fn discard_one(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.discards.due().is_some_and(|due| due <= task.now())
            && let Some(segment) = self.discards.segments.pop_first()
        {
            assert_eq!(self.log.segments.get(segment).state, State::Free, "segment {segment} would lose what it holds");
            self.discards.next = task.now() + PAUSE_NS;
            self.media.discard(task, segment)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::conv::Conventional;
    use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
    use crate::expression::parse_term;
    use crate::fs::sfs::{FileKind, Identity, InodeNumber, Medium, NewFile, SfsSettings, Timestamp};
    use crate::label::Label;
    use crate::units::BLOCK_BYTES;
    use std::sync::{Arc, Mutex};

    const SEGMENT: u64 = 16;

    /// A device whose writes go behind, and what was discarded on it.
    struct Slow {
        device: Conventional,
        discarded: Arc<Mutex<Vec<u64>>>,
    }

    impl BlockDevice for Slow {
        fn blocks(&self) -> u64 {
            self.device.blocks()
        }

        fn block_width(&self) -> usize {
            self.device.block_width()
        }

        fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
            self.device.read(first, buffer, at)
        }

        fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
            self.device.write(first, buffer, label, at)
        }

        fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
            self.discarded.lock().unwrap().extend((first.0..first.0 + blocks).step_by(SEGMENT as usize));
            self.device.discard(first, blocks, at)
        }

        fn flush(&self, at: Time) -> Result<Time, DeviceError> {
            self.device.flush(at)
        }

        fn account(&self) -> Account {
            self.device.account()
        }
    }

    impl Abilities for Slow {
        fn wrapped(&self) -> Option<&dyn BlockDevice> {
            None
        }

        fn write_behind(&self, _bytes: u64) -> bool {
            true
        }
    }

    fn volume(task: &Task<'_>) -> (Sfs, Arc<Mutex<Vec<u64>>>) {
        let discarded = Arc::default();
        let device = Conventional::in_memory(128 * SEGMENT, BLOCK_BYTES as usize);
        let device = Slow { device, discarded: Arc::clone(&discarded) };
        let settings = SfsSettings::read(&parse_term("sfs:segment=64K").unwrap()).unwrap();
        let identity = Identity { seed: 1, origin: Timestamp(1_000_000) };
        let sfs = Sfs::create(task, Medium::Blocks(Box::new(device)), &settings, identity).unwrap();
        discarded.lock().unwrap().clear();
        (sfs, discarded)
    }

    fn write_and_delete(task: &Task<'_>, sfs: &mut Sfs, blocks: usize) {
        let kind = FileKind::Regular;
        let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
        let file = sfs.make(task, InodeNumber::ROOT, b"file", &new).unwrap();
        sfs.write(task, file, 0, &vec![1; blocks * BLOCK_BYTES as usize]).unwrap();
        sfs.sync(task).unwrap();
        sfs.unlink(task, InodeNumber::ROOT, b"file").unwrap();
        sfs.sync(task).unwrap();
    }

    #[test]
    fn where_discards_are_slow_they_wait_until_nothing_is_written_and_come_one_by_one() {
        let task = &Task::at(Time::ZERO);
        let (mut sfs, discarded) = volume(task);
        write_and_delete(task, &mut sfs, 200);
        let freed = sfs.discards.segments.len();
        assert!(freed >= 200 / SEGMENT as usize, "{freed}");
        let written = task.now();
        let mut at = |after: u64| {
            let task = &Task::at(written + after);
            let next = sfs.work(task).unwrap().unwrap();
            (discarded.lock().unwrap().len(), next)
        };
        assert_eq!(at(IDLE_NS / 2), (0, written + IDLE_NS));
        assert_eq!(at(IDLE_NS), (1, written + IDLE_NS + PAUSE_NS));
        assert_eq!(at(IDLE_NS + PAUSE_NS / 2).0, 1);
        for turn in 1..freed as u64 {
            assert_eq!(at(IDLE_NS + turn * PAUSE_NS).0 as u64, turn + 1);
        }
        assert_eq!(at(IDLE_NS + freed as u64 * PAUSE_NS).0, freed);
    }

    #[test]
    fn a_segment_that_is_used_again_is_not_discarded() {
        let task = &Task::at(Time::ZERO);
        let (mut sfs, discarded) = volume(task);
        // All segments are used, some of them twice.
        (0..10).for_each(|_| write_and_delete(task, &mut sfs, 400));
        let free = |sfs: &Sfs, segment: u32| sfs.log.segments.get(segment).state == State::Free;
        while let Some(due) = sfs.discards.due() {
            task.wait_until(due);
            sfs.discard_one(task).unwrap();
        }
        let discarded = std::mem::take(&mut *discarded.lock().unwrap());
        assert!(!discarded.is_empty() && discarded.len() < 128);
        // The segments lie behind the superblocks.
        assert!(discarded.iter().all(|first| free(&sfs, (first / SEGMENT - 1) as u32)));
    }

    #[test]
    fn what_was_not_told_before_the_end_is_told_after_the_next_mount() {
        let task = &Task::at(Time::ZERO);
        let (mut sfs, discarded) = volume(task);
        write_and_delete(task, &mut sfs, 200);
        sfs.unmount(task).unwrap();
        assert!(discarded.lock().unwrap().is_empty());
        let (settings, identity) = (sfs.settings.clone(), Identity { seed: 1, origin: Timestamp(2_000_000) });
        let sfs = Sfs::open(task, sfs.into_medium(), &settings, identity, false).unwrap();
        let free = (0..sfs.log.segments.count()).filter(|segment| sfs.log.segments.get(*segment).state == State::Free);
        assert!(free.eq(sfs.discards.segments.iter().copied()));
    }
}
