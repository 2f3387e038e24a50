//! Reproduced figures of papers: our numbers beside the paper's claims, and their forms.
//!
//! | form | for |
//! |---|---|
//! | JSON, by serde | programs, and the source of the forms below |
//! | [`markdown`] | docs/results.md, and the terminal |
//! | [`plot`] | a figure as a file of SVG, drawn by `report/chart` |
//! | [`page`] | all of it as one HTML page |
//!
//! [`segments`] draws the segments of a log-structured volume, with the same bars.

mod markdown;
mod page;
mod plot;
mod segments;

pub use markdown::{markdown, summary};
pub use page::page;
pub use plot::{chart, plot};
pub use segments::{GroupBar, SegmentCell, SegmentUse, segments};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The reproduced figures of one paper, with the command and conditions to repeat them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// The paper's name on the command line: `vma`, `sfs`.
    pub paper: String,
    /// Its authors and title.
    pub title: String,
    /// The command that reproduces it.
    pub command: String,
    /// Our sizes over the paper's.
    pub scale: f64,
    /// The seed of our randomness; the kernel's timing is not repeatable.
    pub seed: u64,
    /// The test conditions: a name and a text each.
    pub conditions: Vec<(String, String)>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A figure: numbers in panels, and the paper's claims about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name on the command line and of its picture: `vma-fig4`.
    pub name: String,
    /// The paper's title of it.
    pub title: String,
    /// The unit of its numbers.
    pub unit: String,
    /// The method of our measurement.
    pub about: String,
    /// The numbers.
    pub panels: Vec<Panel>,
    /// The paper's claims about them.
    pub claims: Vec<Claim>,
    /// The program, its commit, and the day on which they were measured; `None` in results of before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

/// A part of a figure: a number for each group and series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// The title, such as a translation layer; may be empty.
    pub title: String,
    /// The unit of its numbers, if it is not the figure's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What the groups are, with the unit: `utilization`. `None` if their names say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// The groups are points: the title of the horizontal axis, with the unit. The first series has the place on it, and the second the
    /// height. `None`: they are bars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<String>,
    /// The series of each group: journal modes, file systems.
    pub series: Vec<String>,
    /// The groups, such as workloads, with a number for each series; `None` if not measured yet.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

impl Reproduction {
    /// The number of claims with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.figures.iter().flat_map(|figure| &figure.claims).filter(|claim| claim.verdict() == verdict).count()
    }
}

impl Panel {
    /// A panel with the figure's unit.
    pub fn new(title: &str, series: Vec<String>, groups: Vec<(String, Vec<Option<f64>>)>) -> Panel {
        Panel { title: title.to_string(), unit: None, axis: None, across: None, series, groups }
    }
}

impl Figure {
    /// The figure with this title of the axis of groups in all panels.
    pub fn over(mut self, axis: &str) -> Figure {
        self.panels.iter_mut().for_each(|panel| panel.axis = Some(axis.to_string()));
        self
    }
}

/// A claim of the paper, and our number for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The quantity that the claim bounds.
    pub says: String,
    /// The place in the paper, and the derivation of the bounds if they are implicit.
    pub place: String,
    /// The lower bound, if any.
    pub low: Option<f64>,
    /// The upper bound, if any.
    pub high: Option<f64>,
    /// Our value; `None` if not measured.
    pub ours: Option<f64>,
    /// The reason for a deviation, printed if there is one.
    pub because: String,
    /// The figure of the same results whose ablation shows this reason; without one it is a guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<String>,
}

impl Claim {
    /// The deviation of our value from the bounds, as a share of the nearer one: 0.2 is 20 % above the upper, -0.2
    /// below the lower, 0 inside or equal to three digits. `None` without a value.
    pub fn off_by(&self) -> Option<f64> {
        let ours = self.ours?;
        let off = match (self.low, self.high) {
            (Some(low), _) if ours < low => ours / low - 1.0,
            (_, Some(high)) if ours > high => ours / high - 1.0,
            _ => 0.0,
        };
        Some(if off.abs() < 0.005 { 0.0 } else { off })
    }

