//! Every block of shell commands in README, docs/ and examples/ runs as it stands: page by page, in the order of the page, from an
//! empty directory with the traces of the repository. What a page says that its commands print is looked for in their output.
//!
//! A block that is not run has the reason before it: `<!-- not run: it needs a minute of root -->`.

use super::bench::{Answer, Bench};
use super::serve::{can_mount, is_mounted, wait_until};
use super::skipped::skipped;
use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The blocks that are not run. The number may only fall.
const NOT_RUN: usize = 5;

/// The mark of a block that is not run.
const MARK: &str = "<!-- not run: ";

/// What the first block of a page prints, in words that are in the page, too, and answer its question.
const ANSWERS: [(&str, &str); 13] = [
    ("docs/how-to/over-provisioning.md", "met from page.op="),
    ("docs/how-to/journal-and-life.md", "journal wears its drive out "),
    ("docs/how-to/copies-over-time.md", "stored: garbage collection"),
    ("docs/how-to/used-drive.md", "1.000"),
    ("docs/how-to/cost-of-collection.md", "write, p99, of it collection"),
    ("docs/how-to/wa-of-a-benchmark.md", "write amplification, total"),
    ("docs/how-to/tail-latency.md", "\"99.990000\""),
    ("docs/how-to/sequential-or-random.md", "throughput_mib_s"),
    ("docs/how-to/write-buffer.md", "absorbed above the media"),
    ("docs/how-to/my-flash.md", "nand"),
    ("docs/how-to/stages.md", "745"),
    ("docs/how-to/any-trace.md", "1.01 MiB"),
    ("docs/how-to/volumes.md", "median"),
];

/// Words in a row that a block prints, and in the text behind it: the page, words of the block, those of the row, and the words.
const ROWS: [(&str, &str, &str, &[&str]); 2] = [
    ("docs/tutorial.md", "streams=content", "write amplification, total", &["2.279", "1.028"]),
    ("docs/how-to/cache-trace.md", "flashpath run kvcache:", "hit ratio", &["hit ratio"]),
];

/// Words on standard error, for each block of a page: true if it has them.
const COMPLAINTS: [(&str, &str, &[bool]); 1] =
    [("docs/how-to/replay-times.md", "does not keep up with the recorded times", &[true, false])];

/// Blocks of the README that a table follows, the rows of which are rows of what they print.
const TABLES: [&str; 2] = ["traces/fb_varmail", "--on ext/fast"];

/// Files that are there when a page is done, and words that they begin with.
const MADE: [(&str, &str, &str); 7] = [
    ("README.md", "report.html", "<!doctype html>"),
    ("README.md", "map.svg", "<svg"),
    ("docs/tutorial.md", "report.html", "<!doctype html>"),
    ("docs/tutorial.md", "result.json", "["),
    ("docs/tutorial.md", "spare.csv", ""),
    ("docs/tutorial.md", "spare.html", "<!doctype html>"),
    ("docs/how-to/volumes.md", "volumes.html", "<!doctype html>"),
];

/// A block of shell commands.
struct Block {
    /// Its first line, from 1.
    line: usize,
    commands: String,
    /// The reason for which it is not run.
    not_run: Option<String>,
    /// The rest of the page.
    after: String,
}

/// A page, and its blocks in order.
struct Page {
    /// Its name from the repository on.
    name: String,
    text: String,
    blocks: Vec<Block>,
}

