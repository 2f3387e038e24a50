//! A batch of volumes: how the numbers of the devices of a trace are distributed.
//!
//! A value of a device is the mean over its seeds. Of a choice of the other options there is a row for each number, over
//! devices, each of which counts once; `weighted` weighs a device by its writes, as one pool of all volumes would.

use super::SweepRow;
use super::means::{Group, groups};
use super::unit::{Units, measured, measured_axis, shown, title};
use crate::report::chart::{Axis, Chart, Panel, Series};
use crate::report::number::{NONE, visible};
use serde_json::Value;

/// The column of the device of a trace.
pub const DEVICE: &str = "device";

/// The numbers whose distribution is told, if runs have them.
const NUMBERS: [&str; 7] = [
    "write_amplification.total",
    "write_amplification.steady",
    "latency_ns.write.p99",
    "latency_ns.read.p99",
    "wear.lifetime_host_tib",
    "wear.rate.years",
    "throughput_mib_s",
];
/// The number that weighs a device.
const WRITTEN: &str = "workload.written_blocks";
/// The shares of devices at most as great as a quantile, and the names of their columns.
const QUANTILES: [(f64, &str); 7] =
    [(0.0, "min"), (0.05, "p5"), (0.25, "p25"), (0.5, "median"), (0.75, "p75"), (0.95, "p95"), (1.0, "max")];
/// The most lines of a figure.
const MOST_LINES: usize = 8;

/// The values of varied options.
type Cells = Vec<(String, Value)>;

/// A number over the devices of a trace, for one choice of the other options.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The values of the varied options, without the device.
    pub cells: Vec<(String, Value)>,
    /// The column of the number.
    pub number: String,
    /// The values of the devices that have it, ascending.
    pub values: Vec<f64>,
    /// Their mean, weighted by the writes of each device; `None` if nothing was written.
    pub weighted: Option<f64>,
    /// The devices whose runs have warnings.
    pub warned: u64,
    /// The devices of which a run failed.
    pub failed: u64,
}

/// True if several devices of a trace were run.
pub fn is_batch(columns: &[String]) -> bool {
    columns.iter().any(|column| column == DEVICE)
}

/// The distributions over devices; empty unless these are varied.
pub fn distributions(rows: &[SweepRow], columns: &[String]) -> Vec<Distribution> {
    if !is_batch(columns) {
        return Vec::new();
    }
    let mut choices: Vec<(Cells, Vec<Group>)> = Vec::new();
    for group in groups(rows, columns) {
        let cells: Cells = group.cells.iter().filter(|(name, _)| name != DEVICE).cloned().collect();
        match choices.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, devices)) => devices.push(group),
            None => choices.push((cells, vec![group])),
        }
    }
    choices.iter().flat_map(|(cells, devices)| NUMBERS.iter().filter_map(|number| of(cells, devices, number))).collect()
}

fn of(cells: &[(String, Value)], devices: &[Group], number: &str) -> Option<Distribution> {
    let mean = |group: &Group, column: &str| group.means.get(column).map(|mean| mean.mean);
    let found: Vec<(f64, f64)> = devices
        .iter()
        .filter_map(|group| Some((mean(group, number)?, mean(group, WRITTEN).unwrap_or(0.0))))
        .filter(|(value, _)| value.is_finite())
        .collect();
    let mut values: Vec<f64> = found.iter().map(|(value, _)| *value).collect();
    values.sort_by(f64::total_cmp);
    let written: f64 = found.iter().map(|(_, written)| written).sum();
    let weighted = (written > 0.0).then(|| found.iter().map(|(value, written)| value * written).sum::<f64>() / written);
    let count = |is_so: &dyn Fn(&&Group) -> bool| devices.iter().filter(is_so).count() as u64;
    (!values.is_empty()).then(|| Distribution {
        cells: cells.to_vec(),
        number: number.to_string(),
        values,
        weighted,
        warned: count(&|group| group.warned > 0),
        failed: count(&|group| group.failed > 0),
    })
}

