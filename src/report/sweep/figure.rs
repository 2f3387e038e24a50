//! The figure of a sweep: one number over one varied option, a line for each value of another.

use super::distribution::DEVICE;
use super::means::Group;
use super::unit::{Units, measured_axis, option_axis, shown, title};
use super::warned::MARK;
use crate::report::chart::{Axis, Chart, Marks, Panel, Series};
use serde_json::Value;

/// The number of the vertical axis if none is chosen, and what takes its place if no run has it.
const DEFAULT_Y: [&str; 3] = ["write_amplification.steady", "write_amplification.total", "throughput_mib_s"];

/// The most panels, one for each choice of the options that are neither axis nor line.
const MOST_PANELS: usize = 12;

/// The ratio of the greatest to the least value from which on an axis is logarithmic.
const LOG_FROM: f64 = 16.0;

/// The axes of a figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The column of the horizontal axis.
    pub x: String,
    /// The column of the vertical axis.
    pub y: String,
    /// The column of which each value is a line.
    pub by: Option<String>,
    /// The units of the varied options.
    pub units: Units,
    /// True if the column of the vertical axis was asked for.
    pub asks_y: bool,
    /// The titles of the axes, in place of the names of their columns.
    pub titles: AxisTitles,
}

/// The titles of the axes that are given.
#[derive(Clone, Debug, Default)]
pub struct AxisTitles {
    /// Of the horizontal axis.
    pub x: Option<String>,
    /// Of the vertical axis.
    pub y: Option<String>,
}

impl Figure {
    /// The figure with these columns `[x, y, by]`, or those that fit the varied options; `None` if nothing but the seed is
    /// varied.
    pub fn choose(columns: &[String], groups: &[Group], [x, y, by]: [Option<&str>; 3]) -> Option<Figure> {
        // The devices of a trace have a figure of their own.
        let varied = || columns.iter().map(String::as_str).filter(|column| *column != "seed" && *column != DEVICE);
        let is_number = |column: &&str| groups.iter().all(|group| group.cell(column).is_some_and(Value::is_number));
        let others = || varied().filter(|column| Some(*column) != by);
        let x = x.or_else(|| others().find(is_number)).or_else(|| others().next())?;
        let asks_y = y.is_some();
        let has = |column: &&&str| groups.iter().any(|group| group.means.contains_key(**column));
        let y = y.unwrap_or_else(|| DEFAULT_Y.iter().find(has).unwrap_or(&DEFAULT_Y[0]));
        let by = by.or_else(|| varied().find(|column| *column != x));
        let (x, y, by) = (x.to_string(), y.to_string(), by.map(str::to_string));
        Some(Figure { x, y, by, asks_y, units: Units::new(), titles: AxisTitles::default() })
    }

    /// The figure with these units of the varied options.
    pub fn with_units(self, units: &Units) -> Figure {
        Figure { units: units.clone(), ..self }
    }

    /// The figure with these titles of its axes, where they are given.
    pub fn with_titles(self, x: Option<String>, y: Option<String>) -> Figure {
        Figure { titles: AxisTitles { x, y }, ..self }
    }

    /// The title: the number over the option.
    pub fn title(&self) -> String {
        let AxisTitles { x, y } = &self.titles;
        let y = y.clone().unwrap_or_else(|| title(&self.y));
        format!("{y} over {}", x.as_ref().unwrap_or(&self.x))
    }

    fn x_axis(&self, axis: Axis) -> Axis {
        Axis { title: self.titles.x.clone().unwrap_or(axis.title), ..axis }
    }

    /// A value of a column, as it is written in a path.
    fn text(&self, column: &str, value: &Value) -> String {
        shown(column, value, &self.units)
    }

    /// True if no run has the number of the vertical axis: the name is wrong, or the runs are too short for it.
    pub fn is_empty(&self, groups: &[Group]) -> bool {
        groups.iter().all(|group| !group.means.contains_key(&self.y))
    }

