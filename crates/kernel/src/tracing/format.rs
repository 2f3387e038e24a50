//! The layout of events, parsed from the `format` files of the kernel.

use crate::{KernelError, failed};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// The point in a request's life at which an event was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A file system submitted it (`block_bio_queue`).
    Queued,
    /// The driver received it, after merging and splitting (`block_rq_issue`).
    Issued,
    /// The device failed it (`block_rq_error`).
    Failed,
}

/// One block event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// The kernel's monotonic clock, in nanoseconds.
    pub time_ns: u64,
    /// The point in the request's life.
    pub kind: EventKind,
    /// The device, by major and minor number.
    pub device: (u32, u32),
    /// The first sector, of 512 bytes; undefined without sectors.
    pub sector: u64,
    /// The number of sectors; 0 for a flush.
    pub sectors: u32,
    letters: [u8; 16],
}

impl BlockEvent {
    /// The kernel's flag letters: `WSM` and the like.
    pub fn letters(&self) -> &[u8] {
        let end = self.letters.iter().position(|letter| *letter == 0).unwrap_or(self.letters.len());
        &self.letters[..end]
    }
}

/// The kernel's encoding of a device number in events: 20 bits for the minor number.
pub(super) fn device_word(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

/// The fields of one kind of event.
#[derive(Clone, Debug, PartialEq)]
struct Format {
    kind: EventKind,
    name: &'static str,
    identity: u16,
    device: Range<usize>,
    sector: Range<usize>,
    sectors: Range<usize>,
    letters: Range<usize>,
}

/// The layouts of all recorded events, and of a page of the buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Formats {
    events: Vec<Format>,
    /// The size of a page of the buffer, and the offsets of its length and its events.
    pub page_bytes: usize,
    pub length: Range<usize>,
    pub events_at: usize,
}

const EVENTS: [(&str, EventKind); 3] = [
    ("block_bio_queue", EventKind::Queued),
    ("block_rq_issue", EventKind::Issued),
    ("block_rq_error", EventKind::Failed),
];

impl Formats {
    /// Parses the formats of an instance. A kernel before 5.18 has no event for failed requests; the others are
    /// required.
    pub fn read(instance: &Path) -> Result<Formats, KernelError> {
        let read = |file: &Path| described(file).map_err(failed(format!("read {}", file.display())));
        let header = read(&instance.join("events/header_page"))?;
        let unknown = |what: &str| {
            KernelError::missing(
                format!("the kernel describes its {what} in an unknown format"),
                "report it, with the files events/header_page and events/block/block_bio_queue/format of tracefs",
            )
        };
        let field = |name| field(&header, name).ok_or_else(|| unknown("tracing pages"));
        let (length, data) = (field("commit")?, field("data")?);
        let mut formats = Formats { events: Vec::new(), page_bytes: data.end, length, events_at: data.start };
        for (name, kind) in EVENTS {
            let file = instance.join(format!("events/block/{name}/format"));
            if !file.exists() {
                if kind == EventKind::Failed {
                    continue;
                }
                return Err(KernelError::missing(
                    format!("the kernel has no event {name}"),
                    "it takes a kernel with CONFIG_BLK_DEV_IO_TRACE",
                ));
            }
            formats.events.push(Format::parse(name, kind, &read(&file)?).ok_or_else(|| unknown("block events"))?);
        }
        Ok(formats)
    }

    /// The events' names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.events.iter().map(|format| format.name)
    }

    /// Decodes an event; `None` if its kind is not recorded, or if it is too short for its kind.
    pub fn event(&self, time_ns: u64, bytes: &[u8]) -> Option<BlockEvent> {
        let identity = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let format = self.events.iter().find(|format| format.identity == identity)?;
        let device = number(bytes.get(format.device.clone())?)? as u32;
        let mut letters = [0; 16];
        let written = bytes.get(format.letters.clone())?;
        letters.get_mut(..written.len())?.copy_from_slice(written);
        // Bytes after the end of the text are remains of older events.
        if let Some(end) = letters.iter().position(|letter| *letter == 0) {
            letters[end..].fill(0);
        }
        Some(BlockEvent {
            time_ns,
            kind: format.kind,
            device: (device >> 20, device & 0xF_FFFF),
            sector: number(bytes.get(format.sector.clone())?)?,
            sectors: u32::try_from(number(bytes.get(format.sectors.clone())?)?).ok()?,
            letters,
        })
    }
}

impl Format {
    fn parse(name: &'static str, kind: EventKind, text: &str) -> Option<Format> {
        let identity = text.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let field = |name| field(text, name);
        Some(Format {
            kind,
            name,
            identity,
            device: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            letters: field("rwbs").filter(|letters| letters.len() <= 16)?,
        })
    }
}

/// Reads a `format` file with one call: after a short first read, the kernel loses parts of the rest.
fn described(file: &Path) -> io::Result<String> {
    let mut text = vec![0; 64 << 10];
    let length = File::open(file)?.read(&mut text)?;
    text.truncate(length);
    String::from_utf8(text).map_err(io::Error::other)
}

/// The bytes of a field: `field:sector_t sector; offset:16; size:8; signed:0;`, separated by tabs.
fn field(text: &str, name: &str) -> Option<Range<usize>> {
    text.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let declared = parts.next()?.split_whitespace().last()?;
        if declared.split('[').next() != Some(name) {
            return None;
        }
        let offset: usize = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        let size: usize = parts.next()?.strip_prefix("size:")?.parse().ok()?;
        offset.checked_add(size).map(|end| offset..end)
    })
}

/// A number in the machine's byte order.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    Some(match bytes.len() {
        4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
        8 => u64::from_ne_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const QUEUE_FORMAT: &str = "name: block_bio_queue\nID: 2097\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:38;\tsize:16;\tsigned:0;\n";

    pub fn formats() -> Formats {
        let event = Format::parse("block_bio_queue", EventKind::Queued, QUEUE_FORMAT).unwrap();
        Formats { events: vec![event], page_bytes: 4096, length: 8..16, events_at: 16 }
    }

    /// The bytes of an event in the format above.
    pub fn event_bytes(sector: u64, sectors: u32, letters: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 56];
        bytes[..2].copy_from_slice(&2097u16.to_ne_bytes());
        bytes[8..12].copy_from_slice(&device_word(7, 300).to_ne_bytes());
        bytes[16..24].copy_from_slice(&sector.to_ne_bytes());
        bytes[24..28].copy_from_slice(&sectors.to_ne_bytes());
        bytes[28..28 + letters.len()].copy_from_slice(letters);
        bytes
    }

    #[test]
    fn an_event_is_read_where_the_kernel_says_its_fields_are() {
        let event = formats().event(5, &event_bytes(2_102_176, 8, b"WSM\0junk")).unwrap();
        assert_eq!((event.time_ns, event.device, event.sector, event.sectors), (5, (7, 300), 2_102_176, 8));
        assert_eq!(event.letters(), b"WSM");
    }

    #[test]
    fn an_event_that_is_cut_short_or_of_another_kind_is_none() {
        let whole = event_bytes(8, 8, b"W");
        for length in 0..38 {
            assert_eq!(formats().event(5, &whole[..length]), None);
        }
        let mut other = whole.clone();
        other[0] ^= 1;
        assert_eq!(formats().event(5, &other), None);
    }
}
