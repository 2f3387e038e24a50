//! Host writes per CPU-second, beside the limit: a bare counting loop that keeps a map, valid counts and victims by
//! valid count, and nothing else. Both run in turn in this process; the median of the ratios is what counts.
//!
//! The work: 8 GiB of 4 KiB pages, 256 a block, 90 % exported, filled in order, then uniform random writes.

use flashpath::expression::parse_term;
use flashpath::run::{Options, Path, Replay, run};
use flashpath::workload::generator::generator;
use std::hint::black_box;

const WRITES: u64 = 6 << 21;
const PAGES: u32 = 1 << 21;
const PER_BLOCK: u32 = 256;
const EXPORTED: u32 = PAGES / 10 * 9;

/// Seconds of CPU that this thread has used.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The limit: map, valid counts, blocks in buckets by valid count. Answers host writes a second and programs.
fn bare_loop(writes: u64) -> (f64, u64) {
    let blocks = (PAGES / PER_BLOCK) as usize;
    let mut map = vec![u32::MAX; EXPORTED as usize];
    let mut owner = vec![u32::MAX; PAGES as usize];
    let mut valid = vec![0u32; blocks];
    let mut previous = vec![u32::MAX; blocks + PER_BLOCK as usize + 1];
    let mut next: Vec<u32> = (0..previous.len() as u32).collect();
    previous.copy_from_slice(&next);
    let mut listed = vec![false; blocks];
    let mut free: Vec<u32> = (1..blocks as u32).rev().collect();
    let (mut at, mut end) = (0u32, PER_BLOCK);
    let mut lowest = PER_BLOCK;
    let mut programs = 0u64;
    let mut random = 88172645463325252u64;
    let mut started = 0.0;
    let fill = u64::from(EXPORTED);
    for write in 0..fill + writes {
        let page = if write < fill {
            write as u32
        } else {
            if write == fill {
                started = cpu_seconds();
                programs = 0;
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (((random >> 32) * u64::from(EXPORTED)) >> 32) as u32
        };
        while at == end {
            let full = end / PER_BLOCK - 1;
            if !listed[full as usize] {
                let head = blocks as u32 + valid[full as usize];
                link(&mut previous, &mut next, head, full);
                listed[full as usize] = true;
                lowest = lowest.min(valid[full as usize]);
            }
            let open = free.pop().expect("a block is kept free");
            (at, end) = (open * PER_BLOCK, (open + 1) * PER_BLOCK);
            if free.is_empty() {
                while next[blocks + lowest as usize] == blocks as u32 + lowest {
                    lowest += 1;
                }
                let victim = next[blocks + lowest as usize];
                unlink(&mut previous, &mut next, victim);
                listed[victim as usize] = false;
                for old in victim * PER_BLOCK..(victim + 1) * PER_BLOCK {
                    let page = owner[old as usize];
                    if map[page as usize] == old {
                        owner[at as usize] = page;
                        map[page as usize] = at;
                        at += 1;
                        programs += 1;
                    }
                }
                valid[open as usize] = valid[victim as usize];
                valid[victim as usize] = 0;
                free.push(victim);
            }
        }
        let old = map[page as usize];
        if old != u32::MAX {
            let block = (old / PER_BLOCK) as usize;
            valid[block] -= 1;
            if listed[block] {
                unlink(&mut previous, &mut next, block as u32);
                link(&mut previous, &mut next, blocks as u32 + valid[block], block as u32);
                lowest = lowest.min(valid[block]);
            }
        }
        map[page as usize] = at;
        owner[at as usize] = page;
        valid[(at / PER_BLOCK) as usize] += 1;
        at += 1;
        programs += 1;
    }
    black_box(&map);
    (writes as f64 / (cpu_seconds() - started), programs)
}

fn unlink(previous: &mut [u32], next: &mut [u32], block: u32) {
    let (before, after) = (previous[block as usize], next[block as usize]);
    next[before as usize] = after;
    previous[after as usize] = before;
}

fn link(previous: &mut [u32], next: &mut [u32], head: u32, block: u32) {
    let first = next[head as usize];
    next[head as usize] = block;
    previous[first as usize] = block;
    previous[block as usize] = head;
    next[block as usize] = first;
}

/// Ours: the path as a user runs it. Answers host writes a second and the write amplification.
fn flashpath(path: &str, writes: u64) -> (f64, f64) {
    let path = Path::read(path).expect("a path");
    let term = parse_term(&format!("uniform:writes={}", writes * 4096)).expect("a workload");
    let mut workload = generator(&term, path.exported_bytes(), 1).expect("a generator");
    let options = Options { fill: true, replay: Replay::Closed { depth: 32 }, ..Options::default() };
    // The fill is not measured: counting begins when the first batch has been asked for.
    let mut started = None;
    let outcome = run(&path, workload.as_mut(), &options, &mut |progress| {
        if progress.phase == "running" && started.is_none() {
            started = Some((cpu_seconds(), progress.requests));
        }
        true
    });
    let (started, before) = started.expect("it ran");
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let rate = (writes - before) as f64 / (cpu_seconds() - started);
    (rate, outcome.result.write_amplification.total.unwrap_or(f64::NAN))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let timing_off = "page:export=90%/nand:size=8G,timing=off";
    let timing_on = "page:export=90%/nand:size=8G,timing=on";
    let (mut bare, mut off, mut on) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (rate, programs) = bare_loop(WRITES);
        let (rate_off, wa) = flashpath(timing_off, WRITES);
        let (rate_on, _) = flashpath(timing_on, WRITES / 4);
        println!(
            "bare {:.2} M/s (WA {:.3})   timing=off {:.2} M/s (WA {wa:.3}) ratio {:.2}   timing=on {:.2} M/s ratio {:.2}",
            rate / 1e6,
            programs as f64 / WRITES as f64,
            rate_off / 1e6,
            rate_off / rate,
            rate_on / 1e6,
            rate_on / rate
        );
        bare.push(rate);
        off.push(rate_off / rate);
        on.push(rate_on / rate);
    }
    println!("median: bare {:.2} M/s, off {:.3} of it, on {:.3} of it", median(bare) / 1e6, median(off), median(on));
}
