//! The cost of `ext`'s journals in memory, on one thread of this process.
//!
//! | file | role |
//! |---|---|
//! | `bare` | what a commit to another process cannot do without |
//! | `in_memory` | the journal in non-volatile memory beside bare copies |
//! | `kept` | the journal that a monitor keeps beside copies and a journal on a device in RAM |
//! | `written` | a file that is written and synced |
//!
//! `ROUNDS=2000 cargo bench --bench journal` repeats more often; the default is 1000.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod bare;
mod in_memory;
mod kept;
mod written;

const BLOCK: usize = 4096;

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    if let Some(socket) = std::env::var_os(kept::MONITOR) {
        return kept::keep(socket.into());
    }
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000).max(10);
    in_memory::measure(rounds);
    kept::measure(rounds);
}
