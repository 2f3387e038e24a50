//! The options of `cache`.

use super::{Cache, Place};
use crate::device::Medium;
use crate::device::station::{DeviceSettings, Opening, StationError};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Term, Values, words};
use crate::units::BLOCK_BYTES;

/// The station `cache`.
pub static KIND: Kind = Kind {
    name: "cache",
    about: "a write-back cache: in memory, or on the first of two devices below; a flush writes back all that is dirty",
    options: &[
        OptionKind {
            name: "size",
            values: Values::Size(BLOCK_BYTES, 1 << 42),
            default: "256M",
            about: "bytes that it holds, in blocks of 4K; no more than its device has",
        },
        OptionKind {
            name: "policy",
            values: Values::Choice(words::<Policy>),
            default: "lru",
            about: "which block makes room for another",
        },
        OptionKind {
            name: "age",
            values: Values::Duration(1_000_000, 3_600_000_000_000),
            default: "30s",
            about: "a block that is dirty for so long is written back in the background",
        },
        OptionKind {
            name: "access",
            values: Values::Duration(0, 1_000_000_000),
            default: "1us",
            about: "in memory: a block of 4K to be copied, if the device below is timed",
        },
    ],
};

/// Which block makes room for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The one that was used least recently.
    Lru,
    /// The one that came first.
    Fifo,
    /// The first one that was not used since the hand passed it.
    Clock,
}

impl Choice for Policy {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("lru", Policy::Lru, "the one that was used least recently"),
        ("fifo", Policy::Fifo, "the one that came first"),
        ("clock", Policy::Clock, "the first one that was not used since the hand passed it (second chance)"),
    ];
}

/// The options of `cache`, read.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSettings {
    /// Blocks that it holds.
    pub blocks: u64,
    /// Which block makes room for another.
    pub policy: Policy,
    /// Nanoseconds after which a dirty block is written back.
    pub age_ns: u64,
    /// Nanoseconds to copy a block, in memory.
    pub access_ns: u64,
    /// The term with every option written out.
    pub written_out: String,
}

impl CacheSettings {
    /// Reads a term that stands on `below` devices: one, or two with the cache on the first.
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

impl DeviceSettings for CacheSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    /// What the cache's own device holds is of no use to the next run.
    fn scratch_devices(&self, below: usize) -> usize {
        below - 1
    }

    fn open(&self, below: Vec<Medium>, _: &Opening) -> Result<Medium, StationError> {
        let mut devices = below.into_iter().map(|medium| match medium {
            Medium::Blocks(device) => device,
            Medium::Zones(_) => panic!("the table of stations lets a cache stand on blocks only"),
        });
        let cached = devices.next_back().expect("a cache stands on a device");
        let place = match devices.next() {
            Some(device) => Place::device(device),
            None => Place::memory(cached.block_width()),
        };
        Ok(Medium::Blocks(Box::new(Cache::new(self, place, cached))))
    }
}
