//! Figures 4 and 5: the throughput of the journals by the number of threads.

use super::journals::{Journal, Logs, Stack};
use super::loads::Load;
use super::measured::Measured;
use super::real::{RealPlace, System};
use super::simulated::{Wanted, simulate};
use super::{MOST_THREADS, THREADS, at_least, panel, ratio};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Figure, Panel};

/// The paper's numbers of a workload at 16 threads.
struct Numbers {
    figure: &'static str,
    /// MB/s of O-JFS.
    throughput: f64,
    over_jfs: f64,
    over_njfs: f64,
    /// N-JFS over JFS.
    memory_alone: f64,
}

impl Load {
    fn numbers(self) -> Numbers {
        match self {
            Load::Varmail => Numbers {
                figure: "nvm-fig4",
                throughput: 1879.0,
                over_jfs: 5.72,
                over_njfs: 5.09,
                memory_alone: 369.0 / 328.0,
            },
            Load::Tokubench => {
                Numbers { figure: "nvm-fig5", throughput: 392.0, over_jfs: 4.9, over_njfs: 4.9, memory_alone: 1.0 }
            }
        }
    }

    fn title(self) -> String {
        // The paper captions both as figure 4; its text calls the second one figure 5.
        let number = if self == Load::Varmail { 4 } else { 5 };
        format!("NVM journaling figure {number}: {} performance results", self.name())
    }
}

/// Our bound for Varmail in process, in MB/s, or this share of tmpfs if that is lower.
const GOAL_MB_S: f64 = 1400.0;
const GOAL_OF_TMPFS: f64 = 0.4;

/// A row for each number of threads, and a run in it for each system.
type Rows = Vec<(u64, Vec<Option<Measured>>)>;

/// The figure with threads of the system.
pub fn real(place: &RealPlace<'_>, load: Load) -> Result<Figure, ReproduceError> {
    let rows = THREADS.into_iter().map(|threads| {
        place.lab.progress(&format!("running {} with {threads} threads in real time", load.name()));
        Ok((threads, place.measure(&System::ALL, &load.expression(place.lab, threads))?))
    });
    let rows: Rows = rows.collect::<Result<_, ReproduceError>>()?;
    let mut claims = claims(load, &rows, "real threads");
    if load == Load::Varmail {
        claims.extend(goal(&rows));
    }
    Ok(Figure {
        name: format!("{}-real", load.numbers().figure),
        title: format!("{}, real threads", load.title()),
        unit: "MB/s".to_string(),
        about: "The journals in this process, without a kernel in between; ext4 and tmpfs through system calls."
            .to_string(),
        panels: panels(&System::NAMES, &rows),
        claims,
        made_by: None,
    }
    .over("threads"))
}

/// The figure with simulated threads.
pub fn simulated(lab: &Lab, load: Load) -> Result<Figure, ReproduceError> {
    let rows = |logs: Logs| -> Result<Rows, ReproduceError> {
        let points = THREADS.into_iter().flat_map(|threads| Journal::ALL.map(|journal| (threads, journal)));
        let stack = |journal| Stack::of(journal).of_logs(logs);
        let wanted = |(threads, journal)| Wanted::new(lab, &stack(journal), load.expression(lab, threads));
        let mut made = simulate(lab, &points.map(wanted).collect::<Vec<_>>())?.into_iter();
        let row = |threads| (threads, made.by_ref().take(Journal::ALL.len()).map(Some).collect());
        Ok(THREADS.into_iter().map(row).collect())
    };
    let (mut all_panels, mut all_claims) = (Vec::new(), Vec::new());
    for logs in Logs::ALL {
        let rows = rows(logs)?;
        let named = |panel: Panel| Panel { title: format!("{}, {}", panel.title, logs.name()), ..panel };
        all_panels.extend(panels(&Journal::NAMES, &rows).into_iter().map(named));
        all_claims.extend(claims(load, &rows, &format!("simulated threads, {}", logs.name())));
    }
    Ok(Figure {
        name: format!("{}-simulated", load.numbers().figure),
        title: format!("{}, simulated threads", load.title()),
        unit: "MB/s in simulated time".to_string(),
        about: "A simulation of a core for each thread. O-JFS is the paper's scheme: a checkpoint of each commit, in order; ours \
                is beside it. The paper's JFS logs metadata only, and the rows of logs of metadata are closer to it."
            .to_string(),
        panels: all_panels,
        claims: all_claims,
        made_by: None,
    }
    .over("threads"))
}

