//! The workloads of a plan, and the job of a run.

use crate::cells::{Cell, add_column, cells_of, check_count};
use crate::error::SweepError;
use crate::options::Chosen;
use crate::template::{Axis, Template};
use crate::traces::Traces;
use flashpath::expression::{Kind, Term, parse_term};
use flashpath::run::{BlockWork, Job, Logging, Path as DevicePath, Place, RunError, RunOptions, Work as JobWork};
use flashpath::workload::WorkloadError;
use flashpath::workload::files::recorded::{RecordedCalls, Replays};
use flashpath::workload::files::{self, file_workload};
use flashpath::workload::trace::{TraceOptions, TraceWorkload};
use flashpath::workload::{fio_job, generator};
use flashpath_environment::input_file;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A workload as the user gives it.
#[derive(Clone, Debug)]
pub enum WorkloadRequest {
    /// A generator or a file workload, with several values or not.
    Expression(String),
    /// A trace.
    Trace {
        /// Its file.
        file: PathBuf,
        /// Its name in results and messages, if it is not that of the file.
        name: Option<String>,
    },
    /// A fio job.
    FioJob {
        /// Its file.
        file: PathBuf,
        /// Its name in results and messages, if it is not that of the file.
        name: Option<String>,
    },
    /// A recording of calls, which is replayed once.
    Recording {
        /// Its file.
        file: PathBuf,
        /// Its name in results and messages, if it is not that of the file.
        name: Option<String>,
    },
}

impl WorkloadRequest {
    /// The options with several values.
    pub(crate) fn axes(&self) -> Result<Vec<Axis>, SweepError> {
        match self {
            WorkloadRequest::Expression(text) => {
                let kinds: Vec<&'static Kind> = [generator::kinds(), files::kinds()].concat();
                Ok(Template::of_workload(text, &kinds)?.axes)
            }
            WorkloadRequest::Trace { .. } | WorkloadRequest::FioJob { .. } | WorkloadRequest::Recording { .. } => {
                Ok(Vec::new())
            }
        }
    }
}

/// A workload of a plan.
pub struct Work {
    name: String,
    cells: Vec<Cell>,
    kind: WorkKind,
}

enum WorkKind {
    /// With the SHA-256 of the file that it reads, if it reads one.
    Generator(Term, Option<String>),
    Files(Term),
    Trace {
        file: PathBuf,
        name: Option<String>,
        sha256: String,
    },
    FioJob {
        file: PathBuf,
        sha256: String,
    },
    Recording {
        calls: RecordedCalls,
        sha256: String,
    },
}

/// The size on which a generator is checked before any device is made.
const CHECKED_BYTES: u64 = 1 << 30;

/// Reads the workloads, and adds the columns of their varied options; `column` has their templates, if there are several.
pub(crate) fn read_workloads(
    requests: &[WorkloadRequest],
    column: &str,
    columns: &mut Vec<String>,
) -> Result<Vec<Work>, SweepError> {
    let mut works = Vec::new();
    let mut labels: Vec<String> = Vec::new();
    if requests.len() > 1 {
        add_column(columns, column);
    }
    for request in requests {
        let (label, mut read) = match request {
            WorkloadRequest::Expression(text) => (text.clone(), read_expression(text, columns)?),
            WorkloadRequest::Trace { file, name } => {
                let label = name.clone().unwrap_or_else(|| file.display().to_string());
                let kind = WorkKind::Trace { file: file.clone(), name: name.clone(), sha256: sha256(file)? };
                (label.clone(), vec![Work { name: label, cells: Vec::new(), kind }])
            }
            WorkloadRequest::FioJob { file, name } => {
                let label = name.clone().unwrap_or_else(|| format!("fio:{}", file.display()));
                let kind = WorkKind::FioJob { file: file.clone(), sha256: sha256(file)? };
                (label.clone(), vec![Work { name: label, cells: Vec::new(), kind }])
            }
            WorkloadRequest::Recording { file, name } => {
                let label = name.clone().unwrap_or_else(|| file.display().to_string());
                let unusable = |error: WorkloadError| SweepError::input(error.to_string(), "name another file");
                let kind =
                    WorkKind::Recording { calls: RecordedCalls::open(file).map_err(unusable)?, sha256: sha256(file)? };
                (label.clone(), vec![Work { name: label, cells: Vec::new(), kind }])
            }
        };
        if labels.contains(&label) {
            return Err(SweepError::input(format!("{label} is written twice"), "write each workload once"));
        }
        if requests.len() > 1 {
            read.iter_mut().for_each(|work| work.cells.insert(0, (column.to_string(), Value::from(label.as_str()))));
        }
        labels.push(label);
        works.extend(read);
    }
    Ok(works)
}

