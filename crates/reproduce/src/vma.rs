//! Huang and Chang's "Extending Lifetime and Reducing Garbage Collection Overhead of Solid State Disks with Virtual Machine
//! Aware Journaling": figures 2 to 5. Beside the kernel's ext3, the guests have `ext` of this program.
//!
//! The text gives no plotted points. Its numbers are about VMA mode, which is not implemented yet; where it says that
//! VMA mode equals the metadata modes, a bound for those follows, marked as derived.

use super::lab::{Aging, Captured, Experiment, Lab, drive};
use crate::ReproduceError;
use crate::guest::Guest;
use flashpath::report::RunResult;
use flashpath::report::figure::{Claim, Figure, Panel, Reproduction};
use flashpath::run::DriveSettings;

/// The figures.
pub const FIGURES: &[&str] = &["vma-fig2", "vma-fig3", "vma-fig4", "vma-fig5"];

const GUESTS: u32 = 8;
/// The interval of write-back in a guest. ext3 commits every five seconds and, with ordered data, writes all data then;
/// our runs take a tenth to a hundredth of the time of the paper's on disks.
const SYNC_SECONDS: f64 = 0.1;
/// The three modes of ext3, and the one not implemented yet.
const MODES: [&str; 3] = ["writeback", "ordered", "journal"];
const LATER: &str = "vma (later)";
const LAYERS: [&str; 4] = ["fast", "superblock", "dftl", "page"];
/// The index of each mode in a group's values.
const WRITEBACK: usize = 0;
const ORDERED: usize = 1;
const JOURNAL: usize = 2;

/// A workload: its name, its expression at a scale, and if it has a setup before the recording.
struct Load {
    name: &'static str,
    expression: fn(&Lab) -> String,
    has_setup: bool,
}

/// Table I. The paper gives sizes for the first two; the tree is as large as Linux 2.6.11; postmark has a common number
/// of files, and transactions that write about as much as the others.
const LOADS: [Load; 5] = [
    Load {
        name: "seq_write",
        expression: |lab| format!("seq_write:file={}", lab.size(600 << 20, 8192)),
        has_setup: false,
    },
    Load {
        name: "rnd_write",
        expression: |lab| format!("rnd_write:file={},writes={}", lab.size(512 << 20, 4096), lab.size(128 << 20, 4096)),
        has_setup: true,
    },
    Load {
        name: "postmark",
        expression: |lab| {
            let (files, transactions) = (lab.scaled_count(20_000), lab.scaled_count(50_000));
            format!("postmark:files={files},transactions={transactions},subdirectories=10")
        },
        has_setup: false,
    },
    Load { name: "untar", expression: |lab| format!("untar:files={}", lab.scaled_count(17_000)), has_setup: false },
    Load { name: "compile", expression: |lab| format!("compile:files={}", lab.scaled_count(17_000)), has_setup: true },
];

/// The number of systems: the kernel's file system and ours, in each mode.
const SYSTEMS: usize = 2 * MODES.len();
/// The column of our first mode in a panel: behind the kernel's and the mode not implemented yet.
const OURS: usize = MODES.len() + 1;

