//! The path of a result with all its options repeats the run: many stations with random options, each run twice, the second
//! time from the first one's `path_in_full`.
//!
//! `ext:journal=nvm` once said data=ordered while data was journalled, and `sfs` left out its grouping, segment and dirty.

use flashpath::expression::{Kind, OptionKind, Values, parse_term};
use flashpath::random::Random;
use flashpath::report::RunResult;
use flashpath::run::{BlockWork, FileShape, Job, NoMachine, Path, Place, RunOptions, STATIONS, Work, run};
use flashpath::workload::files::file_workload;
use flashpath::workload::generator::generator;

/// Paths with the options that keep them small. Each station gets more at random.
const SHAPES: [&str; 17] = [
    "sfs:/conv:size=64M",
    "sfs:/page:/nand:size=128M,pages-per-block=64",
    "sfs:/zns:size=192M,zone=2M",
    "sfs:/cache:/conv:size=64M+conv:size=8M",
    "ext:/conv:size=64M",
    "ext:/conv:size=64M+conv:size=16M",
    "ext:/conv:size=64M+nvm:size=64M",
    "ext:journal=vmm/conv:size=64M",
    "ext:journal=nvm/conv:size=64M",
    "ext:/fast:/nand:size=128M,pages-per-block=64",
    "tree",
    "page:/nand:size=64M,pages-per-block=64",
    "dftl:/nand:size=64M,pages-per-block=64",
    "fast:/nand:size=64M,pages-per-block=64",
    "superblock:/nand:size=64M,pages-per-block=64",
    "dm-zoned:/conv:size=32M+zns:size=96M,zone=4M",
    "hold-journal:/conv:size=64M",
];

/// Options that name files, or whose effect on a small run is to refuse it.
const LEFT_OUT: [&str; 6] = ["image", "device", "spill", "socket", "memory", "preset"];
/// Sizes that fit small volumes.
const SIZES: [&str; 5] = ["64K", "256K", "1M", "2M", "16M"];
const ROUNDS: u64 = 2000;
/// One path in so many can be run at least.
const LEAST_RUN: u64 = 5;

fn pick<'t, T>(random: &mut Random, from: &'t [T]) -> &'t T {
    &from[random.below(from.len() as u64) as usize]
}

/// A value of an option, if it has small ones; it may contradict others.
fn value(random: &mut Random, option: &OptionKind) -> Option<String> {
    let part = |random: &mut Random, low: f64, high: f64| low + (high - low) * random.below(9) as f64 / 8.0;
    Some(match option.values {
        Values::Size(..) => pick(random, &SIZES).to_string(),
        Values::Count(low, high) => (low + random.below((high - low).min(12) + 1)).to_string(),
        Values::Real(low, high) => format!("{:.3}", part(random, low.max(0.0), high.min(4.0))),
        Values::Share(low, high) => format!("{:.3}%", 100.0 * part(random, low, high.min(1.0))),
        Values::Capacity(low, high) => match random.below(2) {
            0 => format!("{:.3}%", 100.0 * part(random, low, high)),
            _ => pick(random, &SIZES).to_string(),
        },
        Values::Duration(low, high) => format!("{}ns", low.max(1) + random.below(50_000_000).min(high - low.max(1))),
        Values::Durations(low, high, most) => {
            let one =
                |random: &mut Random| format!("{}ns", low.max(1) + random.below(5_000_000).min(high - low.max(1)));
            (0..1 + random.below(most as u64)).map(|_| one(random)).collect::<Vec<_>>().join("+")
        }
        Values::Choice(words) => pick(random, &words()).0.to_string(),
        Values::Switch => pick(random, &["on", "off"]).to_string(),
        Values::SwitchOrShare => pick(random, &["on", "off", "70%"]).to_string(),
        Values::Text(_) => ".wal+.tmp".to_string(),
        Values::Amount | Values::Shares | Values::File => return None,
    })
}

/// A term with more options.
fn with_options(random: &mut Random, term: &str) -> String {
    let (name, written) = term.split_once(':').unwrap_or((term, ""));
    let kind: &Kind = STATIONS.iter().find(|station| station.kind.name == name).expect("a station").kind;
    let mut options: Vec<String> = written.split(',').filter(|option| !option.is_empty()).map(str::to_string).collect();
    let wanted = random.below(4);
    for _ in 0..wanted {
        let option = pick(random, kind.options);
        let is_written = options.iter().any(|written| written.split('=').next() == Some(option.name));
        if !is_written
            && !LEFT_OUT.contains(&option.name)
            && let Some(value) = value(random, option)
        {
            options.push(format!("{}={value}", option.name));
        }
    }
    if options.is_empty() { name.to_string() } else { format!("{name}:{}", options.join(",")) }
}

