//! Access patterns over the places `0..n`; a place is one request in size.

use crate::random::Random;
use crate::workload::draw::distribution::Distribution;
use crate::workload::draw::permutation::Permutation;

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
    /// The next place of a write.
    fn place(&mut self, random: &mut Random) -> Place;

    /// The next place of a read or a discard; by default as of a write.
    fn other_place(&mut self, random: &mut Random) -> Place {
        self.place(random)
    }

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

/// The placement hint of writes to buckets: the first placement identifier.
pub(super) const BUCKET_STREAM: u8 = 1;
/// The placement hint of writes to regions: the second.
pub(super) const REGION_STREAM: u8 = 2;

/// A flash cache's two engines: small objects in buckets that are rewritten at random, and large ones in regions that are
/// written whole, one after the other, the oldest first (Berg et al., "The CacheLib Caching Engine", OSDI 2020).
#[derive(Clone, Debug)]
pub struct CacheEngines {
    bucket_places: u64,
    region_places: u64,
    /// The places of a region.
    in_region: u64,
    /// The probability that a bucket is next, where no region is under way.
    bucket_next: f64,
    /// The next place of the regions, from 0, and the places that are left of the one under way.
    next: u64,
    left: u64,
}

impl CacheEngines {
    /// The first `bucket_places` of `n` are buckets and get `to_buckets` of the requests (a fraction); the others are regions of
    /// `in_region` places, the last of which may be shorter. Both have a place.
    pub fn new(n: u64, bucket_places: u64, to_buckets: f64, in_region: u64) -> CacheEngines {
        assert!((1..n).contains(&bucket_places) && in_region > 0, "{bucket_places} of {n} places are buckets");
        let region_places = n - bucket_places;
        let in_region = in_region.min(region_places);
        // A region counts as its places.
        let weight = to_buckets * in_region as f64;
        let bucket_next = weight / (weight + 1.0 - to_buckets);
        CacheEngines { bucket_places, region_places, in_region, bucket_next, next: 0, left: 0 }
    }
}

impl Pattern for CacheEngines {
    #[inline]
    fn place(&mut self, random: &mut Random) -> Place {
        if self.left == 0 {
            if random.unit() < self.bucket_next {
                return Place { index: random.below(self.bucket_places), stream: BUCKET_STREAM };
            }
            self.left = self.in_region.min(self.region_places - self.next);
        }
        let index = self.bucket_places + self.next;
        self.left -= 1;
        self.next = if self.next + 1 == self.region_places { 0 } else { self.next + 1 };
        Place { index, stream: REGION_STREAM }
    }

    /// Any: a region is written whole, whatever is read in between.
    fn other_place(&mut self, random: &mut Random) -> Place {
        Place { index: random.below(self.bucket_places + self.region_places), stream: 0 }
    }

    fn stream_at(&self, index: u64) -> u8 {
        if index < self.bucket_places { BUCKET_STREAM } else { REGION_STREAM }
    }
}
