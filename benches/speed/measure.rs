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
    in_slices(path, workload, precondition, u64::MAX, &mut || {}).0
}

/// The same in slices of some `slice` requests. `between` runs after each of them, and is not counted: what is compared runs
/// there, under the same load of the machine. Also returns the requests per CPU-second of each whole slice.
pub fn in_slices(
    path: &str,
    workload: &dyn Fn(u64) -> Box<dyn Workload>,
    precondition: Option<f64>,
    slice: u64,
    between: &mut dyn FnMut(),
) -> (Measured, Vec<f64>) {
    let path = Path::read(path).expect("a path");
    let prepared = prepare(&path, SEED).expect("a drive");
    let mut workload = workload(prepared.exported_bytes());
    let precondition = precondition.map(Amount::Times);
    let replay = Replay::Closed { depth: 32 };
    let options = Options { seed: SEED, fill: Fill::ALL, replay, precondition, ..Options::default() };
    let resident = resident_bytes();
    // The first batch has ended before the clock is read.
    let (mut first, mut filled) = (None, 0.0f64);
    let (mut started, mut from, mut seconds) = (0.0, 0, 0.0);
    let mut slices = Vec::new();
    let outcome = prepared.run(workload.as_mut(), &options, &mut |progress| {
        if progress.phase != "running" {
            return true;
        }
        if first.is_none() {
            filled = resident_bytes();
            (first, from, started) = (Some(progress.requests), progress.requests, cpu_seconds());
        } else if progress.requests - from >= slice {
            let took = cpu_seconds() - started;
            slices.push((progress.requests - from) as f64 / took);
            seconds += took;
            between();
            (from, started) = (progress.requests, cpu_seconds());
        }
        true
    });
    seconds += cpu_seconds() - started;
    let first = first.expect("it ran");
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let result = outcome.result;
    let (requests, amplification) = (result.workload.requests, result.write_amplification);
    let share = (requests - first) as f64 / requests as f64;
    let measured = Measured {
        writes_per_second: requests as f64 * share / seconds,
        ns_per_program: seconds * 1e9 / (result.flash.programmed_pages as f64 * share),
        amplification: amplification.total.unwrap_or(f64::NAN),
        bytes_per_page: (filled - resident) / path.drive().expect("a drive").nand.geometry.pages() as f64,
    };
    (measured, slices)
}
