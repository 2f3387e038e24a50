//! The journal of a sweep.

use crate::fault;
use crate::plan::Plan;
use crate::table::Table;
use crate::watch::Watch;
use flashpath_sweep::{DoneRun, Identity, Limits, has_failed, run_all};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The runs of a sweep that are done: in a file, from which the same sweep goes on, or in a temporary one.
#[pyclass(frozen, module = "flashpath._native")]
pub struct Journal {
    journal: Mutex<Option<flashpath_sweep::Journal>>,
    columns: Vec<String>,
    _temporary: Option<tempfile::TempDir>,
}

impl Journal {
    /// The journal, for as long as the guard is held.
    fn held(&self) -> MutexGuard<'_, Option<flashpath_sweep::Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut flashpath_sweep::Journal) -> PyResult<T>) -> PyResult<T> {
        work(self.held().as_mut().ok_or_else(closed)?)
    }
}

/// The exception for a journal that was closed.
fn closed() -> PyErr {
    PyValueError::new_err("the journal is closed")
}

#[pymethods]
impl Journal {
    /// Opens the journal of a plan. `command` names the sweep in messages; `policies` stands for the code of its policies.
    #[new]
    fn new(plan: &Plan, path: Option<PathBuf>, command: String, policies: &str) -> PyResult<Journal> {
        let temporary = match path {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let path = path.or_else(|| temporary.as_ref().map(|place| place.path().join("journal"))).expect("one is there");
        let identity = Identity::new(crate::plan::program(), plan.identity_with(policies), command, plan.plan().runs());
        let journal = flashpath_sweep::Journal::open(&path, &identity).map_err(fault::sweep)?;
        let columns = plan.plan().columns().to_vec();
        Ok(Journal { journal: Mutex::new(Some(journal)), columns, _temporary: temporary })
    }

    /// The numbers of the runs that are done.
    fn done(&self) -> PyResult<Vec<u64>> {
        self.with(|journal| Ok(journal.done().keys().copied().collect()))
    }

    /// The number of runs that failed.
    fn failed(&self) -> PyResult<usize> {
        self.with(|journal| Ok(journal.done().values().filter(|done| has_failed(&done.row)).count()))
    }

    /// The number of damaged lines: their runs are done again.
    fn damaged_lines(&self) -> PyResult<u64> {
        self.with(|journal| Ok(journal.damaged_lines()))
    }

    /// Adds a run, as JSON, that was run elsewhere. One that is there already stays as it is.
    fn add(&self, done: &str) -> PyResult<()> {
        let done: DoneRun = serde_json::from_str(done).map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.with(|journal| match journal.done().contains_key(&done.run) {
            true => Ok(()),
            false => journal.add(&done).map_err(fault::sweep),
        })
    }

    /// Runs what it lacks of its plan, beside each other, and adds it. `progress` is called with the number of runs, those done,
    /// failed and running, the share of the work, and the seconds left, if they can be told.
    #[pyo3(signature = (plan, jobs, memory_bytes, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        plan: &Plan,
        jobs: usize,
        memory_bytes: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        py.detach(|| {
            let traces = plan.traces()?;
            let (stop, mut watch) = (AtomicBool::new(false), Watch::new(progress));
            let limits = Limits { jobs: jobs.max(1), memory_bytes };
            let mut held = self.held();
            let journal = held.as_mut().ok_or_else(closed)?;
            let ran = run_all(plan.plan(), &traces, limits, journal, &stop, &mut |told| {
                let told = *told;
                let goes_on =
                    watch.goes_on(|| (told.runs, told.done, told.failed, told.running, told.share, told.seconds_left));
                if !goes_on {
                    stop.store(true, Ordering::Relaxed);
                }
            });
            watch.ended()?;
            ran.map_err(fault::sweep)
        })
    }

    /// Makes all rows durable.
    fn sync(&self) -> PyResult<()> {
        self.with(|journal| journal.sync().map_err(fault::sweep))
    }

    /// The table of the runs that are done.
    fn table(&self) -> PyResult<Table> {
        let rows = self.with(|journal| Ok(journal.done().values().map(|done| done.row.clone()).collect()))?;
        Table::of(rows, self.columns.clone())
    }

    /// Closes the file: others can open it.
    fn close(&self) {
        *self.held() = None;
    }
}
