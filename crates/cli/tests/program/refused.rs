//! A wrong command line ends with exit code 2 and a remedy.

use super::bench::{Bench, DRIVE, TIMED};

#[test]
fn a_wrong_path_is_refused_at_its_place() {
    let bench = Bench::new();
    for (path, expected) in [
        ("pag/nand", "did you mean page?"),
        ("page:vctim=fifo/nand", "did you mean victim?"),
        ("page/nand:size=64Q", "a size from 64K"),
        ("page:op=inf%/nand", "a share from 0.1%"),
        ("page:op=NaN%/nand", "a share from 0.1%"),
        ("page:op=-5%/nand", "a share from 0.1%"),
        // It was taken for 700 %.
        ("page:op=7/nand", "write 7%"),
        ("page:op=1/nand", "write 1%"),
        ("page:export=90/nand", "write 90%"),
        ("page/nand:read=NaNus", "a duration from"),
        ("page/nand:endurance=0", "a whole number from 1"),
        ("page/nand:size=10T", "larger pages"),
        ("nand:size=64M/page", "write it last"),
        ("page", "write /nand after it"),
        ("page//nand", "a name is missing here"),
        ("", "a name is missing here"),
        ("größe/nand", "unknown station 'größe'"),
    ] {
        bench.refuses(&["run", "uniform", "--on", path], &[expected]);
    }
}

#[test]
fn a_drive_too_small_for_its_reserves_is_refused_with_a_size_that_works() {
    let bench = Bench::new();
    for (size, rest) in [("1M", ""), ("64M", ",page=16K"), ("64M", ",channels=64"), ("1M", ",pages-per-block=3,dies=8")]
    {
        let small = format!("page/nand:timing=off,size={size}{rest}");
        let answer = bench
            .refuses(&["run", "uniform:writes=64K", "--on", &small], &["too small for its reserves", "take size="]);
        let size = answer.stderr.rsplit("size=").next().unwrap().split(|c: char| !c.is_alphanumeric()).next().unwrap();
        let large = format!("page/nand:timing=off,size={size}{rest}");
        assert_eq!(bench.flashpath(&["run", "uniform:writes=64K", "--on", &large]).code, Some(0), "{large}");
    }
}

#[test]
fn a_wrong_generator_is_refused_at_its_place() {
    let bench = Bench::new();
    for (workload, expected) in [
        ("unform", "did you mean uniform?"),
        ("uniform:wrtes=3x", "did you mean writes?"),
        ("uniform:writes=NaNx", "a size such as 4G"),
        ("uniform:writes=0x", "requests nothing"),
        ("uniform:request=1G", "does not fit"),
        ("uniform:reads=60%,discards=60%", "exceed 100%"),
        ("zipf:theta=inf", "a number from 0 to 10"),
        ("pareto:h=NaN", "a number from 0.001"),
    ] {
        bench.refuses(&["run", workload, "--on", DRIVE], &[expected]);
    }
}

#[test]
fn a_number_out_of_range_is_refused() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 10);
    for option in [
        "--limit=0",
        "--limit=-1",
        "--depth=0",
        "--depth=NaN",
        "--repeat=0",
        "--seed=-1",
        "--timed=NaN",
        "--timed=inf",
        "--timed=-1",
        "--precondition=0x",
        "--precondition=0",
        "--precondition=NaNx",
        "--precondition=-1x",
        "--age=years=-1",
        "--age=cycles=100%",
        "--age=weeks=2",
    ] {
        let name = option.split('=').next().unwrap();
        bench.refuses(&["run", "t.csv", "--on", TIMED, option], &["invalid value", name]);
    }
}

#[test]
fn an_age_that_changes_nothing_is_refused() {
    let bench = Bench::new();
    let old = ["--age", "years=1,cycles=50%"];
    let on = |path| [&["run", "uniform", "--on", path][..], &old].concat();
    bench.refuses(&on("page/nand:size=128M"), &["no effect", "add errors=on"]);
    bench.refuses(&on("conv:size=128M"), &["conv:size=128M is none"]);
    bench.refuses(&on("page/nand:size=128M,errors=on"), &["nothing is written before the count", "--fill"]);
    bench.refuses(&on("ext/page/nand:size=256M,errors=on"), &["is of a translation layer on flash"]);
}

#[test]
fn a_preconditioning_that_takes_the_whole_workload_is_an_error() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 10);
    bench.refuses(&["run", "t.csv", "--on", DRIVE, "--precondition", "1x"], &["ended while preconditioning"]);
}

#[test]
fn recorded_times_need_a_trace_and_a_timing_model() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 10);
    bench.refuses(&["run", "uniform", "--on", TIMED, "--timed"], &["only traces have recorded times"]);
    bench.refuses(&["run", "t.csv", "--on", DRIVE, "--timed"], &["needs a timing model", "remove timing=off"]);
}

#[test]
fn results_without_a_place_are_refused_before_the_run() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 10);
    let before = std::fs::read(bench.path("t.csv")).unwrap();
    for (option, place, expected) in [
        ("--json", "nowhere/r.json", "cannot write nowhere/r.json"),
        ("--report", "nowhere/r.html", "cannot write nowhere/r.html"),
        ("--json", ".", "directory"),
        ("--json", "./t.csv", "would replace it"),
        ("--report", "t.csv", "would replace it"),
    ] {
        let answer = bench.refuses(&["run", "t.csv", "--on", DRIVE, option, place], &[expected]);
        assert_eq!(answer.stdout, "", "nothing has run");
    }
    bench.refuses(&["run", "t.csv", "--on", DRIVE, "--json", "r", "--report", "r"], &["both write r"]);
    assert_eq!(bench.files(), ["t.csv"]);
    assert_eq!(std::fs::read(bench.path("t.csv")).unwrap(), before);
}

#[test]
fn a_fio_job_is_refused_with_file_and_line() {
    let bench = Bench::new();
    bench.write("j.fio", "[a]\nrw=randwrite\nbs=banana\nsize=1m\n");
    bench.refuses(&["run", "fio:j.fio", "--on", DRIVE], &["j.fio:3", "banana"]);
    bench.refuses(&["run", "j.fio", "--on", DRIVE], &["write fio:j.fio"]);
    bench.refuses(&["run", "fio:k.fio", "--on", DRIVE], &["file k.fio not found", "did you mean j.fio?"]);
    bench.refuses(&["run", "fio:.", "--on", DRIVE], &["is a directory"]);
}

#[test]
fn layers_shows_every_option_and_refuses_an_unknown_name() {
    let bench = Bench::new();
    let all = bench.flashpath(&["layers"]);
    assert_eq!(all.code, Some(0));
    for option in ["op=not set", "victim=greedy", "wear-gap=50", "pages-per-block=256", "transfer=10us", "theta=1.2"] {
        assert!(all.stdout.contains(option), "{option}");
    }
    assert!(all.stdout.contains("a share from 0.0001% to 100%"));
    let nand = bench.flashpath(&["layers", "nand"]).stdout;
    assert!(nand.starts_with("nand ") && nand.contains("endurance=3000") && !nand.contains("victim="));
    // What a second device is for was told in the documentation alone.
    let ext = bench.flashpath(&["layers", "ext"]).stdout;
    assert!(ext.contains("ext/DATA+JOURNAL"), "{ext}");
    bench.refuses(&["layers", "nnd"], &["unknown station or workload 'nnd'", "did you mean nand?", "hotcold"]);
}
