//! Events of the guests of a monitor.

use crate::wire::Protection;

/// A volume whose guest has died.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The UUID of the volume.
    pub volume: [u8; 16],
    /// Its path, as the guest has named it.
    pub path: String,
    /// The directory in which the path is read.
    pub directory: String,
    /// The blocks that are not home.
    pub blocks: usize,
}

/// A report of a monitor.
#[derive(Clone, Debug)]
pub enum Event {
    /// A guest commits to a volume from now on.
    Began {
        /// The guest's process.
        process: i32,
        /// The volume.
        volume: [u8; 16],
        /// The path that names it.
        path: String,
        /// How its committed memory is protected.
        protection: Protection,
    },
    /// A guest has written to memory that was committed. It is killed.
    WildWrite {
        /// The guest's process.
        process: i32,
        /// The thread of it.
        thread: u32,
        /// The volume.
        volume: [u8; 16],
        /// The block whose memory it was.
        block: Option<u64>,
    },
    /// A guest has mapped its memory a second time, where it is not protected. It is killed.
    SecondMapping {
        /// The guest's process.
        process: i32,
        /// The volume.
        volume: [u8; 16],
    },
    /// A guest was refused, and is cut off.
    Refused {
        /// Its process.
        process: i32,
        /// The reason.
        why: String,
    },
    /// A guest has died, with so many blocks that are not home.
    Died {
        /// Its process.
        process: i32,
        /// The volume.
        volume: [u8; 16],
        /// The blocks.
        blocks: usize,
    },
    /// A guest has unmounted its volume.
    Ended {
        /// Its process.
        process: i32,
        /// The volume.
        volume: [u8; 16],
    },
    /// All blocks of a volume are home.
    Recovered {
        /// The volume.
        volume: [u8; 16],
        /// The blocks that were kept of it.
        blocks: usize,
    },
    /// A recovery has failed. The memory is kept for the next guest of the volume.
    NotRecovered {
        /// The volume.
        volume: [u8; 16],
        /// The reason.
        why: String,
    },
    /// All that was in the spill is home, but the file cannot be removed. The next monitor reads it again.
    SpillLeft {
        /// The reason.
        why: String,
    },
    /// No guest can be accepted for this reason. The monitor goes on to try.
    Crowded {
        /// The reason.
        why: String,
    },
    /// Guests are accepted again.
    Open {
        /// Those that were refused meanwhile.
        refused: u64,
    },
    /// A thread of the monitor has failed. The others go on, and the process is to end when the memory of dead guests is home.
    Failed {
        /// The work of the thread.
        thread: &'static str,
        /// The reason.
        why: String,
    },
}
