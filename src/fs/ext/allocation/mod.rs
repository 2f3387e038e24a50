//! Free blocks and inodes: found near a goal, taken and given back, group by group.
//!
//! | file | content |
//! |---|---|
//! | `space` | how much is free, and how much of it is promised |
//! | `bits` | runs in a bitmap |
//! | `bitmaps` | the bitmaps of a group, which may never have been written |
//! | `blocks` | blocks |
//! | `windows` | preallocation: blocks that files that grow have first |
//! | `inodes` | inodes |

pub mod bitmaps;
pub mod bits;
pub mod blocks;
pub mod inodes;
pub mod space;
pub mod windows;

use super::changes::Changes;
use super::metadata::Metadata;
use crate::task::Gate;
use space::Free;
use windows::Windows;

/// Free blocks and inodes in memory.
pub struct FreeSpace {
    /// The gates of groups: some groups share one.
    pub groups: Vec<Gate<()>>,
    pub free: Free,
    pub windows: Windows,
}

/// Takes free blocks and inodes, and gives them back.
#[derive(Clone, Copy)]
pub struct Allocation<'e> {
    pub metadata: &'e Metadata,
    pub changes: &'e Changes,
    pub space: &'e FreeSpace,
}

impl Default for FreeSpace {
    fn default() -> FreeSpace {
        let groups = (0..64).map(|_| Gate::new("group", ())).collect();
        FreeSpace { groups, free: Free::default(), windows: Windows::default() }
    }
}
