//! The papers, and the selected figures.

use crate::lab::Lab;
use crate::{ReproduceError, drives, ext_traffic, journals, nvm, placement, sfs, vma, zns_journal};
use flashpath::expression::nearest;
use flashpath::report::figure::{Figure, Reproduction};

/// A paper: its name, its figures, and the function that makes them.
pub(crate) struct Paper {
    name: &'static str,
    figures: &'static [&'static str],
    pub(crate) reproduce: fn(&Lab, &[&'static str]) -> Result<Reproduction, ReproduceError>,
}

const PAPERS: &[Paper] = &[
    Paper { name: "vma", figures: vma::FIGURES, reproduce: vma::reproduce },
    Paper { name: "sfs", figures: sfs::FIGURES, reproduce: sfs::reproduce },
    Paper { name: "zns-journal", figures: zns_journal::FIGURES, reproduce: zns_journal::reproduce },
    Paper { name: "nvm", figures: nvm::FIGURES, reproduce: nvm::reproduce },
    Paper { name: "placement", figures: placement::FIGURES, reproduce: placement::reproduce },
    Paper { name: "drives", figures: drives::FIGURES, reproduce: drives::reproduce },
    Paper { name: "journals", figures: journals::FIGURES, reproduce: journals::reproduce },
    Paper { name: "ext", figures: ext_traffic::FIGURES, reproduce: ext_traffic::reproduce },
];

/// The figures that are the same on every machine and in every run: nothing in them is captured or recorded, and nothing takes
/// real time.
const REPEATABLE: &[&str] = &[
    "sfs-table1",
    "sfs-fig1",
    "sfs-fig4",
    "sfs-fig5",
    "sfs-fig6",
    "sfs-fig7",
    "sfs-fig8",
    "sfs-fig9",
    "sfs-fig10",
    "sfs-fig11",
    "sfs-sensitivity",
    "nvm-fig4-simulated",
    "nvm-fig5-simulated",
    "nvm-flash",
    "drives-endurance",
    "drives-random",
    "drives-mixed",
    "drives-placement",
    "journals-map",
    "journals-varmail",
    "journals-tokubench",
    "journals-dbench",
    "journals-drives",
    "journals-factors",
    "journals-order",
];

/// Selected figures, in the papers' order.
pub struct Selection {
    papers: Vec<(&'static Paper, Vec<&'static str>)>,
}

impl Selection {
    /// The names of all papers, each before those of its figures.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PAPERS.iter().flat_map(|paper| std::iter::once(paper.name).chain(paper.figures.iter().copied()))
    }

    /// Selects by names of figures or papers; all figures without names. Fails if a name is unknown.
    pub fn of(names: &[String]) -> Result<Selection, ReproduceError> {
        if let Some(unknown) = names.iter().find(|name| !Selection::names().any(|known| known == name.as_str())) {
            let near = nearest(unknown, Selection::names());
            let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            let help = format!("{near}known are: {}", Selection::names().collect::<Vec<_>>().join(", "));
            return Err(ReproduceError::input(format!("unknown figure '{unknown}'"), Some(help)));
        }
        let is_wanted = |paper: &Paper, figure: &str| {
            names.is_empty() || names.iter().any(|wanted| wanted == paper.name || wanted == figure)
        };
        let papers = PAPERS.iter().map(|paper| {
            (paper, paper.figures.iter().copied().filter(|figure| is_wanted(paper, figure)).collect::<Vec<_>>())
        });
        Ok(Selection { papers: papers.filter(|(_, figures)| !figures.is_empty()).collect() })
    }

    /// The figures that can be compared with those of another run.
    pub fn repeatable() -> Selection {
        let names: Vec<String> = REPEATABLE.iter().map(|name| name.to_string()).collect();
        Selection::of(&names).expect("they are figures of the papers")
    }

    /// The selected papers and figures.
    pub(crate) fn papers(&self) -> impl Iterator<Item = (&'static Paper, &[&'static str])> {
        self.papers.iter().map(|(paper, figures)| (*paper, &figures[..]))
    }

    /// The place of a figure among the selected ones; `None` if it is not selected.
    pub(crate) fn place_of(&self, figure: &Figure) -> Option<usize> {
        self.papers.iter().flat_map(|(_, figures)| figures).position(|name| *name == figure.name)
    }
}
