//! `flashpath convert`.

use super::bench::{Bench, DRIVE, HEADER};

#[test]
fn a_trace_that_goes_to_parquet_and_back_is_the_same() {
    let bench = Bench::new();
    bench.write("t.txt", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n");
    let mut text = String::new();
    for n in 0..3000u64 {
        let kind = if n % 3 == 0 { "Read" } else { "Write" };
        let time = 128166372003061629 + n * 317;
        text.push_str(&format!("{time},usr,0,{kind},{},{},1331\n", n * 7919 % 2000 * 4096, 4096 * (1 + n % 4)));
    }
    bench.write("t.txt", text);
    for (from, to) in [("t.txt", "a.csv"), ("a.csv", "b.parquet"), ("b.parquet", "c.csv"), ("c.csv", "d.csv.gz")] {
        let answer = bench.flashpath(&["convert", from, to]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""), "{answer:?}");
        assert!(answer.stderr.contains("3000 operations") && answer.stderr.contains(&format!("wrote {to}")));
    }
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert!(read("a.csv").starts_with(HEADER));
    assert_eq!(read("a.csv"), read("c.csv"));
    let first = bench.json("t.txt", DRIVE, &["--repeat", "9"]);
    for name in ["a.csv", "b.parquet", "d.csv.gz"] {
        let result = bench.json(name, DRIVE, &["--repeat", "9"]);
        for part in ["flash", "wear", "ledger", "write_amplification"] {
            assert_eq!(result[part], first[part], "{name} {part}");
        }
    }
}

#[test]
fn a_conversion_that_fails_leaves_everything_as_it_was() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 5000);
    bench.write("noise", "this is\nno trace\n");
    assert_eq!(bench.flashpath(&["convert", "t.csv", "whole.csv.gz"]).code, Some(0));
    let whole = std::fs::read(bench.path("whole.csv.gz")).unwrap();
    bench.write("cut.csv.gz", &whole[..whole.len() - 100]);
    std::fs::create_dir(bench.path("directory.csv")).unwrap();
    let before = (bench.files(), std::fs::read(bench.path("t.csv")).unwrap());
    for (from, to, expected) in [
        ("t.csv", "./t.csv", "is the input trace"),
        ("t.csv", "nowhere/o.csv", "cannot write it"),
        ("t.csv", "directory.csv", "cannot write it"),
        ("t.csv", "o.txt", "NAME.parquet"),
        ("noise", "o.csv", "unknown format"),
        ("cut.csv.gz", "o.csv", "cut.csv.gz"),
        ("cut.csv.gz", "o.parquet", "cut.csv.gz"),
        ("missing", "o.csv", "missing"),
    ] {
        bench.refuses(&["convert", from, to], &[expected]);
        assert_eq!((bench.files(), std::fs::read(bench.path("t.csv")).unwrap()), before, "{from} to {to}");
    }
}
