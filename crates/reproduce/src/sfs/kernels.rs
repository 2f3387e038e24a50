//! The kernel's file systems beside SFS, LFS-CB and `ext` of this program on drives with flash: figures 12 to 14. The kernel's
//! writes are captured and replayed; ours run on the drive itself.

use super::volume::{Full, LFS_CB, Reading, SFS, shape};
use super::{claim, condition, exactly};
use crate::ReproduceError;
use crate::lab::{Aging, Experiment, Lab, drive};
use flashpath::report::RunResult;
use flashpath::report::figure::{Figure, Panel};
use flashpath::run::{Path, simulated_space};
use flashpath::units::format_size;

const LAYERS: [&str; 2] = ["fast", "page"];
/// The index after the layers: the same load on SSD-M with its times, for figure 12. On FAST, its random writes are as
/// slow as the paper's (0.5 MB/s).
const TIMED: usize = 2;
/// btrfs has the defaults of the paper's time, nodes of 4 KiB and two copies of metadata, in SSD mode. Today's default
/// nodes of 16 KiB make it two to three times as slow here.
const SYSTEMS: [System; 4] = [
    System { name: "ext4", arguments: &["--fs", "ext4"], file: FILE },
    System {
        name: "btrfs",
        arguments: &["--fs", "btrfs", "--mkfs-options", "--nodesize 4k", "--mount-options", "ssd"],
        file: FILE,
    },
    System {
        name: "btrfs-nodatacow",
        arguments: &["--fs", "btrfs", "--nodatacow", "--mkfs-options", "--nodesize 4k", "--mount-options", "ssd"],
        file: FILE,
    },
    System { name: "ext4, large file", arguments: &["--fs", "ext4"], file: LARGE_FILE },
];
const EXT4: usize = 0;
const BTRFS: usize = 1;
const NODATACOW: usize = 2;
const LARGE: usize = 3;
/// Indexes of our systems in the series, after the kernel's.
const OUR_SFS: usize = 4;
const OUR_LFS: usize = 5;
const OUR_EXT: usize = 6;
/// Our systems: the name, the station, and its options beside sizes.
const OURS: [(&str, &str, &str); 3] = [("sfs", "sfs", SFS), ("lfs-cb", "sfs", LFS_CB), ("ext", "ext", "data=ordered")];

/// The paper's volume, and the bytes written for aging and measuring.
const VOLUME: u64 = 32 << 30;
const AGING: u64 = 20 << 30;
const MEASURED: u64 = 8 << 30;
/// The working set, which the paper does not give. btrfs keeps an extent while any block of it is referenced, and so
/// may take twice a file's size: the largest file for the free space.
const FILE: u64 = 3 << 30;
/// A second working set for ext4, two thirds of the volume, as amplification depends on the working set most.
const LARGE_FILE: u64 = 20 << 30;
/// The utilization, of df's free space in the empty file system.
const FULL: Full = Reading::Volume.at(0.85);
/// The limit of dirty pages on the paper's machine: a fifth of its 4 GB.
const DIRTY: u64 = (4 << 30) / 5;

/// A file system: its arguments for the capture, and its working set.
struct System {
    name: &'static str,
    arguments: &'static [&'static str],
    file: u64,
}

/// A workload: its name, its kind, and its expression on this many bytes of files at full scale.
struct Load {
    name: &'static str,
    works_on: WorksOn,
    expression: fn(&Lab, u64) -> String,
}

enum WorksOn {
    /// The blocks of one file.
    Blocks,
    /// Files that it creates and deletes.
    Files,
}

impl Load {
    /// The workload's own bytes, out of this many bytes that a file system writes.
    fn own_bytes(&self, bytes: u64) -> u64 {
        match self.works_on {
            WorksOn::Blocks => bytes,
            WorksOn::Files => bytes / MAIL_TAKES,
        }
    }
}

/// A loop of varmail appends twice, 8 KiB on average, and fsyncs both, which writes about three times as much again.
const MAIL_APPENDS: u64 = 16 << 10;
const MAIL_TAKES: u64 = 4;

