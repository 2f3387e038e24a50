//! fio's job files as workloads: `fio:JOBFILE`.
//!
//! | file | what it is |
//! |---|---|
//! | `ini` | the syntax: sections and keys |
//! | `keys` | the keys: honoured, ignored or refused |
//! | `values`, `settings` | the values, checked against the device |
//! | `sizes` | the sizes of requests: one, a split, a range |
//! | `placement` | the placement hints of writes |
//! | `skew` | `random_distribution` and the random map |
//! | `rate` | the times of requests that come at a rate |
//! | `ranges` | offsets and lengths, drawn from all of these |
//! | `zones` | `zonemode`: strides, and the write pointers of zones |
//! | `job` | a running job: its operations |
//!
//! All requests go to the one device, whatever the `filename`. Jobs run side by side, each with its own queue: they are the
//! tenants of the device. Without times they take turns, request by request. `stonewall` makes a job wait for those before it. An unimplemented key that would change the requests is an
//! error with its line. `docs/workloads.md` lists the keys and the differences from fio.

mod ini;
mod job;
mod keys;
mod placement;
mod ranges;
mod rate;
mod settings;
mod sizes;
mod skew;
mod values;
mod zones;

use super::{Action, Clock, NextOf, Operation, Tenant, Workload, WorkloadError};
use job::Job;
use settings::JobSettings;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use zones::{ZoneMode, ZoneShape, ZonedSpace};

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
    let mut all: Vec<JobSettings> = Vec::new();
    for (number, section) in ini::parse(file, text)?.iter().enumerate() {
        let settings = settings::settle(file, section, device_bytes, &mut warnings)?;
        let jobs = (0..settings.portions.len()).map(|clone| Job::new(&settings, number, clone, seed));
        match groups.back_mut() {
            Some(group) if !settings.waits => group.jobs.extend(jobs),
            _ => groups.push_back(Group { jobs: jobs.collect() }),
        }
        all.push(settings);
    }
    let space =
        zoned_space(&all, device_bytes).map_err(|reason| WorkloadError::Unusable { file: file.to_string(), reason })?;
    for job in groups.iter().flat_map(|group| &group.jobs) {
        amount_bytes += job.amount_bytes() as f64;
    }
    let name = format!("fio:{file}");
    let clock = if all.iter().any(|job| job.is_time_based) {
        Clock::Needed
    } else if all.iter().any(|job| job.runtime_ns.is_some()) {
        Clock::Heard
    } else {
        Clock::Unheard
    };
    let has_rate = all.iter().any(|job| job.rate.is_some());
    // Jobs that share zones write them in the order of their turns.
    let has_queues = space.is_none() && (all.len() > 1 || has_rate);
    let tenants = if has_queues { all.iter().map(tenant).collect() } else { Vec::new() };
    let (ended_bytes, now_ns, is_asked_by_tenant) = (0.0, None, false);
    Ok(Box::new(FioJobs {
        name,
        groups,
        tenants,
        warnings,
        amount_bytes,
        ended_bytes,
        space,
        clock,
        now_ns,
        has_rate,
        is_asked_by_tenant,
    }))
}

/// A section as a tenant: its clones share a queue, which has room for the requests of all.
fn tenant(job: &JobSettings) -> Tenant {
    let regions = job.portions.iter().map(|portion| (portion.start_bytes, portion.length_bytes)).collect();
    let queue_depth = job.queue_depth.saturating_mul(job.portions.len() as u32);
    Tenant { name: job.name.clone(), queue_depth, regions }
}

/// The zones of the jobs' device, if jobs have any.
fn zoned_space(jobs: &[JobSettings], device_bytes: u64) -> Result<Option<ZonedSpace>, String> {
    let shapes = jobs.iter().filter_map(|job| match job.zones {
        ZoneMode::Zoned(shape) => Some(shape),
        ZoneMode::None | ZoneMode::Strided { .. } => None,
    });
    let shapes: Vec<ZoneShape> = shapes.collect();
    let Some(first) = shapes.first() else { return Ok(None) };
    if shapes.len() < jobs.len() || shapes.iter().any(|shape| shape != first) {
        let what = "jobs with zonemode=zbd share the zones of the device: ";
        return Err(format!("{what}give all jobs the same zonesize, zonecapacity and max_open_zones, in [global]"));
    }
    let has_writers = jobs.iter().any(|job| job.requests.include(Action::Write));
    Ok(Some(ZonedSpace::new(*first, device_bytes, has_writers)))
}

