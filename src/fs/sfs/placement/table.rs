//! The policies' names and the readers of their options: one row for each policy.
//!
//! A row reads the options of the whole `sfs` term, including its own. Callers with further policies make [`Policies`]
//! with more rows, and a [`Kind`](crate::expression::Kind) whose `grouping` and `cleaner` accept their names
//! ([`with_options`](crate::expression::Kind::with_options)).

use super::by_hotness::HotnessSettings;
use super::cleaners::{CostBenefit, CostHotness, CostLifetime, Fifo, Greedy};
use super::dac::Dac;
use super::lifetime::LifetimeSettings;
use super::midas::MidasSettings;
use super::one::One;
use super::oracle::OracleSettings;
use super::sepbit::SepBit;
use super::{Cleaner, GroupingSettings};
use crate::expression::{ExpressionError, Row, Settings};
use std::sync::Arc;

/// Reads the options of a grouping.
pub type ReadGrouping = fn(&Settings) -> Result<Arc<dyn GroupingSettings>, ExpressionError>;
/// Reads the options of a cleaner.
pub type ReadCleaner = fn(&Settings) -> Result<Arc<dyn Cleaner>, ExpressionError>;

/// The policies available to `sfs` terms.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    /// The groupings.
    pub groupings: &'static [Row<ReadGrouping>],
    /// The cleaners.
    pub cleaners: &'static [Row<ReadCleaner>],
}

/// The policies of this program.
pub static POLICIES: Policies = Policies { groupings: GROUPINGS, cleaners: CLEANERS };

const GROUPINGS: &[Row<ReadGrouping>] = &[
    Row {
        word: "sfs",
        about: "the group with the hotness nearest to that of the block",
        value: |settings| Ok(Arc::new(HotnessSettings::read(settings))),
    },
    Row {
        word: "sepbit",
        about: "by the previous lifespan of the block (6 groups)",
        value: |_| Ok(Arc::new(SepBit::new())),
    },
    Row {
        word: "dac",
        about: "one group hotter at each write, one colder at each cleaning (6 groups)",
        value: |_| Ok(Arc::new(Dac)),
    },
    Row {
        word: "midas",
        about: "by the cleanings that a block survived, in groups of modelled sizes (up to 16 groups)",
        value: |_| Ok(Arc::new(MidasSettings)),
    },
    Row {
        word: "lifetime",
        about: "by the lifetime expected of a block, from all of its lives (4 groups)",
        value: |_| Ok(Arc::new(LifetimeSettings)),
    },
    Row {
        word: "oracle",
        about: "by the time at which a block will die, known in simulations of block workloads (8 groups)",
        value: |_| Ok(Arc::new(OracleSettings)),
    },
    Row { word: "none", about: "one group", value: |_| Ok(Arc::new(One)) },
];

const CLEANERS: &[Row<ReadCleaner>] = &[
    Row { word: "cost-hotness", about: "(1-u)/(2u h): few and cold live blocks", value: |_| Ok(Arc::new(CostHotness)) },
    Row {
        word: "cost-benefit",
        about: "(1-u)/(2u) age: few and old live blocks",
        value: |_| Ok(Arc::new(CostBenefit)),
    },
    Row {
        word: "cost-lifetime",
        about: "(1-u)^2/(u r): few live blocks, of which few are expected to die",
        value: |_| Ok(Arc::new(CostLifetime)),
    },
    Row { word: "fifo", about: "the segment written first", value: |_| Ok(Arc::new(Fifo)) },
    Row { word: "greedy", about: "the fewest live blocks", value: |_| Ok(Arc::new(Greedy)) },
];
