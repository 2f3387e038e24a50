//! A file in a volume of sfs as a backend of the engine: blocks are stamps and keep the workload's labels, and the live
//! blocks of each segment are counted.

use super::answered::{Answered, answers_with_times};
use super::{Backend, FileShape, HostWrite};
use crate::device::{Account, STAMP_BYTES, fill_with_stamp};
use crate::fs::Durable;
use crate::fs::sfs::placement::Tick;
use crate::fs::sfs::{Census, InodeNumber, Sfs, SfsError, SfsVolume};
use crate::fs::volume::Call;
use crate::run::accounts::Stored;
use crate::run::blocks::{AT_ONCE, covered, cut, parts, touched};
use crate::run::dummy::{PLAIN_FILE, write_dummy};
use crate::run::error::{InputFault, RunError};
use crate::run::fill::Fill;
use crate::run::future::deaths;
use crate::task::{CpuTable, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use crate::workload::Workload;
use std::ops::Range;

/// A file in a volume of sfs as a backend.
pub struct SfsBackend {
    volume: Sfs,
    /// The end of the last operation.
    now: Time,
    file: InodeNumber,
    blocks: u64,
    width: usize,
    buffer: Vec<u8>,
    fsync_every: Option<u64>,
    writes: u64,
    /// The time at which the dummy file was written.
    dummy: Option<Tick>,
    answered: Answered,
}

impl SfsBackend {
    /// Makes the files in an empty volume. The dummy file is written once, in order; the workload's file is reserved.
    pub fn new(task: &Task<'_>, mut volume: Sfs, shape: FileShape) -> Result<SfsBackend, SfsError> {
        let space = volume.space();
        let blocks = shape.file_blocks(&space);
        let width = volume.block_width();
        let mut last_dummy = None;
        if let Some(dummy_blocks) = shape.dummy_blocks(&space) {
            let shared = SfsVolume::new(volume, task.now());
            write_dummy(&shared, &Call::by_root(task), dummy_blocks)?;
            volume = shared.into_inner();
            last_dummy = Some(volume.census().tick);
        }
        let file = volume.make(task, InodeNumber::ROOT, b"disk", &PLAIN_FILE)?;
        if blocks > 0 {
            volume.allocate(task, file, 0, blocks * BLOCK_BYTES, false)?;
        }
        volume.sync(task)?;
        Ok(SfsBackend {
            volume,
            now: task.now(),
            file,
            blocks,
            width,
            buffer: vec![0; AT_ONCE as usize * width],
            fsync_every: shape.fsync_every,
            writes: 0,
            dummy: last_dummy,
            answered: Answered::default(),
        })
    }

    /// True if the volume places blocks by writes that are still to come.
    pub fn needs_future(&self) -> bool {
        self.volume.needs_future()
    }

    /// Tells the volume when the blocks of the file will die. The file is new.
    ///
    /// Fails if the volume's clock does not count writes.
    pub fn foresee(&mut self, workload: &mut dyn Workload, fill: Fill) -> Result<(), RunError> {
        if !self.volume.counts_writes() {
            let what = "a grouping by the future counts time in writes, and this volume measures it".to_string();
            let help = Some("add clock=writes to sfs, or timing=off to the device".to_string());
            return Err(InputFault::Refused { what, help }.into());
        }
        self.volume.foresee(self.file, deaths(workload, self.blocks, fill)?);
        Ok(())
    }

    /// Notes the end of an operation.
    fn ended(&mut self, task: &Task<'_>) -> Time {
        self.now = task.now();
        self.now
    }

    fn read_blocks(
        &mut self,
        task: &Task<'_>,
        blocks: Range<u64>,
        mut see: impl FnMut(u64, Option<u32>),
    ) -> Result<(), SfsError> {
        for (block, count) in parts(blocks) {
            let mut buffer = std::mem::take(&mut self.buffer);
            let bytes = &mut buffer[..count as usize * self.width];
            let read = self.volume.read_blocks(task, self.file.0, block, bytes);
            for (bytes, number) in bytes.chunks_exact(self.width).zip(block..) {
                let stamp = u32::from_le_bytes(bytes[..STAMP_BYTES].try_into().expect("a stamp's length"));
                see(number, (stamp != 0).then_some(stamp));
            }
            self.buffer = buffer;
            read?;
        }
        Ok(())
    }
}

impl Backend for SfsBackend {
    answers_with_times!();

    fn is_timed(&self) -> bool {
        self.volume.is_timed()
    }

    fn unit_bytes(&self) -> u64 {
        BLOCK_BYTES
    }

    fn exported_bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    fn work(&mut self, at: Time) -> Result<(), RunError> {
        let task = &Task::at(self.now.max(at));
        while self.volume.is_timed() && self.volume.work(task)?.is_some_and(|more| more <= task.now()) {}
        self.ended(task);
        Ok(())
    }

    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError> {
        let task = &Task::at(self.now.max(at));
        for block in cut(range) {
            self.read_blocks(task, block..block + 1, |_, _| {})?;
        }
        let hint = self.volume.hint_of_stream(write.stream);
        for (block, count) in parts(touched(range)) {
            let bytes = &mut self.buffer[..count as usize * self.width];
            fill_with_stamp(write.stamp, bytes);
            self.volume.write_whole(task, self.file, block, bytes, write.content, hint)?;
        }
        self.writes += 1;
        if self.fsync_every.is_some_and(|every| self.writes.is_multiple_of(every)) {
            self.volume.sync_file(task, self.file, Durable::Data)?;
        }
        Ok(self.ended(task))
    }

    fn read(&mut self, range: (u64, u64), at: Time, see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError> {
        let task = &Task::at(self.now.max(at));
        self.read_blocks(task, touched(range), see)?;
        Ok(self.ended(task))
    }

    fn discard(&mut self, range: (u64, u64), at: Time) -> Result<(Range<u64>, Time), RunError> {
        let task = &Task::at(self.now.max(at));
        let blocks = covered(range);
        if !blocks.is_empty() {
            let count = blocks.end - blocks.start;
            self.volume.punch(task, self.file, blocks.start * BLOCK_BYTES, count * BLOCK_BYTES)?;
        }
        Ok((blocks, self.ended(task)))
    }

    fn flush(&mut self, at: Time) -> Result<Time, RunError> {
        let task = &Task::at(self.now.max(at));
        self.volume.sync_file(task, self.file, Durable::Data)?;
        Ok(self.ended(task))
    }

    /// The engine asks for blocks, and none of its calls takes CPU time.
    fn cpu(&self) -> Option<CpuTable> {
        Some(CpuTable::OFF)
    }

    fn account(&self) -> Account {
        self.volume.account()
    }

    fn stored(&self) -> Stored {
        Stored::of(&self.volume.account())
    }

    fn census(&self) -> Option<Census> {
        let mut census = self.volume.census();
        census.segments.retain(|segment| self.dummy.is_none_or(|last| segment.youngest > last));
        Some(census)
    }
}
