//! The kernel's letters for a request: `FWSM` and the like.
//!
//! A leading `F` flushes first; then the operation: `R` read, `W` write, `D` discard, `F` a flush, `N` any other; then
//! flags: `F` force unit access, `A` readahead, `S` synchronous, `M` metadata, `E` secure erase, `Z` zeroes, `U`
//! untorn. Source: `blk_fill_rwbs` in the kernel's documentation of the block trace events.
//!
//! The other operations are a passed-through command, which has no sectors, and a write of zeroes without their bytes
//! (REQ_OP_WRITE_ZEROES), which the device counts among its writes.

use super::fields::{Reason, SECTOR_BYTES, extent_of_units};
use super::intake::Request;
use crate::label::Content;
use crate::workload::Action;

/// A request's letters, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters {
    /// True if the request flushes first.
    pub flush_before: bool,
    /// The action on its sectors; `None` if it has none.
    pub action: Option<Action>,
    /// True for `N`: a write of zeroes without their bytes if it has sectors, a passed-through command if not.
    pub zeroes: bool,
    /// True if the file system marked it as metadata, which includes the journal.
    pub metadata: bool,
}

impl Letters {
    /// Decodes the letters. The error says what is wrong with them.
    #[inline]
    pub fn parse(rwbs: &[u8]) -> Result<Letters, &'static str> {
        letters(rwbs)
    }
}

#[inline]
fn letters(rwbs: &[u8]) -> Result<Letters, Reason> {
    let (flush_before, rest) = match rwbs.strip_prefix(b"F") {
        Some(rest) => (true, rest),
        None => (false, rwbs),
    };
    let zeroes = rest.starts_with(b"N");
    let (action, flags) = match rest {
        [b'R', flags @ ..] => (Some(Action::Read), flags),
        [b'W' | b'N', flags @ ..] => (Some(Action::Write), flags),
        [b'D', flags @ ..] => (Some(Action::Discard), flags),
        [b'Z', ..] => return Err("zone operations are not supported"),
        flags if flush_before => (None, flags),
        _ => return Err("the letters name no operation: R, W, D, F or N is expected"),
    };
    let mut metadata = false;
    for flag in flags {
        match flag {
            b'M' => metadata = true,
            b'F' | b'A' | b'S' | b'E' | b'Z' | b'U' => {}
            _ => return Err("the letters have a flag other than F, A, S, M, E, Z and U"),
        }
    }
    Ok(Letters { flush_before, action, zeroes, metadata })
}

/// The request with these letters and sectors by the process `comm`, on device 0.
///
/// Metadata written by ext4's journal thread (`jbd2/...`) is the journal.
#[inline]
pub(super) fn request(
    time_ns: u64,
    rwbs: &[u8],
    sector: u64,
    sectors: u64,
    comm: &[u8],
) -> Result<Option<Request>, Reason> {
    let letters = letters(rwbs)?;
    let Some(action) = letters.action.filter(|_| sectors > 0 || !(letters.flush_before || letters.zeroes)) else {
        return Ok(letters.flush_before.then(|| Request::flush(time_ns)));
    };
    let mut request = Request::new(time_ns, action, extent_of_units(sector, sectors, SECTOR_BYTES)?);
    request.flush_before = letters.flush_before;
    if letters.metadata {
        let journal = comm.starts_with(b"jbd2/");
        request.operation.content = if journal { Content::Journal } else { Content::Metadata };
    }
    Ok(Some(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_f_flushes_and_a_later_one_forces_unit_access() {
        let flush = request(1, b"FWFSM", 8, 8, b"jbd2/sda-8").unwrap().unwrap();
        assert!(flush.flush_before);
        assert_eq!((flush.operation.action, flush.operation.content), (Action::Write, Content::Journal));
        let forced = request(1, b"WFS", 8, 8, b"dd").unwrap().unwrap();
        assert!(!forced.flush_before);
        assert_eq!((forced.operation.offset_bytes, forced.operation.length_bytes), (4096, 4096));
    }

    #[test]
    fn a_flush_needs_no_address() {
        for rwbs in [&b"F"[..], b"FF", b"FN", b"FS", b"FWS"] {
            // Ftrace prints the sector of a flush as -1.
            let flush = request(1, rwbs, u64::MAX, 0, b"").unwrap().unwrap();
            assert_eq!(flush, Request::flush(1), "{}", rwbs.escape_ascii());
        }
    }

    #[test]
    fn metadata_is_the_journal_only_if_the_journal_thread_writes_it() {
        assert_eq!(request(1, b"WM", 8, 8, b"kworker/u4:1").unwrap().unwrap().operation.content, Content::Metadata);
        assert_eq!(request(1, b"WS", 8, 8, b"jbd2/sda-8").unwrap().unwrap().operation.content, Content::Data);
    }

    /// Every `N` was taken for a passed-through command: a capture of ext4 with data=journal, which zeroes what it
    /// splits from a preallocated extent, had fewer bytes than the device. No capture of ours preallocated a file.
    #[test]
    fn an_n_with_sectors_writes_zeroes_and_one_without_is_no_request() {
        let zeroes = request(1, b"NS", 8, 8, b"fio").unwrap().unwrap();
        assert_eq!((zeroes.operation.action, zeroes.operation.content), (Action::Write, Content::Data));
        assert_eq!((zeroes.operation.offset_bytes, zeroes.operation.length_bytes), (4096, 4096));
        assert_eq!(request(1, b"N", 0, 0, b"smartctl"), Ok(None));
        assert_eq!(request(1, b"FN", u64::MAX, 0, b""), Ok(Some(Request::flush(1))));
    }

    #[test]
    fn operations_other_than_block_requests_are_rejected() {
        for wrong in [&b""[..], b"X", b"W?", b"ZRS", b"S"] {
            assert!(request(1, wrong, 8, 8, b"").is_err(), "{}", wrong.escape_ascii());
        }
        assert!(request(1, b"W", 8, 0, b"").is_err());
    }
}
