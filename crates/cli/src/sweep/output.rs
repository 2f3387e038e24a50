//! The results of a sweep: tables, means and a page.

use crate::failure::Failure;
use flashpath::report::sweep::{
    Figure, Group, SweepRow, Units, csv, distribution_columns, distribution_rows, distribution_table, distributions,
    groups, is_batch, means, page, parquet, table, warning_lines,
};
use flashpath::report::{check_writable, is_special, write_file};
use flashpath::units::human_size;
use flashpath_sweep::{ERROR, Limits, Plan, Point, has_failed};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The name of a file that stands for standard output.
const STANDARD_OUTPUT: &str = "-";
/// The ending of the journal beside a table.
const JOURNAL: &str = "journal";
/// The number that short runs lack.
const STEADY: &str = "write_amplification.steady";
/// The most failed runs that are named.
const NAMED: usize = 3;

/// The files to write, and the figure.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Results")]
pub struct Outputs {
    /// Write a row for each run, with a column for each varied option and each number of its result; - is standard output
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// Write the same table as a Parquet file
    #[arg(long, value_name = "FILE.parquet")]
    pub parquet: Option<PathBuf>,
    /// Write a row for each choice of options, with the means over the seeds and their 95 % confidence intervals
    #[arg(long, value_name = "FILE.csv")]
    pub means: Option<PathBuf>,
    /// Write a self-contained HTML page with a figure and the means
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// With several devices of a trace (--device all): write the distribution of the main numbers over the devices, as a table
    /// or, with the ending .json, as JSON; - is standard output
    #[arg(long, value_name = "FILE.csv|FILE.json")]
    pub distribution: Option<PathBuf>,
    /// The column of the figure's horizontal axis, such as page.op [default: the first varied option]
    #[arg(long, value_name = "COLUMN")]
    pub x: Option<String>,
    /// The column of the figure's vertical axis [default: write_amplification.steady, or
    /// write_amplification.total if no run has that]
    #[arg(long, value_name = "COLUMN")]
    pub y: Option<String>,
    /// The column of which each value is a line of the figure, such as page.victim [default: the second varied option]
    #[arg(long, value_name = "COLUMN")]
    pub by: Option<String>,
    /// The title of the page [default: the workload, and the number of runs]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The title of the horizontal axis, in place of the column and its unit
    #[arg(long, value_name = "TEXT")]
    pub x_title: Option<String>,
    /// The title of the vertical axis
    #[arg(long, value_name = "TEXT")]
    pub y_title: Option<String>,
    /// The file of the runs that are done, from which the same command goes on [default: beside the first table, with
    /// .journal behind its name]
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

/// The results of a sweep.
pub struct Results<'a> {
    /// The title of the page.
    pub title: &'a str,
    /// A row for each run.
    pub rows: Vec<SweepRow>,
    /// The columns of the varied options; the last is the seed.
    pub columns: &'a [String],
    /// Their units.
    pub units: &'a Units,
    /// The answer to a question that was asked, in sentences.
    pub answer: Vec<String>,
}

/// The place of the journal.
pub struct JournalPlace {
    /// The file.
    pub path: PathBuf,
    /// The temporary directory in which it is, if it is kept nowhere.
    pub temporary: Option<tempfile::TempDir>,
}

fn is_file(file: &Path) -> bool {
    file != Path::new(STANDARD_OUTPUT)
}

impl Outputs {
    /// These, and those of a file where none is given.
    pub fn completed(self, file: Outputs) -> Outputs {
        Outputs {
            csv: self.csv.or(file.csv),
            parquet: self.parquet.or(file.parquet),
            means: self.means.or(file.means),
            report: self.report.or(file.report),
            distribution: self.distribution.or(file.distribution),
            x: self.x.or(file.x),
            y: self.y.or(file.y),
            by: self.by.or(file.by),
            title: self.title.or(file.title),
            x_title: self.x_title.or(file.x_title),
            y_title: self.y_title.or(file.y_title),
            journal: self.journal.or(file.journal),
        }
    }

