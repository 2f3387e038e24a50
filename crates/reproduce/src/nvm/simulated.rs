//! The figures of simulated threads.

use super::journals::Journal;
use super::{Load, MOST, THREADS, VARMAIL, claims, region_bytes};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::RunResult;
use flashpath::report::figure::{Figure, Panel};

/// The drive of all journals.
pub const DRIVE: &str = "conv:size=16G";
/// Flash of the paper's order of speed, for its pages.
const FLASH: &str = "page:export=90%/nand:size=8G";
const MODES: [&str; 2] = ["journal", "ordered"];

/// Runs a benchmark on a path.
pub fn run(lab: &Lab, load: &Load, threads: u32, path: &str) -> Result<RunResult, ReproduceError> {
    let expression = format!("{},threads={threads}", (load.expression)(lab));
    lab.progress(&format!("{expression} on {path}"));
    lab.run_in_volume_with_cpu(path, &expression)
}

fn on_drive(lab: &Lab, journal: Journal, mode: &str) -> String {
    journal.path(DRIVE, &format!("data={mode}"), region_bytes(lab), "")
}

/// MiB a second by the number of threads.
pub fn throughput(lab: &Lab, name: &str, load: &Load) -> Result<Figure, ReproduceError> {
    let mut panels = Vec::new();
    for mode in MODES {
        let mut groups = Vec::new();
        for threads in THREADS {
            let values = Journal::ALL
                .map(|journal| Ok(run(lab, load, threads, &on_drive(lab, journal, mode))?.throughput_mib_s));
            groups.push((threads.to_string(), values.into_iter().collect::<Result<Vec<_>, ReproduceError>>()?));
        }
        panels.push(Panel::new(&format!("data={mode}"), names(), groups));
    }
    let last = |panel: &Panel| {
        let values = &panel.groups.last().expect("there are threads").1;
        [values[0], values[1], values[2]]
    };
    let mut all = claims(load, "simulated", last(&panels[0]), "");
    // In this mode a commit waits for the drive, whatever the journal.
    let because = "files' bytes go to the drive before each commit: its time is the same for all journals";
    all.extend(claims(load, "simulated, data=ordered", last(&panels[1]), because));
    let figure = Figure {
        name: name.to_string(),
        title: format!("{}, simulated", load.name),
        unit: "MiB/s".to_string(),
        about: "Bytes that files' calls read and wrote a second of simulated time.".to_string(),
        panels,
        claims: all,
    };
    Ok(figure.over("threads"))
}

fn names() -> Vec<String> {
    Journal::ALL.map(|journal| journal.name().to_string()).to_vec()
}

/// The waits of Varmail's threads: where the limit is.
pub fn waits(lab: &Lab, name: &str) -> Result<Figure, ReproduceError> {
    let results: Vec<RunResult> = Journal::ALL
        .iter()
        .map(|journal| run(lab, &VARMAIL, MOST, &on_drive(lab, *journal, MODES[0])))
        .collect::<Result<_, _>>()?;
    let gates = ["commit", "checkpoint", "inode", "transaction", "superblock"];
    let share = |result: &RunResult, gate: &str| {
        let files = result.files.as_ref()?;
        let counted = files.stages.iter().filter(|stage| stage.counted);
        let waits = counted.flat_map(|stage| &stage.gate_waits).filter(|waits| waits.gate == gate);
        Some(100.0 * waits.map(|waits| waits.seconds).sum::<f64>() / (files.seconds_counted? * f64::from(MOST)))
    };
    let groups = gates.map(|gate| (gate.to_string(), results.iter().map(|result| share(result, gate)).collect()));
    let loops = super::LOOPS as f64 * lab.scale;
    let events = ["commits", "blocks logged", "checkpoints", "commits that waited for room in the log", "nvm_fences"];
    let count =
        |result: &RunResult, event: &str| result.translation.events.get(event).map(|count| *count as f64 / loops);
    let counts =
        events.map(|event| (event.replace('_', " "), results.iter().map(|result| count(result, event)).collect()));
    let waits = Panel::new("waits at gates", names(), groups.to_vec());
    let counts = Panel { unit: Some("a loop".to_string()), ..Panel::new("counts", names(), counts.to_vec()) };
    Ok(Figure {
        name: name.to_string(),
        title: format!("Waits of {MOST} simulated threads in Varmail"),
        unit: "% of their time".to_string(),
        about: "The time that all threads together waited for others at gates, of their time; and what the journals did in a \
                loop of the workload. A wait for room in the journal is at the gate of the directory, if its holder waits."
            .to_string(),
        panels: vec![waits, counts],
        claims: Vec::new(),
    })
}

/// The pages that Varmail programs.
pub fn flash(lab: &Lab, name: &str) -> Result<Figure, ReproduceError> {
    let mut groups = Vec::new();
    let contents = ["data", "metadata", "journal"];
    for mode in MODES {
        for journal in Journal::ALL {
            let path = journal.path(FLASH, &format!("data={mode}"), region_bytes(lab), "");
            let result = run(lab, &VARMAIL, MOST, &path)?;
            let pages = |content: &str| {
                let rows = result.ledger.iter().filter(|row| row.station == "nand" && row.content == content);
                Some(rows.map(|row| row.blocks).sum::<f64>() / 1000.0)
            };
            groups.push((format!("{} {mode}", journal.name()), contents.map(pages).to_vec()));
        }
    }
    Ok(Figure {
        name: name.to_string(),
        title: "Flash pages of Varmail".to_string(),
        unit: "thousand pages".to_string(),
        about: format!("Pages that `{FLASH}` programs in the counted part, by content, with {MOST} simulated threads."),
        panels: vec![Panel::new("", contents.map(String::from).to_vec(), groups)],
        claims: Vec::new(),
    })
}