/// A shape with random options at each station.
fn random_path(random: &mut Random) -> String {
    let shape = *pick(random, &SHAPES);
    let levels = shape.split('/').map(|level| {
        level.split('+').map(|term| with_options(random, term.trim_end_matches(':'))).collect::<Vec<_>>().join("+")
    });
    levels.collect::<Vec<_>>().join("/")
}

/// Runs blocks, or files, in a path; `None` if that is refused.
fn result(text: &str, is_of_files: bool) -> Option<RunResult> {
    let path = Path::read(text).ok()?;
    let work = match is_of_files {
        true => {
            let term = parse_term("varmail:files=20,size=8K,loops=60,threads=2").unwrap();
            Work::Files(file_workload(&term, 3).unwrap())
        }
        false => Work::Blocks(BlockWork {
            name: "zipf".to_string(),
            has_times: false,
            open: Box::new(|bytes| {
                let term = parse_term("zipf:theta=1,writes=6M,reads=10%,discards=3%").unwrap();
                Ok(generator(&term, bytes, 3).unwrap())
            }),
        }),
    };
    let is_in_file = path.volume_settings().is_some() && !is_of_files;
    let bytes = is_in_file.then_some(4 << 20);
    let file = FileShape { bytes, fsync_every: is_in_file.then_some(16), ..FileShape::default() };
    let options = RunOptions { file, ..RunOptions::default() };
    let job = Job { work, place: Place::Path(&path), seed: 3, options };
    let outcome = run(job, &NoMachine, &mut |_| true).ok()?;
    outcome.failure.is_none().then_some(outcome.result)
}

/// A result without what two runs may differ in: the text of its path, and the wall clock.
fn counters(mut result: RunResult) -> String {
    (result.path, result.path_in_full, result.seconds_wall) = (String::new(), String::new(), 0.0);
    format!("{result:#?}")
}

/// The first lines in which two texts differ.
fn differences(one: &str, other: &str) -> String {
    let pairs = one.lines().zip(other.lines()).filter(|(one, other)| one != other).take(6);
    pairs.map(|(one, other)| format!("{one} | {other}\n")).collect()
}

#[test]
fn a_result_repeats_from_its_path_in_full() {
    let mut random = Random::new(7, "repeated paths");
    let (mut done, mut seen) = (0, std::collections::BTreeSet::new());
    for round in 0..ROUNDS {
        let text = random_path(&mut random);
        let is_of_files = round % 2 == 0;
        let Some(first) = result(&text, is_of_files) else { continue };
        let in_full = first.path_in_full.clone();
        let again = result(&in_full, is_of_files).unwrap_or_else(|| panic!("{text} was run, and {in_full} was not"));
        let full_again = again.path_in_full.clone();
        let (first, again) = (counters(first), counters(again));
        assert!(first == again, "{text}\n{in_full}\n{}", differences(&first, &again));
        assert_eq!(Path::read(&full_again).unwrap().in_full, Path::read(&in_full).unwrap().in_full, "{text}");
        seen.insert(text.split([':', '/']).next().unwrap().to_string());
        done += 1;
    }
    println!("{done} of {ROUNDS} paths were run, on top {seen:?}");
    assert!(done * LEAST_RUN > ROUNDS, "{done} of {ROUNDS} paths were run");
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn a_path_in_full_has_what_depends_on_the_devices_below() {
    for (text, parts) in [
        ("sfs/conv:size=64M", &["grouping=lifetime", "segment=256K", "dirty=1M", "checkpoint-segments=31"][..]),
        ("sfs/zns:size=192M,zone=2M", &["segment=2M", "grouping=lifetime"]),
        ("ext/conv:size=64M", &["data=ordered", "journal=inline"]),
        ("ext/conv:size=64M+nvm:size=64M", &["data=journal", "journal=nvm", "scheme=helping"]),
        ("ext:journal=nvm/conv:size=64M", &["data=journal", "journal=nvm"]),
        ("ext:journal=vmm/conv:size=64M", &["data=journal", "journal=vmm"]),
        ("ext:data=ordered/conv:size=64M+nvm:size=64M", &["data=ordered", "journal=nvm"]),
    ] {
        for is_of_files in [false, true] {
            let in_full = result(text, is_of_files).unwrap_or_else(|| panic!("{text} is run")).path_in_full;
            for part in parts {
                assert!(in_full.contains(part), "{text} has no {part}: {in_full}");
            }
        }
    }
}
