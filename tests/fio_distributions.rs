//! Our distributions and jobs compared with those of the real programs, fio and fio-genzipf. If they are not installed,
//! the tests print that and are skipped.

mod skipped;

use flashpath::expression::parse_term;
use flashpath::workload::fio_job::fio_job_text;
use flashpath::workload::generator::generator;
use flashpath::workload::{Action, Workload};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const BLOCK: u64 = 4096;
/// Both sides draw about a quarter of a million places: shares differ by less than this, as do means and deviations
/// relative to the space.
const TOLERANCE: f64 = 0.01;

/// The output of a program, or `None`, with a message, if it is not installed.
fn output_of(command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).expect("the program prints text"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skipped::skipped(&format!("{} is not installed", command.get_program().display()));
            None
        }
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// A directory for one run of fio, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("flashpath-fio-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Remains are in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The requests that fio issues for `keys`, as action, offset and length.
fn requests_of_fio(test: &str, keys: &str) -> Option<Vec<(String, u64, u64)>> {
    let scratch = Scratch::new(test);
    let job = format!("[job]\nioengine=null\nwrite_iolog=requests.log\n{keys}\n");
    std::fs::write(scratch.0.join("job.fio"), job).unwrap();
    output_of(Command::new("fio").arg("job.fio").current_dir(&scratch.0))?;
    let log = std::fs::read_to_string(scratch.0.join("requests.log")).unwrap();
    let requests = log.lines().filter_map(|line| {
        // Version 3: time, file, action, and for requests offset and length.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let action = fields.get(2).copied().filter(|action| !["add", "open", "close"].contains(action))?;
        Some((action.to_string(), fields.get(3)?.parse().ok()?, fields.get(4)?.parse().ok()?))
    });
    Some(requests.collect())
}

fn drain(workload: &mut dyn Workload) -> Vec<(String, u64, u64)> {
    let mut all = Vec::new();
    while workload.next_batch(&mut all, 4096).unwrap() > 0 {}
    let name = |action| match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Discard => "trim",
        Action::Flush => "sync",
    };
    all.iter().map(|o| (name(o.action).to_string(), o.offset_bytes, o.length_bytes)).collect()
}

fn requests_of_ours(keys: &str, device_bytes: u64) -> Vec<(String, u64, u64)> {
    drain(fio_job_text("job.fio", &format!("[job]\n{keys}\n"), device_bytes, 1).unwrap().as_mut())
}

/// The share of all hits of the most popular blocks, for each of `rows` equal parts of the blocks that were hit: the
/// "Sum %" of fio-genzipf, as fractions.
fn top_shares(requests: &[(String, u64, u64)], rows: usize) -> Vec<f64> {
    let mut hits: BTreeMap<u64, usize> = BTreeMap::new();
    requests.iter().for_each(|(_, offset, _)| *hits.entry(offset / BLOCK).or_default() += 1);
    let mut hits: Vec<usize> = hits.into_values().collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    (1..=rows).map(|row| hits[..hits.len() * row / rows].iter().sum::<usize>() as f64 / requests.len() as f64).collect()
}

fn assert_close(what: &str, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (row, (ours_here, theirs_here)) in ours.iter().zip(theirs).enumerate() {
        let off = (ours_here - theirs_here).abs();
        assert!(off < TOLERANCE, "{what}, row {row}: {ours_here} here, {theirs_here} in fio\n{ours:?}\n{theirs:?}");
    }
}

#[test]
fn the_most_popular_blocks_get_the_share_that_genzipf_prints() {
    for (kind, input, ours) in [
        ("zipf", "0.8", "zipf:theta=0.8"),
        ("zipf", "1.2", "zipf:theta=1.2"),
        ("pareto", "0.2", "pareto:h=0.2"),
        ("pareto", "0.3", "pareto:h=0.3"),
        ("normal", "20", "normal:deviation=20%"),
        ("normal", "50", "normal:deviation=50%"),
    ] {
        // Not -t zipf:0.8, which fio-genzipf 3.33 reads as zipf:1.2.
        let arguments = ["-t", kind, "-i", input, "-g", "1", "-b", "4096", "-o", "20"];
        let Some(printed) = output_of(Command::new("fio-genzipf").args(arguments)) else { return };
        // Top 5.00% 85.69% 85.69% ..., the sum after the third percentage.
        let sums: Vec<f64> = printed
            .lines()
            .filter(|line| line.starts_with("Top") || line.starts_with("|->"))
            .map(|line| line.split('%').nth(2).unwrap().trim().parse::<f64>().unwrap() / 100.0)
            .collect();
        assert_eq!(sums.len(), 20, "{printed}");
        let term = parse_term(&format!("{ours},writes=1x")).unwrap();
        let requests = drain(generator(&term, 1 << 30, 1).unwrap().as_mut());
        assert_close(ours, &top_shares(&requests, 20), &sums);
    }
}

