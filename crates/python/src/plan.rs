//! A description of runs, read and checked, and its runs.

use crate::fault;
use crate::policies::{self, PolicyCost};
use crate::watch::Watch;
use flashpath::expression::parse_term;
use flashpath::report::json;
use flashpath::run::{Age, Progress, STATIONS};
use flashpath::task::CpuTable;
use flashpath::workload::generator;
use flashpath::workload::trace::{Columns, FORMATS, Format, Stage, TraceOptions};
use flashpath_environment::{environment, machine_share};
use flashpath_sweep::{Limits, Point, Request, Traces, WorkloadRequest, check_memory, failed_point, run_point};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Runs that were read and checked.
#[pyclass(frozen, module = "flashpath._native")]
pub struct Plan {
    plan: flashpath_sweep::Plan,
    /// The file of the workload, if there is one workload, and it has a file.
    input: Option<PathBuf>,
    traces: Mutex<Option<Arc<Traces>>>,
}

/// The program with its version, and the commit of its sources: `flashpath 0.1.0 (COMMIT)`.
#[pyfunction]
pub fn program() -> String {
    flashpath_environment::program()
}

/// Bytes of memory that a sweep takes of this machine: half of it, or of the limit of the control group.
#[pyfunction]
pub fn machine_memory() -> u64 {
    machine_share()
}

/// A workload: its text, true if the text is the name of a file, and its name in results, if that is another. Names of files
/// need not be UTF-8.
type Workload = (OsString, bool, Option<String>);

fn workload((text, is_file, name): Workload) -> PyResult<WorkloadRequest> {
    if let Some(file) = text.as_bytes().strip_prefix(b"fio:") {
        let file = PathBuf::from(OsStr::from_bytes(file));
        return Ok(WorkloadRequest::FioJob { file, name });
    }
    let file = PathBuf::from(&text);
    if is_file || file.is_file() {
        return Ok(WorkloadRequest::Trace { file, name });
    }
    let text = text.to_string_lossy().into_owned();
    // A group of values in braces may have a '/' of its own, and options may name a file.
    let is_expression = text.contains('{') || generator::is_with_options(&text);
    if !is_expression && (text.contains('/') || text.contains('.') && !text.contains(':')) {
        let help = "name the file of a trace, or a generator such as uniform:writes=6x";
        return Err(fault::input(format!("there is no file {text}"), Some(help.to_string())));
    }
    Ok(WorkloadRequest::Expression(text))
}

fn format(name: &str) -> PyResult<&'static Format> {
    let names = || FORMATS.iter().map(Format::name).collect::<Vec<_>>().join(", ");
    Format::named(FORMATS, name)
        .ok_or_else(|| fault::input(format!("unknown format {name}"), Some(format!("known are: {}", names()))))
}

fn stage(letter: &str) -> PyResult<Stage> {
    Stage::parse(letter)
        .ok_or_else(|| fault::input(format!("unknown stage {letter}"), Some("take Q, I, D or C".into())))
}

fn columns(text: &str) -> PyResult<Columns> {
    Columns::parse(text).map_err(|why| fault::input(format!("columns: {why}"), None))
}

/// The options for reading traces of these names.
pub fn reading(
    format_name: Option<&str>,
    description: Option<&str>,
    stage_letter: Option<&str>,
) -> PyResult<TraceOptions> {
    Ok(TraceOptions {
        format: format_name.map(format).transpose()?,
        columns: description.map(columns).transpose()?,
        stage: stage_letter.map(stage).transpose()?,
        ..TraceOptions::default()
    })
}

fn window_ns(text: &str) -> PyResult<u64> {
    let help = || Some("take a span such as 500ms, 60s, 5min or 1h".to_string());
    let span = flashpath::units::parse_span_ns(text).filter(|span| *span > 0);
    span.ok_or_else(|| fault::input(format!("window: {text} is no span of time"), help()))
}

fn rate_per_day(text: &str) -> PyResult<u64> {
    flashpath_sweep::rate(text).map_err(|error| fault::input(format!("rate: {error}"), None))
}

fn read_age(text: &str) -> PyResult<Age> {
    Age::read(text).map_err(|error| fault::input(format!("age: {}", error.message), Some(error.help)))
}

