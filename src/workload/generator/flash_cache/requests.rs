//! Requests for objects: of a trace of keys, or drawn.

use crate::random::Random;
use crate::workload::WorkloadError;
use crate::workload::draw::distribution::{Distribution, Zipf};
use crate::workload::trace::{KeyAction, KeyReader, KeyRequest, mixed};
use std::path::PathBuf;

/// The sizes of large drawn objects end at so many times the largest small one.
const LARGE_TIMES: u64 = 16;

/// Requests for objects.
pub trait Requests: Send {
    /// The next request; `None` at the end.
    fn next_request(&mut self) -> Result<Option<KeyRequest>, WorkloadError>;

    /// The share of the requests that were made, if known.
    fn progress(&self) -> Option<f64>;

    /// The number of lines rejected in the first reading.
    fn rejected(&self) -> u64 {
        0
    }

    /// Warnings about them.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The requests of a trace.
pub struct Traced {
    file: PathBuf,
    reader: KeyReader,
    repeat: u64,
    /// The number of readings that have ended.
    read: u64,
    /// The keys that stand for each key of the trace.
    amplify: u64,
    /// The last request, and the number of its keys that were not asked for yet.
    last: Option<(KeyRequest, u64)>,
    rejected: u64,
    warnings: Vec<String>,
    has_lives: bool,
}

impl Traced {
    /// The requests of the trace in `file`, which is read `repeat` times; each is made for `amplify` keys.
    pub fn open(file: PathBuf, repeat: u64, amplify: u64) -> Result<Traced, WorkloadError> {
        let reader = KeyReader::open(&file)?;
        let (warnings, has_lives) = (Vec::new(), false);
        Ok(Traced { file, reader, repeat, read: 0, amplify, last: None, rejected: 0, warnings, has_lives })
    }
}

impl Requests for Traced {
    fn next_request(&mut self) -> Result<Option<KeyRequest>, WorkloadError> {
        loop {
            if let Some((request, left)) = &mut self.last
                && *left > 0
            {
                *left -= 1;
                // The key itself, and others that are derived from it.
                let key = if *left == 0 { request.key } else { mixed(request.key.wrapping_add(*left)) };
                return Ok(Some(KeyRequest { key, ..*request }));
            }
            if let Some(request) = self.reader.next_request()? {
                self.has_lives |= request.ttl_s > 0;
                self.last = Some((request, self.amplify));
                continue;
            }
            if self.read == 0 {
                self.rejected = self.reader.rejected();
                self.warnings.extend(self.reader.warning());
                if self.has_lives && !self.reader.has_times() {
                    let what = "objects have a TTL and requests have no time: no object expires";
                    self.warnings.push(format!("{}: {what}", self.file.display()));
                }
            }
            self.read += 1;
            if self.read >= self.repeat {
                return Ok(None);
            }
            self.reader = KeyReader::open(&self.file)?;
        }
    }

    fn progress(&self) -> Option<f64> {
        Some((self.read as f64 + self.reader.progress()?).min(self.repeat as f64) / self.repeat as f64)
    }

    fn rejected(&self) -> u64 {
        self.rejected
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Drawn requests: the k-th most popular of the objects has a weight of k^-theta, and each keeps its size.
pub struct Drawn {
    popularity: Zipf,
    gets: f64,
    large: f64,
    small_bytes: u64,
    random: Random,
}

impl Drawn {
    /// Requests for objects that take `objects_bytes` together: a share `gets` of them reads, and a share `large` of the objects
    /// is larger than `small_bytes`.
    pub fn new(objects_bytes: u64, theta: f64, gets: f64, large: f64, small_bytes: u64, random: Random) -> Drawn {
        let mean_small = (1 + small_bytes) as f64 / 2.0;
        let mean_large = (small_bytes + 1 + LARGE_TIMES * small_bytes) as f64 / 2.0;
        let mean = (1.0 - large) * mean_small + large * mean_large;
        let count = ((objects_bytes as f64 / mean) as u64).max(1);
        Drawn { popularity: Zipf::new(count, theta), gets, large, small_bytes, random }
    }

    /// The bytes of the object of a key.
    fn bytes_of(&self, key: u64) -> u64 {
        // Each object draws its size from its own sequence of two numbers.
        let unit = |number: u64| (mixed(number) >> 11) as f64 / (1u64 << 53) as f64;
        let (is_large, within) = (unit(key ^ 1) < self.large, unit(key ^ 2));
        let (least, most) =
            if is_large { (self.small_bytes + 1, LARGE_TIMES * self.small_bytes) } else { (1, self.small_bytes) };
        least + (within * (most - least + 1) as f64) as u64
    }
}

impl Requests for Drawn {
    fn next_request(&mut self) -> Result<Option<KeyRequest>, WorkloadError> {
        let key = mixed(self.popularity.rank(&mut self.random).wrapping_add(1));
        let action = if self.random.unit() < self.gets { KeyAction::Get } else { KeyAction::Set };
        let value_bytes = self.bytes_of(key);
        Ok(Some(KeyRequest { key, key_bytes: 0, value_bytes, action, count: 1, time_s: None, ttl_s: 0 }))
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}
