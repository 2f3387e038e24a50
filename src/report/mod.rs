//! Results of runs ([`RunResult`]) and their forms for people and programs.
//!
//! | form | for |
//! |---|---|
//! | [`table`] | a terminal |
//! | [`json()`] | programs; docs/results-format.md has its fields |
//! | [`csv`](fn@csv), [`parquet`](fn@parquet) | programs: the same as a flat table |
//! | [`windows_csv`], [`windows_parquet`], [`windows_text`] | the windows of runs, a row for each |
//! | [`fio_json`], [`open_metrics`] | programs that read fio's JSON, or metrics |
//! | [`html()`] | an offline page with charts |
//!
//! [`figure`] holds reproduced figures of papers, [`sweep`] the results of many runs as one table.
//!
//! The engine fills the distributions of a result with [`LatencyHistogram`] and [`wear_bins`]. Each form is a function
//! from results to text, without a terminal, a file or a clock. [`write_file`] writes a text to a file.

mod cache_rows;
mod chart;
mod comma_separated;
mod comparison;
mod energy_rows;
mod environment;
mod escape;
pub mod figure;
mod file;
mod files;
mod fio;
mod flat;
mod histogram;
mod html;
mod json;
mod ledger_words;
mod number;
mod open_metrics;
mod parquet_table;
mod request_log;
mod result;
mod row;
#[cfg(test)]
mod sample;
pub mod sweep;
mod tenant_rows;
mod terminal;
mod translation_rows;
mod verdict;
mod windows;

pub use environment::{Environment, InputFile, Machine, Program, SCHEMA};
pub use file::{WriteError, check_writable, is_special, write_file};
pub use fio::fio_json;
pub use histogram::{LatencyHistogram, wear_bins};
pub use html::html;
pub use json::{csv, json, parquet};
pub use number::visible;
pub use open_metrics::open_metrics;
pub use request_log::{LogRow, LogTime, RequestLog};
pub use result::*;
pub use terminal::table;
pub use windows::{windows_csv, windows_parquet, windows_text};
