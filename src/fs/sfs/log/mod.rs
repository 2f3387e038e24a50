//! The log: segments, written sequentially as chains of partial segments. Each partial segment begins with a summary,
//! which describes its blocks and the changes of names and inodes before it.
//!
//! | file | content |
//! |---|---|
//! | `state` | the open segments, and the durable end of the log. Its writer is in `write_back` |
//! | `sync_heads` | the heads of a sync of few blocks |
//! | `segments` | the state of each segment: free, open, written; its live blocks |
//! | `records` | log records of changes to names, inodes, and the bytes of small syncs |
//! | `packing` | compression of those bytes |
//! | `partial_segment`, `reader` | reading of partial segments: the only reader of summaries |

pub(super) mod packing;
mod partial_segment;
mod reader;
pub(super) mod records;
pub(super) mod segments;
mod state;
mod sync_heads;
#[cfg(test)]
pub(super) mod test_log;

pub(super) use partial_segment::PartialSegment;
pub(super) use reader::{LogReader, Summary};
pub(super) use state::{Head, Log};
