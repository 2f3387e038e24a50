//! The papers' experiments, the paper's number beside ours.
//!
//! [`Selection`] says which figures there are and which are wanted, [`make`] makes them, [`read`] takes them from the
//! JSON of earlier runs, and [`Outputs`] writes them. The caller has the terminal and the interrupt: [`Settings`] tells
//! it what is being done, and asks it whether to go on.
//!
//! | file | what it is |
//! |---|---|
//! | `selection` | the papers, and the figures of them that are wanted |
//! | `lab` | captures of kernel file systems, and their replay on drives |
//! | `cached_reads` | a file workload whose reads the page cache answers |
//! | `vma` | VM-aware journaling, figures 2 to 5 |
//! | `sfs` | SFS, table 1, figures 1 and 4 to 14, and two of ours |
//! | `zns_journal` | journal separation on ZNS, figures 3, 7, 8 and 9 |
//! | `earlier` | figures that earlier runs made |
//! | `outputs` | where the results go |
//! | `error` | why figures were not made |

#![allow(clippy::disallowed_methods, reason = "several drives are run at once, each in a thread")]

mod cached_reads;
mod earlier;
mod error;
mod lab;
mod outputs;
mod selection;
mod sfs;
mod vma;
mod zns_journal;

pub use earlier::read;
pub use error::ReproduceError;
pub use outputs::Outputs;
pub use selection::Selection;

use flashpath::report::figure::Reproduction;
use lab::Lab;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// How figures are made.
pub struct Settings<'a> {
    /// Our sizes over the papers'.
    pub scale: f64,
    /// The seed of all randomness of ours.
    pub seed: u64,
    /// Where captured traces are kept, and those that are there are used; `None`: in a temporary directory.
    pub traces: Option<&'a Path>,
    /// Where the devices' files are made; `None`: in the system's temporary directory.
    pub devices: Option<&'a Path>,
    /// The program `flashpath`, whose `capture` records what kernel file systems write.
    pub program: &'a Path,
    /// Is told what is being done, a line at a time, from several threads.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Set by the caller to stop. A capture that runs must be told by whoever interrupts; it cleans up after itself.
    pub stop: &'a AtomicBool,
}

/// Makes the figures that are wanted. Those that need a capture need root.
pub fn make(selection: &Selection, settings: &Settings<'_>) -> Result<Vec<Reproduction>, ReproduceError> {
    let lab = Lab::new(settings)?;
    selection.papers().map(|(paper, figures)| (paper.reproduce)(&lab, figures)).collect()
}
