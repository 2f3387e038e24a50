//! Choi and Ahn's "Separating the File System Journal to Reduce Write Amplification of Garbage Collection on ZNS SSDs":
//! figures 3, 7, 8 and 9; and two of ours: all pages that are programmed, and the sensitivity to what the paper leaves open.
//!
//! The kernel's ext4 is captured once for each mode, workload and seed, from mkfs on; the trace is replayed at the paper's
//! depth in simulated time on dm-zoned without the journal zone, with it, and with it on a device that has one conventional
//! zone more. All see the same requests.

mod figures;
mod watch;

use super::lab::{Experiment, Lab};
use crate::ReproduceError;
use flashpath::report::RunResult;
use flashpath::report::figure::Reproduction;
use flashpath::run::Path;
use flashpath::units::{format_size, human_size};

/// The figures.
pub const FIGURES: &[&str] = &[
    "zns-journal-fig3",
    "zns-journal-fig7",
    "zns-journal-fig8",
    "zns-journal-fig9",
    "zns-journal-total",
    "zns-journal-sync",
];

/// ext4's modes, in the order of figure 9.
const MODES: [&str; 2] = ["ordered", "journal"];

/// A workload. The paper names distributions without parameters: these are common ones (fio's own examples).
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// fio's options.
    options: &'static str,
    /// The number of requests in flight, of fio and of the replay.
    depth: u32,
    /// The bytes that fio writes.
    writes: u64,
}

const fn random(name: &'static str, options: &'static str) -> Load {
    Load { name, options, depth: DEPTH, writes: RANDOM_WRITES }
}

const LOADS: [Load; 6] = [
    random("uniform", "--rw=randwrite --ioengine=libaio --rate_iops=1000"),
    random("zipf", "--rw=randwrite --ioengine=libaio --random_distribution=zipf:1.2 --rate_iops=1000"),
    random("pareto", "--rw=randwrite --ioengine=libaio --random_distribution=pareto:0.2 --rate_iops=1000"),
    random("gaussian", "--rw=randwrite --ioengine=libaio --random_distribution=normal:20 --rate_iops=1000"),
    Load { depth: 1, ..random("uniform psync", "--rw=randwrite --ioengine=psync --rate_iops=1000") },
    Load { name: "sequential", options: "--rw=write --ioengine=libaio", depth: DEPTH, writes: SEQUENTIAL_WRITES },
];
const RANDOM_WRITES: u64 = 32 << 20;
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
/// Seconds between two syncs, which the paper does not give. Chosen by its text on figure 7, "about 10 to 30 %": figure 8 is
/// then a prediction. [`SYNCS`] has the shares at others.
const SYNC_SECONDS: f64 = 1.0;

/// The sync intervals and files of the sensitivity; its workload is the first.
const SYNCS: [f64; 4] = [0.1, 0.3, 1.0, 3.0];
const FILES: [u64; 2] = [1 << 30, FILE];

/// A file of a size that is synced at an interval in seconds.
#[derive(Clone, Copy)]
struct Setting {
    file: u64,
    sync: f64,
}

const SETTING: Setting = Setting { file: FILE, sync: SYNC_SECONDS };

/// The replays of one trace.
struct Replays {
    plain: RunResult,
    separated: RunResult,
    /// With the journal zone on a device that has one conventional zone more.
    roomier: RunResult,
    /// The zone of each journal write without and with the journal zone.
    journal_zones: [Vec<u32>; 2],
}

/// The runs of one mode and workload in one setting.
struct Measured {
    mode: &'static str,
    load: &'static str,
    /// MiB that fio wrote in each.
    application_mib: f64,
    setting: Setting,
    runs: Vec<Replays>,
}

/// The devices of the three volumes, and the paths on them.
struct Volumes {
    zone: u64,
    media: [String; 2],
    paths: [Path; 3],
    device_bytes: u64,
}

impl Volumes {
    fn of(lab: &Lab) -> Result<Volumes, ReproduceError> {
        let zone = lab.scaled(ZONE, 1 << 20).next_power_of_two();
        let media = |conventional: u64| {
            let (size, zoned) = (lab.size(conventional, zone), lab.size(ZONED, zone));
            format!("conv:size={size}+zns:size={zoned},zone={}", format_size(zone))
        };
        let media = [media(CONVENTIONAL), media(CONVENTIONAL + ZONE)];
        let plain = Path::read(&format!("dm-zoned/{}", media[0]))?;
        let [separated, roomier] =
            [&media[0], &media[1]].map(|media| Path::read(&format!("dm-zoned:journal-zone/{media}")));
        let device_bytes = watch::open(&plain, lab.seed)?.0.blocks() * 4096;
        Ok(Volumes { zone, media, paths: [plain, separated?, roomier?], device_bytes })
    }
}

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let volumes = Volumes::of(lab)?;
    let measure = |mode, load, setting, runs| measure(lab, &volumes, mode, load, setting, runs);
    let mut measured = Vec::new();
    if figures.iter().any(|figure| *figure != "zns-journal-sync") {
        for (mode, load) in MODES.into_iter().flat_map(|mode| LOADS.map(|load| (mode, load))) {
            measured.push(measure(mode, load, SETTING, RUNS)?);
        }
    }
    let mut settings = Vec::new();
    if figures.contains(&"zns-journal-sync") {
        for (sync, file) in SYNCS.into_iter().flat_map(|sync| FILES.map(|file| (sync, file))) {
            for mode in MODES {
                settings.push(measure(mode, LOADS[0], Setting { file, sync }, 1)?);
            }
        }
    }
    let made = figures.iter().map(|figure| match *figure {
        "zns-journal-fig3" => figures::zones(&measured),
        "zns-journal-fig7" => figures::journal_share(&measured),
        "zns-journal-fig8" => figures::reduction(&measured),
        "zns-journal-fig9" => figures::throughput(&measured),
        "zns-journal-total" => figures::total(&measured),
        "zns-journal-sync" => figures::sensitivity(&settings),
        name => unreachable!("{name} is not in FIGURES"),
    });
    Ok(Reproduction {
        paper: "zns-journal".to_string(),
        title: "Choi and Ahn: separating the file system journal on ZNS SSDs".to_string(),
        command: "flashpath reproduce zns-journal --scale 1".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(lab, &volumes),
        figures: made.collect(),
    })
}

