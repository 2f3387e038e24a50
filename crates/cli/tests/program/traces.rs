//! Odd and damaged traces, and files that are not traces.

use super::bench::{Bench, DRIVE, HEADER, TIMED};
use std::process::Command;

#[test]
fn files_that_are_not_traces_are_refused_with_the_reason() {
    let bench = Bench::new();
    bench.write("empty.csv", "");
    bench.write("binary.bin", (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>());
    bench.write("nul.csv", [0; 5000]);
    bench.write("long.csv", vec![b'7'; 3 << 20]);
    bench.write("varmail.f", "define fileset name=bigfileset\nset $dir=/mnt\nload varmail\nrun 60\n");
    let mut oracle = Vec::new();
    for n in 0..100u32 {
        oracle.extend(
            [
                n.to_le_bytes().as_slice(),
                &u64::from(n * 77).to_le_bytes(),
                &4096u32.to_le_bytes(),
                &(-1i64).to_le_bytes(),
            ]
            .concat(),
        );
    }
    bench.write("o.oracleGeneral", oracle);
    std::fs::create_dir(bench.path("directory")).unwrap();
    for (workload, expected) in [
        ("./empty.csv", "the file is empty"),
        ("./binary.bin", "unknown format"),
        ("./nul.csv", "nul.csv"),
        ("./long.csv", "long.csv"),
        ("./varmail.f", "filebench"),
        ("./o.oracleGeneral", "no field that tells reads from writes"),
        ("./directory", "not a regular file"),
        ("./missing.csv", "file ./missing.csv not found"),
        ("./emty.csv", "did you mean ./empty.csv?"),
    ] {
        bench.refuses(&["run", workload, "--on", DRIVE], &[expected]);
    }
}

#[test]
fn a_compressed_trace_that_was_cut_off_is_refused() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 5000);
    assert_eq!(bench.flashpath(&["convert", "t.csv", "whole.csv.zst"]).code, Some(0));
    let whole = std::fs::read(bench.path("whole.csv.zst")).unwrap();
    bench.write("cut.csv.zst", &whole[..whole.len() / 2]);
    bench.refuses(&["run", "cut.csv.zst", "--on", DRIVE], &["cannot read cut.csv.zst", "incomplete frame"]);
}

#[test]
fn addresses_beyond_the_drive_are_refused_with_a_size_that_works() {
    let bench = Bench::new();
    bench.write("far.csv", format!("{HEADER}0,0,write,1073741824,4096,data,0\n"));
    let answer = bench.refuses(&["run", "far.csv", "--on", DRIVE], &["use a path that exports 2G", "--addresses wrap"]);
    assert!(answer.stderr.contains("far.csv"));
    assert_eq!(bench.flashpath(&["run", "far.csv", "--on", "page/nand:size=2G,timing=off"]).code, Some(0));
    for way in ["wrap", "scale"] {
        let result = bench.json("far.csv", DRIVE, &["--addresses", way]);
        assert_eq!(result["workload"]["written_blocks"], 1, "{way}");
    }
}

#[test]
fn a_trace_of_reads_only_runs_and_has_no_write_amplification() {
    let bench = Bench::new();
    bench.write("reads.csv", format!("{HEADER}0,0,read,0,4096,data,0\n1000,0,read,8192,8192,data,0\n"));
    let result = bench.json("reads.csv", TIMED, &[]);
    assert!(result["write_amplification"]["total"].is_null());
    assert_eq!(result["workload"]["read_blocks"], 3);
    assert!(result["warnings"].to_string().contains("has no writes"), "{result}");
}

#[test]
fn times_that_go_back_are_counted() {
    let bench = Bench::new();
    let rows = "5000,0,write,0,4096,data,0\n1000,0,write,0,4096,data,0\n2000,0,write,0,4096,data,0\n9000,0,write,0,4096,data,0\n";
    bench.write("back.csv", format!("{HEADER}{rows}"));
    let result = bench.json("back.csv", TIMED, &["--timed"]);
    assert!(
        result["warnings"].to_string().contains("2 operations have a time before that of an earlier one"),
        "{result}"
    );
}

