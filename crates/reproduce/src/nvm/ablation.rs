//! Choices of our scheme, one changed at a time: Varmail at 16 threads, simulated and with real threads.

use super::journals::{Journal, Stack};
use super::loads::Load;
use super::measured::Measured;
use super::real::{RealPlace, System};
use super::simulated::{Wanted, simulate};
use super::{MOST_THREADS, at_least, panel, ratio};
use crate::ReproduceError;
use flashpath::report::figure::{Claim, Figure, Panel};

/// A choice: its name in the figure, and the volume with it.
type Choice = (&'static str, Stack<'static>);

/// The runs of all choices.
struct Compared {
    simulated: Vec<Measured>,
    real: Vec<Option<Measured>>,
}

fn compare(
    place: &RealPlace<'_>,
    name: &str,
    simulated: &[Choice],
    real: &[Choice],
) -> Result<Compared, ReproduceError> {
    let expression = Load::Varmail.expression(place.lab, MOST_THREADS);
    let wanted: Vec<_> = simulated.iter().map(|(_, stack)| Wanted::new(place.lab, stack, expression.clone())).collect();
    let simulated = simulate(place.lab, &wanted)?;
    place.lab.progress(&format!("running {name} in real time"));
    let systems: Vec<_> = real.iter().map(|(_, stack)| System::Ours(*stack)).collect();
    Ok(Compared { simulated, real: place.measure(&systems, &expression)? })
}

impl Compared {
    /// Throughput, simulated and real, and the waits for room in the region.
    fn panels(&self, simulated: &[Choice], real: &[Choice]) -> Vec<Panel> {
        let throughput = |title: &str, choices: &[Choice], runs: &mut dyn Iterator<Item = Option<&Measured>>| {
            let groups = choices.iter().zip(runs);
            let groups = groups.map(|((name, _), run)| (name.to_string(), vec![run.map(|run| run.mb_s)]));
            panel(title, &["O-JFS, our scheme"], groups.collect())
        };
        let waits = simulated.iter().zip(&self.simulated).map(|((name, _), run)| {
            let counts = ["commits that waited for room in the log", "checkpoints", "commits", "flushes"];
            (name.to_string(), counts.map(|count| Some(run.count(count) as f64)).to_vec())
        });
        let waits =
            panel("counts, simulated", &["waits for room", "checkpoints", "commits", "flushes"], waits.collect());
        vec![
            throughput("simulated threads", simulated, &mut self.simulated.iter().map(Some)),
            throughput("real threads", real, &mut self.real.iter().map(Option::as_ref)),
            Panel { unit: Some("count".to_string()), ..waits },
        ]
    }

    /// Throughput of one choice over another, simulated and real.
    fn claims(&self, says: &str, place: &str, (one, other): (usize, usize), because: &str) -> Vec<Claim> {
        let real = |at: usize| self.real.get(at).and_then(Option::as_ref);
        let limits = |name: &str, run: Option<&Measured>| run.map(|run| format!("{name}: {}", run.limits()));
        let claim = |how: &str, one: Option<&Measured>, other: Option<&Measured>| {
            let counts = [limits("the first", one), limits("the second", other)].into_iter().flatten();
            let because = std::iter::once(because.to_string()).filter(|text| !text.is_empty()).chain(counts);
            let because = because.collect::<Vec<_>>().join(". ");
            at_least(&format!("{says}, {how}"), place, 1.0, ratio(one, other), because)
        };
        vec![
            claim("simulated threads", self.simulated.get(one), self.simulated.get(other)),
            claim("real threads", real(one), real(other)),
        ]
    }
}

fn figure(name: &str, title: &str, about: &str, panels: Vec<Panel>, claims: Vec<Claim>) -> Figure {
    Figure {
        name: name.to_string(),
        title: title.to_string(),
        unit: "MB/s".to_string(),
        about: format!("Varmail with 16 threads. {about}"),
        panels,
        claims,
        made_by: None,
    }
}

const PARTITIONS: [Choice; 5] = [
    ("1", Stack::partitioned("partitions=1")),
    ("2", Stack::partitioned("partitions=2")),
    ("4", Stack::partitioned("partitions=4")),
    ("8", Stack::partitioned("partitions=8")),
    ("16", Stack::partitioned("partitions=16")),
];

