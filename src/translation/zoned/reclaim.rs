//! The reclaim worker.
//!
//! Reclaim frees one zone after the other, in small steps that the caller requests. The cases:
//!
//! | chunk | action |
//! |---|---|
//! | a conventional data zone without valid blocks | free it |
//! | a conventional data zone | copy its blocks to a sequential zone, at the same offsets and with zeros for holes |
//! | a sequential data zone, and a buffer with blocks before its write pointer | copy its blocks to the buffer, which becomes the data zone |
//! | a sequential data zone, and a buffer with blocks after its write pointer only | copy the buffer's blocks to the data zone |
//!
//! If a chunk is changed during its copy, the copy continues to the end of the current run of valid blocks, and is then
//! given up, as in the kernel. Unlike there, reads do not interrupt a copy.

use super::Volume;
use super::lost::RECLAIM_FAILED;
use super::media::{ZoneClass, ZoneId};
use super::metadata::Entry;
use super::zones::Use;
use crate::device::{DeviceError, fill_with_stamp};
use crate::label::{Cause, Content, Label, Provenance};
use crate::time::Time;

/// Blocks copied in one step: 512 KiB, a job of the kernel's copier.
pub(super) const STEP_BLOCKS: u32 = 128;

/// The percentage of free conventional zones below which the copier does not pause.
const URGENT_PERCENT: u32 = 15;

/// The source and the destination of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// From a conventional data zone to a new zone.
    Move,
    /// From a sequential data zone into its buffer.
    IntoBuffer,
    /// From a buffer to the end of its data zone.
    IntoData,
}

/// A zone that is being reclaimed.
#[derive(Clone, Copy, Debug)]
struct Job {
    chunk: u32,
    case: Case,
    from: ZoneId,
    to: ZoneId,
    /// The next block to inspect.
    next: u32,
}

/// The state of the reclaim worker.
#[derive(Debug, Default)]
pub(super) struct Worker {
    job: Option<Job>,
    /// The end of its last step.
    done: Time,
    /// The end of its pause.
    at: Time,
    /// Chunks whose reclaim failed, and the reasons: their zones are pinned.
    failed: Vec<(u32, String)>,
    /// True if it must look for work.
    pub is_kicked: bool,
    /// The time of the last request to the volume.
    pub last_access: Time,
    /// True if it found no work for idle time since.
    pub is_done_idling: bool,
    buffer: Vec<u8>,
}

impl Volume {
    /// Does a step that is due at `now`; returns the time of the next one.
    pub(super) fn background(&mut self, now: Time) -> Result<Option<Time>, DeviceError> {
        if self.broken.is_some() {
            return Ok(None);
        }
        if self.metadata.has_dirty() && now >= self.last_commit + self.settings.commit_ns {
            self.commit(now)?;
        }
        let commit_at = self.metadata.has_dirty().then(|| self.last_commit + self.settings.commit_ns);
        let reclaim_at = self.reclaim_due();
        match reclaim_at {
            Some(due) if due <= now => {
                self.reclaim_step(due)?;
                // There may be no more work; the next step finds out.
                Ok(Some(self.reclaim_due().map_or(now, |due| due.max(self.worker.at))))
            }
            _ => Ok([commit_at, reclaim_at].into_iter().flatten().min()),
        }
    }

    /// The time of the next step, if any.
    fn reclaim_due(&self) -> Option<Time> {
        if self.worker.job.is_some() || self.worker.is_kicked {
            return Some(self.worker.at.max(self.worker.kicked_at()));
        }
        let idle_from = self.worker.last_access + self.settings.idle_ns;
        (!self.worker.is_done_idling).then_some(idle_from.max(self.worker.at))
    }

    fn is_idle(&self, now: Time) -> bool {
        now.since_ns(self.worker.last_access) >= self.settings.idle_ns
    }

