//! File workloads in simulated threads: overlapping of calls, and runs that end early.

use crate::hooked::Hooked;
use crate::model::{Model, SMALL, workload};
use crate::runs::found;
use flashpath::fs::FileSystem;
use flashpath::fs::directory::Directory;
use flashpath::run::{FileRun, FilesRun, Part, Progress, RunError, RunFault, Threads, ThreadsFault, run_files};
use flashpath::task::{Costs, Gate, Task};
use flashpath::time::Time;
use std::cell::Cell;
use tempfile::TempDir;

const FREE: Costs = Costs::none();

/// A directory with a hook before each call, and its place.
fn hooked(hook: impl Fn(&Task<'_>, &'static str) + Send + Sync) -> (impl FileSystem, TempDir) {
    let place = TempDir::new().unwrap();
    let files = Directory::open(place.path()).unwrap();
    let hook = move |task: &Task<'_>, call, _| {
        hook(task, call);
        Ok(())
    };
    (Hooked::new(files, hook), place)
}

fn simulate<F: FileSystem>(
    files: &F,
    text: &str,
    limit: Option<u64>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> FilesRun {
    let threads = Threads::Simulated { begin: Time(1000), costs: &FREE };
    let run = FileRun { limit, part: Part::Whole, threads, log: None, stored: None, begin_counting: &|_| {} };
    run_files(files, workload(text, 3), &run, watch)
}

#[test]
fn simulated_threads_leave_the_models_files_byte_for_byte() {
    for text in SMALL {
        let (files, place) = hooked(|task: &Task<'_>, _| task.wait_until(task.now() + 10));
        let outcome = simulate(&files, text, None, &mut |_| true);
        assert!(outcome.failure.is_none() && !outcome.interrupted, "{text}: {:?}", outcome.failure);
        let model = Model::with_bytes(workload(text, 3), true);
        let (directories, bytes) = found(place.path());
        assert_eq!(directories, model.directories, "{text}");
        assert!(bytes == model.bytes, "{text}: the bytes differ");
    }
}

/// Each call takes 10 us. Behind one gate, the counted stage takes that for each call of all threads; without a gate,
/// for each call of the busiest thread.
#[test]
fn threads_overlap_except_behind_gates() {
    let text = "varmail:files=64,threads=16,loops=1600";
    let seconds = |gate: Option<Gate<()>>| {
        let (files, _place) = hooked(move |task: &Task<'_>, _| {
            let _inside = gate.as_ref().map(|gate| gate.enter(task));
            task.wait_until(task.now() + 10_000);
        });
        let result = simulate(&files, text, None, &mut |_| true);
        assert!((1600 * 13 - 10..=1600 * 13).contains(&result.workload.requests));
        (result.seconds, result.latency_ns["fsync"].p50, result.latency_ns["fsync"].max)
    };
    let (serial, alone) = (seconds(Some(Gate::new("one", ()))), seconds(None));
    // Reads and writes of no bytes are not calls: their number is unknown from outside, but equal in both runs.
    assert!((15.9..=16.0).contains(&(serial.0 / alone.0)), "{serial:?} {alone:?}");
    assert_eq!((alone.1, alone.2), (10_000, 10_000), "no call waits");
    assert!(
        (155_000..=165_000).contains(&serial.1) && serial.2 <= 161_000,
        "each call waits for 15 others: {serial:?}"
    );
}

#[test]
fn the_same_seed_gives_the_same_result_and_every_number_of_threads_the_same_operations() {
    let run = |threads: u32| {
        let gate = Gate::new("one", ());
        let (files, _place) = hooked(move |task: &Task<'_>, call| {
            let _inside = gate.enter(task);
            task.wait_until(task.now() + call.len() as u64 * 1000);
        });
        let text = format!("varmail:files=64,threads={threads},loops=640");
        simulate(&files, &text, None, &mut |_| true)
    };
    for threads in [1, 2, 7, 16] {
        let result = run(threads);
        assert_eq!(format!("{result:?}"), format!("{:?}", run(threads)), "{threads} threads");
        let count = |class: &str| result.latency_ns[class].count;
        let counts = ["create", "unlink", "fsync", "open", "close"].map(count);
        // An append of no bytes is not an operation, and each thread draws its own lengths.
        assert_eq!(counts, [640, 640, 2 * 640, 2 * 640, 3 * 640], "{threads} threads");
        assert_eq!(result.files.as_ref().unwrap().threads, u64::from(threads));
    }
}

/// Regression: with more threads than operations in the limit, some threads have none, and the run ended before its
/// setup, as if all were done.
#[test]
fn a_limit_applies_to_the_operations_of_all_simulated_threads_together() {
    for (text, limit) in [("varmail:threads=16", 1000), ("varmail:threads=16", 5), ("compile:files=500,threads=2", 100)]
    {
        let (files, _place) = hooked(|task: &Task<'_>, _| task.wait_until(task.now() + 10));
        let outcome = simulate(&files, text, Some(limit), &mut |_| true);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!(outcome.workload.requests, limit, "{text}");
    }
}

/// Regression: the observer of a run was called every 50 ms of simulated time. If calls take no time, that was once per
/// stage, and an interrupt had no effect.
#[test]
fn an_interrupt_ends_threads_that_take_no_time() {
    let (files, _place) = hooked(|_: &Task<'_>, _| {});
    let asked = Cell::new(0);
    let outcome = simulate(&files, "varmail:files=640,threads=16,loops=100000", None, &mut |progress| {
        asked.set(asked.get() + 1);
        progress.phase != "loops" || progress.requests < 10_000
    });
    assert!(outcome.interrupted && outcome.failure.is_none(), "{:?}", outcome.failure);
    let requests = outcome.workload.requests;
    assert!((10_000..20_000).contains(&requests), "{requests}");
    assert!(asked.get() > 10, "{}", asked.get());
}

#[test]
fn a_thread_that_panics_ends_the_run_with_its_message() {
    let gate = Gate::new("volume", 0);
    let (files, _place) = hooked(move |task: &Task<'_>, call| {
        let mut calls = gate.enter(task);
        *calls += 1;
        task.wait_until(task.now() + 10);
        assert!(call != "fsync" || *calls < 2000, "call {call} is wrong");
    });
    let outcome = simulate(&files, "varmail:files=64,threads=16", None, &mut |_| true);
    let Some(RunError::Run(RunFault::Threads(ThreadsFault::Panicked { number, said }))) = outcome.failure else {
        panic!("{:?}", outcome.failure)
    };
    assert!((1..=16).contains(&number) && said == "call fsync is wrong", "{number} {said}");
    assert!(!outcome.interrupted && outcome.workload.requests > 0);
}

#[test]
fn threads_that_wait_for_each_other_end_the_run() {
    let gates = [Gate::new("left", ()), Gate::new("right", ())];
    let (files, _place) = hooked(move |task: &Task<'_>, call| {
        let (first, second) = if call == "read" { (0, 1) } else { (1, 0) };
        let _first = gates[first].enter(task);
        task.wait_until(task.now() + 10);
        let _second = gates[second].enter(task);
    });
    let error = simulate(&files, "varmail:files=64,threads=16", None, &mut |_| true).failure.unwrap().to_string();
    assert!(error.contains("wait for each other") && error.contains("the gate left, held by thread"), "{error}");
    assert!(error.contains("the gate right, held by thread"), "{error}");
}
