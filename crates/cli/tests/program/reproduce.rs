//! The papers' figures, reproduced.

use super::bench::Bench;
use super::capture::can_capture;
use flashpath::report::figure::{Claim, Figure, Panel, Reproduction};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Results of an earlier run.
fn results() -> Vec<Reproduction> {
    let figure = |name: &str| Figure {
        name: name.to_string(),
        title: format!("The paper's {name}"),
        unit: "erased blocks".to_string(),
        about: "Replayed.".to_string(),
        panels: vec![Panel::new(
            "fast",
            vec!["ordered".to_string(), "journal".to_string()],
            vec![("untar".to_string(), vec![Some(12_345.0), Some(2.0)])],
        )],
        claims: vec![Claim {
            says: "a ratio".to_string(),
            place: "IV".to_string(),
            low: Some(0.4),
            high: Some(0.4),
            ours: Some(0.8),
            because: "this differs".to_string(),
            shown_by: None,
        }],
        made_by: None,
    };
    vec![Reproduction {
        paper: "vma".to_string(),
        title: "A paper".to_string(),
        command: "flashpath reproduce vma".to_string(),
        scale: 0.0625,
        seed: 7,
        conditions: Vec::new(),
        figures: vec![figure("vma-fig4"), figure("vma-fig5")],
    }]
}

#[test]
fn earlier_results_are_shown_in_every_form() {
    let bench = Bench::new();
    bench.write("earlier.json", serde_json::to_string(&results()).unwrap());
    let outputs = ["--report", "page.html", "--markdown", "page.md", "--json", "again.json"];
    let answer = bench.flashpath(&[&["reproduce", "--from", "earlier.json"], &outputs[..]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("| untar | 12,345 | 2.00 |"), "{}", answer.stdout);
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Reproduction>>(&read("again.json")).unwrap(), results());
    assert!(read("page.md").contains("(page/vma-fig5.svg)") && read("page/vma-fig5.svg").starts_with("<svg"));
    assert!(read("page.html").contains("this differs"));
    assert!(!bench.files().iter().any(|name| name.ends_with(".part")));
    let one = bench.flashpath(&["reproduce", "vma-fig5", "--from", "earlier.json", "--json", "-"]);
    let one: Vec<Reproduction> = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!(one[0].figures.len(), 1);
}

/// Figures 13 and 14 of SFS need captures and the others do not: made separately, they are shown as one paper.
#[test]
fn figures_of_a_paper_from_several_files_are_one_part() {
    let bench = Bench::new();
    let mut newer = results();
    newer[0].figures.reverse();
    newer[0].figures.truncate(1);
    newer[0].figures[0].title = "made later".to_string();
    newer[0].conditions.push(("drive".to_string(), "of flash".to_string()));
    let mut other_scale = results();
    other_scale[0].scale = 1.0;
    for (name, made) in [("earlier.json", &results()), ("newer.json", &newer), ("scale.json", &other_scale)] {
        bench.write(name, serde_json::to_string(made).unwrap());
    }
    let from =
        ["reproduce", "--from", "newer.json", "--from", "earlier.json", "--from", "newer.json", "--from", "scale.json"];
    let answer = bench.flashpath(&[&from[..], &["--json", "-"]].concat());
    let shown: Vec<Reproduction> = serde_json::from_str(&answer.stdout).unwrap();
    let titles = |made: &Reproduction| made.figures.iter().map(|figure| figure.title.clone()).collect::<Vec<_>>();
    assert_eq!(shown.len(), 2, "another scale is another part");
    assert_eq!(titles(&shown[0]), ["The paper's vma-fig4", "made later"]);
    assert_eq!(shown[0].conditions.len(), 1);
}

