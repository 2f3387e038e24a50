//! Campaigns: random rounds for some seconds, for the time in an environment variable, or as many as `CAMPAIGN_ROUNDS` says.

use flashpath::random::Random;
use std::time::{Duration, Instant};

/// A campaign with its time budget.
pub struct Campaign {
    name: &'static str,
    until: Instant,
    /// The number of rounds, whatever time they take.
    rounds: Option<u64>,
    /// The next seed; `CAMPAIGN_SEED` is the first.
    seed: u64,
    first: u64,
}

impl Campaign {
    /// A campaign for the seconds in the environment variable `budget`, or a few.
    pub fn new(name: &'static str, budget: &str) -> Campaign {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let seconds = number(budget).unwrap_or(3);
        let first = number("CAMPAIGN_SEED").unwrap_or(1);
        let until = Instant::now() + Duration::from_secs(seconds);
        Campaign { name, until, rounds: number("CAMPAIGN_ROUNDS"), seed: first, first }
    }

    /// The randomness and seed of the next round; `None` when the time is over, or all are done. There is at least one
    /// round.
    pub fn round(&mut self) -> Option<(Random, u64)> {
        let done = self.seed - self.first;
        let is_over = self.rounds.map_or(done > 0 && Instant::now() > self.until, |rounds| done >= rounds);
        if is_over {
            return None;
        }
        self.seed += 1;
        Some((Random::new(self.seed - 1, self.name), self.seed - 1))
    }

    /// Prints the result.
    pub fn end(&self, what: &str) {
        println!("campaign: {}: {} rounds from seed {}, {what}", self.name, self.seed - self.first, self.first);
    }
}
