//! The words that name the policies, and what reads their options: a row for each.
//!
//! A row reads the options of the whole term of `sfs`, its own among them. Who brings policies of its own makes
//! [`Policies`] with more rows, and a [`Kind`](crate::expression::Kind) whose `grouping` and `cleaner` take their words
//! ([`with_options`](crate::expression::Kind::with_options)).

use super::by_hotness::HotnessSettings;
use super::cleaners::{CostBenefit, CostHotness, Greedy};
use super::dac::Dac;
use super::one::One;
use super::sepbit::SepBit;
use super::{Cleaner, GroupingSettings};
use crate::expression::{ExpressionError, Row, Settings};
use std::sync::Arc;

/// How a grouping's options are read.
pub type ReadGrouping = fn(&Settings) -> Result<Arc<dyn GroupingSettings>, ExpressionError>;
/// How a cleaner's options are read.
pub type ReadCleaner = fn(&Settings) -> Result<Arc<dyn Cleaner>, ExpressionError>;

/// The policies that a term of `sfs` can name.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    /// Which group a block is written in.
    pub groupings: &'static [Row<ReadGrouping>],
    /// Which segment is cleaned.
    pub cleaners: &'static [Row<ReadCleaner>],
}

/// The policies of this program.
pub static POLICIES: Policies = Policies { groupings: GROUPINGS, cleaners: CLEANERS };

const GROUPINGS: &[Row<ReadGrouping>] = &[
    Row {
        word: "sfs",
        about: "the group whose hotness is nearest to the block's",
        value: |settings| Ok(Arc::new(HotnessSettings::read(settings))),
    },
    Row {
        word: "sepbit",
        about: "by how long the block lived before (6 groups)",
        value: |_| Ok(Arc::new(SepBit::new())),
    },
    Row {
        word: "dac",
        about: "one group hotter at each write, one colder at each cleaning (6 groups)",
        value: |_| Ok(Arc::new(Dac)),
    },
    Row { word: "none", about: "one group", value: |_| Ok(Arc::new(One)) },
];

const CLEANERS: &[Row<ReadCleaner>] = &[
    Row {
        word: "cost-hotness",
        about: "(1-u)/(2u h): few live blocks, and those cold",
        value: |_| Ok(Arc::new(CostHotness)),
    },
    Row {
        word: "cost-benefit",
        about: "(1-u)/(2u) age: few live blocks, not written for long",
        value: |_| Ok(Arc::new(CostBenefit)),
    },
    Row { word: "greedy", about: "the fewest live blocks", value: |_| Ok(Arc::new(Greedy)) },
];
