//! File workloads with threads in a volume: simulated threads, and their CPU time.

use super::bench::{Answer, Bench};
use super::stopped::wait_until_it_catches_interrupts;
use flashpath::task::Step;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

const MAIL: &str = "varmail:files=400,size=8K,threads=16,loops=400";

fn without_wall(mut result: Value) -> Value {
    result.as_object_mut().unwrap().remove("seconds_wall").unwrap();
    result
}

#[test]
fn sixteen_threads_come_out_the_same_each_time_on_every_kind_of_device() {
    for device in [
        "conv:size=256M",
        "conv:size=256M,timing=off",
        "page/nand:size=256M",
        "page/nand:size=256M,timing=off",
        "zns:size=256M,zone=4M",
        "dm-zoned/conv:size=64M+zns:size=512M,zone=16M",
        "cache:size=8M/conv:size=256M",
    ] {
        let run = || {
            without_wall(Bench::new().json(
                MAIL,
                &format!("{}/{device}", if device.starts_with("zns") { "sfs" } else { "sfs:segment=1M" }),
                &["--seed", "7"],
            ))
        };
        let result = run();
        assert_eq!(result, run(), "{device}");
        // An append of no bytes is no operation.
        let requests = result["workload"]["requests"].as_u64().unwrap();
        assert!((400 * 13 - 10..=400 * 13).contains(&requests), "{device}: {requests}");
        assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{device}");
        let is_timed = !device.ends_with("off");
        assert_eq!(result["seconds_simulated"].as_f64().is_some_and(|seconds| seconds > 0.0), is_timed, "{device}");
        assert_eq!(result["latency_ns"]["read"].is_object(), is_timed, "{device}");
        // Several threads and one volume behind one gate.
        let counted = result["stages"].as_array().unwrap().iter().find(|stage| stage["counted"] == true).unwrap();
        let gates = counted["gate_waits"].as_array().unwrap();
        assert_eq!(gates.iter().any(|gate| gate["seconds"].as_f64().unwrap() > 0.0), is_timed, "{device}: {gates:?}");
    }
}

/// Regression: with 64 threads, all room of a region was reserved by handles that had not ended, and who needed some waited
/// without letting them go on.
#[test]
fn many_threads_share_a_small_region_of_memory() {
    for scheme in ["helping", "paper"] {
        let path = format!("ext:scheme={scheme}/conv:size=512M,read=1ns,write=1ns+nvm:size=32M");
        let result = Bench::new().json("tokubench:files=4000,iosize=4K,threads=64", &path, &[]);
        assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{scheme}");
    }
}

#[test]
fn the_result_says_which_table_of_cpu_time_counted_and_more_of_it_takes_longer() {
    let path = "sfs:segment=1M/conv:size=256M";
    let run = |more: &[&str]| {
        let bench = Bench::new();
        bench.write("table.json", table(5000));
        without_wall(bench.json("varmail:files=100,threads=1,loops=100", path, more))
    };
    let seconds = |result: &Value| result["seconds_simulated"].as_f64().unwrap();
    let (default, off, written) = (run(&[]), run(&["--cpu", "off"]), run(&["--cpu", "call=5000"]));
    let file = run(&["--cpu", "table.json"]);
    assert!(default["cpu"]["table"].as_str().unwrap().starts_with("the program's own: "), "{}", default["cpu"]);
    assert!(default["cpu"]["ns"].as_object().unwrap().values().all(|ns| ns.as_u64().unwrap() > 0));
    assert_eq!(off["cpu"]["table"], "off");
    assert!(off["cpu"]["ns"].as_object().unwrap().values().all(|ns| ns == 0));
    assert!(written["cpu"]["table"].as_str().unwrap().ends_with("but for call=5000"), "{}", written["cpu"]);
    assert_eq!(file["cpu"]["table"], "table.json: a test");
    assert!(seconds(&off) < seconds(&default) && seconds(&default) < seconds(&written), "{off} {default} {written}");
    assert!(seconds(&written) < seconds(&file), "all steps cost 5 us there");
    // What is left out cannot be what differs: the options repeat the run.
    let options = |result: &Value| {
        result["options"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().contains("--cpu"))
    };
    assert_eq!([&default, &off, &written, &file].map(options), [false, true, true, true]);
    let again =
        file["options"].as_array().unwrap().iter().find_map(|text| text.as_str()?.strip_prefix("--cpu ")).unwrap();
    assert_eq!(seconds(&run(&["--cpu", again])), seconds(&file));
    // Counters are those of the calls: a thread alone makes the same.
    assert_eq!(default["workload"], off["workload"]);
}

