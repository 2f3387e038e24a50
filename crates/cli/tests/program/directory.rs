//! Runs in a directory.

use super::bench::{Answer, Bench, DRIVE};
use super::stopped::wait_until_it_catches_interrupts;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

fn run(bench: &Bench, workload: &str, more: &[&str]) -> Value {
    let answer = bench.flashpath(&[&["run", workload, "--in", ".", "--json", "-"], more].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    super::bench::only_result(&answer.stdout)
}

#[test]
fn a_file_workload_runs_in_a_directory_and_leaves_its_files_there() {
    let bench = Bench::new();
    let result = run(&bench, "varmail:files=100,threads=2,loops=50", &["--seed", "7"]);
    for (pointer, value) in [("/path", "."), ("/workload/name", "varmail:files=100,threads=2,loops=50")] {
        assert_eq!(result.pointer(pointer).unwrap(), value);
    }
    assert_eq!((&result["seed"], &result["threads"], &result["interrupted"]), (&7.into(), &2.into(), &false.into()));
    for number in ["seconds_wall", "seconds_counted", "throughput_mib_s"] {
        assert!(result[number].as_f64().unwrap() > 0.0, "{number}");
    }
    assert!(result["workload"]["read_blocks"].as_u64().unwrap() > 0);
    assert!(result["workload"]["written_blocks"].as_u64().unwrap() > 0);
    assert_eq!(result["workload"]["rejected_lines"], 0);
    for (class, count) in [("create", 50), ("unlink", 50), ("fsync", 100), ("open", 100), ("close", 150)] {
        assert_eq!(result["latency_ns"][class]["count"], count, "{class}");
        assert!(result["latency_ns"][class]["p999"].is_u64());
    }
    assert_eq!(bench.files(), ["varmail"]);
    assert!(bench.path("varmail").read_dir().unwrap().count() > 60);
}

/// A run in a directory had a result of another form, without a ledger; on a path the stages and most latencies were missing.
#[test]
fn a_file_workload_has_one_form_of_result_wherever_it_runs() {
    let bench = Bench::new();
    let workload = "varmail:files=100,threads=2,loops=50";
    let directory = run(&bench, workload, &[]);
    let volume = bench.json(workload, "sfs:segment=1M/conv:size=256M", &[]);
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().unwrap().keys().filter(|key| *key != "cpu").cloned().collect()
    };
    assert_eq!(keys(&directory), keys(&volume));
    assert_eq!(keys(&directory["latency_ns"]), keys(&volume["latency_ns"]));
    for field in ["threads", "bytes"] {
        assert_eq!(directory[field], volume[field], "{field}");
    }
    assert_eq!(directory["workload"], volume["workload"]);
    assert_eq!(directory["ledger"][0], volume["ledger"][0], "what the workload wrote");
    assert_eq!((directory["ledger"].as_array().unwrap().len(), &directory["media"]), (1, &serde_json::json!([])));
    assert!(directory["write_amplification"]["total"].is_null(), "nothing is known of what lies below");
    let answer = bench.flashpath(&["run", workload, "--on", "tree"]);
    for expected in ["stage", "loops", "fsync", "per second"] {
        assert!(answer.stdout.contains(expected), "{expected}: {}", answer.stdout);
    }
}

