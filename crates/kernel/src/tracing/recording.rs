//! What was saved, as events in order of time, and what was lost.

use super::format::{BlockEvent, Formats};
use super::page::{self, PageCount};
use crate::{KernelError, failed};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::PathBuf;

/// Events that the kernel could not keep, over all processors. A recording is whole only if all are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Overwritten before they were saved.
    pub overrun: u64,
    /// Not written, because an event interrupted too many others.
    pub commit_overrun: u64,
    /// Not written, because the buffer was full.
    pub dropped: u64,
    /// Handed over by the kernel, and not found in what was saved; or left behind in its buffers.
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

    /// How many events are missing.
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

/// All that was saved.
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

    /// What the kernel says that it lost. [`Events::losses`] knows more once all events have been read.
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

/// One processor's events. They are in order of time, but for one that interrupted another.
struct Stream {
    pages: BufReader<File>,
    left: u64,
    ready: VecDeque<BlockEvent>,
    page: Vec<u8>,
}

/// The events of a recording, one after the other.
pub struct Events {
    streams: Vec<Stream>,
    formats: Formats,
    losses: Losses,
    found: u64,
    missed: u64,
}

impl Stream {
    /// Makes the next event ready, if there is one.
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
    /// The next event; `None` behind the last.
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

    /// What was lost, once the last event has been read.
    pub fn losses(&self) -> Losses {
        // A page that says that events before it are missing counts at least as one of them.
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
