//! The figures of the bench: all from the same values.

use super::runs::Values;
use super::{CLEANERS, FULL, GROUPINGS, Load, SYNCS};
use flashpath::report::figure::{Claim, Figure, Panel};

/// The systems that are compared by load: each grouping with the cleaner of its paper, or the best on average.
const SYSTEMS: [(&str, &str); 7] = [
    ("none", "cost-benefit"),
    ("sfs", "cost-hotness"),
    ("sepbit", "cost-benefit"),
    ("dac", "cost-benefit"),
    ("midas", "fifo"),
    ("lifetime", "cost-lifetime"),
    ("oracle", "greedy"),
];
const OURS: (&str, &str) = ("lifetime", "cost-lifetime");
/// The last grouping, which is no policy.
const ORACLE: usize = GROUPINGS.len() - 1;
const UNIT: &str = "blocks stored per block written";

/// The loads, and the values of all runs.
pub struct Measured<'l> {
    pub loads: &'l [Load],
    pub values: Values,
}

/// A load at a utilization with syncs, by index.
type Case = (usize, usize, usize);

fn index_of(names: &[&str], name: &str) -> usize {
    names.iter().position(|other| *other == name).expect("the name is in the table")
}

impl Measured<'_> {
    fn of(&self, (load, full, syncs): Case, grouping: usize, cleaner: usize) -> Option<f64> {
        self.values.of(load, full, syncs, grouping, cleaner)
    }

    fn system(&self, case: Case, (grouping, cleaner): (&str, &str)) -> Option<f64> {
        self.of(case, index_of(&GROUPINGS, grouping), index_of(&CLEANERS, cleaner))
    }

    /// The cases that were run, with these syncs or with any.
    fn cases(&self, syncs: Option<usize>) -> impl Iterator<Item = Case> + '_ {
        let all = (0..self.loads.len()).flat_map(|load| (0..FULL.len()).map(move |full| (load, full)));
        let all = all.flat_map(|(load, full)| (0..SYNCS.len()).map(move |syncs| (load, full, syncs)));
        all.filter(move |case| syncs.is_none_or(|syncs| case.2 == syncs) && self.of(*case, 0, 0).is_some())
    }

    /// The lowest value among policies other than ours, and its policies.
    fn best_of_others(&self, case: Case) -> Option<(f64, (&'static str, &'static str))> {
        let policies = (0..ORACLE).flat_map(|grouping| (0..CLEANERS.len()).map(move |cleaner| (grouping, cleaner)));
        let values = policies.filter_map(|(grouping, cleaner)| {
            let names = (GROUPINGS[grouping], CLEANERS[cleaner]);
            (names.0 != OURS.0 && names.1 != OURS.1).then_some((self.of(case, grouping, cleaner)?, names))
        });
        values.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The lowest value among the other policies, each with the cleaner of its paper.
    fn best_of_papers(&self, case: Case) -> Option<f64> {
        let others = SYSTEMS.into_iter().filter(|(grouping, _)| *grouping != OURS.0 && *grouping != GROUPINGS[ORACLE]);
        others.filter_map(|system| self.system(case, system)).min_by(f64::total_cmp)
    }

    /// The promise that our policy is nowhere much worse than the best of the others.
    fn worst(&self, others: String, syncs: Option<usize>, best: impl Fn(Case) -> Option<f64>) -> Claim {
        let ratios = self.cases(syncs).filter_map(|case| {
            let ratio = self.system(case, OURS)? / best(case)?;
            Some((ratio, format!("ours; {}, {}", self.name(case), SYNCS[case.2].name())))
        });
        let (ratio, place) = ratios.max_by(|one, other| one.0.total_cmp(&other.0)).unzip();
        claim(format!("lifetime over the best of the others {others}"), place.unwrap_or_default(), 1.02, ratio)
    }

    fn name(&self, (load, full, _): Case) -> String {
        format!("{}, {:.0} %", self.loads[load].name, FULL[full] * 100.0)
    }

    /// The mean over all cases of each grouping with each cleaner.
    pub fn means(&self) -> Figure {
        let mut panels = Vec::new();
        for (at, syncs) in SYNCS.iter().enumerate().filter(|(at, _)| self.cases(Some(*at)).next().is_some()) {
            let mean_of = |grouping, cleaner| mean(self.cases(Some(at)).map(|case| self.of(case, grouping, cleaner)));
            let row = |grouping| (0..CLEANERS.len()).map(|cleaner| mean_of(grouping, cleaner)).collect::<Vec<_>>();
            let rows = GROUPINGS.iter().enumerate().map(|(at, name)| (name.to_string(), row(at)));
            panels.push(Panel::new(&syncs.name(), CLEANERS.map(String::from).to_vec(), rows.collect()));
        }
        let about = "The mean over all loads at all utilizations.";
        figure("placement-means", "Placement: means", about, panels, self.promises())
    }

    /// Each grouping with its own cleaner, by load and utilization.
    pub fn by_load(&self) -> Figure {
        let mut panels = Vec::new();
        for (at, syncs) in SYNCS.iter().enumerate() {
            let row = |case| (self.name(case), SYSTEMS.map(|system| self.system(case, system)).to_vec());
            let rows: Vec<_> = self.cases(Some(at)).map(row).collect();
            if !rows.is_empty() {
                let series = SYSTEMS.map(|(grouping, cleaner)| format!("{grouping}, {cleaner}"));
                panels.push(Panel::new(&syncs.name(), series.to_vec(), rows));
            }
        }
        let about =
            "Each grouping with the cleaner of its paper; `oracle` with the one that is best for it on average.";
        figure("placement-loads", "Placement: by load", about, panels, Vec::new())
    }

    /// The winner of each load.
    pub fn winners(&self) -> Figure {
        let mut panels = Vec::new();
        for (at, syncs) in SYNCS.iter().enumerate() {
            let row = |case| {
                let (best, names) = self.best_of_others(case)?;
                let ours = self.system(case, OURS)?;
                let name = format!("{}: {} with {}", self.name(case), names.0, names.1);
                Some((name, vec![Some(best), Some(ours), Some(ours / best)]))
            };
            let rows: Vec<_> = self.cases(Some(at)).filter_map(row).collect();
            if !rows.is_empty() {
                let series = ["the best of the others", "lifetime with cost-lifetime", "ratio"].map(String::from);
                panels.push(Panel::new(&syncs.name(), series.to_vec(), rows));
            }
        }
        let about =
            "For each load the best of all groupings and cleaners but ours and the oracle, ours, and ours over it.";
        figure("placement-winners", "Placement: who wins where", about, panels, Vec::new())
    }

    /// Each grouping with each cleaner, by load: the mean over the utilizations.
    pub fn all(&self) -> Figure {
        let mut panels = Vec::new();
        for (at, syncs) in SYNCS.iter().enumerate() {
            let is_run = |load: &usize| (0..FULL.len()).any(|full| self.of((*load, full, at), 0, 0).is_some());
            let loads: Vec<usize> = (0..self.loads.len()).filter(is_run).collect();
            if loads.is_empty() {
                continue;
            }
            let value = |load: usize, grouping, cleaner| {
                mean((0..FULL.len()).map(|full| self.of((load, full, at), grouping, cleaner)))
            };
            let policies = (0..GROUPINGS.len()).flat_map(|grouping| (0..CLEANERS.len()).map(move |c| (grouping, c)));
            let rows = policies.map(|(grouping, cleaner)| {
                let name = format!("{}, {}", GROUPINGS[grouping], CLEANERS[cleaner]);
                (name, loads.iter().map(|load| value(*load, grouping, cleaner)).collect::<Vec<_>>())
            });
            let series = loads.iter().map(|load| self.loads[*load].name.to_string()).collect();
            panels.push(Panel::new(&syncs.name(), series, rows.collect()));
        }
        let about = "Every grouping with every cleaner: the mean over the utilizations.";
        figure("placement-all", "Placement: all policies", about, panels, Vec::new())
    }

    /// The targets of our policy, without syncs and in all cases.
    fn promises(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        let choices = [("without syncs", Some(0)), ("in all cases", None)];
        for (when, syncs) in choices {
            let of_papers = |case| self.best_of_papers(case);
            let of_all = |case| Some(self.best_of_others(case)?.0);
            claims.push(self.worst(format!("with the cleaners of their papers, at worst, {when}"), syncs, of_papers));
            claims.push(self.worst(format!("with any cleaner, at worst, {when}"), syncs, of_all));
            let mean_of = |system| mean(self.cases(syncs).map(|case| self.system(case, system)));
            let others = [(SYSTEMS[1], 0.9), (SYSTEMS[2], 0.95), (SYSTEMS[6], 1.25)];
            for (system, most) in others {
                let ratio = mean_of(OURS).zip(mean_of(system)).map(|(ours, other)| ours / other);
                let says = format!("mean of lifetime over that of {} with {}, {when}", system.0, system.1);
                claims.push(claim(says, "ours".to_string(), most, ratio));
            }
        }
        claims
    }
}

/// The mean of the values of the cases that were run; `None` without any.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.flatten().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn figure(name: &str, title: &str, about: &str, panels: Vec<Panel>, claims: Vec<Claim>) -> Figure {
    Figure {
        name: name.to_string(),
        title: title.to_string(),
        unit: UNIT.to_string(),
        about: format!(
            "{about} Blocks that wait in memory and are overwritten there are not stored: values below 1 are possible."
        ),
        panels,
        claims,
        made_by: None,
    }
}

fn claim(says: String, place: String, high: f64, ours: Option<f64>) -> Claim {
    let because = "a measured limit of the policy: the bound is a goal of this program".to_string();
    Claim { says, place, low: None, high: Some(high), ours, because, shown_by: None }
}
