//! The options of `cache`.

use super::{Cache, Place};
use crate::device::Medium;
use crate::device::station::{DeviceSettings, OpenOptions, Payload, StationError};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Term, Values, words};
use crate::units::BLOCK_BYTES;

/// The station `cache`.
pub static KIND: Kind = Kind {
    name: "cache",
    about: "a write-back cache: in memory, or on the first of two devices below; a flush writes back all dirty blocks",
    options: &[
        OptionKind {
            name: "size",
            values: Values::Size(BLOCK_BYTES, 1 << 42),
            default: "256M",
            about: "bytes of the cache, in blocks of 4K; at most the size of its device",
        },
        OptionKind {
            name: "policy",
            values: Values::Choice(words::<Policy>),
            default: "lru",
            about: "the policy that selects the block to evict",
        },
        OptionKind {
            name: "age",
            values: Values::Duration(1_000_000, 3_600_000_000_000),
            default: "30s",
            about: "the age at which a dirty block is written back in the background",
        },
        OptionKind {
            name: "access",
            values: Values::Duration(0, 1_000_000_000),
            default: "1us",
            about: "in memory: the time to copy a block of 4K, if the device below is timed",
        },
    ],
};

/// The policy of eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The least recently used block.
    Lru,
    /// The oldest block.
    Fifo,
    /// The first block that was not used since the hand passed.
    Clock,
}

impl Choice for Policy {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("lru", Policy::Lru, "the least recently used block"),
        ("fifo", Policy::Fifo, "the oldest block"),
        ("clock", Policy::Clock, "the first block that was not used since the hand passed (second chance)"),
    ];
}

/// The parsed options of `cache`.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSettings {
    /// The number of blocks of the cache.
    pub blocks: u64,
    /// The policy of eviction.
    pub policy: Policy,
    /// The age, in nanoseconds, at which a dirty block is written back.
    pub age_ns: u64,
    /// The time to copy a block in memory, in nanoseconds.
    pub access_ns: u64,
    /// The term with all option values.
    pub written_out: String,
}

impl CacheSettings {
    /// Parses a term with `below` devices: one, or two with the cache on the first.
    pub fn read(term: &Term, below: usize) -> Result<CacheSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let is_on_device = below == 2;
        if is_on_device && settings.is_given("access") {
            let message = "access is the time of memory, and this cache lies on a device".to_string();
            return Err(settings.error("access", message, "leave it out".to_string()));
        }
        Ok(CacheSettings {
            blocks: settings.size("size") / BLOCK_BYTES,
            policy: settings.choice("policy"),
            age_ns: settings.duration_ns("age"),
            access_ns: settings.duration_ns("access"),
            written_out: settings.written_out(if is_on_device { &["access"] } else { &[] }),
        })
    }
}

/// Bytes of a block's entry in the map and the order of a cache, about.
const ENTRY_BYTES: u64 = 64;

impl DeviceSettings for CacheSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    /// The content of the cache's own device need not outlast a run.
    fn scratch_devices(&self, below: usize) -> usize {
        below - 1
    }

    fn memory_bytes(&self, holds: Payload) -> u64 {
        self.blocks.saturating_mul(holds.width() as u64 + ENTRY_BYTES)
    }

    fn open(&self, below: Vec<Medium>, _: &OpenOptions) -> Result<Medium, StationError> {
        let mut devices = below.into_iter().map(|medium| match medium {
            Medium::Blocks(device) => device,
            Medium::Zones(_) | Medium::Memory(_) | Medium::Monitor(_) => {
                panic!("the table of stations allows only blocks below a cache")
            }
        });
        let cached = devices.next_back().expect("a cache has a device below it");
        let place = match devices.next() {
            Some(device) => Place::device(device),
            None => Place::memory(cached.block_width()),
        };
        Ok(Medium::Blocks(Box::new(Cache::new(self, place, cached))))
    }
}
