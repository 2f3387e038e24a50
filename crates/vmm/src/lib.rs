//! A monitor that keeps the committed memory of other processes, its guests, and a guest's side of it: Huang and Chang,
//! "Extending Lifetime and Reducing Garbage Collection Overhead of Solid State Disks with Virtual Machine Aware Journaling",
//! with processes in place of virtual machines.
//!
//! | file | role |
//! |---|---|
//! | `shared` | memory files, which both sides share |
//! | `frames` | sets of frames |
//! | `arena` | the frames of a guest: pages of its shared memory, in use, free, or free when they are reclaimed |
//! | `mapping` | shared memory that is mapped |
//! | `userfault` | write protection of a guest's memory through its userfaultfd |
//! | `wire` | the messages between a guest and the monitor, with descriptors |
//! | `slots` | slots of shared memory for short messages, each with a futex |
//! | `ring` | the ring in which a guest puts the tuples of a commit |
//! | `socket` | the socket at which guests find the monitor |
//! | `name` | the name of kept memory, which its keeper holds |
//! | `guest` | a guest's side: commits, and memory that was kept before |
//! | `table` | the tuples that the monitor keeps of a volume |
//! | `keeper` | all volumes whose memory is kept, and the holder of each |
//! | `spill` | the kept memory in a file for the next monitor |
//! | `session` | the monitor's side of one guest |
//! | `peer` | the process of a guest, which is fenced when it goes |
//! | `guests` | the connections of all guests |
//! | `entrance` | accepts guests, through any failure |
//! | `monitor` | sessions and recoveries, in threads |
//! | `event` | events of the guests |
//! | `error` | errors of both sides |
//! | `tests` | guests that are killed, write wildly or send wrong messages |
//!
//! A commit copies no data: the guest writes tuples (block, frame) into the ring, and the monitor protects those frames in
//! the guest and takes the tuples in one step. A guest copies a frame that is kept before it changes it, so that a fault in a
//! protected frame is always a wild write.
//!
//! Linux only.

mod arena;
mod entrance;
mod error;
mod event;
mod frames;
mod guest;
mod guests;
mod keeper;
mod mapping;
mod monitor;
mod name;
mod peer;
mod ring;
mod session;
mod shared;
mod slots;
mod socket;
mod spill;
mod table;
#[cfg(test)]
mod tests;
mod userfault;
mod wire;

pub use arena::{Arena, FRAME_BYTES, Frame};
pub use error::VmmError;
pub use event::{Event, Recovery};
pub use guest::{Guest, Kept, Volume};
pub use keeper::Frozen;
pub use monitor::{Monitor, Settings};
pub use name::{HeldName, NameError};
pub use wire::Protection;
