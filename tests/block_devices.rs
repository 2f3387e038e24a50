//! The conformance suite of block devices: a table of devices, to which a new station adds one row.
//!
//! | part | test |
//! |---|---|
//! | `table` | the devices |
//! | `model` | random requests, compared with an array of blocks |
//! | `threads` | requests of several threads at once |
//! | `cuts` | requests of several threads, and power cuts |

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
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use table::Opened;

const BLOCK: usize = 4096;

/// Returns true for `cases` cases of a test on one device, or as long as `BLOCK_DEVICE_SECONDS` says.
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

/// Asserts that the top station counted the requested blocks, and that each station sent what those below received.
fn check_account(opened: &Opened, received: u64, read: u64) {
    let (name, account) = (opened.name, opened.device.account());
    assert_eq!(account.received.total(), received, "{name}: blocks written to it");
    match opened.reads_more {
        true => assert!(account.read_blocks >= read, "{name}: {read} blocks read from it"),
        false => assert_eq!(account.read_blocks, read, "{name}: blocks read from it"),
    }
    check_sums(name, &account);
}

fn check_sums(name: &str, account: &Account) {
    let mut below = BTreeMap::new();
    for (cause, content, blocks) in account.below.iter().flat_map(|below| below.received.entries()) {
        *below.entry((cause, content)).or_insert(0) += blocks;
    }
    let sent: BTreeMap<_, u64> =
        account.sent.entries().map(|(cause, content, blocks)| ((cause, content), blocks)).collect();
    let is_medium = account.below.is_empty();
    assert!(is_medium || sent == below, "{name}: {} sent {sent:?}, but below were received {below:?}", account.station);
    account.below.iter().for_each(|below| check_sums(name, below));
}