/// Captures and replays a workload, with as many seeds as `runs`.
fn measure(
    lab: &Lab,
    volumes: &Volumes,
    mode: &'static str,
    load: Load,
    setting: Setting,
    runs: u64,
) -> Result<Measured, ReproduceError> {
    let one = |seed| {
        let captured = lab.capture(&experiment(lab, volumes, mode, load, setting, seed))?;
        lab.progress(&format!("replaying {} {mode}, synced each {} s, seed {seed}", load.name, setting.sync));
        let replay = |path: &Path| -> Result<(RunResult, Vec<u32>), ReproduceError> {
            let (device, zones) = watch::open(path, lab.seed)?;
            let result = lab.replay_on(path, device, &captured, load.depth)?;
            let zones = zones.lock().map(|zones| zones.clone()).unwrap_or_default();
            Ok((result, zones))
        };
        let [plain, separated, roomier] = &volumes.paths;
        let ((plain, before), (separated, after), (roomier, _)) =
            (replay(plain)?, replay(separated)?, replay(roomier)?);
        Ok(Replays { plain, separated, roomier, journal_zones: [before, after] })
    };
    let runs = (lab.seed..lab.seed + runs).map(one).collect::<Result<_, ReproduceError>>()?;
    let application_mib = lab.scaled(load.writes, 1 << 20) as f64 / f64::from(1 << 20);
    Ok(Measured { mode, load: load.name, application_mib, setting, runs })
}

fn experiment(lab: &Lab, volumes: &Volumes, mode: &str, load: Load, setting: Setting, seed: u64) -> Experiment {
    let Load { name, options, depth, writes } = load;
    let Setting { file, sync } = setting;
    let (bytes, writes) = (lab.scaled(file, 1 << 20), lab.scaled(writes, 1 << 20));
    let fio = format!(
        "fio --name=disk --filename=disk --size={bytes} --io_size={writes} --bs=4k --direct=1 --iodepth={depth} \
         --fallocate=none --randseed={seed} {options} >/dev/null"
    );
    let journal = volumes.zone.max(4 << 20).to_string();
    let file_system = ["--fs", "ext4", "--data", mode, "--journal-size", &journal, "--from-setup"];
    Experiment {
        name: format!("zns-journal-{}-{mode}-{}-sync{sync}-run{seed}", name.replace(' ', "-"), format_size(file)),
        file_system: file_system.map(String::from).to_vec(),
        size_bytes: volumes.device_bytes,
        guests: 1,
        setup: None,
        // The loop is killed at the end of the command.
        command: format!("(while sleep {sync}; do sync -f .; done) & {fio}"),
    }
}

fn conditions(lab: &Lab, volumes: &Volumes) -> Vec<(String, String)> {
    let Volumes { media: [media, _], device_bytes, .. } = volumes;
    let condition = |name: &str, value: String| (name.to_string(), value);
    let size = |bytes: u64| human_size(lab.scaled(bytes, 1 << 20) as f64);
    let load = |load: &Load| format!("{} (`{}`, depth {}, {})", load.name, load.options, load.depth, size(load.writes));
    let loads: Vec<String> = LOADS.iter().map(load).collect();
    vec![
        condition(
            "file system",
            format!(
                "ext4 of the running kernel on a device of {}, with a journal of one zone, mke2fs's size for it; \
                 mkfs writes the inode tables and the journal, which are an uncounted part of every replay",
                human_size(*device_bytes as f64)
            ),
        ),
        condition(
            "in it",
            format!("fio 4 KiB writes with direct=1 into a file of {}: {}", size(FILE), loads.join(", ")),
        ),
        condition(
            "write-back",
            format!(
                "the file system is synced every {SYNC_SECONDS} s, which the paper does not state. It was chosen by the paper's \
                 text on figure 7, about 10 to 30 %; figure 8 is then a prediction. zns-journal-sync has other intervals"
            ),
        ),
        condition(
            "volume",
            format!(
                "`dm-zoned/{media}` and `dm-zoned:journal-zone/{media}`, replayed at fio's depth in simulated time"
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
