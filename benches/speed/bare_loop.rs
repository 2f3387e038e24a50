//! The bound of a simulated host write: a bare counting loop with only a map, valid counts and victims by valid count.
//!
//! It knows its next pages as the engine does, prefetches what they touch, and has its tables in huge pages.

use crate::measure::cpu_seconds;
use flashpath::tables::{filled, prefetch};
use std::hint::black_box;

/// Pages of an erase block.
pub const PAGES_PER_BLOCK: u32 = 256;

/// The number of writes whose map entry is prefetched, and of those whose old page is looked up.
const LOOKED_AHEAD: (usize, usize) = (16, 8);
const BATCH: usize = 1024;

/// The loop with its tables.
pub struct Loop {
    exported: u32,
    random: u64,
    map: Vec<u32>,
    owner: Vec<u32>,
    valid: Vec<u32>,
    previous: Vec<u32>,
    next: Vec<u32>,
    listed: Vec<bool>,
    free: Vec<u32>,
    at: u32,
    end: u32,
    lowest: u32,
}

impl Loop {
    /// A loop on so many pages, of which nine in ten are exported: they are written in order, and as many are then written at random.
    pub fn filled(pages: u32) -> Loop {
        let mut drive = Loop::new(pages, pages / 10 * 9);
        (0..drive.exported).for_each(|page| drive.write(page));
        drive.write_at_random(drive.exported.into());
        drive
    }

    /// Writes so many pages at random. Returns the writes per CPU-second.
    pub fn run(&mut self, writes: u64) -> f64 {
        let started = cpu_seconds();
        self.write_at_random(writes);
        let seconds = cpu_seconds() - started;
        black_box(&self.map);
        writes as f64 / seconds
    }

    fn new(pages: u32, exported: u32) -> Loop {
        let blocks = pages / PAGES_PER_BLOCK;
        let previous: Vec<u32> = (0..blocks + PAGES_PER_BLOCK + 1).collect();
        Loop {
            exported,
            random: 88172645463325252,
            map: filled(u32::MAX, exported as usize),
            owner: filled(u32::MAX, pages as usize),
            valid: vec![0; blocks as usize],
            next: previous.clone(),
            previous,
            listed: vec![false; blocks as usize],
            free: (1..blocks).rev().collect(),
            at: 0,
            end: PAGES_PER_BLOCK,
            lowest: PAGES_PER_BLOCK,
        }
    }

    fn write_at_random(&mut self, writes: u64) {
        let (entries, old) = LOOKED_AHEAD;
        let mut batch = [0u32; BATCH];
        let mut left = writes as usize;
        while left > 0 {
            let batch = &mut batch[..left.min(BATCH)];
            left -= batch.len();
            for page in batch.iter_mut() {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                *page = (((self.random >> 32) * u64::from(self.exported)) >> 32) as u32;
            }
            batch.iter().take(entries).for_each(|&page| prefetch(&self.map, page as usize));
            for index in 0..batch.len() {
                if let Some(&page) = batch.get(index + entries) {
                    prefetch(&self.map, page as usize);
                }
                if let Some(&page) = batch.get(index + old) {
                    let block = (self.map[page as usize] / PAGES_PER_BLOCK) as usize;
                    prefetch(&self.valid, block);
                    prefetch(&self.previous, block);
                    prefetch(&self.next, block);
                }
                self.write(batch[index]);
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, page: u32) {
        while self.at == self.end {
            self.take_block();
        }
        let old = self.map[page as usize];
        if old != u32::MAX {
            let block = (old / PAGES_PER_BLOCK) as usize;
            self.valid[block] -= 1;
            if self.listed[block] {
                self.unlink(block as u32);
                self.link(block as u32);
            }
        }
        self.map[page as usize] = self.at;
        self.owner[self.at as usize] = page;
        self.valid[(self.at / PAGES_PER_BLOCK) as usize] += 1;
        self.at += 1;
    }

    /// Opens a block; of the last free one, the first pages are copies of a victim's.
    fn take_block(&mut self) {
        let full = self.end / PAGES_PER_BLOCK - 1;
        if !self.listed[full as usize] {
            self.link(full);
            self.listed[full as usize] = true;
        }
        let open = self.free.pop().expect("a block is kept free");
        (self.at, self.end) = (open * PAGES_PER_BLOCK, (open + 1) * PAGES_PER_BLOCK);
        if self.free.is_empty() {
            let victim = self.victim();
            let pages = victim * PAGES_PER_BLOCK..(victim + 1) * PAGES_PER_BLOCK;
            for old in pages.clone() {
                let ahead = old + LOOKED_AHEAD.0 as u32;
                if ahead < pages.end {
                    prefetch(&self.map, self.owner[ahead as usize] as usize);
                }
                let page = self.owner[old as usize];
                if self.map[page as usize] == old {
                    self.owner[self.at as usize] = page;
                    self.map[page as usize] = self.at;
                    self.at += 1;
                }
            }
            self.valid[open as usize] = self.valid[victim as usize];
            self.valid[victim as usize] = 0;
            self.free.push(victim);
        }
    }

    fn victim(&mut self) -> u32 {
        let blocks = self.valid.len() as u32;
        while self.next[(blocks + self.lowest) as usize] == blocks + self.lowest {
            self.lowest += 1;
        }
        let victim = self.next[(blocks + self.lowest) as usize];
        self.unlink(victim);
        self.listed[victim as usize] = false;
        victim
    }

    #[inline]
    fn unlink(&mut self, block: u32) {
        let (before, after) = (self.previous[block as usize], self.next[block as usize]);
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
    }

    /// Appends a block to the list of its number of valid pages.
    #[inline]
    fn link(&mut self, block: u32) {
        let valid = self.valid[block as usize];
        let head = self.valid.len() as u32 + valid;
        let first = self.next[head as usize];
        self.next[head as usize] = block;
        self.previous[first as usize] = block;
        self.previous[block as usize] = head;
        self.next[block as usize] = first;
        self.lowest = self.lowest.min(valid);
    }
}