/// One workload under the three modes, first in the kernel's file system, then in ours.
struct Measured {
    load: &'static str,
    captured: Vec<Captured>,
    /// For each layer the result of each system; empty if no figure needs it.
    replayed: Vec<Vec<RunResult>>,
}

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let flash = format!("nand:preset=vma,size={}", lab.size(32 << 30, 1 << 20));
    let paths: Vec<String> = LAYERS.iter().map(|layer| format!("{layer}/{flash},timing=off")).collect();
    let exported = paths.iter().map(|path| Ok(drive(path)?.1.exported_bytes()));
    let exported: Vec<u64> = exported.collect::<Result<_, ReproduceError>>()?;
    let smallest = exported.iter().copied().min().unwrap_or(0);
    let guest_bytes = (smallest / u64::from(GUESTS)) & !((1 << 22) - 1);
    let needs_drives = figures.iter().any(|figure| ["vma-fig4", "vma-fig5"].contains(figure));
    let mut measured = Vec::new();
    for load in &LOADS {
        let mut captured = Vec::new();
        let mut replayed = vec![Vec::new(); LAYERS.len()];
        for system in 0..SYSTEMS {
            let mode = MODES[system % MODES.len()];
            let capture = match captured.get(system.wrapping_sub(MODES.len())) {
                None => lab.capture(&experiment(lab, load, mode, guest_bytes))?,
                Some(kernel) => ours(lab, load, mode, guest_bytes, kernel)?,
            };
            if needs_drives {
                lab.progress(&format!(
                    "replaying {} {mode}{}",
                    load.name,
                    if system < MODES.len() { "" } else { " of ext" }
                ));
                for (layer, result) in replayed.iter_mut().zip(lab.replay_all(
                    &paths,
                    &capture.trace,
                    Aging::SameTrace(capture.written_bytes),
                )?) {
                    layer.push(result);
                }
            }
            captured.push(capture);
        }
        measured.push(Measured { load: load.name, captured, replayed });
    }
    let timed = drive(&format!("page/{flash}"))?.1;
    let made = figures.iter().map(|figure| match *figure {
        "vma-fig2" => requests(&measured),
        "vma-fig3" => traffic(&measured),
        "vma-fig4" => erases(&measured),
        "vma-fig5" => collection(&measured, &timed),
        name => unreachable!("{name} is not in FIGURES"),
    });
    Ok(Reproduction {
        paper: "vma".to_string(),
        title: "Huang and Chang: SSD lifetime with virtual machine aware journaling".to_string(),
        command: "flashpath reproduce vma".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(lab, &flash, guest_bytes),
        figures: made.collect(),
    })
}

fn journal_bytes(lab: &Lab) -> u64 {
    lab.scaled(32 << 20, 1 << 20).max(4 << 20)
}

/// 128 MB at full scale; at least the memory of the workload's process.
fn guest_memory(lab: &Lab) -> u64 {
    lab.scaled(128 << 20, 4096).max(32 << 20)
}

fn experiment(lab: &Lab, load: &Load, mode: &str, guest_bytes: u64) -> Experiment {
    let run = |only: &str| {
        let seed = format!("$(({} + FLASHPATH_GUEST))", lab.seed);
        format!("\"$FLASHPATH\" run {} --in . --quiet --seed {seed}{only} >/dev/null", (load.expression)(lab))
    };
    // The loop is killed at the end of the command.
    let recorded = |only: &str| format!("(while sleep {SYNC_SECONDS}; do sync -f .; done) & {}", run(only));
    let journal = journal_bytes(lab).to_string();
    let (setup, command) = match load.has_setup {
        true => (Some(run(" --only setup")), recorded(" --only counted")),
        false => (None, recorded("")),
    };
    let memory = guest_memory(lab).to_string();
    let file_system = ["--fs", "ext3", "--data", mode, "--journal-size", &journal, "--memory", &memory];
    Experiment {
        name: format!("vma-{}-{mode}", load.name),
        file_system: file_system.map(String::from).to_vec(),
        size_bytes: guest_bytes,
        guests: GUESTS,
        setup,
        command,
    }
}

/// The same in guests of `ext`, which are synced as often as the kernel's were.
fn ours(lab: &Lab, load: &Load, mode: &str, guest_bytes: u64, kernel: &Captured) -> Result<Captured, ReproduceError> {
    let (journal, dirty) = (journal_bytes(lab), (guest_memory(lab) / 5).max(1 << 20));
    let file_system = format!("ext:data={mode},journal-size={journal},dirty={}", dirty & !4095);
    let guest = |number: u64| Guest {
        file_system: file_system.clone(),
        size_bytes: guest_bytes,
        expression: (load.expression)(lab),
        has_setup: load.has_setup,
        seed: lab.seed + number,
    };
    let guests: Vec<Guest> = (0..u64::from(GUESTS)).map(guest).collect();
    lab.capture_guests(&format!("vma-{}-{mode}-ours", load.name), &guests, (kernel.seconds / SYNC_SECONDS) as u64)
}

