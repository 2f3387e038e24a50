//! The workload: requests for objects as operations of the drive.

use super::super::pattern::{BUCKET_STREAM, REGION_STREAM};
use super::cache::FlashCache;
use super::object::Object;
use super::operations::Pending;
use super::requests::Requests;
use crate::workload::trace::{KeyAction, KeyRequest};
use crate::workload::{Action, CacheCounts, Operation, Workload, WorkloadError};

/// So many requests after the last write of the drive, drawn requests end: all objects are in memory.
const MOST_WITHOUT_WRITE: u64 = 50_000_000;

/// A flash cache as a workload of its drive.
pub struct CacheWorkload {
    /// The name in reports.
    pub name: String,
    /// The requests for objects.
    pub requests: Box<dyn Requests>,
    /// The cache.
    pub cache: FlashCache,
    /// True if an object that was not there is set after it was asked for.
    pub sets_on_miss: bool,
    /// Bytes written after which it ends; `None`: with the requests.
    pub most_written_bytes: Option<u64>,
    state: State,
}

/// How far it is.
#[derive(Debug, Default)]
struct State {
    pending: Pending,
    /// The request under way, and how often it is still made.
    current: Option<(KeyRequest, u64)>,
    now_s: u64,
    written_bytes: u64,
    since_write: u64,
    is_idle: bool,
}

impl CacheWorkload {
    /// The workload of a cache.
    pub fn new(
        name: String,
        requests: Box<dyn Requests>,
        cache: FlashCache,
        sets_on_miss: bool,
        most_written_bytes: Option<u64>,
    ) -> CacheWorkload {
        CacheWorkload { name, requests, cache, sets_on_miss, most_written_bytes, state: State::default() }
    }

    /// True if it has written all that was asked for.
    fn is_done(&self) -> bool {
        self.state.is_idle || self.most_written_bytes.is_some_and(|most| self.state.written_bytes >= most)
    }

    /// Makes the next request. False at the end.
    fn advance(&mut self) -> Result<bool, WorkloadError> {
        let request = match self.state.current.take() {
            Some((request, left)) if left > 0 => {
                self.state.current = Some((request, left - 1));
                request
            }
            _ => {
                let Some(request) = self.requests.next_request()? else { return Ok(false) };
                self.state.current = Some((request, request.count - 1));
                request
            }
        };
        // Times that go back are those of the latest.
        self.state.now_s = self.state.now_s.max(request.time_s.unwrap_or(0));
        self.make(&request);
        self.state.since_write += 1;
        self.state.is_idle = self.most_written_bytes.is_some() && self.state.since_write >= MOST_WITHOUT_WRITE;
        Ok(true)
    }

    fn make(&mut self, request: &KeyRequest) {
        let (now_s, pending) = (self.state.now_s, &mut self.state.pending);
        let expires_s = match request.time_s {
            Some(_) if request.ttl_s > 0 => now_s.saturating_add(request.ttl_s),
            _ => 0,
        };
        let object = Object { key: request.key, bytes: request.key_bytes + request.value_bytes, expires_s };
        match request.action {
            KeyAction::Get => {
                // A value of no bytes is that of an object which was not there, and of which nothing is known.
                if !self.cache.get(request.key, now_s, pending) && self.sets_on_miss && request.value_bytes > 0 {
                    self.cache.set(object, now_s, pending);
                }
            }
            KeyAction::Set => self.cache.set(object, now_s, pending),
            KeyAction::Add if !self.cache.has(request.key, now_s) => self.cache.set(object, now_s, pending),
            KeyAction::Replace if self.cache.has(request.key, now_s) => self.cache.set(object, now_s, pending),
            KeyAction::Add | KeyAction::Replace => {}
            KeyAction::Delete => self.cache.delete(request.key, pending),
        }
    }
}

impl Workload for CacheWorkload {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let before = batch.len();
        while batch.len() - before < limit {
            if let Some(operation) = self.state.pending.pop_front() {
                if operation.action == Action::Write {
                    self.state.written_bytes += operation.length_bytes;
                    self.state.since_write = 0;
                }
                batch.push(operation);
            } else if self.is_done() || !self.advance()? {
                break;
            }
        }
        Ok(batch.len() - before)
    }

    fn progress(&self) -> Option<f64> {
        match self.most_written_bytes {
            Some(most) => Some((self.state.written_bytes as f64 / most as f64).min(1.0)),
            None => self.requests.progress(),
        }
    }

    fn stream_at(&self, offset_bytes: u64) -> u8 {
        if offset_bytes < self.cache.buckets.bytes() { BUCKET_STREAM } else { REGION_STREAM }
    }

    fn rejected(&self) -> u64 {
        self.requests.rejected()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.requests.warnings();
        if self.state.is_idle {
            warnings.push(format!(
                "{}: it ended early, as {MOST_WITHOUT_WRITE} requests wrote nothing: memory holds all objects",
                self.name
            ));
        }
        warnings
    }

    fn cache(&self) -> Option<CacheCounts> {
        Some(self.cache.counts)
    }
}
