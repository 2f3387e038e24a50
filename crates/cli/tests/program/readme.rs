//! The paths of the README are paths, and the commands with which a report repeats its runs do so.

use super::bench::{Bench, results};
use super::documents::{readme, shell};
use flashpath::run::Path;

#[test]
fn every_path_in_the_readme_is_one() {
    let readme = readme();
    let paths = readme.split_once("## The path\n").unwrap().1.split_once("| station |").unwrap().0;
    let read = paths.lines().filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next());
    let read = read.filter(|path| !path.starts_with("STATION")).map(|path| Path::read(path).map(drop));
    let results: Vec<_> = read.collect();
    assert!(results.len() >= 6 && results.iter().all(Result::is_ok), "{results:?}");
}

/// The commands that a report says repeat its runs.
fn repeating(bench: &Bench) -> String {
    let page = std::fs::read_to_string(bench.path("report.html")).unwrap();
    let section = page.split_once("Commands to repeat the runs").expect("the report has the section").1;
    let text = section.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0;
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_string(), |text, (entity, character)| text.replace(entity, character))
}

/// An option and its value were quoted as one word, which the program did not know.
#[test]
fn the_command_in_a_report_repeats_the_runs_in_a_shell() {
    let bench = Bench::new();
    bench.write_trace("it's a trace & more.csv", 3000);
    let drive = "page/nand:size=64M";
    let runs: [&[&str]; 4] = [
        &[
            "uniform:writes=2x",
            "--seed",
            "7",
            "--fill",
            "--depth",
            "4",
            "--on",
            &format!("first={drive}"),
            "--on",
            drive,
        ],
        &["it's a trace & more.csv", "--repeat", "2", "--addresses", "wrap", "--timed", "--on", drive],
        &[
            "zipf:writes=16M",
            "--size",
            "16M",
            "--utilization",
            "40%",
            "--fsync-every",
            "9",
            "--on",
            "sfs:segment=1M/conv:size=128M",
        ],
        &[
            "varmail:files=50,size=4K,threads=2,loops=40",
            "--cpu",
            "call=5000",
            "--limit",
            "300",
            "--on",
            "ext/page/nand:size=128M",
        ],
    ];
    for run in runs {
        let first =
            bench.flashpath(&[&["run"], run, &["--report", "report.html", "--json", "first.json", "--quiet"]].concat());
        assert_eq!(first.code, Some(0), "{first:?}");
        let command = repeating(&bench);
        let again = shell(&bench, &format!("{command} --json again.json --quiet"));
        assert_eq!(again.code, Some(0), "{command}: {again:?}");
        // A path is repeated by its text in full, and a table of CPU times by all of its values.
        let compared =
            ["ledger", "sums", "latency_ns", "workload", "options", "seed", "windows", "path_in_full", "wear"];
        let read = |name: &str| results(&std::fs::read_to_string(bench.path(name)).unwrap());
        let (first, again) = (read("first.json"), read("again.json"));
        assert_eq!(first.len(), again.len(), "{command}");
        for (first, again) in first.iter().zip(&again) {
            for field in compared {
                assert!(first[field] == again[field], "{field} differs: {command}");
            }
        }
        std::fs::remove_file(bench.path("first.json")).unwrap();
        std::fs::remove_file(bench.path("again.json")).unwrap();
    }
}