    /// The first option that has a meaning in a page alone.
    fn of_the_page(&self) -> Option<&'static str> {
        let titles = [("--title", &self.title), ("--x-title", &self.x_title), ("--y-title", &self.y_title)];
        titles.into_iter().find(|(_, text)| text.is_some()).map(|(option, _)| option)
    }

    fn files(&self) -> Vec<(&'static str, &Path)> {
        let all = [
            ("--csv", &self.csv),
            ("--parquet", &self.parquet),
            ("--means", &self.means),
            ("--distribution", &self.distribution),
            ("--report", &self.report),
        ];
        all.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?))).collect()
    }

    /// Checks the files and the figure's columns before runs that may take hours.
    pub fn check(&self, plan: &Plan) -> Result<(), Failure> {
        for (option, column) in [("--x", &self.x), ("--by", &self.by)] {
            let Some(column) = column else { continue };
            if !plan.columns().contains(column) {
                let help = format!("there are: {}", plan.columns().join(", "));
                return Err(Failure::input(format!("{option} {column} is not a varied option"), Some(help)));
            }
        }
        if self.distribution.is_some() && !is_batch(plan.columns()) {
            let help = "add --device all, or leave --distribution out".to_string();
            return Err(Failure::input(
                "a distribution is over devices of a trace, and they are not varied",
                Some(help),
            ));
        }
        if let (Some(option), None) = (self.of_the_page(), &self.report) {
            let help = "add --report FILE.html, or leave it out".to_string();
            return Err(Failure::input(format!("{option} is of a page, and there is none"), Some(help)));
        }
        if self.x.is_some() && self.x == self.by {
            let help = "leave --by out, or name another column".to_string();
            return Err(Failure::input("--x and --by name the same column", Some(help)));
        }
        let traces: Vec<&Path> = plan.works().iter().filter_map(|work| Some(work.trace()?.0)).collect();
        self.check_files(&traces)
    }

    /// Checks the files; `traces` are those that are read.
    pub fn check_files(&self, traces: &[&Path]) -> Result<(), Failure> {
        let mut files = self.files();
        files.extend(self.journal.as_deref().map(|journal| ("--journal", journal)));
        for (number, (option, file)) in files.iter().enumerate() {
            if !is_file(file) && !["--csv", "--means", "--distribution"].contains(option) {
                let help = "give it the name of a file".to_string();
                return Err(Failure::input(format!("{option} cannot be written to standard output"), Some(help)));
            }
            let is_same = |other: &Path| other == *file && !is_special(file) || crate::is_same_file(other, file);
            if let Some((earlier, _)) = files[..number].iter().find(|(_, other)| is_same(other)) {
                let message = format!("{earlier} and {option} both write {}", file.display());
                return Err(Failure::input(message, Some("choose a name for each".to_string())));
            }
            if traces.iter().any(|trace| crate::is_same_file(trace, file)) {
                let message = format!("{} is the trace: the results would replace it", file.display());
                return Err(Failure::input(message, Some("choose another name for the results".to_string())));
            }
            if is_file(file) && *option != "--journal" {
                check_writable(file)?;
            }
        }
        Ok(())
    }

    /// The place of the journal.
    pub fn journal(&self) -> Result<JournalPlace, Failure> {
        if let Some(path) = &self.journal {
            return Ok(JournalPlace { path: path.clone(), temporary: None });
        }
        if let Some((_, file)) = self.files().into_iter().find(|(_, file)| is_file(file) && !is_special(file)) {
            let mut path = file.as_os_str().to_owned();
            path.push(format!(".{JOURNAL}"));
            return Ok(JournalPlace { path: path.into(), temporary: None });
        }
        let directory = tempfile::tempdir().map_err(|error| Failure::write("a temporary directory", error))?;
        Ok(JournalPlace { path: directory.path().join(JOURNAL), temporary: Some(directory) })
    }

    /// Writes the files, and prints the means.
    pub fn write(&self, results: &Results<'_>, quiet: bool) -> Result<(), Failure> {
        let Results { title, rows, columns, units, answer } = results;
        let groups = groups(rows, columns);
        self.write_tables(results, &groups)?;
        let figure = Figure::choose(columns, &groups, [&self.x, &self.y, &self.by].map(|name| name.as_deref()));
        let figure =
            figure.map(|figure| figure.with_units(units).with_titles(self.x_title.clone(), self.y_title.clone()));
        if let Some(file) = &self.report {
            let title = self.title.clone().unwrap_or_else(|| format!("{title}: {} runs", rows.len()));
            write_file(file, page(&title, answer, rows, &groups, &figure, units))?;
            if let Some(figure) = figure.filter(|figure| figure.is_empty(&groups) && !quiet) {
                warn_of_no_number(&figure.y, &groups);
            }
        }
        if !quiet {
            for warning in warning_lines(&groups, rows, units) {
                crate::print_message(&format!("warning: {warning}"));
            }
            for (_, file) in self.files().into_iter().filter(|(_, file)| is_file(file)) {
                crate::print_message(&format!("wrote {}", file.display()));
            }
        }
        Ok(())
    }

    fn write_tables(&self, results: &Results<'_>, groups: &[Group]) -> Result<(), Failure> {
        let Results { rows, columns, units, answer, .. } = results;
        let mut means_first = columns.to_vec();
        means_first.extend(["runs", "failed", "warned"].map(String::from));
        let mut is_printed = false;
        let over_devices = distributions(rows, columns);
        let is_json = |file: &Path| file.extension().is_some_and(|extension| extension == "json");
        let distribution = || match self.distribution.as_deref().is_some_and(is_json) {
            true => format!(
                "{:#}\n",
                serde_json::Value::from(
                    distribution_rows(&over_devices).into_iter().map(serde_json::Value::Object).collect::<Vec<_>>()
                )
            ),
            false => csv(&distribution_rows(&over_devices), &distribution_columns(columns)),
        };
        let forms: [(&Option<PathBuf>, &dyn Fn() -> String); 3] = [
            (&self.csv, &|| csv(rows, columns)),
            (&self.means, &|| csv(&means(groups), &means_first)),
            (&self.distribution, &distribution),
        ];
        for (file, text) in forms {
            match file.as_deref() {
                Some(file) if is_file(file) => write_file(file, text())?,
                Some(_) => {
                    crate::print(&text())?;
                    is_printed = true;
                }
                None => {}
            }
        }
        if let Some(file) = &self.parquet {
            write_file(file, parquet(rows, columns, &file.display().to_string())?)?;
        }
        if is_printed {
            return Ok(());
        }
        let terminal = std::io::stdout().is_terminal();
        let width = if terminal { usize::from(console::Term::stdout().size().1) } else { 120 };
        let answer: String = answer.iter().map(|sentence| format!("{sentence}\n")).collect();
        if !over_devices.is_empty() {
            return crate::print(&(answer + &distribution_table(&over_devices, units)));
        }
        crate::print(&(answer + &table(groups, rows, self.y.as_deref(), units, width)))
    }
}

