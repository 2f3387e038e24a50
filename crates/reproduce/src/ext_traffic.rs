//! The writes of `ext` beside those of the kernel's ext4, for the same operations in each mode. It is no paper's figure.
//!
//! Both begin on a new volume of the same size with a journal of the same size, go through the same calls, and are unmounted;
//! all that reaches the device from the first call to the end of the unmount counts.

use crate::ReproduceError;
use crate::guest::Guest;
use crate::lab::{Captured, Experiment, Lab};
use flashpath::report::figure::{Claim, Figure, Panel, Reproduction};

/// The figures.
pub const FIGURES: &[&str] = &["ext-traffic"];

const MODES: [&str; 3] = ["writeback", "ordered", "journal"];
const SIZE_BYTES: u64 = 1 << 30;
const JOURNAL_BYTES: u64 = 32 << 20;
/// The largest difference that needs no reason.
const ALLOWED: f64 = 0.10;

/// A workload: its name, its expression, and the reason for a difference, if there is one.
struct Load {
    name: &'static str,
    expression: fn(&Lab) -> String,
    because: &'static str,
}

const BATCHES: &str = "a commit takes in all that wait for it: how many those are depends on the device's speed and, in the \
                       kernel, on its scheduler (the flushes tell how many commits there were). With data=journal, the kernel \
                       writes as much data home as with data=ordered; ext writes home in checkpoints";
const TICKS: &str = "the kernel takes times of files from a clock that ticks every few milliseconds: an fsync within the same tick \
                     finds no inode changed, and commits nothing";
const FEW: &str = "a few blocks in all: one commit more or less counts";

const LOADS: [Load; 6] = [
    Load {
        name: "mail",
        expression: |lab| format!("varmail:threads=1,loops={}", lab.scaled_count(5_000)),
        because: "",
    },
    Load {
        name: "mail, 16 threads",
        expression: |lab| format!("varmail:threads=16,loops={}", lab.scaled_count(10_000)),
        because: BATCHES,
    },
    Load {
        name: "creates",
        expression: |lab| format!("tokubench:files={},sync", lab.scaled_count(40_000)),
        because: "",
    },
    Load {
        name: "sequential",
        expression: |lab| format!("seq_write:file={},sync", lab.size(256 << 20, 8192)),
        because: FEW,
    },
    Load {
        name: "random, fsync",
        expression: |lab| {
            let (file, writes) = (lab.size(64 << 20, 4096), lab.size(64 << 20, 4096));
            format!("rnd_write:file={file},writes={writes},fsync-every=8")
        },
        because: TICKS,
    },
    Load { name: "untar", expression: |lab| format!("untar:files={},sync", lab.scaled_count(6_000)), because: "" },
];

/// Makes the figure.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    debug_assert_eq!(figures, FIGURES);
    let mut measured = Vec::new();
    for mode in MODES {
        let mut pairs = Vec::new();
        for load in &LOADS {
            let kernel = lab.capture(&experiment(lab, load, mode))?;
            let ours = lab.capture_guests(
                &format!("ext-traffic-{}-{mode}-ours", load.file_name()),
                &[guest(lab, load, mode)],
                None,
            )?;
            pairs.push((load, kernel, ours));
        }
        measured.push((mode, pairs));
    }
    Ok(Reproduction {
        paper: "ext".to_string(),
        title: "ext beside the kernel's ext4: what reaches the device".to_string(),
        command: "flashpath reproduce ext".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(lab),
        figures: vec![figure(&measured)],
    })
}

/// A workload, and what it wrote in the kernel's file system and in ours.
type Pair<'l> = (&'l Load, Captured, Captured);

impl Load {
    /// Its name in the names of files.
    fn file_name(&self) -> String {
        self.name.replace(", ", "-").replace(' ', "-")
    }
}

fn experiment(lab: &Lab, load: &Load, mode: &str) -> Experiment {
    let journal = JOURNAL_BYTES.to_string();
    let expression = (load.expression)(lab);
    Experiment {
        name: format!("ext-traffic-{}-{mode}", load.file_name()),
        // In simulated time no read changes a file's access time.
        file_system: ["--fs", "ext4", "--data", mode, "--journal-size", &journal, "--mount-options", "noatime"]
            .map(String::from)
            .to_vec(),
        size_bytes: SIZE_BYTES,
        guests: 1,
        setup: None,
        command: format!("\"$FLASHPATH\" run {expression} --in . --quiet --seed {} >/dev/null", lab.seed),
    }
}