fn read_expression(text: &str, columns: &mut Vec<String>) -> Result<Vec<Work>, SweepError> {
    let kinds: Vec<&'static Kind> = [generator::kinds(), files::kinds()].concat();
    let template = Template::of_workload(text, &kinds)?;
    check_count(&template)?;
    template.axes.iter().filter(|axis| axis.values.len() > 1).for_each(|axis| add_column(columns, &axis.name));
    let mut hashes = BTreeMap::new();
    let mut read = |number: usize| {
        let choice = template.choice(number);
        let name = template.text_of(&choice);
        let checked = parse_term(&name).and_then(|term| {
            let kind = term.find("workload", &kinds)?;
            if files::kinds().iter().any(|files| files.name == kind.name) {
                file_workload(&term, 1)?;
                Ok(WorkKind::Files(term))
            } else {
                generator::generator(&term, CHECKED_BYTES, 1)?;
                Ok(WorkKind::Generator(term, None))
            }
        });
        let mut kind = checked.map_err(|error| template.error_in(&choice, error))?;
        if let WorkKind::Generator(term, of_file) = &mut kind {
            *of_file = match generator::file_of(term) {
                Some(file) => Some(hash_once(file, &mut hashes)?),
                None => None,
            };
        }
        Ok(Work { name, cells: cells_of(&template, &choice), kind })
    };
    (0..template.count()).map(&mut read).collect()
}

/// The SHA-256 of a file, which is read once for all values of options.
fn hash_once(file: PathBuf, known: &mut BTreeMap<PathBuf, String>) -> Result<String, SweepError> {
    if let Some(hash) = known.get(&file) {
        return Ok(hash.clone());
    }
    let hash = sha256(&file)?;
    known.insert(file, hash.clone());
    Ok(hash)
}

/// The SHA-256 of a file, in hexadecimal digits.
fn sha256(file: &Path) -> Result<String, SweepError> {
    let unreadable = |error| SweepError::input(format!("cannot read {}: {error}", file.display()), "name another file");
    input_file(file).map(|input| input.sha256).map_err(unreadable)
}

impl Work {
    /// Its name in results and messages: that which `flashpath run` takes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values of its varied options.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The trace's file and its name in messages, if it is one.
    pub fn trace(&self) -> Option<(&Path, Option<&str>)> {
        match &self.kind {
            WorkKind::Trace { file, name, .. } => Some((file, name.as_deref())),
            WorkKind::Generator(..) | WorkKind::Files(_) | WorkKind::FioJob { .. } | WorkKind::Recording { .. } => None,
        }
    }

    /// All that its requests depend on, besides the device and the seed.
    pub(crate) fn identity(&self) -> String {
        let content = match &self.kind {
            WorkKind::Trace { sha256, .. } | WorkKind::FioJob { sha256, .. } | WorkKind::Recording { sha256, .. } => {
                sha256.as_str()
            }
            WorkKind::Generator(_, sha256) => sha256.as_deref().unwrap_or_default(),
            WorkKind::Files(_) => "",
        };
        format!("{}\n{content}", self.name)
    }

    /// Refuses options of traces if it is none: they would be ignored.
    pub(crate) fn check_options(&self, chosen: &Chosen, reading: &TraceOptions) -> Result<(), SweepError> {
        if self.trace().is_some() {
            return Ok(());
        }
        let given = chosen.of_traces.iter().copied();
        let given = given.chain(reading.format.map(|_| "format")).chain(reading.columns.as_ref().map(|_| "columns"));
        let given = given.chain(reading.stage.map(|_| "stage")).next();
        given.map_or(Ok(()), |option| {
            let message = format!("--{option} is for traces, and {} is none", self.name);
            Err(SweepError::input(message, "leave it out, or run a trace"))
        })
    }

    /// The job of a run with this workload. Without `traces` it can be checked, and not run on a trace.
    pub(crate) fn job<'a>(
        &'a self,
        path: &'a DevicePath,
        chosen: &'a Chosen,
        seed: u64,
        traces: Option<&'a Traces>,
    ) -> Result<Job<'a>, RunError> {
        let blocks =
            |open| JobWork::Blocks(BlockWork { name: self.name.clone(), has_times: self.trace().is_some(), open });
        let work = match &self.kind {
            WorkKind::Generator(term, _) => blocks(Box::new(move |bytes| Ok(generator::generator(term, bytes, seed)?))),
            WorkKind::Files(term) => {
                let mut workload = file_workload(term, seed)?;
                workload.name.clone_from(&self.name);
                JobWork::Files(workload)
            }
            WorkKind::Recording { calls, .. } => {
                let mut workload = calls.workload(seed, Replays::ONCE)?;
                workload.name.clone_from(&self.name);
                JobWork::Files(workload)
            }
            WorkKind::FioJob { file, .. } => blocks(Box::new(move |bytes| Ok(fio_job::fio_job(file, bytes, seed)?))),
            WorkKind::Trace { file, .. } => blocks(Box::new(move |bytes| {
                let traces = traces.expect("a job that is run has the decoded traces");
                let trace = traces.decoded(file, chosen.device)?;
                Ok(Box::new(TraceWorkload::decoded(trace, chosen.addresses, chosen.repeat, bytes)?))
            })),
        };
        let log = chosen.run.log.as_ref().map(Logging::for_run);
        let options = RunOptions { arguments: Vec::new(), log, ..chosen.run.clone() };
        Ok(Job { work, place: Place::Path(path), seed, options })
    }
}
