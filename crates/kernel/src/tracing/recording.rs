//! The saved events in order of time, and counts of lost ones.

use super::format::{BlockEvent, Formats};
use super::page::{self, PageCount};
use crate::{KernelError, failed};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::PathBuf;

/// Lost events, over all processors. A recording is complete if all counts are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Overwritten before they were saved.
    pub overrun: u64,
    /// Not written: too many nested interrupts.
    pub commit_overrun: u64,
    /// Not written: the buffer was full.
    pub dropped: u64,
    /// Reported as read by the kernel and missing in the saved pages, or left in its buffers.
    pub unread: u64,
    read: u64,
}

impl Losses {
    pub(super) fn read(processors: &[PathBuf]) -> Result<Losses, KernelError> {
        let mut losses = Losses::default();
        for processor in processors {
            let file = processor.join("stats");
            let text = fs::read_to_string(&file).map_err(failed(format!("read {}", file.display())))?;
            losses.add(&text);
        }
        Ok(losses)
    }

    fn add(&mut self, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
            let Ok(value) = value.trim().parse::<u64>() else { continue };
            match name {
                "overrun" => self.overrun += value,
                "commit overrun" => self.commit_overrun += value,
                "dropped events" => self.dropped += value,
                "entries" => self.unread += value,
                "read events" => self.read += value,
                _ => {}
            }
        }
    }

    /// The total of lost events.
    pub fn total(&self) -> u64 {
        self.overrun + self.commit_overrun + self.dropped + self.unread
    }
}

/// The pages of one processor.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    bytes: u64,
}

impl Spool {
    pub fn new(mut file: File) -> io::Result<Spool> {
        let bytes = file.stream_position()?;
        file.rewind()?;
        Ok(Spool { file, bytes })
    }
}

/// All saved pages.
#[derive(Debug)]
pub struct Recording {
    spools: Vec<Spool>,
    formats: Formats,
    losses: Losses,
}

impl Recording {
    pub(super) fn new(spools: Vec<Spool>, formats: Formats, losses: Losses) -> Result<Recording, KernelError> {
        Ok(Recording { spools, formats, losses })
    }

    /// The kernel's count of lost events. [`Events::losses`] is exact after all events have been read.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// The events, in order of time.
    pub fn events(self) -> Events {
        let Recording { spools, formats, losses } = self;
        let streams = spools
            .into_iter()
            .map(|spool| Stream {
                pages: BufReader::with_capacity(256 << 10, spool.file),
                left: spool.bytes,
                ready: VecDeque::new(),
                page: Vec::new(),
            })
            .collect();
        Events { streams, formats, losses, found: 0, missed: 0 }
    }
}

/// One processor's events, in order of time except for nested interrupts.
struct Stream {
    pages: BufReader<File>,
    left: u64,
    ready: VecDeque<BlockEvent>,
    page: Vec<u8>,
}

/// An iterator over the events of a recording.
pub struct Events {
    streams: Vec<Stream>,
    formats: Formats,
    losses: Losses,
    found: u64,
    missed: u64,
}

impl Stream {
    /// Decodes the next event, if there is one.
    fn fill(&mut self, formats: &Formats) -> io::Result<PageCount> {
        let mut all = PageCount::default();
        while self.ready.is_empty() && self.left > 0 {
            self.page.resize(formats.events_at, 0);
            self.pages.read_exact(&mut self.page)?;
            // Only the used bytes of a page were saved: its own length says how many.
            let mut whole = std::mem::take(&mut self.page);
            whole.resize(formats.page_bytes, 0);
            let damaged = || io::Error::other("a page of the kernel's events is damaged");
            let used = page::used_bytes(formats, &whole).ok_or_else(damaged)?;
            self.pages.read_exact(&mut whole[formats.events_at..used])?;
            self.left = self.left.saturating_sub(used as u64);
            let ready = &mut self.ready;
            let count = page::read(formats, &whole[..used], &mut |event| ready.push_back(event)).ok_or_else(damaged)?;
            all.events += count.events;
            all.unknown += count.unknown;
            all.missed |= count.missed;
            self.page = whole;
        }
        Ok(all)
    }
}

impl Events {
    /// The next event; `None` after the last.
    pub fn next_event(&mut self) -> Result<Option<BlockEvent>, KernelError> {
        let mut first: Option<(u64, usize)> = None;
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let count = stream.fill(&self.formats).map_err(failed("read the saved events"))?;
            self.found += count.events + count.unknown;
            self.missed += u64::from(count.missed);
            if let Some(event) = stream.ready.front()
                && first.is_none_or(|(time_ns, _)| event.time_ns < time_ns)
            {
                first = Some((event.time_ns, number));
            }
        }
        Ok(first.and_then(|(_, number)| self.streams[number].ready.pop_front()))
    }

    /// The lost events, after the last event has been read.
    pub fn losses(&self) -> Losses {
        // A page with the "missed events" flag counts as one lost event at least.
        let counted = self.losses.overrun.max(self.missed);
        let unread = self.losses.unread + self.losses.read.saturating_sub(self.found);
        Losses { overrun: counted, unread, ..self.losses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_add_up_over_processors() {
        let mut losses = Losses::default();
        let text = |overrun: u64| {
            format!(
                "entries: 0\noverrun: {overrun}\ncommit overrun: 1\nbytes: 52\n\
            oldest event ts:  1.5\nnow ts:  2.5\ndropped events: 3\nread events: 7\n"
            )
        };
        losses.add(&text(5));
        losses.add(&text(6));
        assert_eq!(losses, Losses { overrun: 11, commit_overrun: 2, dropped: 6, unread: 0, read: 14 });
        assert_eq!(losses.total(), 19);
    }
}
