//! Warnings of a path and a workload that do not go together: one line, with the option that would.

use crate::device::Account;
use crate::label::{Cause, Tally};
use crate::units::{BLOCK_BYTES, human_size};

/// Copies of reclaim for each block written beyond which the conventional zones are too few.
const MOST_RECLAIMED: f64 = 1.0;

/// The warnings of the stations of an account of the count, from the top down.
pub(super) fn warnings(since: &Account) -> Vec<String> {
    let own = match since.station {
        "dm-zoned" => few_conventional_zones(since),
        "sfs" => below_a_segment(since),
        _ => None,
    };
    own.into_iter().chain(since.below.iter().flat_map(warnings)).collect()
}

fn few_conventional_zones(since: &Account) -> Option<String> {
    let written = since.received.total();
    let reclaimed = blocks_for(&since.sent, Cause::Reclaim);
    let copies = reclaimed as f64 / written.max(1) as f64;
    (copies > MOST_RECLAIMED).then(|| {
        format!(
            "dm-zoned: reclaim copied {copies:.1} blocks for each block written: its conventional zones are few for what is written at random; \
             give it more, with conventional= of zns or a larger conv"
        )
    })
}

fn below_a_segment(since: &Account) -> Option<String> {
    let segment_blocks = since.map.as_ref()?.size;
    let written = since.received.total();
    (written > 0 && written < segment_blocks).then(|| {
        format!(
            "sfs: {} were written, less than a segment of {}: groups and cleaning had nothing to do; write more, or take a smaller segment=",
            human_size((written * BLOCK_BYTES) as f64),
            human_size((segment_blocks * BLOCK_BYTES) as f64)
        )
    })
}

fn blocks_for(tally: &Tally, cause: Cause) -> u64 {
    tally.entries().filter(|(label, _)| label.cause == cause).map(|(_, blocks)| blocks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::UnitMap;
    use crate::label::{Content, Label};

    fn account(station: &'static str, received: u64, reclaimed: u64) -> Account {
        let tally = |cause, blocks| {
            let mut tally = Tally::default();
            tally.add(Label { cause, ..Label::host(Content::Data) }, blocks);
            tally
        };
        let map = Some(UnitMap { size: 1024, ..UnitMap::default() });
        let (received, sent) = (tally(Cause::HostWrite, received), tally(Cause::Reclaim, reclaimed));
        Account { station, received, sent, map, ..Account::default() }
    }

    #[test]
    fn a_path_that_does_not_fit_its_load_is_told_with_its_option() {
        let above = |below| Account { station: "cache", below: vec![below], ..Account::default() };
        assert!(warnings(&above(account("dm-zoned", 100, 250)))[0].contains("2.5 blocks for each block written"));
        assert!(warnings(&account("dm-zoned", 100, 90)).is_empty());
        assert!(warnings(&account("sfs", 1000, 0))[0].contains("less than a segment of 4.00 MiB"));
        assert!(warnings(&account("sfs", 1024, 0)).is_empty() && warnings(&account("sfs", 0, 0)).is_empty());
    }
}
