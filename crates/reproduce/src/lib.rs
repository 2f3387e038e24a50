//! The papers' experiments, with the paper's numbers beside ours.
//!
//! [`Selection`] lists and selects the figures, [`make`] makes them, [`read`] reads them from the JSON of earlier runs,
//! and [`Outputs`] writes them. The caller handles the terminal and interrupts, through the progress and stop fields of
//! [`Settings`].
//!
//! | file | what it is |
//! |---|---|
//! | `selection` | the papers, and the selected figures |
//! | `lab` | captures of kernel file systems, and their replay on drives |
//! | `guest` | a guest whose file system is `ext` of this program, on a recorded device |
//! | `left_out` | file workloads without some of their calls |
//! | `recording` | recorded loads in a file of the blocks that they write |
//! | `vma` | VM-aware journaling, figures 2 to 5 |
//! | `sfs` | SFS, table 1, figures 1, 2 and 4 to 14, and two of ours |
//! | `zns_journal` | journal separation on ZNS, figures 3, 7, 8 and 9, and two of ours |
//! | `nvm` | NVM-based concurrent journaling, figures 4 and 5, and ablations |
//! | `drives` | published numbers of drives that are sold: endurance, random and mixed writes, placement |
//! | `journals` | not of a paper: every journal of ext, with published factors of others |
//! | `at_once` | runs beside each other |
//! | `placement` | not of a paper: every grouping with every cleaner of sfs, at many utilizations and rates of syncs |
//! | `ext_traffic` | not of a paper: what `ext` writes beside the kernel's ext4 |
//! | `earlier` | figures of earlier runs |
//! | `check` | compares figures with those of an earlier run |
//! | `outputs` | writes the results |
//! | `error` | errors of the experiments |

#![allow(
    clippy::disallowed_methods,
    reason = "several drives run at once, each in a thread, and real runs have the clock"
)]

mod at_once;
mod check;
mod drives;
mod earlier;
mod error;
mod ext_traffic;
mod guest;
mod journals;
mod lab;
mod left_out;
mod nvm;
mod outputs;
mod placement;
mod recording;
mod selection;
mod sfs;
mod vma;
mod zns_journal;

pub use check::{Moved, moved};
pub use earlier::read;
pub use error::ReproduceError;
pub use outputs::Outputs;
pub use selection::Selection;

use flashpath::report::figure::Reproduction;
use lab::Lab;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The settings of the experiments.
pub struct Settings<'a> {
    /// Our sizes over the papers'.
    pub scale: f64,
    /// The seed of our randomness.
    pub seed: u64,
    /// The directory of captured traces, which are reused; `None`: a temporary directory.
    pub traces: Option<&'a Path>,
    /// The directory for the devices' files; `None`: the system's temporary directory.
    pub devices: Option<&'a Path>,
    /// The program `flashpath`, whose `capture` records the writes of kernel file systems.
    pub program: &'a Path,
    /// The program and its version, for the journals of experiments that are resumed.
    pub version: String,
    /// The day, as it stands beside each figure.
    pub date: String,
    /// Called with each line of progress, from several threads.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Set by the caller to stop. A running capture must get its own signal; it cleans up after itself.
    pub stop: &'a AtomicBool,
}

/// Makes the selected figures. Those that need a capture need root.
pub fn make(selection: &Selection, settings: &Settings<'_>) -> Result<Vec<Reproduction>, ReproduceError> {
    let lab = Lab::new(settings)?;
    let made_by = format!("{}, {}", settings.version, settings.date);
    let signed = |mut made: Reproduction| {
        for figure in &mut made.figures {
            figure.made_by = Some(made_by.clone());
            for shows in figure.claims.iter().filter_map(|claim| claim.shown_by.as_deref()) {
                assert!(Selection::names().any(|name| name == shows), "{}: there is no figure {shows}", figure.name);
            }
        }
        made
    };
    selection.papers().map(|(paper, figures)| (paper.reproduce)(&lab, figures).map(signed)).collect()
}
