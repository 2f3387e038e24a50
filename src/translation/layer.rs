//! A translation layer on flash as a path names it: its options, and the layer that they make.

use super::Translation;
use crate::device::nand::{Geometry, Nand, Timing};
use crate::expression::{ExpressionError, Term};
use std::any::Any;
use std::fmt::Debug;

/// The options of a translation layer on flash.
pub trait FlashLayer: Debug + Any + Send + Sync + Sized {
    /// The layer, on flash with this timing.
    type On<T: Timing + Send + 'static>: Translation + Send + 'static;

    /// Reads the term. Errors point at the option that is wrong, or at the name if the flash is too small.
    fn read(term: &Term, geometry: &Geometry) -> Result<Self, ExpressionError>;

    /// The term with every option written out.
    fn written_out(&self) -> &str;

    /// Pages that the layer offers.
    fn exported_pages(&self) -> u64;

    /// The layer on erased flash. `seed` is that of its own choices.
    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> Self::On<T>;
}