#[test]
fn unknown_figures_and_wrong_options_are_refused() {
    let bench = Bench::new();
    bench.write("earlier.json", serde_json::to_string(&results()).unwrap());
    bench.write("other.json", "{\"path\": 1}");
    bench.refuses(&["reproduce", "vma-fig44"], &["unknown figure 'vma-fig44'", "did you mean vma-fig4?", "sfs-table1"]);
    for scale in ["0", "2", "1/0", "1/1000", "x", "-1"] {
        bench.refuses(&["reproduce", &format!("--scale={scale}")], &["1/16"]);
    }
    bench.refuses(&["reproduce", "--from", "none.json"], &["cannot read none.json"]);
    bench.refuses(&["reproduce", "--from", "other.json"], &["is not a file of reproduced figures", "reproduce --json"]);
    bench.refuses(&["reproduce", "sfs", "--from", "earlier.json"], &["none of the requested figures"]);
    bench.refuses(&["reproduce", "--from", "earlier.json", "--json", "none/x.json"], &["cannot write none/x.json"]);
    bench.refuses(&["reproduce", "--from", "earlier.json", "--markdown", "page"], &["NAME.md"]);
    bench.refuses(&["reproduce", "--from", "earlier.json", "--scale", "1"], &["--scale"]);
}

/// docs/results.json must not say what the program makes no longer: the cheap figures here, the others by `make results-check`.
#[test]
fn stored_results_are_what_the_program_makes() {
    let bench = Bench::new();
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.json");
    let cheap = ["sfs-table1", "sfs-fig1", "nvm-fig4-simulated", "nvm-flash"];
    let answer = bench.flashpath(&[&["reproduce", "--check", stored, "--quiet"], &cheap[..]].concat());
    assert_eq!(answer.code, Some(0), "make results, and commit docs/results.json with what has moved it: {answer:?}");
    assert!(answer.stdout.contains("4 figures are made again as they are stored"), "{answer:?}");
    let drives = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/drives.json");
    let answer = bench.flashpath(&["reproduce", "--check", drives, "--quiet", "drives-placement"]);
    assert_eq!(answer.code, Some(0), "make results, and commit docs/results/drives.json: {answer:?}");
    assert!(answer.stdout.contains("1 figures are made again as they are stored"), "{answer:?}");
    let journals = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/journals.json");
    let answer = bench.flashpath(&["reproduce", "--check", journals, "--quiet", "journals-factors"]);
    assert_eq!(answer.code, Some(0), "make results, and commit docs/results/journals.json: {answer:?}");
    assert!(answer.stdout.contains("1 figures are made again as they are stored"), "{answer:?}");
}

/// A matrix of journals at a small scale: each has its cells, and those that a drive cannot have are empty.
#[test]
fn journals_are_beside_each_other_in_every_figure() {
    let bench = Bench::new();
    let figures = ["journals-map", "journals-varmail", "journals-factors"];
    let made = [&["reproduce", "--scale", "1/256", "--json", "made.json", "--quiet"], &figures[..]].concat();
    let answer = bench.flashpath(&made);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let made: Vec<Reproduction> =
        serde_json::from_str(&std::fs::read_to_string(bench.path("made.json")).unwrap()).unwrap();
    let [map, varmail, factors] = &made[0].figures[..] else { panic!("three figures: {}", made[0].figures.len()) };
    let points = |title: &str| &map.panels.iter().find(|panel| panel.title.starts_with(title)).unwrap().groups;
    assert_eq!(points("page-level TLC: all").len(), 14, "every journal");
    let on_zones: Vec<&str> = points("ZNS").iter().map(|(name, _)| name.as_str()).collect();
    assert!(on_zones.contains(&"memory") && !on_zones.contains(&"barrier") && !on_zones.contains(&"own device"));
    let all = |at: usize| -> f64 { map.panels[at].groups.iter().map(|(_, values)| values[1].unwrap()).sum() };
    let parts: f64 = (1..5).map(all).sum();
    assert!((all(0) - parts).abs() < 1e-6 * all(0), "{} in all, {parts} by cause", all(0));
    let journal = &varmail.panels[0];
    let of = |threads: usize, name: &str| {
        let at = journal.series.iter().position(|series| series == name).unwrap();
        journal.groups[threads].1[at].unwrap()
    };
    assert!((0..4).all(|threads| of(threads, "fast commits") < of(threads, "ordered")), "{journal:?}");
    assert_eq!(of(0, "memory"), 0.0, "nothing of the journal is on flash");
    let parallel = factors.claims.iter().find(|claim| claim.place.contains("CJFS")).unwrap();
    assert_eq!(parallel.ours, None, "parallel commits are not built");
}