fn panels(series: &[&str], rows: &Rows) -> Vec<Panel> {
    let of = |value: &dyn Fn(&Measured) -> Option<f64>| {
        let group = |(threads, runs): &(u64, Vec<Option<Measured>>)| {
            (threads.to_string(), runs.iter().map(|run| value(run.as_ref()?)).collect())
        };
        rows.iter().map(group).collect::<Vec<_>>()
    };
    let throughput = panel("throughput", series, of(&|run| Some(run.mb_s)));
    let is_repeated = |run: &Measured| run.range_mb_s.0 < run.range_mb_s.1;
    let is_repeated = rows.iter().flat_map(|(_, runs)| runs.iter().flatten()).any(is_repeated);
    let ranges = is_repeated.then(|| {
        let least = panel("least throughput of the runs", series, of(&|run| Some(run.range_mb_s.0)));
        let most = panel("most throughput of the runs", series, of(&|run| Some(run.range_mb_s.1)));
        [least, most]
    });
    let fsync = of(&|run| Some(run.fsync_ns()? / 1e3));
    let has_fsync = fsync.iter().any(|(_, values)| values.iter().any(Option::is_some));
    let fsync = Panel { unit: Some("us".to_string()), ..panel("mean time of an fsync", series, fsync) };
    std::iter::once(throughput).chain(ranges.into_iter().flatten()).chain(has_fsync.then_some(fsync)).collect()
}

fn claims(load: Load, rows: &Rows, how: &str) -> Vec<Claim> {
    let Numbers { throughput, over_jfs, over_njfs, memory_alone, .. } = load.numbers();
    let Some((_, runs)) = rows.iter().find(|(threads, _)| *threads == MOST_THREADS) else { return Vec::new() };
    let of = |journal: usize| runs.get(journal).and_then(Option::as_ref);
    let [jfs, njfs, ojfs, ours] = [of(0), of(1), of(2), of(3)];
    let limits = |names: &[(&str, Option<&Measured>)]| {
        let one = |(name, run): &(&str, Option<&Measured>)| Some(format!("{name}: {}", (*run)?.limits()));
        names.iter().filter_map(one).collect::<Vec<_>>().join(". ")
    };
    let says = |what: &str| format!("{what} with 16 {how}");
    let both = limits(&[("O-JFS", ojfs), ("N-JFS", njfs)]);
    vec![
        at_least(&says("O-JFS over N-JFS"), "IV", over_njfs, ratio(ojfs, njfs), both.clone()),
        at_least(&says("O-JFS, our scheme, over N-JFS"), "IV", over_njfs, ratio(ours, njfs), limits(&[("ours", ours)])),
        at_least(&says("O-JFS over JFS"), "IV", over_jfs, ratio(ojfs, jfs), limits(&[("O-JFS", ojfs), ("JFS", jfs)])),
        Claim {
            says: says("N-JFS over JFS"),
            place: "IV, derived: the quotient of the two throughputs".to_string(),
            low: Some(memory_alone),
            high: Some(memory_alone),
            ours: ratio(njfs, jfs),
            because: limits(&[("JFS", jfs), ("N-JFS", njfs)]),
            shown_by: None,
        },
        at_least(&says("MB/s of O-JFS"), "IV: on 44 cores", throughput, ojfs.map(|run| run.mb_s), both),
    ]
}

/// O-JFS beside memory without a journal, in the same run. It is our own bound.
fn goal(rows: &Rows) -> Option<Claim> {
    let (_, runs) = rows.iter().find(|(threads, _)| *threads == MOST_THREADS)?;
    let ours = runs.get(3)?.as_ref()?;
    let tmpfs = runs.get(6)?.as_ref()?;
    let bound = GOAL_MB_S.min(GOAL_OF_TMPFS * tmpfs.mb_s);
    let says = "MB/s of O-JFS, our scheme, with 16 real threads, over the lower of 1,400 MB/s and 40 % of tmpfs";
    Some(at_least(says, "not of the paper: our bound", 1.0, Some(ours.mb_s / bound), ours.limits()))
}
