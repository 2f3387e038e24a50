//! The options of a translation layer on flash, and the layer that they configure.

use super::{BufferSettings, Translation};
use crate::device::nand::{Geometry, Nand, Timing};
use crate::expression::{ExpressionError, Term};
use std::any::Any;
use std::fmt::Debug;

/// The options of a translation layer on flash.
pub trait FlashLayer: Debug + Any + Send + Sync + Sized {
    /// The layer, on flash with this timing.
    type On<T: Timing + Send + 'static>: Translation<Timing = T> + Send + 'static;

    /// Parses the term. Errors point at the wrong option, or at the name if the flash is too small.
    fn read(term: &Term, geometry: &Geometry) -> Result<Self, ExpressionError>;

    /// The term with all option values.
    fn written_out(&self) -> &str;

    /// The number of pages that the layer offers.
    fn exported_pages(&self) -> u64;

    /// The options of the write buffer in front of it; `None` without one.
    fn buffer(&self) -> Option<BufferSettings> {
        None
    }

    /// Why it cannot serve on flash whose reads and blocks fail, and what can; `None` if it serves.
    fn refuses_errors(&self) -> Option<(&'static str, &'static str)> {
        Some(("has no spare blocks for bad ones, and no marks for lost pages", "take page, or remove errors"))
    }

    /// The layer on erased flash. `seed` is that of its random choices.
    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> Self::On<T>;
}
