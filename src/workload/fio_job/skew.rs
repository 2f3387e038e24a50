//! `random_distribution`: the distribution of a job's random requests.

use super::sizes::completed;
use super::values::{Value, parse_number, percent_of};
use crate::random::Random;
use crate::workload::WorkloadError;
use crate::workload::draw::distribution::{Bell, Distribution, SelfSimilar, Zipf};
use crate::workload::draw::permutation::Permutation;
use crate::workload::generator::pattern::{Layout, Pattern, Place, Uniform};

/// The distribution of random requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Skew {
    Even,
    Zipf {
        theta: f64,
        centre: Option<f64>,
    },
    Pareto {
        h: f64,
        centre: Option<f64>,
    },
    Normal {
        deviation: f64,
        centre: Option<f64>,
    },
    /// Adjacent zones: the share of the requests, and the share of the region.
    Zoned(Vec<(f64, f64)>),
    /// Adjacent zones: the share of the requests, and the bytes; `None` for the rest of the region.
    ZonedBytes(Vec<(f64, Option<u64>)>),
}

const THETA_MAX: f64 = 10.0;
const ZONES_MAX: usize = 256;

impl Skew {
    /// Reads `random`, `zipf:1.2`, `pareto:0.2:0.5`, `normal:20` or `zoned:60/10:40/90`.
    pub fn parse(value: &Value) -> Result<Skew, WorkloadError> {
        let mut parts = value.text().split(':');
        let name = parts.next().unwrap_or_default();
        let parts: Vec<&str> = parts.collect();
        let number = |at: usize, low: f64, high: f64, takes: &str| {
            let number = parts.get(at).and_then(|text| text.parse::<f64>().ok());
            number
                .filter(|number| (low..=high).contains(number))
                .ok_or_else(|| value.error(format_args!("{takes} is a number from {low} to {high}")))
        };
        let centre = || if parts.len() == 2 { number(1, 0.0, 1.0, "the centre").map(Some) } else { Ok(None) };
        if matches!(name, "zipf" | "pareto" | "normal") && parts.len() > 2 {
            return Err(value.error("different distributions for reads, writes and trims are not implemented"));
        }
        match name {
            "random" if parts.is_empty() => Ok(Skew::Even),
            "zipf" => Ok(Skew::Zipf { theta: number(0, 0.0, THETA_MAX, "theta")?, centre: centre()? }),
            "pareto" => Ok(Skew::Pareto { h: number(0, 0.001, 0.999, "h")?, centre: centre()? }),
            "normal" => {
                let deviation = number(0, 0.0, 100.0, "the deviation")? / 100.0;
                Ok(Skew::Normal { deviation, centre: centre()? })
            }
            "zoned" => parse_zones(value, &parts).map(Skew::Zoned),
            "zoned_abs" => parse_zones_in_bytes(value, &parts).map(Skew::ZonedBytes),
            _ => {
                Err(value.error("expected random, zipf:THETA, pareto:H, normal:DEVIATION zoned:REQUESTS/SPACE:... or zoned_abs:REQUESTS/BYTES:..."))
            }
        }
    }

    /// The pattern over `n` places, one every `step_bytes`; `random` draws the places of the popular ones.
    pub fn pattern(&self, n: u64, step_bytes: u64, random: &mut Random) -> Box<dyn Pattern> {
        match *self {
            Skew::Even => Box::new(Uniform::new(n)),
            Skew::Zipf { theta, centre } => Box::new(Popular::new(Zipf::new(n, theta), n, 0, centre, random)),
            Skew::Pareto { h, centre } => Box::new(Popular::new(SelfSimilar::new(n, h), n, 0, centre, random)),
            Skew::Normal { deviation, centre } => {
                Box::new(Popular::new(Bell::new(n, deviation), n, n / 2, centre, random))
            }
            Skew::Zoned(ref zones) => Box::new(Zoned::new(zones, n)),
            Skew::ZonedBytes(ref zones) => {
                let mut rest = n as f64;
                let share = |(requests, bytes): &(f64, Option<u64>)| {
                    let places = bytes.map_or(rest, |bytes| ((bytes / step_bytes) as f64).min(rest));
                    rest -= places;
                    (*requests, places / n as f64)
                };
                Box::new(Zoned::new(&zones.iter().map(share).collect::<Vec<_>>(), n))
            }
        }
    }
}

