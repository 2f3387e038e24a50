//! Recovery: opens a volume, whole or damaged, reports damage, and repairs it.
//!
//! ```text
//! mount ─────────────┐
//! check ── survey ───┤
//! repair ─ survey ───┼── open ──┬─ superblocks          which checkpoints there are
//! segment_map ───────┤          ├─ load                 strict: all that it names, or none
//! mark_lost ─────────┘          ├─ best_checkpoint      lenient: what can be read of it
//!                               │    ├─ metadata_files ── roots, newest_records, rebuilt_entries, recount
//!                               │    └─ doubtful_entries ── survey
//!                               ├─ checkpoint_fields    superblock against metadata files and log
//!                               ├─ named_blocks         lenient: what maps name is not given out
//!                               └─ roll_forward         the log since the checkpoint
//!                                    ├─ log_tail ── log_search ── log_order ── log::LogReader
//!                                    ├─ logged_bytes ── applied
//!                                    └─ lost_parts ── left_out
//! ```
//!
//! The table at [`open`](open::open) shows the damage that each step tolerates. A lenient opener corrects what it
//! reports, in memory; what can only be known from the whole volume is left to the survey.
//!
//! | pass of the survey | walks over | finds | stage of its mends |
//! |---|---|---|---|
//! | metadata files | pages and tree blocks of the three | what was damaged since the volume was opened, shared addresses | none |
//! | `files` | inodes, maps, blocks | inodes, maps, blocks, targets and attributes that are damaged or cannot be | inodes, blocks, inode |
//! | `names`, blocks | blocks of directories | blocks that are damaged, or not in line | directories |
//! | `sums`, shared | addresses that two virtual blocks have | all but the one that the block record names | blocks |
//! | `names`, names | names against inodes | names that cannot be, directories with two names, wrong kinds | inodes, names |
//! | `names`, tree | parents and counts of names | inodes without a name, wrong `..`, wrong counts | tree, inode, names |
//! | `sums`, entries | DAT entries | taken ones that nothing names | leaks |
//! | `sums`, usage and counts | segments, pages | sums that differ | sums |
//!
//! A repair repeats survey and mends, the earliest stage first, until a survey finds nothing
//! ([`repair`](mod@repair) has the stages).
//!
//! Parts import each other downwards, and nothing outside of this room imports from it but `Finding`, which a mount
//! keeps, and the openers, which [`Sfs`](super::Sfs) calls.

mod applied;
mod best_checkpoint;
mod check;
mod checkpoint_fields;
mod doubtful_entries;
mod finding;
mod left_out;
mod load;
mod log_order;
mod log_search;
mod log_tail;
mod logged_bytes;
mod lost_parts;
mod mark_lost;
mod metadata_files;
mod mount;
mod named_blocks;
mod newest_records;
mod open;
mod rebuilt_entries;
mod recount;
mod repair;
mod roll_forward;
mod roots;
mod segment_map;
mod superblocks;
mod survey;
#[cfg(test)]
mod wrong_volumes;

pub use check::check;
pub(super) use check::check_mounted;
pub use finding::{Finding, Structure};
pub use mark_lost::mark_lost;
pub(super) use mount::{open_damaged, open_whole};
pub use repair::{Repaired, repair};
pub use segment_map::{Census, GroupRow, SegmentMap, SegmentRow, segment_map};
