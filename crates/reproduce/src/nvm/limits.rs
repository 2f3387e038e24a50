//! Limits of the journals: throughput without one of the paper's causes, with other settings of N-JFS, and without one cost at a
//! time; the threads' time by call, and counters.

use super::journals::{Journal, Sizes, Stack};
use super::loads::Load;
use super::measured::Measured;
use super::real::{RealPlace, System};
use super::simulated::{DRIVE, FAST_DRIVE, Wanted, simulate};
use super::{MOST_THREADS, at_least, panel, ratio};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Figure, Panel};
use flashpath::task::{CpuTable, Step};

/// A cost that is left out.
struct Left {
    name: &'static str,
    cpu: fn() -> CpuTable,
    memory: &'static str,
    drive: &'static str,
}

fn without(step: Step) -> CpuTable {
    let table = CpuTable::DEFAULT;
    CpuTable { costs: table.costs.with(step, 0), ..table }
}

const COSTS: [Left; 7] = [
    Left { name: "nothing", cpu: || CpuTable::DEFAULT, memory: "", drive: DRIVE },
    Left { name: "requests to devices", cpu: || without(Step::RequestServed), memory: "", drive: DRIVE },
    Left { name: "shared lines", cpu: || without(Step::LineShared), memory: "", drive: DRIVE },
    Left { name: "stores to slots", cpu: || without(Step::BlockStored), memory: "", drive: DRIVE },
    Left { name: "all CPU time", cpu: || CpuTable::OFF, memory: "", drive: DRIVE },
    Left { name: "the memory's times", cpu: || CpuTable::DEFAULT, memory: "model=off", drive: DRIVE },
    Left { name: "the drive's times", cpu: || CpuTable::DEFAULT, memory: "", drive: FAST_DRIVE },
];

const CALLS: [&str; 7] = ["fsync", "write", "read", "create", "unlink", "open", "close"];

/// What the paper says makes O-JFS fast, each taken away in turn.
const CAUSES: [(&str, &str); 4] = [
    ("as it is", ""),
    ("one partition", "partitions=1"),
    ("a lock in place of the atomic slot", "slots=locked"),
    ("one checkpoint thread", "checkpointers=1"),
];

/// Blocks that N-JFS writes home at once, and its other choices.
const SETTINGS: [(&str, &str); 7] = [
    ("as it is: 64 blocks at once, one checkpoint thread", ""),
    ("1 block at once", "checkpoint-batch=1"),
    ("8 blocks at once", "checkpoint-batch=8"),
    ("256 blocks at once", "checkpoint-batch=256"),
    ("8 checkpoint threads", "checkpointers=8"),
    ("8 checkpoint threads, 256 blocks at once", "checkpointers=8,checkpoint-batch=256"),
    ("a commit thread, as jbd2's", "commit-thread=on"),
];

const LOADS: [Load; 2] = [Load::Varmail, Load::Tokubench];