/// 1 to 16 partitions.
pub fn partitions(place: &RealPlace<'_>) -> Result<Figure, ReproduceError> {
    let compared = compare(place, "nvm-partitions", &PARTITIONS, &PARTITIONS)?;
    let because = "a partition is smaller when there are more of them, and a handle reserves slots as if all of its blocks fell \
                   into one";
    let claims =
        compared.claims("16 partitions over one", "III, derived: partitions disperse contention", (4, 0), because);
    let about = "The region has the same size with each number of partitions, each of which has a checkpoint thread.";
    let panels = compared.panels(&PARTITIONS, &PARTITIONS);
    Ok(figure("nvm-partitions", "The number of partitions", about, panels, claims).over("partitions"))
}

const CHECKPOINTERS: [Choice; 4] = [
    ("1 thread", Stack::partitioned("checkpointers=1")),
    ("8 threads", Stack::partitioned("checkpointers=8")),
    ("1 thread, each commit", Stack::of(Journal::OJfs).with("checkpointers=1")),
    ("8 threads, each commit", Stack::of(Journal::OJfs).with("checkpointers=8")),
];

/// One and eight checkpoint threads, with either scheme.
pub fn checkpointers(place: &RealPlace<'_>) -> Result<Figure, ReproduceError> {
    let compared = compare(place, "nvm-checkpointers", &CHECKPOINTERS, &CHECKPOINTERS)?;
    let place = "III.2, derived: several threads use the drive's channels";
    let mut claims = compared.claims("8 checkpoint threads over one", place, (1, 0), "");
    claims.extend(compared.claims("8 over one, a checkpoint of each commit", place, (3, 2), ""));
    let about = "8 partitions. A checkpoint of many commits when a partition is half full, or of each commit in order \
                 (scheme=paper).";
    let panels = compared.panels(&CHECKPOINTERS, &CHECKPOINTERS);
    Ok(figure("nvm-checkpointers", "Checkpoint threads", about, panels, claims))
}

const HASHES: [Choice; 3] = [
    ("modulo", Stack::partitioned("hash=modulo")),
    ("multiplicative", Stack::partitioned("hash=multiplicative")),
    ("extents", Stack::partitioned("hash=extents")),
];

/// The paper's modulo, and multiplicative hashes of blocks and of extents.
pub fn hashes(place: &RealPlace<'_>) -> Result<Figure, ReproduceError> {
    let compared = compare(place, "nvm-hash", &HASHES, &HASHES)?;
    let mut claims = compared.claims("a multiplicative hash over modulo", "not of the paper", (1, 0), "");
    claims.extend(compared.claims("a hash of extents over modulo", "not of the paper", (2, 0), ""));
    let about =
        "The partition of a block is its number modulo 8, or a multiplicative hash of it, or of its 64 neighbours.";
    let panels = compared.panels(&HASHES, &HASHES);
    Ok(figure("nvm-hash", "The hash of a block", about, panels, claims))
}

const fn stored(memory: &'static str) -> Stack<'static> {
    Stack { memory, ..Stack::of(Journal::Ours) }
}

/// The paper's clflush is the last.
const STORES: [Choice; 4] = [
    ("non-temporal", stored("persist=nt")),
    ("clwb", stored("persist=clwb")),
    ("clflushopt", stored("persist=clflushopt")),
    ("clflush", stored("persist=clflush")),
];
const MEMORIES: [Choice; 3] =
    [("dram", stored("model=dram")), ("optane", stored("model=optane")), ("cxl", stored("model=cxl"))];

/// The instructions of stores, with real threads; kinds of memory, simulated.
pub fn stores(place: &RealPlace<'_>) -> Result<Figure, ReproduceError> {
    let compared = compare(place, "nvm-stores", &MEMORIES, &STORES)?;
    let (first, last) = (compared.real[0].as_ref(), compared.real[3].as_ref());
    let claims = vec![at_least(
        "non-temporal stores over clflush, real threads",
        "not of the paper, which takes clflush",
        1.0,
        ratio(first, last),
        first.map(Measured::limits).unwrap_or_default(),
    )];
    let about = "Real threads differ in the instructions that bring a store to memory. The simulation has no instructions: it \
                 differs in the memory; slower memory lets more fsyncs share a commit.";
    Ok(figure("nvm-stores", "Stores and memories", about, compared.panels(&MEMORIES, &STORES), claims))
}
