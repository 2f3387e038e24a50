//! The part of a run that is kept.

use flashpath::report::RunResult;

/// A run, measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// 10^6 bytes read and written in a second of the counted stages.
    pub mb_s: f64,
    /// The least and the most of the runs of which it is the median.
    pub range_mb_s: (f64, f64),
    /// Nanoseconds of the counted stages, of all threads together.
    pub thread_ns: f64,
    /// All else.
    pub result: RunResult,
}

impl Measured {
    /// Of a run of a file workload; `None` if it has no times.
    pub fn of(result: RunResult) -> Option<Measured> {
        let files = result.files.as_ref()?;
        let seconds = files.seconds_counted.filter(|seconds| *seconds > 0.0)?;
        let mb_s = (files.bytes.read + files.bytes.written) as f64 / 1e6 / seconds;
        let thread_ns = seconds * 1e9 * files.threads as f64;
        Some(Measured { mb_s, range_mb_s: (mb_s, mb_s), thread_ns, result })
    }

    /// The run with the median throughput.
    pub fn median(mut runs: Vec<Measured>) -> Option<Measured> {
        runs.sort_by(|one, other| one.mb_s.total_cmp(&other.mb_s));
        let range_mb_s = (runs.first()?.mb_s, runs.last()?.mb_s);
        let middle = (runs.len() - 1) / 2;
        Some(Measured { range_mb_s, ..runs.swap_remove(middle) })
    }

    /// A count of the file system, such as `commits`; 0 if it has none of that name.
    pub fn count(&self, name: &str) -> u64 {
        self.result.translation.events.get(name).copied().unwrap_or(0)
    }

    /// MB of block images that the journal took.
    pub fn logged_mb(&self) -> f64 {
        self.count("blocks logged") as f64 * 4096.0 / 1e6
    }

    /// The share of the threads' time in calls of a class, such as `fsync`.
    pub fn time_in(&self, class: &str) -> f64 {
        let Some(latencies) = &self.result.latency_ns else { return 0.0 };
        let calls = match class {
            "read" => latencies.read.as_ref(),
            "write" => latencies.write.as_ref(),
            class => latencies.others.get(class),
        };
        calls.map_or(0.0, |calls| calls.mean * calls.count as f64 / self.thread_ns)
    }

    /// The mean nanoseconds of an fsync.
    pub fn fsync_ns(&self) -> Option<f64> {
        Some(self.result.latency_ns.as_ref()?.others.get("fsync")?.mean)
    }

    /// Its limits, by its counts.
    pub fn limits(&self) -> String {
        let percent = |class: &str| format!("{:.0} % in {class}", 100.0 * self.time_in(class));
        let shares = ["fsync", "write", "create", "open", "unlink"].map(percent).join(", ");
        let rooms = self.count("commits that waited for room in the log");
        format!(
            "{shares} of the threads' time; {} commits, {} flushes, {rooms} waits for room, {:.0} MB journalled",
            self.count("commits"),
            self.count("flushes"),
            self.logged_mb()
        )
    }
}