fn conditions(lab: &Lab, drive: &str, guest_bytes: u64) -> Vec<(String, String)> {
    let size = |bytes: u64| flashpath::units::human_size(bytes as f64);
    let workloads: Vec<String> = LOADS.iter().map(|load| format!("`{}`", (load.expression)(lab))).collect();
    let condition = |name: &str, value: String| (name.to_string(), value);
    vec![
        condition(
            "file systems",
            format!(
                "ext3 of the running kernel, {GUESTS} at once on a device of {} each, journals of {}, and {} of memory with its page cache",
                size(guest_bytes),
                size(journal_bytes(lab)),
                size(guest_memory(lab))
            ),
        ),
        condition(
            "beside them",
            format!(
                "`ext` of this program in simulated time, {GUESTS} in the same sizes, with extents and delayed allocation; they \
                 begin at the same time, and their writes are merged by their times. They are synced as often as a guest of the \
                 kernel could be in the time that its workload took"
            ),
        ),
        condition("in each", workloads.join(", ")),
        condition(
            "write-back",
            format!(
                "each guest's file system is synced every {SYNC_SECONDS} s, in place of ext3's commit every 5 s: \
                 our disks are in memory, and our runs take seconds where the paper's took minutes"
            ),
        ),
        condition(
            "drive",
            format!(
                "`{drive}`, Table II; filled in order and then aged by the same trace until it has written the \
                 spare space twice, since a new drive collects no garbage"
            ),
        ),
        condition(
            "differs from the paper",
            "the guests are processes of one kernel instead of virtual machines; their disks are smaller than the \
             paper's 4 GB, which would fill the 32 GB without a spare block"
                .to_string(),
        ),
    ]
}

/// A panel with a value for each workload and system, and a column for the mode not implemented yet.
fn panel(title: &str, measured: &[Measured], value: impl Fn(&Measured, usize) -> f64) -> Panel {
    let kernel = MODES.iter().map(|mode| mode.to_string()).chain([LATER.to_string()]);
    let series = kernel.chain(MODES.iter().map(|mode| format!("ext {mode}"))).collect();
    let groups = measured.iter().map(|load| {
        let kernel = (0..MODES.len()).map(|mode| Some(value(load, mode))).chain([None]);
        let values = kernel.chain((MODES.len()..SYSTEMS).map(|system| Some(value(load, system))));
        (load.load.to_string(), values.collect())
    });
    Panel::new(title, series, groups.collect())
}

/// The panel's value of one mode over another's, for the workloads of these names.
fn ratios(panel: &Panel, loads: &[&str], over: usize, under: usize) -> Vec<f64> {
    let chosen = panel.groups.iter().filter(|(load, _)| loads.contains(&load.as_str()));
    let ratios = chosen.filter_map(|(_, values)| Some(values[over]? / values[under]?));
    ratios.filter(|ratio| ratio.is_finite()).collect()
}

fn smallest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

const MICRO: [&str; 2] = ["seq_write", "rnd_write"];
const MACRO: [&str; 3] = ["postmark", "untar", "compile"];
const ALL: [&str; 5] = ["seq_write", "rnd_write", "postmark", "untar", "compile"];

/// A claim of the paper, without our value.
struct PaperClaim<'a> {
    says: String,
    place: &'a str,
    bounds: (Option<f64>, Option<f64>),
    because: &'a str,
}

fn claim(paper: PaperClaim, ours: Option<f64>) -> Claim {
    let PaperClaim { says, place, bounds: (low, high), because } = paper;
    Claim { says, place: place.to_string(), low, high, ours, because: because.to_string() }
}

const SAME_SYNCS: &str = "here the same syncs write back both modes, so that they differ by chance";

fn requests(measured: &[Measured]) -> Figure {
    let panel = panel("", measured, |load, mode| load.captured[mode].writes as f64);
    let claims = vec![
        claim(
            PaperClaim {
                says: "ordered sends more requests than writeback, in the worst workload (ratio)".to_string(),
                place: "IV.A",
                bounds: (Some(1.0), None),
                because: SAME_SYNCS,
            },
            smallest(&ratios(&panel, &ALL, ORDERED, WRITEBACK)),
        ),
        claim(
            PaperClaim {
                says: "journal sends the most requests: over ordered, in the worst workload".to_string(),
                place: "IV.A, derived: VMA saves 9.4 % to 48.9 % of journal's requests and is like ordered",
                bounds: (Some(1.0 / (1.0 - 0.094)), None),
                because: "today's kernel writes a journal in large requests, which adds more bytes than requests",
            },
            smallest(&ratios(&panel, &ALL, JOURNAL, ORDERED)),
        ),
    ];
    Figure {
        name: "vma-fig2".to_string(),
        title: "VMA figure 2: number of I/O requests".to_string(),
        unit: "write requests".to_string(),
        about: "Requests that reached the devices, after merging by the kernel; all guests together.".to_string(),
        panels: vec![panel],
        claims,
    }
}