fn cpu_table(text: &str) -> PyResult<CpuTable> {
    flashpath_sweep::cpu_table(text).map_err(|error| fault::input(format!("cpu: {error}"), None))
}

/// A table of CPU time: in place of a file, which another machine may lack, the time of each step.
#[pyfunction]
pub fn cpu_steps(text: &str) -> PyResult<String> {
    let table = cpu_table(text)?;
    Ok(if Path::new(text).is_file() { flashpath_sweep::cpu_steps(&table) } else { text.to_string() })
}

/// A description of runs, whose parts are read.
#[pyclass(frozen, module = "flashpath._native")]
pub struct Description {
    /// The description itself; its stations are those of the policies that are known when it is used.
    pub request: Request,
    /// The file of the workload, if there is one workload, and it has a file.
    input: Option<PathBuf>,
}

/// Does something with a request on the stations with the policies that are known now; without any of them in its paths, on the
/// library's, which have options that a layer with a policy in Python lacks.
pub fn read<T>(request: &Request, work: impl FnOnce(&Request) -> T) -> T {
    policies::reading(|tables| {
        let uses = request.on.iter().any(|(_, path)| tables.are_named_in(path));
        let stations = if uses { tables.stations } else { STATIONS };
        work(&Request { stations: Some(stations), ..request.clone() })
    })
}

#[pymethods]
impl Description {
    /// Reads the parts of a description.
    #[new]
    #[pyo3(signature = (workloads, on, options, *, format=None, columns=None, stage=None, cpu=None, window=None, rate=None, age=None, waits=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a constructor in Python")]
    fn new(
        workloads: Vec<Workload>,
        on: Vec<(Option<String>, String)>,
        options: Vec<(String, String)>,
        format: Option<&str>,
        columns: Option<&str>,
        stage: Option<&str>,
        cpu: Option<&str>,
        window: Option<&str>,
        rate: Option<&str>,
        age: Option<&str>,
        waits: bool,
    ) -> PyResult<Description> {
        let TraceOptions { format, columns, stage, .. } = reading(format, columns, stage)?;
        let workloads = workloads.into_iter().map(workload).collect::<PyResult<Vec<_>>>()?;
        let input = match &workloads[..] {
            [
                WorkloadRequest::Trace { file, .. }
                | WorkloadRequest::FioJob { file, .. }
                | WorkloadRequest::Recording { file, .. },
            ] => Some(file.clone()),
            [WorkloadRequest::Expression(text)] => parse_term(text).ok().and_then(|term| generator::file_of(&term)),
            _ => None,
        };
        let cpu = cpu.map(cpu_table).transpose()?;
        let mut request = Request { workloads, on, options, format, columns, stage, cpu, ..Request::default() };
        request.window_ns = window.map(window_ns).transpose()?;
        request.rate_per_day = rate.map(rate_per_day).transpose()?;
        request.age = age.map(read_age).transpose()?;
        request.tells_waits = waits;
        Ok(Description { request, input })
    }

    /// The units of the varied options: the column, and `share`, `bytes` or `nanoseconds`.
    fn units(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str)>> {
        let units = py.detach(|| read(&self.request, flashpath_sweep::units)).map_err(fault::sweep)?;
        Ok(units.into_iter().map(|(column, unit)| (column, unit.word())).collect())
    }
}

impl Plan {
    /// The plan itself.
    pub fn plan(&self) -> &flashpath_sweep::Plan {
        &self.plan
    }

    /// The identity of the plan with policies whose code has this digest.
    pub fn identity_with(&self, policies: &str) -> String {
        let identity = self.plan.identity();
        if policies.is_empty() {
            return identity;
        }
        let mut hash = Sha256::new();
        hash.update(identity.as_bytes());
        hash.update(policies.as_bytes());
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The traces of the plan, decoded once.
    pub fn traces(&self) -> PyResult<Arc<Traces>> {
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(traces) = &*traces {
            return Ok(Arc::clone(traces));
        }
        let decoded = Arc::new(self.plan.decode_traces().map_err(fault::sweep)?);
        *traces = Some(Arc::clone(&decoded));
        Ok(decoded)
    }

    fn checked_point(&self, number: u64) -> PyResult<Point<'_>> {
        let runs = self.plan.runs();
        match number < runs {
            true => Ok(self.plan.point(number)),
            false => Err(PyIndexError::new_err(format!("run {number} of {runs}"))),
        }
    }
}

