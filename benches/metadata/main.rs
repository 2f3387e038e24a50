//! Operations on files a second: `ext` in this process, and the kernel's ext4 through system calls, both on an image in RAM
//! (`/dev/shm`), the kernel's through a loop device. Needs root and e2fsprogs.
//!
//! 1. *Flow*: Varmail's without its fsyncs. A loop deletes a file; makes one and appends 16 KiB; opens one, reads it and appends
//!    16 KiB; opens one and reads it. Each thread has files of its own in directories that all share. Both sides run
//!    alternately, and the ratio is taken pair by pair.
//! 2. *Scale*: names of one directory, made, found and removed, and a million files in a volume.
//!
//! `ROUNDS=5 SECONDS=2 cargo bench --bench metadata` repeats more often; the default is 3 rounds of 2 s. `FILES=100000`
//! bounds the second part, whose default is a million.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod flow;
mod kernel;
mod scale;
mod volume;

use std::time::Duration;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default).max(1)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (rounds, time) = (number("ROUNDS", 3), Duration::from_secs(number("SECONDS", 2)));
    println!(
        "operations a second, thousand: ext in this process, the kernel's ext4, ratio (medians of {rounds} rounds)"
    );
    for threads in [1, 2, 4, 16] {
        let mut pairs = Vec::new();
        for round in 0..rounds {
            let ours = flow::run(&volume::Ours::new(4), threads, time, round);
            let theirs = match kernel::Theirs::new() {
                Ok(theirs) => flow::run(&theirs, threads, time, round),
                Err(why) => {
                    println!("the kernel's ext4 is left out: {why}");
                    f64::NAN
                }
            };
            pairs.push((ours, theirs));
        }
        let ratio = median(pairs.iter().map(|(ours, theirs)| ours / theirs).collect());
        let [ours, theirs] = [|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1]
            .map(|side| median(pairs.iter().map(side).collect()) / 1000.0);
        println!("{threads:>3} threads {ours:>9.1} {theirs:>9.1} {ratio:>7.2}");
    }
    scale::print(number("FILES", 1_000_000));
}
