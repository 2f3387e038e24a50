//! The state of a directory after a run, and the end of a run when the directory fails or its user interrupts.

use crate::hooked::Hooked;
use crate::model::{Model, SMALL, workload};
use flashpath::expression::parse_term;
use flashpath::fs::FileSystem;
use flashpath::fs::directory::Directory;
use flashpath::run::{
    DISK_FILE, DiskFile, FileRun, FilesRun, InputFault, Part, RunError, RunFault, Threads, run_files,
};
use flashpath::task::Task;
use flashpath::workload::files::FileWorkload;
use flashpath::workload::generator::generator;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

fn run<F: FileSystem>(files: &F, workload: FileWorkload, limit: Option<u64>, goes_on: bool) -> FilesRun {
    run_part(files, workload, Part::Whole, limit, goes_on)
}

pub fn run_part<F: FileSystem>(
    files: &F,
    workload: FileWorkload,
    part: Part,
    limit: Option<u64>,
    goes_on: bool,
) -> FilesRun {
    // Each look at the clock advances it by a microsecond.
    let time = AtomicU64::new(0);
    let clock = || time.fetch_add(1000, Ordering::Relaxed);
    let options =
        FileRun { limit, part, log: None, stored: None, begin_counting: &|_| {}, threads: Threads::System(&clock) };
    run_files(files, workload, &options, &mut |_| goes_on)
}