    /// The chart. Values of the other varied options have a panel each.
    pub fn chart(&self, groups: &[Group]) -> Chart {
        let mut panels: Vec<(String, Vec<&Group>)> = Vec::new();
        for group in groups {
            let title = self.panel_of(group);
            match panels.iter_mut().find(|(other, _)| *other == title) {
                Some((_, groups)) => groups.push(group),
                None => panels.push((title, vec![group])),
            }
        }
        let lines = distinct(groups.iter().filter_map(|group| self.line_of(group)));
        let panels = panels.iter().take(MOST_PANELS).map(|(title, groups)| self.panel(title, groups, &lines));
        Chart::new("sweep", &self.title(), panels.collect())
    }

    /// The number of panels that are left out.
    pub fn left_out(&self, groups: &[Group]) -> usize {
        distinct(groups.iter().map(|group| self.panel_of(group))).len().saturating_sub(MOST_PANELS)
    }

    /// The values of the options that are neither axis nor line.
    fn panel_of(&self, group: &Group) -> String {
        let is_other = |name: &&(String, Value)| name.0 != self.x && Some(&name.0) != self.by.as_ref();
        let cells = group.cells.iter().filter(is_other);
        cells.map(|(name, value)| format!("{name}={}", self.text(name, value))).collect::<Vec<_>>().join(", ")
    }

    /// The name of a group's line; `None` if its path has no such option.
    fn line_of(&self, group: &Group) -> Option<String> {
        match &self.by {
            None => Some(String::new()),
            Some(by) => group.cell(by).filter(|value| !value.is_null()).map(|value| self.text(by, value)),
        }
    }

    fn panel(&self, title: &str, groups: &[&Group], lines: &[String]) -> Panel {
        let xs: Vec<&Value> = groups.iter().filter_map(|group| group.cell(&self.x)).collect();
        let by = self.by.as_ref().map_or(String::new(), |by| format!("{by}="));
        let of_line = |line: &String| -> Vec<&Group> {
            groups.iter().filter(|group| self.line_of(group).as_ref() == Some(line)).copied().collect()
        };
        let y = measured_axis(&self.y);
        let y = Axis { title: self.titles.y.clone().unwrap_or(y.title), ..y };
        let text = |value: &Value| self.text(&self.x, value);
        if xs.is_empty() || !xs.iter().all(|x| x.is_number()) {
            let names = distinct(xs.into_iter().map(&text));
            // Bars have no room for a mark: their names have it.
            let is_warned = |name: &String| {
                let mut of = groups.iter().filter(|group| group.cell(&self.x).map(&text).as_ref() == Some(name));
                of.any(|group| group.warned > 0)
            };
            let shown = names.iter().map(|name| if is_warned(name) { format!("{name}{MARK}") } else { name.clone() });
            let mut panel = Panel::new(title, self.x_axis(Axis::names(&self.x, shown.collect())), y);
            for (style, line) in lines.iter().enumerate() {
                let group = |name: &String| {
                    of_line(line).into_iter().find(|group| group.cell(&self.x).map(&text).as_ref() == Some(name))
                };
                let values = names.iter().map(|name| Some(group(name)?.means.get(&self.y)?.mean)).collect();
                panel.series.push(Series::bars(style, &format!("{by}{line}"), values));
            }
            return panel;
        }
        let numbers: Vec<f64> = xs.iter().filter_map(|x| x.as_f64()).collect();
        let (low, high) = numbers.iter().fold((f64::MAX, 0.0f64), |(low, high), x| (low.min(*x), high.max(*x)));
        let x = self.x_axis(option_axis(&self.x, &self.units, low > 0.0 && high / low >= LOG_FROM));
        let mut panel = Panel::new(title, x, y);
        for (style, line) in lines.iter().enumerate() {
            let point = |group: &Group| Some((group.cell(&self.x)?.as_f64()?, *group.means.get(&self.y)?));
            let mut points: Vec<_> = of_line(line).into_iter().filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let name = format!("{by}{line}");
            panel.series.push(Series::line(style, "", &name, points.iter().map(|(x, mean)| (*x, mean.mean)).collect()));
            let interval =
                |(x, mean): &(f64, super::Mean)| mean.half_width.map(|half| (*x, (mean.mean - half, mean.mean + half)));
            let intervals: Vec<_> = points.iter().filter_map(interval).collect();
            if !intervals.is_empty() {
                let marks = Marks::Intervals(intervals);
                panel.series.push(Series { style, tag: String::new(), name: name.clone(), marks });
            }
            let warned = of_line(line).into_iter().filter(|group| group.warned > 0).filter_map(point);
            let warned: Vec<(f64, f64)> = warned.map(|(x, mean)| (x, mean.mean)).collect();
            if !warned.is_empty() {
                panel.series.push(Series { style, tag: String::new(), name, marks: Marks::Noted(warned) });
            }
        }
        panel
    }
}