impl Distribution {
    /// The least value that at least this share of the devices does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.values.len() as f64).ceil() as usize;
        self.values[rank.clamp(1, self.values.len()) - 1]
    }

    /// The mean over the devices, each of which counts once.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    fn row(&self) -> SweepRow {
        let mut row: SweepRow = self.cells.iter().cloned().collect();
        row.insert("number".to_string(), self.number.as_str().into());
        row.insert("devices".to_string(), (self.values.len() as u64).into());
        row.insert("failed".to_string(), self.failed.into());
        row.insert("warned".to_string(), self.warned.into());
        for (share, name) in QUANTILES {
            row.insert(name.to_string(), self.quantile(share).into());
        }
        row.insert("mean".to_string(), self.mean().into());
        row.insert("weighted".to_string(), self.weighted.map_or(Value::Null, Value::from));
        row
    }

    fn choice(&self, units: &Units) -> String {
        let cells = self.cells.iter().map(|(name, value)| format!("{name}={}", shown(name, value, units)));
        cells.collect::<Vec<_>>().join(", ")
    }
}

/// The rows of a table: the options, the number, how many devices have it, and its quantiles.
pub fn distribution_rows(all: &[Distribution]) -> Vec<SweepRow> {
    all.iter().map(Distribution::row).collect()
}

/// The columns of [`distribution_rows`] in their order.
pub fn distribution_columns(columns: &[String]) -> Vec<String> {
    let varied = columns.iter().filter(|column| *column != DEVICE && *column != "seed").cloned();
    let own = ["number", "devices", "failed", "warned"].into_iter().chain(QUANTILES.map(|(_, name)| name));
    varied.chain(own.chain(["mean", "weighted"]).map(String::from)).collect()
}

/// The head and the cells of a table for people.
pub(super) fn distribution_cells(all: &[Distribution], units: &Units) -> (Vec<String>, Vec<Vec<String>>) {
    let varied = all.first().map_or(&[][..], |one| &one.cells);
    let mut head: Vec<String> = varied.iter().map(|(name, _)| name.clone()).collect();
    head.extend(["over the devices", "devices"].map(String::from));
    head.extend(QUANTILES.map(|(_, name)| name.to_string()));
    head.extend(["mean", "weighted"].map(String::from));
    let row = |one: &Distribution| {
        let number = |value: f64| measured(&one.number, value);
        let mut row: Vec<String> = one.cells.iter().map(|(name, value)| shown(name, value, units)).collect();
        row.extend([title(&one.number), one.values.len().to_string()]);
        row.extend(QUANTILES.map(|(share, _)| number(one.quantile(share))));
        row.extend([number(one.mean()), one.weighted.map_or(NONE.to_string(), number)]);
        row
    };
    (head, all.iter().map(row).collect())
}

/// The distributions as text for a terminal; empty without any.
pub fn distribution_table(all: &[Distribution], units: &Units) -> String {
    if all.is_empty() {
        return String::new();
    }
    let (head, rows) = distribution_cells(all, units);
    let lines: Vec<Vec<String>> =
        std::iter::once(head).chain(rows).map(|row| row.iter().map(|cell| visible(cell)).collect()).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width)).collect();
        text += &format!("{}\n", cells.join("  "));
    }
    text + &note(all) + "\n"
}

/// A line on the columns, and on devices that void them.
pub(super) fn note(all: &[Distribution]) -> String {
    let most = |of: fn(&Distribution) -> u64| all.iter().map(of).max().unwrap_or(0);
    let mut note = "each device counts once; weighted: by what it wrote".to_string();
    if most(|one| one.failed) > 0 {
        note += &format!("; of {} devices a run failed", most(|one| one.failed));
    }
    if most(|one| one.warned) > 0 {
        note += &format!("; the runs of {} have warnings, which may void their numbers", most(|one| one.warned));
    }
    note
}