/// The outcome of a run: its result as JSON, the reason of a failure and if the input is at fault, and the costs of its
/// policies in Python.
type Ran = (String, Option<(String, bool)>, Vec<PolicyCost>);

#[pymethods]
impl Plan {
    /// Reads a description, and checks every run of it. `one` asks for one run, which may have files.
    #[new]
    #[pyo3(signature = (description, *, one=false))]
    fn new(py: Python<'_>, description: &Description, one: bool) -> PyResult<Plan> {
        let Description { request, input } = description;
        let plan = py.detach(|| {
            read(request, |request| match one {
                true => flashpath_sweep::Plan::read_one(request),
                false => flashpath_sweep::Plan::read(request),
            })
        });
        Ok(Plan { plan: plan.map_err(fault::sweep)?, input: input.clone(), traces: Mutex::default() })
    }

    /// The number of runs.
    #[getter]
    fn runs(&self) -> u64 {
        self.plan.runs()
    }

    /// The columns of the varied options; the last is `seed`.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.plan.columns().to_vec()
    }

    /// The SHA-256 of all that the results depend on.
    fn identity(&self, py: Python<'_>, policies: &str) -> String {
        py.detach(|| self.identity_with(policies))
    }

    /// An estimate of the bytes of memory that run `number` takes.
    fn memory_bytes(&self, number: u64) -> PyResult<u64> {
        Ok(self.checked_point(number)?.memory_bytes())
    }

    /// The command that repeats run `number`.
    fn described(&self, number: u64) -> PyResult<String> {
        Ok(self.checked_point(number)?.described())
    }

    /// Checks that each run alone fits a budget of memory.
    fn check_memory(&self, py: Python<'_>, memory_bytes: u64) -> PyResult<()> {
        py.detach(|| check_memory(&self.plan, &Limits { jobs: 1, memory_bytes })).map_err(fault::sweep)
    }

    /// Decodes the traces, unless they are decoded.
    fn decode(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.traces().map(|_| ()))
    }

    /// Runs the only run. `progress` is called with the phase, the requests done, and the share of the phase, if it is known.
    #[pyo3(signature = (progress=None))]
    fn run(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Ran> {
        py.detach(|| {
            let traces = self.traces()?;
            let (mut watch, began) = (Watch::new(progress), Instant::now());
            policies::begin();
            let ended = catch_unwind(AssertUnwindSafe(|| {
                self.plan.point(0).run(&traces, &mut |progress: &Progress| {
                    watch.goes_on(|| (progress.phase, progress.requests, progress.share))
                })
            }));
            let (costs, failure) = policies::ended();
            if let Some(failure) = failure {
                return Err(failure);
            }
            watch.ended()?;
            let ended = ended.map_err(|_| PyRuntimeError::new_err("the run panicked: this is a bug of flashpath"))?;
            let mut outcome = ended.map_err(fault::refused)?;
            outcome.result.seconds_wall = began.elapsed().as_secs_f64();
            let environment = environment(self.input.as_deref())?;
            let failure = outcome.failure.map(|error| (error.to_string(), error.is_input()));
            Ok((json(&[outcome.result], &environment), failure, costs))
        })
    }

    /// Runs run `number`, and returns it as JSON for a journal. A failure of the run is a row, too. `watch` is called
    /// regularly, and ends the run by an exception.
    #[pyo3(signature = (number, watch=None))]
    fn run_point(&self, py: Python<'_>, number: u64, watch: Option<Py<PyAny>>) -> PyResult<String> {
        py.detach(|| {
            let (traces, mut watch) = (self.traces()?, Watch::new(watch));
            policies::begin();
            let done = run_point(self.checked_point(number)?, &traces, &mut |_| watch.goes_on(|| ()));
            let _ = policies::ended();
            watch.ended()?;
            let done = done.ok_or_else(|| PyRuntimeError::new_err("the run was stopped"))?;
            Ok(serde_json::to_string(&done).expect("a row holds only text, numbers and lists"))
        })
    }

    /// The row of run `number` that failed for a reason beside the run, as JSON.
    fn failed_point(&self, number: u64, why: String) -> PyResult<String> {
        let done = failed_point(self.checked_point(number)?, why);
        Ok(serde_json::to_string(&done).expect("a row holds only text, numbers and lists"))
    }
}
