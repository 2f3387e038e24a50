//! Sequential overwrites mixed with a few skewed random ones.

use crate::measure::generated;
use flashpath::random::Random;
use flashpath::workload::{Operation, Workload, WorkloadError};

/// Mixes a share of requests of a second generator into a first one, and ends with the first.
pub struct Mixed {
    sequential: Box<dyn Workload>,
    skewed: Box<dyn Workload>,
    share: f64,
    random: Random,
}

/// Sequential writes of one device, with Zipf-distributed writes as a `share` of the requests.
pub fn mixed(share: f64, device_bytes: u64) -> Box<dyn Workload> {
    Box::new(Mixed {
        sequential: generated("sequential:writes=1x", device_bytes),
        skewed: generated("zipf:theta=1.2,writes=1x", device_bytes),
        share,
        random: Random::new(1, "mixed"),
    })
}

impl Workload for Mixed {
    fn name(&self) -> &str {
        "mixed"
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        for served in 0..limit {
            let is_skewed = self.random.unit() < self.share;
            let from = if is_skewed { &mut self.skewed } else { &mut self.sequential };
            if from.next_batch(batch, 1)? == 0 {
                return Ok(served);
            }
        }
        Ok(limit)
    }

    fn progress(&self) -> Option<f64> {
        self.sequential.progress()
    }
}
