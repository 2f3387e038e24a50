//! The offsets and lengths of a job's requests.
//!
//! A job whose requests have one size and stand at its multiples takes the places of a generator's patterns. Others count
//! in bytes.

use super::settings::{DIRECTIONS, JobSettings};
use super::sizes::Sizes;
use super::skew::{Covering, PartlyRandom};
use crate::random::Random;
use crate::workload::draw::permutation::Permutation;
use crate::workload::generator::pattern::{Pattern, Sequential};

/// Draws the ranges of requests, as (offset, length) in bytes from the start of the job's region.
pub(super) enum Ranges {
    /// Blocks of one size for each direction, and a pattern for each, or one for all if they share the random map.
    Blocks { block_bytes: [u64; 3], patterns: Vec<Box<dyn Pattern>> },
    /// Requests of several sizes, or at other places than multiples of their size.
    Mixed(Box<Mixed>),
}

impl Ranges {
    /// Those of a job in a region of `length` bytes. All directions have the same layout: blocks popular with reads are
    /// popular with writes.
    pub fn new(settings: &JobSettings, length: u64, layout: &Random) -> Ranges {
        match settings.block_bytes() {
            Some(block_bytes) => {
                Ranges::Blocks { block_bytes, patterns: patterns(settings, block_bytes, length, layout) }
            }
            None => Ranges::Mixed(Box::new(Mixed::new(settings, length, layout))),
        }
    }

    /// The next range of a direction.
    pub fn next(&mut self, direction: usize, random: &mut Random) -> (u64, u64) {
        match self {
            Ranges::Blocks { block_bytes, patterns } => {
                let length = block_bytes[direction];
                let pattern = direction.min(patterns.len() - 1);
                (patterns[pattern].place(random).index * length, length)
            }
            Ranges::Mixed(mixed) => mixed.next(direction, random),
        }
    }

    /// Sequential requests begin at the start of the region again.
    pub fn restart(&mut self) {
        if let Ranges::Mixed(mixed) = self {
            mixed.directions.iter_mut().for_each(|direction| direction.next = 0);
        }
    }
}

fn patterns(settings: &JobSettings, block_bytes: [u64; 3], length: u64, layout: &Random) -> Vec<Box<dyn Pattern>> {
    if settings.covers {
        let action = DIRECTIONS.iter().position(|action| settings.requests.include(*action)).unwrap_or_default();
        return vec![Box::new(Covering::new(length / block_bytes[action], &mut layout.clone()))];
    }
    let blocks = block_bytes.into_iter().zip(settings.random_share);
    blocks
        .map(|(bytes, random_share)| -> Box<dyn Pattern> {
            // A direction that the job does not use may have blocks larger than the region.
            let n = (length / bytes).max(1);
            if !settings.is_random {
                return Box::new(Sequential::new(n));
            }
            let drawn = settings.skew.pattern(n, bytes, &mut layout.clone());
            if random_share == 1.0 { drawn } else { Box::new(PartlyRandom { drawn, random_share, n, next: 0 }) }
        })
        .collect()
}

/// Requests counted in bytes.
pub(super) struct Mixed {
    length: u64,
    is_random: bool,
    directions: [Direction; 3],
    /// The random map, with which no byte is visited again before all are.
    map: Option<RandomMap>,
}

struct Direction {
    sizes: Sizes,
    align: u64,
    drawn: Box<dyn Pattern>,
    random_share: f64,
    /// The byte behind its last request.
    next: u64,
}

impl Mixed {
    fn new(settings: &JobSettings, length: u64, layout: &Random) -> Mixed {
        let direction = |number: usize| {
            let (sizes, align) = (settings.sizes[number].clone(), settings.align[number]);
            // A direction that the job does not use may have requests larger than the region.
            let places = length.saturating_sub(sizes.smallest()) / align + 1;
            let drawn = settings.skew.pattern(places, align, &mut layout.clone());
            Direction { sizes, align, drawn, random_share: settings.random_share[number], next: 0 }
        };
        let used = DIRECTIONS.iter().zip(&settings.sizes).filter(|(action, _)| settings.requests.include(**action));
        let smallest = used.map(|(_, sizes)| sizes.smallest()).min().expect("a job has requests");
        Mixed {
            length,
            is_random: settings.is_random,
            directions: [0, 1, 2].map(direction),
            map: settings.covers.then(|| RandomMap::new(smallest, length / smallest, layout)),
        }
    }

    fn next(&mut self, number: usize, random: &mut Random) -> (u64, u64) {
        let direction = &mut self.directions[number];
        let is_drawn = self.is_random && (direction.random_share == 1.0 || random.unit() < direction.random_share);
        let (begin, length) = match &mut self.map {
            Some(map) => map.take(direction.sizes.fitting(self.length, random)),
            None => {
                let smallest = direction.sizes.smallest();
                let begin = match is_drawn {
                    true => direction.drawn.place(random).index * direction.align,
                    false if direction.next + smallest > self.length => 0,
                    false => direction.next,
                };
                (begin, direction.sizes.fitting(self.length - begin, random))
            }
        };
        direction.next = begin + length;
        (begin, length)
    }
}

/// fio's random map: every unit once, in a random order, before any again. A request ends where a visited unit begins.
struct RandomMap {
    unit_bytes: u64,
    order: Permutation,
    visited: Vec<u64>,
    units: u64,
    /// The place in the order at which the search goes on.
    next: u64,
    left: u64,
}

impl RandomMap {
    fn new(unit_bytes: u64, units: u64, layout: &Random) -> RandomMap {
        let order = Permutation::new(units, &mut layout.clone());
        let visited = vec![0; units.div_ceil(64) as usize];
        RandomMap { unit_bytes, order, visited, units, next: 0, left: units }
    }

    fn is_visited(&self, unit: u64) -> bool {
        self.visited[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }

    /// A range of up to `bytes` that begins at the next unit of the order that is not visited.
    fn take(&mut self, bytes: u64) -> (u64, u64) {
        if self.left == 0 {
            self.visited.fill(0);
            (self.next, self.left) = (0, self.units);
        }
        let begin = loop {
            let unit = self.order.apply(self.next);
            self.next += 1;
            if !self.is_visited(unit) {
                break unit;
            }
        };
        let most = (bytes / self.unit_bytes).clamp(1, self.units - begin);
        let end = (begin + 1..begin + most).find(|unit| self.is_visited(*unit)).unwrap_or(begin + most);
        for unit in begin..end {
            self.visited[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        self.left -= end - begin;
        (begin * self.unit_bytes, (end - begin) * self.unit_bytes)
    }
}