#[test]
fn lines_that_do_not_parse_are_counted_and_shown() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 100);
    let mut text = std::fs::read_to_string(bench.path("t.csv")).unwrap();
    text.push_str("garbage\n1,2,3\n9,0,write,-5,4096,data,0\n999999,0,write,0,4096,data,0\n");
    bench.write("bad.csv", text);
    let result = bench.json("bad.csv", DRIVE, &[]);
    assert_eq!((&result["workload"]["rejected_lines"], &result["workload"]["requests"]), (&3.into(), &101.into()));
    let warnings = result["warnings"].to_string();
    for expected in ["bad.csv", "line 102", "`garbage`", "line 104", "offset_bytes is not a whole number"] {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
}

/// The Parquet library panics on damaged files. The reader catches that, and no message is printed.
#[test]
fn a_damaged_parquet_file_never_shows_a_panic() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 200);
    assert_eq!(bench.flashpath(&["convert", "t.csv", "t.parquet"]).code, Some(0));
    let whole = std::fs::read(bench.path("t.parquet")).unwrap();
    let mut caught = 0;
    // The last quarter holds the page index, which the library checks least.
    for at in whole.len() * 3 / 4..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x80;
        bench.write("damaged.parquet", bytes);
        let answer = bench.flashpath(&["run", "damaged.parquet", "--on", DRIVE, "--quiet"]);
        assert!(matches!(answer.code, Some(0 | 2)) && !answer.stderr.contains("panicked"), "byte {at}: {answer:?}");
        caught += u32::from(answer.stderr.contains("its Parquet pages are damaged"));
    }
    assert!(caught > 0, "no damage made the library panic: this test shows nothing any more");
}

/// Opening a pipe blocks: reading the first line of a trace must not.
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let bench = Bench::new();
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    bench.refuses(&["run", "./pipe", "--on", DRIVE], &["not a regular file", "send it to standard input"]);
}

/// A trace had to be a file: it is read twice.
#[test]
fn a_trace_comes_from_standard_input() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 300);
    assert_eq!(bench.flashpath(&["convert", "t.csv", "t.csv.zst"]).code, Some(0));
    let from_file = bench.json("t.csv.zst", DRIVE, &[]);
    let piped = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("FLASHPATH", env!("CARGO_BIN_EXE_flashpath")).current_dir(bench.path(""));
        super::bench::Answer::of(command.output().unwrap())
    };
    for script in [
        format!("cat t.csv.zst | $FLASHPATH run - --on {DRIVE} --on {TIMED} --repeat 2 --json out"),
        format!("$FLASHPATH run - < t.csv --on {DRIVE} --on {TIMED} --repeat 2 --json out"),
    ] {
        let answer = piped(&script);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        for result in super::bench::results(&std::fs::read_to_string(bench.path("out")).unwrap()) {
            assert_eq!(result["workload"]["requests"], 600);
        }
    }
    assert_eq!(from_file["workload"]["requests"], 300);
    let converted = piped("$FLASHPATH convert - again.csv < t.csv");
    assert_eq!(converted.code, Some(0), "{converted:?}");
    assert_eq!(std::fs::read(bench.path("again.csv")).unwrap(), std::fs::read(bench.path("t.csv")).unwrap());
    let far = piped(&format!("echo '{HEADER}0,0,write,1073741824,4096,data,0' | $FLASHPATH run - --on {DRIVE}"));
    assert!(far.code == Some(2) && far.stderr.contains("standard input: it spans 1.00 GiB"), "{far:?}");
    let empty = piped(&format!("$FLASHPATH run - --on {DRIVE} < /dev/null"));
    assert!(empty.code == Some(2) && empty.stderr.contains("standard input: the file is empty"), "{empty:?}");
}

