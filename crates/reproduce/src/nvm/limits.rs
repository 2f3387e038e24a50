//! Limits of the three journals: throughput without one cost at a time, the threads' time by call, and counters.

use super::journals::{Journal, Sizes, Stack};
use super::loads::Load;
use super::measured::Measured;
use super::real::{RealPlace, System};
use super::simulated::{DRIVE, Wanted, simulate};
use super::{MOST_THREADS, at_least, panel, ratio};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Figure, Panel};
use flashpath::task::{CpuTable, Step};
use flashpath::units::format_size;

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

const COSTS: [Left; 6] = [
    Left { name: "nothing", cpu: || CpuTable::DEFAULT, memory: "", drive: DRIVE },
    Left { name: "shared lines", cpu: || without(Step::LineShared), memory: "", drive: DRIVE },
    Left { name: "stores to slots", cpu: || without(Step::BlockStored), memory: "", drive: DRIVE },
    Left { name: "all CPU time", cpu: || CpuTable::OFF, memory: "", drive: DRIVE },
    Left { name: "the memory's times", cpu: || CpuTable::DEFAULT, memory: "model=off", drive: DRIVE },
    // Not timing=off: a volume without any time has no throughput.
    Left { name: "the drive's times", cpu: || CpuTable::DEFAULT, memory: "", drive: "conv:read=1ns,write=1ns," },
];

const CALLS: [&str; 7] = ["fsync", "write", "read", "create", "unlink", "open", "close"];

/// Sizes of the journal, as multiples of the figures'.
const JOURNALS: [u64; 3] = [1, 4, 8];
/// The journals in memory, and O-JFS with as many checkpoint threads as N-JFS has.
const CHECKPOINTED: [(&str, Stack<'static>); 3] = [
    ("N-JFS", Stack::of(Journal::NJfs)),
    ("O-JFS", Stack::of(Journal::OJfs)),
    ("O-JFS, one checkpoint thread", Stack::partitioned("checkpointers=1")),
];

/// Throughput by the size of the journal: how much of a difference is that of checkpoints.
fn by_size(lab: &Lab, sizes: &Sizes, expression: &str) -> Result<(Panel, Vec<Claim>), ReproduceError> {
    let sized = |times: u64| Sizes { journal_bytes: (times * sizes.journal_bytes).min(1 << 30), ..*sizes };
    let points = JOURNALS.into_iter().flat_map(|times| CHECKPOINTED.map(|(_, stack)| (sized(times), stack)));
    let wanted: Vec<Wanted> = points
        .map(|(sizes, stack)| Wanted {
            path: stack.simulated(&sizes, DRIVE),
            expression: expression.to_string(),
            cpu: CpuTable::DEFAULT,
        })
        .collect();
    let made = simulate(lab, &wanted)?;
    let rows: Vec<&[Measured]> = made.chunks(CHECKPOINTED.len()).collect();
    let groups = JOURNALS.into_iter().zip(&rows).map(|(times, runs)| {
        let name = format_size(sized(times).journal_bytes);
        (name, runs.iter().map(|run| Some(run.mb_s)).collect::<Vec<_>>())
    });
    let panel = panel(
        "throughput by the size of the journal, simulated",
        &CHECKPOINTED.map(|(name, _)| name),
        groups.collect(),
    );
    let claim = |what: &str, row: usize, ours: usize| {
        let (ours, njfs) = (&rows[row][ours], &rows[row][0]);
        let because = format!("ours: {}. N-JFS: {}", ours.limits(), njfs.limits());
        let place = "IV, varied: the paper does not give the size of N-JFS's journal";
        at_least(&format!("{what}, 16 simulated threads"), place, 5.09, ratio(Some(ours), Some(njfs)), because)
    };
    let claims = vec![
        claim("O-JFS over N-JFS, journals of 8 times the size", 2, 1),
        claim("O-JFS with one checkpoint thread over N-JFS", 0, 2),
    ];
    Ok((Panel { axis: Some("size of the journal".to_string()), ..panel }, claims))
}

/// Makes the figure.
pub fn figure(place: &RealPlace<'_>) -> Result<Figure, ReproduceError> {
    let (lab, sizes) = (place.lab, Sizes::of(place.lab));
    let expression = Load::Varmail.expression(lab, MOST_THREADS);
    let wanted = COSTS.iter().flat_map(|left| Journal::ALL.map(|journal| (left, journal)));
    let wanted: Vec<Wanted> = wanted
        .map(|(left, journal)| {
            let path = Stack { journal, options: "", memory: left.memory }.simulated(&sizes, left.drive);
            Wanted { path, expression: expression.clone(), cpu: (left.cpu)() }
        })
        .collect();
    let simulated = simulate(lab, &wanted)?;
    let (sizes_panel, claims) = by_size(lab, &sizes, &expression)?;
    lab.progress("running nvm-limits in real time");
    let real = place.measure(&System::ALL[..Journal::ALL.len()], &expression)?;
    let rows = COSTS.iter().zip(simulated.chunks(Journal::ALL.len()));
    let throughput =
        rows.map(|(left, runs)| (left.name.to_string(), runs.iter().map(|run| Some(run.mb_s)).collect::<Vec<_>>()));
    let throughput = panel("throughput without this cost, simulated", &Journal::NAMES, throughput.collect());
    let simulated: Vec<Option<&Measured>> = simulated.iter().take(Journal::ALL.len()).map(Some).collect();
    let real: Vec<Option<&Measured>> = real.iter().map(Option::as_ref).collect();
    Ok(Figure {
        name: "nvm-limits".to_string(),
        title: "What limits the three journals".to_string(),
        unit: "MB/s in simulated time".to_string(),
        about: "Varmail with 16 threads. The threads' time is that of all threads in the counted stage; what is in no call is \
                time between calls. The second device of N-JFS takes no time in any simulated row."
            .to_string(),
        panels: vec![
            Panel { axis: Some("left out".to_string()), ..throughput },
            sizes_panel,
            time("simulated threads: time in calls", &simulated),
            time("real threads: time in calls", &real),
            counters("simulated threads: counters", &simulated),
            counters("real threads: counters", &real),
        ],
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