fn parse_zones(value: &Value, parts: &[&str]) -> Result<Vec<(f64, f64)>, WorkloadError> {
    let part = |text: &str| if text.is_empty() { Some(None) } else { percent_of(text).map(Some) };
    let zone = |text: &&str| {
        let (requests, space) = text.split_once('/')?;
        Some((part(requests.trim())?, part(space.trim())?))
    };
    let zones: Option<Vec<_>> = parts.iter().map(zone).collect();
    let zones = zones.filter(|zones| (1..=ZONES_MAX).contains(&zones.len())).ok_or_else(|| {
        value.error("zones are written zoned:60/10:40/, percent of the requests / percent of the region; what is left out is the rest")
    })?;
    let requests = completed(zones.iter().map(|(requests, _)| *requests));
    let space = completed(zones.iter().map(|(_, space)| *space));
    match requests.zip(space) {
        Some((requests, space)) => Ok(requests.into_iter().zip(space).collect()),
        None => Err(value.error("the zones' requests and their space must each add up to 100")),
    }
}

fn parse_zones_in_bytes(value: &Value, parts: &[&str]) -> Result<Vec<(f64, Option<u64>)>, WorkloadError> {
    let zone = |text: &&str| {
        let (requests, bytes) = text.split_once('/')?;
        let bytes = match bytes.trim() {
            "" => None,
            bytes => Some(parse_number(bytes).filter(|bytes| *bytes > 0)?),
        };
        Some((percent_of(requests)?, bytes))
    };
    let zones: Option<Vec<_>> = parts.iter().map(zone).collect();
    let zones = zones.filter(|zones| (1..=ZONES_MAX).contains(&zones.len())).ok_or_else(|| {
        value.error("zones are written zoned_abs:60/20G:40/, percent of the requests / bytes; the last may be the rest")
    })?;
    if zones.iter().rev().skip(1).any(|(_, bytes)| bytes.is_none()) {
        return Err(value.error("only the last zone may be the rest of the region"));
    }
    match completed(zones.iter().map(|(requests, _)| Some(*requests))) {
        Some(_) => Ok(zones),
        None => Err(value.error("the zones' requests must add up to 100")),
    }
}

/// A distribution's scattered ranks, shifted so that the likeliest is at the centre, if one is given.
struct Popular<D> {
    distribution: D,
    layout: Layout,
    n: u64,
    moved: u64,
}

impl<D: Distribution> Popular<D> {
    fn new(distribution: D, n: u64, likeliest: u64, centre: Option<f64>, random: &mut Random) -> Popular<D> {
        let layout = Layout::new(n, true, random);
        let moved = centre.map_or(0, |centre| {
            let goal = ((n as f64 * centre) as u64).min(n - 1);
            (goal + n - layout.place(likeliest)) % n
        });
        Popular { distribution, layout, n, moved }
    }
}

impl<D: Distribution> Pattern for Popular<D> {
    fn place(&mut self, random: &mut Random) -> Place {
        let index = (self.layout.place(self.distribution.rank(random)) + self.moved) % self.n;
        Place { index, stream: 0 }
    }
}

/// Adjacent zones, each uniform in itself.
struct Zoned {
    /// For each zone: the cumulative share of the requests, its first block, and its number of blocks.
    zones: Vec<(f64, u64, u64)>,
}

impl Zoned {
    fn new(shares: &[(f64, f64)], n: u64) -> Zoned {
        let (mut requests, mut space) = (0.0, 0.0);
        let zones = shares
            .iter()
            .map(|(zone_requests, zone_space)| {
                let first = ((n as f64 * space) as u64).min(n - 1);
                (requests, space) = (requests + zone_requests, space + zone_space);
                // A zone too small for a block shares one with its neighbour.
                let end = ((n as f64 * space).round() as u64).clamp(first + 1, n);
                (requests, first, end - first)
            })
            .collect();
        Zoned { zones }
    }
}

impl Pattern for Zoned {
    fn place(&mut self, random: &mut Random) -> Place {
        let draw = random.unit();
        let at = self.zones.iter().position(|zone| draw < zone.0).unwrap_or(self.zones.len() - 1);
        let (_, first, blocks) = self.zones[at];
        Place { index: first + random.below(blocks), stream: 0 }
    }
}

/// Every block once, in a random order, then again in the same order: fio's random map without its bitmap.
pub(super) struct Covering {
    permutation: Permutation,
    n: u64,
    next: u64,
}

impl Covering {
    pub fn new(n: u64, random: &mut Random) -> Covering {
        Covering { permutation: Permutation::new(n, random), n, next: 0 }
    }
}

impl Pattern for Covering {
    fn place(&mut self, _: &mut Random) -> Place {
        let index = self.permutation.apply(self.next);
        self.next = (self.next + 1) % self.n;
        Place { index, stream: 0 }
    }
}

/// Takes a share of the places from `drawn`; the others are sequential.
pub(super) struct PartlyRandom {
    pub drawn: Box<dyn Pattern>,
    pub random_share: f64,
    pub n: u64,
    pub next: u64,
}

impl Pattern for PartlyRandom {
    fn place(&mut self, random: &mut Random) -> Place {
        let index = if random.unit() < self.random_share { self.drawn.place(random).index } else { self.next };
        self.next = (index + 1) % self.n;
        Place { index, stream: 0 }
    }
}
