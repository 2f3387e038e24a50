//! Flashpath: the path of every write, from file to flash.
//!
//! A request goes down the folders in this order, one file each at the first reading:
//!
//! | room | role |
//! |---|---|
//! | [`workload`] | request sources: generators and traces emit [`workload::Operation`]s |
//! | [`run`] | assembles and runs a path |
//! | [`translation`] | address mapping: page-level, DFTL, FAST, Superblock, dm-zoned |
//! | [`device`] | devices: conventional, ZNS, NAND flash, cache |
//! | [`fs`] | file systems: sfs, ext, tree, and the `Volume` seam |
//! | [`report`] | results: ledger, table, JSON, HTML, papers' figures |
//! | [`layout`] | locates a file system's journal and metadata from its own structures |
//!
//! [`units`], [`time`], [`task`], [`label`], [`random`], [`crc`] and [`expression`] are shared by all rooms.
//! `tests/imports.rs` holds and checks the table of allowed imports.

pub mod crc;
pub mod expression;
pub mod label;
pub mod random;
pub mod task;
pub mod time;
pub mod units;

pub mod device;
pub mod fs;
pub mod layout;
pub mod report;
pub mod run;
pub mod translation;
pub mod workload;
