//! The policies of victim selection, and the seam for those of a caller.

use crate::device::nand::EraseBlock;
use std::fmt::Debug;
use std::sync::Arc;

/// The policy of victim selection.
#[derive(Debug, Clone)]
pub enum VictimPolicy {
    /// The block with the most invalid pages; of several, the first to reach that number.
    Greedy,
    /// The block that was closed first.
    Fifo,
    /// Any block.
    Random,
    /// The block with the most invalid pages of `d` blocks drawn at random, with replacement (Van Houdt, SIGMETRICS
    /// '13).
    DChoices(u32),
    /// The block with the largest age x (1 - u) / 2u, with u the valid share and the age counted in pages written
    /// since one of its pages was last invalidated (Kawaguchi et al., USENIX '95).
    CostBenefit,
    /// The block that a policy of the caller chooses.
    Chosen(Arc<dyn VictimSettings>),
}

/// The options of a caller's policy, which make a chooser for each drive.
pub trait VictimSettings: Debug + Send + Sync {
    /// A chooser in its initial state. The seed is that of its random choices.
    fn start(&self, seed: u64) -> Box<dyn VictimChooser>;
}

/// A chooser without options and seed is its own settings.
impl<C: VictimChooser + Clone + Debug + Sync + 'static> VictimSettings for C {
    fn start(&self, _seed: u64) -> Box<dyn VictimChooser> {
        Box::new(self.clone())
    }
}

/// A policy of victim selection that inspects the candidates.
///
/// The policies of this library keep their candidates in order, and choose without a scan. A chooser sees all candidates
/// at each choice: the cost of a scan grows with the number of blocks of the drive.
///
/// ```
/// use flashpath::translation::{Candidate, VictimChooser};
///
/// /// The block with the fewest erases, of those with an invalid page.
/// #[derive(Clone, Debug)]
/// struct LeastWorn;
///
/// impl VictimChooser for LeastWorn {
///     fn choose(&mut self, candidates: &[Candidate], _now: u64) -> usize {
///         let order = |index: &usize| (candidates[*index].invalid == 0, candidates[*index].erases);
///         (0..candidates.len()).min_by_key(order).expect("there is a candidate")
///     }
/// }
/// ```
pub trait VictimChooser: Send {
    /// The index in `candidates` of the block to collect. There is at least one candidate; their order has no meaning.
    /// `now` is the number of pages programmed so far: the clock of [`Candidate::touched`].
    ///
    /// A policy that frees no block in many choices ends the run with [`TranslationError::NothingFreed`].
    ///
    /// [`TranslationError::NothingFreed`]: super::TranslationError::NothingFreed
    fn choose(&mut self, candidates: &[Candidate], now: u64) -> usize;
}

/// A full block that can be collected.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The block.
    pub block: EraseBlock,
    /// Its valid pages, which a collection copies.
    pub valid: u32,
    /// Its invalid pages, which a collection frees.
    pub invalid: u32,
    /// The number of its erases.
    pub erases: u32,
    /// The time at which one of its pages was last invalidated, or at which it was full, in pages programmed.
    pub touched: u64,
}