/// The texts without repetitions, in their order.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sweep::{SweepRow, groups};
    use serde_json::json;

    fn columns() -> Vec<String> {
        ["page.op", "page.victim", "nand.size", "seed"].map(String::from).to_vec()
    }

    fn rows() -> Vec<SweepRow> {
        let mut rows = Vec::new();
        for op in [0.28, 0.07] {
            for victim in ["greedy", "fifo"] {
                for size in [1, 2] {
                    for seed in [1, 2] {
                        let amplification = 1.0 / op + f64::from(seed) / 10.0;
                        let row = json!({ "page.op": op, "page.victim": victim, "nand.size": size, "seed": seed, "wa": amplification });
                        rows.push(row.as_object().unwrap().clone());
                    }
                }
            }
        }
        rows
    }

    #[test]
    fn the_axes_are_those_asked_for_or_the_first_varied_options() {
        let groups = groups(&rows(), &columns());
        let axes = |asked| Figure::choose(&columns(), &groups, asked).map(|figure| (figure.x, figure.by));
        let both = |x: &str, by: &str| Some((x.to_string(), Some(by.to_string())));
        assert_eq!(axes([None, None, None]), both("page.op", "page.victim"));
        assert_eq!(axes([Some("page.victim"), None, None]), both("page.victim", "page.op"));
        assert_eq!(axes([None, None, Some("page.op")]), both("nand.size", "page.op"));
        assert!(Figure::choose(&["seed".to_string()], &groups, [None; 3]).is_none());
    }

    #[test]
    fn a_line_is_a_value_and_other_options_have_panels() {
        let groups = groups(&rows(), &columns());
        let figure = Figure::choose(&columns(), &groups, [Some("page.op"), Some("wa"), Some("page.victim")]).unwrap();
        let chart = figure.chart(&groups);
        let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["nand.size=1", "nand.size=2"]);
        let Marks::Line { points, .. } = &chart.panels[0].series[0].marks else { panic!("a line") };
        assert!(points[0].0 == 0.07 && (points[0].1 - (1.0 / 0.07 + 0.15)).abs() < 1e-9, "{points:?}");
        let Marks::Intervals(intervals) = &chart.panels[0].series[1].marks else { panic!("intervals") };
        assert!(intervals[0].1.0 < points[0].1 && points[0].1 < intervals[0].1.1);
        assert!(chart.csv().contains("page.victim=greedy"));
        let svg = chart.svg(crate::report::chart::Width::Wide);
        // Two panels, two lines of two points, each with an interval.
        assert_eq!(svg.matches(" to ").count(), 8, "{svg}");
        assert_eq!(figure.left_out(&groups), 0);
        let bars = Figure { x: "page.victim".to_string(), by: None, ..figure };
        assert_eq!(bars.chart(&groups).panels.len(), 4);
    }
}
