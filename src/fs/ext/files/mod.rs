//! Files: their inodes, where their blocks lie, their bytes and their extended attributes.
//!
//! | file | content |
//! |---|---|
//! | `node` | inodes in memory, each behind its gate |
//! | `map` | where a block of a file lies |
//! | `inodes` | the table of inodes |
//! | `reading` | the bytes of a file |
//! | `attributes` | extended attributes |
//! | `extent_tree`, `block_numbers` | changes of either map |
//! | `placing` | places for a file's blocks, in a map of either kind |
//! | `writing` | writes, into memory or into the transaction |
//! | `write_back`, `write_out` | dirty pages are written, those of one file |
//! | `sweeping` | those of several files |
//! | `flights` | the same without the file's gate |
//! | `resizing` | cut off, punched, reserved |
//! | `waiting` | files of which something waits to be written |
//! | `head` | the superblock of a mounted volume, and its list of orphans |
//! | `orphans` | files without a name, and such as are being cut off |
//! | `freeing` | files that nobody has any more |
//! | `changing` | changes of a file's inode |

pub mod attributes;
pub mod block_numbers;
pub mod changing;
pub mod extent_tree;
pub mod flights;
pub mod freeing;
pub mod head;
pub mod inodes;
pub mod map;
pub mod node;
pub mod orphans;
pub mod placing;
pub mod reading;
pub mod resizing;
pub mod sweeping;
pub mod waiting;
pub mod write_back;
pub mod write_out;
pub mod writing;
