//! Access patterns over the places `0..n`; a place is one request in size.

use super::distribution::Distribution;
use super::permutation::Permutation;
use crate::random::Random;

/// The placement hint of hot writes.
const HOT_STREAM: u8 = 0;
/// The placement hint of cold writes.
const COLD_STREAM: u8 = 1;

/// A place, and the placement hint of a write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the place.
    pub index: u64,
    /// The placement hint.
    pub stream: u8,
}

impl Place {
    #[inline]
    fn unhinted(index: u64) -> Place {
        Place { index, stream: 0 }
    }
}

/// Draws places.
pub trait Pattern: Send {
    /// The next place.
    fn place(&mut self, random: &mut Random) -> Place;

    /// The placement hint of writes to this place.
    fn stream_at(&self, _index: u64) -> u8 {
        0
    }
}

/// Places in order, starting over at the end.
#[derive(Clone, Debug)]
pub struct Sequential {
    n: u64,
    next: u64,
}

impl Sequential {
    /// The places `0..n` in order.
    pub fn new(n: u64) -> Sequential {
        assert!(n > 0, "at least one place");
        Sequential { n, next: 0 }
    }
}

impl Pattern for Sequential {
    #[inline]
    fn place(&mut self, _: &mut Random) -> Place {
        let index = self.next;
        self.next = if index + 1 == self.n { 0 } else { index + 1 };
        Place::unhinted(index)
    }
}

/// Uniformly random places.
#[derive(Clone, Debug)]
pub struct Uniform {
    n: u64,
}

impl Uniform {
    /// The places `0..n`.
    pub fn new(n: u64) -> Uniform {
        assert!(n > 0, "at least one place");
        Uniform { n }
    }
}

impl Pattern for Uniform {
    #[inline]
    fn place(&mut self, random: &mut Random) -> Place {
        Place::unhinted(random.below(self.n))
    }
}

/// The mapping of ranks to places: in order or scattered.
///
/// fio hashes ranks into the space, where they collide unless n is a power of two: of 60,000 blocks, it never addresses
/// a third. A permutation gives every rank a place of its own.
#[derive(Clone, Debug)]
pub enum Layout {
    /// Rank k lies at place k.
    InOrder,
    /// Rank k lies at the permutation's k-th place.
    Scattered(Permutation),
}

impl Layout {
    /// The layout of `n` places: scattered by a permutation drawn from `random`, or in order.
    pub fn new(n: u64, is_scattered: bool, random: &mut Random) -> Layout {
        if is_scattered { Layout::Scattered(Permutation::new(n, random)) } else { Layout::InOrder }
    }

    /// The place of `rank`.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        match self {
            Layout::InOrder => rank,
            Layout::Scattered(permutation) => permutation.apply(rank),
        }
    }

    /// The rank at `place`.
    pub fn rank(&self, place: u64) -> u64 {
        match self {
            Layout::InOrder => place,
            Layout::Scattered(permutation) => permutation.find(place),
        }
    }
}

/// A distribution's ranks at the places of a layout.
#[derive(Clone, Debug)]
pub struct Ranked<D> {
    distribution: D,
    layout: Layout,
}

impl<D: Distribution> Ranked<D> {
    /// The ranks of `distribution`, each at its place in `layout`; both are over the same number of places.
    pub fn new(distribution: D, layout: Layout) -> Ranked<D> {
        Ranked { distribution, layout }
    }
}

impl<D: Distribution> Pattern for Ranked<D> {
    #[inline]
    fn place(&mut self, random: &mut Random) -> Place {
        Place::unhinted(self.layout.place(self.distribution.rank(random)))
    }
}

/// Two parts, each uniform in itself: the hot and cold pages of Rosenblum and Ousterhout, "The Design and
/// Implementation of a Log-Structured File System", TOCS 1992, section 3.5.
#[derive(Clone, Debug)]
pub struct HotCold {
    hot_places: u64,
    cold_places: u64,
    hot_requests: f64,
    layout: Layout,
}

impl HotCold {
    /// The first `hot_places` ranks of `n` get `hot_requests` of the requests (a fraction). Both parts have a place:
    /// `hot_places` is from 1 to n - 1.
    pub fn new(n: u64, hot_places: u64, hot_requests: f64, layout: Layout) -> HotCold {
        assert!((1..n).contains(&hot_places), "{hot_places} of {n} places are hot: both parts need one");
        HotCold { hot_places, cold_places: n - hot_places, hot_requests, layout }
    }
}

impl Pattern for HotCold {
    #[inline]
    fn place(&mut self, random: &mut Random) -> Place {
        let (rank, stream) = if random.unit() < self.hot_requests {
            (random.below(self.hot_places), HOT_STREAM)
        } else {
            (self.hot_places + random.below(self.cold_places), COLD_STREAM)
        };
        Place { index: self.layout.place(rank), stream }
    }

    fn stream_at(&self, index: u64) -> u8 {
        let is_placed = index < self.hot_places + self.cold_places;
        if is_placed && self.layout.rank(index) < self.hot_places { HOT_STREAM } else { COLD_STREAM }
    }
}