const LOADS: [Load; 4] = [
    Load {
        name: "Zipf",
        works_on: WorksOn::Blocks,
        expression: |lab, _| format!("zipf:theta=1,writes={}", format_size(writes(lab))),
    },
    // 29 % of the writes go to 1.6 % of the pages, as the literature reports for TPC-C.
    Load {
        name: "TPC-C-like",
        works_on: WorksOn::Blocks,
        expression: |lab, _| format!("hotcold:r=1.6%,f=29%,writes={}", format_size(writes(lab))),
    },
    Load {
        name: "mail",
        works_on: WorksOn::Files,
        expression: |lab, file| {
            // Files have 16 KiB.
            let loops = writes(lab) / (MAIL_APPENDS * MAIL_TAKES);
            format!("varmail:files={},loops={loops},threads=1", lab.scaled(file, 4096) / 16384)
        },
    },
    Load {
        name: "uniform",
        works_on: WorksOn::Blocks,
        expression: |lab, _| format!("uniform:writes={}", format_size(writes(lab))),
    },
];

fn writes(lab: &Lab) -> u64 {
    lab.scaled(AGING + MEASURED, 4096)
}

/// A drive's result for one file system and load.
struct Run {
    /// Bytes programmed over bytes that the file system wrote.
    amplification: f64,
    erased: f64,
    /// Seconds of the model; `None` on a drive without times.
    seconds: Option<f64>,
}

impl Run {
    /// The result of replaying a kernel's trace.
    fn replayed(result: &RunResult) -> Run {
        Run {
            amplification: result.write_amplification.total.unwrap_or(f64::NAN),
            erased: result.flash.erased_blocks as f64,
            seconds: result.seconds_simulated,
        }
    }

    /// The result of a file system of ours on the drive.
    fn beneath(station: &str, result: &RunResult) -> Run {
        let sent: f64 = result.ledger.iter().filter(|row| row.station == station).map(|row| row.blocks).sum();
        let programmed = (result.flash.programmed_pages * result.flash.page_bytes) as f64;
        Run {
            amplification: programmed / (sent * 4096.0),
            erased: result.flash.erased_blocks as f64,
            seconds: result.seconds_simulated,
        }
    }
}

/// All runs of figures 12 to 14.
pub struct Drives {
    flash: String,
    volume: u64,
    timed: String,
    /// For each layer and the drive with times, workload and file system.
    runs: Vec<Vec<Vec<Run>>>,
}

impl Drives {
    /// Captures, replays, and runs ours.
    pub fn run(lab: &Lab) -> Result<Drives, ReproduceError> {
        let flash = format!("nand:size={},page=4K,pages-per-block=128", lab.size(VOLUME, 1 << 20));
        let timed = format!("fast:op=10%/nand:preset=ssd-m,size={}", lab.size(VOLUME, 1 << 20));
        let layers = LAYERS.iter().map(|layer| format!("{layer}:op=10%/{flash},timing=off"));
        let paths: Vec<String> = layers.chain([timed.clone()]).collect();
        let exported = paths.iter().map(|path| Ok(drive(path)?.1.exported_bytes()));
        let exported: Vec<u64> = exported.collect::<Result<_, ReproduceError>>()?;
        let volume = exported.iter().copied().min().unwrap_or(0) & !((1 << 22) - 1);
        let mut runs: Vec<Vec<Vec<Run>>> = paths.iter().map(|_| Vec::new()).collect();
        for load in &LOADS {
            runs.iter_mut().for_each(|layer| layer.push(Vec::new()));
            let mut push = |results: Vec<Run>| {
                for (layer, result) in runs.iter_mut().zip(results) {
                    layer.last_mut().expect("just pushed").push(result);
                }
            };
            for system in &SYSTEMS {
                let captured = lab.capture(&experiment(lab, load, system, volume))?;
                lab.progress(&format!("replaying {} {}", load.name, system.name));
                let counted = MEASURED as f64 / (system.file + AGING + MEASURED) as f64;
                let uncounted = (captured.written_bytes as f64 * (1.0 - counted)) as u64;
                let results = lab.replay_all(&paths, &captured.trace, Aging::FirstBytes(uncounted))?;
                push(results.iter().map(Run::replayed).collect());
            }
            for (name, station, options) in OURS {
                lab.progress(&format!("running {} on {name}", load.name));
                let run = |path: &String| on_ours(lab, load, (station, options), path, volume);
                push(paths.iter().map(run).collect::<Result<_, _>>()?);
            }
        }
        Ok(Drives { flash, volume, timed, runs })
    }
}

/// The term of a file system of ours.
fn term(lab: &Lab, station: &str, options: &str) -> String {
    if station == "ext" {
        return format!("ext:dirty={},{options}", format_size(lab.scaled(DIRTY, 1 << 20)));
    }
    let segment = lab.scaled(32 << 20, 64 << 10);
    let dirty = (12 * segment).max(1 << 20);
    format!("sfs:{options},segment={},dirty={}", format_size(segment), format_size(dirty))
}