impl Page {
    fn read(name: String) -> Page {
        let text = std::fs::read_to_string(FilePath::new(ROOT).join(&name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut blocks = Vec::new();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim_start() == "```sh") {
            // A block in a list is indented as the list is; a document within the commands ends at a line of its own.
            let indent = line.len() - line.trim_start().len();
            let inner = lines[at + 1..].iter().take_while(|line| line.trim() != "```");
            let inner: Vec<&str> = inner.map(|line| line.get(indent..).unwrap_or_default()).collect();
            let before = lines[..at].iter().rev().find(|line| !line.trim().is_empty()).map_or("", |line| line.trim());
            let not_run = before.strip_prefix(MARK).and_then(|mark| mark.strip_suffix("-->"));
            blocks.push(Block {
                line: at + 2,
                commands: inner.join("\n") + "\n",
                not_run: not_run.map(|reason| reason.trim().to_string()),
                after: lines[at + 2 + inner.len()..].join("\n"),
            });
        }
        Page { name, text, blocks }
    }

    /// Runs the blocks in their order. Returns what is wrong.
    fn run(&self) -> Vec<String> {
        let bench = Bench::new();
        std::os::unix::fs::symlink(FilePath::new(ROOT).join("traces"), bench.path("traces")).unwrap();
        let (mut faults, mut servers) = (Vec::new(), Vec::new());
        let mut answers: Vec<(&Block, Answer)> = Vec::new();
        for block in self.blocks.iter().filter(|block| block.not_run.is_none()) {
            if block.mounts() && !can_mount() {
                skipped(&format!("{}:{}: it needs root and /dev/fuse", self.name, block.line));
                continue;
            }
            let answer = shell(&bench, &block.commands);
            let is_number = |line: &&str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
            if block.commands.contains("--background") {
                servers.extend(answer.stdout.lines().filter(is_number).map(str::to_string));
            }
            let is_done = answer.code == Some(0);
            if !is_done {
                faults.push(format!("{}:{}: {}{answer:?}", self.name, block.line, block.commands));
            }
            answers.push((block, answer));
            if !is_done {
                break;
            }
        }
        if faults.is_empty() {
            self.compare(&bench, &answers, &mut faults);
        }
        // An unmount has ended some of them.
        let program = std::fs::canonicalize(env!("CARGO_BIN_EXE_flashpath")).unwrap();
        let is_alive =
            |server: &String| std::fs::read_link(format!("/proc/{server}/exe")).is_ok_and(|running| running == program);
        for server in servers.iter().filter(|server| is_alive(server)) {
            assert!(Command::new("kill").arg(server).status().unwrap().success());
        }
        wait_until("the servers end", || {
            !servers.iter().any(is_alive) && ["DIR", "mnt"].iter().all(|folder| !is_mounted(&bench.path(folder)))
        });
        faults
    }

    /// Compares what the blocks printed with what the page says.
    fn compare(&self, bench: &Bench, answers: &[(&Block, Answer)], faults: &mut Vec<String>) {
        let mut fault = |text: String| faults.push(format!("{}: {text}", self.name));
        for (_, words) in ANSWERS.iter().filter(|(page, _)| *page == self.name) {
            let printed = answers.first().map_or("", |(_, answer)| &answer.stdout);
            if !printed.contains(words) || !self.text.contains(words.trim()) {
                fault(format!("'{words}' is in the page and not printed, or the other way: {printed}"));
            }
        }
        for (_, words, label, said) in ROWS.iter().filter(|(page, ..)| *page == self.name) {
            let found = answers.iter().find(|(block, _)| block.commands.contains(words));
            let (block, answer) = found.unwrap_or_else(|| panic!("{words} is in a block of {}", self.name));
            let row = answer.stdout.lines().find(|line| line.contains(label)).unwrap_or_default();
            for said in said.iter().filter(|said| !row.contains(**said) || !block.after.contains(**said)) {
                fault(format!("{said} is not both printed and behind the block: {row}"));
            }
        }
        for (_, words, expected) in COMPLAINTS.iter().filter(|(page, ..)| *page == self.name) {
            let said: Vec<bool> = answers.iter().map(|(_, answer)| answer.stderr.contains(words)).collect();
            if said != *expected {
                fault(format!("'{words}' was said {said:?}"));
            }
        }
        if self.name == "README.md" {
            for words in TABLES {
                let found = answers.iter().find(|(block, _)| block.commands.contains(words));
                let (block, answer) = found.unwrap_or_else(|| panic!("{words} is in a block"));
                compare_table(block, answer, &mut fault);
            }
        }
        for (_, file, begins) in MADE.iter().filter(|(page, ..)| *page == self.name) {
            let made = std::fs::read_to_string(bench.path(file));
            // A map is made of a mounted volume.
            if !made.is_ok_and(|text| text.starts_with(begins)) && (can_mount() || *file != "map.svg") {
                fault(format!("{file} is not made, or does not begin with {begins}"));
            }
        }
    }
}

impl Block {
    fn mounts(&self) -> bool {
        self.commands.contains("flashpath mount ") || self.commands.contains(" --file ")
    }
}

/// Runs commands in a shell that finds the program, as after an installation.
pub fn shell(bench: &Bench, commands: &str) -> Answer {
    let program = FilePath::new(env!("CARGO_BIN_EXE_flashpath")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-e", "-c", commands]).current_dir(bench.path("")).env("PATH", path);
    Answer::of(command.env("NO_COLOR", "1").env("COLUMNS", "200").output().unwrap())
}

/// The rows of the first table in Markdown: the label, and the cells.
fn rows(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let table = text.split_once("|---|").expect("a table follows the commands").1;
    table.lines().skip(1).take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        (cells.next().unwrap(), cells.collect())
    })
}

