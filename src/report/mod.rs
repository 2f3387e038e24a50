//! What a run tells: its results as one value ([`RunResult`]), and the forms in which people and programs read it.

mod result;

pub use result::*;
