//! The plan of a sweep: all of its runs, read and checked before the first one begins.
//!
//! A run is a workload, a path, options and a seed. The plan holds each list once; run `n` is found by division, the seed
//! first to change.

use crate::cells::{Cell, MOST_RUNS, add_column, cells_of, check_count};
use crate::error::SweepError;
use crate::options::{COMMAND, Chosen, SEED, cell, check};
use crate::template::{Axis, Template};
use crate::traces::Traces;
use crate::values::Value as OptionValue;
use crate::work::{Work, WorkloadRequest, read_workloads};
use flashpath::expression::{Capacity, ExpressionError, Kind, Values};
use flashpath::report::sweep::{DEVICE, Unit, Units};
use flashpath::run::{
    Age, Job, Logging, NoMachine, Outcome, Path, Progress, RunError, STATIONS, Station, memory_bytes, run,
};
use flashpath::task::CpuTable;
use flashpath::workload::trace::{Columns, Format, Stage, TraceOptions, scan};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The column of the path's template, if there are several.
const ON: &str = "on";
/// The word for all devices of a trace.
const ALL: &str = "all";
/// The column of the workload's template, if there are several.
const WORKLOAD: &str = "workload";

/// The description of a sweep, as the user gives it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The workloads, each with several values or not.
    pub workloads: Vec<WorkloadRequest>,
    /// The paths, each with its short name, if it has one.
    pub on: Vec<(Option<String>, String)>,
    /// The options of the command, by name, each with several values or not.
    pub options: Vec<(String, String)>,
    /// The format of traces; `None` to recognise it.
    pub format: Option<&'static Format>,
    /// The columns of a text; `None` for a known format.
    pub columns: Option<Columns>,
    /// The stage of requests in traces.
    pub stage: Option<Stage>,
    /// The CPU time of file workloads; `None`: the table in the program.
    pub cpu: Option<CpuTable>,
    /// The length of windows at recorded times, in nanoseconds, for the result of one run; `None`: of equal host writes.
    pub window_ns: Option<u64>,
    /// Bytes a day, for which results tell the life of the drive.
    pub rate_per_day: Option<u64>,
    /// The age of drives whose flash has errors.
    pub age: Option<Age>,
    /// True to tell what the latencies at each percentile are made of.
    pub tells_waits: bool,
    /// The stations of paths; `None`: those of the library.
    pub stations: Option<&'static [Station]>,
}

/// The units of the options with several values, by column.
///
/// Fails if a path or a workload is no expression.
pub fn units(request: &Request) -> Result<Units, SweepError> {
    let kinds: Vec<&'static Kind> = request.stations.unwrap_or(STATIONS).iter().map(|station| station.kind).collect();
    let mut axes: Vec<Axis> = Vec::new();
    for (_, path) in &request.on {
        axes.extend(Template::of_path(path, &kinds)?.axes);
    }
    for workload in &request.workloads {
        axes.extend(workload.axes()?);
    }
    for (name, text) in &request.options {
        if let Some(option) = COMMAND.options.iter().find(|option| option.name == name).filter(|_| text != ALL) {
            axes.extend(Template::of_option(option, text)?.axes);
        }
    }
    Ok(axes.into_iter().filter_map(|axis| Some((axis.name.clone(), unit_of(&axis)?))).collect())
}

