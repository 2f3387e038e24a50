//! A victim policy of `page` that weighs cost, age and erases (CAT: Chiang and Chang, Journal of Systems and Software,
//! 1999).
//!
//! The victim has the smallest u/(1-u) x erases / age, with u the valid share of its pages.

use flashpath::device::nand::{Geometry, Nand, Timing};
use flashpath::expression::{ExpressionError, Kind, OptionKind, Row, Term, Values, words_of};
use flashpath::translation::page_level::{KIND, PageLevel, PageSettings, RamMap, ReadVictim, VICTIMS};
use flashpath::translation::{Candidate, FlashLayer, VictimChooser, VictimPolicy};
use std::sync::{Arc, LazyLock};

/// The policy.
#[derive(Clone, Debug)]
pub struct CostAgeTimes;

impl VictimChooser for CostAgeTimes {
    fn choose(&mut self, candidates: &[Candidate], now: u64) -> usize {
        let score = |candidate: &Candidate| {
            // A block without invalid pages frees nothing, at an infinite cost.
            let cost = f64::from(candidate.valid) / f64::from(candidate.invalid);
            let age = (now - candidate.touched + 1) as f64;
            cost * f64::from(candidate.erases + 1) / age
        };
        let scores = candidates.iter().map(score).enumerate();
        scores.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index).expect("there is a candidate")
    }
}

/// The victim policies of the library and this one. A table lives as long as the program.
static VICTIMS_WITH_OWN: LazyLock<Vec<Row<ReadVictim>>> = LazyLock::new(|| {
    let own: Row<ReadVictim> = Row {
        word: "cost-age-times",
        about: "the smallest u/(1-u) x erases / age, with u the valid share",
        value: |_| Ok(VictimPolicy::Chosen(Arc::new(CostAgeTimes))),
    };
    [VICTIMS, &[own]].concat()
});

/// The station `page`, whose `victim` takes `cost-age-times`.
pub static PAGE: LazyLock<&'static Kind> = LazyLock::new(|| {
    let victim = *KIND.options.iter().find(|option| option.name == "victim").expect("page has victims");
    KIND.with_options(vec![OptionKind { values: Values::Choice(|| words_of(&VICTIMS_WITH_OWN)), ..victim }])
});

/// The options of `page` with this policy in the table.
#[derive(Debug)]
pub struct Settings(PageSettings);

impl FlashLayer for Settings {
    type On<T: Timing + Send + 'static> = PageLevel<T, RamMap>;

    fn read(term: &Term, geometry: &Geometry) -> Result<Settings, ExpressionError> {
        Ok(Settings(PageSettings::read_with(term, geometry, *PAGE, &VICTIMS_WITH_OWN)?))
    }

    fn written_out(&self) -> &str {
        self.0.written_out()
    }

    fn exported_pages(&self) -> u64 {
        self.0.exported_pages()
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> Self::On<T> {
        self.0.on(flash, seed)
    }
}
