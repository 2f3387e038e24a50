//! The log of a run's requests: a row for each, with its waits, and the waits at the percentiles of all.

use super::error::{RunError, RunFault};
use super::latency_waits::LatencyWaits;
use crate::device::wait_log::{WaitLog, Waits};
use crate::report::{LogRow, LogTime, RequestLog, RunResult, WriteError};
use crate::time::Time;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A log of requests, and the record of waits that the devices of the path share with it. Clones are one log.
#[derive(Clone)]
pub struct Logging {
    /// `None` if rows are not asked for.
    rows: Option<Arc<Mutex<RequestLog>>>,
    /// The waits by class; `None` if they are not asked for.
    by_class: Option<Arc<Mutex<BTreeMap<&'static str, LatencyWaits>>>>,
    waits: WaitLog,
    has_times: bool,
}

impl Debug for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logging")
    }
}

impl Logging {
    /// The log of one run: its rows, if they are asked for, and with `tells_waits` the waits at its percentiles.
    pub fn new(rows: Option<RequestLog>, tells_waits: bool) -> Logging {
        let rows = rows.map(|rows| Arc::new(Mutex::new(rows)));
        let by_class = tells_waits.then(Arc::default);
        Logging { rows, by_class, waits: WaitLog::default(), has_times: true }
    }

    /// True if it writes a row for each request.
    pub(super) fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// True if it tells the waits at the percentiles.
    pub(super) fn has_waits(&self) -> bool {
        self.by_class.is_some()
    }

    /// The log for one of several runs, which has waits of its own.
    pub fn for_run(&self) -> Logging {
        let by_class = self.by_class.as_ref().map(|_| Arc::default());
        Logging { by_class, waits: WaitLog::default(), ..self.clone() }
    }

    /// The log for a run without a timing model, whose times say nothing.
    pub(super) fn without_times(self) -> Logging {
        Logging { has_times: false, ..self }
    }

    /// The record of waits.
    pub(super) fn waits(&self) -> &WaitLog {
        &self.waits
    }

    /// Adds a request: its row without times; who asked, the start of the count, its issue and its completion.
    pub(super) fn write(&self, row: LogRow, times: Option<(u32, (Time, Time, Time))>) -> Result<(), RunError> {
        let times = times.filter(|_| self.has_times);
        let time = times.map(|(asker, (start, issued, done))| {
            let waits = self.waits.of_request(asker, issued, done);
            if let Some(by_class) = &self.by_class {
                locked(by_class).entry(row.action).or_default().record(done.since_ns(issued), waits);
            }
            log_time(waits, issued.0.saturating_sub(start.0), done.0.saturating_sub(start.0))
        });
        match &self.rows {
            Some(rows) => locked(rows).write(LogRow { time, ..row }).map_err(|error| RunFault::Log(error).into()),
            None => Ok(()),
        }
    }

    /// Adds to the latencies of a result what they are made of, if that is asked for.
    pub(super) fn tell_waits(&self, result: &mut RunResult) {
        let Some((by_class, latencies)) = self.by_class.as_ref().zip(result.latency_ns.as_mut()) else { return };
        for (class, waits) in locked(by_class).iter() {
            if let Some(percentiles) = latencies.class_mut(class) {
                percentiles.parts = Some(Box::new(waits.report()));
            }
        }
    }

    /// Completes the file.
    pub fn finish(&self) -> Result<(), WriteError> {
        self.rows.as_ref().map_or(Ok(()), |rows| locked(rows).finish())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log_time(waits: Waits, issued: u64, done: u64) -> LogTime {
    LogTime {
        issued,
        done,
        die_wait: waits.die_ns,
        channel_wait: waits.channel_ns,
        collection: waits.collection_ns,
        erase: waits.erase_ns,
        mapping: waits.mapping_ns,
        buffer: waits.buffer_ns,
        retry: waits.retry_ns,
        service: waits.service_ns,
        other: waits.other_ns,
    }
}
