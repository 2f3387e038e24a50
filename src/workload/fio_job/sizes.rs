//! The sizes of a job's requests: `bs`, `bssplit`, `bsrange`.

use super::values::{Value, parse_number, percent_of};
use crate::random::Random;
use crate::workload::WorkloadError;

/// The smallest unit of a device, in bytes.
pub(super) const SECTOR_BYTES: u64 = 512;
/// fio's bound of the sizes in a split.
const SPLIT_MAX: usize = 64;
const SUM_TOLERANCE: f64 = 1e-6;
/// Draws of a size that fits into what is left of a region, before the smallest is taken.
const DRAWS: u32 = 16;

/// The sizes of the requests of one direction, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sizes {
    One(u64),
    /// Sizes, each with the share of the requests that have it or one before it.
    Split(Vec<(f64, u64)>),
    /// Multiples of `step` from `least` to `most`, all equally likely.
    Range {
        least: u64,
        most: u64,
        step: u64,
    },
}

impl Sizes {
    pub fn smallest(&self) -> u64 {
        match self {
            Sizes::One(bytes) => *bytes,
            Sizes::Split(shares) => shares.iter().map(|(_, bytes)| *bytes).min().expect("a split has sizes"),
            Sizes::Range { least, .. } => *least,
        }
    }

    pub fn largest(&self) -> u64 {
        match self {
            Sizes::One(bytes) => *bytes,
            Sizes::Split(shares) => shares.iter().map(|(_, bytes)| *bytes).max().expect("a split has sizes"),
            Sizes::Range { most, .. } => *most,
        }
    }

    pub fn are_multiples_of(&self, unit: u64) -> bool {
        match self {
            Sizes::One(bytes) => bytes.is_multiple_of(unit),
            Sizes::Split(shares) => shares.iter().all(|(_, bytes)| bytes.is_multiple_of(unit)),
            Sizes::Range { least, step, .. } => least.is_multiple_of(unit) && step.is_multiple_of(unit),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Sizes::One(bytes) => *bytes,
            Sizes::Split(shares) => {
                let draw = random.unit();
                let drawn = shares.iter().find(|(up_to, _)| draw < *up_to).or(shares.last());
                drawn.expect("a split has sizes").1
            }
            Sizes::Range { least, most, step } => least + random.below((most - least) / step + 1) * step,
        }
    }

    /// A size of at most `room` bytes, in which the smallest fits.
    pub fn fitting(&self, room: u64, random: &mut Random) -> u64 {
        debug_assert!(self.smallest() <= room, "{room} bytes hold a request");
        (0..DRAWS).map(|_| self.draw(random)).find(|bytes| *bytes <= room).unwrap_or(self.smallest())
    }

    /// Reads `bssplit`: `4k/10:64k/50:32k/40`, or one such list each for reads, writes and trims. Shares that are left out
    /// are equal parts of the rest.
    pub fn parse_splits(value: &Value) -> Result<[Sizes; 3], WorkloadError> {
        value.each_direction(|text| {
            let takes = "sizes with percentages, such as 4k/50:1k/:32k/";
            let parts: Vec<&str> = text.split(':').collect();
            if parts.len() > SPLIT_MAX {
                return Err(value.error(format_args!("a split has {SPLIT_MAX} sizes at most")));
            }
            let part = |part: &&str| {
                let (size, share) = part.split_once('/').unwrap_or((part, ""));
                let size = parse_number(size.trim()).filter(|bytes| *bytes >= SECTOR_BYTES)?;
                match share.trim() {
                    "" => Some((None, size)),
                    percent => percent_of(percent).map(|share| (Some(share), size)),
                }
            };
            let sizes = parts.iter().map(part).collect::<Option<Vec<_>>>();
            let sizes = sizes.ok_or_else(|| value.error(format_args!("expected {takes}, from 512 on")))?;
            let shares = completed(sizes.iter().map(|(share, _)| *share))
                .ok_or_else(|| value.error("the percentages must add up to 100"))?;
            let mut up_to = 0.0;
            let each = shares.into_iter().zip(sizes).filter(|(share, _)| *share > 0.0);
            Ok(Sizes::Split(
                each.map(|(share, (_, bytes))| {
                    up_to += share;
                    (up_to, bytes)
                })
                .collect(),
            ))
        })
    }

    /// Reads `bsrange`: `1k-4k`, or one such range each for reads, writes and trims. Sizes are multiples of the smallest,
    /// unless they are `unaligned`.
    pub fn parse_ranges(value: &Value, unaligned: bool) -> Result<[Sizes; 3], WorkloadError> {
        value.each_direction(|text| {
            let (least, most) = text.split_once(['-', ':']).unwrap_or((text, text));
            let bounds = parse_number(least.trim()).zip(parse_number(most.trim()));
            match bounds.filter(|(least, most)| SECTOR_BYTES <= *least && least <= most) {
                Some((least, most)) => {
                    let step = if unaligned { 1 } else { least };
                    Ok(Sizes::Range { least, most: least + (most - least) / step * step, step })
                }
                None => Err(value.error("expected a range of sizes such as 1k-4k, from 512 on")),
            }
        })
    }
}

/// Shares that add up to 1: those left out are equal parts of the rest. `None` if they do not.
pub(super) fn completed(shares: impl Iterator<Item = Option<f64>> + Clone) -> Option<Vec<f64>> {
    let given: f64 = shares.clone().flatten().sum();
    let missing = shares.clone().filter(Option::is_none).count();
    let rest = 1.0 - given;
    let is_sum = if missing > 0 { rest > -SUM_TOLERANCE } else { rest.abs() <= SUM_TOLERANCE };
    is_sum.then(|| shares.map(|share| share.unwrap_or(rest.max(0.0) / missing as f64)).collect())
}
