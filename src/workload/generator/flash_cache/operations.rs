//! Reads and writes of a range of the drive.

use crate::label::Content;
use crate::workload::{Action, Operation};
use std::collections::VecDeque;
use std::ops::Range;

/// Operations that are not issued yet.
pub type Pending = VecDeque<Operation>;

/// Adds a read or a write of the bytes of `range`, in requests of at most `request_bytes`.
pub fn add(pending: &mut Pending, action: Action, range: Range<u64>, request_bytes: u64, stream: u8) {
    let stream = if action == Action::Write { stream } else { 0 };
    let mut at = range.start;
    while at < range.end {
        let length_bytes = request_bytes.min(range.end - at);
        let content = Content::Data;
        pending.push_back(Operation { time_ns: 0, offset_bytes: at, length_bytes, action, content, stream, device: 0 });
        at += length_bytes;
    }
}