fn traffic(measured: &[Measured]) -> Figure {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let written = panel("", measured, |load, mode| mib(load.captured[mode].written_bytes));
    let journal = panel("journal alone", measured, |load, mode| mib(load.captured[mode].journal_bytes));
    let place = "IV.A, derived: VMA saves 42.4 % to 56.7 % of journal's traffic and is like ordered";
    let (low, high) = (1.0 / (1.0 - 0.424), 1.0 / (1.0 - 0.567));
    let over_ordered = |load: &str| smallest(&ratios(&written, &[load], JOURNAL, ORDERED));
    let claims = ALL.iter().map(|load| {
        let says = format!("journal's traffic over ordered's, {load}");
        let because = "it depends on the commit interval: with frequent commits, ordered writes the same metadata \
                       to its journal more often; with rare ones, more files are deleted before they are written";
        claim(PaperClaim { says, place, bounds: (Some(low), Some(high)), because }, over_ordered(load))
    });
    let more = claim(
        PaperClaim {
            says: "ordered writes more than writeback, in the worst workload (ratio)".to_string(),
            place: "IV.A",
            bounds: (Some(1.0), None),
            because: SAME_SYNCS,
        },
        smallest(&ratios(&written, &ALL, ORDERED, WRITEBACK)),
    );
    Figure {
        name: "vma-fig3".to_string(),
        title: "VMA figure 3: amount of I/O traffic".to_string(),
        unit: "MiB written".to_string(),
        about: "Bytes written to the devices, all guests together.".to_string(),
        claims: claims
            .chain([more])
            .chain(ours_over_kernels(&written, "traffic"))
            .chain(ours_over_kernels(&journal, "journal"))
            .collect(),
        panels: vec![written, journal],
    }
}

/// The writes of `ext` against those of the kernel.
fn ours_over_kernels(panel: &Panel, what: &str) -> Vec<Claim> {
    let because = "ext3 has block maps, and allocates when a call writes; ext has extents, and allocates when the bytes are \
                   written back; and what is deleted or overwritten between two syncs depends on when they come";
    let claim_of = |(load, mode): (&str, usize)| {
        let says = format!("{what} of ext over the kernel's, {load} in {}", MODES[mode]);
        let bounds = (Some(0.9), Some(1.1));
        claim(
            PaperClaim { says, place: "the same workloads", bounds, because },
            smallest(&ratios(panel, &[load], OURS + mode, mode)),
        )
    };
    ALL.iter().flat_map(|load| (0..MODES.len()).map(move |mode| (*load, mode))).map(claim_of).collect()
}

const AGED_DRIVE: &str = "the paper does not give the utilization of its drive; ours is full and aged, so that \
                               every write needs collected space; and FAST's merges depend on the scatter of the \
                               writes, which a journal changes little";

