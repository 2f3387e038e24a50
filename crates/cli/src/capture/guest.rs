//! A guest: one file system with its command.

use super::plan::Plan;
use flashpath::label::Content;
use flashpath::layout::{Layout, LayoutError, Region};
use flashpath::units::BLOCK_BYTES;
use flashpath_kernel::{KernelError, LoopDevice, MemoryLimit, ScratchFile, Volume};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// What the kernel writes in the background may go on for longer.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(5);

/// A guest of a capture: its device, file system and layout.
pub struct Guest {
    pub number: u32,
    /// The device's major and minor number.
    pub device: (u32, u32),
    pub memory: Option<MemoryLimit>,
    pub layout: Layout,
    /// `None` after the unmount.
    volume: Option<Volume>,
    /// The content of the device after the unmount.
    remains: Option<ScratchFile>,
    /// The device after the unmount. It stays attached while events are recorded, so that its number is not reused.
    unmounted: Option<LoopDevice>,
    /// The kernel's count of bytes written to the device before the recording.
    written_before: Option<u64>,
}

impl Guest {
    /// Makes and mounts the file system, and waits until all its writes are on the device.
    pub fn create(plan: &Plan, number: u32) -> Result<Guest, KernelError> {
        let memory = plan.memory_bytes.map(MemoryLimit::new).transpose()?;
        let volume = Volume::create(&plan.directory, plan.size_bytes, &plan.make, &plan.options)?;
        let (layout, written_before) = settle(&volume)?;
        Ok(Guest {
            number,
            device: volume.device().number(),
            memory,
            layout,
            volume: Some(volume),
            remains: None,
            unmounted: None,
            written_before,
        })
    }

    /// Remounts after a setup: the journal and the caches are empty, and all blocks are on the device.
    pub fn remount(&mut self) -> Result<(), KernelError> {
        if let Some(volume) = &mut self.volume {
            volume.mount().sync()?;
            volume.mount_again()?;
            (self.layout, self.written_before) = settle(volume)?;
        }
        Ok(())
    }

    /// The blocks written to the device so far: runs of one content, in the order of addresses. The content of blocks
    /// without a fixed place is recognised from the blocks themselves.
    ///
    /// Blocks with a fixed place count as written even if the device's file has a hole: mkfs wrote zeros there, which a
    /// loop device turns into holes.
    pub fn written_runs(&self) -> Result<Vec<(Range<u64>, Content)>, KernelError> {
        let failed =
            |source| KernelError::Failed { doing: "read the blocks that the setup has written".to_string(), source };
        let Some(scratch) = self.volume.as_ref().map(Volume::scratch) else { return Ok(Vec::new()) };
        let mut written: Vec<Range<u64>> = scratch.written().map_err(failed)?;
        let fixed = self.layout.regions.iter().filter(|(_, region)| *region != Region::Data);
        written.extend(fixed.map(|(range, _)| range));
        written.sort_unstable_by_key(|range| range.start);
        let mut runs: Vec<(Range<u64>, Content)> = Vec::new();
        let mut block = vec![0; BLOCK_BYTES as usize];
        let mut done = 0;
        for range in written {
            for offset in (done.max(range.start / BLOCK_BYTES * BLOCK_BYTES)..range.end).step_by(BLOCK_BYTES as usize) {
                scratch.read_at(offset, &mut block).map_err(failed)?;
                let content = self.layout.content_at(offset, self.layout.reads_as_metadata(&block));
                done = offset + BLOCK_BYTES;
                match runs.last_mut() {
                    Some((run, known)) if *known == content && run.end == offset => run.end = done,
                    _ => runs.push((offset..done, content)),
                }
            }
        }
        Ok(runs)
    }

    /// The mount point of the file system.
    pub fn mount(&self) -> Option<&Path> {
        self.volume.as_ref().map(|volume| volume.mount().path())
    }

    /// True if the file system has less than 1 % of free space.
    pub fn is_full(&self) -> bool {
        let share = self.volume.as_ref().and_then(|volume| volume.mount().free_share().ok());
        share.is_some_and(|share| share < 0.01)
    }

    /// True if the block at `offset` looks like metadata after the unmount.
    pub fn was_left_as_metadata(&self, offset: u64) -> bool {
        let mut block = vec![0; self.layout.block_bytes as usize];
        let start = offset - offset % self.layout.block_bytes;
        let read = self.remains.as_ref().map(|remains| remains.read_at(start, &mut block));
        matches!(read, Some(Ok(()))) && self.layout.reads_as_metadata(&block)
    }

    /// Bytes of the journal.
    pub fn journal_bytes(&self) -> u64 {
        self.layout.regions.bytes_of(Region::Journal)
    }

    /// Syncs and unmounts. The layout is read again before and after, as chunks may have been added or removed.
    pub fn unmount(&mut self, problems: &mut Vec<String>) {
        let Some(volume) = self.volume.take() else { return };
        let synced = volume.mount().sync();
        self.update_layout(volume.scratch(), problems);
        match synced.and_then(|()| volume.unmount()) {
            Ok((device, scratch)) => {
                self.update_layout(&scratch, problems);
                self.remains = Some(scratch);
                self.unmounted = Some(device);
            }
            Err(error) => problems.push(error.to_string()),
        }
    }

    /// Detaches the device; returns the kernel's count of bytes written to it during the recording.
    pub fn detach(&mut self) -> Option<u64> {
        let after = self.unmounted.take()?.written_bytes()?;
        after.checked_sub(self.written_before?)
    }

    fn update_layout(&mut self, scratch: &ScratchFile, problems: &mut Vec<String>) {
        match read_layout(scratch) {
            Ok(later) => self.layout = self.layout.joined(&later),
            Err(error) => problems.push(format!("cannot read the layout of the file system again: {error}")),
        }
    }
}

/// Syncs; returns the layout, and the kernel's count of bytes written to the device so far.
fn settle(volume: &Volume) -> Result<(Layout, Option<u64>), KernelError> {
    volume.mount().sync()?;
    let layout = read_layout(volume.scratch()).map_err(|error| KernelError::Failed {
        doing: "read the layout of the file system".to_string(),
        source: std::io::Error::other(error),
    })?;
    // The kernel may zero in the background, such as inode tables that mkfs left to it.
    volume.device().wait_until_idle(BACKGROUND_PATIENCE);
    Ok((layout, volume.device().written_bytes()))
}

/// Reads the layout from the file behind the device, which holds all writes and has no stale cache.
fn read_layout(scratch: &ScratchFile) -> Result<Layout, LayoutError> {
    let mut read = |offset: u64, buffer: &mut [u8]| scratch.read_at(offset, buffer);
    Layout::read_with_files(&mut read, scratch.size_bytes())
}
