//! Recovery.

mod check;
mod finding;
mod lenient;
mod log_order;
mod log_search;
mod log_tail;
mod lost_parts;
mod mark_lost;
mod metadata_files;
mod newest_records;
mod open;
mod repair;
mod roll_forward;
mod segment_map;
mod superblocks;
mod survey;
#[cfg(test)]
mod wrong_volumes;

pub use check::check;
pub use finding::{Finding, Structure};
pub use mark_lost::mark_lost;
pub(super) use metadata_files::Salvaged;
pub use repair::{Repaired, repair};
pub use segment_map::{Census, GroupRow, SegmentMap, SegmentRow, segment_map};
