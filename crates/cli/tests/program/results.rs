//! The output and files of a run.

use super::bench::{Bench, DRIVE, TIMED};
use serde_json::Value;

/// The stable names; true for numbers.
const PROMISED: [(&str, bool); 27] = [
    ("/schema", true),
    ("/program/version", false),
    ("/machine/system", false),
    ("/path", false),
    ("/seed", true),
    ("/seconds_wall", true),
    ("/workload/name", false),
    ("/workload/requests", true),
    ("/workload/read_blocks", true),
    ("/workload/written_blocks", true),
    ("/workload/discarded_blocks", true),
    ("/workload/rejected_lines", true),
    ("/flash/programmed_pages", true),
    ("/flash/read_pages", true),
    ("/flash/erased_blocks", true),
    ("/flash/effective_overprovisioning", true),
    ("/write_amplification/total", true),
    ("/write_amplification/steady", true),
    ("/write_amplification/steady_from_fraction", true),
    ("/ledger/0/station", false),
    ("/ledger/0/cause", false),
    ("/ledger/0/origin", false),
    ("/ledger/0/content", false),
    ("/ledger/0/blocks", true),
    ("/wear/erase_count_min", true),
    ("/wear/erase_count_mean", true),
    ("/wear/erase_count_max", true),
];

const MIXED: &str = "uniform:writes=30x,reads=30%,discards=5%";

fn without_wall(mut result: Value) -> Value {
    result.as_object_mut().unwrap().remove("seconds_wall").unwrap();
    result
}

#[test]
fn the_json_of_a_path_has_every_promised_name() {
    let result = Bench::new().json(MIXED, TIMED, &[]);
    for (pointer, is_number) in PROMISED {
        let value = result.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing"));
        assert!(if is_number { value.is_number() } else { value.is_string() }, "{pointer}: {value}");
    }
    assert!(result["wear"]["lifetime_host_tib"].is_number());
    assert!(result["seconds_simulated"].is_number() && result["throughput_mib_s"].is_number());
    for (kind, percentile) in ["read", "write"].iter().flat_map(|kind| ["p50", "p99", "p999", "max"].map(|p| (kind, p)))
    {
        assert!(result["latency_ns"][kind][percentile].is_u64(), "{kind} {percentile}");
    }
}

#[test]
fn latencies_are_reported_only_with_a_timing_model() {
    let result = Bench::new().json("uniform", DRIVE, &[]);
    for name in ["latency_ns", "seconds_simulated", "throughput_mib_s"] {
        assert!(result[name].is_null(), "{name}");
    }
}

#[test]
fn the_json_of_two_paths_is_an_array_in_their_order() {
    let paths = [DRIVE, "page:victim=fifo/nand:size=64M,timing=off"];
    let results = Bench::new().json("uniform", paths[0], &["--on", paths[1], "--on", paths[0]]);
    let results = results.as_array().unwrap().clone();
    let names: Vec<&str> = results.iter().map(|result| result["path"].as_str().unwrap()).collect();
    assert_eq!(names, [paths[0], paths[1], paths[0]]);
    assert_eq!(without_wall(results[0].clone()), without_wall(results[2].clone()), "the same path twice");
    assert_ne!(results[0]["flash"], results[1]["flash"]);
}

#[test]
fn the_same_seed_gives_the_same_json() {
    let bench = Bench::new();
    let run = |seed: &str| without_wall(bench.json(MIXED, TIMED, &["--seed", seed]));
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7")["flash"], run("8")["flash"]);
}

