//! One file system with its command.

use super::plan::Plan;
use flashpath::label::Content;
use flashpath::layout::{Layout, LayoutError, Region};
use flashpath::units::BLOCK_BYTES;
use flashpath_kernel::{KernelError, LoopDevice, MemoryLimit, ScratchFile, Volume};
use std::ops::Range;
use std::path::Path;

/// A guest of a capture: its device and file system, and where that keeps what.
pub struct Guest {
    pub number: u32,
    /// The device's major and minor number.
    pub device: (u32, u32),
    pub memory: Option<MemoryLimit>,
    pub layout: Layout,
    /// Gone when it is unmounted.
    volume: Option<Volume>,
    /// What the device was left with, once it is unmounted.
    remains: Option<ScratchFile>,
    /// Kept attached while events are recorded: its number may be another's as soon as it is free.
    unmounted: Option<LoopDevice>,
    /// What the kernel had counted as written to the device before anything was recorded.
    written_before: Option<u64>,
}

impl Guest {
    /// Makes the file system, and waits until all that making and mounting wrote is on its device.
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

    /// Begins anew with what a setup has left: mounted again, so that no journal and no cache holds anything of it, and
    /// all of it on the device.
    pub fn begin_anew(&mut self) -> Result<(), KernelError> {
        if let Some(volume) = &mut self.volume {
            volume.mount().sync()?;
            volume.mount_again()?;
            (self.layout, self.written_before) = settle(volume)?;
        }
        Ok(())
    }

    /// What was written to the device until now: runs of blocks of one content, in the order of addresses. What has no
    /// fixed place is told by its looks.
    ///
    /// What has a fixed place counts as written even where the device's file has a hole: mkfs wrote zeros there, which
    /// a loop device turns into holes.
    pub fn what_is_there(&self) -> Result<Vec<(Range<u64>, Content)>, KernelError> {
        let failed = |source| KernelError::Failed { doing: "see what the setup has left".to_string(), source };
        let Some(scratch) = self.volume.as_ref().map(Volume::scratch) else { return Ok(Vec::new()) };
        let mut there: Vec<Range<u64>> = scratch.written().map_err(failed)?;
        let fixed = self.layout.regions.iter().filter(|(_, region)| *region != Region::Data);
        there.extend(fixed.map(|(range, _)| range));
        there.sort_unstable_by_key(|range| range.start);
        let mut runs: Vec<(Range<u64>, Content)> = Vec::new();
        let mut block = vec![0; BLOCK_BYTES as usize];
        let mut told = 0;
        for range in there {
            for offset in (told.max(range.start / BLOCK_BYTES * BLOCK_BYTES)..range.end).step_by(BLOCK_BYTES as usize) {
                scratch.read_at(offset, &mut block).map_err(failed)?;
                let content = self.layout.content_at(offset, self.layout.reads_as_metadata(&block));
                told = offset + BLOCK_BYTES;
                match runs.last_mut() {
                    Some((run, known)) if *known == content && run.end == offset => run.end = told,
                    _ => runs.push((offset..told, content)),
                }
            }
        }
        Ok(runs)
    }

    /// Where the file system is mounted.
    pub fn mount(&self) -> Option<&Path> {
        self.volume.as_ref().map(|volume| volume.mount().path())
    }

    /// Whether the file system has no room left to speak of.
    pub fn is_full(&self) -> bool {
        let share = self.volume.as_ref().and_then(|volume| volume.mount().free_share().ok());
        share.is_some_and(|share| share < 0.01)
    }

    /// Whether the block at `offset`, as it was left, reads as metadata that has no fixed place.
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

    /// Writes back and unmounts. The layout is read again before and after: chunks may have come and gone.
    pub fn unmount(&mut self, problems: &mut Vec<String>) {
        let Some(volume) = self.volume.take() else { return };
        let synced = volume.mount().sync();
        self.look_again(volume.scratch(), problems);
        match synced.and_then(|()| volume.unmount()) {
            Ok((device, scratch)) => {
                self.look_again(&scratch, problems);
                self.remains = Some(scratch);
                self.unmounted = Some(device);
            }
            Err(error) => problems.push(error.to_string()),
        }
    }

    /// Lets the device go, and answers how many bytes the kernel counted as written to it while it was recorded.
    pub fn detach(&mut self) -> Option<u64> {
        let after = self.unmounted.take()?.written_bytes()?;
        after.checked_sub(self.written_before?)
    }

    fn look_again(&mut self, scratch: &ScratchFile, problems: &mut Vec<String>) {
        match read_layout(scratch) {
            Ok(later) => self.layout = self.layout.joined(&later),
            Err(error) => problems.push(format!("cannot read the layout of the file system again: {error}")),
        }
    }
}

/// Waits until all is on the device, and answers where it keeps what, and how many bytes were written to it so far.
fn settle(volume: &Volume) -> Result<(Layout, Option<u64>), KernelError> {
    volume.mount().sync()?;
    let layout = read_layout(volume.scratch()).map_err(|error| KernelError::Failed {
        doing: "read the layout of the file system".to_string(),
        source: std::io::Error::other(error),
    })?;
    Ok((layout, volume.device().written_bytes()))
}

/// Reads from the file behind the device: what reached the device is there, and no cache of the device's own is stale.
fn read_layout(scratch: &ScratchFile) -> Result<Layout, LayoutError> {
    let mut read = |offset: u64, buffer: &mut [u8]| scratch.read_at(offset, buffer);
    Layout::read_with_files(&mut read, scratch.size_bytes())
}
