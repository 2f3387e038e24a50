//! What a generator can be written as: the options of each, with their defaults.

use super::Setup;
use super::distribution::{Bell, SelfSimilar, Zipf};
use super::pattern::{Sequential, Uniform};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Values, words};
use crate::label::Content;
use crate::workload::Workload;

const WRITES: OptionKind = OptionKind {
    name: "writes",
    values: Values::Amount,
    default: "2x",
    about: "how much is written, rounded up to whole requests; if nothing is written, how much is requested",
};
const REQUEST: OptionKind = OptionKind {
    name: "request",
    values: Values::Size(512, 1 << 30),
    default: "4K",
    about: "the size of a request, and what its offset is a multiple of",
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
    about: "the share of the device that is addressed, from its start",
};
const CONTENT: OptionKind = OptionKind {
    name: "content",
    values: Values::Choice(words::<Content>),
    default: "data",
    about: "what the writes hold",
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
    about: "on: the ranks lie scattered over the span, each at a place of its own; off: side by side, in order",
};

/// A generator: its kind has its own options, then those that all of them take.
macro_rules! generator {
    ($make:expr, $name:literal, $about:literal $(, $own:expr)*) => {
        Generator {
            kind: &Kind {
                name: $name,
                about: $about,
                options: &[$($own,)* WRITES, REQUEST, READS, DISCARDS, SPAN, CONTENT],
            },
            make: $make,
        }
    };
}

/// A workload, or why there is none.
type Made = Result<Box<dyn Workload>, ExpressionError>;

/// A generator, and what makes it.
pub(super) struct Generator {
    pub kind: &'static Kind,
    pub make: fn(Setup, &Settings) -> Made,
}

/// The generators, as they are listed.
pub(super) static GENERATORS: [Generator; 6] = [
    generator!(
        |setup, _| Ok(setup.stream(Sequential::new)),
        "sequential",
        "one request behind the other, and round again"
    ),
    generator!(|setup, _| Ok(setup.stream(Uniform::new)), "uniform", "every place is as likely as any other"),
    generator!(
        |setup, settings| Ok(setup.ranked(settings, |n| Zipf::new(n, settings.real("theta")))),
        "zipf",
        "the k-th most popular place has a weight of k^-theta, as fio's zipf",
        OptionKind {
            name: "theta",
            values: Values::Real(0.0, 10.0),
            default: "1.2",
            about: "how steep: 0 is uniform, database traces are near 1",
        },
        SCATTER_RANKS
    ),
    generator!(
        |setup, settings| Ok(setup.ranked(settings, |n| SelfSimilar::new(n, settings.real("h")))),
        "pareto",
        "a share h of the places gets 1 - h of the requests, and so on inside each part, as fio's pareto",
        OptionKind {
            name: "h",
            values: Values::Real(0.001, 0.999),
            default: "0.2",
            about: "how skewed: 0.2 is the 80-20 rule, 0.5 is uniform",
        },
        SCATTER_RANKS
    ),
    generator!(
        |setup, settings| Ok(setup.ranked(settings, |n| Bell::new(n, settings.share("deviation")))),
        "normal",
        "a bell around the middle of the places, as fio's normal",
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
        "a share r of the places gets a share f of the requests, each part evenly; hot writes are stream 0, cold 1",
        OptionKind {
            name: "r",
            values: Values::Share(0.0001, 0.9999),
            default: "20%",
            about: "the share of the places that is hot",
        },
        OptionKind {
            name: "f",
            values: Values::Share(0.0, 1.0),
            default: "80%",
            about: "the share of the requests that go to the hot places; it may be less than r",
        },
        OptionKind {
            name: "scatter",
            values: Values::Switch,
            default: "off",
            about: "off: the hot places are the first of the span; on: they lie scattered over it",
        }
    ),
];
