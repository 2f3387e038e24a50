//! The log: segments that are written from their beginning to their end, as a chain of partial segments. Each begins with
//! a summary that says what follows, and what was done to names and inodes before it.
//!
//! | file | what it is |
//! |---|---|
//! | `state` | the open segments, and how much of the log is durable |
//! | `segments` | the state of each segment: free, open, written, how much of it lives |
//! | `records` | what is done to names and inodes, as the log says it |
//! | `writing` | partial segments: blocks get their places, and are written |
//! | `partial_segment`, `reader` | partial segments as they are read: the one reader of summaries |

#[cfg(test)]
pub(super) mod made_up;
mod partial_segment;
mod reader;
pub(super) mod records;
pub(super) mod segments;
mod state;
mod writing;

pub(super) use partial_segment::PartialSegment;
pub(super) use reader::{LogReader, Summary};
pub(super) use state::Log;
pub(super) use writing::{Destination, Head, Item};