    /// The percentage of free conventional zones; a single one counts as none. Journal zones do not count.
    fn free_percent(&self) -> u32 {
        let class = self.zones.first_class();
        let total = self.zones.total(class).saturating_sub(self.zones.pinned_conventional() as usize);
        match self.zones.free(class) {
            0 | 1 => 0,
            free => (free * 100 / total.max(1)) as u32,
        }
    }

    /// The pause after a copy of `worked_ns`: the kernel's copier is busy for a share of the time only.
    fn pause_ns(&self, worked_ns: u64, now: Time) -> u64 {
        let free = self.free_percent();
        if free < URGENT_PERCENT || self.is_idle(now) {
            return 0;
        }
        let busy = u64::from(75.min(100 - free / 2));
        worked_ns * (100 - busy) / busy
    }

    /// Does one step: copies a part, or selects a victim.
    fn reclaim_step(&mut self, now: Time) -> Result<(), DeviceError> {
        let now = now.max(self.worker.at);
        if self.worker.job.is_none() {
            self.worker.is_kicked = false;
            let idle = self.is_idle(now);
            if idle || self.free_percent() <= self.settings.start_percent {
                let has_begun = match self.next_victim(idle, now) {
                    Some(victim) if victim.idle_at <= now => self.begin(victim.chunk, now)?,
                    Some(victim) => {
                        // All candidates are in use: look again when the first is idle.
                        self.worker.is_kicked = true;
                        self.worker.at = victim.idle_at;
                        false
                    }
                    None => false,
                };
                self.worker.is_done_idling |= idle && !has_begun;
            }
            return Ok(());
        }
        let done = self.copy_step(now)?;
        self.worker.at = done + self.pause_ns(done.since_ns(now), now);
        Ok(())
    }

    /// Begins to reclaim a zone of a chunk. False if there is no destination.
    pub(super) fn begin(&mut self, chunk: u32, now: Time) -> Result<bool, DeviceError> {
        debug_assert!(self.worker.job.is_none(), "one copy at a time");
        let Entry { data, buffer } = self.metadata.entry(chunk);
        assert_ne!(data, ZoneId::NONE, "chunk {chunk} has a zone to free");
        let job = |case, from, to| Job { chunk, case, from, to, next: 0 };
        self.worker.at = self.worker.at.max(now);
        if self.zones.class(data).is_conventional() {
            if self.metadata.weight(data) == 0 {
                self.zones.release(data);
                self.metadata.set_entry(chunk, Entry::UNMAPPED);
                self.events.emptied += 1;
                self.reclaimed(now)?;
                return Ok(true);
            }
            let Some(to) = self.take_target(data, now)? else { return Ok(false) };
            self.worker.job = Some(job(Case::Move, data, to));
            return Ok(true);
        }
        let written = self.zones.write_pointer(data);
        let (is_valid, run_end) = match written {
            0 => (false, 0),
            written => self.metadata.run(buffer, 0, written),
        };
        let is_before = is_valid || run_end < written;
        // A read-only zone can still be read.
        self.worker.job = Some(match is_before || self.media.is_dead(data) {
            true => job(Case::IntoBuffer, data, buffer),
            false => Job { next: written, ..job(Case::IntoData, buffer, data) },
        });
        Ok(true)
    }

    /// True if there is a destination for the blocks of zone `from`.
    pub(super) fn has_target(&self, from: ZoneId) -> bool {
        self.zones.free(ZoneClass::Sequential) > 0
            || !self.zones.is_reserve_empty()
            || self.zones.class(from) == ZoneClass::Cache && self.zones.free(ZoneClass::Random) > 0
    }

    /// Takes a destination: a free sequential zone, one of the reserve, or a conventional one outside the cache.
    fn take_target(&mut self, from: ZoneId, at: Time) -> Result<Option<ZoneId>, DeviceError> {
        loop {
            let random = self.zones.class(from) == ZoneClass::Cache;
            let target = self
                .zones
                .take(ZoneClass::Sequential)
                .or_else(|| self.zones.take_reserved())
                .or_else(|| if random { self.zones.take(ZoneClass::Random) } else { None });
            let Some(zone) = target else { return Ok(None) };
            self.zones.set_use(zone, Use::Target);
            // The zone was written and never mapped before a power cut.
            if !self.zones.class(zone).is_conventional() && self.zones.write_pointer(zone) > 0 {
                self.free_zone(zone, at)?;
                continue;
            }
            return Ok(Some(zone));
        }
    }

