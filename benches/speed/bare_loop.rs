//! The bound of a simulated host write: a bare counting loop with only a map, valid counts and victims by valid count.

use crate::measure::cpu_seconds;
use crate::{EXPORTED_PAGES, PAGES, PAGES_PER_BLOCK};
use std::hint::black_box;

/// Fills the exported pages in order, then writes at random. Returns the random writes per second and their programs.
pub fn bare_loop(writes: u64) -> (f64, u64) {
    let blocks = (PAGES / PAGES_PER_BLOCK) as usize;
    let mut map = vec![u32::MAX; EXPORTED_PAGES as usize];
    let mut owner = vec![u32::MAX; PAGES as usize];
    let mut valid = vec![0u32; blocks];
    let mut previous = vec![u32::MAX; blocks + PAGES_PER_BLOCK as usize + 1];
    let mut next: Vec<u32> = (0..previous.len() as u32).collect();
    previous.copy_from_slice(&next);
    let mut listed = vec![false; blocks];
    let mut free: Vec<u32> = (1..blocks as u32).rev().collect();
    let (mut at, mut end) = (0u32, PAGES_PER_BLOCK);
    let mut lowest = PAGES_PER_BLOCK;
    let mut programs = 0u64;
    let mut random = 88172645463325252u64;
    let mut started = 0.0;
    let fill = u64::from(EXPORTED_PAGES);
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
            (((random >> 32) * u64::from(EXPORTED_PAGES)) >> 32) as u32
        };
        while at == end {
            let full = end / PAGES_PER_BLOCK - 1;
            if !listed[full as usize] {
                let head = blocks as u32 + valid[full as usize];
                link(&mut previous, &mut next, head, full);
                listed[full as usize] = true;
                lowest = lowest.min(valid[full as usize]);
            }
            let open = free.pop().expect("a block is kept free");
            (at, end) = (open * PAGES_PER_BLOCK, (open + 1) * PAGES_PER_BLOCK);
            if free.is_empty() {
                while next[blocks + lowest as usize] == blocks as u32 + lowest {
                    lowest += 1;
                }
                let victim = next[blocks + lowest as usize];
                unlink(&mut previous, &mut next, victim);
                listed[victim as usize] = false;
                for old in victim * PAGES_PER_BLOCK..(victim + 1) * PAGES_PER_BLOCK {
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
            let block = (old / PAGES_PER_BLOCK) as usize;
            valid[block] -= 1;
            if listed[block] {
                unlink(&mut previous, &mut next, block as u32);
                link(&mut previous, &mut next, blocks as u32 + valid[block], block as u32);
                lowest = lowest.min(valid[block]);
            }
        }
        map[page as usize] = at;
        owner[at as usize] = page;
        valid[(at / PAGES_PER_BLOCK) as usize] += 1;
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
