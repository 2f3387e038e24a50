//! Sweeps: the table, interruptions, and what is refused.

use super::bench::Bench;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATHS: &str = "page:op=14%:28%,victim=greedy:fifo/nand:size=128M,timing=off";

/// The cells of a CSV without quotes in its first columns, by column, of each row.
fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines().map(cells);
    let head = lines.next().unwrap();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            character => cell.push(character),
        }
    }
    cells.push(cell);
    cells
}

fn read(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.path(name)).unwrap()
}

#[test]
fn a_row_is_what_a_run_of_its_own_gives() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 3000);
    let answer = bench.flashpath(&[
        "sweep",
        "t.csv",
        "uniform:writes=1x:2x",
        "--on",
        PATHS,
        "--seed",
        "1..2",
        "--csv",
        "s.csv",
        "--parquet",
        "s.parquet",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let rows = rows(&read(&bench, "s.csv"));
    // A trace and two generators, four paths, two seeds.
    assert_eq!(rows.len(), 3 * 4 * 2);
    for row in rows.iter().step_by(5) {
        let run = bench.json(&row["workload.name"], &row["path"], &["--seed", &row["seed"]]);
        for (column, pointer) in [
            ("write_amplification.total", "/write_amplification/total"),
            ("flash.erased_blocks", "/flash/erased_blocks"),
            ("workload.requests", "/workload/requests"),
            ("path_in_full", "/path_in_full"),
        ] {
            let value = run.pointer(pointer).unwrap();
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            let (number, other) = (row[column].parse::<f64>(), text.parse::<f64>());
            assert!(row[column] == text || number.is_ok() && number == other, "{column}: {} and {text}", row[column]);
        }
    }
    let head = read(&bench, "s.csv");
    assert!(head.starts_with("workload,uniform.writes,page.op,page.victim,seed,"), "{}", &head[..80]);
    let traces: Vec<_> = rows.iter().filter(|row| row["workload"] == "t.csv").collect();
    assert!(traces.len() == 8 && traces.iter().all(|row| row["uniform.writes"].is_empty()));
    // The notes of warnings name the policies, too.
    let table = answer.stdout.lines().filter(|line| !line.starts_with('['));
    assert_eq!(table.filter(|line| line.contains("greedy") || line.contains("fifo")).count(), 12);
}

#[test]
fn the_table_does_not_depend_on_threads_and_memory() {
    let bench = Bench::new();
    let table = |arguments: &[&str]| {
        let sweep = ["sweep", "zipf:writes=1x,theta=0.9:1.2", "--on", PATHS, "--seed", "1..2", "--csv", "-", "--quiet"];
        let answer = bench.flashpath(&[&sweep[..], arguments].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.stdout
    };
    let alone = table(&["--jobs", "1"]);
    assert_eq!(rows(&alone).len(), 16);
    assert_eq!(table(&["--jobs", "7"]), alone);
    // One of them at a time.
    assert_eq!(table(&["--jobs", "7", "--memory", "12M"]), alone);
    assert_eq!(bench.files(), [] as [String; 0], "no journal is left without a table in a file");
}

/// The lines of the journal.
fn lines(journal: &Path) -> usize {
    std::fs::read(journal).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count())
}

#[test]
fn a_sweep_interrupted_at_ten_points_gives_the_same_table() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 20_000);
    let sweep = |table: &str| {
        let names = ["csv", "parquet", "means.csv"].map(|ending| format!("{table}.{ending}"));
        let mut arguments: Vec<String> =
            ["sweep", "t.csv", "uniform:writes=6x", "--on", PATHS, "--seed", "1..12", "--jobs", "2"]
                .map(String::from)
                .to_vec();
        for (option, name) in ["--csv", "--parquet", "--means"].iter().zip(names) {
            arguments.extend([option.to_string(), name]);
        }
        arguments
    };
    let whole = sweep("whole");
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    assert_eq!(bench.flashpath(&whole).code, Some(0));
    let parts = sweep("parts");
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let journal = bench.path("parts.csv.journal");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % below
    };
    let (mut round, mut ends) = (0, 0);
    while round < 10 {
        // Enough is left for the later points: a kill comes some runs late.
        let left = 2 * 4 * 12 - lines(&journal).saturating_sub(1);
        let until = lines(&journal) + 1 + draw(left / (12 - round));
        let mut child = bench.command(&parts).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ended = loop {
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            if lines(&journal) >= until {
                // An interrupt, or a kill at any instruction.
                let signal = if round % 2 == 0 { "-KILL" } else { "-INT" };
                assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().is_ok());
                break child.wait().unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if ended.success() {
            // This process was too slow for it: all points once more.
            (round, ends) = (0, ends + 1);
            assert!(ends < 10, "sessions come to their end");
            assert!(!journal.exists(), "a complete sweep leaves no journal");
            continue;
        }
        if round % 3 == 2 {
            // A loss of power cuts the last row somewhere.
            let bytes = std::fs::read(&journal).unwrap();
            let rows = &bytes[..bytes.len() - 1];
            let last = rows.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
            std::fs::write(&journal, &bytes[..last + 1 + draw(rows.len() - last)]).unwrap();
        }
        round += 1;
    }
    let answer = bench.flashpath(&parts);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("going on from parts.csv.journal"), "{answer:?}");
    for ending in ["csv", "parquet", "means.csv"] {
        let [one, other] =
            ["whole", "parts"].map(|table| std::fs::read(bench.path(&format!("{table}.{ending}"))).unwrap());
        assert!(one == other, "{ending} differs after the interruptions");
    }
    assert_eq!(rows(&read(&bench, "parts.csv")).len(), 2 * 4 * 12);
    assert!(!journal.exists(), "a complete sweep leaves no journal");
}

