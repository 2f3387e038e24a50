//! The structures of ext4 on the medium, with their offsets beside the code.
//!
//! Nothing here reads or writes a device. Source of every offset: "ext4 Data Structures and Algorithms" of the kernel's
//! documentation. Numbers are little-endian, but for those of the log (jbd2), which are big-endian.
//!
//! | file | structure |
//! |---|---|
//! | `bytes` | numbers in bytes |
//! | `features` | the features, and the treatment of unknown ones |
//! | `checksum` | CRC-32C and CRC-16, and which structure has which |
//! | `superblock` | the superblock |
//! | `shape` | the places that follow from it |
//! | `group` | the descriptor of a block group |
//! | `inode` | the inode |
//! | `extents` | nodes of an extent tree |
//! | `block_map` | the older map of blocks |
//! | `entries` | entries of a directory |
//! | `hash` | the hashes of names |
//! | `index` | the index of a hashed directory |
//! | `attributes` | extended attributes |
//! | `access_list` | access control lists, which are stored in another form than programs see |
//! | `log` | the records of jbd2 |
//! | `fast_commit` | the tags of fast commits |
//! | `orphans` | the file of orphans |

pub mod access_list;
pub mod attributes;
pub mod block_map;
pub mod bytes;
pub mod checksum;
pub mod entries;
pub mod extents;
pub mod fast_commit;
pub mod features;
pub mod group;
pub mod hash;
pub mod index;
pub mod inode;
pub mod log;
pub mod mount_number;
pub mod orphans;
pub mod shape;
pub mod superblock;
