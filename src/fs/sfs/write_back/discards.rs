//! Discards of free segments.
//!
//! On a drive, a segment is discarded as soon as it is free: that helps its garbage collection. On an image, punching a
//! hole can take longer than rewriting the segment (50 ms for 32 MiB were measured on ext4). There, discards are
//! delayed until no writes happen for a while, and a segment that is reused first is never discarded. Discards missing
//! at unmount are made after the next mount, when all free segments are queued.

use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::segments::State;
use crate::task::Task;
use crate::time::Time;
use std::collections::BTreeSet;

/// Time without writes, in nanoseconds, before discards begin.
const IDLE_NS: u64 = 1_000_000_000;
/// Nanoseconds between discards, so that a new write is delayed by at most one.
const PAUSE_NS: u64 = 100_000_000;

/// Free segments that are not yet discarded.
#[derive(Debug, Default)]
pub(in crate::fs::sfs) struct Discards {
    /// True if free segments are discarded at all.
    is_on: bool,
    segments: BTreeSet<u32>,
    /// The earliest time of the next discard.
    next: Time,
}

impl Discards {
    /// Discards free segments if `is_on`.
    pub fn new(is_on: bool) -> Discards {
        Discards { is_on, ..Discards::default() }
    }

    /// Removes a segment that is reused.
    pub fn forget(&mut self, segment: u32) {
        self.segments.remove(&segment);
    }

    /// Delays discards after a write.
    pub fn wait(&mut self, now: Time) {
        self.next = now + IDLE_NS;
    }

    /// The time of the next discard, if there is one.
    pub fn due(&self) -> Option<Time> {
        (!self.segments.is_empty()).then_some(self.next)
    }

    /// Discards a free segment, now or later.
    pub fn discard(&mut self, task: &Task<'_>, files: &Files, segment: u32) -> Result<(), SfsError> {
        assert_eq!(files.segments.get(segment).state, State::Free, "segment {segment} is free");
        if !self.is_on {
            return Ok(());
        }
        if files.media.discards_slowly() {
            self.segments.insert(segment);
        } else {
            files.media.discard(task, segment)?;
        }
        Ok(())
    }

    /// Queues all free segments after a mount, since earlier mounts may not have discarded them.
    pub fn queue_free(&mut self, task: &Task<'_>, files: &Files) {
        if self.is_on && files.media.discards_slowly() {
            let segments = 0..files.segments.count();
            self.segments = segments.filter(|segment| files.segments.get(*segment).state == State::Free).collect();
            self.wait(task.now());
        }
    }

    /// Discards one segment, if that is due.
    pub fn discard_one(&mut self, task: &Task<'_>, files: &Files) -> Result<(), SfsError> {
        if self.due().is_some_and(|due| due <= task.now())
            && let Some(segment) = self.segments.pop_first()
        {
            assert_eq!(files.segments.get(segment).state, State::Free, "segment {segment} is free");
            self.next = task.now() + PAUSE_NS;
            files.media.discard(task, segment)?;
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
    use crate::fs::sfs::{FileKind, Identity, InodeNumber, Medium, NewFile, Sfs, SfsSettings, Timestamp};
    use crate::label::Label;
    use crate::units::BLOCK_BYTES;
    use std::sync::{Arc, Mutex};

    const SEGMENT: u64 = 16;

    /// A device with slow discards that records them.
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
    fn slow_discards_are_delayed_until_writes_stop_and_made_one_by_one() {
        let task = &Task::at(Time::ZERO);
        let (mut sfs, discarded) = volume(task);
        write_and_delete(task, &mut sfs, 200);
        let freed = sfs.writer.discards.segments.len();
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
    fn a_reused_segment_is_not_discarded() {
        let task = &Task::at(Time::ZERO);
        let (mut sfs, discarded) = volume(task);
        // All segments are used, some of them twice.
        (0..10).for_each(|_| write_and_delete(task, &mut sfs, 400));
        let free = |sfs: &Sfs, segment: u32| sfs.files.segments.get(segment).state == State::Free;
        while let Some(due) = sfs.writer.discards.due() {
            task.wait_until(due);
            sfs.writer.discards.discard_one(task, &sfs.files).unwrap();
        }
        let discarded = std::mem::take(&mut *discarded.lock().unwrap());
        assert!(!discarded.is_empty() && discarded.len() < 128);
        // The segments follow the superblocks.
        assert!(discarded.iter().all(|first| free(&sfs, (first / SEGMENT - 1) as u32)));
    }

    #[test]
    fn discards_missing_at_unmount_are_made_after_the_next_mount() {
        let task = &Task::at(Time::ZERO);
        let (mut sfs, discarded) = volume(task);
        write_and_delete(task, &mut sfs, 200);
        sfs.unmount(task).unwrap();
        assert!(discarded.lock().unwrap().is_empty());
        let (settings, identity) = (sfs.settings.clone(), Identity { seed: 1, origin: Timestamp(2_000_000) });
        let sfs = Sfs::open(task, sfs.into_medium(), &settings, identity, false).unwrap();
        let free =
            (0..sfs.files.segments.count()).filter(|segment| sfs.files.segments.get(*segment).state == State::Free);
        assert!(free.eq(sfs.writer.discards.segments.iter().copied()));
    }
}