/// The README and the tutorial wrote the same table by other sweeps: the second was refused, as the first one's journal
/// stayed. Each test of ours had a directory of its own.
#[test]
fn another_sweep_can_write_a_table_anew() {
    let bench = Bench::new();
    for seeds in ["1", "1..2"] {
        let answer = bench.flashpath(&["sweep", "uniform:writes=1x", "--on", PATHS, "--csv", "s.csv", "--seed", seeds]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(bench.files(), ["s.csv"]);
    }
    let sweep = ["sweep", "uniform:writes=1x", "--on", PATHS, "--csv", "s.csv", "--journal", "j"];
    let first = bench.flashpath(&sweep);
    let again = bench.flashpath(&sweep);
    assert_eq!((first.code, again.code), (Some(0), Some(0)));
    assert!(again.stderr.contains("going on from j"), "a journal with a name of its own stays: {again:?}");
}

#[test]
fn a_wrong_value_is_refused_before_anything_runs() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 10);
    let on = ["--on", "page:op=7%:14%/nand:size=128M", "--csv", "s.csv"];
    for (arguments, said) in [
        (vec!["sweep", "uniform", "--on", "page:op=7%:99999%/nand"], "'99999%' is not a value of page:op"),
        (vec!["sweep", "uniform", "--on", "page:victim=greedy:gredy/nand"], "gredy"),
        (vec!["sweep", "uniform", "--on", "page:op=1..9/nand"], "'1' is not a value"),
        (vec!["sweep", "uniform", "--on", "{page,dftl}/nand"], "give --on several times"),
        (vec!["sweep", "uniform", "--on", "nand:size=1G:2G"], "translation layer is missing"),
        (vec!["sweep", "uniform:writes=1x:nothing", "--on", "page/nand"], "nothing"),
        (vec!["sweep", "uniform:reads=50%:60%,discards=50%", "--on", "page/nand"], "exceed 100%"),
        (vec!["sweep", "uniform", "--on", "kernel-ext4/page/nand"], "a sweep simulates"),
        (vec!["sweep", "uniform", "--on", "conv:image=x.img"], "has files"),
        (vec!["sweep", "sh:ls", "--on", "page/nand"], "a sweep simulates"),
        (vec!["sweep", "varmail", "--on", "page/nand"], "needs files"),
        (vec!["sweep", "uniform", "--on", "page/nand", "page:op=14%/nand"], "op=7%:14%"),
        (vec!["sweep", "uniform"], "--on is not given"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--on", "page/nand"], "is written twice"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--seed", "1..2000000"], "100000 values"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--seed", "1..9:5"], "the value 5 is written twice"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--depth", "1:0"], "'0' is not a value of --depth"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--repeat", "2"], "--repeat is for traces"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--timed", "1"], "--timed needs a trace"),
        (vec!["sweep", "t.csv", "--on", "page/nand", "--timed", "1", "--depth", "2"], "leave one of them out"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--memory", "1M"], "give more with --memory"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--x", "page.op"], "not a varied option"),
        (vec!["sweep", "uniform", "--on", "page/nand:size=1G:2G", "--x", "seed", "--by", "seed"], "the same column"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--report", "-"], "cannot be written to standard output"),
        (vec!["sweep", "t.csv", "--on", "page/nand", "--parquet", "t.csv"], "would replace it"),
        (vec!["sweep", "uniform", "--on", "page/nand", "--journal", "s.csv"], "both write"),
    ] {
        let names_table = arguments.contains(&"--journal");
        let more: &[&str] = if names_table { &on[2..] } else { &[] };
        bench.refuses(&[&arguments[..], more].concat(), &[said]);
        assert_eq!(bench.files(), ["t.csv"], "{arguments:?}");
    }
}