/// The contents of a directory, below its root.
pub fn found(place: &Path) -> (BTreeSet<String>, BTreeMap<String, Vec<u8>>) {
    let (mut directories, mut files) = (BTreeSet::new(), BTreeMap::new());
    let mut left = vec![place.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in directory.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(place).unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                directories.insert(name);
                left.push(path);
            } else {
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    (directories, files)
}

#[test]
fn a_run_leaves_the_models_files_byte_for_byte() {
    for text in SMALL {
        let place = TempDir::new().unwrap();
        let outcome = run(&Directory::open(place.path()).unwrap(), workload(text, 3), None, true);
        assert!(outcome.failure.is_none() && !outcome.interrupted, "{text}: {:?}", outcome.failure);
        let model = Model::with_bytes(workload(text, 3), true);
        let (directories, files) = found(place.path());
        assert_eq!(directories, model.directories, "{text}");
        assert!(files == model.bytes, "{text}: the bytes differ");
    }
}

#[test]
fn a_run_counts_the_operations_of_the_counted_stages() {
    for text in SMALL {
        let place = TempDir::new().unwrap();
        let outcome = run(&Directory::open(place.path()).unwrap(), workload(text, 3), None, true);
        let (stages, model) = (workload(text, 3).stages, Model::of(workload(text, 3)));
        let counted = || (0..stages.len()).filter(|stage| stages[*stage].counted);
        let (result, files) = (&outcome, outcome.files.as_ref().unwrap());
        assert_eq!(
            result.workload.requests as usize,
            counted().map(|stage| model.asked[stage].len()).sum::<usize>(),
            "{text}"
        );
        assert_eq!(files.bytes.written, counted().map(|stage| model.written(stage)).sum::<u64>(), "{text}");
        assert_eq!(
            result.workload.requests,
            result.latency_ns.values().map(|class| class.count).sum::<u64>(),
            "{text}"
        );
        let counts: Vec<u64> = files.stages.iter().map(|stage| stage.requests).collect();
        assert_eq!(counts, model.asked.iter().map(|asked| asked.len() as u64).collect::<Vec<_>>(), "{text}");
        let seconds =
            files.stages.iter().filter(|stage| stage.counted).map(|stage| stage.seconds.unwrap()).sum::<f64>();
        assert!(result.seconds > 0.0 && result.seconds == seconds && files.seconds_counted == Some(seconds));
    }
}

#[test]
fn a_block_workload_runs_in_one_file() {
    let size = 1 << 20;
    let disk = |text: &str, fill: bool| {
        let blocks = generator(&parse_term(text).unwrap(), size, 5).unwrap();
        DiskFile { size_bytes: size, fill: fill.into(), fsync_every: Some(10) }.workload(blocks, 5)
    };
    for (text, fill) in [("zipf:theta=1.0,writes=2x,reads=20%,discards=10%", true), ("uniform:writes=300K", false)] {
        let place = TempDir::new().unwrap();
        let outcome = run(&Directory::open(place.path()).unwrap(), disk(text, fill), None, true);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        let model = Model::with_bytes(disk(text, fill), true);
        let (_, files) = found(place.path());
        assert_eq!(files.keys().collect::<Vec<_>>(), [DISK_FILE]);
        assert!(files == model.bytes, "{text}: the bytes differ");
        let (writes, fsyncs) = (outcome.latency_ns["write"].count, outcome.latency_ns["fsync"].count);
        assert_eq!(fsyncs, writes / 10);
        assert_eq!(outcome.workload.written_blocks, writes);
    }
}

#[test]
fn a_limit_applies_to_the_operations_of_all_lanes_together() {
    for (text, limit) in [("varmail:threads=3", 1000), ("compile:files=500,threads=2", 100), ("untar:files=10", 7)] {
        let place = TempDir::new().unwrap();
        let outcome = run(&Directory::open(place.path()).unwrap(), workload(text, 1), Some(limit), true);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!(outcome.workload.requests, limit, "{text}");
    }
}

#[test]
fn an_interrupted_run_is_reported_as_such_and_is_no_failure() {
    let place = TempDir::new().unwrap();
    let outcome = run(&Directory::open(place.path()).unwrap(), workload("varmail", 1), None, false);
    assert!(outcome.interrupted && outcome.failure.is_none());
    assert!(outcome.files.as_ref().unwrap().stages.len() < 3);
}

#[test]
fn a_directory_that_holds_the_workload_is_refused_and_unchanged() {
    for text in ["varmail", "tokubench:files=10", "untar:files=10"] {
        let place = TempDir::new().unwrap();
        let root = place.path().join(text.split(':').next().unwrap());
        std::fs::write(&root, "mine").unwrap();
        let outcome = run(&Directory::open(place.path()).unwrap(), workload(text, 1), None, true);
        assert!(matches!(outcome.failure, Some(RunError::Input(InputFault::Occupied(_)))), "{:?}", outcome.failure);
        assert_eq!(std::fs::read_to_string(root).unwrap(), "mine");
    }
}

/// A directory that is full after `space` written bytes.
fn with_space(place: &TempDir, space: u64) -> impl FileSystem {
    let space = AtomicU64::new(space);
    Hooked::new(Directory::open(place.path()).unwrap(), move |_: &Task<'_>, _, bytes| {
        let take = |space: u64| space.checked_sub(bytes);
        let taken = space.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|_| std::io::ErrorKind::StorageFull.into())
    })
}

#[test]
fn a_full_disk_ends_all_lanes_and_the_measurements_are_kept() {
    let place = TempDir::new().unwrap();
    let files = with_space(&place, 20 << 20);
    let outcome = run(&files, workload("varmail:threads=4,loops=100000", 1), None, true);
    let Some(RunError::Run(RunFault::InThread { number, fault })) = outcome.failure else {
        panic!("{:?}", outcome.failure)
    };
    assert!((1..=4).contains(&number) && matches!(*fault, RunFault::Full(_)), "{number}: {fault}");
    assert!(fault.to_string().contains("cannot write somewhere"), "{fault}");
    assert!(!outcome.interrupted && outcome.workload.requests > 0);
}

#[test]
fn a_truncated_file_is_detected_by_a_read() {
    let place = TempDir::new().unwrap();
    let mut files = Hooked::new(Directory::open(place.path()).unwrap(), |_: &Task<'_>, _, _| Ok(()));
    files.lost_bytes = 1;
    let outcome = run(&files, workload("varmail:threads=1", 1), None, true);
    let Some(RunError::Run(RunFault::Short { path, found, expected })) = outcome.failure else {
        panic!("{:?}", outcome.failure)
    };
    assert!(path.starts_with("varmail/") && found + 1 == expected, "{path} {found} {expected}");
}
