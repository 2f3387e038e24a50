//! The speed of simulation, each figure beside its bound and its peer.
//!
//! The workload: 8 GiB of 4 KiB pages, 256 per block, 90 % exported, filled in order, then uniform random writes of six
//! times the drive. The bound is a bare counting loop in the same process; both run alternately, and the ratio is taken
//! pair by pair, since machines are noisy. Peers' figures were measured elsewhere, on a loaded machine with two cores,
//! and are quoted for orientation only. The other layers follow, each beside `page` on the same workload in the same
//! round.
//!
//! | file | measures |
//! |---|---|
//! | `bare_loop.rs` | the bound of a simulated host write |
//! | `sources.rs` | a generator and a trace alone |
//! | `layers.rs` | `dftl`, `fast` and `superblock`, on workloads of their own, on uniform writes, and on drives of two sizes |
//! | `mixed.rs` | the workload of `fast` |
//! | `measure.rs` | a run of a path, with CPU time and memory |
//!
//! `ROUNDS=9 cargo bench` repeats more often; the default is 5.

mod bare_loop;
mod layers;
mod measure;
mod mixed;
mod sources;

use bare_loop::bare_loop;
use measure::{Measured, generated, measured, median};
use sources::{generator_alone, sample_trace};

const PAGES: u32 = 1 << 21;
const PAGES_PER_BLOCK: u32 = 256;
const EXPORTED_PAGES: u32 = PAGES / 10 * 9;
const WRITES: u64 = 6 * PAGES as u64;
const PATH: &str = "page:export=90%/nand:size=8G";

/// The results of one round.
struct Round {
    bare: f64,
    off: Measured,
    on: Measured,
    generated: f64,
    read: f64,
    layers: layers::Round,
}

fn uniform_on_page(timing: &str, writes: u64) -> Measured {
    let workload = |bytes| generated(&format!("uniform:writes={}", writes * 4096), bytes);
    measured(&format!("{PATH},timing={timing}"), &workload, None)
}

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5).max(1);
    // First of all, before freed memory can be reused.
    let bytes_per_page = uniform_on_page("on", 1 << 16).bytes_per_page;
    let mut measured = Vec::new();
    for number in 1..=rounds {
        let (bare, programs) = bare_loop(WRITES);
        let (off, on) = (uniform_on_page("off", WRITES), uniform_on_page("on", WRITES));
        let generated = generator_alone(u64::from(EXPORTED_PAGES) * 4096);
        measured.push(Round { bare, off, on, generated, read: sample_trace(), layers: layers::round() });
        eprintln!(
            "round {number} of {rounds}: bare loop {:.2} M/s, write amplification {:.3} with its warm-up (ours {:.3} when steady); ours {:.2} M/s untimed, {:.2} M/s timed",
            bare / 1e6,
            programs as f64 / WRITES as f64,
            off.steady_amplification,
            off.writes_per_second / 1e6,
            on.writes_per_second / 1e6,
        );
    }
    print_page(&measured, bytes_per_page);
    layers::print(&measured.into_iter().map(|round| round.layers).collect::<Vec<_>>());
}

/// The page-level layer's figures beside their bounds.
fn print_page(rounds: &[Round], bytes_per_page: f64) {
    let middle = |of: &dyn Fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    println!("medians of {} rounds; uniform random 4 KiB writes on {PATH}, filled\n", rounds.len());
    println!("{:<44} {:>12} {:>26} {:>30}", "", "ours", "bound", "peer (quoted)");
    let million = |value: f64| format!("{:.2} M/s", value / 1e6);
    let line =
        |what: &str, ours: String, bound: String, peer: &str| println!("{what:<44} {ours:>12} {bound:>26} {peer:>30}");
    let limit = || format!("bare loop {}", million(middle(&|round| round.bare)));
    line(
        "host writes per CPU-second, timing=off",
        million(middle(&|round| round.off.writes_per_second)),
        limit(),
        "flashsim 0.31 M/s",
    );
    line(
        "  share of the bare loop",
        format!("{:.2}", middle(&|round| round.off.writes_per_second / round.bare)),
        "at least 0.5, aim 0.8".into(),
        "0.035 (of its 8.9 M/s)",
    );
    line(
        "host writes per CPU-second, timing=on",
        million(middle(&|round| round.on.writes_per_second)),
        limit(),
        "MQSim 0.10 M/s",
    );
    line(
        "  share of the bare loop",
        format!("{:.2}", middle(&|round| round.on.writes_per_second / round.bare)),
        "at least 0.125".into(),
        "0.012 (of its 8.9 M/s)",
    );
    line("memory per page", format!("{bytes_per_page:.1} B"), "at most 16 B".into(), "flashsim 76 B, MQSim 148 B");
    line(
        "write amplification, steady",
        format!("{:.3}", middle(&|round| round.off.steady_amplification)),
        "theory 5.09".into(),
        "flashsim 5.23, MQSim 3.15",
    );
    line("generator alone", million(middle(&|round| round.generated)), String::new(), "");
    line("sample trace read, zstd included", million(middle(&|round| round.read)), "at least 3 M/s".into(), "");
}
