//! Free blocks and inodes: found near a goal, taken and given back, group by group.
//!
//! | file | content |
//! |---|---|
//! | `space` | how much is free, and how much of it is promised |
//! | `bits` | runs in a bitmap |
//! | `bitmaps` | the bitmaps of a group, which may never have been written |
//! | `blocks` | blocks |
//! | `own_blocks` | the blocks of the volume itself, which no file has |
//! | `windows` | preallocation: blocks that files that grow have first |
//! | `inodes` | inodes |

pub mod bitmaps;
pub mod bits;
pub mod blocks;
pub mod inodes;
pub mod own_blocks;
pub mod space;
pub mod windows;