    /// Copies a part, and finishes the reclaim after the last one. Returns the completion time.
    pub(super) fn copy_step(&mut self, now: Time) -> Result<Time, DeviceError> {
        let done = self.copy_part(now.max(self.worker.done))?;
        (self.worker.done, self.worker.at) = (done, done);
        Ok(done)
    }

    fn copy_part(&mut self, now: Time) -> Result<Time, DeviceError> {
        let Some(mut job) = self.worker.job else { return Ok(now) };
        let blocks = self.media.zone_blocks;
        let (is_valid, run_end) =
            if job.next < blocks { self.metadata.run(job.from, job.next, blocks) } else { (false, blocks) };
        if !is_valid && run_end == blocks {
            self.worker.job = None;
            return self.finish(job, now);
        }
        let end = run_end.min(job.next + STEP_BLOCKS);
        let copied = match (is_valid, job.case) {
            (true, _) => {
                // One write has one label.
                let (provenance, end) = self.provenance_run(job.chunk, job.next, end);
                self.copy(job.from, job.to, (job.next, end), provenance, now).map(|done| (end, done))
            }
            (false, Case::IntoBuffer) => Ok((run_end, now)),
            (false, _) if !self.zones.class(job.to).is_conventional() => {
                self.fill(job.to, (job.next, end), now).map(|done| (end, done))
            }
            (false, _) => Ok((run_end, now)),
        };
        match copied {
            Ok((end, done)) => {
                job.next = end;
                self.worker.job = Some(job);
                Ok(done)
            }
            Err(error) => {
                self.copy_failed(job, &error);
                self.give_up(now)?;
                Ok(now)
            }
        }
    }

    /// Handles a failed copy. A destination that has worn out is replaced. After any other failure the chunk is pinned:
    /// it would be selected again and again.
    fn copy_failed(&mut self, job: Job, error: &DeviceError) {
        if self.media.is_dead(job.to) && job.case == Case::Move {
            return;
        }
        let Job { chunk, .. } = job;
        self.warnings.add(
            RECLAIM_FAILED,
            format!("the reclaim of chunk {chunk} failed, and is tried again only if no room is left: {error}"),
        );
        self.worker.failed.push((chunk, error.to_string()));
        self.zones.pin(job.from, false);
        self.zones.pin(job.to, false);
    }

    /// Copies blocks to the same offsets of another zone.
    pub(super) fn copy(
        &mut self,
        from: ZoneId,
        to: ZoneId,
        (first, end): (u32, u32),
        provenance: Provenance,
        now: Time,
    ) -> Result<Time, DeviceError> {
        debug_assert!(from != to && first < end && end <= self.media.zone_blocks, "blocks {first} to {end} of a zone");
        let mut buffer = std::mem::take(&mut self.worker.buffer);
        buffer.resize((end - first) as usize * self.media.width, 0);
        let label = Label::again(Cause::Reclaim, provenance);
        let copied = self
            .check_not_lost(from, end)
            .and_then(|()| self.media.read(from, first, &mut buffer, now))
            .and_then(|read| self.media.write(to, first, &buffer, label, read));
        self.worker.buffer = buffer;
        self.wrote_target(to, end);
        copied
    }

    /// Fills a hole with zeros, so that later blocks keep their offsets.
    fn fill(&mut self, to: ZoneId, (first, end): (u32, u32), now: Time) -> Result<Time, DeviceError> {
        let mut buffer = std::mem::take(&mut self.worker.buffer);
        buffer.resize((end - first) as usize * self.media.width, 0);
        fill_with_stamp(0, &mut buffer);
        let label = Label::first(Cause::Reclaim, Content::Mapping);
        let filled = self.media.write(to, first, &buffer, label, now);
        self.worker.buffer = buffer;
        self.wrote_target(to, end);
        filled
    }

