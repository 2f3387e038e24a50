//! The other layers beside the page-level one: their speed without and with pathological merging, their write
//! amplification with it, and the growth of the cost of a merge or a collection with the drive.

use crate::measure::{Measured, generated, measured, median};
use crate::mixed::mixed;
use flashpath::workload::Workload;

/// A layer, and the workload that suits it.
struct Layer {
    name: &'static str,
    work: &'static str,
    why: &'static str,
    workload: fn(u64) -> Box<dyn Workload>,
}

const HOT: &str = "hotcold:r=0.02,f=0.98,writes=1x";

const LAYERS: [Layer; 3] = [
    Layer {
        name: "dftl",
        work: HOT,
        why: "the entries of the hot 2 % of the pages, 19 K, are in its table of 64 K",
        workload: |bytes| generated(HOT, bytes),
    },
    Layer {
        name: "fast",
        work: "sequential, 5 % zipf:theta=1.2 among it",
        why: "a block is overwritten whole, by a switch merge, before its random pages are merged",
        workload: |bytes| mixed(0.05, bytes),
    },
    Layer {
        name: "superblock",
        work: HOT,
        why: "the hot pages' entries are in its RAM, and each superblock of 32 blocks has 3 spare ones for its share of them",
        workload: |bytes| generated(HOT, bytes),
    },
];

/// The drive of the layers' own workloads.
const DRIVE: &str = "nand:size=4G,timing=off";

/// The sizes of the smaller and the larger drive. A layer's RAM grows with them, so that its miss rate is the same.
const SIZES: [u64; 2] = [1, 16];
const UNIFORM: &str = "uniform:writes=0.7x";
const BEFORE_COUNTING: f64 = 0.5;
const GROWING: [&str; 4] = ["page", "dftl", "fast", "superblock"];

/// The results of one round.
pub struct Round {
    /// The layer and `page` on the layer's own workload.
    own: Vec<[Measured; 2]>,
    /// Uniform writes on the smaller drive and the larger one.
    uniform: Vec<[Measured; 2]>,
}

fn path_of_size(layer: &str, gib: u64) -> String {
    let cached = match layer {
        "dftl" => format!(":table={}", 4096 * gib),
        "superblock" => format!(":cache={}", 512 * gib),
        _ => String::new(),
    };
    format!("{layer}{cached}/nand:size={gib}G,timing=off")
}

/// Measures everything once.
pub fn round() -> Round {
    let own = LAYERS
        .iter()
        .map(|layer| [layer.name, "page"].map(|name| measured(&format!("{name}/{DRIVE}"), &layer.workload, None)));
    let uniform = GROWING.iter().map(|layer| {
        SIZES.map(|gib| measured(&path_of_size(layer, gib), &|bytes| generated(UNIFORM, bytes), Some(BEFORE_COUNTING)))
    });
    Round { own: own.collect(), uniform: uniform.collect() }
}

/// The medians of the rounds, as three tables.
pub fn print(rounds: &[Round]) {
    let middle = |of: &dyn Fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    println!("\nlayers on work without pathological merging, 4 GiB filled, host writes per CPU-second\n");
    println!(
        "{:<12} {:<42} {:>10} {:>17} {:>10} {:>10} {:>6}",
        "", "work, 1x", "ours", "bound", "page", "of page's", "WA"
    );
    for (at, layer) in LAYERS.iter().enumerate() {
        let rate = |which: usize| middle(&|round| round.own[at][which].writes_per_second) / 1e6;
        println!(
            "{:<12} {:<42} {:>6.2} M/s {:>17} {:>6.2} M/s {:>10.2} {:>6.2}",
            layer.name,
            layer.work,
            rate(0),
            "at least 1 M/s",
            rate(1),
            middle(&|round| round.own[at][0].writes_per_second / round.own[at][1].writes_per_second),
            middle(&|round| round.own[at][0].amplification),
        );
    }
    for layer in &LAYERS {
        println!("  {}: {}", layer.name, layer.why);
    }
    println!("\nuniform random writes, where the same layers lose: 0.2x after 0.5x, on {} GiB\n", SIZES[1]);
    println!("{:<12} {:>12} {:>10} {:>6}", "", "ours", "of page's", "WA");
    for (at, layer) in GROWING.iter().enumerate() {
        println!(
            "{layer:<12} {:>8.2} M/s {:>10.2} {:>6.2}",
            middle(&|round| round.uniform[at][1].writes_per_second) / 1e6,
            middle(&|round| round.uniform[at][1].writes_per_second / round.uniform[0][1].writes_per_second),
            middle(&|round| round.uniform[at][1].amplification),
        );
    }
    println!("\nthe same work on a small and a large drive: nanoseconds of CPU for each page programmed\n");
    println!("{:<12} {:>9} {:>9} {:>7}   bound", "", "1 GiB", "16 GiB", "ratio");
    for (at, layer) in GROWING.iter().enumerate() {
        let cost = |which: usize| middle(&|round| round.uniform[at][which].ns_per_program);
        println!(
            "{layer:<12} {:>6.1} ns {:>6.1} ns {:>7.2}   near 1 but for cache misses; 16 if it grew with the drive",
            cost(0),
            cost(1),
            middle(&|round| round.uniform[at][1].ns_per_program / round.uniform[at][0].ns_per_program),
        );
    }
}