fn table(ns: u64) -> String {
    let steps: Vec<String> = Step::NAMES.iter().map(|(step, _)| format!("\"{step}\":{{\"ns\":{ns}}}")).collect();
    format!("{{\"machine\":\"a test\",\"steps\":{{{}}}}}", steps.join(","))
}

/// Calls of tree took no CPU time, whatever the table said, so that it could not be compared with sfs.
#[test]
fn a_file_workload_on_tree_takes_the_cpu_time_of_its_calls_and_no_other() {
    let run = |more: &[&str]| without_wall(Bench::new().json("varmail:files=100,threads=4,loops=100", "tree", more));
    let default = run(&[]);
    assert!(default["seconds_simulated"].as_f64().unwrap() > 0.0, "{default}");
    assert!(default["latency_ns"]["read"]["p50"].as_u64().unwrap() > 0, "{default}");
    let without_storage = run(&["--cpu", "log-record=0,log-written=0,block-summed=0"]);
    assert_eq!(default["seconds_simulated"], without_storage["seconds_simulated"], "it stores nothing");
    let off = run(&["--cpu", "off"]);
    assert!(off["seconds_simulated"].is_null() && off["latency_ns"].is_null(), "no time passes: {off}");
    assert_eq!(default["workload"], off["workload"]);
}

/// A change of names was charged with a whole fsync: 6.1 us, more than all of its other steps together.
#[test]
fn a_change_of_names_costs_much_less_than_an_fsync() {
    let seconds = |cpu: &str| {
        let path = "sfs:segment=1M/conv:size=256M,timing=on";
        let result = Bench::new().json("tokubench:files=2000,iosize=1,count=0", path, &["--cpu", cpu]);
        result["seconds_simulated"].as_f64().unwrap()
    };
    assert!(seconds("log-written=1000000") < 1.01 * seconds("log-written=0"), "no file is synced");
    assert!(seconds("log-record=1000000") > 2.0 * seconds("log-record=0"), "each file is given a name");
}