/// Compares each row of the table behind a block with a row of what it printed.
fn compare_table(block: &Block, answer: &Answer, fault: &mut impl FnMut(String)) {
    let mut compared = 0;
    for (label, cells) in rows(&block.after) {
        let printed = answer.stdout.lines().find(|line| line.trim_start().starts_with(label)).unwrap_or_default();
        let printed = printed.replace(['*', '!'], " ");
        let mut rest = printed.split_once(label).map_or("", |(_, rest)| rest);
        for cell in cells {
            match rest.split_once(cell) {
                Some((_, after)) if after.is_empty() || after.starts_with(' ') => rest = after,
                _ => return fault(format!("{label}: {cell} in the table, printed: {printed}")),
            }
        }
        compared += 1;
    }
    if compared < 4 {
        fault(format!("{compared} rows were compared of the table behind line {}", block.line));
    }
}

/// The pages with Markdown below a folder of the repository, by name.
fn pages_below(folder: &str, names: &mut Vec<String>) {
    for entry in FilePath::new(ROOT).join(folder).read_dir().unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true if name.ends_with("/target") => {}
            true => pages_below(&name, names),
            false if name.ends_with(".md") => names.push(name),
            false => {}
        }
    }
}

fn pages() -> Vec<Page> {
    let mut names = vec!["README.md".to_string()];
    pages_below("docs", &mut names);
    pages_below("examples", &mut names);
    names[1..].sort();
    names.into_iter().map(Page::read).collect()
}

