//! The speed of simulation, each figure beside its bound. It writes the figures to `docs/speed.json`, and makes the parts
//! of `docs/speed.md` and the README that state them.
//!
//! The bound is a bare counting loop in the same process; it runs alternately with the drives, and the ratio is taken pair
//! by pair, since machines are noisy. The other layers follow, each beside `page` on the same workload in the same round.
//!
//! | file | measures |
//! |---|---|
//! | `drives.rs` | the page-level layer on drives of several sizes and numbers of planes, beside the loop |
//! | `bare_loop.rs` | the bound of a simulated host write |
//! | `bare_queues.rs` | the bound of the timing model |
//! | `layers.rs` | `dftl`, `fast` and `superblock`, on workloads of their own, on uniform writes, and on drives of two sizes |
//! | `sources.rs` | a generator and a trace alone |
//! | `mixed.rs` | the workload of `fast` |
//! | `measure.rs` | a run of a path, with CPU time and memory |
//! | `taking.rs` | rounds, the load of the machine meanwhile, and the origin of figures |
//! | `figures.rs` | the form of `docs/speed.json` |
//! | `pages.rs` | the parts of pages that are made from it |
//!
//! `cargo bench --bench speed -- drives` measures one part: `drives`, `layers` or `sources`; `-- pages` makes the pages
//! alone. `ROUNDS=9 cargo bench` repeats more often; the default is 5.

mod bare_loop;
mod bare_queues;
mod drives;
mod figures;
mod layers;
mod measure;
mod mixed;
mod pages;
mod sources;
mod taking;

use figures::{Figures, Part};
use std::path::Path;

const PARTS: [&str; 4] = ["drives", "layers", "sources", "pages"];

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5).max(1);
    // Cargo adds flags of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) = wanted.iter().find(|part| !PARTS.contains(&part.as_str())) {
        eprintln!("{unknown} is no part: {}", PARTS.join(", "));
        std::process::exit(1);
    }
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|name| name == part);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("docs/speed.json");
    let mut figures = match std::fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text).expect("the figures as this program writes them"),
        Err(_) => Figures::default(),
    };
    // First of all, before freed memory can be reused: its rows state the memory of a page.
    if is_wanted("drives") {
        figures.drives = Some(Part { taken: taking::taken(), rows: drives::rows(rounds) });
    }
    if is_wanted("layers") {
        figures.layers = Some(Part { taken: taking::taken(), rows: layers::rows(rounds) });
    }
    if is_wanted("sources") {
        figures.sources = Some(Part { taken: taking::taken(), rows: sources::rows(rounds) });
    }
    let text = serde_json::to_string_pretty(&figures).expect("figures are numbers and words");
    std::fs::write(&file, text + "\n").expect("docs/speed.json is written");
    for (page, text) in pages::pages(root) {
        std::fs::write(&page, text).expect("the page is written");
        eprintln!("made {}", page.display());
    }
}
