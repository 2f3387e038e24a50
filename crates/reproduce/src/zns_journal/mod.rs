//! Choi and Ahn's "Separating the File System Journal to Reduce Write Amplification of Garbage Collection on ZNS SSDs":
//! figures 3, 7, 8 and 9.
//!
//! The kernel's ext4 is captured once for each mode, workload and seed, from mkfs on; the trace is replayed at the paper's
//! depth in simulated time on dm-zoned without and with the journal zone. Both see the same requests.

mod figures;
mod watch;

use super::lab::{Experiment, Lab};
use crate::ReproduceError;
use flashpath::report::RunResult;
use flashpath::report::figure::Reproduction;
use flashpath::run::Path;
use flashpath::units::{format_size, human_size};

/// The figures.
pub const FIGURES: &[&str] = &["zns-journal-fig3", "zns-journal-fig7", "zns-journal-fig8", "zns-journal-fig9"];

/// ext4's modes, in the order of figure 9.
const MODES: [&str; 2] = ["ordered", "journal"];

/// A workload: its name, fio's options, and the bytes it writes. The paper names distributions without parameters:
/// these are common ones (fio's own examples).
///
/// Random writes have a rate of 100 between two commits of ext4: as many as the volume serves in ext4's five seconds,
/// at the 20 per second that remain when every other write waits for a zone.
const LOADS: [(&str, &str, u64); 5] = [
    ("uniform", "--rw=randwrite --rate_iops=1000", RANDOM_WRITES),
    ("zipf", "--rw=randwrite --random_distribution=zipf:1.2 --rate_iops=1000", RANDOM_WRITES),
    ("pareto", "--rw=randwrite --random_distribution=pareto:0.2 --rate_iops=1000", RANDOM_WRITES),
    ("gaussian", "--rw=randwrite --random_distribution=normal:20 --rate_iops=1000", RANDOM_WRITES),
    ("sequential", "--rw=write", SEQUENTIAL_WRITES),
];
const RANDOM_WRITES: u64 = 16 << 20;
const SEQUENTIAL_WRITES: u64 = 1536 << 20;

/// The number of runs averaged, as in the paper.
const RUNS: u64 = 5;
const DEPTH: u32 = 32;
const CONVENTIONAL: u64 = 1 << 30;
const ZONED: u64 = 4 << 30;
const ZONE: u64 = 64 << 20;
/// The size of the file, which the paper does not give: twice as many chunks as conventional zones, so that reclaim
/// works all the time, and copies data, metadata and journal.
const FILE: u64 = 2 << 30;
/// A fiftieth of ext4's five seconds.
const SYNC_SECONDS: f64 = 0.1;

/// The two replays of one trace, without and with the journal zone.
struct Pair {
    plain: RunResult,
    separated: RunResult,
    /// The zone of each journal write in both.
    journal_zones: [Vec<u32>; 2],
}

/// The runs of one mode and workload.
struct Measured {
    mode: &'static str,
    load: &'static str,
    runs: Vec<Pair>,
}

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let zone = lab.scaled(ZONE, 1 << 20).next_power_of_two();
    let media = format!(
        "conv:size={}+zns:size={},zone={}",
        lab.size(CONVENTIONAL, zone),
        lab.size(ZONED, zone),
        format_size(zone)
    );
    let paths = [format!("dm-zoned/{media}"), format!("dm-zoned:journal-zone/{media}")];
    let paths = [Path::read(&paths[0])?, Path::read(&paths[1])?];
    let device_bytes = watch::open(&paths[0], lab.seed)?.0.blocks() * 4096;
    let mut measured = Vec::new();
    for mode in MODES {
        for (load, options, writes) in LOADS {
            let mut runs = Vec::new();
            for seed in lab.seed..lab.seed + RUNS {
                let captured =
                    lab.capture(&experiment(lab, mode, (load, options, writes), seed, device_bytes, zone))?;
                lab.progress(&format!("replaying {load} {mode}, seed {seed}"));
                let replay = |path: &Path| -> Result<(RunResult, Vec<u32>), ReproduceError> {
                    let (device, zones) = watch::open(path, lab.seed)?;
                    let result = lab.replay_on(path, device, &captured, DEPTH)?;
                    let zones = zones.lock().map(|zones| zones.clone()).unwrap_or_default();
                    Ok((result, zones))
                };
                let ((plain, before), (separated, after)) = (replay(&paths[0])?, replay(&paths[1])?);
                runs.push(Pair { plain, separated, journal_zones: [before, after] });
            }
            measured.push(Measured { mode, load, runs });
        }
    }
    let made = figures.iter().map(|figure| match *figure {
        "zns-journal-fig3" => figures::zones(&measured),
        "zns-journal-fig7" => figures::journal_share(&measured),
        "zns-journal-fig8" => figures::reduction(&measured),
        "zns-journal-fig9" => figures::throughput(&measured),
        name => unreachable!("{name} is not in FIGURES"),
    });
    Ok(Reproduction {
        paper: "zns-journal".to_string(),
        title: "Choi and Ahn: separating the file system journal on ZNS SSDs".to_string(),
        command: "flashpath reproduce zns-journal --scale 1".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(lab, &media, device_bytes),
        figures: made.collect(),
    })
}

