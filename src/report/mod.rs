//! What a run tells: its results as one value ([`RunResult`]), and the forms in which people and programs read it.
//!
//! | form | for |
//! |---|---|
//! | [`table`] | a terminal |
//! | [`json()`] | programs |
//! | [`html()`] | a page to open offline, with charts |
//!
//! A run in a file system has results of its own, [`FileRunResult`], and two forms: [`files_table`] and [`files_json`].
//!
//! A paper's figures that are made again have theirs too: [`figure`].
//!
//! The engine fills the distributions in a result with [`LatencyHistogram`] and [`wear_bins`]. No form has access to a
//! terminal, a file or a clock: each is a function from results to text. [`write_file`] puts a text into a file.

mod comparison;
pub mod figure;
mod file;
mod files;
mod histogram;
mod html;
mod json;
mod number;
mod result;
mod row;
#[cfg(test)]
mod sample;
mod terminal;
mod translation_rows;

pub use file::{WriteError, check_writable, is_special, write_file};
pub use files::{FileRunResult, MovedBytes, StageResult, files_json, files_table};
pub use histogram::{LatencyHistogram, wear_bins};
pub use html::html;
pub use json::json;
pub use result::*;
pub use terminal::table;