/// They were ignored, as --timed is not.
#[test]
fn options_for_traces_are_refused_with_other_workloads() {
    let bench = Bench::new();
    bench.write("j.fio", "[a]\nrw=randwrite\nbs=4k\nsize=1m\n");
    for option in [
        ["--repeat", "3"],
        ["--format", "spc"],
        ["--columns", "op=1,offset=2,size=3"],
        ["--addresses", "wrap"],
        ["--device", "0"],
        ["--stage", "D"],
    ] {
        for (workload, kind) in [("uniform", "a generator"), ("fio:j.fio", "a fio job")] {
            let arguments = ["run", workload, "--on", DRIVE, option[0], option[1]];
            bench.refuses(&arguments, &[&format!("{} is for traces", option[0]), kind]);
        }
        let arguments = ["run", "untar", "--in", ".", option[0], option[1]];
        bench.refuses(&arguments, &[&format!("{} is for traces", option[0]), "a file workload"]);
    }
    assert_eq!(bench.files(), ["j.fio"], "nothing was run");
}

/// Text of any other form was refused, and had to be rewritten first.
#[test]
fn any_text_is_read_by_its_columns() {
    let bench = Bench::new();
    bench.write("t.txt", "when;disk;kind;lba;n\r\n1.5;a;W;8;16\r\n1.6;b;0;0;8\r\n1.7;a;x;1;1\r\n");
    let columns = "time=when,op=kind,read=0,offset=lba,size=n,unit=sector,device=disk";
    let converted = bench.flashpath(&["convert", "t.txt", "o.csv", "--columns", columns]);
    assert_eq!(converted.code, Some(0), "{converted:?}");
    for part in ["2 operations in format columns, 1 lines rejected", "line 4: the operation is no known word", "x (1)"]
    {
        assert!(converted.stderr.contains(part), "{converted:?}");
    }
    let expected = format!("{HEADER}0,0,write,4096,8192,data,0\n100000000,1,read,0,4096,data,0\n");
    assert_eq!(std::fs::read_to_string(bench.path("o.csv")).unwrap(), expected);
    let run = bench.flashpath(&["run", "t.txt", "--on", DRIVE, "--columns", columns, "--json", "-"]);
    assert!(run.code == Some(0) && run.stdout.contains("--columns time=when,op=kind"), "{run:?}");
    let swept = bench.flashpath(&["sweep", "t.txt", "--on", DRIVE, "--columns", columns, "--csv", "s.csv"]);
    assert_eq!(swept.code, Some(0), "{swept:?}");
    for (columns, expected) in [
        ("time=1", "op= is missing"),
        ("op=1,offset=2,size=3,lba=4", "lba is unknown: the keys are time"),
        ("op=type,offset=lba,size=n", "the header has the columns when, disk, kind, lba, n, and not type"),
    ] {
        bench.refuses(&["run", "t.txt", "--on", DRIVE, "--columns", columns], &[expected]);
    }
    bench.refuses(&["run", "t.txt", "--on", DRIVE, "--columns", columns, "--format", "msr"], &["has its own"]);
}

/// A name that is not UTF-8 was refused without saying which argument it was; one in a path was cut at its comma; a `~`
/// was taken for a directory.
#[test]
fn odd_file_names_work_or_are_refused_with_the_reason() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    bench.write_trace("t.csv", 30);
    let odd = OsStr::from_bytes(b"x\xff.csv");
    for name in [odd, OsStr::new("a,b.csv"), OsStr::new("~c.csv"), OsStr::new("a b.csv")] {
        std::fs::copy(bench.path("t.csv"), bench.directory.path().join(name)).unwrap();
        let answer = bench.command(&["run", "--on", DRIVE]).arg(name).output().unwrap();
        assert_eq!(answer.status.code(), Some(0), "{name:?}: {answer:?}");
    }
    let job = OsStr::from_bytes(b"fio:j\xff.fio");
    std::fs::write(bench.directory.path().join(OsStr::from_bytes(b"j\xff.fio")), "[a]\nrw=write\nsize=1m\n").unwrap();
    let answer = bench.command(&["run", "--on", DRIVE]).arg(job).output().unwrap();
    assert_eq!(answer.status.code(), Some(0), "{answer:?}");

    let answer = bench.command(&["mkfs"]).arg(OsStr::from_bytes(b"sfs/conv:image=y\xff,size=64M")).output().unwrap();
    let answer = super::bench::Answer::of(answer);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    for expected in ["sfs/conv:image=y", "is not text (UTF-8)", "another name"] {
        assert!(answer.stderr.contains(expected), "{expected}: {}", answer.stderr);
    }
    bench.refuses(&["mkfs", "sfs/conv:image=a,b.img,size=64M"], &["no option 'b.img'", "a comma ends a file name"]);
    bench.refuses(&["mkfs", "sfs/conv:image=~/b.img,size=64M"], &["'~' is not your home directory here", "$HOME"]);
    bench.refuses(&["run", "~/none.csv", "--on", DRIVE], &["file ~/none.csv not found", "$HOME"]);
    bench.refuses(&["run", "fio:~/none.fio", "--on", DRIVE], &["file ~/none.fio not found", "$HOME"]);
    assert_eq!(
        bench.flashpath(&["mkfs", "sfs/conv:image=~d.img,size=64M"]).code,
        Some(0),
        "it is a name like any other"
    );
    assert!(bench.path("~d.img").exists());
}

