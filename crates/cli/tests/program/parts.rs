//! The setup and the counted part of a file workload, each in a process of its own.

use super::bench::{Bench, DRIVE};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn run(bench: &Bench, workload: &str, more: &[&str]) -> Value {
    let answer = bench.flashpath(&[&["run", workload, "--in", ".", "--json", "-"], more].concat());
    assert_eq!(answer.code, Some(0), "{workload} {more:?}: {answer:?}");
    super::bench::only_result(&answer.stdout)
}

/// All files and directories below a place, with the content of files.
fn tree(place: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![place.to_path_buf()];
    while let Some(directory) = left.pop() {
        for path in directory.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let bytes = path.is_file().then(|| std::fs::read(&path).unwrap());
            found.insert(path.strip_prefix(place).unwrap().to_path_buf(), bytes);
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

#[test]
fn two_processes_that_share_a_workload_leave_the_same_files_as_one() {
    for workload in [
        "seq_write:file=100K,threads=2",
        "rnd_write:file=1M,writes=300K,fsync-every=5,sync=on",
        "postmark:transactions=300,subdirectories=3,threads=2",
        "untar:files=100",
        "compile:files=200,threads=2",
        "varmail:files=100,threads=4,loops=60,shape=1.5",
        "tokubench:files=200,children=5,threads=3",
    ] {
        let [whole, parts] = [(); 2].map(|()| Bench::new());
        let asked = run(&whole, workload, &["--seed", "5"]);
        let setup = run(&parts, workload, &["--seed", "5", "--only", "setup"]);
        let counted = run(&parts, workload, &["--seed", "5", "--only", "counted"]);
        assert!(tree(whole.directory.path()) == tree(parts.directory.path()), "{workload}: something differs");
        assert_eq!(setup["workload"]["requests"], 0, "{workload}");
        for pointer in ["/workload", "/bytes", "/threads"] {
            assert_eq!(counted.pointer(pointer), asked.pointer(pointer), "{workload}");
        }
        assert_eq!((&setup["options"][0], &counted["options"][0]), (&"--only setup".into(), &"--only counted".into()));
    }
}

#[test]
fn a_counted_part_without_its_setup_names_the_missing_file() {
    let bench = Bench::new();
    let small = "varmail:files=50,threads=2,loops=10,prealloc=100%";
    let counted = |workload, seed| ["run", workload, "--in", ".", "--only", "counted", "--seed", seed];
    let answer = bench.refuses(&counted(small, "1"), &["varmail is missing", "--only setup of the same workload"]);
    assert_eq!(answer.stdout, "", "nothing was measured");

    run(&bench, small, &["--only", "setup"]);
    bench.refuses(&["run", small, "--in", ".", "--only", "setup"], &["holds varmail already"]);
    let before = tree(bench.directory.path());
    let more = "varmail:files=60,threads=2,loops=10,prealloc=100%";
    bench.refuses(&counted(more, "1"), &["varmail/00000050 is missing"]);
    let larger = "varmail:files=50,threads=2,loops=10,prealloc=100%,size=20K";
    bench.refuses(&counted(larger, "1"), &["varmail/00000000 has 16384 bytes, and the setup leaves 20480"]);
    bench.refuses(&counted(small, "2"), &["does not hold what the setup writes"]);
    assert!(tree(bench.directory.path()) == before, "what was refused changed nothing");

    run(&bench, small, &["--only", "counted"]);
    bench.refuses(&counted(small, "1"), &["--only setup of the same workload"]);
}

#[test]
fn parts_are_for_file_workloads_in_a_directory() {
    let bench = Bench::new();
    for (arguments, expected) in [
        (&["uniform", "--in", ".", "--size", "1M", "--only", "setup"][..], "--only is for file workloads"),
        (&["uniform", "--on", DRIVE, "--only", "setup"], "--only is for file workloads"),
        (&["varmail", "--on", "tree", "--only", "setup"], "--only is for a directory that keeps its files"),
        (&["varmail", "--only", "setup"], "neither --on nor --in is given"),
        (&["varmail", "--in", ".", "--only", "all"], "[possible values: setup, counted]"),
        (&["varmail", "--in", ".", "--only", "setup", "--limit", "9"], "--limit has no meaning with --only setup"),
    ] {
        bench.refuses(&[&["run"], arguments].concat(), &[expected]);
    }
    assert!(bench.files().is_empty(), "nothing was made");
}