/// Throughput of each volume under both loads, on a drive: a row for each.
fn under_both(lab: &Lab, stacks: &[Stack<'_>], drive: &str) -> Result<Vec<[Measured; 2]>, ReproduceError> {
    let sizes = Sizes::of(lab);
    let wanted = stacks.iter().flat_map(|stack| {
        LOADS.map(|load| Wanted {
            path: stack.simulated(&sizes, drive),
            expression: load.expression(lab, MOST_THREADS),
            cpu: CpuTable::DEFAULT,
        })
    });
    let made = simulate(lab, &wanted.collect::<Vec<_>>())?;
    Ok(made.as_chunks::<2>().0.to_vec())
}

/// O-JFS and ours without each of the paper's causes, on the drive of the figures and on one that costs nothing.
fn causes(lab: &Lab) -> Result<(Vec<Panel>, Vec<Claim>), ReproduceError> {
    let journals = [Journal::OJfs, Journal::Ours];
    let stacks: Vec<Stack<'_>> =
        CAUSES.iter().flat_map(|(_, options)| journals.map(|journal| Stack::of(journal).with(options))).collect();
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for (drive, named) in [(DRIVE, "the drive of the figures"), (FAST_DRIVE, "a drive that takes no time")] {
        let runs = under_both(lab, &stacks, drive)?;
        let groups = CAUSES.iter().zip(runs.chunks(journals.len())).map(|((cause, _), runs)| {
            let values = (0..LOADS.len()).flat_map(|load| runs.iter().map(move |run| Some(run[load].mb_s)));
            (cause.to_string(), values.collect())
        });
        let series = LOADS.map(|load| [format!("O-JFS, {}", load.name()), format!("our scheme, {}", load.name())]);
        let series = series.concat();
        let title = format!("without one of the paper's causes, on {named}, simulated");
        panels.push(Panel { axis: Some("taken away".to_string()), ..Panel::new(&title, series, groups.collect()) });
        for (at, (cause, _)) in CAUSES.iter().enumerate().skip(1) {
            let (whole, less) = (&runs[0][0], &runs[at * journals.len()][0]);
            let says = format!("O-JFS over the same with {cause}, Varmail, 16 simulated threads, on {named}");
            let because = format!("with it: {}. Without: {}", whole.limits(), less.limits());
            claims.push(at_least(
                &says,
                "III: what each cause is worth, derived",
                1.0,
                ratio(Some(whole), Some(less)),
                because,
            ));
        }
    }
    Ok((panels, claims))
}

/// N-JFS with other settings.
fn settings_of_njfs(lab: &Lab) -> Result<Panel, ReproduceError> {
    let stacks: Vec<Stack<'_>> = SETTINGS.iter().map(|(_, options)| Stack::of(Journal::NJfs).with(options)).collect();
    let runs = under_both(lab, &stacks, DRIVE)?;
    let groups = SETTINGS
        .iter()
        .zip(&runs)
        .map(|((setting, _), runs)| (setting.to_string(), runs.iter().map(|run| Some(run.mb_s)).collect::<Vec<_>>()));
    let panel = panel("N-JFS with other settings, simulated", &LOADS.map(Load::name), groups.collect());
    Ok(Panel { axis: Some("N-JFS".to_string()), ..panel })
}

/// Makes the figure.
pub fn figure(place: &RealPlace<'_>) -> Result<Figure, ReproduceError> {
    let (lab, sizes) = (place.lab, Sizes::of(place.lab));
    let expression = Load::Varmail.expression(lab, MOST_THREADS);
    let (mut panels, claims) = causes(lab)?;
    panels.push(settings_of_njfs(lab)?);
    let wanted = COSTS.iter().flat_map(|left| Journal::ALL.map(|journal| (left, journal)));
    let wanted: Vec<Wanted> = wanted
        .map(|(left, journal)| {
            let path = Stack { memory: left.memory, ..Stack::of(journal) }.simulated(&sizes, left.drive);
            Wanted { path, expression: expression.clone(), cpu: (left.cpu)() }
        })
        .collect();
    let simulated = simulate(lab, &wanted)?;
    lab.progress("running nvm-limits in real time");
    let real = place.measure(&System::ALL[..Journal::ALL.len()], &expression)?;
    let rows = COSTS.iter().zip(simulated.chunks(Journal::ALL.len()));
    let throughput =
        rows.map(|(left, runs)| (left.name.to_string(), runs.iter().map(|run| Some(run.mb_s)).collect::<Vec<_>>()));
    let throughput = panel("throughput without this cost, simulated", &Journal::NAMES, throughput.collect());
    let simulated: Vec<Option<&Measured>> = simulated.iter().take(Journal::ALL.len()).map(Some).collect();
    let real: Vec<Option<&Measured>> = real.iter().map(Option::as_ref).collect();
    panels.extend([
        Panel { axis: Some("left out".to_string()), ..throughput },
        time("simulated threads: time in calls", &simulated),
        time("real threads: time in calls", &real),
        counters("simulated threads: counters", &simulated),
        counters("real threads: counters", &real),
    ]);
    Ok(Figure {
        name: "nvm-limits".to_string(),
        title: "What limits the journals".to_string(),
        unit: "MB/s in simulated time".to_string(),
        about: "16 threads; Varmail where nothing else is said. An effect is the paper's if it goes when its cause is taken away. \
                The threads' time is that of all threads in the counted stage; what is in no call is time between calls."
            .to_string(),
        panels,
        claims,
        made_by: None,
    })
}

fn time(title: &str, runs: &[Option<&Measured>]) -> Panel {
    let groups = CALLS.map(|call| {
        let share = |run: &Option<&Measured>| run.map(|run| 100.0 * run.time_in(call));
        (call.to_string(), runs.iter().map(share).collect())
    });
    Panel { unit: Some("% of the threads' time".to_string()), ..panel(title, &Journal::NAMES, groups.to_vec()) }
}

fn counters(title: &str, runs: &[Option<&Measured>]) -> Panel {
    let counted = |name: &str, count: &dyn Fn(&Measured) -> f64| {
        (name.to_string(), runs.iter().map(|run| run.map(count)).collect::<Vec<_>>())
    };
    let event = |name: &str, event: &'static str| counted(name, &|run| run.count(event) as f64);
    let groups = vec![
        event("commits", "commits"),
        event("checkpoints", "checkpoints"),
        event("flushes", "flushes"),
        event("waits for room in the journal", "commits that waited for room in the log"),
        event("fences", "nvm_fences"),
        counted("MB of blocks journalled", &Measured::logged_mb),
    ];
    Panel { unit: Some("count".to_string()), ..panel(title, &Journal::NAMES, groups) }
}
