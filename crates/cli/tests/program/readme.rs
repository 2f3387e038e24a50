//! The commands of the README do what it says, and so do the commands with which a report repeats its runs.

use super::bench::{Answer, Bench, results};
use super::serve::{bench_to_mount_in, is_mounted, wait_until};
use flashpath::run::Path;
use std::os::unix::fs::symlink;
use std::path::Path as FilePath;
use std::process::Command;

const README: &str = include_str!("../../../../README.md");
const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");

/// A block of shell commands, and the rest of the README after it.
struct Block {
    commands: &'static str,
    after: &'static str,
}

fn blocks(page: &'static str) -> Vec<Block> {
    let mut rest = page;
    let mut blocks = Vec::new();
    while let Some((_, begun)) = rest.split_once("```sh\n") {
        let (commands, after) = begun.split_once("```\n").expect("a block of commands ends");
        blocks.push(Block { commands, after });
        rest = after;
    }
    blocks
}

/// The first block with these words.
fn block(words: &str) -> Block {
    blocks(README)
        .into_iter()
        .find(|block| block.commands.contains(words))
        .unwrap_or_else(|| panic!("{words} in the README"))
}

/// Runs commands in a shell that finds the program, as after an installation.
fn shell(bench: &Bench, commands: &str) -> Answer {
    let program = FilePath::new(env!("CARGO_BIN_EXE_flashpath")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-e", "-c", commands]).current_dir(bench.path("")).env("PATH", path);
    Answer::of(command.env("NO_COLOR", "1").env("COLUMNS", "200").output().unwrap())
}

/// The rows of a table in Markdown: the label, and the cells.
fn rows(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let table = text.split_once("|---|").expect("a table follows the commands").1;
    table.lines().skip(1).take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        (cells.next().unwrap(), cells.collect())
    })
}

/// Checks that each row of the table after a run is a row of what the run prints.
fn prints_the_table_of_the_readme(words: &str) {
    let (bench, block) = (Bench::new(), block(words));
    symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces"), bench.path("traces")).unwrap();
    let answer = shell(&bench, block.commands);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let mut compared = 0;
    for (label, cells) in rows(block.after) {
        let printed = answer.stdout.lines().find(|line| line.trim_start().starts_with(label));
        let printed =
            printed.unwrap_or_else(|| panic!("no row '{label}' in\n{}", answer.stdout)).replace(['*', '!'], " ");
        let mut rest = printed.split_once(label).unwrap().1;
        for cell in cells {
            let at = rest.find(cell).unwrap_or_else(|| panic!("{label}: {cell} in the README, printed: {printed}"));
            rest = &rest[at + cell.len()..];
            assert!(rest.is_empty() || rest.starts_with(' '), "{label}: {cell} in the README, printed: {printed}");
        }
        compared += 1;
    }
    assert!(compared >= 4, "{compared} rows were compared");
    let report = block.commands.contains("--report").then(|| bench.path("report.html").exists());
    assert_ne!(report, Some(false), "the report is written");
}

/// The README's table of a mail server on two drives was typed by hand.
#[test]
fn the_mail_server_on_two_drives_writes_what_the_readme_says() {
    prints_the_table_of_the_readme("traces/fb_varmail");
}

/// The README's example of sfs cleaned and erased nothing: its write amplification was 0.114.
#[test]
fn two_file_systems_on_one_drive_write_what_the_readme_says() {
    prints_the_table_of_the_readme("--on ext/fast");
}

#[test]
fn the_readme_makes_checks_and_serves_disks() {
    let Some(bench) = bench_to_mount_in() else { return };
    let answer = shell(&bench, block("--nbd SOCKET").commands);
    let servers: Vec<&str> =
        answer.stdout.lines().filter(|line| !line.is_empty() && line.bytes().all(|c| c.is_ascii_digit())).collect();
    let disk = std::fs::metadata(bench.path("DIR/disk")).map(|disk| disk.len());
    let has_socket = bench.path("SOCKET").exists();
    for server in &servers {
        assert!(Command::new("kill").arg(server).status().unwrap().success());
    }
    wait_until("the servers end", || !is_mounted(&bench.path("DIR")) && !bench.path("SOCKET").exists());
    assert_eq!((answer.code, servers.len(), has_socket), (Some(0), 2, true), "{answer:?}");
    assert!(disk.unwrap() > 1 << 30);
}

#[test]
fn the_readme_mounts_and_inspects_a_volume() {
    let Some(bench) = bench_to_mount_in() else { return };
    let answer = shell(&bench, block("flashpath umount").commands);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(std::fs::read_to_string(bench.path("map.svg")).unwrap().starts_with("<svg"));
    assert!(!is_mounted(&bench.path("mnt")));
}

