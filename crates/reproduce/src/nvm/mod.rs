//! Park, Lee and Han's "Design and Implementation of NVM-based Concurrent Journaling Scheme" (JKCA 21(7), 2021): figures 4
//! and 5, and ablations that the paper does not have.
//!
//! The paper compares three journals of one file system. Here all three, and ours, are journals of `ext`, on the same drive, with
//! data=journal and the same memory. Each figure of the paper is made twice: with threads of the system in real time, and
//! with simulated threads.
//!
//! | file | content |
//! |---|---|
//! | `journals` | the journals, as paths |
//! | `loads` | Varmail and Tokubench |
//! | `measured` | what is kept of a run, and medians |
//! | `scratch` | directories for the files of real runs |
//! | `simulated` | runs in simulated time |
//! | `real` | runs in real time: in process, and in tmpfs |
//! | `kernel` | ext4 of the running kernel on loop devices |
//! | `throughput` | figures 4 and 5 |
//! | `ablation` | partitions, checkpoint threads, hashes, stores |
//! | `limits` | what limits throughput: causes taken away, costs left out, time by call, counters |
//! | `regime` | a map of the factor over N-JFS |
//! | `flash` | what each journal writes to flash |

mod ablation;
mod flash;
mod journals;
mod kernel;
mod limits;
mod loads;
mod measured;
mod real;
mod regime;
mod scratch;
mod simulated;
mod throughput;

use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Panel, Reproduction};
use flashpath::units::format_size;
use journals::Sizes;
use loads::Load;
use measured::Measured;
use real::RealPlace;

/// The figures.
pub const FIGURES: &[&str] = &[
    "nvm-fig4-real",
    "nvm-fig4-simulated",
    "nvm-fig5-real",
    "nvm-fig5-simulated",
    "nvm-partitions",
    "nvm-checkpointers",
    "nvm-hash",
    "nvm-stores",
    "nvm-limits",
    "nvm-regime",
    "nvm-flash",
];

/// Numbers of threads.
const THREADS: [u64; 5] = [1, 2, 4, 8, 16];
/// Those of the paper's numbers.
const MOST_THREADS: u64 = 16;

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let load_before = load_average();
    let place = RealPlace::new(lab)?;
    let made = figures.iter().map(|figure| match *figure {
        "nvm-fig4-real" => throughput::real(&place, Load::Varmail),
        "nvm-fig4-simulated" => throughput::simulated(lab, Load::Varmail),
        "nvm-fig5-real" => throughput::real(&place, Load::Tokubench),
        "nvm-fig5-simulated" => throughput::simulated(lab, Load::Tokubench),
        "nvm-partitions" => ablation::partitions(&place),
        "nvm-checkpointers" => ablation::checkpointers(&place),
        "nvm-hash" => ablation::hashes(&place),
        "nvm-stores" => ablation::stores(&place),
        "nvm-limits" => limits::figure(&place),
        "nvm-regime" => regime::figure(lab),
        "nvm-flash" => flash::figure(lab),
        name => unreachable!("{name} is not in FIGURES"),
    });
    let figures = made.collect::<Result<_, ReproduceError>>()?;
    let load = format!("{load_before} before, {} after", load_average());
    let mut conditions = conditions(lab, &load);
    conditions.extend(place.into_notes());
    Ok(Reproduction {
        paper: "nvm".to_string(),
        title: "Park, Lee and Han: NVM-based concurrent journaling".to_string(),
        command: "flashpath reproduce nvm".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions,
        figures,
    })
}

/// The load average of the last minute; empty where the system does not say it.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_string()
}

fn conditions(lab: &Lab, load: &str) -> Vec<(String, String)> {
    let sizes = Sizes::of(lab);
    let condition = |name: &str, value: String| (name.to_string(), value);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        condition(
            "journals",
            format!(
                "JFS: in the volume; N-JFS: the same journal on a second device of blocks in memory; O-JFS: `ext`'s journal in \
                 partitioned memory with `scheme=paper`, and as our scheme with `scheme=helping`. All are journals of `ext` with data=journal where nothing else is said, with {} of journal each (JFS {} at most; runs in real time 1G), \
                 {} of dirty bytes, {} of page cache and {} of metadata cache",
                format_size(sizes.journal_bytes),
                format_size(journals::MOST_INLINE_BYTES),
                format_size(sizes.dirty_bytes),
                format_size(sizes.page_cache_bytes),
                format_size(sizes.cache_bytes)
            ),
        ),
        condition(
            "workloads",
            format!(
                "`{}` and `{}`, by the number of threads. The paper has 100,000 files of 16 KB and 3,000,000 of 4 KB: Varmail has \
                 its number times the scale, Tokubench a quarter of that",
                Load::Varmail.expression(lab, MOST_THREADS),
                Load::Tokubench.expression(lab, MOST_THREADS)
            ),
        ),
        condition("MB/s", "10^6 bytes read and written by the workload in a second of its counted stage".to_string()),
        condition(
            "simulated",
            "a simulation: each thread has a core and a clock of its own, up to 16, or 64 in nvm-regime, and so has each \
             checkpoint thread. CPU time is the program's table, which `calibrate` measured: stores to slots, requests to devices, \
             copies to devices in memory, checksums, and additions to lines that all handles of a journal share, the same \
             whatever the number of threads: contention for a line is not modelled. The drive is `conv` with its default \
             times, the memory is `nvm` with model=dram. A checkpoint of each journal writes 64 blocks at once in each of its \
             threads: one of JFS and N-JFS, one for each partition of O-JFS. nvm-limits varies this"
                .to_string(),
        ),
        condition(
            "real",
            format!(
                "threads of the system in this process on {processors} processors, medians of {} runs; load average {load}",
                real::RUNS
            ),
        ),
    ]
}

/// A panel with one series for each name.
fn panel(title: &str, series: &[&str], groups: Vec<(String, Vec<Option<f64>>)>) -> Panel {
    Panel::new(title, series.iter().map(|name| (*name).to_string()).collect(), groups)
}

/// A claim with a lower bound.
fn at_least(says: &str, place: &str, low: f64, ours: Option<f64>, because: String) -> Claim {
    Claim {
        says: says.to_string(),
        place: place.to_string(),
        low: Some(low),
        high: None,
        ours,
        because,
        shown_by: None,
    }
}

/// The quotient of two throughputs.
fn ratio(one: Option<&Measured>, other: Option<&Measured>) -> Option<f64> {
    Some(one?.mb_s / other?.mb_s).filter(|ratio| ratio.is_finite())
}
