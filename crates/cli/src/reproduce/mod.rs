//! `flashpath reproduce`: the papers' experiments, the paper's number beside ours.
//!
//! | file | what it is |
//! |---|---|
//! | `lab` | captures of kernel file systems, and their replay on drives |
//! | `cached_reads` | a file workload whose reads the page cache answers |
//! | `vma` | VM-aware journaling, figures 2 to 5 |
//! | `sfs` | SFS, table 1, figures 1 and 4 to 14, and two of ours |
//! | `zns_journal` | journal separation on ZNS, figures 3, 7, 8 and 9 |
//! | `outputs` | where the results go |

mod cached_reads;
mod lab;
mod outputs;
mod sfs;
mod vma;
mod zns_journal;

use crate::failure::Failure;
use flashpath::expression::nearest;
use flashpath::report::figure::Reproduction;
use lab::Lab;
use outputs::Outputs;
use std::path::PathBuf;

/// Make the papers' figures again: their experiments, the paper's number beside ours (captures need root)
#[derive(clap::Args)]
pub struct Reproduce {
    /// Figures, such as vma-fig4, or papers, such as vma [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Our sizes over the paper's: 1/16, or 1 for the full size
    #[arg(long, value_name = "SCALE", default_value = "1/16", value_parser = scale)]
    scale: f64,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep the captured traces in this directory, and use those that are there
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Where the devices' files are made [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Make nothing: show the results in this file, which an earlier --json wrote; several files are shown together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scale", "seed", "traces", "dir"])]
    from: Vec<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    /// No progress
    #[arg(long, help_heading = "Results")]
    quiet: bool,
}

fn scale(text: &str) -> Result<f64, String> {
    let value = match text.split_once('/') {
        Some((over, under)) => {
            over.parse::<f64>().ok().zip(under.parse::<f64>().ok()).map(|(over, under)| over / under)
        }
        None => text.parse().ok(),
    };
    let wrong = || "write a share such as 1/16 or 0.0625, from 1/256 to 1".to_string();
    value.filter(|scale| (1.0 / 256.0..=1.0).contains(scale)).ok_or_else(wrong)
}

/// A paper: its name, its figures', and what makes them.
struct Paper {
    name: &'static str,
    figures: &'static [&'static str],
    reproduce: fn(&Lab, &[&'static str]) -> Result<Reproduction, Failure>,
}

const PAPERS: &[Paper] = &[
    Paper { name: "vma", figures: vma::FIGURES, reproduce: vma::reproduce },
    Paper { name: "sfs", figures: sfs::FIGURES, reproduce: sfs::reproduce },
    Paper { name: "zns-journal", figures: zns_journal::FIGURES, reproduce: zns_journal::reproduce },
];

impl Reproduce {
    /// Makes the figures and puts them where they were asked for.
    pub fn run(self) -> Result<(), Failure> {
        let wanted = self.wanted()?;
        self.outputs.check()?;
        let reproductions = match &self.from[..] {
            [] => self.make(&wanted)?,
            files => {
                let read = files.iter().map(|file| outputs::read(file, &wanted)).collect::<Result<Vec<_>, _>>()?;
                outputs::together(read.concat(), &wanted)
            }
        };
        self.outputs.write(&reproductions, self.quiet)
    }

    /// The papers that were asked for, each with its figures.
    fn wanted(&self) -> Result<Vec<(&'static Paper, Vec<&'static str>)>, Failure> {
        let known = || PAPERS.iter().flat_map(|paper| std::iter::once(paper.name).chain(paper.figures.iter().copied()));
        for figure in &self.figures {
            if !known().any(|name| name == figure) {
                let near = nearest(figure, known()).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
                let help = format!("{near}there are: {}", known().collect::<Vec<_>>().join(", "));
                return Err(Failure::input(format!("there is no figure '{figure}'"), Some(help)));
            }
        }
        let is_wanted = |paper: &Paper, figure: &str| {
            self.figures.is_empty() || self.figures.iter().any(|wanted| wanted == paper.name || wanted == figure)
        };
        let papers = PAPERS.iter().map(|paper| {
            (paper, paper.figures.iter().copied().filter(|figure| is_wanted(paper, figure)).collect::<Vec<_>>())
        });
        Ok(papers.filter(|(_, figures)| !figures.is_empty()).collect())
    }

    fn make(&self, wanted: &[(&'static Paper, Vec<&'static str>)]) -> Result<Vec<Reproduction>, Failure> {
        let lab = Lab::new(self.scale, self.seed, self.traces.as_deref(), self.dir.as_deref(), self.quiet)?;
        wanted.iter().map(|(paper, figures)| (paper.reproduce)(&lab, figures)).collect()
    }
}
