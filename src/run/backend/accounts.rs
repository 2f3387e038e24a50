//! What the accounts of a block device, and of all below it, tell of a run.

use super::{Told, check, rows};
use crate::device::{Account, FlashAccount};
use crate::label::{Cause, Content};
use crate::report::{FlashResult, LedgerRow, SumCheck, TranslationResult, Wear, wear_bins};
use crate::run::engine::Served;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;

/// A station of the tree of accounts, from the top down.
struct Node<'a> {
    /// The station's name; of several with one name, the second is called `zns-2`.
    name: String,
    account: &'a Account,
}

/// All stations of the tree, each before those below it.
fn nodes(root: &Account) -> Vec<Node<'_>> {
    fn add<'a>(account: &'a Account, nodes: &mut Vec<Node<'a>>) {
        let namesakes = nodes.iter().filter(|node| node.account.station == account.station).count();
        let name = match namesakes {
            0 => account.station.to_string(),
            more => format!("{}-{}", account.station, more + 1),
        };
        nodes.push(Node { name, account });
        account.below.iter().for_each(|below| add(below, nodes));
    }
    let mut all = Vec::new();
    add(root, &mut all);
    all
}

/// Whether the station stores, as nothing is below it.
fn is_medium(account: &Account) -> bool {
    account.below.is_empty()
}

/// Bytes that the media have stored.
pub fn stored_bytes(account: &Account) -> u64 {
    match is_medium(account) {
        false => account.below.iter().map(stored_bytes).sum(),
        true => account.sent.total() * BLOCK_BYTES,
    }
}

/// What the accounts tell: `since` counting began, and for wear, which has no beginning but the new drive, of `all`.
/// `served` is what the workload asked the topmost station for; without it, a file system above asked.
pub fn told(since: &Account, all: &Account, exported_bytes: u64, served: Option<&Served>) -> Told {
    let nodes = nodes(since);
    let flashes: Vec<&FlashAccount> = nodes.iter().filter_map(|node| node.account.flash.as_ref()).collect();
    let mut events = BTreeMap::new();
    for (name, count) in nodes.iter().flat_map(|node| &node.account.events) {
        *events.entry(name.to_string()).or_default() += count;
    }
    Told {
        census: None,
        ledger: nodes
            .iter()
            .flat_map(|node| rows(&node.name, &node.account.sent, BLOCK_BYTES))
            .collect::<Vec<LedgerRow>>(),
        media: nodes.iter().filter(|node| is_medium(node.account)).map(|node| node.name.clone()).collect(),
        flash: flash_of(&flashes, exported_bytes),
        translation: TranslationResult { station: since.station.to_string(), mapping_reads: 0, events },
        wear: wear(all),
        sums: sums(&nodes, served),
        warnings: all.all_warnings(),
    }
}

/// The flash of all drives together: in pages of 4 KiB, if theirs differ.
fn flash_of(flashes: &[&FlashAccount], exported_bytes: u64) -> FlashResult {
    let first = flashes.first();
    let is_alike = flashes.iter().all(|flash| Some(flash.page_bytes) == first.map(|first| first.page_bytes));
    let page_bytes = first.filter(|_| is_alike).map_or(BLOCK_BYTES, |flash| flash.page_bytes);
    let pages = |of: fn(&FlashAccount) -> u64| {
        flashes.iter().map(|flash| of(flash) * flash.page_bytes).sum::<u64>() / page_bytes
    };
    FlashResult {
        programmed_pages: pages(|flash| flash.programmed_pages),
        read_pages: pages(|flash| flash.read_pages),
        erased_blocks: flashes.iter().map(|flash| flash.erased_blocks).sum(),
        effective_overprovisioning: None,
        page_bytes,
        pages_per_block: pages_of_a_block(flashes, page_bytes),
        blocks: flashes.iter().map(|flash| flash.raw_bytes / (flash.page_bytes * flash.pages_per_block).max(1)).sum(),
        raw_bytes: flashes.iter().map(|flash| flash.raw_bytes).sum(),
        exported_bytes,
        mapping_ram_bytes: None,
    }
}

