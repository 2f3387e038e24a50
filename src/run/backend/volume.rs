//! A file in any volume as a backend of the engine, like a virtual machine's disk image. All that it writes is data to
//! the volume.

use super::answered::{Answered, answers_with_times};
use super::{Backend, FileShape, HostWrite};
use crate::device::{Account, STAMP_BYTES, fill_with_stamp};
use crate::fs::Durable;
use crate::fs::volume::{Allocation, Call, Hold, InodeNumber, Volume, VolumeError};
use crate::run::accounts::Stored;
use crate::run::blocks::{AT_ONCE, covered, cut, parts, touched};
use crate::run::dummy::{PLAIN_FILE, write_dummy};
use crate::run::error::RunError;
use crate::task::{CpuTable, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;
use std::sync::Arc;

/// The bytes of a block in memory.
const WIDTH: usize = BLOCK_BYTES as usize;

/// A file in a volume as a backend. Its requests are served one after the other.
pub struct VolumeBackend {
    volume: Arc<dyn Volume>,
    /// The end of the last operation.
    now: Time,
    file: InodeNumber,
    blocks: u64,
    buffer: Vec<u8>,
    fsync_every: Option<u64>,
    writes: u64,
    answered: Answered,
}

impl VolumeBackend {
    /// Makes the files in an empty volume. The dummy file is written once, in order; the workload's file is reserved.
    pub fn new(task: &Task<'_>, volume: Arc<dyn Volume>, shape: FileShape) -> Result<VolumeBackend, VolumeError> {
        let call = Call::by_root(task);
        let space = volume.space(&call)?;
        let blocks = shape.file_blocks(&space);
        if let Some(dummy_blocks) = shape.dummy_blocks(&space) {
            write_dummy(&*volume, &call, dummy_blocks)?;
        }
        let file = volume.make(&call, (InodeNumber::ROOT, b"disk"), &PLAIN_FILE, Hold::No, None)?.inode;
        if blocks > 0 {
            let how = Allocation::Reserve { keep_size: false };
            volume.allocate(&call, file, (0, blocks * BLOCK_BYTES), how, None)?;
        }
        volume.sync(&call)?;
        let buffer = vec![0; AT_ONCE as usize * WIDTH];
        Ok(VolumeBackend {
            volume,
            now: task.now(),
            file,
            blocks,
            buffer,
            fsync_every: shape.fsync_every,
            writes: 0,
            answered: Answered::default(),
        })
    }

    /// Makes one operation, which begins at `at` or when the one before is done. Returns its end.
    fn operate(
        &mut self,
        at: Time,
        act: impl FnOnce(&mut VolumeBackend, &Call) -> Result<(), VolumeError>,
    ) -> Result<Time, RunError> {
        let task = &Task::at(self.now.max(at));
        act(self, &Call::by_root(task))?;
        self.now = task.now();
        Ok(self.now)
    }

    fn read_blocks(
        &mut self,
        call: &Call,
        blocks: Range<u64>,
        mut see: impl FnMut(u64, Option<u32>),
    ) -> Result<(), VolumeError> {
        for (block, count) in parts(blocks) {
            let bytes = &mut self.buffer[..count as usize * WIDTH];
            self.volume.read(call, self.file, block * BLOCK_BYTES, bytes)?;
            for (bytes, number) in bytes.chunks_exact(WIDTH).zip(block..) {
                let stamp = u32::from_le_bytes(bytes[..STAMP_BYTES].try_into().expect("a stamp's length"));
                see(number, (stamp != 0).then_some(stamp));
            }
        }
        Ok(())
    }

    fn sync_data(&mut self, call: &Call) -> Result<(), VolumeError> {
        self.volume.sync_file(call, self.file, Durable::Data)
    }
}

impl Backend for VolumeBackend {
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
        self.operate(at, |file, call| {
            let volume = &file.volume;
            while volume.is_timed() && volume.work(call)?.is_some_and(|more| more <= call.task.now()) {}
            Ok(())
        })?;
        Ok(())
    }

    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError> {
        self.operate(at, |file, call| {
            for block in cut(range) {
                file.read_blocks(call, block..block + 1, |_, _| {})?;
            }
            for (block, count) in parts(touched(range)) {
                let bytes = &mut file.buffer[..count as usize * WIDTH];
                fill_with_stamp(write.stamp, bytes);
                file.volume.write(call, file.file, block * BLOCK_BYTES, bytes, None)?;
            }
            file.writes += 1;
            match file.fsync_every.is_some_and(|every| file.writes.is_multiple_of(every)) {
                true => file.sync_data(call),
                false => Ok(()),
            }
        })
    }

    fn read(&mut self, range: (u64, u64), at: Time, see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError> {
        self.operate(at, |file, call| file.read_blocks(call, touched(range), see))
    }

    fn discard(&mut self, range: (u64, u64), at: Time) -> Result<(Range<u64>, Time), RunError> {
        let blocks = covered(range);
        let bytes = (blocks.start * BLOCK_BYTES, (blocks.end - blocks.start) * BLOCK_BYTES);
        let done = self.operate(at, |file, call| match blocks.is_empty() {
            true => Ok(()),
            false => file.volume.allocate(call, file.file, bytes, Allocation::Punch, None),
        })?;
        Ok((blocks, done))
    }

    fn flush(&mut self, at: Time) -> Result<Time, RunError> {
        self.operate(at, VolumeBackend::sync_data)
    }

    /// The engine asks for blocks, and none of its calls takes CPU time.
    fn cpu(&self) -> Option<CpuTable> {
        Some(CpuTable::OFF)
    }

    fn account(&self) -> Account {
        self.volume.account(&Call::by_root(&Task::at(self.now))).expect("a volume that is mounted has an account")
    }

    fn stored(&self) -> Stored {
        Stored::of(&self.account())
    }
}