fn erases(measured: &[Measured]) -> Figure {
    let panels: Vec<Panel> = (0..LAYERS.len())
        .map(|layer| panel(LAYERS[layer], measured, |load, mode| load.replayed[layer][mode].flash.erased_blocks as f64))
        .collect();
    let dftl = &panels[2];
    let untar = |mode| smallest(&ratios(dftl, &["untar"], mode, JOURNAL));
    let mut claims = vec![
        claim(
            PaperClaim {
                says: "untar on DFTL: writeback's erases over journal's".to_string(),
                place: "IV.B",
                bounds: (Some(0.378), Some(0.378)),
                because: AGED_DRIVE,
            },
            untar(WRITEBACK),
        ),
        claim(
            PaperClaim {
                says: "untar on DFTL: ordered's erases over journal's".to_string(),
                place: "IV.B",
                bounds: (Some(0.40), Some(0.40)),
                because: AGED_DRIVE,
            },
            untar(ORDERED),
        ),
    ];
    let paper_layers = &panels[..3];
    let all_ratios = |loads: &[&str], over, under| -> Vec<f64> {
        paper_layers.iter().flat_map(|panel| ratios(panel, loads, over, under)).collect()
    };
    let worst = largest(&all_ratios(&ALL, ORDERED, JOURNAL));
    claims.push(claim(
        PaperClaim {
            says: "journal erases the most: ordered's erases over journal's, in the worst workload and layer"
                .to_string(),
            place: "IV.B",
            bounds: (None, Some(1.0)),
            because: AGED_DRIVE,
        },
        worst,
    ));
    for (loads, name, low, high) in [(&MICRO[..], "micro", 0.346, 0.56), (&MACRO[..], "macro", 0.484, 0.865)] {
        let ratios = all_ratios(loads, ORDERED, JOURNAL);
        for (which, ours) in [("the lowest", smallest(&ratios)), ("the highest", largest(&ratios))] {
            claims.push(claim(
                PaperClaim {
                    says: format!(
                        "{name} benchmarks: ordered's erases over journal's, {which} of all workloads and layers"
                    ),
                    place: "IV.B, derived: VMA saves that share and is like ordered",
                    bounds: (Some(1.0 - high), Some(1.0 - low)),
                    because: AGED_DRIVE,
                },
                ours,
            ));
        }
    }
    for (more, less) in [(0, 1), (1, 2), (1, 3)] {
        let value = |layer: usize, mode: usize| {
            panels[layer].groups.iter().find(|(load, _)| load == "rnd_write").and_then(|(_, values)| values[mode])
        };
        let ratios: Vec<f64> =
            (0..MODES.len()).filter_map(|mode| Some(value(more, mode)? / value(less, mode)?)).collect();
        claims.push(claim(
            PaperClaim {
                says: format!("rnd_write: erases of {} over {}, in the worst mode", LAYERS[more], LAYERS[less]),
                place: if more == 0 { "IV.B" } else { "the order of the figure's legend" },
                bounds: (Some(1.0), None),
                because: "a superblock collects garbage within itself, which suits clustered writes; a table too \
                          small for random writes costs DFTL more",
            },
            smallest(&ratios),
        ));
    }
    Figure {
        name: "vma-fig4".to_string(),
        title: "VMA figure 4: erase counts".to_string(),
        unit: "erased blocks".to_string(),
        about: "The traces of figures 2 and 3, replayed on a filled drive. The page-level layer, with its whole map \
                in RAM, is not in the paper; it shows the bound."
            .to_string(),
        panels,
        claims,
    }
}

/// Seconds of flash time other than host writes: Table II's times for copies, mapping and erases.
fn collection_seconds(result: &RunResult, timed: &DriveSettings) -> f64 {
    let latencies = timed.nand.latencies.expect("the preset has times");
    let host: f64 = result.ledger.iter().filter(|row| row.station == "workload").map(|row| row.blocks).sum();
    let host_pages = host * 4096.0 / result.flash.page_bytes as f64;
    let programs = result.flash.programmed_pages as f64 - host_pages;
    // The traces have no reads: all reads are for copies, merges or mapping.
    let reads = result.flash.read_pages as f64;
    let (read, program) = (latencies.read_ns + latencies.transfer_ns, latencies.program_ns + latencies.transfer_ns);
    let ns =
        programs * program as f64 + reads * read as f64 + result.flash.erased_blocks as f64 * latencies.erase_ns as f64;
    ns / 1e9
}

fn collection(measured: &[Measured], timed: &DriveSettings) -> Figure {
    let panels: Vec<Panel> = (0..LAYERS.len())
        .map(|layer| {
            panel(LAYERS[layer], measured, |load, mode| collection_seconds(&load.replayed[layer][mode], timed))
        })
        .collect();
    let mut claims = Vec::new();
    for (loads, name, low, high) in [(&MICRO[..], "micro", 0.131, 0.632), (&MACRO[..], "macro", 0.27, 0.806)] {
        let ratios: Vec<f64> = panels[..3].iter().flat_map(|panel| ratios(panel, loads, ORDERED, JOURNAL)).collect();
        for (which, ours) in [("the lowest", smallest(&ratios)), ("the highest", largest(&ratios))] {
            claims.push(claim(
                PaperClaim {
                    says: format!(
                        "{name} benchmarks: ordered's overhead over journal's, {which} of all workloads and layers"
                    ),
                    place: "IV.C, derived: VMA saves that share and is like ordered",
                    bounds: (Some(1.0 - high), Some(1.0 - low)),
                    because: AGED_DRIVE,
                },
                ours,
            ));
        }
    }
    Figure {
        name: "vma-fig5".to_string(),
        title: "VMA figure 5: garbage collection overhead".to_string(),
        unit: "seconds of flash time".to_string(),
        about: "The same runs: all flash reads, programs and erases other than host writes, at Table II's 88, 263 \
                and 2,000 us. The paper does not define its unit."
            .to_string(),
        panels,
        claims,
    }
}