/// Runs a workload in a volume of ours on a drive, beside a cold file: it creates its files, writes the aging part, and is
/// then counted.
fn on_ours(
    lab: &Lab,
    load: &Load,
    (station, options): (&str, &str),
    drive: &str,
    volume: u64,
) -> Result<Run, ReproduceError> {
    let path = Path::read(&format!("{}/{drive}", term(lab, station, options)))?;
    let file = lab.scaled(FILE, 4096);
    let aging = load.own_bytes(lab.scaled(AGING, 4096));
    let expression = (load.expression)(lab, FILE);
    let result = match load.works_on {
        WorksOn::Blocks => {
            let mut shape = shape(lab, &path, volume, file, FULL)?;
            // sfs writes back by its own limit.
            shape.fsync_every = (station == "ext").then(|| lab.scaled(DIRTY, 4096) / 4096);
            lab.run_in_file(&path, shape, aging, |bytes| lab.generator(&expression, bytes))?.result
        }
        WorksOn::Files => {
            let room = simulated_space(&path, lab.seed)?.blocks * 4096;
            let live = (room as f64 * FULL.share) as u64 & !4095;
            lab.run_in_volume(&path, &expression, live.saturating_sub(file), aging)?
        }
    };
    Ok(Run::beneath(station, &result))
}

fn experiment(lab: &Lab, load: &Load, system: &System, volume: u64) -> Experiment {
    let file = lab.scaled(system.file, 4096);
    let dummy = format!("$(($(stat -f -c '%a * %S' .) * {:.0} / 100 / 4096 * 4096 - {file}))", FULL.share * 100.0);
    let run =
        format!("exec \"$FLASHPATH\" run {} --in . --quiet --seed {}", (load.expression)(lab, system.file), lab.seed);
    let command = match load.works_on {
        WorksOn::Blocks => {
            format!("{run} --size {file} --fill --fsync-every {} >/dev/null", lab.scaled(DIRTY, 4096) / 4096)
        }
        WorksOn::Files => format!("{run} >/dev/null"),
    };
    Experiment {
        name: format!("sfs-{}-{}", load.name, system.name).to_ascii_lowercase().replace(", ", "-").replace(' ', "-"),
        file_system: system.arguments.iter().map(|argument| argument.to_string()).collect(),
        size_bytes: volume,
        guests: 1,
        setup: Some(format!("exec \"$FLASHPATH\" run seq_write:file={dummy},append=1M --in . --quiet >/dev/null")),
        command,
    }
}

impl Drives {
    pub fn conditions(&self, lab: &Lab) -> Vec<(String, String)> {
        let mut conditions = conditions(lab, &self.flash, self.volume);
        conditions.push(condition(
            "figure 12",
            format!(
                "the same on `{}`, with its times: the kernel's writes at queue \
                                                  depth 32, the calls to sfs and ext one at a time",
                self.timed
            ),
        ));
        conditions
    }

    pub fn throughput(&self, lab: &Lab) -> Figure {
        throughput(&self.runs[TIMED], lab.scaled(MEASURED, 4096))
    }

    pub fn amplification(&self) -> Figure {
        amplification(&self.runs)
    }

    pub fn erases(&self) -> Figure {
        erases(&self.runs)
    }
}