/// Jobs that run concurrently; the first is the next to issue a request.
struct Group {
    jobs: VecDeque<Job>,
}

/// The jobs of a file.
struct FioJobs {
    name: String,
    groups: VecDeque<Group>,
    /// The sections, if there are several, or requests come at a rate; none where they share zones.
    tenants: Vec<Tenant>,
    warnings: Vec<String>,
    /// The bytes that all jobs move, for the progress alone. A real number: the sum may exceed 64 bits.
    amount_bytes: f64,
    /// The bytes of the jobs that have ended.
    ended_bytes: f64,
    /// The write pointers, with zonemode=zbd.
    space: Option<ZonedSpace>,
    clock: Clock,
    /// The time of the next request, if it is told.
    now_ns: Option<u64>,
    has_rate: bool,
    /// True if tenants are asked for their requests, with times.
    is_asked_by_tenant: bool,
}

impl FioJobs {
    /// The next operation of a job that was taken from the running group; `None` if it has ended. Otherwise it is put back, as the
    /// last unless its next operation follows at once.
    fn next_of_job(&mut self, mut job: Job) -> Option<Operation> {
        let Some(operation) = job.next(self.now_ns, self.space.as_mut()) else {
            self.ended_bytes += job.amount_bytes() as f64;
            return None;
        };
        let device = if self.tenants.is_empty() { 0 } else { job.section() as u32 };
        let jobs = &mut self.groups.front_mut()?.jobs;
        if job.goes_on() {
            jobs.push_front(job)
        } else {
            jobs.push_back(job)
        }
        Some(Operation { device, ..operation })
    }
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
            let Some(job) = group.jobs.pop_front() else {
                self.groups.pop_front();
                // A batch holds requests of one group: the next may have another queue depth.
                if appended > 0 {
                    break;
                }
                continue;
            };
            if let Some(operation) = self.next_of_job(job) {
                batch.push(operation);
                appended += 1;
            }
        }
        Ok(appended)
    }

    fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    fn next_of(&mut self, tenant: usize, is_idle: bool) -> Result<NextOf, WorkloadError> {
        self.is_asked_by_tenant = true;
        // A group begins when all requests of the one before it are done.
        while is_idle && self.groups.front().is_some_and(|group| group.jobs.is_empty()) {
            self.groups.pop_front();
        }
        let is_of = |job: &Job| job.section() == tenant;
        while let Some(jobs) = self.groups.front_mut().map(|group| &mut group.jobs)
            && let Some(job) = jobs.iter().position(is_of).and_then(|place| jobs.remove(place))
        {
            if let Some(operation) = self.next_of_job(job) {
                return Ok(NextOf::Request(operation));
            }
        }
        let begins_later = self.groups.iter().skip(1).any(|group| group.jobs.iter().any(is_of));
        Ok(if begins_later { NextOf::Waits } else { NextOf::Ended })
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

    fn clock(&self) -> Clock {
        self.clock
    }

    fn tell_time(&mut self, elapsed_ns: u64) {
        self.now_ns = Some(elapsed_ns);
    }

    fn warnings(&self) -> Vec<String> {
        let is_unheard = self.clock == Clock::Heard && self.now_ns.is_none();
        let what = "runtime is ignored: the path has no times, and a job ends at its size";
        let unheard = is_unheard.then(|| format!("{}: {what}", self.name));
        let is_unpaced = self.has_rate && !self.is_asked_by_tenant;
        let what = "rate_iops is ignored: the path has no times, --depth gives one queue, or jobs share zones";
        let unpaced = is_unpaced.then(|| format!("{}: {what}", self.name));
        self.warnings.iter().cloned().chain(unheard).chain(unpaced).collect()
    }
}