#[test]
fn a_stored_number_that_is_made_no_longer_is_named() {
    let bench = Bench::new();
    let answer = bench.flashpath(&["reproduce", "sfs-table1", "--json", "made.json", "--quiet"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let mut stored: Vec<Reproduction> =
        serde_json::from_str(&std::fs::read_to_string(bench.path("made.json")).unwrap()).unwrap();
    let value = &mut stored[0].figures[0].panels[0].groups[1].1[0];
    *value = value.map(|value| value * 1.01);
    bench.write("made.json", serde_json::to_string(&stored).unwrap());
    let answer = bench.flashpath(&["reproduce", "--check", "made.json", "sfs-table1", "--quiet"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("1 numbers of made.json") && answer.stderr.contains("sfs-table1: "), "{answer:?}");
}

/// Simulated figures need no root, and are the same each time.
#[test]
fn figures_of_sfs_are_made_in_simulation_and_written_in_every_form() {
    let bench = Bench::new();
    let figures = ["sfs-table1", "sfs-fig4", "sfs-fig5", "sfs-fig10"];
    let outputs = ["--scale", "1/256", "--json", "made.json", "--markdown", "page.md", "--report", "page.html"];
    let make = |figures: &[&str]| {
        let answer = bench.flashpath(&[&["reproduce"], figures, &outputs[..]].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let text = std::fs::read_to_string(bench.path("made.json")).unwrap();
        serde_json::from_str::<Vec<Reproduction>>(&text).unwrap().remove(0)
    };
    let made = make(&figures);
    assert_eq!(made.figures.iter().map(|figure| figure.name.as_str()).collect::<Vec<_>>(), figures);
    for figure in &made.figures {
        assert!(!figure.claims.is_empty() && figure.claims.iter().all(|claim| claim.ours.is_some()), "{figure:?}");
        let svg = std::fs::read_to_string(bench.path(&format!("page/{}.svg", figure.name))).unwrap();
        assert!(svg.starts_with("<svg"));
    }
    let [table, hot, groups, full] = &made.figures[..] else { panic!("four figures") };
    // A device's reads and sequential writes are the paper's; random writes do not depend on service times.
    let [_, _, _, random_write] = &table.panels[0].groups[..] else { panic!("four kinds of requests") };
    for (name, values) in &table.panels[0].groups {
        let off = |pair: &[Option<f64>]| (pair[1].unwrap() / pair[0].unwrap() - 1.0).abs();
        assert!(name == &random_write.0 || values.chunks(2).all(|pair| off(pair) < 0.05), "{name}: {values:?}");
    }
    // Four groups, in order, and each segment counted once.
    let column =
        |panel: &Panel, at: usize| panel.groups.iter().map(|(_, values)| values[at].unwrap()).collect::<Vec<_>>();
    let centres = column(&hot.panels[1], 0);
    assert!(centres.len() == 4 && centres.is_sorted(), "{centres:?}");
    for panel in hot.panels[..1].iter().chain(&full.panels) {
        for at in 0..panel.series.len() {
            assert!((column(panel, at).iter().sum::<f64>() - 1.0).abs() < 1e-9, "{panel:?}");
        }
    }
    // At 85 % of the volume, cleaning has a cost, with four groups at least a tenth less than with one.
    for at in 0..2 {
        let costs = column(&groups.panels[0], at);
        assert!(costs[3] > 1.5 && costs[3] < 0.9 * costs[0], "{groups:?}");
    }
    assert_eq!(make(&figures[1..2]).figures, made.figures[1..2]);
}

/// The bench of placement compares all policies, knows a winner, and goes on after an interruption with what is done.
#[test]
fn the_bench_of_placement_compares_all_policies_and_is_resumed() {
    let bench = Bench::new();
    let make = || {
        let arguments = ["reproduce", "placement", "--scale", "1/256", "--traces", "traces", "--json", "-"];
        let answer = bench.flashpath(&arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        (serde_json::from_str::<Vec<Reproduction>>(&answer.stdout).unwrap().remove(0), answer.stderr)
    };
    let (made, _) = make();
    let names: Vec<&str> = made.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["placement-means", "placement-loads", "placement-winners", "placement-all"]);
    let [means, loads, winners, all] = &made.figures[..] else { panic!("four figures") };
    assert_eq!(means.panels.len(), 2, "without syncs, and one every 64 writes");
    for panel in &means.panels {
        assert_eq!((panel.groups.len(), panel.series.len()), (7, 5));
        assert!(
            panel.groups.iter().all(|(_, values)| values.iter().all(|value| value.is_some_and(|value| value > 0.5)))
        );
    }
    assert_eq!((loads.panels[0].groups.len(), winners.panels[0].groups.len(), all.panels[0].groups.len()), (2, 2, 35));
    assert!(means.claims.iter().all(|claim| claim.ours.is_some()), "{:?}", means.claims);
    // With few hot blocks and no sync, lifetimes copy less than SFS's own hotness, and the oracle less than both.
    let zipf = &loads.panels[0].groups[1].1;
    let [sfs, ours, oracle] = [1, 5, 6].map(|at| zipf[at].unwrap());
    assert!(oracle < ours && ours < 0.9 * sfs, "{zipf:?}");
    // The second time nothing is run. A journal that lost its end is completed.
    let mut journal = std::fs::read_dir(bench.path("traces")).unwrap().map(|entry| entry.unwrap().path());
    let journal = journal.find(|path| path.extension().is_some_and(|end| end == "journal")).unwrap();
    let whole = std::fs::read(&journal).unwrap();
    let runs = |progress: &str| progress.matches(" with ").count();
    let (again, progress) = make();
    assert_eq!((&again.figures, runs(&progress)), (&made.figures, 0));
    std::fs::write(&journal, &whole[..whole.len() * 9 / 10]).unwrap();
    let (resumed, progress) = make();
    assert_eq!(resumed.figures, made.figures);
    assert!((1..40).contains(&runs(&progress)), "{progress}");
}

/// Simulated figures of journals in memory are the same each time, and all three journals do the same work.
#[test]
fn figures_of_nvm_are_made_with_simulated_threads() {
    let bench = Bench::new();
    let figures = ["nvm-fig4-simulated", "nvm-flash"];
    let make = || {
        let answer = bench.flashpath(&[&["reproduce"], &figures[..], &["--scale", "1/256", "--json", "-"]].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        serde_json::from_str::<Vec<Reproduction>>(&answer.stdout).unwrap().remove(0)
    };
    let made = make();
    let [throughput, flash] = &made.figures[..] else { panic!("two figures") };
    assert!(throughput.claims.iter().chain(&flash.claims).all(|claim| claim.ours.is_some()), "{made:?}");
    let threads: Vec<&str> = throughput.panels[0].groups.iter().map(|(threads, _)| threads.as_str()).collect();
    assert_eq!(threads, ["1", "2", "4", "8", "16"]);
    // An fsync waits for the drive with the journal on it, and for no device with the journal in partitioned memory.
    for (threads, values) in &throughput.panels[1].groups {
        let [inside, _, _, partitioned] = values[..] else { panic!("four journals") };
        assert!(inside.unwrap() > 20.0 * partitioned.unwrap(), "{threads} threads: {values:?}");
    }
    // Only the journal inside the volume reaches the flash as journal; content and cause add up to the same.
    for [by_content, by_cause] in flash.panels.as_chunks::<2>().0 {
        let row = |panel: &Panel, name: &str| panel.groups.iter().find(|(row, _)| row == name).unwrap().1.clone();
        let journal = row(by_content, "journal");
        assert!(journal[0] > Some(0.0) && journal[1..] == [Some(0.0); 3], "{by_content:?}");
        assert_eq!(row(by_content, "all"), row(by_cause, "all"));
    }
    assert_eq!(made.figures, make().figures);
}

/// The real figure runs with or without the rights for the kernel's ext4, and leaves no file, mount or loop device.
#[test]
fn a_figure_of_nvm_is_made_with_real_threads() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("drive")).unwrap();
    let answer = bench.flashpath(&[
        "reproduce",
        "nvm-hash",
        "nvm-fig4-real",
        "--scale",
        "1/256",
        "--dir",
        "drive",
        "--json",
        "-",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let made = serde_json::from_str::<Vec<Reproduction>>(&answer.stdout).unwrap().remove(0);
    let is_missing =
        |what: &str| made.conditions.iter().any(|(name, text)| name == "not measured" && text.contains(what));
    let [throughput, hash] = &made.figures[..] else { panic!("two figures") };
    assert_eq!(
        throughput.panels[0].series,
        ["JFS", "N-JFS", "O-JFS", "O-JFS, our scheme", "ext4", "ext4, journal in RAM", "tmpfs"]
    );
    for (threads, values) in &throughput.panels[0].groups {
        let is_measured = |values: &[Option<f64>]| values.iter().all(|value| value.is_some_and(|mb_s| mb_s > 0.0));
        assert!(is_measured(&values[..4]), "{threads} threads: {values:?}");
        assert!(is_measured(&values[4..6]) || is_missing("ext4"), "{threads} threads: {values:?}");
        assert!(is_measured(&values[6..]) || is_missing("tmpfs"), "{threads} threads: {values:?}");
    }
    assert!(hash.panels[..2].iter().flat_map(|panel| &panel.groups).all(|(_, values)| values[0].is_some()), "{hash:?}");
    assert_eq!(std::fs::read_dir(bench.path("drive")).unwrap().count(), 0, "the files are removed");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&bench.path("drive").display().to_string()), "{mounts}");
}

#[test]
fn the_papers_figures_are_made_from_captures_that_are_kept() {
    if !can_capture(&["mkfs.ext3"]) {
        return;
    }
    let bench = Bench::new();
    let make = || {
        let arguments = ["reproduce", "vma-fig3", "vma-fig4", "--scale", "1/256", "--traces", "traces", "--json", "-"];
        let answer = bench.flashpath(&arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        (serde_json::from_str::<Vec<Reproduction>>(&answer.stdout).unwrap(), answer.stderr)
    };
    let (made, stderr) = make();
    assert!(stderr.contains("capturing vma-untar-journal"), "{stderr}");
    let [traffic, erases] = &made[0].figures[..] else { panic!("two figures") };
    assert_eq!(erases.panels.len(), 4, "the paper's three layers, and the page-level one");
    // What a single load writes at this scale depends on when the kernel writes back.
    let groups = &traffic.panels[0].groups;
    let total = |mode: usize| groups.iter().map(|(_, values)| values[mode].unwrap()).sum::<f64>();
    assert!(total(2) > total(1) && total(2) > total(0), "data=journal writes most: {groups:?}");
    assert!(
        groups.iter().all(|(_, values)| values.len() == 7 && values.iter().all(Option::is_some)),
        "three modes of the kernel's, and four of ext: {groups:?}"
    );
    // The same workloads in ext: sums, since a single one depends on when the kernel writes back.
    for mode in 0..3 {
        let ratio = total(3 + mode) / total(mode);
        assert!((0.6..1.6).contains(&ratio), "ext writes {ratio} of what the kernel does: {groups:?}");
    }
    assert!(total(5) > total(4) && total(5) > total(3), "data=journal writes most in ext, too: {groups:?}");
    let journal = &traffic.panels[1].groups;
    assert!(journal.iter().all(|(_, values)| values[6] == Some(0.0)), "VMA mode writes no journal: {journal:?}");
    assert!(total(6) < 0.7 * total(5), "VMA mode is spared the journal of data=journal: {groups:?}");
    // A single workload erases too few blocks at this scale to be compared.
    for panel in &erases.panels {
        let sum = |mode: usize| panel.groups.iter().filter_map(|(_, values)| values[mode]).sum::<f64>();
        assert!(sum(2) >= sum(1), "{}: {:?}", panel.title, panel.groups);
    }
    // The kept traces give the same results without a capture.
    let (again, stderr) = make();
    assert!(!stderr.contains("capturing"), "{stderr}");
    assert_eq!(made, again);
}

/// docs/results.md is the program's output for docs/results.json, without edits.
#[test]
fn the_results_page_is_written_by_the_program() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let bench = Bench::new();
    let json = docs.join("results.json");
    let answer =
        bench.flashpath(&["reproduce", "--from", &json.display().to_string(), "--markdown", "results.md", "--quiet"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let kept = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap_or_default();
    let written = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert!(written("results.md") == kept("results.md"), "docs/results.md: run make results");
    let all: Value = serde_json::from_str(&kept("results.json")).unwrap();
    for figure in all.as_array().unwrap().iter().flat_map(|paper| paper["figures"].as_array().unwrap()) {
        let name = PathBuf::from("results").join(format!("{}.svg", figure["name"].as_str().unwrap()));
        let name = name.display().to_string();
        assert!(written(&name) == kept(&name), "docs/{name}: run make results");
    }
}

/// The same of the pages of drives and of journals.
#[test]
fn the_pages_of_drives_and_of_journals_are_written_by_the_program() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    for page in ["drives", "journals"] {
        let bench = Bench::new();
        let json = docs.join(format!("{page}.json")).display().to_string();
        let answer = bench.flashpath(&["reproduce", "--from", &json, "--markdown", &format!("{page}.md"), "--quiet"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let pictures = std::fs::read_dir(docs.join(page)).unwrap();
        let pictures = pictures.map(|file| format!("{page}/{}", file.unwrap().file_name().display()));
        let names: Vec<String> = [format!("{page}.md")].into_iter().chain(pictures).collect();
        assert!(names.len() > 4, "{names:?}");
        for name in names {
            let written = std::fs::read_to_string(bench.path(&name)).unwrap_or_default();
            assert!(
                written == std::fs::read_to_string(docs.join(&name)).unwrap(),
                "docs/results/{name}: run make results"
            );
        }
    }
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    if !can_capture(&["mkfs.ext3"]) {
        return;
    }
    let bench = Bench::new();
    bench.write("kept", "");
    let temporary = bench.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = bench.command(&["reproduce", "vma", "--scale", "1/64"]);
    command.env("TMPDIR", &temporary).stderr(std::process::Stdio::piped());
    let mut running = command.spawn().unwrap();
    // The first message is the begin of the first capture.
    let mut stderr = [0; 9];
    std::io::Read::read_exact(running.stderr.as_mut().unwrap(), &mut stderr).unwrap();
    assert_eq!(&stderr, b"capturing");
    std::thread::sleep(std::time::Duration::from_millis(300));
    // To the process group, as a terminal does.
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let children = std::fs::read_to_string(children).unwrap();
    let everyone = children.split_whitespace().map(str::to_string).chain([running.id().to_string()]);
    let status = std::process::Command::new("kill").arg("-INT").args(everyone).status().unwrap();
    assert!(status.success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert_eq!(temporary.read_dir().unwrap().count(), 0, "no trace, no device's file, no mount");
}