/// Warns of a figure without a point.
fn warn_of_no_number(column: &str, groups: &[Group]) {
    let numbers = || groups.iter().flat_map(|group| group.means.keys()).map(String::as_str);
    let advice = match flashpath::expression::nearest(column, numbers()) {
        _ if column == STEADY => "; longer runs have a steady state".to_string(),
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    crate::print_message(&format!("warning: the figure is empty, as no run has the number {column}{advice}"));
}

/// Names the first failed runs; a failure if there is one.
pub fn report_failures(rows: &[SweepRow], described: impl Fn(u64) -> String) -> Result<(), Failure> {
    let failed: Vec<(u64, &SweepRow)> = (0..).zip(rows).filter(|(_, row)| has_failed(row)).collect();
    for (number, row) in failed.iter().take(NAMED) {
        let why = row.get(ERROR).and_then(|error| error.as_str()).unwrap_or_default();
        crate::print_message(&format!("error: {}: {why}", described(*number)));
    }
    if failed.is_empty() {
        return Ok(());
    }
    let more = if failed.len() > NAMED { "; the column error of the table has all reasons" } else { "" };
    crate::print_message(&format!("{} of {} runs failed{more}", failed.len(), rows.len()));
    Err(Failure::Quiet(1))
}

/// Prints the number of runs, and the memory of the largest.
pub fn print_plan(plan: &Plan, limits: &Limits) -> Result<(), Failure> {
    let most = (0..plan.runs()).map(|number| plan.point(number)).max_by_key(Point::memory_bytes);
    let most = most.map_or(0, |point| point.memory_bytes());
    let beside = (limits.memory_bytes / most.max(1)).min(limits.jobs as u64);
    let mut text = format!(
        "{} runs; varied: {}\nthe largest takes about {}: {beside} of its size run beside each other in {}\n",
        plan.runs(),
        plan.columns().join(", "),
        human_size(most as f64),
        human_size(limits.memory_bytes as f64)
    );
    for number in [0, plan.runs() - 1].into_iter().take(plan.runs().min(2) as usize) {
        text += &format!("run {}: {}\n", number + 1, plan.point(number).described());
    }
    crate::print(&text)
}
