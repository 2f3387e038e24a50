//! Runs a path and measures this thread's CPU time.

use crate::taking::SEED;
use flashpath::expression::{Amount, parse_term};
use flashpath::run::{Fill, Options, Path, Replay, prepare};
use flashpath::workload::Workload;
use flashpath::workload::generator::generator;

/// CPU seconds used by this thread.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident bytes of this process.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).map_or(f64::NAN, |pages| pages * 4096.0)
}

/// A generator for a device of this size.
pub fn generated(expression: &str, device_bytes: u64) -> Box<dyn Workload> {
    generator(&parse_term(expression).expect("a workload"), device_bytes, SEED).expect("a generator")
}

/// The cost of the counted part of a run, without the fill and the preconditioning.
#[derive(Clone, Copy)]
pub struct Measured {
    /// Host writes per second of CPU, the generator included.
    pub writes_per_second: f64,
    /// Nanoseconds of CPU per programmed page, of any cause.
    pub ns_per_program: f64,
    /// Pages programmed over pages written.
    pub amplification: f64,
    /// Memory of the filled drive over its flash pages.
    pub bytes_per_page: f64,
}

/// Runs `workload` for the path's size; counts after `precondition` devices of writes.
pub fn measured(path: &str, workload: &dyn Fn(u64) -> Box<dyn Workload>, precondition: Option<f64>) -> Measured {
    let path = Path::read(path).expect("a path");
    let prepared = prepare(&path, SEED).expect("a drive");
    let mut workload = workload(prepared.exported_bytes());
    let precondition = precondition.map(Amount::Times);
    let replay = Replay::Closed { depth: 32 };
    let options = Options { seed: SEED, fill: Fill::ALL, replay, precondition, ..Options::default() };
    let resident = resident_bytes();
    let (mut started, mut filled) = (None, 0.0f64);
    let outcome = prepared.run(workload.as_mut(), &options, &mut |progress| {
        if progress.phase == "running" && started.is_none() {
            filled = resident_bytes();
            started = Some((cpu_seconds(), progress.requests));
        }
        true
    });
    let (started, before) = started.expect("it ran");
    let seconds = cpu_seconds() - started;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let result = outcome.result;
    let (requests, amplification) = (result.workload.requests, result.write_amplification);
    // The first batch ended before the clock was read.
    let share = (requests - before) as f64 / requests as f64;
    Measured {
        writes_per_second: requests as f64 * share / seconds,
        ns_per_program: seconds * 1e9 / (result.flash.programmed_pages as f64 * share),
        amplification: amplification.total.unwrap_or(f64::NAN),
        bytes_per_page: (filled - resident) / path.drive().expect("a drive").nand.geometry.pages() as f64,
    }
}