fn conditions(lab: &Lab, drive: &str, volume: u64) -> Vec<(String, String)> {
    let size = |bytes: u64| flashpath::units::human_size(bytes as f64);
    let workloads: Vec<String> =
        LOADS.iter().map(|load| format!("{}: `{}`", load.name, (load.expression)(lab, FILE))).collect();
    vec![
        condition(
            "figures 13 and 14",
            format!(
                "of the running kernel (btrfs in SSD mode, with nodes of 4 KiB and two copies of metadata, the \
                 defaults of the paper's time) on a device of {}; `ext` of this program (data=ordered, in simulated \
                 time) stands on the drives itself, as sfs does; all, ours too, filled to {:.0} % of df's free \
                 space when empty: files of {} that are written (in the column with the large file {}), and a cold \
                 one",
                size(volume),
                FULL.share * 100.0,
                size(lab.scaled(FILE, 4096)),
                size(lab.scaled(LARGE_FILE, 4096))
            ),
        ),
        condition("their workloads", workloads.join("; ")),
        condition(
            "write-back",
            format!(
                "an fsync after {} of writes, for the limit of dirty pages in the paper's 4 GB of memory",
                size(lab.scaled(DIRTY, 4096))
            ),
        ),
        condition(
            "drive",
            format!(
                "`{drive}` with `op=10%`, filled once in order; the last part of a file system's writes is counted: \
                 in the paper 8 GB after 20 GB, here the same after the file is written"
            ),
        ),
        condition(
            "mail",
            format!(
                "in place of RES: varmail writes small files, as a desktop does, and fsyncs each, so that a loop is \
                 assumed to write {MAIL_TAKES} times the {} that it appends; figure 12 counts the appended bytes. \
                 sfs serves the same calls in simulated time, without CPU time (`--cpu off`); the setup and the loops that append the first {}, \
                 {:.0} % of all, are not counted; reads are assumed to hit the page cache, as in the kernel's run",
                size(MAIL_APPENDS),
                size(lab.scaled(AGING, 4096) / MAIL_TAKES),
                AGING as f64 / (AGING + MEASURED) as f64 * 100.0
            ),
        ),
    ]
}

fn panels(runs: &[Vec<Vec<Run>>], value: impl Fn(&Run) -> f64) -> Vec<Panel> {
    LAYERS.iter().zip(runs).map(|(layer, loads)| panel_of(layer, loads, |_, run| value(run))).collect()
}

fn panel_of(title: &str, loads: &[Vec<Run>], value: impl Fn(&Load, &Run) -> f64) -> Panel {
    let ours = OURS.iter().map(|(name, ..)| *name);
    let series: Vec<String> = SYSTEMS.iter().map(|system| system.name).chain(ours).map(str::to_string).collect();
    let groups = LOADS
        .iter()
        .zip(loads)
        .map(|(load, systems)| (load.name.to_string(), systems.iter().map(|run| Some(value(load, run))).collect()));
    super::panel(title, series, groups.collect())
}

fn of_system(panel: &Panel, system: usize) -> impl Iterator<Item = f64> + '_ {
    panel.groups.iter().filter_map(move |(_, values)| values[system])
}

const SEGMENTS: &str = "segments are whole erase blocks here, too, but metadata has its own segments, and \
                        superblocks and the segments that a checkpoint leaves open are not whole-block writes";
const TIMES: &str = "the time of a file system's writes depends on the drive's write amplification, and so on the \
                     working set, which the paper does not give; btrfs is the running kernel's, fifteen years newer";
const WORKING_SET: &str = "the paper does not give the working set, on which this depends most: its value is \
                           between those of a small and a large file";
const LOG_TREE: &str = "at an fsync, btrfs writes its log tree and superblock in small scattered pieces; the paper \
                        does not give the number of fsyncs";
const EXT: &str = "a kernel's trace is replayed on a drive that was filled once, where the free space of the file system \
                   takes pages, too; beneath ext, as beneath sfs, it takes none";
const MIX: &str = "the sum depends on the mix: on FAST, mail's fsyncs cost ext4 most, through its journal; btrfs \
                   rewrites whole tree paths for the few writes between two fsyncs";

/// The workload's bytes over the drive's time, in a part in which block workloads write `written` bytes.
fn throughput(runs: &[Vec<Run>], written: u64) -> Figure {
    let mib =
        |load: &Load, run: &Run| load.own_bytes(written) as f64 / (1 << 20) as f64 / run.seconds.unwrap_or(f64::NAN);
    let panel = panel_of("fast on SSD-M", runs, mib);
    let mut claims = Vec::new();
    for (name, paper, system) in
        [("lfs-cb", 1.6, OUR_LFS), ("btrfs", 7.3, BTRFS), ("btrfs-nodatacow", 1.5, NODATACOW), ("ext4", 1.5, EXT4)]
    {
        let ratios: Vec<f64> =
            panel.groups.iter().filter_map(|(_, values)| Some(values[OUR_SFS]? / values[system]?)).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        let says = format!("sfs over {name}, the mean of the workloads");
        claims.push(exactly(says, "4.4", paper, mean, TIMES));
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let says = format!("sfs over {name}, the least of the four workloads");
        let place = "4.4: SFS outperforms all of them for all four workloads";
        claims.push(claim(says, place, Some(1.0), None, Some(least), TIMES));
    }
    Figure {
        name: "sfs-fig12".to_string(),
        title: "SFS figure 12: throughput of the file systems".to_string(),
        unit: "MiB/s in simulated time".to_string(),
        about: "Bytes that the workload wrote over the drive's time for the file system's writes, in the counted \
                part."
            .to_string(),
        panels: vec![panel],
        claims,
        made_by: None,
    }
}

