//! The generators and their options, with defaults.

use super::Setup;
use super::flash_cache;
use super::pattern::{Sequential, Uniform};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::label::Content;
use crate::workload::Workload;
use crate::workload::draw::distribution::{Bell, SelfSimilar, Zipf};

const WRITES: OptionKind = OptionKind {
    name: "writes",
    values: Values::Amount,
    default: "2x",
    about: "bytes written, rounded up to whole requests; without writes, bytes requested",
};
const REQUEST: OptionKind = OptionKind {
    name: "request",
    values: Values::Size(512, 1 << 30),
    default: "4K",
    about: "the size of a request; offsets are multiples of it",
};
const READS: OptionKind = OptionKind {
    name: "reads",
    values: Values::Share(0.0, 1.0),
    default: "0%",
    about: "the share of the requests that read",
};
const DISCARDS: OptionKind = OptionKind {
    name: "discards",
    values: Values::Share(0.0, 1.0),
    default: "0%",
    about: "the share of the requests that discard (trim)",
};
const SPAN: OptionKind = OptionKind {
    name: "span",
    values: Values::Share(1e-6, 1.0),
    default: "100%",
    about: "the share of the device addressed, from its start",
};
const CONTENT: OptionKind = OptionKind {
    name: "content",
    values: Values::Choice(words::<Content>),
    default: "data",
    about: "the content of the writes",
};
impl Choice for Content {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("data", Content::Data, "a file's bytes"),
        ("metadata", Content::Metadata, "a file system's own structures"),
        ("journal", Content::Journal, "a journal's blocks"),
    ];
}

const SCATTER_RANKS: OptionKind = OptionKind {
    name: "scatter",
    values: Values::Switch,
    default: "on",
    about: "on: ranks are scattered over the span, without collisions; off: they are in order",
};

/// A generator of places: its own options, then the common ones.
macro_rules! generator {
    ($make:expr, $name:literal, $about:literal $(, $own:expr)*) => {
        Generator {
            kind: &Kind {
                name: $name,
                about: $about,
                options: &[$($own,)* WRITES, REQUEST, READS, DISCARDS, SPAN, CONTENT],
            },
            make: |term, settings, device_bytes, seed| {
                const OF_PLACES: fn(Setup, &Settings) -> Generated = $make;
                OF_PLACES(Setup::new(term, settings, device_bytes, seed)?, settings)
            },
        }
    };
}

/// A generator's workload.
type Generated = Result<Box<dyn Workload>, ExpressionError>;

/// A generator's kind and its constructor.
pub(super) struct Generator {
    pub kind: &'static Kind,
    /// For a device of these bytes, with this seed.
    pub make: fn(&Term, &Settings, u64, u64) -> Generated,
}

/// The generators in the order of listings.
pub(super) static GENERATORS: [Generator; 8] = [
    generator!(
        |setup, _| Ok(setup.stream(Sequential::new)),
        "sequential",
        "sequential requests, starting over at the end of the span"
    ),
    generator!(|setup, _| Ok(setup.stream(Uniform::new)), "uniform", "every block is equally likely"),
    generator!(
        |setup, settings| Ok(setup.ranked(settings, |n| Zipf::new(n, settings.real("theta")))),
        "zipf",
        "the k-th most popular block has a weight of k^-theta, as in fio's zipf",
        OptionKind {
            name: "theta",
            values: Values::Real(0.0, 10.0),
            default: "1.2",
            about: "the skew: 0 is uniform, database traces are near 1",
        },
        SCATTER_RANKS
    ),
    generator!(
        |setup, settings| Ok(setup.ranked(settings, |n| SelfSimilar::new(n, settings.real("h")))),
        "pareto",
        "a share h of the blocks gets 1 - h of the requests, and so on inside each part, as in fio's pareto",
        OptionKind {
            name: "h",
            values: Values::Real(0.001, 0.999),
            default: "0.2",
            about: "the skew: 0.2 is the 80-20 rule, 0.5 is uniform",
        },
        SCATTER_RANKS
    ),
    generator!(
        |setup, settings| Ok(setup.ranked(settings, |n| Bell::new(n, settings.share("deviation")))),
        "normal",
        "a bell curve around the middle of the span, as in fio's normal",
        OptionKind {
            name: "deviation",
            values: Values::Share(0.0, 1.0),
            default: "20%",
            about: "fio's deviation: a window of this share, at most 50%, that widens a bell of deviation 8.3%",
        },
        SCATTER_RANKS
    ),
    generator!(
        Setup::hot_cold,
        "hotcold",
        "a share r of the blocks gets a share f of the requests, uniformly in each part; hot writes are stream 0, cold 1",
        OptionKind {
            name: "r",
            values: Values::Share(0.0001, 0.9999),
            default: "20%",
            about: "the share of the blocks that is hot",
        },
        OptionKind {
            name: "f",
            values: Values::Share(0.0, 1.0),
            default: "80%",
            about: "the share of the requests to hot blocks; may be less than r",
        },
        OptionKind {
            name: "scatter",
            values: Values::Switch,
            default: "off",
            about: "off: the hot blocks are the first of the span; on: they are scattered over it",
        }
    ),
    generator!(
        Setup::cache,
        "cache",
        "a flash cache's two engines: buckets rewritten at random (stream 1), and regions written whole, the oldest first (stream 2)",
        OptionKind {
            name: "small",
            values: Values::Share(0.0001, 0.9999),
            default: "4%",
            about: "the share of the span that is buckets, of one request each; the first blocks",
        },
        OptionKind {
            name: "f",
            values: Values::Share(0.0, 1.0),
            default: "50%",
            about: "the share of the bytes that is written to buckets",
        },
        OptionKind {
            name: "region",
            values: Values::Size(4096, 1 << 40),
            default: "16M",
            about: "the size of a region, which is written at once; a request at least",
        }
    ),
    Generator { kind: &flash_cache::KIND, make: flash_cache::make },
];