#[test]
fn a_skewed_job_distributes_its_requests_like_fio() {
    for distribution in
        ["zipf:0.8", "zipf:1.2", "pareto:0.2", "pareto:0.3", "normal:1", "normal:20", "normal:50", "normal:90"]
    {
        let keys = format!("rw=randwrite\nbs=4k\nsize=256m\nio_size=1g\nrandom_distribution={distribution}");
        let Some(theirs) = requests_of_fio(&distribution.replace(':', "-"), &keys) else { return };
        let ours = requests_of_ours(&keys, 256 << 20);
        assert_eq!(ours.len(), theirs.len());
        assert_close(distribution, &top_shares(&ours, 20), &top_shares(&theirs, 20));
        if distribution.starts_with("normal") {
            // Scattered, a bell's offsets are even: their mean is half the space, their deviation 1 / sqrt 12 of it.
            assert_close(distribution, &mean_and_deviation(&ours), &mean_and_deviation(&theirs));
        }
    }
}

/// Mean and deviation of the offsets, as shares of 256 MiB.
fn mean_and_deviation(requests: &[(String, u64, u64)]) -> [f64; 2] {
    let places = || requests.iter().map(|(_, offset, _)| *offset as f64 / (256 << 20) as f64);
    let mean = places().sum::<f64>() / requests.len() as f64;
    let variance = places().map(|place| (place - mean).powi(2)).sum::<f64>() / requests.len() as f64;
    [mean, variance.sqrt()]
}

#[test]
fn zones_and_partly_random_offsets_are_distributed_like_fio() {
    let tenths = |requests: &[(String, u64, u64)]| -> Vec<f64> {
        let mut counts = [0.0; 10];
        requests.iter().for_each(|(_, offset, _)| counts[(*offset as f64 / (64 << 20) as f64 * 10.0) as usize] += 1.0);
        counts.iter().map(|count| count / requests.len() as f64).collect()
    };
    let follows = |requests: &[(String, u64, u64)]| -> f64 {
        let count = requests.windows(2).filter(|pair| pair[1].1 == pair[0].1 + pair[0].2).count();
        count as f64 / requests.len() as f64
    };
    for (name, key) in
        [("zoned", "random_distribution=zoned:60/10:30/20:10/70"), ("partly", "percentage_random=30\nnorandommap")]
    {
        let keys = format!("rw=randwrite\nbs=4k\nsize=64m\nio_size=512m\n{key}");
        let Some(theirs) = requests_of_fio(name, &keys) else { return };
        let ours = requests_of_ours(&keys, 64 << 20);
        assert_close(key, &tenths(&ours), &tenths(&theirs));
        assert_close(key, &[follows(&ours)], &[follows(&theirs)]);
    }
}

#[test]
fn a_job_without_random_numbers_makes_the_same_requests_as_fio() {
    for (number, keys) in [
        "rw=write\nbs=4k\nsize=64k",
        "rw=read\nbs=8k\nsize=64k\noffset=12k",
        "rw=write\nbs=3k\nsize=16k",
        "rw=write\nbs=4k\nsize=16k\nio_size=42k",
        "rw=write\nbs=4k\nsize=64k\nio_size=50%",
        "rw=write\nbs=4k\nsize=16k\nloops=3",
        "rw=trimwrite\nbs=4k\nsize=32k",
        "rw=write\nbs=4k\nsize=32k\nfsync=3\nend_fsync=1",
        "rw=write\nbs=4k\nsize=32k\nfsync=2",
        "rw=write\nbs=4ki\nsize=0x8000",
        "rw=rw\nrwmixread=100\nbs=,16k\nsize=32k",
    ]
    .into_iter()
    .enumerate()
    {
        // A flush has no bytes; fio logs it with the offset of the previous write.
        let plain = |requests: Vec<(String, u64, u64)>| -> Vec<(String, u64, u64)> {
            let without_place =
                |(action, offset, length)| if length == 0 { (action, 0, 0) } else { (action, offset, length) };
            requests.into_iter().map(without_place).collect()
        };
        let Some(theirs) = requests_of_fio(&format!("plain-{number}"), keys) else { return };
        assert_eq!(plain(requests_of_ours(keys, 1 << 20)), plain(theirs), "{keys}");
    }
}

#[test]
fn the_random_map_covers_the_blocks_like_fio() {
    for (name, keys) in [
        ("map", "rw=randwrite\nbs=4k\nsize=1000k\nio_size=3000k"),
        ("mixed-map", "rw=randrw\nbs=4k\nsize=1000k"),
        ("trim-map", "rw=randtrimwrite\nbs=4k\nsize=1000k"),
    ] {
        let visits = |requests: &[(String, u64, u64)]| {
            let mut visits: BTreeMap<u64, usize> = BTreeMap::new();
            requests.iter().for_each(|(_, offset, _)| *visits.entry(*offset).or_default() += 1);
            visits
        };
        let Some(theirs) = requests_of_fio(name, keys) else { return };
        let ours = requests_of_ours(keys, 1 << 20);
        assert_eq!(visits(&ours), visits(&theirs), "{keys}");
        if name == "map" {
            // Both repeat the same order at the end.
            assert_eq!(theirs[..250], theirs[250..500]);
            assert_eq!(ours[..250], ours[250..500]);
        }
    }
}
