//! A grouping of `sfs` by the interval between the last two writes of a block.
//!
//! The first group has the blocks whose previous version lived for at most `shortest` ticks; each further one has
//! intervals eight times as long. The last group has all others, and new blocks.

use flashpath::expression::{ExpressionError, Kind, OptionKind, Row, Settings, Term, Values, words_of};
use flashpath::fs::sfs::placement::table::{POLICIES, Policies, ReadGrouping};
use flashpath::fs::sfs::placement::{BlockView, Grouping, GroupingSettings, Tick};
use flashpath::fs::sfs::{self, SfsSettings};
use flashpath::fs::station::VolumeSettings;
use std::sync::{Arc, LazyLock};

const GROUPS: usize = 4;

/// The grouping, and its own settings.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The longest interval of the first group, in ticks of the clock of hotness.
    pub shortest: u64,
}

impl Grouping for Interval {
    fn groups(&self) -> usize {
        GROUPS
    }

    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize {
        if block.block.writes == 0 {
            return GROUPS - 1;
        }
        let interval = now.0.saturating_sub(block.block.modified.0);
        (0..GROUPS - 1).find(|&group| interval >> (3 * group) <= self.shortest).unwrap_or(GROUPS - 1)
    }
}

fn read(settings: &Settings) -> Result<Arc<dyn GroupingSettings>, ExpressionError> {
    Ok(Arc::new(Interval { shortest: settings.count("shortest") }))
}

/// The groupings of the library and this one. A table lives as long as the program.
static POLICIES_WITH_OWN: LazyLock<Policies> = LazyLock::new(|| {
    let own: Row<ReadGrouping> = Row { word: "interval", about: "by the time since the previous write", value: read };
    Policies { groupings: Vec::leak([POLICIES.groupings, &[own]].concat()), ..POLICIES }
});

/// The station `sfs`, whose `grouping` takes `interval`.
pub static SFS: LazyLock<&'static Kind> = LazyLock::new(|| {
    let grouping = *sfs::KIND.options.iter().find(|option| option.name == "grouping").expect("sfs has groupings");
    let shortest = OptionKind {
        name: "shortest",
        values: Values::Count(1, 1 << 40),
        default: "4096",
        about: "grouping=interval: the longest interval of the first group, in blocks written or microseconds",
    };
    let words = Values::Choice(|| words_of(POLICIES_WITH_OWN.groupings));
    sfs::KIND.with_options(vec![OptionKind { values: words, ..grouping }, shortest])
});

/// Reads a term of [`SFS`].
pub fn read_sfs(term: &Term) -> Result<Arc<dyn VolumeSettings>, ExpressionError> {
    Ok(Arc::new(SfsSettings::read_with(term, *SFS, &POLICIES_WITH_OWN)?))
}
