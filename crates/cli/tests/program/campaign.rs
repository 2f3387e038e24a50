//! Campaigns: random rounds for some seconds, or for the time in an environment variable.

use flashpath::random::Random;
use std::time::{Duration, Instant};

/// A campaign with its time budget.
pub struct Campaign {
    name: &'static str,
    until: Instant,
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
        Campaign { name, until: Instant::now() + Duration::from_secs(seconds), seed: first, first }
    }

    /// The randomness and seed of the next round; `None` when the time is over. There is at least one round.
    pub fn round(&mut self) -> Option<(Random, u64)> {
        if self.seed > self.first && Instant::now() > self.until {
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
