//! The figures of `--stats`: the writes of clients and of media, from the accounts of the stations.

use flashpath::device::Account;
use flashpath::label::{Cause, Content};
use flashpath::units::{BLOCK_BYTES, human_size};

/// The causes of copies.
const COPYING: [Cause; 9] = [
    Cause::SegmentCleaning,
    Cause::Reclaim,
    Cause::Merge,
    Cause::GarbageCollection,
    Cause::WearLevelling,
    Cause::Fold,
    Cause::Refresh,
    Cause::Scrub,
    Cause::BadBlock,
];

/// Blocks of 4 KiB since the path was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Blocks that clients wrote, by content.
    pub received: [u64; Content::COUNT],
    /// Copied blocks that media stored, by content.
    pub copied: [u64; Content::COUNT],
    /// All blocks that media stored.
    pub stored: u64,
}

impl Figures {
    /// The figures of a path with this account at the top.
    pub fn of(top: &Account) -> Figures {
        let mut figures = Figures::default();
        for (label, blocks) in top.received.entries() {
            figures.received[label.content as usize] += blocks;
        }
        figures.add_media(top);
        figures
    }

    fn add_media(&mut self, account: &Account) {
        account.below.iter().for_each(|below| self.add_media(below));
        if account.below.is_empty() {
            for (label, blocks) in account.sent.entries() {
                self.stored += blocks;
                if COPYING.contains(&label.cause) {
                    self.copied[label.content as usize] += blocks;
                }
            }
        }
    }

    /// Blocks stored over blocks received; `None` before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        let received: u64 = self.received.iter().sum();
        (received > 0).then(|| self.stored as f64 / received as f64)
    }
}

/// Sizes by content as text: `data 1.50 GiB, journal 3.00 MiB`.
pub fn by_content(blocks: &[u64; Content::COUNT]) -> String {
    let parts: Vec<String> = Content::ALL
        .into_iter()
        .filter(|content| blocks[*content as usize] > 0)
        .map(|content| format!("{} {}", content.name(), human_size((blocks[content as usize] * BLOCK_BYTES) as f64)))
        .collect();
    if parts.is_empty() { "nothing".to_string() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::label::{Label, Tally};

    #[test]
    fn copies_exclude_mapping_blocks_and_amplification_counts_all() {
        let mut received = Tally::default();
        received.add(Label::host(Content::Data), 100);
        let mut stored = received.clone();
        stored.add(Label { cause: Cause::Reclaim, ..Label::host(Content::Journal) }, 30);
        stored.add(Label::first(Cause::Mapping, Content::Mapping), 20);
        let media = Account { station: "zns", received: stored.clone(), sent: stored.clone(), ..Account::default() };
        let idle = Account { station: "conv", ..Account::default() };
        let top =
            Account { station: "dm-zoned", received, sent: stored, below: vec![idle, media], ..Account::default() };
        let figures = Figures::of(&top);
        assert_eq!((figures.received, figures.copied, figures.stored), ([100, 0, 0, 0], [0, 0, 30, 0], 150));
        assert_eq!(figures.write_amplification(), Some(1.5));
        assert_eq!(by_content(&figures.copied), "journal 120 KiB");
        assert_eq!(by_content(&Figures::default().copied), "nothing");
        assert_eq!(Figures::default().write_amplification(), None);
    }
}
