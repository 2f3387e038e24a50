//! The metadata files: where virtual blocks lie, what inodes are, how full segments are; and virtual blocks of metadata in
//! memory.
//!
//! | file | what it is |
//! |---|---|
//! | `paged` | a file of pages under a root in the superblock |
//! | `dat` | the disk address translation: the address, checksum and history of each virtual block |
//! | `inode_file` | inodes, 16 to a page |
//! | `blocks` | blocks of maps, directories and attributes in memory |

pub(super) mod blocks;
pub(super) mod dat;
pub(super) mod inode_file;
pub(super) mod paged;