#[test]
fn a_run_that_fails_is_a_row_that_says_why() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 3000);
    let path = "page/nand:size=128M:256M,endurance=3:1000000,timing=off";
    let sweep = ["sweep", "uniform:writes=50x", "--on", path, "--csv", "s.csv", "--report", "r.html"];
    for _ in 0..2 {
        let answer = bench.flashpath(&sweep);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("2 of 4 runs failed"), "{answer:?}");
        let rows = rows(&read(&bench, "s.csv"));
        let failed: Vec<_> = rows.iter().filter(|row| !row["error"].is_empty()).collect();
        assert_eq!((rows.len(), failed.len()), (4, 2));
        for row in &failed {
            assert!(row["error"].contains("worn out") && row["nand.endurance"] == "3", "{row:?}");
            assert!(row["write_amplification.total"].is_empty() && !row["path"].is_empty());
        }
        assert!(read(&bench, "r.html").contains("2 failed runs"));
    }
    assert_eq!(lines(&bench.path("s.csv.journal")), 5, "a failed run is done");
}

#[test]
fn a_journal_of_another_sweep_is_refused_and_kept() {
    let bench = Bench::new();
    let sweep = |seeds: &str| {
        ["sweep", "uniform:writes=1x", "--on", PATHS, "--csv", "s.csv", "--journal", "s.csv.journal", "--seed", seeds]
            .map(String::from)
    };
    let run = |seeds: &str| {
        let arguments = sweep(seeds);
        bench.flashpath(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(run("1").code, Some(0));
    let (table, journal) = (read(&bench, "s.csv"), read(&bench, "s.csv.journal"));
    let answer = run("2");
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("rows of another sweep: flashpath sweep uniform:writes=1x"), "{answer:?}");
    assert_eq!((read(&bench, "s.csv"), read(&bench, "s.csv.journal")), (table, journal));
    bench.write("s.csv.journal", "notes of mine\n");
    assert_eq!(run("1").code, Some(2));
    assert_eq!(read(&bench, "s.csv.journal"), "notes of mine\n");
}

/// Rows of two versions of the program are never mixed: an old journal is known as such, and kept.
#[test]
fn a_golden_journal_of_an_earlier_program_says_so_and_is_kept() {
    let bench = Bench::new();
    let golden = include_str!("../../../../tests/fixtures/golden/sweep-1.journal");
    bench.write("j", golden);
    let path = "page:op=14%:28%/nand:size=16M,pages-per-block=16";
    let sweep = ["sweep", "uniform:writes=1x", "--on", path, "--csv", "s.csv", "--journal", "j"];
    bench.refuses(&sweep, &["bad0482951ce245e8f430954a4da1e41d7044a7d", "--journal"]);
    assert_eq!(read(&bench, "j"), golden);
}

#[test]
fn a_trace_that_changed_makes_another_sweep() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 1000);
    let sweep = ["sweep", "t.csv", "--on", PATHS, "--csv", "s.csv", "--journal", "j"];
    assert_eq!(bench.flashpath(&sweep).code, Some(0));
    assert_eq!(bench.flashpath(&sweep).code, Some(0));
    bench.write_trace("t.csv", 1001);
    bench.refuses(&sweep, &["rows of another sweep"]);
}

