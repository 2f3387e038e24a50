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
//! A path and a workload, run in simulated time:
//!
//! ```
//! use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, RunOptions, Work, run};
//!
//! let path = Path::read("page:op=7%,victim=greedy/nand:size=256M")?;
//! let work = Work::Blocks(BlockWork::generated("uniform:writes=4x", 1)?);
//! let job = Job { work, place: Place::Path(&path), seed: 1, options: RunOptions::default() };
//! let outcome = run(job, &NoMachine, &mut |_| true)?;
//! assert!(outcome.failure.is_none());
//!
//! let result = outcome.result;
//! assert!(result.write_amplification.total.unwrap() > 2.0);
//! let copied: f64 = result.ledger.iter().filter(|row| row.cause == "garbage-collection").map(|row| row.blocks).sum();
//! assert!(copied > 0.0, "the ledger has the cause of every page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`run::Path::read_with`] takes stations of the caller's; the crate in `examples/plugin` adds policies and a layer.
//!
//! [`units`], [`time`], [`task`], [`label`], [`random`], [`crc`], [`tables`] and [`expression`] are shared by all rooms.
//! `tests/imports.rs` holds and checks the table of allowed imports.

pub mod crc;
pub mod expression;
pub mod label;
pub mod random;
pub mod tables;
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