/// Pages of an erase block; where drives differ, the mean of the blocks that were erased.
fn pages_of_a_block(flashes: &[&FlashAccount], page_bytes: u64) -> u64 {
    let pages = |flash: &FlashAccount| flash.pages_per_block * flash.page_bytes / page_bytes;
    let erased: u64 = flashes.iter().map(|flash| flash.erased_blocks).sum();
    match erased {
        0 => flashes.first().map_or(0, |flash| pages(flash)),
        _ => flashes.iter().map(|flash| flash.erased_blocks * pages(flash)).sum::<u64>() / erased,
    }
}

/// Erase counts of all drives; lives end with the drive whose life ends first.
fn wear(root: &Account) -> Wear {
    let nodes = nodes(root);
    let flashes: Vec<&FlashAccount> = nodes.iter().filter_map(|node| node.account.flash.as_ref()).collect();
    let host_bytes = root.received.total() * BLOCK_BYTES;
    let counts: Vec<u32> = flashes.iter().flat_map(|flash| flash.erase_counts.iter().copied()).collect();
    let tib = (1u64 << 40) as f64;
    let host = host_bytes as f64;
    let even = flashes.iter().filter(|flash| flash.programmed_pages > 0).map(|flash| {
        let programmed = (flash.programmed_pages * flash.page_bytes) as f64;
        host / programmed * flash.raw_bytes as f64 * f64::from(flash.endurance) / tib
    });
    let uneven = flashes.iter().filter_map(|flash| {
        let most = flash.erase_counts.iter().copied().max().filter(|most| *most > 0)?;
        Some(host * f64::from(flash.endurance) / f64::from(most) / tib)
    });
    let sum: f64 = counts.iter().map(|&count| f64::from(count)).sum();
    Wear {
        erase_count_min: counts.iter().copied().min().unwrap_or(0),
        erase_count_mean: sum / (counts.len() as f64).max(1.0),
        erase_count_max: counts.iter().copied().max().unwrap_or(0),
        endurance: flashes.iter().map(|flash| flash.endurance).min().unwrap_or(0),
        worn_out_blocks: flashes
            .iter()
            .map(|flash| flash.erase_counts.iter().filter(|&&count| count >= flash.endurance).count() as u64)
            .sum(),
        lifetime_host_tib: (host > 0.0).then(|| even.reduce(f64::min)).flatten(),
        lifetime_host_tib_first_block: (host > 0.0).then(|| uneven.reduce(f64::min)).flatten(),
        histogram: wear_bins(&counts),
    }
}

/// What every station received is what the one above it sent.
fn sums(nodes: &[Node], served: Option<&Served>) -> Vec<SumCheck> {
    let root = &nodes[0];
    let host = served.map(|served| {
        let received = &root.account.received;
        let blocks = |content: Content| served.written[content as usize].0;
        check(
            format!("blocks that {} received = blocks that the workload wrote, for each content", root.name),
            received.total(),
            Content::ALL.into_iter().map(blocks).sum(),
            Content::ALL.into_iter().all(|content| received.get(Cause::HostWrite, content) == blocks(content)),
        )
    });
    let passed = nodes.iter().filter(|node| !is_medium(node.account)).map(|node| {
        let below = || node.account.below.iter().map(|below| &below.received);
        let same = Cause::ALL.into_iter().flat_map(|cause| Content::ALL.map(|content| (cause, content))).all(
            |(cause, content)| {
                below().map(|received| received.get(cause, content)).sum::<u64>()
                    == node.account.sent.get(cause, content)
            },
        );
        check(
            format!(
                "blocks that the stations below {} received = blocks that it sent, for each cause and content",
                node.name
            ),
            below().map(|received| received.total()).sum(),
            node.account.sent.total(),
            same,
        )
    });
    host.into_iter().chain(passed).collect()
}
