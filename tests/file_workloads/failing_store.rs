//! File workloads with threads in a volume of sfs whose store fails: in simulated threads and in threads of the system.

use crate::failing_disk::{FailingDisk, Fault, Operation};
use crate::model::workload;
use flashpath::device::Medium;
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::expression::parse_term;
use flashpath::fs::in_process::InProcess;
use flashpath::fs::sfs::SfsSettings;
use flashpath::fs::station::{Mounting, VolumeSettings};
use flashpath::run::{FileRun, FilesRun, Part, RunError, RunFault, Threads, run_files};
use flashpath::task::Costs;
use flashpath::time::Time;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};

const BYTES: usize = 64 << 20;

/// A volume with its files, and its disk.
fn files() -> (InProcess, FailingDisk) {
    let disk = FailingDisk::holding(vec![0; BYTES]);
    let settings = ConvSettings::read(&parse_term("conv:image=unused,timing=off").unwrap()).unwrap();
    let device = Conventional::open_on(Box::new(disk.clone()), &settings).unwrap();
    let settings = SfsSettings::read(&parse_term("sfs:segment=256K").unwrap()).unwrap();
    let volume = settings.create(vec![Medium::Blocks(Box::new(device))], &Mounting::at(1, 0)).unwrap();
    (InProcess::new(volume), disk)
}

fn run(files: &InProcess, text: &str, threads: Threads<'_>) -> FilesRun {
    let run = FileRun { limit: None, part: Part::Whole, threads, log: None, stored: None, begin_counting: &|_| {} };
    run_files(files, workload(text, 3), &run, &mut |_| true)
}

/// Regression: the error did not name the failed thread, and so not the owner of the file.
#[test]
fn a_store_that_fails_ends_all_threads_and_the_error_names_operation_and_thread() {
    let time = AtomicU64::new(0);
    let clock = || time.fetch_add(1000, Ordering::Relaxed);
    let costs = Costs::none();
    let text = "varmail:files=64,threads=8,loops=4000";
    for operation in [Operation::Write, Operation::Sync] {
        for lasts in [false, true] {
            for is_simulated in [false, true] {
                let (files, disk) = files();
                disk.fail(Some(Fault { operation, after: 40, error: Errno::IO, lasts }), 1);
                let outcome = run(
                    &files,
                    text,
                    match is_simulated {
                        true => Threads::Simulated { begin: Time::ZERO, costs: &costs },
                        false => Threads::System(&clock),
                    },
                );
                let case = format!("{operation:?}, lasts: {lasts}, simulated: {is_simulated}");
                assert!(disk.has_failed(), "{case}");
                let Some(RunError::Run(RunFault::InThread { number, fault })) = &outcome.failure else {
                    panic!("{case}: {:?}", outcome.failure)
                };
                assert!((1..=8).contains(number), "{case}: {number}");
                let RunFault::FileSystem(error) = &**fault else { panic!("{case}: {fault}") };
                assert!(error.path.starts_with("varmail/"), "{case}: {error}");
                let said = outcome.failure.as_ref().unwrap().to_string();
                assert!(said.starts_with(&format!("thread {number}: cannot {}", error.operation)), "{case}: {said}");
                assert!(!outcome.interrupted, "{case}: a failure is not an interrupt");
                let requests: u64 = outcome.files.as_ref().unwrap().stages.iter().map(|stage| stage.requests).sum();
                assert!(requests < 10_000, "{case}: {requests} of more than 50,000 operations");
            }
        }
    }
}

#[test]
fn the_error_of_a_single_thread_names_no_thread() {
    let (files, disk) = files();
    disk.fail(Some(Fault { operation: Operation::Write, after: 40, error: Errno::IO, lasts: true }), 1);
    let costs = Costs::none();
    let threads = Threads::Simulated { begin: Time::ZERO, costs: &costs };
    let outcome = run(&files, "varmail:files=64,threads=1,loops=4000", threads);
    assert!(matches!(outcome.failure, Some(RunError::Run(RunFault::FileSystem(_)))), "{:?}", outcome.failure);
}