/// The cumulative share of devices over a number, a line for each choice of the other options; `None` if no run has it.
pub fn distribution_chart(all: &[Distribution], number: &str, units: &Units) -> Option<Chart> {
    let of_number: Vec<&Distribution> = all.iter().filter(|one| one.number == number).take(MOST_LINES).collect();
    if of_number.is_empty() {
        return None;
    }
    let axis = Axis::linear("share of the devices, %").labelled(|share| format!("{:.0}", share * 100.0));
    let mut panel = Panel::new("", measured_axis(number), axis);
    for (style, one) in of_number.into_iter().enumerate() {
        let all = one.values.len() as f64;
        let mut points = vec![(one.values[0], 0.0)];
        points.extend(one.values.iter().enumerate().map(|(at, value)| (*value, (at + 1) as f64 / all)));
        panel.series.push(Series::line(style, "", &one.choice(units), points));
    }
    Some(Chart::new("devices", &format!("{} of the devices of the trace", title(number)), vec![panel]))
}

/// The number that a figure of distributions shows if none is chosen.
pub(super) fn default_number(all: &[Distribution]) -> Option<&str> {
    NUMBERS.into_iter().find(|number| all.iter().any(|one| one.number == *number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows() -> Vec<SweepRow> {
        let mut rows = Vec::new();
        for (device, wa, written) in [(0, 1.0, 100), (1, 3.0, 300), (2, 2.0, 100), (3, 9.0, 0)] {
            for (seed, victim, more) in [(1, "greedy", 0.0), (2, "greedy", 0.2), (1, "fifo", 1.0), (2, "fifo", 1.2)] {
                let row = json!({
                    "device": device, "page.victim": victim, "seed": seed, "write_amplification.total": wa + more,
                    "workload.written_blocks": written,
                });
                rows.push(row.as_object().unwrap().clone());
            }
        }
        rows
    }

    fn columns() -> Vec<String> {
        ["page.victim", "device", "seed"].map(String::from).to_vec()
    }

    #[test]
    fn a_number_is_distributed_over_devices_for_each_choice_of_the_others() {
        let all = distributions(&rows(), &columns());
        assert_eq!(all.len(), 2);
        let greedy = &all[0];
        assert_eq!(greedy.cells, [("page.victim".to_string(), json!("greedy"))]);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        // Means over two seeds: 1.1, 2.1, 3.1, 9.1.
        near(greedy.quantile(0.0), 1.1);
        near(greedy.quantile(0.5), 2.1);
        near(greedy.quantile(0.75), 3.1);
        near(greedy.quantile(0.95), 9.1);
        near(greedy.mean(), (1.1 + 2.1 + 3.1 + 9.1) / 4.0);
        near(greedy.weighted.unwrap(), (1.1 * 100.0 + 3.1 * 300.0 + 2.1 * 100.0) / 500.0);
        near(all[1].quantile(0.0), 2.1);
    }

    #[test]
    fn a_table_a_file_and_a_chart_have_them() {
        let all = distributions(&rows(), &columns());
        let text = distribution_table(&all, &Units::new());
        assert!(text.lines().next().unwrap().contains("p25") && text.contains("write amplification, total"), "{text}");
        assert!(text.contains("each device counts once"), "{text}");
        let csv = super::super::csv(&distribution_rows(&all), &distribution_columns(&columns()));
        assert!(
            csv.starts_with("page.victim,number,devices,failed,warned,min,p5,p25,median,p75,p95,max,mean,weighted\n"),
            "{csv}"
        );
        let chart = distribution_chart(&all, "write_amplification.total", &Units::new()).unwrap();
        assert_eq!(chart.panels[0].series.len(), 2);
        assert!(chart.csv().contains("page.victim=fifo"));
        assert!(distribution_chart(&all, "none", &Units::new()).is_none());
    }

    #[test]
    fn a_sweep_of_one_device_has_no_distribution() {
        assert!(distributions(&rows(), &["page.victim".to_string(), "seed".to_string()]).is_empty());
        assert_eq!(distribution_table(&[], &Units::new()), "");
    }
}
