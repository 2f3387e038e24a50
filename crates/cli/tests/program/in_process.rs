//! File workloads in a volume of the program, in real time.

use super::bench::Bench;

const SMALL: &str = "varmail:files=200,size=8K,threads=4,loops=100";

/// The path, and that of the same images which `mkfs` makes.
const VOLUMES: [(&str, &str); 4] = [
    ("sfs/conv:image=s.img", "sfs/conv:image=s.img,size=64M"),
    ("ext/conv:image=e.img", "ext/conv:image=e.img,size=64M"),
    ("ext/conv:image=n.img+nvm:image=n.nvm", "ext/conv:image=n.img,size=64M+nvm:image=n.nvm,size=64M"),
    ("ext:scheme=paper/conv:image=p.img+nvm:image=p.nvm", "ext/conv:image=p.img,size=64M+nvm:image=p.nvm,size=64M"),
];

#[test]
fn a_file_workload_runs_in_real_time_and_leaves_its_files() {
    let bench = Bench::new();
    for (path, new) in VOLUMES {
        let made = bench.flashpath(&["mkfs", new]);
        assert_eq!(made.code, Some(0), "{made:?}");
        let result = bench.json(SMALL, path, &["--in-process"]);
        assert!(result["seconds_simulated"].is_null() && result["seconds_counted"].as_f64().unwrap() > 0.0, "{path}");
        assert!(result["latency_ns"]["fsync"]["p50"].as_u64().unwrap() > 0, "{path}");
        assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{path}");
        let checked = bench.flashpath(&["fsck", "-n", path]);
        assert!(checked.code == Some(0) && checked.stdout.contains("clean"), "{path}: {checked:?}");
        // The same names are there already.
        let again = bench.flashpath(&["run", SMALL, "--on", path, "--in-process"]);
        assert!(again.code != Some(0) && again.stderr.contains("holds varmail already"), "{path}: {again:?}");
    }
}

#[test]
fn only_file_workloads_on_volumes_of_this_program_run_in_process() {
    let bench = Bench::new();
    for (workload, path, expected) in [
        (SMALL, "page/nand:size=64M", "needs a file system of this program"),
        (SMALL, "kernel-ext4/conv:size=64M", "needs a file system of this program"),
        ("uniform:writes=1x", "tree", "asks for blocks"),
        (SMALL, "ext/conv:image=absent.img", "absent.img"),
    ] {
        let refused = bench.flashpath(&["run", workload, "--on", path, "--in-process"]);
        assert!(refused.code == Some(2) && refused.stderr.contains(expected), "{path}: {refused:?}");
    }
    let refused = bench.flashpath(&["run", SMALL, "--on", "tree", "--in-process", "--log", "log.csv"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("for simulated runs"), "{refused:?}");
    let refused = bench.flashpath(&["run", SMALL, "--in", ".", "--in-process"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--in-process"), "{refused:?}");
}