#[test]
fn a_description_in_a_file_is_the_same_sweep() {
    let bench = Bench::new();
    bench.write(
        "s.toml",
        format!("workload = 'uniform:writes=1x'\non = ['a={PATHS}', 'b=dftl/nand:size=128M,timing=off']\nseed = [1, 2]\nfill = true\nx = 'page.op'\n"),
    );
    let answer = bench.flashpath(&["sweep", "s.toml", "--csv", "s.csv", "--report", "s.html", "--quiet"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
    let named = format!("a={PATHS}");
    let arguments =
        ["--on", &named, "--on", "b=dftl/nand:size=128M,timing=off", "--seed", "1..2", "--fill", "--csv", "c.csv"];
    assert_eq!(bench.flashpath(&[&["sweep", "uniform:writes=1x"], &arguments[..]].concat()).code, Some(0));
    assert_eq!(read(&bench, "s.csv"), read(&bench, "c.csv"));
    assert!(read(&bench, "s.csv").starts_with("on,page.op,page.victim,seed,"));
    let page = read(&bench, "s.html");
    assert!(page.contains("data-name=\"sweep\"") && page.contains("95 % confidence"));
}

#[test]
fn a_figure_of_a_number_that_no_run_has_says_so() {
    let bench = Bench::new();
    let sweep = ["sweep", "uniform:writes=1x", "--on", PATHS, "--report", "r.html", "--journal", "j", "--y"];
    for (column, said) in [
        ("write_amplification.steady", "longer runs have a steady state"),
        ("write_amplification.totl", "did you mean write_amplification.total?"),
    ] {
        let answer = bench.flashpath(&[&sweep[..], &[column]].concat());
        assert!(answer.code == Some(0) && answer.stderr.contains(said), "{answer:?}");
        assert!(read(&bench, "r.html").contains(&format!("No run has the number {column}")));
    }
    let answer = bench.flashpath(&[&sweep[..], &["write_amplification.total"]].concat());
    assert!(!answer.stderr.contains("figure is empty") && read(&bench, "r.html").contains("data-name=\"sweep\""));
}

#[test]
fn files_and_volumes_are_swept_too() {
    let bench = Bench::new();
    let path = "sfs:groups=1:4/page/nand:size=256M,timing=off";
    let arguments =
        ["sweep", "varmail:loops=20", "--on", path, "--seed", "1..2", "--cpu", "off", "--csv", "-", "--quiet"];
    let answer = bench.flashpath(&arguments);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(rows(&answer.stdout).len(), 4);
}

/// The directory of the table cannot be written any more when the runs are done: the journal has them.
#[test]
fn results_that_cannot_be_written_are_not_lost() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("out")).unwrap();
    let sweep = ["sweep", "uniform:writes=1x", "--on", PATHS, "--csv", "out/s.csv", "--journal", "j"];
    assert_eq!(bench.flashpath(&sweep).code, Some(0));
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    bench.refuses(&sweep, &["cannot write out/s.csv"]);
    std::fs::create_dir(bench.path("out")).unwrap();
    let answer = bench.flashpath(&sweep);
    assert!(answer.code == Some(0) && answer.stderr.contains("4 of 4 runs are done"), "{answer:?}");
    let value: Value =
        serde_json::from_str(read(&bench, "j").lines().nth(1).unwrap().split_once(' ').unwrap().1).unwrap();
    assert!(value["row"]["flash.programmed_pages"].as_u64().unwrap() > 0);
}

/// The warning that voids a number was in `run` alone: a sweep printed WA 1.00 of drives of which nothing was erased. No test
/// had a sweep whose runs warn.
#[test]
fn warnings_of_runs_stand_beside_their_numbers_in_every_form() {
    let bench = Bench::new();
    let paths = "page:op=14%:28%/nand:size=128M,timing=off";
    let run = bench.flashpath(&["run", "uniform:writes=4M", "--on", "page:op=14%/nand:size=128M,timing=off"]);
    let warning = run.stderr.lines().find_map(|line| line.strip_prefix("warning: ")?.split_once(": ")).unwrap().1;
    let sweep =
        ["sweep", "uniform:writes=4M:6x", "--on", paths, "--csv", "s.csv", "--means", "m.csv", "--report", "s.html"];
    let (mut outputs, mut tables) = (Vec::new(), Vec::new());
    // The second one goes on from the journal of the first.
    for _ in 0..2 {
        let answer = bench.flashpath(&sweep);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let told = answer.stderr.split("warning: ").find(|told| told.contains(&warning[..20])).unwrap_or_default();
        assert!(told.contains("uniform.writes=4194304") && !told.contains("uniform.writes=6"), "{answer:?}");
        assert_eq!(answer.stderr.matches(&warning[..20]).count(), 1, "once for its kind");
        let marked = answer.stdout.lines().filter(|line| line.contains("[1]") && line.contains('*'));
        assert!(marked.count() >= 2 && answer.stdout.contains("[1] 2 of 4 runs"), "{answer:?}");
        outputs.push(answer.stdout);
        tables.push(["s.csv", "m.csv", "s.html"].map(|name| read(&bench, name)));
    }
    assert!(outputs[0] == outputs[1] && tables[0] == tables[1], "a sweep that goes on has them, too");
    for row in rows(&tables[0][0]) {
        assert_eq!(row["warnings"].contains(&warning[..20]), row["uniform.writes"] == "4194304", "{row:?}");
    }
    for row in rows(&tables[0][1]) {
        let has_it = row["warnings"].contains(&warning[..20]) && row["warned"] == "1";
        assert_eq!(has_it, row["uniform.writes"] == "4194304", "{row:?}");
    }
    assert!(tables[0][2].contains("<h2>Warnings</h2>") && tables[0][2].contains("*</td>"));
    let quiet = bench.flashpath(&[&sweep[..], &["--quiet"]].concat());
    assert!(!quiet.stderr.contains("warning") && quiet.stdout.contains("[1] 2 of 4 runs"), "{quiet:?}");
}

