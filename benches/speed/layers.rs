//! The other layers beside the page-level one: their speed without and with pathological merging, their write
//! amplification with it, and the growth of the cost of a merge or a collection with the drive.

use crate::figures::LayerRow;
use crate::measure::{Measured, generated, measured};
use crate::mixed::mixed;
use crate::taking::{rounds, spread};
use flashpath::workload::Workload;

/// A layer, and the workload that suits it.
struct Layer {
    name: &'static str,
    work: &'static str,
    workload: fn(u64) -> Box<dyn Workload>,
}

const HOT: &str = "hotcold:r=0.02,f=0.98,writes=1x";

const LAYERS: [Layer; 3] = [
    Layer {
        // The entries of the hot 2 % of the pages, 19 K, are in its table of 64 K.
        name: "dftl",
        work: HOT,
        workload: |bytes| generated(HOT, bytes),
    },
    Layer {
        // A block is overwritten whole, by a switch merge, before its random pages are merged.
        name: "fast",
        work: "sequential, 5 % zipf:theta=1.2 among it",
        workload: |bytes| mixed(0.05, bytes),
    },
    Layer {
        // The hot pages' entries are in its RAM, and each superblock of 32 blocks has 3 spare ones for its share of them.
        name: "superblock",
        work: HOT,
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

fn path_of_size(layer: &str, gib: u64) -> String {
    let cached = match layer {
        "dftl" => format!(":table={}", 4096 * gib),
        "superblock" => format!(":cache={}", 512 * gib),
        _ => String::new(),
    };
    format!("{layer}{cached}/nand:size={gib}G,timing=off")
}

/// Each layer on its own workload, and all on uniform writes.
pub fn rows(most_rounds: usize) -> Vec<LayerRow> {
    let (found, rounds) = rounds(most_rounds, || {
        eprintln!("layers");
        round()
    });
    (0..found[0].len())
        .map(|at| {
            let over = |of: &dyn Fn(&Run) -> f64| spread(found.iter().map(|runs| of(&runs[at])).collect());
            let Run { path, layer, workload, of, .. } = &found[0][at];
            LayerRow {
                path: path.clone(),
                layer: layer.to_string(),
                workload: workload.to_string(),
                writes_per_second: over(&|run| run.of.writes_per_second),
                of_page: over(&|run| run.of.writes_per_second / run.page.writes_per_second),
                ns_per_program: over(&|run| run.of.ns_per_program),
                write_amplification: of.amplification,
                rounds,
            }
        })
        .collect()
}

/// A layer on a workload, and `page` on the same.
struct Run {
    path: String,
    layer: &'static str,
    workload: &'static str,
    of: Measured,
    page: Measured,
}

/// Measures everything once.
fn round() -> Vec<Run> {
    let mut runs = Vec::new();
    for Layer { name, work, workload } in &LAYERS {
        let [of, page] = [name, "page"].map(|name| measured(&format!("{name}/{DRIVE}"), workload, None));
        runs.push(Run { path: format!("{name}/{DRIVE}"), layer: name, workload: work, of, page });
    }
    for gib in SIZES {
        let uniform = |layer: &str| {
            measured(&path_of_size(layer, gib), &|bytes| generated(UNIFORM, bytes), Some(BEFORE_COUNTING))
        };
        let page = uniform("page");
        for layer in GROWING {
            let of = if layer == "page" { page } else { uniform(layer) };
            runs.push(Run { path: path_of_size(layer, gib), layer, workload: "uniform", of, page });
        }
    }
    runs
}