#[test]
fn a_run_prints_a_table_and_writes_the_requested_files() {
    let bench = Bench::new();
    let answer = bench.flashpath(&[
        "run",
        "uniform",
        "--on",
        DRIVE,
        "--json",
        "ünï.json",
        "--report",
        "r.html",
        "--limit",
        "500",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for expected in ["workload uniform", "pages programmed", "all hold", DRIVE] {
        assert!(answer.stdout.contains(expected), "{expected}: {}", answer.stdout);
    }
    assert!(answer.stderr.contains("wrote r.html"));
    let json = bench.result("ünï.json");
    assert_eq!(json["workload"]["requests"], 500);
    let page = std::fs::read_to_string(bench.path("r.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("</html>"));
    assert_eq!(bench.files().len(), 2, "nothing is left beside them");
}

#[test]
fn quiet_prints_nothing_on_standard_error_and_no_warnings() {
    let bench = Bench::new();
    let arguments = ["run", "uniform", "--on", DRIVE, "--report", "r.html", "--limit", "500"];
    let answer = bench.flashpath(&arguments);
    // Warnings were on standard output, among the results.
    assert!(answer.stderr.contains(&format!("warning: {DRIVE}: nothing was erased")), "{answer:?}");
    assert!(!answer.stdout.contains("warning:"), "{answer:?}");
    assert!(std::fs::read_to_string(bench.path("r.html")).unwrap().contains("nothing was erased"));
    let answer = bench.flashpath(&[arguments.as_slice(), &["--quiet"]].concat());
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
    assert!(!answer.stdout.contains("warning:"));
}

/// A result is written beside its place and renamed, which once replaced a device by a regular file.
#[test]
fn a_pipe_for_results_is_written_and_not_replaced() {
    let bench = Bench::new();
    assert!(std::process::Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    let reader = bench.path("pipe");
    let reader = std::thread::spawn(move || std::fs::read(reader).unwrap());
    let answer = bench.flashpath(&["run", "uniform", "--on", DRIVE, "--json", "pipe", "--limit", "500"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let json = super::bench::only_result(std::str::from_utf8(&reader.join().unwrap()).unwrap());
    assert_eq!(json["workload"]["requests"], 500);
    assert_eq!(bench.files(), ["pipe"]);
    assert!(!bench.path("pipe").is_file());
}

#[test]
fn odd_drives_and_requests_run_and_every_sum_holds() {
    let bench = Bench::new();
    for (workload, path) in [
        ("uniform", "page/nand:size=64M,pages-per-block=3,timing=off"),
        ("uniform:request=512,writes=8M", DRIVE),
        ("uniform:request=3000,writes=8M", DRIVE),
        ("uniform:request=57M", DRIVE),
        ("uniform:writes=16M", "page/nand:size=256M,page=16K"),
        ("uniform:discards=100%", TIMED),
        ("uniform:reads=100%", TIMED),
        ("zipf:theta=10", DRIVE),
        ("normal:deviation=0%", DRIVE),
        ("uniform:writes=1", TIMED),
        ("uniform", "page/nand:size=64M,read=0ns,program=0ns,erase=0ns,transfer=0ns"),
    ] {
        let result = bench.json(workload, path, &["--verify"]);
        assert!(result["sums"].as_array().unwrap().iter().all(|sum| sum["holds"] == true), "{workload} {path}");
        assert!(result["workload"]["requests"].as_u64().unwrap() > 0);
    }
}

/// The table was printed with escape sequences on any terminal.
#[test]
fn no_color_and_a_dumb_terminal_are_respected() {
    let bench = Bench::new();
    let on_a_terminal = |settings: &[(&str, &str)]| {
        let drives = format!("--on {DRIVE} --on page:op=28%/nand:size=64M,timing=off");
        let run = format!("{} run uniform:writes=4x {drives}", env!("CARGO_BIN_EXE_flashpath"));
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &run, "/dev/null"]).current_dir(bench.path("")).stdin(std::process::Stdio::null());
        command.env_remove("NO_COLOR").env("TERM", "xterm").envs(settings.iter().copied());
        let answer = command.output().unwrap();
        assert_eq!(answer.status.code(), Some(0), "{answer:?}");
        String::from_utf8(answer.stdout).unwrap()
    };
    assert!(on_a_terminal(&[]).contains("\x1b[1m"), "a terminal shows what is bold");
    let plain = on_a_terminal(&[("NO_COLOR", "1")]);
    assert!(!plain.contains("\x1b[1m") && !plain.contains("\x1b[2m"), "{plain}");
    let dumb = on_a_terminal(&[("TERM", "dumb")]);
    assert!(!dumb.contains('\x1b') && dumb.contains("! the run has a warning"), "{dumb}");
}

/// A drive that was never written once over had a lifetime of hundreds of TiB, and a steady write amplification of 1.
#[test]
fn a_run_that_erased_nothing_claims_neither_a_steady_state_nor_a_lifetime() {
    let bench = Bench::new();
    for path in [DRIVE, "sfs:segment=1M/page/nand:size=256M,timing=off", "conv:size=64M,ftl=page"] {
        let answer = bench.flashpath(&["run", "uniform:writes=8M", "--on", path, "--json", "-"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(answer.stderr.matches("nothing was erased").count(), 1, "{path}: {answer:?}");
        assert!(!answer.stderr.contains("no steady state was found"), "{path}: {answer:?}");
        let result = super::bench::only_result(&answer.stdout);
        assert_eq!(result["flash"]["erased_blocks"], 0, "{path}");
        assert!(result["warnings"].to_string().contains("nothing was erased"), "{path}");
        for unknown in [
            "/wear/lifetime_host_tib",
            "/wear/lifetime_host_tib_first_block",
            "/write_amplification/steady",
            "/write_amplification/steady_from_fraction",
        ] {
            assert!(result.pointer(unknown).unwrap().is_null(), "{path} {unknown}");
        }
        let table = bench.flashpath(&["run", "uniform:writes=8M", "--on", path]).stdout;
        assert!(!table.contains("lifetime") && !table.contains("amplification, steady"), "{path}: {table}");
    }
    assert!(bench.json("uniform:writes=4x", DRIVE, &[])["wear"]["lifetime_host_tib"].is_number());
}

/// The JSON of one path was an object and that of several an array, and neither said what had written it, where, or from which
/// trace.
#[test]
fn results_are_an_array_that_names_the_program_the_machine_and_the_trace() {
    let bench = Bench::new();
    bench.write("t.csv", format!("{}0,0,write,0,4096,data,0\n", super::bench::HEADER));
    let answer = bench.flashpath(&["run", "t.csv", "--on", DRIVE, "--json", "-"]);
    let [result] = &super::bench::results(&answer.stdout)[..] else { panic!("one path: {answer:?}") };
    assert_eq!(result["schema"], 1);
    assert_eq!(result["program"]["version"], env!("CARGO_PKG_VERSION"));
    let sums = std::process::Command::new("sha256sum").arg(bench.path("t.csv")).output().unwrap();
    let sum = String::from_utf8(sums.stdout).unwrap();
    assert_eq!(result["input"]["sha256"], sum.split(' ').next().unwrap());
    assert_eq!(result["input"]["bytes"], bench.path("t.csv").metadata().unwrap().len());
    assert!(result["machine"]["processors"].as_u64().unwrap() > 0, "{}", result["machine"]);
    assert!(bench.json("uniform:writes=1M", DRIVE, &[])["input"].is_null());
    let git =
        std::process::Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    if let Some(commit) = git.ok().filter(|git| git.status.success()) {
        let commit = String::from_utf8(commit.stdout).unwrap();
        let built_from = result["program"]["commit"].as_str().expect("it was built in a repository");
        assert_eq!(built_from.trim_end_matches("-dirty"), commit.trim());
    }
}

/// The JSON is held to the schema by `Bench::json`.
#[test]
fn the_energy_of_the_flash_is_in_every_form_of_a_result_that_was_asked_for_it() {
    let bench = Bench::new();
    let path = "page:op=20%/nand:size=64M,energy=on";
    let energy = &bench.json("uniform:writes=4x", path, &[])["energy"];
    assert!(energy["total_j"].as_f64().unwrap() > energy["programs_j"].as_f64().unwrap(), "{energy}");
    let files = ["--csv", "r.csv", "--report", "r.html"];
    let answer = bench.flashpath(&[&["run", "uniform:writes=4x", "--on", path][..], &files].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert!(read("r.csv").lines().next().unwrap().split(',').any(|column| column == "energy.total_j"));
    for form in [&answer.stdout, &read("r.html")] {
        assert!(form.contains("Energy of the flash") && form.contains("of it erases"), "{form}");
    }
    assert!(bench.json("uniform:writes=1M", "page/nand:size=64M", &[]).get("energy").is_none());
}

/// A schema that takes anything proves nothing.
#[test]
fn the_schema_refuses_results_with_fields_missing_or_unknown() {
    let schema = include_str!("../../../../docs/results.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let whole = Bench::new().json(MIXED, TIMED, &[]);
    assert!(schema.is_valid(&serde_json::json!([whole])) && !schema.is_valid(&whole));
    for field in whole.as_object().unwrap().keys().filter(|field| !["latency_ns", "name"].contains(&field.as_str())) {
        let mut less = whole.clone();
        less.as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&serde_json::json!([less])), "{field} is missing");
    }
    for pointer in ["", "/workload", "/flash", "/wear", "/ledger/0", "/latency_ns/write", "/windows/0", "/sums/0"] {
        let mut more = whole.clone();
        more.pointer_mut(pointer).unwrap()["renamed"] = 1.into();
        assert!(!schema.is_valid(&serde_json::json!([more])), "a new field in {pointer}");
        let mut other = whole.clone();
        *other.pointer_mut(pointer).unwrap() = "text".into();
        assert!(!schema.is_valid(&serde_json::json!([other])), "text for {pointer}");
    }
    let format = include_str!("../../../../docs/results-format.md");
    for field in whole.as_object().unwrap().keys() {
        assert!(format.contains(&format!("`{field}`")), "docs/results-format.md does not name {field}");
    }
}

/// A cell of a Parquet file.
fn json_of(cell: &parquet::record::Field) -> Value {
    use parquet::record::Field;
    match cell {
        Field::Null => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Str(value) => value.as_str().into(),
        other => panic!("no column has {other}"),
    }
}

#[test]
fn csv_and_parquet_give_the_same_values_flat() {
    let bench = Bench::new();
    let second = "page:op=28%/nand:size=64M,timing=off";
    let named = format!("spare={second}");
    let arguments = ["run", "uniform:writes=4x", "--on", DRIVE, "--on", &named, "--json", "r.json", "--csv", "r.csv"];
    let answer = bench.flashpath(&[&arguments[..], &["--parquet", "r.parquet"]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let results = super::bench::results(&std::fs::read_to_string(bench.path("r.json")).unwrap());
    let text = std::fs::read_to_string(bench.path("r.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("name,path,workload.name,seed,"), "{}", lines[0]);
    assert!(
        lines[1].starts_with(&format!(",\"{DRIVE}\",")) && lines[2].starts_with(&format!("spare,\"{second}\",")),
        "{text}"
    );
    let file = parquet::file::reader::SerializedFileReader::new(std::fs::File::open(bench.path("r.parquet")).unwrap())
        .unwrap();
    let rows: Vec<_> =
        parquet::file::reader::FileReader::get_row_iter(&file, None).unwrap().map(Result::unwrap).collect();
    let columns: Vec<String> = rows[0].get_column_iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(columns.join(","), lines[0]);
    for (result, row) in results.iter().zip(&rows) {
        let value = |name: &str| {
            let (_, value) =
                row.get_column_iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("{name}"));
            json_of(value)
        };
        for pointer in
            ["/path", "/seed", "/flash/programmed_pages", "/write_amplification/total", "/wear/lifetime_host_tib"]
        {
            assert_eq!(&value(&pointer[1..].replace('/', ".")), result.pointer(pointer).unwrap(), "{pointer}");
        }
        for ledger in result["ledger"].as_array().unwrap() {
            let words = ["station", "cause", "origin", "content"].into_iter().filter_map(|key| ledger[key].as_str());
            let name = format!("ledger.{}", words.collect::<Vec<_>>().join("."));
            assert_eq!(value(&name), ledger["blocks"], "{name}");
        }
        let windows: Value = serde_json::from_str(value("windows").as_str().unwrap()).unwrap();
        assert_eq!(windows, result["windows"]);
    }
    let printed = bench.flashpath(&["run", "uniform:writes=1M", "--on", DRIVE, "--csv", "-", "--quiet"]);
    assert_eq!(printed.stdout.lines().count(), 2, "{printed:?}");
    bench.refuses(&["run", "uniform", "--on", DRIVE, "--csv", "-", "--json", "-"], &["--json and --csv both write -"]);
    bench.refuses(
        &["run", "uniform", "--on", DRIVE, "--parquet", "-"],
        &["--parquet cannot be written to standard output"],
    );
    bench.refuses(
        &["run", "uniform", "--on", DRIVE, "--csv", "x", "--parquet", "x"],
        &["--csv and --parquet both write x"],
    );
}

/// A path of a hundred characters was the heading of each column and the name in each legend.
#[test]
fn a_path_may_have_a_short_name() {
    let bench = Bench::new();
    let (base, second) = (format!("base={DRIVE}"), "page:op=28%/nand:size=64M,timing=off");
    let arguments =
        ["run", "uniform:writes=2x", "--on", &base, "--on", second, "--report", "r.html", "--json", "r.json"];
    let answer = bench.flashpath(&arguments);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains(&format!("base = {DRIVE}\n")), "the table says what it stands for: {answer:?}");
    let heading = answer.stdout.lines().find(|line| line.contains("base ") || line.trim_end().ends_with("base"));
    assert!(heading.is_some(), "{answer:?}");
    let results = super::bench::results(&std::fs::read_to_string(bench.path("r.json")).unwrap());
    assert_eq!((&results[0]["name"], &results[0]["path"]), (&"base".into(), &DRIVE.into()));
    assert!(results[1].get("name").is_none());
    let page = std::fs::read_to_string(bench.path("r.html")).unwrap();
    assert!(
        page.contains("--on 'base=page:") || page.contains("--on &#39;base=page:") || page.contains("--on base=page:")
    );
    bench.refuses(&["run", "uniform", "--on", &base, "--on", &base], &["two paths have the name base"]);
    bench.refuses(&["run", "uniform", "--on", &format!("={DRIVE}")], &["a name has 1 to 64"]);
    bench.refuses(&["run", "uniform", "--on", "base=pag/nand"], &["did you mean page?"]);
}

#[test]
fn other_programs_get_the_same_numbers_in_their_own_form() {
    let bench = Bench::new();
    let run = |format: &str| bench.flashpath(&["run", MIXED, "--on", TIMED, "--output-format", format]);
    let ours = bench.json(MIXED, TIMED, &[]);
    let fio = run("fio");
    assert_eq!(fio.code, Some(0), "{fio:?}");
    let fio: Value = serde_json::from_str(&fio.stdout).unwrap();
    let write = &fio["jobs"][0]["write"];
    let latency = &ours["latency_ns"]["write"];
    assert_eq!(write["io_bytes"], ours["workload"]["written_blocks"].as_u64().unwrap() * 4096);
    assert_eq!((&write["total_ios"], &write["clat_ns"]["max"]), (&latency["count"], &latency["max"]));
    assert_eq!((&write["lat_ns"]["min"], &write["lat_ns"]["stddev"]), (&latency["min"], &latency["stddev"]));
    let p99 = write["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap();
    assert!((p99 / latency["p99"].as_f64().unwrap() - 1.0).abs() < 0.05, "{p99} and {latency}");
    assert_eq!(fio["jobs"][0]["flashpath"]["write_amplification"], ours["write_amplification"]);
    let metrics = run("openmetrics");
    let total = ours["write_amplification"]["total"].as_f64().unwrap();
    let line = format!("flashpath_write_amplification{{path=\"{TIMED}\",of=\"total\"}} {total}");
    assert!(metrics.stdout.lines().any(|found| found == line), "{line}: {}", metrics.stdout);
    assert!(metrics.stdout.ends_with("# EOF\n"));
    assert_eq!(without_wall(super::bench::only_result(&run("json").stdout)), without_wall(ours));
    assert!(run("csv").stdout.starts_with("path,"), "{:?}", run("csv"));
    let both = ["run", MIXED, "--on", TIMED, "--output-format", "fio", "--json", "-"];
    bench.refuses(&both, &["both choose what standard output gets"]);
    bench.refuses(&["run", MIXED, "--on", TIMED, "--output-format", "xml"], &["openmetrics"]);
}

#[test]
fn waits_tell_what_each_percentile_is_made_of() {
    let bench = Bench::new();
    let told = bench.json(MIXED, TIMED, &["--waits"]);
    let parts = &told["latency_ns"]["write"]["parts"]["p99"];
    let sum: f64 = parts.as_object().unwrap().values().map(|ns| ns.as_f64().unwrap()).sum();
    let p99 = told["latency_ns"]["write"]["p99"].as_f64().unwrap();
    assert!((sum / p99 - 1.0).abs() < 1.0 / 60.0, "{sum} and {p99}");
    assert!(parts["collection"].as_f64().unwrap() > 0.0, "{parts}");
    assert!(bench.json(MIXED, TIMED, &[])["latency_ns"]["write"].get("parts").is_none());
    let table = bench.flashpath(&["run", MIXED, "--on", TIMED, "--waits"]);
    assert!(table.stdout.contains("write, p99, of it collection"), "{}", table.stdout);
    bench.refuses(&["run", "varmail", "--in", ".", "--waits"], &["--waits"]);
}