fn guest(lab: &Lab, load: &Load, mode: &str) -> Guest {
    Guest {
        file_system: format!("ext:data={mode},journal-size={JOURNAL_BYTES}"),
        size_bytes: SIZE_BYTES,
        expression: (load.expression)(lab),
        has_setup: false,
        has_monitor: false,
        seed: lab.seed,
    }
}

fn conditions(lab: &Lab) -> Vec<(String, String)> {
    let loads: Vec<String> = LOADS.iter().map(|load| format!("{}: `{}`", load.name, (load.expression)(lab))).collect();
    vec![
        (
            "volumes".to_string(),
            "new ones of 1 GiB with a journal of 32 MiB: ext4 of the running kernel, mounted with noatime, on a loop device; \
             `ext` in simulated time on `conv`"
                .to_string(),
        ),
        (
            "counted".to_string(),
            "all that reaches the device from the first call to the end of the unmount, by content; the same calls with the \
             same bytes"
                .to_string(),
        ),
        ("workloads".to_string(), loads.join("; ")),
    ]
}

fn figure(measured: &[(&str, Vec<Pair<'_>>)]) -> Figure {
    let claims = measured.iter().flat_map(|(mode, pairs)| pairs.iter().flat_map(|pair| claims_of(mode, pair)));
    Figure {
        name: FIGURES[0].to_string(),
        title: "What ext writes, and what the kernel's ext4 writes".to_string(),
        unit: "MiB written".to_string(),
        about: "Bytes that reached the device, by content, in each mode of the journal.".to_string(),
        panels: measured.iter().map(|(mode, pairs)| panel(mode, pairs)).chain([flushes(measured)]).collect(),
        claims: claims.collect(),
        made_by: None,
    }
}

/// A content, and how to count its bytes.
type Counted = (&'static str, fn(&Captured) -> u64);

/// All, journal, metadata and data.
const CONTENTS: [Counted; 4] = [
    ("", |captured| captured.written_bytes),
    (" journal", |captured| captured.journal_bytes),
    (" metadata", |captured| captured.written_bytes - captured.journal_bytes - captured.data_bytes),
    (" data", |captured| captured.data_bytes),
];

fn panel(mode: &str, pairs: &[Pair<'_>]) -> Panel {
    let mib = |bytes: u64| Some(bytes as f64 / f64::from(1 << 20));
    let series = CONTENTS.iter().flat_map(|(content, _)| [format!("ext4{content}"), format!("ext{content}")]);
    let groups = pairs.iter().map(|(load, kernel, ours)| {
        let values = CONTENTS.iter().flat_map(|(_, bytes)| [mib(bytes(kernel)), mib(bytes(ours))]);
        (load.name.to_string(), values.collect())
    });
    Panel::new(&format!("data={mode}"), series.collect(), groups.collect())
}

fn flushes(measured: &[(&str, Vec<Pair<'_>>)]) -> Panel {
    let series = measured.iter().flat_map(|(mode, _)| [format!("ext4 {mode}"), format!("ext {mode}")]);
    let groups = LOADS.iter().zip(0..).map(|(load, number): (&Load, usize)| {
        let pairs = measured.iter().map(|(_, pairs)| &pairs[number]);
        let values = pairs.flat_map(|(_, kernel, ours)| [Some(kernel.flushes as f64), Some(ours.flushes as f64)]);
        (load.name.to_string(), values.collect())
    });
    let panel = Panel::new("flushes", series.collect(), groups.collect());
    Panel { unit: Some("flushes".to_string()), ..panel }
}

fn claims_of(mode: &str, (load, kernel, ours): &Pair<'_>) -> Vec<Claim> {
    let claim = |(content, bytes): &Counted| Claim {
        says: format!("{}, data={mode}: bytes{content} of ext over those of ext4", load.name),
        place: "the same operations".to_string(),
        low: Some(1.0 - ALLOWED),
        high: Some(1.0 + ALLOWED),
        ours: Some(bytes(ours) as f64 / bytes(kernel) as f64).filter(|ratio| ratio.is_finite()),
        because: load.because.to_string(),
        shown_by: None,
    };
    CONTENTS[..2].iter().map(claim).collect()
}
