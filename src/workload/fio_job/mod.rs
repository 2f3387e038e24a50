//! fio's job files as workloads: `fio:JOBFILE`.
//!
//! | file | what it is |
//! |---|---|
//! | `ini` | the syntax: sections and keys |
//! | `keys` | the keys: honoured, ignored or refused |
//! | `values`, `settings` | the values, checked against the device |
//! | `skew` | `random_distribution` and the random map |
//! | `job` | a running job: its operations |
//!
//! All requests go to the one device, whatever the `filename`. Jobs run side by side and take turns, request by
//! request; `stonewall` makes a job wait for those before it. An unimplemented key that would change the requests is an
//! error with its line. `docs/workloads.md` lists the keys and the differences from fio.

mod ini;
mod job;
mod keys;
mod settings;
mod skew;
mod values;

use super::{Operation, Workload, WorkloadError};
use job::Job;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;

/// The longest file accepted: job files are written by hand.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The longest batch, whatever the caller's limit.
const BATCH_LIMIT: usize = 1 << 16;

/// The workload of the job file at `path`, on a device of `device_bytes`.
///
/// Errors: the file cannot be read, or a line is wrong or not implemented; the error names the line and the remedy.
pub fn fio_job(path: &Path, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
    let file = path.display().to_string();
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut text))
        .map_err(|source| WorkloadError::Read { file: file.clone(), source })?;
    let unusable = |reason: &str| WorkloadError::Unusable { file: file.clone(), reason: reason.to_string() };
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(unusable("longer than 1 MiB: not a job file"));
    }
    let text = String::from_utf8(text).map_err(|_| unusable("not UTF-8 text: not a job file"))?;
    fio_job_text(&file, &text, device_bytes, seed)
}

/// As [`fio_job`], for a text in memory; errors name it `file`.
pub fn fio_job_text(file: &str, text: &str, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
    let mut warnings = Vec::new();
    let mut groups: VecDeque<Group> = VecDeque::new();
    let mut amount_bytes = 0.0;
    for (number, section) in ini::parse(file, text)?.iter().enumerate() {
        let settings = settings::settle(file, section, device_bytes, &mut warnings)?;
        let jobs = (0..settings.portions.len()).map(|clone| Job::new(&settings, number, clone, seed));
        match groups.back_mut() {
            Some(group) if !settings.waits => group.jobs.extend(jobs),
            _ => groups.push_back(Group { jobs: jobs.collect() }),
        }
    }
    for job in groups.iter().flat_map(|group| &group.jobs) {
        amount_bytes += job.amount_bytes() as f64;
    }
    let name = format!("fio:{file}");
    Ok(Box::new(FioJobs { name, groups, warnings, amount_bytes, ended_bytes: 0.0 }))
}

/// Jobs that run concurrently; the first is the next to issue a request.
struct Group {
    jobs: VecDeque<Job>,
}

/// The jobs of a file.
struct FioJobs {
    name: String,
    groups: VecDeque<Group>,
    warnings: Vec<String>,
    /// The bytes that all jobs move, for the progress alone. A real number: the sum may exceed 64 bits.
    amount_bytes: f64,
    /// The bytes of the jobs that have ended.
    ended_bytes: f64,
}

impl Workload for FioJobs {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let limit = limit.min(BATCH_LIMIT);
        let mut appended = 0;
        while appended < limit {
            let Some(group) = self.groups.front_mut() else { break };
            let Some(mut job) = group.jobs.pop_front() else {
                self.groups.pop_front();
                // A batch holds requests of one group: the next may have another queue depth.
                if appended > 0 {
                    break;
                }
                continue;
            };
            match job.next() {
                Some(operation) => {
                    batch.push(operation);
                    appended += 1;
                    group.jobs.push_back(job);
                }
                None => self.ended_bytes += job.amount_bytes() as f64,
            }
        }
        Ok(appended)
    }

    fn progress(&self) -> Option<f64> {
        let running = self.groups.iter().flat_map(|group| &group.jobs);
        let moved = running.fold(self.ended_bytes, |sum, job| sum + job.moved_bytes() as f64);
        Some((moved / self.amount_bytes).min(1.0))
    }

    /// The sum over the jobs of the running group.
    fn queue_depth(&self) -> Option<u32> {
        let running = self.groups.iter().find(|group| !group.jobs.is_empty())?;
        Some(running.jobs.iter().fold(0, |sum: u32, job| sum.saturating_add(job.queue_depth())))
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}