/// Three volumes in one trace, of which one reads only once.
fn write_volumes(bench: &Bench) {
    let mut text = super::bench::HEADER.to_string();
    for number in 0..9000u64 {
        let (device, place) = (number % 3, number * 7919 % (500 + 700 * (number % 3)));
        let action = if number == 1 { "read" } else { "write" };
        text.push_str(&format!("{},{device},{action},{},4096,data,0\n", number * 1000, place * 4096));
    }
    bench.write("volumes.csv", text);
}

#[test]
fn all_devices_of_a_trace_are_run_each_on_its_own_and_their_distribution_is_told() {
    let bench = Bench::new();
    write_volumes(&bench);
    let drive = "page:op=14%/nand:size=32M,pages-per-block=64,timing=off";
    let common =
        ["sweep", "volumes.csv", "--device", "all", "--on", drive, "--repeat", "3", "--fill", "--seed", "1..2"];
    let outputs = ["--csv", "s.csv", "--distribution", "d.json", "--report", "r.html"];
    let answer = bench.flashpath(&[&common[..], &outputs].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("each device counts once") && !answer.stdout.contains("means over the seeds"));
    let rows = rows(&read(&bench, "s.csv"));
    assert_eq!(rows.len(), 3 * 2, "three devices, two seeds");
    for row in &rows {
        let options = ["--device", &row["device"], "--seed", &row["seed"], "--repeat", "3", "--fill"];
        let run = bench.json("volumes.csv", drive, &options);
        let total = run["write_amplification"]["total"].as_f64().unwrap();
        assert!((row["write_amplification.total"].parse::<f64>().unwrap() - total).abs() < 1e-12, "{row:?}");
    }
    let all: Vec<Value> = serde_json::from_str(&read(&bench, "d.json")).unwrap();
    let total = all.iter().find(|row| row["number"] == "write_amplification.total").unwrap();
    assert_eq!(total["devices"], 3);
    let of = |name: &str| total[name].as_f64().unwrap();
    assert!(of("min") <= of("median") && of("median") <= of("max") && of("min") < of("max"), "{total}");
    let page = read(&bench, "r.html");
    assert!(page.contains("share of the devices, %") && page.contains("<h2>Devices</h2>"));
}

#[test]
fn all_devices_are_those_of_one_trace_with_several() {
    let bench = Bench::new();
    write_volumes(&bench);
    bench.write_trace("one.csv", 100);
    let on = ["--on", "page/nand:size=64M,timing=off"];
    let refuses = |words: &[&str], expected: &[&str]| bench.refuses(&[&["sweep"], words, &on].concat(), expected);
    refuses(&["one.csv", "--device", "all"], &["one.csv has one device", "leave --device out"]);
    refuses(&["uniform", "--device", "all"], &["--device all is of one trace"]);
    refuses(&["volumes.csv", "one.csv", "--device", "all"], &["--device all is of one trace"]);
    refuses(&["volumes.csv", "--device", "0:7"], &["device 7 has no operation", "0 to 2"]);
    refuses(
        &["volumes.csv", "--distribution", "d.csv"],
        &["a distribution is over devices of a trace", "--device all"],
    );
    refuses(&["uniform:writes=1x:2x", "--title", "mine", "--csv", "s.csv"], &["--title is of a page"]);
}

#[test]
fn axes_and_the_page_have_the_titles_that_are_given() {
    let bench = Bench::new();
    let titles = ["--title", "Spare <space>", "--x-title", "spare space", "--y-title", "WA"];
    let sweep =
        ["sweep", "uniform:writes=2x", "--on", "page:op=14%:28%/nand:size=32M,pages-per-block=64,timing=off", "--fill"];
    let answer = bench.flashpath(&[&sweep[..], &["--report", "r.html", "--quiet"], &titles].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let page = read(&bench, "r.html");
    for part in ["<h1>Spare &lt;space&gt;</h1>", "<h2>WA over spare space</h2>", ">spare space<", ">WA<"] {
        assert!(page.contains(part), "{part}");
    }
}