    fn wrote_target(&mut self, to: ZoneId, end: u32) {
        if !self.zones.class(to).is_conventional() {
            let written = self.media.write_pointer(to);
            debug_assert!(
                written <= end.max(self.zones.write_pointer(to)),
                "zone {} was written up to block {end}, and its pointer is at {written}",
                to.0
            );
            self.zones.set_write_pointer(to, written);
        }
    }

    /// Gives the chunk its new zones after the copy; a commit frees the old one.
    fn finish(&mut self, job: Job, now: Time) -> Result<Time, DeviceError> {
        let Job { chunk, case, from, to, .. } = job;
        let entry = self.metadata.entry(chunk);
        assert!(
            from == entry.data || from == entry.buffer,
            "chunk {chunk} still has zone {}, which was copied: its map would lose what was written since",
            from.0
        );
        self.move_valid_bits(from, to);
        self.zones.release(from);
        self.zones.set_use(to, Use::Data(chunk));
        self.metadata.set_entry(chunk, Entry { data: to, buffer: ZoneId::NONE });
        match case {
            Case::Move => self.events.moved += 1,
            Case::IntoBuffer => self.events.merged_into_buffer += 1,
            Case::IntoData => self.events.merged_into_data += 1,
        }
        self.reclaimed(now)
    }

    /// Commits, which frees the reclaimed zone. Returns the completion time.
    fn reclaimed(&mut self, now: Time) -> Result<Time, DeviceError> {
        self.events.reclaimed_zones += 1;
        self.worker.is_kicked = true;
        let done = self.commit(now)?;
        self.worker.done = self.worker.done.max(done);
        self.worker.at = self.worker.at.max(done);
        Ok(done)
    }

    /// True if a zone is being freed.
    pub(super) fn is_reclaiming(&self) -> bool {
        self.worker.job.is_some()
    }

    /// The end of the last step.
    pub(super) fn reclaim_done(&self) -> Time {
        self.worker.done
    }

    /// Takes the list of chunks whose reclaim failed. They may be selected again if their zones are unpinned.
    pub(super) fn take_failed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.worker.failed).into_iter().map(|(chunk, _)| chunk).collect()
    }

    /// The chunk whose reclaim failed last, and the reason.
    pub(super) fn last_failed(&self) -> Option<&(u32, String)> {
        self.worker.failed.last()
    }

    /// Begins a change of a chunk: a copy of it continues to the end of its run, and is given up. Returns the time at
    /// which the change can begin.
    #[inline]
    pub(super) fn interrupt(&mut self, chunk: u32, at: Time) -> Result<Time, DeviceError> {
        match self.worker.job {
            Some(job) if job.chunk == chunk => self.interrupt_job(at),
            _ => Ok(at),
        }
    }

    #[cold]
    fn interrupt_job(&mut self, at: Time) -> Result<Time, DeviceError> {
        let mut done = at;
        while let Some(job) = self.worker.job {
            let is_in_run = job.next > 0
                && job.next < self.media.zone_blocks
                && self.metadata.is_valid(job.from, job.next - 1)
                && self.metadata.is_valid(job.from, job.next);
            if !is_in_run && job.next < self.media.zone_blocks {
                self.events.interrupted += 1;
                self.give_up(done)?;
                break;
            }
            done = self.copy_step(done)?;
        }
        Ok(done)
    }

    /// Discards the copy.
    fn give_up(&mut self, at: Time) -> Result<(), DeviceError> {
        if let Some(job) = self.worker.job.take()
            && job.case == Case::Move
        {
            // No set has ever mapped it.
            self.zones.unpin(job.to);
            self.free_zone(job.to, at)?;
        }
        self.worker.is_kicked = true;
        Ok(())
    }
}

impl Worker {
    /// A kick is due now, in the worker's own time.
    fn kicked_at(&self) -> Time {
        self.last_access.max(self.at)
    }
}
