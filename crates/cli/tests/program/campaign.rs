//! Campaigns: random work for some seconds, or for as long as an environment variable says.

use flashpath::random::Random;
use std::time::{Duration, Instant};

/// How long a campaign lasts.
pub struct Campaign {
    name: &'static str,
    until: Instant,
    /// The next seed; `CAMPAIGN_SEED` is the first.
    seed: u64,
    first: u64,
}

impl Campaign {
    /// For the seconds in the environment variable `budget`, or a few.
    pub fn new(name: &'static str, budget: &str) -> Campaign {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let seconds = number(budget).unwrap_or(3);
        let first = number("CAMPAIGN_SEED").unwrap_or(1);
        Campaign { name, until: Instant::now() + Duration::from_secs(seconds), seed: first, first }
    }

    /// The randomness of the next round, and its seed; `None` when the time is over. There is a round at least.
    pub fn round(&mut self) -> Option<(Random, u64)> {
        if self.seed > self.first && Instant::now() > self.until {
            return None;
        }
        self.seed += 1;
        Some((Random::new(self.seed - 1, self.name), self.seed - 1))
    }

    /// Says what it came to.
    pub fn end(&self, what: &str) {
        println!("campaign: {}: {} rounds from seed {}, {what}", self.name, self.seed - self.first, self.first);
    }
}
