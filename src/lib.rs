//! Flashpath: the path of every write, from file to flash.
//!
//! A request goes down the folders in this order, one file each at the first reading:
//!
//! | room | what it is |
//! |---|---|
//! | [`workload`] | what asks: generators and traces emit [`workload::Operation`]s |
//! | [`run`] | what assembles a path and drives it |
//! | [`translation`] | what maps addresses: page-level, DFTL, FAST, Superblock |
//! | [`device`] | what stores: NAND flash |
//! | [`fs`] | what names data: a directory |
//! | [`report`] | what it tells: ledger, table, JSON, HTML, papers' figures |
//! | [`layout`] | where a file system keeps its journal and metadata, read from its own structures |
//!
//! [`units`], [`time`], [`task`], [`label`], [`random`] and [`expression`] are the words that all rooms share. Which room may
//! import which is written down, and checked, in `tests/imports.rs`.

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