/// A trace of keys of a cache was refused, and nothing could be run of it.
#[test]
fn a_trace_of_keys_is_run_through_a_cache_and_named_in_its_result() {
    let bench = Bench::new();
    let mut text = "key,op,size,op_count,key_size\n".to_string();
    for number in 0..60_000u64 {
        let key = number * number % 7919;
        text += &format!("{key},{},{},1,16\n", if number % 4 == 0 { "SET" } else { "GET" }, 100 + key * 37 % 3000);
    }
    std::fs::create_dir(bench.path("folder")).unwrap();
    bench.write("folder/keys.csv", &text);
    bench.refuses(&["run", "folder/keys.csv", "--on", DRIVE], &["has no addresses", "kvcache:trace=FILE"]);
    let work = "kvcache:trace=folder/keys.csv,region=256K,memory=1%";
    let result = bench.json(work, "page:fdp=2/nand:size=64M,pages-per-block=64,timing=off", &[]);
    let cache = &result["cache"];
    assert_eq!(cache["gets"], 45_000);
    let hits: u64 = ["buckets", "regions"].iter().map(|engine| cache[engine]["hits"].as_u64().unwrap()).sum();
    let ratio = (hits + cache["memory_hits"].as_u64().unwrap()) as f64 / 45_000.0;
    assert!((cache["hit_ratio"].as_f64().unwrap() - ratio).abs() < 1e-12 && ratio > 0.3, "{cache}");
    let written: u64 =
        ["buckets", "regions"].iter().map(|engine| cache[engine]["written_bytes"].as_u64().unwrap()).sum();
    assert_eq!(written, result["workload"]["written_blocks"].as_u64().unwrap() * 4096);
    assert_eq!(result["input"]["bytes"], text.len() as u64);
    let handles = result["translation"]["placement"]["handles"].as_array().unwrap();
    for (handle, engine) in [(0, "buckets"), (1, "regions")] {
        assert_eq!(handles[handle]["host_bytes"], cache[engine]["written_bytes"], "{engine}");
    }
    let shown = bench.flashpath(&["run", work, "--on", DRIVE]).stdout;
    for row in [
        "hit ratio",
        "found in buckets",
        "regions, written",
        "written per byte of objects",
        "write amplification, application bytes",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    assert!(bench.json("uniform:writes=1M", DRIVE, &[]).get("cache").is_none());
    // A sweep over options of the cache reads the trace for each.
    let answer =
        bench.flashpath(&["sweep", &format!("{work},admit=100%:10%"), "--on", DRIVE, "--csv", "s.csv", "--quiet"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let table = std::fs::read_to_string(bench.path("s.csv")).unwrap();
    assert!(table.lines().count() == 3 && table.lines().next().unwrap().contains("cache.hit_ratio"), "{table}");
    bench.refuses(&["run", "kvcache:trace=folder/none.csv", "--on", DRIVE], &["cannot read folder/none.csv"]);
}