#[test]
fn a_table_that_is_none_or_does_not_apply_is_refused() {
    let bench = Bench::new();
    bench.write("broken.json", "{}");
    for (workload, path, table, said) in [
        (MAIL, "sfs/conv:size=256M", "nosuch", "no step=nanoseconds"),
        (MAIL, "sfs/conv:size=256M", "cull=1", "there is no step cull"),
        (MAIL, "sfs/conv:size=256M", "broken.json", "it has no steps"),
        ("uniform:writes=1M", "sfs/conv:size=256M", "off", "--cpu is for file workloads"),
        ("uniform:writes=1M", "page/nand:size=256M", "off", "--cpu is for file workloads"),
        (MAIL, "kernel-ext4/conv:size=256M", "off", "--cpu is for simulated runs"),
    ] {
        let answer = bench.flashpath(&["run", workload, "--on", path, "--cpu", table]);
        assert!(answer.stderr.contains(said), "{table}: {answer:?}");
        assert_eq!(answer.code, Some(2), "{table}");
    }
    let answer = bench.flashpath(&["run", "varmail", "--in", ".", "--cpu", "off"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("--cpu is for simulated runs"), "{answer:?}");
}

#[test]
fn a_block_workload_in_a_volume_says_that_no_cpu_time_counts_and_a_drive_says_nothing() {
    let bench = Bench::new();
    let volume = bench.json("uniform:writes=1M", "sfs:segment=1M/conv:size=256M", &["--size", "16M"]);
    assert_eq!(volume["cpu"]["table"], "off");
    assert!(bench.json("uniform:writes=1M", "page/nand:size=256M", &[]).get("cpu").is_none());
}

#[test]
fn sixteen_threads_in_a_volume_that_fills_or_on_a_drive_that_wears_out_say_so() {
    let bench = Bench::new();
    for (workload, path, said) in [
        (
            "varmail:files=2000,threads=16,prealloc=10%,loops=100000,append=256K",
            "sfs:segment=1M/conv:size=64M",
            "the file system is full",
        ),
        ("varmail:files=4000,threads=16,loops=100000", "sfs:segment=1M/page/nand:size=128M,endurance=3", "worn out"),
        ("varmail:files=200000,threads=16", "sfs:segment=1M/conv:size=64M", "there is room for"),
        ("varmail:files=16,threads=16", "sfs:segment=1M/conv:size=1M", "sfs"),
    ] {
        let answer = bench.flashpath(&["run", workload, "--on", path]);
        assert!(answer.stderr.contains(said) && !answer.stderr.contains("panicked"), "{path}: {answer:?}");
        assert!(matches!(answer.code, Some(1 | 2)), "{path}: {answer:?}");
    }
}

#[test]
fn calibrate_measures_every_step_and_run_takes_its_table() {
    let bench = Bench::new();
    let answer = bench.flashpath(&["calibrate", "--rounds", "5", "--json", "mine.json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let table: Value = serde_json::from_slice(&std::fs::read(bench.path("mine.json")).unwrap()).unwrap();
    let steps = table["steps"].as_object().unwrap();
    assert_eq!(steps.len(), Step::NAMES.len());
    for (step, measured) in steps {
        let [low, ns, high] = ["low", "ns", "high"].map(|name| measured[name].as_u64().unwrap());
        assert!(1 <= low && low <= ns && ns <= high, "{step}: {measured}");
        assert!(answer.stdout.contains(step.as_str()) && answer.stdout.contains(&ns.to_string()), "{}", answer.stdout);
    }
    let result =
        bench.json("varmail:files=50,threads=2,loops=10", "sfs:segment=1M/conv:size=64M", &["--cpu", "mine.json"]);
    assert_eq!(result["cpu"]["ns"]["call"], steps["call"]["ns"]);
}

#[test]
fn one_thread_written_out_is_the_run_without_the_option() {
    for workload in [
        "seq_write:file=1M",
        "rnd_write:file=1M,writes=1M",
        "postmark:transactions=100",
        "compile:files=100",
        "tokubench:files=100",
    ] {
        let run = |text: &str| {
            let mut result = without_wall(Bench::new().json(text, "sfs:segment=1M/conv:size=256M", &[]));
            result["workload"].as_object_mut().unwrap().remove("name");
            result
        };
        assert_eq!(run(workload), run(&format!("{workload},threads=1")), "{workload}");
    }
}

#[test]
fn threads_that_are_none_too_many_or_without_a_file_each_are_refused() {
    let bench = Bench::new();
    let path = "sfs:segment=1M/conv:size=256M";
    for threads in ["0", "257", "99999999999999999999"] {
        for place in [&["--on", path][..], &["--in", "."]] {
            let workload = format!("varmail:threads={threads}");
            bench.refuses(&[&["run", &workload], place].concat(), &["threads takes a whole number from 1 to 256"]);
        }
    }
    bench.refuses(&["run", "varmail:files=3,threads=4", "--on", path], &["4 threads cannot share 3 files"]);
    for (more, said) in [
        (&["--on", path, "--fill"][..], "--fill is for block workloads"),
        (&["--in", ".", "--fill"], "--fill is for block workloads"),
        (&["--on", path, "--only", "setup"], "--only is for a directory that keeps its files"),
    ] {
        bench.refuses(&[&["run", "varmail:threads=4"], more].concat(), &[said]);
    }
    assert!(bench.files().is_empty(), "nothing was made");
}

#[test]
fn as_many_threads_as_there_can_be_work_in_a_volume_and_in_a_directory() {
    let bench = Bench::new();
    for workload in
        ["varmail:files=256,threads=256,loops=256", "tokubench:files=3,threads=256", "compile:files=3,threads=256"]
    {
        let volume = bench.json(workload, "sfs:segment=1M/conv:size=256M", &[]);
        assert_eq!(volume["interrupted"], false, "{workload}");
        let answer = bench.flashpath(&["run", workload, "--in", ".", "--json", "-"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let directory = super::bench::only_result(&answer.stdout);
        assert_eq!(directory["workload"]["requests"], volume["workload"]["requests"], "{workload}");
    }
}

#[test]
fn an_interrupt_ends_simulated_threads_with_their_results_so_far() {
    for path in ["sfs:segment=1M/page/nand:size=256M", "tree"] {
        // A loaded machine may not have come to what is counted.
        let counted = [1, 5, 25].into_iter().any(|wait| {
            let bench = Bench::new();
            let endless = ["run", "varmail:files=16,threads=16,loops=1000000000", "--on", path, "--json", "r.json"];
            let child = bench.command(&endless).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            wait_until_it_catches_interrupts(child.id());
            std::thread::sleep(Duration::from_millis(300 * wait));
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
            let answer = Answer::of(child.wait_with_output().unwrap());
            assert_eq!(answer.code, Some(130), "{path}: {answer:?}");
            assert!(answer.stdout.contains("was interrupted"), "{path}: {answer:?}");
            let json = bench.result("r.json");
            assert_eq!(json["interrupted"], true, "{path}");
            assert!(json["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{path}");
            json["workload"]["requests"].as_u64().unwrap() > 0
        });
        assert!(counted, "{path}");
    }
}
