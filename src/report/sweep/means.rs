//! Runs that differ in their seeds alone, together: a mean for each number.

use super::SweepRow;
use super::statistics::Mean;
use super::warned::{WARNINGS, of_row, warned};
use serde_json::Value;
use std::collections::BTreeMap;

/// The columns that are no measurements.
const NO_MEASUREMENTS: [&str; 2] = ["seed", "error"];

/// Runs with the same values of all varied options but the seed.
#[derive(Clone, Debug)]
pub struct Group {
    /// The values of the varied options, in the order of the columns.
    pub cells: Vec<(String, Value)>,
    /// The runs that have results.
    pub runs: u64,
    /// The runs that failed.
    pub failed: u64,
    /// The runs of them that have warnings.
    pub warned: u64,
    /// Those warnings, without repetitions.
    pub warnings: Vec<String>,
    /// The kinds of those warnings: places in the list of [`warned`](fn@super::warned), which the rows have together.
    pub kinds: Vec<usize>,
    /// The means of the numbers, by column.
    pub means: BTreeMap<String, Mean>,
}

impl Group {
    /// The value of a varied option.
    pub fn cell(&self, column: &str) -> Option<&Value> {
        self.cells.iter().find(|(name, _)| name == column).map(|(_, value)| value)
    }
}

/// The groups of rows, in the order in which they appear. `columns` are those of the varied options; `seed` is the one over
/// which means are taken.
pub fn groups(rows: &[SweepRow], columns: &[String]) -> Vec<Group> {
    let keys: Vec<&String> = columns.iter().filter(|column| !NO_MEASUREMENTS.contains(&column.as_str())).collect();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<(Group, BTreeMap<&str, Vec<f64>>)> = Vec::new();
    let kinds = warned(rows);
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<(String, Value)> =
            keys.iter().map(|key| ((*key).clone(), row.get(*key).cloned().unwrap_or(Value::Null))).collect();
        let key = cells.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join("\n");
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            let (warnings, kinds, means) = (Vec::new(), Vec::new(), BTreeMap::new());
            groups.push((Group { cells, runs: 0, failed: 0, warned: 0, warnings, kinds, means }, BTreeMap::new()));
        }
        let (group, values) = &mut groups[place];
        let warnings = of_row(row);
        group.warned += u64::from(!warnings.is_empty());
        for text in warnings {
            if !group.warnings.contains(&text) {
                group.warnings.push(text);
            }
        }
        for (kind, warned) in kinds.iter().enumerate() {
            if warned.rows.binary_search(&number).is_ok() && !group.kinds.contains(&kind) {
                group.kinds.push(kind);
            }
        }
        if row.get("error").is_some_and(|error| !error.is_null()) {
            group.failed += 1;
            continue;
        }
        group.runs += 1;
        let is_measured = |name: &str| !NO_MEASUREMENTS.contains(&name) && !columns.iter().any(|column| column == name);
        for (name, value) in row.iter().filter(|(name, _)| is_measured(name)) {
            if let Some(value) = value.as_f64() {
                values.entry(name).or_default().push(value);
            }
        }
    }
    let with_means = |(mut group, values): (Group, BTreeMap<&str, Vec<f64>>)| {
        let mean = |(name, values): (&str, Vec<f64>)| Some((name.to_string(), Mean::of(&values)?));
        group.means = values.into_iter().filter_map(mean).collect();
        group
    };
    groups.into_iter().map(with_means).collect()
}

/// A row for each group: the varied options, the number of runs, of failed ones and of those with warnings, the warnings, and for each number its mean, and in
/// `NAME.ci95` half of the width of its confidence interval. A number that only some runs of a group have also has their
/// number, in `NAME.count`.
pub fn means(groups: &[Group]) -> Vec<SweepRow> {
    let row = |group: &Group| {
        let mut row: SweepRow = group.cells.iter().cloned().collect();
        row.insert("runs".to_string(), group.runs.into());
        row.insert("failed".to_string(), group.failed.into());
        row.insert("warned".to_string(), group.warned.into());
        row.insert(WARNINGS.to_string(), Value::from(Value::from(group.warnings.clone()).to_string()));
        for (name, mean) in &group.means {
            row.insert(name.clone(), mean.mean.into());
            if let Some(half_width) = mean.half_width {
                row.insert(format!("{name}.ci95"), half_width.into());
            }
            if mean.count < group.runs {
                row.insert(format!("{name}.count"), mean.count.into());
            }
        }
        row
    };
    groups.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows() -> Vec<SweepRow> {
        let row = |value: Value| value.as_object().unwrap().clone();
        vec![
            row(json!({ "page.op": 0.07, "seed": 1, "wa": 2.0, "error": null, "path": "a", "p99": 5 })),
            row(json!({ "page.op": 0.14, "seed": 1, "wa": 1.5, "error": null, "path": "b" })),
            row(json!({ "page.op": 0.07, "seed": 2, "wa": 4.0, "error": null, "path": "a" })),
            row(json!({ "page.op": 0.14, "seed": 2, "error": "too small", "path": "b" })),
        ]
    }

    #[test]
    fn runs_that_differ_in_their_seed_are_one_group() {
        let columns = ["page.op", "seed"].map(String::from);
        let groups = groups(&rows(), &columns);
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].runs, groups[0].failed, groups[1].runs, groups[1].failed), (2, 0, 1, 1));
        assert_eq!(groups[0].means["wa"].mean, 3.0);
        assert!(!groups[0].means.contains_key("seed") && !groups[0].means.contains_key("page.op"));
        let means = means(&groups);
        assert_eq!((&means[0]["page.op"], &means[0]["wa"], &means[0]["runs"]), (&json!(0.07), &json!(3.0), &json!(2)));
        assert!((means[0]["wa.ci95"].as_f64().unwrap() - 12.7062).abs() < 1e-3);
        assert_eq!((&means[0]["p99.count"], means[0].contains_key("p99.ci95")), (&json!(1), false));
        assert!(!means[1].contains_key("wa.ci95"));
    }
}
