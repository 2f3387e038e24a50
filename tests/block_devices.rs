//! The conformance suite of block devices, over one table of them: a new station is one row.
//!
//! | part | test |
//! |---|---|
//! | `table` | the devices |
//! | `model` | random requests against an array of blocks |
//! | `threads` | requests of several threads at once |
//! | `cuts` | several threads at once, and the power fails |

#[path = "block_devices/cuts.rs"]
mod cuts;
mod failing_disk;
#[path = "block_devices/model.rs"]
mod model;
mod power_cut;
#[path = "block_devices/table.rs"]
mod table;
#[path = "block_devices/threads.rs"]
mod threads;

use flashpath::device::Account;
use flashpath::label::Tally;
use std::time::{Duration, Instant};
use table::Opened;

const BLOCK: usize = 4096;

/// Answers true for so many cases of a test on one device, or as long as `BLOCK_DEVICE_SECONDS` says.
#[allow(clippy::disallowed_methods, reason = "a campaign has a time limit")]
fn budget(cases: u64) -> impl FnMut() -> bool {
    let seconds = std::env::var("BLOCK_DEVICE_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut left = cases;
    move || match until {
        Some(until) => Instant::now() < until,
        None => {
            let is_left = left > 0;
            left = left.saturating_sub(1);
            is_left
        }
    }
}

/// Asserts that the top counted the blocks it was asked for, and that each station sent what those below it received.
fn check_account(opened: &Opened, received: u64, read: u64) {
    let (name, account) = (opened.name, opened.device.account());
    assert_eq!(account.received.total(), received, "{name}: blocks that were written to it");
    match opened.reads_more {
        true => assert!(account.read_blocks >= read, "{name}: {read} blocks were read from it"),
        false => assert_eq!(account.read_blocks, read, "{name}: blocks that were read from it"),
    }
    check_sums(name, &account);
}

fn check_sums(name: &str, account: &Account) {
    let below: Tally = account.below.iter().flat_map(|below| below.received.entries()).collect();
    let (is_medium, lists) = (account.below.is_empty(), |tally: &Tally| tally.entries().collect::<Vec<_>>());
    let (sent, came) = (lists(&account.sent), lists(&below));
    assert!(is_medium || sent == came, "{name}: {} sent {sent:?}, and below came {came:?}", account.station);
    account.below.iter().for_each(|below| check_sums(name, below));
}