    /// The bounds in words: `1.74 to 2.31`, `at least 1`, `0.378`.
    pub fn bounds(&self) -> String {
        let number = super::number::three_digits;
        match (self.low, self.high) {
            (Some(low), Some(high)) if low == high => number(low),
            (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
            (Some(low), None) => format!("at least {}", number(low)),
            (None, Some(high)) => format!("at most {}", number(high)),
            (None, None) => super::number::NONE.to_string(),
        }
    }

    /// The claim with a figure that shows its `because`: there, the effect goes with the cause.
    pub fn shown_by(mut self, figure: &str) -> Claim {
        self.shown_by = Some(figure.to_string());
        self
    }

    /// The comparison: a value is inside a range, or within 15 % of a single number.
    pub fn verdict(&self) -> Verdict {
        let tolerance = if self.low == self.high { NEAR } else { 0.0 };
        match (self.off_by(), &self.shown_by) {
            (None, _) => Verdict::NotMeasured,
            (Some(off), _) if off.abs() <= tolerance => Verdict::Inside,
            (Some(_), Some(_)) => Verdict::Outside,
            (Some(_), None) => Verdict::NotReproduced,
        }
    }

    /// The verdict in words, with the deviation and its cause.
    pub fn judgement(&self) -> String {
        let verdict = self.verdict();
        let off = self.off_by().unwrap_or_default();
        let by = format!("{:+.0} %", off * 100.0);
        match (verdict, &self.shown_by) {
            (Verdict::Inside, _) if off != 0.0 => format!("{verdict} ({by})"),
            (Verdict::Outside, Some(figure)) => format!("{verdict} by {by}: {} (shown by {figure})", self.because),
            (Verdict::NotReproduced, _) => format!("{verdict} ({by}); presumed cause: {}", self.because),
            _ => verdict.to_string(),
        }
    }
}

/// The deviation from a single number up to which a value counts as equal to it.
const NEAR: f64 = 0.15;

/// The comparison of our value with a claim of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the paper's bounds.
    Inside,
    /// Outside of them, for a cause that a figure shows.
    Outside,
    /// Outside of them, and the cause is a guess.
    NotReproduced,
    /// There is no value.
    NotMeasured,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Verdict; 4] = [Verdict::Inside, Verdict::Outside, Verdict::NotReproduced, Verdict::NotMeasured];
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Verdict::Inside => "inside",
            Verdict::Outside => "outside",
            Verdict::NotReproduced => "not reproduced",
            Verdict::NotMeasured => "not measured",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(low: Option<f64>, high: Option<f64>, ours: Option<f64>) -> Claim {
        let because = "it is so".to_string();
        Claim { says: String::new(), place: String::new(), low, high, ours, because, shown_by: None }
    }

    #[test]
    fn a_verdict_states_the_deviation_from_the_bounds() {
        for (low, high, ours, bounds, guessed, shown) in [
            (Some(1.74), Some(2.31), Some(2.0), "1.74 to 2.31", "inside", "inside"),
            (
                Some(1.74),
                Some(2.31),
                Some(2.31 * 1.5),
                "1.74 to 2.31",
                "not reproduced (+50 %); presumed cause: it is so",
                "outside by +50 %: it is so (shown by vma-state)",
            ),
            (
                Some(2.0),
                None,
                Some(1.5),
                "at least 2.00",
                "not reproduced (-25 %); presumed cause: it is so",
                "outside by -25 %: it is so (shown by vma-state)",
            ),
            (None, Some(1.0), Some(0.2), "at most 1.00", "inside", "inside"),
            (Some(0.4), Some(0.4), Some(0.44), "0.400", "inside (+10 %)", "inside (+10 %)"),
            (
                Some(0.4),
                Some(0.4),
                Some(0.6),
                "0.400",
                "not reproduced (+50 %); presumed cause: it is so",
                "outside by +50 %: it is so (shown by vma-state)",
            ),
            (Some(1.0), None, Some(0.999), "at least 1.00", "inside", "inside"),
            (Some(0.4), Some(0.4), None, "0.400", "not measured", "not measured"),
        ] {
            let claim = claim(low, high, ours);
            assert_eq!((claim.bounds().as_str(), claim.judgement().as_str()), (bounds, guessed));
            assert_eq!(claim.shown_by("vma-state").judgement(), shown);
        }
    }

    fn reproduction() -> Reproduction {
        let groups = vec![
            ("seq <write>".to_string(), vec![Some(1200.0), Some(2.5), None]),
            ("untar".to_string(), vec![Some(0.0), None, None]),
        ];
        let series = ["writeback", "journal", "vma (later)"].map(String::from).to_vec();
        let figure = Figure {
            name: "vma-fig4".to_string(),
            title: "Erase counts".to_string(),
            unit: "erased blocks".to_string(),
            about: "Replayed.".to_string(),
            panels: vec![Panel::new("fast", series, groups)],
            claims: vec![Claim {
                says: "half".to_string(),
                place: "IV".to_string(),
                ..claim(Some(0.5), Some(0.5), Some(0.8))
            }],
            made_by: Some("flashpath 1 (abc), 2026-11-27".to_string()),
        };
        Reproduction {
            paper: "vma".to_string(),
            title: "A paper".to_string(),
            command: "flashpath reproduce vma".to_string(),
            scale: 0.0625,
            seed: 1,
            conditions: vec![("drive".to_string(), "of flash".to_string())],
            figures: vec![figure],
        }
    }

    #[test]
    fn markdown_has_every_number_beside_the_papers() {
        let text = markdown(&reproduction(), Some("results"));
        for line in [
            "`flashpath reproduce vma`, scale 1/16, seed 1.",
            "- drive: of flash",
            "Replayed. Made by flashpath 1 (abc), 2026-11-27.",
            "![Erase counts](results/vma-fig4.svg)",
            "| fast: erased blocks | writeback | journal | vma (later) |",
            "| seq <write> | 1,200 | 2.50 | \u{2013} |",
            "| half (IV) | 0.500 | 0.800 | not reproduced (+60 %); presumed cause: it is so |",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(!markdown(&reproduction(), None).contains("!["));
    }

    #[test]
    fn a_summary_counts_the_verdicts_of_each_paper() {
        let mut one = reproduction();
        one.figures[0].claims.push(claim(None, Some(1.0), Some(0.2)));
        one.figures[0].claims.push(claim(None, Some(1.0), Some(1.2)).shown_by("vma-state"));
        let text = summary(&[one]);
        assert!(text.contains("| verdict | A paper |") && text.contains("| not reproduced | 1 |"), "{text}");
    }

    #[test]
    fn a_figure_survives_json() {
        let text = serde_json::to_string(&reproduction()).unwrap();
        assert_eq!(serde_json::from_str::<Reproduction>(&text).unwrap(), reproduction());
    }

    #[test]
    fn a_picture_has_a_bar_for_each_number_and_a_page_has_the_pictures() {
        let bars = |svg: &str| svg.matches("<rect").count();
        let mut fewer = reproduction();
        let with_all = plot(&fewer.figures[0]);
        fewer.figures[0].panels[0].groups[0].1[1] = None;
        // Its entry in the legend goes with it.
        assert_eq!(bars(&with_all), bars(&plot(&fewer.figures[0])) + 2);
        let page = page(&[reproduction()]);
        assert!(
            page.contains("data-name=\"vma-fig4\"")
                && page.contains("seq &lt;write&gt;")
                && page.contains("presumed cause: it is so")
        );
        // Nothing to draw is no error.
        fewer.figures[0].panels.clear();
        fewer.figures[0].claims.clear();
        assert!(plot(&fewer.figures[0]).starts_with("<svg"));
    }

    /// The paper's numbers stood in a table below the picture, and nothing of them in it.
    #[test]
    fn a_claim_about_a_bar_is_drawn_at_it_and_others_have_a_row() {
        let mut figure = reproduction().figures.remove(0);
        figure.claims.push(claim(Some(1000.0), Some(1000.0), Some(1200.0)));
        let csv = chart(&figure).csv();
        assert!(csv.contains("fast,the paper,seq <write>,1000\n"), "{csv}");
        assert!(csv.contains("ours,1.6,half\n"), "0.8 over 0.5: {csv}");
        // Beside a bar of the same value elsewhere it is not known which one the claim is about.
        figure.panels[0].groups[1].1[1] = Some(1200.0);
        assert!(!chart(&figure).csv().contains("the paper,seq <write>,1000"));
    }

    #[test]
    fn panels_of_one_unit_have_one_scale() {
        let mut figure = reproduction().figures.remove(0);
        let low = Panel::new("page", vec!["writeback".to_string()], vec![("untar".to_string(), vec![Some(3.0)])]);
        figure.panels.push(low);
        let bar = |figure: &Figure| {
            let svg = plot(figure);
            let rect = svg.lines().find(|line| line.contains("untar, writeback: 3")).unwrap().to_string();
            rect.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
        };
        assert!(bar(&figure) < 2.0, "3 beside 1,200");
        figure.panels[1].unit = Some("share".to_string());
        assert!(bar(&figure) > 100.0, "3 alone");
    }
}
