//! What a run tells: its results as one value ([`RunResult`]), and the forms in which people and programs read it.

mod histogram;
mod result;

pub use histogram::{LatencyHistogram, wear_bins};
pub use result::*;
