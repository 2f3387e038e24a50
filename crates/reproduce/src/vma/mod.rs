//! Huang and Chang's "Extending Lifetime and Reducing Garbage Collection Overhead of Solid State Disks with Virtual Machine
//! Aware Journaling": figures 2 to 5. Beside the kernel's ext3, the guests have `ext` of this program, which has VMA mode,
//! too: `journal=vmm`.
//!
//! The text gives no plotted points. Its numbers compare VMA mode with data=journal, so here those of `ext` are compared.
//! Where it says that VMA mode equals the metadata modes, a bound for the kernel's follows, marked as derived.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the workloads in each system |
//! | `figures` | the figures |
//! | `claims` | claims about savings of one system over another |

mod claims;
mod figures;

use super::lab::{Aging, Captured, Experiment, Lab, drive};
use crate::ReproduceError;
use crate::guest::Guest;
use flashpath::report::RunResult;
use flashpath::report::figure::Reproduction;

/// The figures.
pub const FIGURES: &[&str] = &["vma-fig2", "vma-fig3", "vma-fig4", "vma-fig5", "vma-requests", "vma-state"];

const GUESTS: u32 = 8;
/// The interval of write-back in a guest. ext3 commits every five seconds and, with ordered data, writes all data then;
/// our runs take a tenth to a hundredth of the time of the paper's on disks.
const SYNC_SECONDS: f64 = 0.1;
/// The three modes of ext3, and of ours.
const MODES: [&str; 3] = ["writeback", "ordered", "journal"];
const LAYERS: [&str; 4] = ["fast", "superblock", "dftl", "page"];
/// The index of each mode among the kernel's systems, and from [`OURS`] on among ours.
const WRITEBACK: usize = 0;
const ORDERED: usize = 1;
const JOURNAL: usize = 2;
const VMA: usize = 3;

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

/// The systems: the kernel's file system in three modes, and ours in the same and in VMA mode.
const SYSTEMS: [&str; 7] =
    ["writeback", "ordered", "journal", "ext writeback", "ext ordered", "ext journal", "ext vma"];
/// The first of ours.
const OURS: usize = MODES.len();

/// One workload in each system.
struct Measured {
    load: &'static str,
    captured: Vec<Captured>,
    /// For each size of [`MAX_REQUESTS`] the merged write requests of each system; empty if no figure needs them.
    requests: Vec<Vec<u64>>,
    /// For each state of the drive, for each layer, the result of each system; empty if no figure needs it.
    replayed: [Vec<Vec<RunResult>>; STATES.len()],
}

/// The largest request of the guests' disks: 11 segments of a page, as Xen's block front end of the paper's time takes.
const MAX_REQUEST: u64 = 11 * 4096;

/// The largest requests of the figure about them; the paper's first.
const MAX_REQUESTS: [u64; 4] = [MAX_REQUEST, 4096, 128 << 10, 1280 << 10];