#[test]
fn the_commands_of_the_tutorial_run_in_their_order() {
    let bench = Bench::new();
    symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces"), bench.path("traces")).unwrap();
    let blocks = blocks(TUTORIAL);
    assert!(blocks.len() >= 6, "{} blocks", blocks.len());
    for block in blocks {
        let answer = shell(&bench, block.commands);
        assert_eq!(answer.code, Some(0), "{}: {answer:?}", block.commands);
        // The step praised a separation that its numbers, 1.000 and 1.000, did not show: it only had to run.
        if block.commands.contains("streams=content") {
            let line =
                answer.stdout.lines().find(|line| line.contains("write amplification, total")).unwrap_or_default();
            for number in ["2.279", "1.028"] {
                assert!(line.contains(number) && block.after.contains(number), "{number} in the tutorial: {answer:?}");
            }
        }
    }
    for made in ["report.html", "result.json", "spare.csv", "spare.html"] {
        assert!(bench.path(made).exists(), "{made}");
    }
}

/// Three questions of users were answered wrongly, or not at all, by one who had the documents alone: the pages that answer
/// them are run, and print what they say.
#[test]
fn the_questions_of_users_are_answered_as_their_pages_say() {
    let pages = [
        (include_str!("../../../../docs/how-to/over-provisioning.md"), "met from page.op="),
        (include_str!("../../../../docs/how-to/journal-and-life.md"), "journal wears its drive out "),
        (include_str!("../../../../docs/how-to/copies-over-time.md"), "stored: garbage collection"),
    ];
    answers(&pages);
}

/// Questions from the issues of other simulators and tools.
#[test]
fn questions_that_others_are_asked_are_answered_as_their_pages_say() {
    let pages = [
        (include_str!("../../../../docs/how-to/used-drive.md"), "1.000"),
        (include_str!("../../../../docs/how-to/cost-of-collection.md"), "write, p99, of it collection"),
        (include_str!("../../../../docs/how-to/wa-of-a-benchmark.md"), "write amplification, total"),
        (include_str!("../../../../docs/how-to/tail-latency.md"), "\"99.990000\""),
        (include_str!("../../../../docs/how-to/sequential-or-random.md"), "throughput_mib_s"),
        (include_str!("../../../../docs/how-to/write-buffer.md"), "absorbed above the media"),
        (include_str!("../../../../docs/how-to/my-flash.md"), "nand"),
        (include_str!("../../../../docs/how-to/stages.md"), "745"),
        (include_str!("../../../../docs/how-to/any-trace.md"), "1.01 MiB"),
        (include_str!("../../../../docs/how-to/volumes.md"), "median"),
    ];
    answers(&pages);
}

/// The page on slow replays: the first drive does not keep up and says so, the second does.
#[test]
fn a_replay_that_falls_behind_says_so_as_its_page_does() {
    let page = include_str!("../../../../docs/how-to/replay-times.md");
    let bench = Bench::new();
    symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces"), bench.path("traces")).unwrap();
    let said: Vec<bool> = blocks(page)
        .iter()
        .map(|block| {
            let answer = shell(&bench, block.commands);
            assert_eq!(answer.code, Some(0), "{answer:?}");
            answer.stderr.contains("does not keep up with the recorded times")
        })
        .collect();
    assert_eq!(said, [true, false]);
}

/// Runs the commands of pages: each ends well, and the first of a page prints what answers its question.
fn answers(pages: &[(&'static str, &str)]) {
    // A block in a list is indented as the list is; a document within the commands ends at a line of its own.
    let of_a_list = |commands: &str| -> String {
        commands.lines().map(|line| format!("{}\n", line.strip_prefix("   ").unwrap_or(line))).collect()
    };
    for (page, answered) in pages.iter().copied() {
        let bench = Bench::new();
        symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces"), bench.path("traces")).unwrap();
        assert!(page.contains(answered.trim()), "{answered} is in the page");
        let first = blocks(page).into_iter().next().expect("a page has commands");
        for block in blocks(page) {
            let answer = shell(&bench, &of_a_list(block.commands));
            assert_eq!(answer.code, Some(0), "{}: {answer:?}", block.commands);
            if block.commands == first.commands {
                assert!(answer.stdout.contains(answered), "{answered}: {}", answer.stdout);
            }
        }
    }
}

#[test]
fn every_path_in_the_readme_is_one() {
    let paths = README.split_once("## The path\n").unwrap().1.split_once("| station |").unwrap().0;
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
