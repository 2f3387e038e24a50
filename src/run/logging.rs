//! The log of a run's requests: a row for each, with its waits.

use super::error::{RunError, RunFault};
use crate::device::wait_log::{WaitLog, Waits};
use crate::report::{LogRow, LogTime, RequestLog, WriteError};
use crate::time::Time;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A log of requests, and the record of waits that the devices of the path share with it. Clones are one log.
#[derive(Clone)]
pub struct Logging {
    rows: Arc<Mutex<RequestLog>>,
    waits: WaitLog,
    has_times: bool,
}

impl Debug for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logging")
    }
}

impl Logging {
    /// The log of one run.
    pub fn new(log: RequestLog) -> Logging {
        Logging { rows: Arc::new(Mutex::new(log)), waits: WaitLog::default(), has_times: true }
    }

    fn rows(&self) -> MutexGuard<'_, RequestLog> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
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
            log_time(waits, issued.0.saturating_sub(start.0), done.0.saturating_sub(start.0))
        });
        self.rows().write(LogRow { time, ..row }).map_err(|error| RunFault::Log(error).into())
    }

    /// Completes the file.
    pub fn finish(&self) -> Result<(), WriteError> {
        self.rows().finish()
    }
}

fn log_time(waits: Waits, issued: u64, done: u64) -> LogTime {
    LogTime {
        issued,
        done,
        die_wait: waits.die_ns,
        channel_wait: waits.channel_ns,
        collection: waits.collection_ns,
        mapping: waits.mapping_ns,
        service: waits.service_ns,
        other: waits.other_ns,
    }
}
