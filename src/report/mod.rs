//! What a run tells: its results as one value ([`RunResult`]), and the forms in which people and programs read it.
//!
//! | form | for |
//! |---|---|
//! | [`table`] | a terminal |
//! | [`json()`] | programs |
//! | [`html()`] | a page to open offline, with charts |
//!
//! The engine fills the distributions in a result with [`LatencyHistogram`] and [`wear_bins`]. No form has access to a
//! terminal, a file or a clock: each is a function from results to text.

mod comparison;
mod histogram;
mod html;
mod json;
mod number;
mod result;
#[cfg(test)]
mod sample;
mod terminal;

pub use histogram::{LatencyHistogram, wear_bins};
pub use html::html;
pub use json::json;
pub use result::*;
pub use terminal::table;