/// The unit of an option's cells.
fn unit_of(axis: &Axis) -> Option<Unit> {
    match axis.takes? {
        Values::Share(..) => Some(Unit::Share),
        Values::Size(..) => Some(Unit::Bytes),
        Values::Duration(..) => Some(Unit::Nanoseconds),
        Values::Capacity(..) => {
            let is_size = |value: &OptionValue| matches!(Capacity::parse(&value.text), Some(Capacity::Bytes(_)));
            let sizes = axis.values.iter().filter(|value| is_size(value)).count();
            match sizes {
                0 => Some(Unit::Share),
                all if all == axis.values.len() => Some(Unit::Bytes),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The number of runs that a description may have.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    /// One: it may have files, as nothing runs beside it.
    One,
    /// Any.
    Any,
}

/// A path of the plan.
pub struct PlannedPath {
    /// The path.
    pub path: Path,
    /// The values of its varied options.
    pub cells: Vec<Cell>,
}

/// Options of the plan, except the seed.
pub struct PlannedOptions {
    /// The options.
    pub chosen: Chosen,
    /// The values of those that are varied.
    pub cells: Vec<Cell>,
}

/// A sweep that was read and checked.
pub struct Plan {
    works: Vec<Work>,
    paths: Vec<PlannedPath>,
    options: Vec<PlannedOptions>,
    seeds: Vec<u64>,
    columns: Vec<String>,
    /// The options for reading traces.
    reading: TraceOptions,
}

/// One run of a plan.
#[derive(Clone, Copy)]
pub struct Point<'p> {
    /// Its number, from 0.
    pub number: u64,
    /// The workload.
    pub work: &'p Work,
    /// The path.
    pub path: &'p PlannedPath,
    /// The options.
    pub options: &'p PlannedOptions,
    /// The seed.
    pub seed: u64,
}

impl Plan {
    /// Reads a description, and checks every run of it.
    ///
    /// Fails if a station, a workload or the run refuses a value; the error points at it.
    pub fn read(request: &Request) -> Result<Plan, SweepError> {
        Plan::read_of(request, Number::Any)
    }

    /// Reads the description of one run, which may have files: nothing runs beside it.
    ///
    /// Fails as [`read`](Plan::read) does, and if an option has several values.
    pub fn read_one(request: &Request) -> Result<Plan, SweepError> {
        let plan = Plan::read_of(request, Number::One)?;
        match plan.runs() {
            1 => Ok(plan),
            runs => {
                let help = "give each option one value, or make a sweep of it";
                Err(SweepError::input(format!("these are {runs} runs, and one is asked for"), help))
            }
        }
    }

    fn read_of(request: &Request, number: Number) -> Result<Plan, SweepError> {
        if request.on.is_empty() {
            let help = "add --on PATH, such as --on page:op=7%:14%/nand:size=1G";
            return Err(SweepError::input("the sweep has no path: --on is not given", help));
        }
        if request.workloads.is_empty() {
            return Err(SweepError::input("the sweep has no workload", "give one, such as uniform:writes=6x"));
        }
        let expanded;
        let request = match all_devices(request)? {
            Some(with_devices) => {
                expanded = with_devices;
                &expanded
            }
            None => request,
        };
        let mut columns = Vec::new();
        let works = read_workloads(&request.workloads, WORKLOAD, &mut columns)?;
        let paths = read_paths(request, number, &mut columns)?;
        let (options, seeds) = read_options(request, &mut columns)?;
        let Request { format, stage, .. } = *request;
        let reading = TraceOptions { format, stage, columns: request.columns.clone(), ..TraceOptions::default() };
        let plan = Plan { works, paths, options, seeds, columns, reading };
        let sizes = [plan.works.len(), plan.paths.len(), plan.options.len(), plan.seeds.len()];
        let runs = sizes.iter().fold(1u64, |runs, size| runs.saturating_mul(*size as u64));
        if runs > MOST_RUNS {
            let [works, paths, options, seeds] = sizes;
            let message = format!(
                "the sweep has {runs} runs ({works} workloads, {paths} paths, {options} choices of options, {seeds} seeds), and at most {MOST_RUNS} are possible"
            );
            return Err(SweepError::input(message, "take fewer values, or several sweeps"));
        }
        plan.check()?;
        Ok(plan)
    }

    /// Checks that every run fits its place.
    fn check(&self) -> Result<(), SweepError> {
        for work in &self.works {
            for options in &self.options {
                work.check_options(&options.chosen, &self.reading)?;
                for path in &self.paths {
                    let point = Point { number: 0, work, path, options, seed: self.seeds[0] };
                    let error = |error| SweepError::Run { error: Box::new(error), run: point.described() };
                    point.job(None).and_then(|job| job.check()).map_err(error)?;
                }
            }
        }
        Ok(())
    }

    /// The number of runs.
    pub fn runs(&self) -> u64 {
        (self.works.len() * self.paths.len() * self.options.len() * self.seeds.len()) as u64
    }

    /// Run `number`, which is below [`runs`](Plan::runs).
    pub fn point(&self, number: u64) -> Point<'_> {
        let mut rest = number as usize;
        let mut next = |size: usize| {
            let at = rest % size;
            rest /= size;
            at
        };
        let seed = self.seeds[next(self.seeds.len())];
        let options = &self.options[next(self.options.len())];
        let path = &self.paths[next(self.paths.len())];
        let work = &self.works[next(self.works.len())];
        Point { number, work, path, options, seed }
    }

    /// The columns of the varied options, in order; the last is `seed`.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Decodes the traces of the plan.
    ///
    /// Fails if one has no operation, or the temporary directory has no room.
    pub fn decode_traces(&self) -> Result<Traces, SweepError> {
        let files: Vec<_> = self.works.iter().filter_map(Work::trace).collect();
        let devices: Vec<_> = self.options.iter().map(|options| options.chosen.device).collect();
        Traces::decode(&files, &devices, &self.reading)
    }

    /// The workloads.
    pub fn works(&self) -> &[Work] {
        &self.works
    }

    /// The SHA-256 of all that the results depend on, in hexadecimal digits. The order of the runs is a part of it.
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        self.works.iter().for_each(|work| add(&work.identity()));
        add("paths");
        self.paths.iter().for_each(|path| add(&format!("{}\n{}", path.path.text, path.path.in_full)));
        add("options");
        for options in &self.options {
            add(&options.chosen.arguments.join(" "));
            add(&format!("{:?}", options.chosen.run.cpu));
        }
        let TraceOptions { format, stage, columns, .. } = &self.reading;
        add(&format!("{:?} {:?}", format.map(Format::name), stage.map(Stage::letter)));
        // Without a description, sweeps of before are continued.
        columns.iter().for_each(|columns| add(&format!("columns {columns}")));
        let rate = self.options.iter().find_map(|options| options.chosen.run.rate_per_day);
        rate.iter().for_each(|rate| add(&format!("rate {rate}")));
        self.seeds.iter().for_each(|seed| add(&seed.to_string()));
        self.columns.iter().for_each(|column| add(column));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<'p> Point<'p> {
    /// The job of the run. Without `traces` it can be checked, and not run on a trace.
    pub(crate) fn job(&self, traces: Option<&'p Traces>) -> Result<Job<'p>, RunError> {
        self.work.job(&self.path.path, &self.options.chosen, self.seed, traces)
    }

    /// Runs it. `watch` is called regularly, and returns false to end the run.
    ///
    /// Fails as [`run`] does.
    pub fn run(&self, traces: &'p Traces, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Outcome, RunError> {
        run(self.job(Some(traces))?, &NoMachine, watch)
    }

    /// An estimate of the bytes of memory that the run takes.
    pub fn memory_bytes(&self) -> u64 {
        memory_bytes(&self.path.path, &self.options.chosen.run)
    }

    /// The cells of the varied options.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.work.cells().iter().chain(&self.path.cells).chain(&self.options.cells)
    }

    /// The command that repeats it.
    pub fn described(&self) -> String {
        let mut words = vec!["flashpath run".to_string(), self.work.name().to_string()];
        words.push(format!("--on {} --seed {}", self.path.path.text, self.seed));
        words.extend(self.options.chosen.arguments.iter().cloned());
        words.join(" ")
    }
}

/// The request with the numbers of all devices of its trace in place of `device=all`; `None` if that is not asked for.
fn all_devices(request: &Request) -> Result<Option<Request>, SweepError> {
    let is_it = |(name, text): &&(String, String)| name == DEVICE && text == ALL;
    if !request.options.iter().any(|option| is_it(&option)) {
        return Ok(None);
    }
    let [WorkloadRequest::Trace { file, name }] = &request.workloads[..] else {
        let help = "give one trace, or the numbers of devices, such as --device 0..3";
        return Err(SweepError::input("--device all is of one trace, whose devices are run", help));
    };
    let options = TraceOptions {
        format: request.format,
        stage: request.stage,
        columns: request.columns.clone(),
        name: name.clone(),
        ..TraceOptions::default()
    };
    let found = scan(file, &options)?;
    let numbers =
        found.devices.iter().enumerate().filter(|(_, device)| device.operations > 0).map(|(number, _)| number);
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if numbers.len() < 2 {
        let help = "leave --device out: the whole trace is that of its device";
        return Err(SweepError::input(format!("{} has one device", found.file), help));
    }
    let mut with_devices = request.clone();
    for (_, text) in with_devices.options.iter_mut().filter(|(name, text)| name == DEVICE && text == ALL) {
        *text = numbers.join(":");
    }
    Ok(Some(with_devices))
}

fn read_paths(request: &Request, number: Number, columns: &mut Vec<String>) -> Result<Vec<PlannedPath>, SweepError> {
    let (on, stations) = (&request.on, request.stations.unwrap_or(STATIONS));
    let kinds: Vec<&'static Kind> = stations.iter().map(|station| station.kind).collect();
    let mut paths: Vec<PlannedPath> = Vec::new();
    if on.len() > 1 {
        add_column(columns, ON);
    }
    for (at, (name, text)) in on.iter().enumerate() {
        let label = name.as_ref().unwrap_or(text);
        if on[..at].iter().any(|(other, text)| other.as_ref().unwrap_or(text) == label) {
            let help = "write each path once, and give each a name of its own";
            return Err(SweepError::input(format!("{label} is written twice"), help));
        }
        let template = Template::of_path(text, &kinds)?;
        check_count(&template)?;
        template.axes.iter().filter(|axis| axis.values.len() > 1).for_each(|axis| add_column(columns, &axis.name));
        for choice in (0..template.count()).map(|number| template.choice(number)) {
            let path = Path::read_with(&template.text_of(&choice), stations)
                .map_err(|error| template.error_in(&choice, error))?;
            check_is_simulated(&path)?;
            if number == Number::Any {
                check_has_no_files(&path)?;
            }
            let mut cells = cells_of(&template, &choice);
            if on.len() > 1 {
                cells.insert(0, (ON.to_string(), Value::from(label.as_str())));
            }
            paths.push(PlannedPath { path, cells });
        }
    }
    Ok(paths)
}

/// No clock of the machine counts.
fn check_is_simulated(path: &Path) -> Result<(), SweepError> {
    match path.kernel() {
        None => Ok(()),
        Some(_) => {
            let help = "use the command flashpath run, one after the other, or put ext/ or sfs/ before the path";
            let message = format!("{} runs on this machine's kernel, and a sweep simulates", path.text);
            Err(SweepError::input(message, help))
        }
    }
}

/// Runs of a sweep are beside each other: they share no image.
fn check_has_no_files(path: &Path) -> Result<(), SweepError> {
    match path.devices.iter().all(|device| device.files().is_empty()) {
        true => Ok(()),
        false => {
            let help = "leave image= and device= out: a sweep's storage is in memory";
            Err(SweepError::input(format!("{} has files, which runs beside each other would share", path.text), help))
        }
    }
}

/// Options with their values, and the cells of those that are varied.
type Given = (Vec<(&'static str, String)>, Vec<Cell>);

/// The choices of options, and the seeds.
fn read_options(request: &Request, columns: &mut Vec<String>) -> Result<(Vec<PlannedOptions>, Vec<u64>), SweepError> {
    let mut templates = Vec::new();
    for option in COMMAND.options {
        let mut given = request.options.iter().filter(|(name, _)| name == option.name);
        let Some((_, text)) = given.next() else { continue };
        if given.next().is_some() {
            let help = format!("write its values as a list, such as --{} A:B", option.name);
            return Err(SweepError::input(format!("--{} is given twice", option.name), help));
        }
        let template = Template::of_option(option, text)?;
        for value in &template.axes[0].values {
            check(option, &value.text).map_err(|error| ExpressionError {
                source_text: template.source.clone(),
                span: value.span.clone(),
                ..error
            })?;
        }
        templates.push((option, template));
    }
    if let Some((name, _)) = request.options.iter().find(|(name, _)| !COMMAND.options.iter().any(|o| o.name == name)) {
        let names: Vec<&str> = COMMAND.options.iter().map(|option| option.name).collect();
        return Err(SweepError::input(
            format!("a sweep has no option {name}"),
            format!("there are: {}", names.join(", ")),
        ));
    }
    let mut seeds = vec![1];
    let mut choices: Vec<Given> = vec![Given::default()];
    for (option, template) in &templates {
        let axis = &template.axes[0];
        if option.name == SEED {
            seeds = axis.values.iter().map(|value| value.text.parse().expect("it was checked")).collect();
            continue;
        }
        if axis.values.len() > 1 {
            add_column(columns, option.name);
        }
        check_count(template)?;
        if choices.len() as u64 * axis.values.len() as u64 > MOST_RUNS {
            return Err(SweepError::input("the options have too many choices of values", "take fewer values"));
        }
        let with = |(given, cells): &Given, text: &str| {
            let (mut given, mut cells) = (given.clone(), cells.clone());
            given.push((option.name, text.to_string()));
            if axis.values.len() > 1 {
                cells.push((option.name.to_string(), cell(Some(option.values), text)));
            }
            (given, cells)
        };
        choices =
            choices.iter().flat_map(|choice| axis.values.iter().map(move |value| with(choice, &value.text))).collect();
    }
    add_column(columns, SEED);
    let has = |name: &str| templates.iter().any(|(option, _)| option.name == name);
    if has("timed") && has("depth") {
        let message = "--timed issues requests at their times, and --depth when others are done";
        return Err(SweepError::input(message, "leave one of them out"));
    }
    let options = choices.into_iter().map(|(given, cells)| {
        let mut chosen = Chosen::of(&given);
        chosen.run.cpu.clone_from(&request.cpu);
        (chosen.run.rate_per_day, chosen.run.window_ns) = (request.rate_per_day, request.window_ns);
        chosen.run.age.clone_from(&request.age);
        chosen.run.log = request.tells_waits.then(|| Logging::new(None, true));
        // They are a part of the command that repeats a run, and so of the identity of the sweep.
        chosen.arguments.extend(request.age.as_ref().map(|age| format!("--age {}", age.text)));
        chosen.arguments.extend(request.tells_waits.then(|| "--waits".to_string()));
        PlannedOptions { chosen, cells }
    });
    Ok((options.collect(), seeds))
}