fn amplification(runs: &[Vec<Vec<Run>>]) -> Figure {
    let panels = panels(runs, |run| run.amplification);
    let mut claims = Vec::new();
    for (panel, in_place, cow, log) in [(&panels[0], 5.3, 2.8, 1.1), (&panels[1], 2.8, 1.2, 1.0)] {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let both = of_system(panel, EXT4).chain(of_system(panel, NODATACOW)).collect();
        let says = format!("mean of ext4 and btrfs-nodatacow on {}", panel.title);
        claims.push(exactly(says, "4.4", in_place, mean(both), WORKING_SET));
        let says = format!("the same, for ext4 with the large file on {}", panel.title);
        claims.push(exactly(says, "4.4", in_place, mean(of_system(panel, LARGE).collect()), WORKING_SET));
        let says = format!("mean of btrfs on {}", panel.title);
        claims.push(exactly(says, "4.4", cow, mean(of_system(panel, BTRFS).collect()), LOG_TREE));
        for (name, system) in [("sfs", OUR_SFS), ("lfs-cb", OUR_LFS)] {
            let says = format!("mean of {name} on {}", panel.title);
            claims.push(exactly(says, "4.4", log, mean(of_system(panel, system).collect()), SEGMENTS));
        }
        let of = |system| mean(of_system(panel, system).collect());
        let says = format!("mean of ext over ext4's on {}", panel.title);
        claims.push(claim(says, "the same workloads", Some(0.9), Some(1.1), Some(of(OUR_EXT) / of(EXT4)), EXT));
    }
    Figure {
        name: "sfs-fig13".to_string(),
        title: "SFS figure 13: write amplification of the drive".to_string(),
        unit: "write amplification".to_string(),
        about: "Bytes programmed over bytes that the file system wrote, in the counted part.".to_string(),
        panels,
        claims,
        made_by: None,
    }
}

fn erases(runs: &[Vec<Vec<Run>>]) -> Figure {
    let panels = panels(runs, |run| run.erased);
    let mut claims = Vec::new();
    // The paper's erases over SFS's: ext4 3.1 and 1.8, nodatacow 3.4 and 2.0, btrfs 6.1 and 3.8.
    for (panel, ext4, nodatacow, btrfs) in [(&panels[0], 3.1, 3.4, 6.1), (&panels[1], 1.8, 2.0, 3.8)] {
        let total = |system| of_system(panel, system).sum::<f64>();
        for (name, paper, system) in [
            ("ext4", ext4, EXT4),
            ("btrfs-nodatacow", nodatacow, NODATACOW),
            ("btrfs", btrfs, BTRFS),
            ("lfs-cb", 1.2, OUR_LFS),
        ] {
            let says = format!("all erases of {name} over sfs's on {}", panel.title);
            claims.push(exactly(says, "4.4", paper, total(system) / total(OUR_SFS), WORKING_SET));
        }
        let says = format!("all erases of ext over ext4's on {}", panel.title);
        let ratio = total(OUR_EXT) / total(EXT4);
        claims.push(claim(says, "the same workloads", Some(0.9), Some(1.1), Some(ratio), EXT));
        for (name, paper, system) in [("btrfs-nodatacow", nodatacow, NODATACOW), ("btrfs", btrfs, BTRFS)] {
            let says = format!("all erases of {name} over ext4's on {}", panel.title);
            let place = "4.4, derived: both are given over SFS";
            claims.push(exactly(says, place, paper / ext4, total(system) / total(EXT4), MIX));
        }
    }
    let worst = panels.iter().flat_map(|panel| {
        panel
            .groups
            .iter()
            .filter_map(|(_, values)| Some(values[BTRFS]? / values[OUR_SFS].filter(|erases| *erases > 0.0)?))
    });
    let says = "erases of btrfs over sfs's, the most of all workloads and both layers".to_string();
    claims.push(exactly(says, "4.4: in the worst case 7.5 times", 7.5, worst.fold(0.0, f64::max), WORKING_SET));
    Figure {
        name: "sfs-fig14".to_string(),
        title: "SFS figure 14: number of erases".to_string(),
        unit: "erased blocks".to_string(),
        about: "Blocks erased in the counted part.".to_string(),
        panels,
        claims,
        made_by: None,
    }
}