fn experiment(
    lab: &Lab,
    mode: &str,
    (load, options, writes): (&str, &str, u64),
    seed: u64,
    device_bytes: u64,
    zone: u64,
) -> Experiment {
    let (file, writes) = (lab.scaled(FILE, 1 << 20), lab.scaled(writes, 1 << 20));
    let fio = format!(
        "fio --name=disk --filename=disk --size={file} --io_size={writes} --bs=4k --direct=1 --ioengine=libaio \
         --iodepth={DEPTH} --fallocate=none --randseed={seed} {options} >/dev/null"
    );
    let journal = zone.max(4 << 20).to_string();
    let file_system = ["--fs", "ext4", "--data", mode, "--journal-size", &journal, "--from-setup"];
    Experiment {
        name: format!("zns-journal-{load}-{mode}-run{seed}"),
        file_system: file_system.map(String::from).to_vec(),
        size_bytes: device_bytes,
        guests: 1,
        setup: None,
        // The loop is killed at the end of the command.
        command: format!("(while sleep {SYNC_SECONDS}; do sync -f .; done) & {fio}"),
    }
}

fn conditions(lab: &Lab, media: &str, device_bytes: u64) -> Vec<(String, String)> {
    let condition = |name: &str, value: String| (name.to_string(), value);
    let size = |bytes: u64| human_size(lab.scaled(bytes, 1 << 20) as f64);
    let loads: Vec<String> =
        LOADS.iter().map(|(name, options, writes)| format!("{name} (`{options}`, {})", size(*writes))).collect();
    vec![
        condition(
            "file system",
            format!(
                "ext4 of the running kernel on a device of {}, with a journal of one zone, mke2fs's size for it; \
                 mkfs writes the inode tables and the journal, which are an uncounted part of every replay",
                human_size(device_bytes as f64)
            ),
        ),
        condition(
            "in it",
            format!(
                "fio 4 KiB writes at depth {DEPTH} with direct=1 and libaio, into a file of {}: {}",
                size(FILE),
                loads.join(", ")
            ),
        ),
        condition(
            "write-back",
            format!(
                "the file system is synced every {SYNC_SECONDS} s, in place of ext4's commit every 5 s: there are \
                 100 random writes between two, as many as the volume serves in 5 s when every other write waits \
                 for a zone"
            ),
        ),
        condition(
            "volume",
            format!(
                "`dm-zoned/{media}` and `dm-zoned:journal-zone/{media}`, replayed at depth {DEPTH} in simulated time"
            ),
        ),
        condition("mean of", format!("{RUNS} runs, each with its own seed and capture")),
        condition(
            "differs from the paper",
            "the paper gives neither the file's size nor the amount written nor the zone size; ours keep reclaim \
             busy all the time, with the 64 MiB zones usual in FEMU and dm-zoned at this size; the drive's times \
             are the defaults of `flashpath layers`, not FEMU's"
                .to_string(),
        ),
    ]
}
