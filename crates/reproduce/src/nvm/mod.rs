//! Park, Lee and Han's concurrent journaling in partitioned NVM, in simulated threads on 16 cores and in real threads on
//! this machine, and an ablation that the paper lacks.
//!
//! | file | what it is |
//! |---|---|
//! | `journals` | the paper's three journals, all in `ext` |
//! | `simulated` | the figures of simulated threads: throughput, where they wait, what the flash takes |
//! | `real` | the figures of real threads, beside the kernel's ext4 and tmpfs |
//! | `kernel` | ext4 of the running kernel, with its journal inside or in RAM |
//! | `ablation` | one change of the journal at a time, simulated and real |

mod ablation;
mod journals;
mod kernel;
mod real;
mod simulated;

use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Reproduction};
use flashpath::units::format_size;

/// The figures.
pub const FIGURES: &[&str] = &[
    "nvm-fig4",
    "nvm-fig5",
    "nvm-waits",
    "nvm-flash",
    "nvm-ablation",
    "nvm-fig4-real",
    "nvm-fig5-real",
    "nvm-ablation-real",
];

/// The numbers of threads.
const THREADS: [u32; 5] = [1, 2, 4, 8, 16];
/// The most threads, which the paper's factors are for.
const MOST: u32 = 16;

/// A benchmark of the paper.
struct Load {
    name: &'static str,
    /// Its expression, without the number of threads.
    expression: fn(&Lab) -> String,
    /// O-JFS over N-JFS and over JFS with 16 threads.
    factors: [f64; 2],
    place: &'static str,
}

/// Loops of Varmail at full size: the paper gives none.
const LOOPS: u64 = 200_000;

const VARMAIL: Load = Load {
    name: "Varmail",
    expression: |lab| format!("varmail:files={},loops={}", lab.scaled_count(100_000), lab.scaled_count(LOOPS)),
    factors: [5.09, 5.73],
    place: "IV, Figure 4: 1,879 over 369 and over 328 MB/s with 16 threads",
};

const TOKUBENCH: Load = Load {
    name: "Tokubench",
    expression: |lab| format!("tokubench:files={},sync", lab.scaled_count(3_000_000)),
    factors: [4.9, 4.9],
    place: "IV, Figure 5: 392 over 80 and over 80 MB/s with 16 threads",
};

/// The paper's journal and drive have 1 GB and 2 TiB; ours shrink with the number of files.
fn region_bytes(lab: &Lab) -> u64 {
    lab.scaled(1 << 30, 1 << 20).max(64 << 20)
}

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let mut conditions = conditions(lab);
    let is_real = |name: &str| name.ends_with("-real");
    let bench = figures.iter().any(|name| is_real(name)).then(|| real::Bench::new(lab)).transpose()?;
    conditions.extend(bench.iter().flat_map(real::Bench::conditions));
    let made = figures.iter().map(|figure| match (*figure, &bench) {
        ("nvm-fig4", _) => simulated::throughput(lab, figure, &VARMAIL),
        ("nvm-fig5", _) => simulated::throughput(lab, figure, &TOKUBENCH),
        ("nvm-waits", _) => simulated::waits(lab, figure),
        ("nvm-flash", _) => simulated::flash(lab, figure),
        ("nvm-ablation", _) => ablation::simulated(lab, figure),
        ("nvm-fig4-real", Some(bench)) => bench.throughput(figure, &VARMAIL),
        ("nvm-fig5-real", Some(bench)) => bench.throughput(figure, &TOKUBENCH),
        ("nvm-ablation-real", Some(bench)) => ablation::real(bench, figure),
        (name, _) => unreachable!("{name} is not in FIGURES"),
    });
    Ok(Reproduction {
        paper: "nvm".to_string(),
        title: "Park, Lee and Han: concurrent journaling in partitioned NVM".to_string(),
        command: "flashpath reproduce nvm".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        figures: made.collect::<Result<_, _>>()?,
        conditions,
    })
}

/// The claims about the last of `values`, which are JFS, N-JFS and O-JFS.
fn claims(load: &Load, how: &str, values: [Option<f64>; 3], because: &str) -> Vec<Claim> {
    let [inside, in_ram, in_nvm] = values;
    let over = |other: Option<f64>| Some(in_nvm? / other?);
    let claim = |name: &str, factor: f64, ours: Option<f64>| Claim {
        says: format!("{}, {how}, {MOST} threads: O-JFS over {name}", load.name),
        place: load.place.to_string(),
        low: Some(factor),
        high: None,
        ours,
        because: because.to_string(),
    };
    vec![claim("N-JFS", load.factors[0], over(in_ram)), claim("JFS", load.factors[1], over(inside))]
}

fn conditions(lab: &Lab) -> Vec<(String, String)> {
    let condition = |name: &str, value: String| (name.to_string(), value);
    vec![
        condition(
            "journals",
            "all in `ext`: JFS has jbd2's log in the volume, N-JFS the same log on a device in RAM, which takes no time, and \
             O-JFS `journal=nvm` with 8 partitions. Files' bytes go through the journal (`data=journal`) unless a panel says \
             something else"
                .to_string(),
        ),
        condition(
            "memory",
            format!("a region of {} for O-JFS, and a log of that size for the others", format_size(region_bytes(lab))),
        ),
        condition(
            "simulated",
            format!(
                "threads with a core each, and the CPU times of the program's table (docs/threads.md), which `flashpath calibrate` \
                 has measured; checkpoint threads have cores of their own. The drive is `{}`; memory is that of `nvm:model=dram`",
                simulated::DRIVE
            ),
        ),
        condition(
            "workloads",
            format!("`{}`; `{}`", (VARMAIL.expression)(lab), (TOKUBENCH.expression)(lab)),
        ),
        condition(
            "differs from the paper",
            "the paper's file system is JFS, whose locks are coarser than those of `ext`; its runs have no length, its drive is \
             an Intel P4510"
                .to_string(),
        ),
    ]
}