/// A state of a drive before the counted replay of a trace of so many bytes.
type DriveState = (&'static str, fn(u64) -> Aging);

const STATES: [DriveState; 4] = [
    ("empty", |_| Aging::Empty),
    ("filled", |_| Aging::FirstBytes(0)),
    ("aged once", |written| Aging::SameTrace { written, times: 2 }),
    ("aged thrice", |written| Aging::SameTrace { written, times: 6 }),
];
/// The state of figures 4 and 5.
const AGED: usize = 2;

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let flash = format!("nand:preset=vma,size={}", lab.size(32 << 30, 1 << 20));
    let paths: Vec<String> = LAYERS.iter().map(|layer| format!("{layer}/{flash},timing=off")).collect();
    let exported = paths.iter().map(|path| Ok(drive(path)?.1.exported_bytes()));
    let exported: Vec<u64> = exported.collect::<Result<_, ReproduceError>>()?;
    let smallest = exported.iter().copied().min().unwrap_or(0);
    let guest_bytes = (smallest / u64::from(GUESTS)) & !((1 << 22) - 1);
    let needs = |wanted: &[&str]| figures.iter().any(|figure| wanted.contains(figure));
    let states: &[usize] = match (needs(&["vma-state"]), needs(&["vma-fig4", "vma-fig5"])) {
        (true, _) => &[0, 1, 2, 3],
        (false, true) => &[AGED],
        (false, false) => &[],
    };
    let sizes: &[u64] = match (needs(&["vma-requests"]), needs(&["vma-fig2"])) {
        (true, _) => &MAX_REQUESTS,
        (false, true) => &MAX_REQUESTS[..1],
        (false, false) => &[],
    };
    let mut measured = Vec::new();
    for load in &LOADS {
        let mut one = Measured {
            load: load.name,
            captured: Vec::new(),
            requests: vec![Vec::new(); sizes.len()],
            replayed: std::array::from_fn(|_| vec![Vec::new(); LAYERS.len()]),
        };
        let mut every = None;
        for (at, system) in SYSTEMS.iter().enumerate() {
            if at == OURS {
                every = calls_between_syncs(lab, load, guest_bytes)?;
            }
            let capture = match at.checked_sub(OURS) {
                None => lab.capture(&experiment(lab, load, MODES[at], guest_bytes))?,
                Some(mode) => {
                    let guests = guests(lab, load, mode, guest_bytes);
                    let mode = if mode == VMA { "vma" } else { MODES[mode] };
                    lab.capture_guests(&format!("vma-{}-{mode}-ours", load.name), &guests, every)?
                }
            };
            for (requests, size) in one.requests.iter_mut().zip(sizes) {
                requests.push(lab.write_requests(&capture.trace, guest_bytes, *size)?);
            }
            for state in states {
                let (name, aging) = STATES[*state];
                lab.progress(&format!("replaying {} {system}, drive {name}", load.name));
                let results = lab.replay_all(&paths, &capture.trace, aging(capture.written_bytes))?;
                for (layer, result) in one.replayed[*state].iter_mut().zip(results) {
                    layer.push(result);
                }
            }
            one.captured.push(capture);
        }
        measured.push(one);
    }
    let timed = drive(&format!("page/{flash}"))?.1;
    let made = figures.iter().map(|figure| match *figure {
        "vma-fig2" => figures::requests(&measured),
        "vma-fig3" => figures::traffic(&measured),
        "vma-fig4" => figures::erases(&measured),
        "vma-fig5" => figures::collection(&measured, &timed),
        "vma-requests" => figures::request_sizes(&measured),
        "vma-state" => figures::drive_states(&measured),
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

/// The same in guests of `ext`.
fn guests(lab: &Lab, load: &Load, mode: usize, guest_bytes: u64) -> Vec<Guest> {
    let (journal, dirty) = (journal_bytes(lab), (guest_memory(lab) / 5).max(1 << 20));
    let options = match mode {
        VMA => "data=journal,journal=vmm".to_string(),
        mode => format!("data={}", MODES[mode]),
    };
    let guest = |number: u64| Guest {
        file_system: format!("ext:{options},journal-size={journal},dirty={}", dirty & !4095),
        size_bytes: guest_bytes,
        expression: (load.expression)(lab),
        has_setup: load.has_setup,
        has_monitor: mode == VMA,
        seed: lab.seed + number,
    };
    (0..u64::from(GUESTS)).map(guest).collect()
}

/// The calls between two syncs of a guest of `ext`: [`SYNC_SECONDS`] of simulated time in data=ordered without syncs. It is the
/// same in all modes, so that they do the same work.
fn calls_between_syncs(lab: &Lab, load: &Load, guest_bytes: u64) -> Result<Option<u64>, ReproduceError> {
    let guests = guests(lab, load, ORDERED, guest_bytes);
    let recording = guests[0].record(None, &|| !lab.stops())?;
    let syncs = (recording.seconds / SYNC_SECONDS) as u64;
    lab.progress(&format!("{}: {} calls in {:.3} s, {syncs} syncs", load.name, recording.calls, recording.seconds));
    Ok((syncs > 0).then(|| (recording.calls / (syncs + 1)).max(1)))
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
                 begin at the same time, and their writes are merged by their times. They are synced behind every so many calls as \
                 data=ordered makes in {SYNC_SECONDS} s of simulated time, in all modes alike"
            ),
        ),
        condition(
            "requests",
            format!(
                "the writes of each guest, merged and split to at most {} as by a block layer: 11 segments, Xen's limit; both the \
                 kernel's and ours, from their traces before merging",
                size(MAX_REQUEST)
            ),
        ),
        condition(
            "VMA mode",
            "`ext:data=journal,journal=vmm`: a commit hands the memory of changed blocks to a monitor, and writes no journal. As \
             many blocks may wait to be written home as the journal of the other modes could hold"
                .to_string(),
        ),
        condition("in each", workloads.join(", ")),
        condition(
            "write-back",
            format!(
                "each of the kernel's file systems is synced every {SYNC_SECONDS} s, in place of ext3's commit every 5 s: \
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