/// Three questions of users were answered wrongly, or not at all, by one who had the documents alone; the README's table of two
/// drives was typed by hand, and its example of sfs cleaned and erased nothing.
#[test]
fn the_commands_of_every_page_run_in_their_order_and_print_what_the_page_says() {
    let pages = pages();
    let blocks: usize = pages.iter().map(|page| page.blocks.len()).sum();
    assert!(blocks >= 49, "{blocks} blocks");
    let named = ANSWERS.iter().map(|(page, _)| *page).chain(ROWS.iter().map(|(page, ..)| *page));
    let named = named.chain(COMPLAINTS.iter().map(|(page, ..)| *page)).chain(MADE.iter().map(|(page, ..)| *page));
    for name in named {
        assert!(
            pages.iter().any(|page| page.name == name && !page.blocks.is_empty()),
            "{name} is a page with commands"
        );
    }
    let (next, faults, seconds) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = std::time::Instant::now();
                    let wrong = page.run();
                    faults.lock().unwrap().extend(wrong);
                    seconds.lock().unwrap().insert(page.name.clone(), begun.elapsed().as_secs());
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    let slow: Vec<_> = seconds.into_inner().unwrap().into_iter().filter(|(_, seconds)| *seconds > 5).collect();
    println!("pages of more than five seconds: {slow:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn a_block_that_is_not_run_has_a_reason_and_there_are_few() {
    let pages = pages();
    let marked: Vec<String> = pages
        .iter()
        .flat_map(|page| page.blocks.iter().map(move |block| (page, block)))
        .filter_map(|(page, block)| Some(format!("{}:{}: {}", page.name, block.line, block.not_run.as_ref()?)))
        .collect();
    assert_eq!(marked.len(), NOT_RUN, "the constant is the number of marked blocks, which may only fall: {marked:#?}");
    assert!(marked.iter().all(|marked| marked.len() > 40), "a reason has words: {marked:#?}");
    let marks: usize = pages.iter().map(|page| page.text.matches(MARK).count()).sum();
    assert_eq!(marks, NOT_RUN, "each mark stands before a block");
}

/// The lines of the indented examples, which have placeholders, and notes behind two blanks: the words of each command.
fn indented(page: &Page) -> Vec<(usize, Vec<String>)> {
    let mut commands = Vec::new();
    let mut is_fenced = false;
    let mut lines = page.text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        is_fenced ^= line.trim_start().starts_with("```");
        let Some(text) = line.strip_prefix("    ").filter(|text| !is_fenced && text.starts_with("flashpath ")) else {
            continue;
        };
        let mut text = text.to_string();
        while let Some(continued) = text.strip_suffix('\\') {
            text = format!("{} {}", continued.trim_end(), lines.next().map_or("", |(_, line)| line.trim()));
        }
        commands.push((at + 1, words_of(&text)));
    }
    commands
}

/// The words of a command, as a shell has them, up to a note or the command of another program: a note has two blanks before it, but
/// for those behind the command's name.
fn words_of(text: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    let parts = text.split(' ');
    for part in parts {
        let ends = part.is_empty() && words.len() > 2 || part == "#" || part == "--";
        if ends && !quoted {
            break;
        }
        let was_quoted = quoted;
        quoted ^= part.matches('\'').count() % 2 == 1;
        match words.last_mut() {
            Some(last) if was_quoted => *last = format!("{last} {}", part.trim_end_matches('\'')),
            _ if part.is_empty() => {}
            _ => words.push(part.trim_matches('\'').to_string()),
        }
    }
    words
}

/// Commands in the text have placeholders, and are not run: each is one that the program has, with options that it takes, and
/// paths and workloads that it reads.
#[test]
fn commands_in_the_text_have_options_and_paths_that_there_are() {
    let (bench, mut helps) = (Bench::new(), BTreeMap::new());
    let (mut checked, mut faults) = (0, Vec::new());
    for page in pages() {
        for (line, words) in indented(&page) {
            let command = words[1].clone();
            let help: &String =
                helps.entry(command.clone()).or_insert_with(|| bench.flashpath(&[&command, "--help"]).stdout);
            let mut fault = |text: &str| faults.push(format!("{}:{line}: {text}: {}", page.name, words.join(" ")));
            if help.is_empty() {
                fault("there is no such command");
            }
            for (at, word) in words.iter().enumerate().skip(2) {
                let is_option = |option: &str| {
                    help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|known| known == option)
                };
                if word.starts_with('-') && word.len() > 1 && !is_option(word.split('=').next().unwrap()) {
                    fault(&format!("there is no {word}"));
                }
                let is_path = words[at - 1] == "--on"
                    || (at == 2 && ["mkfs", "mount", "fsck", "inspect", "serve"].contains(&command.as_str()));
                let path = word
                    .split_once('=')
                    .filter(|(name, _)| !name.contains([':', '/']))
                    .map_or(word.as_str(), |(_, path)| path);
                let is_path = is_path && command != "sweep" && path.contains('/');
                if is_path && let Err(error) = flashpath::run::Path::read(path) {
                    fault(&error.to_string());
                }
            }
            checked += 1;
        }
    }
    assert!(checked >= 70, "{checked} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The paths that a page may name.
pub fn readme() -> String {
    std::fs::read_to_string(PathBuf::from(ROOT).join("README.md")).unwrap()
}