#[test]
fn the_table_has_the_stages_and_a_row_for_each_operation() {
    let bench = Bench::new();
    let answer = bench.flashpath(&["run", "tokubench:files=200,children=10", "--in", ".", "--json", "r.json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for expected in ["workload tokubench:files=200,children=10, seed 1", "directories", "create", "per second", "p99.9"]
    {
        assert!(answer.stdout.contains(expected), "{expected}: {}", answer.stdout);
    }
    let json = bench.result("r.json");
    assert_eq!(json["latency_ns"]["create"]["count"], 200);
    assert_eq!(bench.files(), ["r.json", "tokubench"]);
}

/// A report of a directory was refused, though it has operations, latencies and a throughput to show.
#[test]
fn a_run_in_a_directory_has_a_report_of_its_operations() {
    let bench = Bench::new();
    let arguments = ["run", "varmail:files=50,threads=2,loops=20", "--in", ".", "--report", "r.html"];
    let answer = bench.flashpath(&arguments);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let page = std::fs::read_to_string(bench.path("r.html")).unwrap();
    let body = &page[page.find("<main>").unwrap()..page.find("</main>").unwrap()];
    for shown in ["Operations on files", ">fsync<", ">loops<", "throughput", "per second", "MiB/s"] {
        assert!(body.contains(shown), "{shown}: {body}");
    }
    for unknown in ["Write path", "erase", "amplification", "pages programmed", "device of", "--on"] {
        assert!(!body.contains(unknown), "{unknown}: {body}");
    }
    assert!(body.contains("--in ."), "{body}");
}

#[test]
fn block_workloads_run_inside_one_file_of_the_given_size() {
    for (workload, name, text, more) in [
        ("zipf:theta=1.0,writes=2x", "", String::new(), &["--fsync-every", "16"][..]),
        (
            "fio:j.fio",
            "j.fio",
            "[a]\nrw=randrw\nbs=4k\nsize=1m\nfsync=8\nioengine=libaio\niodepth=8\n".to_string(),
            &["--fill"],
        ),
        ("t.csv", "t.csv", String::new(), &["--addresses", "scale", "--repeat", "2"]),
    ] {
        let bench = Bench::new();
        match name {
            "t.csv" => bench.write_trace("t.csv", 300),
            "" => {}
            name => bench.write(name, text),
        }
        let result = run(&bench, workload, &[&["--size", "2M"], more].concat());
        assert_eq!(bench.path("flashpath.disk").metadata().unwrap().len(), 2 << 20);
        assert!(result["latency_ns"]["write"]["count"].as_u64().unwrap() > 100, "{workload}: {result}");
        let options: Vec<&str> = result["options"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        assert!(options.contains(&"--size 2M"), "{options:?}");
        let warns = result["warnings"].to_string().contains("queue depth is 8");
        assert_eq!(warns, name == "j.fio", "{result}");
    }
}

#[test]
fn a_limit_holds_in_a_directory_too() {
    let bench = Bench::new();
    let result = run(&bench, "untar:files=1000", &["--limit", "100"]);
    assert_eq!(result["workload"]["requests"], 100);
}

#[test]
fn a_second_run_in_the_same_directory_is_refused() {
    let bench = Bench::new();
    run(&bench, "untar:files=10", &[]);
    let answer = bench.refuses(&["run", "untar:files=10", "--in", "."], &["holds untar already", "remove it"]);
    assert_eq!(answer.stdout, "", "nothing was measured");
    run(&bench, "uniform:writes=64K", &["--size", "1M"]);
    bench.refuses(&["run", "uniform", "--in", ".", "--size", "1M"], &["holds flashpath.disk already"]);
}

#[test]
fn conflicting_options_are_refused_with_a_remedy() {
    let bench = Bench::new();
    for (arguments, expected) in [
        (&["varmail", "--on", DRIVE][..], &["no file system on top", "use --in DIR"][..]),
        (&["varmail"], &["neither --on nor --in is given", "--in DIR"]),
        (&["varmail", "--on", DRIVE, "--in", "."], &["cannot be used with"]),
        (&["varmail", "--in", "nowhere"], &["nowhere", "make the directory"]),
        (&["varmail:file=3", "--in", "."], &["did you mean files?"]),
        (&["varmail:files=1", "--in", "."], &["16 threads cannot share 1 files"]),
        (&["varmail", "--in", ".", "--size", "1G"], &["--size is for block workloads"]),
        (&["seq_write", "--in", ".", "--fsync-every", "3"], &["have an option fsync-every="]),
        (&["untar", "--in", ".", "--fill"], &["--fill is for block workloads"]),
        (&["uniform", "--in", "."], &["--in needs the size of its disk", "--size 1G"]),
        (&["uniform", "--in", ".", "--size", "3"], &["a size from 4K"]),
        (&["uniform", "--on", DRIVE, "--size", "1G"], &["--size is for files", "use --in DIR"]),
        (&["uniform", "--in", ".", "--size", "1G", "--verify"], &["--verify is for simulated runs"]),
        (&["uniform", "--in", ".", "--size", "1G", "--timed"], &["--timed is for simulated runs"]),
        (&["uniform", "--in", ".", "--size", "1G", "--utilization", "50%"], &["--utilization is for simulated runs"]),
        (&["varmail", "--in", ".", "--cpu", "off"], &["--cpu is for simulated runs"]),
        (&["varmail", "--in", ".", "--precondition", "1M"], &["--precondition is for simulated runs"]),
        (&["sh:true", "--in", "."], &["needs a path with a kernel file system"]),
    ] {
        bench.refuses(&[&["run"], arguments].concat(), expected);
    }
    assert!(bench.files().is_empty(), "nothing was made");
}

#[test]
fn a_disk_that_the_file_system_cannot_hold_is_an_error_that_names_it() {
    // No test machine has a petabyte.
    let bench = Bench::new();
    let answer = bench.flashpath(&["run", "uniform", "--in", ".", "--size", "1P"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("cannot preallocate ./flashpath.disk"), "{answer:?}");
}

#[test]
fn an_interrupt_ends_a_run_in_a_directory_with_its_results_so_far() {
    let bench = Bench::new();
    let endless = ["run", "varmail:loops=1000000000", "--in", ".", "--json", "r.json"];
    let child = bench.command(&endless).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_it_catches_interrupts(child.id());
    // The setup is short; the counted part is long.
    while bench.path("varmail").read_dir().map_or(0, Iterator::count) < 700 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stdout.contains("was interrupted") && answer.stdout.contains("fsync"), "{answer:?}");
    let json = bench.result("r.json");
    assert_eq!(json["interrupted"], true);
    assert!(json["latency_ns"]["fsync"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn layers_lists_the_file_workloads() {
    let bench = Bench::new();
    let all = bench.flashpath(&["layers"]).stdout;
    for expected in ["varmail (file workload)", "transactions=500", "with --in DIR", "headers-read=100"] {
        assert!(all.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected), "{expected}");
    }
    let one = bench.flashpath(&["layers", "postmark"]).stdout;
    assert!(one.starts_with("postmark ") && one.contains("create-bias=5") && !one.contains("tokubench"));
}
