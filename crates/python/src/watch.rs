//! Interrupts and progress during a run, which has not the interpreter's lock.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// The interval at which signals are looked at, and progress is told.
const INTERVAL: Duration = Duration::from_millis(50);

/// Looks at signals, and tells progress.
pub struct Watch {
    progress: Option<Py<PyAny>>,
    last: Instant,
    failure: Option<PyErr>,
}

impl Watch {
    /// A watch that calls `progress`, if there is one.
    pub fn new(progress: Option<Py<PyAny>>) -> Watch {
        Watch { progress, last: Instant::now(), failure: None }
    }

    /// Looks if it is time. False ends the run: there was an interrupt, or the progress function failed.
    pub fn goes_on<A>(&mut self, arguments: impl FnOnce() -> A) -> bool
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        if self.failure.is_none() && self.last.elapsed() >= INTERVAL {
            let looked = Python::attach(|py| {
                py.check_signals()?;
                self.progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, arguments()).map(|_| ()))
            });
            self.failure = looked.err();
            self.last = Instant::now();
        }
        self.failure.is_none()
    }

    /// The exception that ended the run.
    pub fn ended(self) -> PyResult<()> {
        self.failure.map_or(Ok(()), Err)
    }
}
