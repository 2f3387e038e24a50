//! Decodes a page of the ring buffer.
//!
//! ```text
//! page   0 time of the first event (8)   8 length of the events, flags in bits 30 and 31   16 events
//! event  type (5 bits), nanoseconds since the one before (27 bits), then by type:
//!        0 a word that counts itself and the bytes after it    1 to 28 that many words
//!        29 padding: a word of length, or the end of the page   30 a word: higher bits of the nanoseconds
//!        31 a word: higher bits of an absolute time
//! ```
//!
//! Source: the kernel's `events/header_page` and `events/header_event`, and its "Lockless Ring Buffer Design".

use super::format::{BlockEvent, Formats, number};

/// The mask of the length. The flags are added as signed 32-bit numbers to a longer word: higher bits are undefined.
const LENGTH: u64 = (1 << 30) - 1;
const MISSED_EVENTS: u64 = 1 << 31;
const PADDING: u32 = 29;
const TIME_EXTENDED: u32 = 30;
const TIME_ABSOLUTE: u32 = 31;
/// Bits of a time in an event's first word.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time; the higher ones are those of the time before.
const ABSOLUTE_BITS: u32 = 59;

/// Counts of a page's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageCount {
    /// Events of recorded kinds.
    pub events: u64,
    /// Events of other kinds.
    pub unknown: u64,
    /// True if events before this page were overwritten.
    pub missed: bool,
}

/// The used bytes of a page, from its start; `None` if the page is invalid.
pub(super) fn used_bytes(formats: &Formats, page: &[u8]) -> Option<usize> {
    let length = number(page.get(formats.length.clone())?)? & LENGTH;
    let used = formats.events_at.checked_add(usize::try_from(length).ok()?)?;
    (used <= page.len()).then_some(used)
}

/// Decodes the events of a page, which may be cut to its used bytes; `None` if the page is invalid.
pub(super) fn read(formats: &Formats, page: &[u8], see: &mut impl FnMut(BlockEvent)) -> Option<PageCount> {
    let used = used_bytes(formats, page)?;
    let mut count =
        PageCount { missed: number(page.get(formats.length.clone())?)? & MISSED_EVENTS != 0, ..PageCount::default() };
    let mut time_ns = number(page.get(..8)?)?;
    let mut rest = page.get(formats.events_at..used)?;
    while !rest.is_empty() {
        let (kind, delta) = first_word(word(rest, 0)?);
        time_ns = time_ns.wrapping_add(u64::from(delta));
        let length = match kind {
            PADDING if delta == 0 => break,
            PADDING => 4usize.checked_add(word(rest, 4)? as usize)?,
            TIME_EXTENDED => {
                time_ns = time_ns.wrapping_add(u64::from(word(rest, 4)?) << DELTA_BITS);
                8
            }
            TIME_ABSOLUTE => {
                let low = u64::from(word(rest, 4)?) << DELTA_BITS | u64::from(delta);
                let before = time_ns.wrapping_sub(u64::from(delta));
                time_ns = before >> ABSOLUTE_BITS << ABSOLUTE_BITS | low & ((1 << ABSOLUTE_BITS) - 1);
                8
            }
            _ => {
                let (from, length) = match kind {
                    0 => (8, 4usize.checked_add(word(rest, 4)? as usize)?),
                    words => (4, 4 + 4 * words as usize),
                };
                match formats.event(time_ns, rest.get(from..length)?) {
                    Some(event) => {
                        count.events += 1;
                        see(event);
                    }
                    None => count.unknown += 1,
                }
                length
            }
        };
        rest = rest.get(length..).filter(|_| length > 0)?;
    }
    Some(count)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// An event's type and time: a C bit field, whose first bits are the low ones on little-endian machines.
fn first_word(word: u32) -> (u32, u32) {
    if cfg!(target_endian = "little") {
        (word & 31, word >> 5)
    } else {
        (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::{event_bytes, formats};
    use super::*;

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        if cfg!(target_endian = "little") { kind | delta << 5 } else { kind << 27 | delta }.to_ne_bytes()
    }

    fn page(time_ns: u64, events: &[Vec<u8>], flags: u64) -> Vec<u8> {
        let events = events.concat();
        [&time_ns.to_ne_bytes()[..], &(events.len() as u64 | flags).to_ne_bytes(), &events].concat()
    }

    fn event(delta: u32, sector: u64) -> Vec<u8> {
        [&head(14, delta)[..], &event_bytes(sector, 8, b"WS")].concat()
    }

    fn times(page: &[u8]) -> (Option<PageCount>, Vec<u64>) {
        let mut times = Vec::new();
        let count = read(&formats(), page, &mut |event| times.push(event.time_ns));
        (count, times)
    }

    #[test]
    fn times_add_up_over_extensions_padding_and_absolute_times() {
        let extension = [head(30, 5), 2u32.to_ne_bytes()].concat();
        let absolute = [head(31, 7), 1u32.to_ne_bytes()].concat();
        let padding = [&head(29, 3)[..], &8u32.to_ne_bytes(), &[0; 4]].concat();
        let long = [&head(0, 1)[..], &60u32.to_ne_bytes(), &event_bytes(9, 8, b"W")].concat();
        let end = head(29, 0).to_vec();
        let page = page(
            1000,
            &[
                event(0, 1),
                event(10, 2),
                padding,
                event(1, 3),
                extension,
                event(0, 4),
                absolute,
                long,
                end,
                vec![0xFF; 9],
            ],
            0,
        );
        let (count, times) = times(&page);
        assert_eq!(count, Some(PageCount { events: 5, unknown: 0, missed: false }));
        let extended = 1014 + 5 + (2 << 27);
        assert_eq!(times, [1000, 1010, 1014, extended, (1 << 27) + 7 + 1]);
    }

    #[test]
    fn a_page_says_that_events_before_it_were_missed() {
        for flags in [0x8000_0000u64, 0xC000_0000, 0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_C000_0000] {
            let (count, _) = times(&page(0, &[event(0, 1)], flags));
            assert_eq!(count, Some(PageCount { events: 1, unknown: 0, missed: true }));
        }
    }

    #[test]
    fn no_page_panics() {
        let whole = page(0, &[event(0, 1), [head(30, 5), 2u32.to_ne_bytes()].concat(), event(7, 2)], 0);
        for at in 0..whole.len() {
            times(&whole[..at]);
            for value in [0, 0x1D, 0x1E, 0x7F, 0xFF] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                times(&damaged);
            }
        }
    }
}
