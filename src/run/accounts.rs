//! Ledger, wear and sums of a run, computed only from the accounts of the path's stations.

use super::maps::station_map;
use crate::device::{
    Account, DriveAccount, FlashAccount, HandleAccount, ModesAccount, PageCover, PlacementAccount, WriteRequests,
};
use crate::expression::Choice;
use crate::label::{Cause, Content, Label, Tally};
use crate::report::{
    FlashResult, HandleResult, LedgerRow, ModeWear, PlacementResult, StationMap, StationResult, SumCheck,
    TranslationResult, Wear, WriteRequestsResult, wear_bins,
};
use crate::units::{BLOCK_BYTES, human_size};
use std::collections::BTreeMap;

/// A workload's writes by content: in blocks, and in the units of the top station.
pub type Written = [(u64, u64); Content::COUNT];

/// The parts of a result that follow from the accounts.
pub struct Accounted {
    /// The rows below the workload's.
    pub ledger: Vec<LedgerRow>,
    /// The stations of the ledger that are media.
    pub media: Vec<String>,
    /// The stations, each behind the one above it.
    pub stations: Vec<StationResult>,
    /// The write requests to the stations below a file system.
    pub write_requests: Vec<WriteRequestsResult>,
    pub flash: FlashResult,
    pub translation: TranslationResult,
    pub wear: Wear,
    pub sums: Vec<SumCheck>,
    /// The maps of the stations, from the top down.
    pub maps: Vec<StationMap>,
    /// The stations' warnings.
    pub warnings: Vec<String>,
}

/// A station of the tree of accounts, from the top down.
struct Node<'a> {
    /// The station's name; of several with one name, the second is called `zns-2`.
    name: String,
    /// The name of the station above; `workload` for the first.
    above: String,
    account: &'a Account,
}

/// All stations of the tree, each before those below it.
fn nodes(root: &Account) -> Vec<Node<'_>> {
    fn add<'a>(account: &'a Account, above: &str, nodes: &mut Vec<Node<'a>>) {
        let namesakes = nodes.iter().filter(|node| node.account.station == account.station).count();
        let name = match namesakes {
            0 => account.station.to_string(),
            more => format!("{}-{}", account.station, more + 1),
        };
        nodes.push(Node { name: name.clone(), above: above.to_string(), account });
        account.below.iter().for_each(|below| add(below, &name, nodes));
    }
    let mut all = Vec::new();
    add(root, "workload", &mut all);
    all
}

/// True if nothing is below the station.
fn is_medium(account: &Account) -> bool {
    account.below.is_empty()
}

/// Bytes of the unit in which the stations count: blocks, or flash pages for a drive that is the whole path.
fn unit_bytes(root: &Account) -> u64 {
    root.drive.as_ref().map_or(BLOCK_BYTES, |drive| drive.page_bytes)
}

/// Bytes stored by the media.
pub fn stored_bytes(root: &Account) -> u64 {
    fn stored(account: &Account) -> u64 {
        match is_medium(account) {
            false => account.below.iter().map(stored).sum(),
            true => account.sent.total(),
        }
    }
    stored(root) * unit_bytes(root)
}

/// What the media have stored since they were new, and the room that is left.
pub struct Stored {
    /// By label, in units of `unit_bytes`.
    pub tally: Tally,
    pub unit_bytes: u64,
    /// Erase blocks that are erased and unused; `None` without flash.
    pub free_blocks: Option<u64>,
}

impl Stored {
    /// Of all media below a station.
    pub fn of(root: &Account) -> Stored {
        fn add(account: &Account, tally: &mut Tally, free: &mut Option<u64>) {
            account.below.iter().for_each(|below| add(below, tally, free));
            if is_medium(account) {
                account.sent.entries().for_each(|(label, count)| tally.add(label, count));
            }
            if let Some(flash) = &account.flash {
                *free = Some(free.unwrap_or(0) + flash.free_blocks);
            }
        }
        let (mut tally, mut free_blocks) = (Tally::default(), None);
        add(root, &mut tally, &mut free_blocks);
        Stored { tally, unit_bytes: unit_bytes(root), free_blocks }
    }

    /// Bytes by cause and origin.
    pub fn by_cause_and_origin(&self) -> BTreeMap<(Cause, Cause), u64> {
        let mut bytes = BTreeMap::new();
        for (label, count) in self.tally.entries() {
            *bytes.entry((label.cause, label.origin)).or_default() += count * self.unit_bytes;
        }
        bytes
    }
}

/// The parts of a result that follow from the accounts: since the start of the count, and since the drive was new. Without
/// accounts there are no stations. `written` are the workload's writes to the top station; `None` if a file system wrote
/// to it. `amplification` is that of the count, if anything was written.
pub fn accounted(
    accounts: Option<(&Account, &Account)>,
    exported_bytes: u64,
    written: Option<&Written>,
    amplification: Option<f64>,
) -> Accounted {
    let nothing = Account::default();
    let (since, all) = accounts.unwrap_or((&nothing, &nothing));
    let nodes = if accounts.is_some() { nodes(since) } else { Vec::new() };
    let unit_bytes = unit_bytes(since);
    let mut events = BTreeMap::new();
    for (name, count) in nodes.iter().flat_map(|node| &node.account.events) {
        *events.entry(name.to_string()).or_default() += count;
    }
    Accounted {
        ledger: nodes.iter().flat_map(|node| ledger_rows(node, unit_bytes)).collect(),
        media: nodes.iter().filter(|node| is_medium(node.account)).map(|node| node.name.clone()).collect(),
        stations: nodes.iter().map(|node| station(node, unit_bytes)).collect(),
        write_requests: nodes.iter().filter_map(write_requests).collect(),
        flash: flash_of(&flashes(&nodes), since.drive.as_ref(), exported_bytes),
        translation: TranslationResult {
            station: since.station.to_string(),
            mapping_reads: since.drive.as_ref().map_or(0, |drive| drive.mapping_reads),
            events,
            placement: nodes.iter().find_map(|node| node.account.placement.as_deref()).map(placement),
        },
        wear: wear(all, amplification),
        sums: written
            .map(|written| written_sum(since, written))
            .into_iter()
            .chain(match &all.drive {
                None => stacked_sums(&nodes, &self::nodes(all)),
                Some(_) => drive_sums(since, all),
            })
            .chain(nodes.iter().filter_map(buffer_sum))
            .chain(nodes.iter().flat_map(placement_sums))
            .collect(),
        maps: nodes.iter().filter_map(|node| station_map(&node.name, node.account)).collect(),
        warnings: all.all_warnings().into_iter().chain(nodes.iter().flat_map(page_warnings)).collect(),
    }
}

/// The warnings of a drive of whole pages: of writes in part, and of reads of what was never written.
fn page_warnings(node: &Node) -> Vec<String> {
    let cover = node.account.cover.iter().flat_map(PageCover::warnings);
    cover.chain(padding_warning(node.account)).map(|warning| format!("{}: {warning}", node.name)).collect()
}

/// The warning of a layer whose flash was padded by more than a hundredth of what its host wrote.
fn padding_warning(account: &Account) -> Option<String> {
    let flash = account.below.first()?.flash.as_ref()?;
    let (padding, host) = (account.sent.of_cause(Cause::Padding), account.sent.of_cause(Cause::HostWrite));
    let (why, help) = match &account.buffer {
        None => ("each request ends with its own page of flash, as there is no write buffer", "take buffer=32M"),
        Some(_) => ("each flush ends with a page of flash that is not full", "take buffer-policy=protected"),
    };
    (padding * 100 > host).then(|| {
        format!(
            "{padding} units of padding were programmed beside {host} of the host: {why}; {help}, or write aligned multiples of {}",
            human_size(flash.program_bytes as f64)
        )
    })
}

fn flashes<'a>(nodes: &[Node<'a>]) -> Vec<&'a FlashAccount> {
    nodes.iter().filter_map(|node| node.account.flash.as_ref()).collect()
}

fn write_requests(node: &Node) -> Option<WriteRequestsResult> {
    let WriteRequests { calls, merged, max_bytes } = node.account.write_requests?;
    Some(WriteRequestsResult { station: node.name.clone(), calls, merged, max_bytes })
}

/// The place of a station, and its counts beside the ledger.
fn station(node: &Node, unit_bytes: u64) -> StationResult {
    let erased = |flash: &FlashAccount| {
        (flash.erased_blocks * flash.pages_per_block * flash.page_bytes) as f64 / BLOCK_BYTES as f64
    };
    StationResult {
        name: node.name.clone(),
        above: node.above.clone(),
        received: rows(&node.name, &node.account.received, unit_bytes).collect(),
        erased_blocks: node.account.flash.as_ref().map(erased),
    }
}

/// The ledger's rows of a station: what it sent, and what its write buffer joined.
fn ledger_rows(node: &Node, unit_bytes: u64) -> Vec<LedgerRow> {
    let sent = rows(&node.name, &node.account.sent, unit_bytes);
    let joined = node.account.buffer.iter().flat_map(|buffer| {
        let again = |(label, count): (Label, u64)| (Label::again(Cause::Joined, label.provenance()), count);
        let joined: Tally = buffer.joined.entries().map(again).collect();
        rows(&node.name, &joined, buffer.page_bytes).collect::<Vec<_>>()
    });
    sent.chain(joined).collect()
}

/// The ledger's rows of a station, from a tally of units of `unit_bytes`.
pub fn rows<'a>(station: &'a str, tally: &'a Tally, unit_bytes: u64) -> impl Iterator<Item = LedgerRow> + 'a {
    let per_unit = unit_bytes as f64 / BLOCK_BYTES as f64;
    tally.entries().map(move |(label, count)| row(station, label, count as f64 * per_unit))
}

/// A row of the ledger.
pub fn row(station: &str, label: Label, blocks: f64) -> LedgerRow {
    LedgerRow {
        station: station.to_string(),
        cause: label.cause.name().to_string(),
        origin: label.origin.name().to_string(),
        content: label.content.name().to_string(),
        blocks,
    }
}

/// A sum that holds if both sides are equal, and their parts are equal, too (`same`).
fn check(name: impl Into<String>, left: u64, right: u64, same: bool) -> SumCheck {
    SumCheck { name: name.into(), left: left as f64, right: right as f64, holds: same && left == right }
}

/// The flash of all drives together, in pages of 4 KiB if theirs differ.
fn flash_of(flashes: &[&FlashAccount], drive: Option<&DriveAccount>, exported_bytes: u64) -> FlashResult {
    let first = flashes.first();
    let is_alike = flashes.iter().all(|flash| Some(flash.page_bytes) == first.map(|first| first.page_bytes));
    let page_bytes = first.filter(|_| is_alike).map_or(BLOCK_BYTES, |flash| flash.page_bytes);
    let pages = |of: fn(&FlashAccount) -> u64| {
        flashes.iter().map(|flash| of(flash) * flash.page_bytes).sum::<u64>() / page_bytes
    };
    FlashResult {
        programmed_pages: pages(|flash| flash.programmed_pages),
        programs: flashes.iter().map(|flash| flash.programs).sum(),
        program_bytes: flashes.iter().map(|flash| flash.program_bytes).max().unwrap_or(BLOCK_BYTES),
        read_pages: pages(|flash| flash.read_pages),
        erased_blocks: flashes.iter().map(|flash| flash.erased_blocks).sum(),
        effective_overprovisioning: drive.map(|drive| drive.effective_overprovisioning),
        page_bytes,
        pages_per_block: pages_of_a_block(flashes, page_bytes),
        blocks: flashes.iter().map(|flash| flash.raw_bytes / (flash.page_bytes * flash.pages_per_block).max(1)).sum(),
        raw_bytes: flashes.iter().map(|flash| flash.raw_bytes).sum(),
        exported_bytes,
        mapping_ram_bytes: drive.map(|drive| drive.mapping_ram_bytes),
    }
}

/// Pages in an erase block; if drives differ, the mean over the erased blocks.
fn pages_of_a_block(flashes: &[&FlashAccount], page_bytes: u64) -> u64 {
    let pages = |flash: &FlashAccount| flash.pages_per_block * flash.page_bytes / page_bytes;
    let erased: u64 = flashes.iter().map(|flash| flash.erased_blocks).sum();
    match erased {
        0 => flashes.first().map_or(0, |flash| pages(flash)),
        _ => flashes.iter().map(|flash| flash.erased_blocks * pages(flash)).sum::<u64>() / erased,
    }
}

/// Erase counts of all drives; the lifetime ends with the first drive's.
///
/// A drive that is the whole path continues to wear with the write amplification of the count. Several drives share the
/// writes; their shares are those since they were new.
fn wear(root: &Account, amplification: Option<f64>) -> Wear {
    let flashes = flashes(&nodes(root));
    let host = (root.received.total() * unit_bytes(root)) as f64;
    let since_new = |flash: &&FlashAccount| -> Vec<u32> {
        flash.erase_counts.iter().map(|count| count + flash.worn_before).collect()
    };
    let counts: Vec<u32> = flashes.iter().flat_map(since_new).collect();
    let tib = (1u64 << 40) as f64;
    let of_all = flashes.iter().filter(|flash| flash.programmed_pages > 0).map(|flash| {
        let programmed = (flash.programmed_pages * flash.page_bytes) as f64;
        host / programmed * flash.raw_bytes as f64 * f64::from(flash.endurance) / tib
    });
    let of_counted = amplification.into_iter().flat_map(|amplification| {
        let lives = flashes.iter().map(|flash| flash.raw_bytes as f64 * f64::from(flash.endurance));
        lives.map(move |bytes| bytes / amplification / tib)
    });
    let uneven = flashes.iter().filter_map(|flash| {
        let most = flash.erase_counts.iter().copied().max().filter(|most| *most > 0)?;
        Some(host * f64::from(flash.endurance) / f64::from(most) / tib)
    });
    let even = match root.drive {
        Some(_) => of_counted.reduce(f64::min),
        None => of_all.reduce(f64::min),
    };
    let by_mode: Vec<&ModesAccount> = flashes.iter().filter_map(|flash| flash.by_mode.as_deref()).collect();
    let lives = |used: fn(&ModesAccount) -> f64| {
        let used = by_mode.iter().map(|modes| used(modes)).filter(|used| *used > 0.0);
        used.map(|used| host / used / tib).reduce(f64::min)
    };
    // An erase in SLC mode uses less of a life than another, so that shares of lives count, and not erases.
    let (even, uneven) = match by_mode.is_empty() {
        true => (even, uneven.reduce(f64::min)),
        false => (lives(life_used), lives(|modes| modes.most_used)),
    };
    let sum: f64 = counts.iter().map(|&count| f64::from(count)).sum();
    Wear {
        erase_count_min: counts.iter().copied().min().unwrap_or(0),
        erase_count_mean: sum / (counts.len() as f64).max(1.0),
        erase_count_max: counts.iter().copied().max().unwrap_or(0),
        endurance: flashes.iter().map(|flash| flash.endurance).min().unwrap_or(0),
        worn_out_blocks: flashes.iter().map(|flash| worn_out_blocks(flash)).sum(),
        bad_blocks: flashes.iter().filter_map(|flash| flash.bad_blocks).reduce(|sum, more| sum + more),
        spare_blocks_left: flashes.iter().filter_map(|flash| flash.spare_blocks_left).min(),
        lifetime_host_tib: even.filter(|_| host > 0.0),
        lifetime_host_tib_first_block: uneven.filter(|_| host > 0.0),
        lifetime_application_tib: None,
        drive_writes_per_day: None,
        rate: None,
        histogram: wear_bins(&counts),
        modes: by_mode.iter().flat_map(|modes| wear_of_modes(modes)).collect(),
    }
}

/// TiB of writes until the first drive is worn out, with even wear, if `bytes` of them made the programs of an account
/// since the start of the count. `None` if nothing was programmed.
///
/// With blocks in SLC mode programs say not how much of a life was used: then it is the life in writes of the host,
/// `host_tib`, of which `bytes` made what the host wrote in the count.
pub fn lifetime_tib(since: &Account, bytes: u64, host_tib: f64) -> Option<f64> {
    let nodes = nodes(since);
    let flashes = flashes(&nodes);
    if flashes.iter().any(|flash| flash.by_mode.is_some()) {
        let host = (since.received.total() * unit_bytes(since)) as f64;
        return (bytes > 0 && host > 0.0).then(|| host_tib * bytes as f64 / host);
    }
    let lives = flashes.into_iter().filter(|flash| flash.programmed_pages > 0).map(|flash| {
        let programmed = (flash.programmed_pages * flash.page_bytes) as f64;
        bytes as f64 / programmed * flash.raw_bytes as f64 * f64::from(flash.endurance) / (1u64 << 40) as f64
    });
    lives.reduce(f64::min).filter(|_| bytes > 0)
}

fn worn_out_blocks(flash: &FlashAccount) -> u64 {
    match &flash.by_mode {
        Some(modes) => modes.worn_out,
        None => {
            let is_worn_out = |count: &&u32| **count + flash.worn_before >= flash.endurance;
            flash.erase_counts.iter().filter(is_worn_out).count() as u64
        }
    }
}

/// The mean share of the lives of a drive's blocks that it has used. The blocks of a static cache have a life of their own: the
/// drive goes on without them.
fn life_used(modes: &ModesAccount) -> f64 {
    let [slc, other] = modes.used();
    if modes.is_dynamic { slc + other } else { other }
}

fn wear_of_modes(modes: &ModesAccount) -> [ModeWear; 2] {
    let used = modes.used();
    [("slc", 0), (modes.cells, 1)].map(|(mode, at)| ModeWear {
        mode: mode.to_string(),
        blocks: modes.blocks[at],
        erases: modes.erases[at],
        endurance: modes.endurance[at],
        used: used[at],
    })
}

/// The sum of the top station: it received what the workload wrote.
fn written_sum(root: &Account, written: &Written) -> SumCheck {
    let units = if root.drive.is_some() { "pages" } else { "blocks" };
    let written = |content: Content| match (root.drive.is_some(), written[content as usize]) {
        (false, (blocks, _)) => blocks,
        (true, (_, pages)) => pages,
    };
    check(
        format!("{units} that {} received = {units} that the workload wrote, for each content", root.station),
        root.received.total(),
        Content::ALL.into_iter().map(written).sum(),
        Content::ALL.into_iter().all(|content| root.received.of(Label::host(content)) == written(content)),
    )
}

/// The sums of a path of several stations, since the start of the count and since they were opened.
fn stacked_sums(since: &[Node], all: &[Node]) -> Vec<SumCheck> {
    if since.is_empty() {
        return Vec::new();
    }
    let passed = since.iter().filter(|node| !is_medium(node.account)).map(passed_sum);
    let layers = since.iter().flat_map(layer_sums);
    passed.chain(layers).chain(all.iter().filter_map(flash_sum)).collect()
}

/// The sum between a station and those below it: they received what it sent.
fn passed_sum(node: &Node) -> SumCheck {
    let below = || node.account.below.iter().map(|below| &below.received);
    let received: Tally = below().flat_map(Tally::entries).collect();
    check(
        format!(
            "blocks that the stations below {} received = blocks that it sent, for each cause, origin and content",
            node.name
        ),
        received.total(),
        node.account.sent.total(),
        received == node.account.sent,
    )
}

/// The sums of a translation layer below other stations: what it wrote for its host is what it received, and its flash
/// programmed what it sent.
fn layer_sums(Node { name, account, .. }: &Node) -> Vec<SumCheck> {
    let Some(covered) = &account.covered else { return Vec::new() };
    let for_host: Tally = match &account.buffer {
        None => account.sent.entries().filter(|(label, _)| label.cause == Cause::HostWrite).collect(),
        // What became of them is another sum.
        Some(buffer) => {
            let in_blocks = |(label, count)| (label, count * buffer.page_bytes / BLOCK_BYTES);
            buffer.received.entries().map(in_blocks).collect()
        }
    };
    let wrote = if account.buffer.is_none() { "wrote for its host" } else { "took into its buffer" };
    let host = check(
        format!("blocks that {name} {wrote} = blocks of the pages that it was asked for, for each origin and content"),
        for_host.total(),
        covered.total(),
        for_host == *covered,
    );
    let programmed = account.below.first().map(|nand| {
        let what = format!("blocks that {} programmed = blocks that {name} sent", nand.station);
        check(
            format!("{what}, for each cause, origin and content"),
            nand.sent.total(),
            account.sent.total(),
            nand.sent == account.sent,
        )
    });
    [host].into_iter().chain(programmed).collect()
}

/// The placement of a drive, in bytes.
fn placement(account: &PlacementAccount) -> PlacementResult {
    let bytes = |pages: u64| pages * account.page_bytes;
    let handle = |handle: &HandleAccount| HandleResult {
        isolation: handle.isolation.word().to_string(),
        host_bytes: bytes(handle.host_pages),
        copied_bytes: bytes(handle.copied_pages),
        updates: handle.updates,
    };
    PlacementResult {
        unit_bytes: account.unit_bytes,
        groups: account.groups,
        host_bytes: account.host_bytes,
        media_bytes: account.media_bytes,
        erased_bytes: account.erased_bytes,
        shared_copied_bytes: bytes(account.shared_copied_pages),
        handles: account.handles.iter().map(handle).collect(),
    }
}

/// The sum of a placement: the handles have what the layer wrote for its host, and each copy was out of the units of one handle
/// or of several.
fn placement_sums(Node { name, account, .. }: &Node) -> Vec<SumCheck> {
    // Below other stations an account is in blocks, of which a page may be a part.
    let is_exact = |placement: &&PlacementAccount| account.drive.is_some() || placement.page_bytes >= BLOCK_BYTES;
    let Some(placement) = account.placement.as_deref().filter(is_exact) else { return Vec::new() };
    let in_pages = |cause: Cause| {
        let blocks = account.sent.of_cause(cause);
        if account.drive.is_some() { blocks } else { blocks * BLOCK_BYTES / placement.page_bytes }
    };
    let host: u64 = placement.handles.iter().map(|handle| handle.host_pages).sum();
    let copied: u64 = placement.handles.iter().map(|handle| handle.copied_pages).sum();
    vec![
        check(
            format!("pages that hosts wrote to the handles of {name} = pages that {name} wrote for its host"),
            host,
            in_pages(Cause::HostWrite),
            true,
        ),
        check(
            format!("pages that were copied out of units of one handle and of several = pages that {name} copied"),
            copied + placement.shared_copied_pages,
            in_pages(Cause::GarbageCollection),
            true,
        ),
    ]
}

/// The sum of a write buffer: each page that it received was written, joined, dropped, or is in it.
fn buffer_sum(Node { name, account, .. }: &Node) -> Option<SumCheck> {
    let [received, came] = account.buffer.as_ref()?.sides();
    Some(check(
        format!(
            "pages that {name} received + in its buffer before = written for its host + joined + dropped + in its buffer now, for each origin and content"
        ),
        received.total(),
        came.total(),
        received == came,
    ))
}

/// The sum of a station with flash: its blocks hold what was programmed and not erased.
fn flash_sum(Node { name, account, .. }: &Node) -> Option<SumCheck> {
    let flash = account.flash.as_ref()?;
    Some(check(
        format!(
            "{name}: pages programmed before and since + pages erased without = blocks erased x pages per block + pages programmed now"
        ),
        flash.programmed_before + flash.programmed_pages + flash.erased_unprogrammed_pages,
        flash.erased_blocks * flash.pages_per_block + flash.programmed_now,
        true,
    ))
}

/// The sums of a drive that is the whole path: its flash programmed what its layer sent, and its blocks hold what was
/// programmed and not erased.
fn drive_sums(since: &Account, all: &Account) -> Vec<SumCheck> {
    let [nand] = &since.below[..] else { unreachable!("a drive is a layer on one flash") };
    let flash = all.below[0].flash.as_ref().expect("a drive has flash");
    let programmed = all.below[0].sent.total();
    let erases: u64 = flash.erase_counts.iter().map(|&count| u64::from(count)).sum();
    vec![
        check(
            format!(
                "pages that {} programmed = pages that {} sent, for each cause, origin and content",
                nand.station, since.station
            ),
            nand.sent.total(),
            since.sent.total(),
            nand.sent == since.sent,
        ),
        check(
            "pages programmed since new + pages erased without = blocks erased x pages per block + pages programmed now",
            programmed + flash.erased_unprogrammed_pages,
            erases * flash.pages_per_block + flash.programmed_now,
            true,
        ),
        check("blocks erased = the sum of the erase counts", flash.erased_blocks, erases, true),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(count: u64) -> Tally {
        let mut tally = Tally::default();
        tally.add(Label::host(Content::Data), count);
        tally
    }

    /// A drive with one erase block of four pages, after three writes.
    fn drive() -> Account {
        let flash = FlashAccount {
            page_bytes: 8192,
            pages_per_block: 4,
            programmed_pages: 3,
            programmed_now: 3,
            erase_counts: vec![0],
            endurance: 100,
            raw_bytes: 4 * 8192,
            ..FlashAccount::default()
        };
        let nand =
            Account { station: "nand", received: tally(3), sent: tally(3), flash: Some(flash), ..Account::default() };
        let drive = DriveAccount { page_bytes: 8192, ..DriveAccount::default() };
        Account {
            station: "page",
            received: tally(3),
            sent: tally(3),
            drive: Some(drive),
            below: vec![nand],
            ..Account::default()
        }
    }

    /// The names of the sums that do not hold, for a workload that wrote `pages`.
    fn broken(account: &Account, pages: u64) -> Vec<String> {
        let mut written = Written::default();
        written[Content::Data as usize] = (2 * pages, pages);
        let parts = accounted(Some((account, account)), 16384, Some(&written), Some(1.0));
        parts.sums.into_iter().filter(|sum| !sum.holds).map(|sum| sum.name).collect()
    }

    #[test]
    fn a_drive_whose_counts_agree_breaks_no_sum() {
        assert_eq!(broken(&drive(), 3), [""; 0]);
        let parts = accounted(Some((&drive(), &drive())), 16384, None, Some(1.5));
        assert_eq!(parts.ledger.iter().map(|row| row.blocks).collect::<Vec<_>>(), [6.0, 6.0], "pages are two blocks");
        assert_eq!(stored_bytes(&drive()), 3 * 8192);
        assert_eq!(lifetime_tib(&drive(), 0, 1.0), None);
        // Three pages programmed for two blocks of an application.
        let of_application = lifetime_tib(&drive(), 8192, 1.0).unwrap();
        assert_eq!(of_application, 8192.0 / (3.0 * 8192.0) * 4.0 * 8192.0 * 100.0 / (1u64 << 40) as f64);
        let tib = parts.wear.lifetime_host_tib.unwrap();
        assert_eq!(tib, 4.0 * 8192.0 * 100.0 / 1.5 / (1u64 << 40) as f64, "as long as the run's amplification says");
    }

    /// A program in SLC mode uses less of a life: the life in bytes of applications follows that in bytes of the host.
    #[test]
    fn blocks_in_slc_mode_have_a_life_of_applications_by_what_these_made_the_host_write() {
        let mut drive = drive();
        drive.below[0].flash.as_mut().unwrap().by_mode = Some(Box::default());
        assert_eq!(lifetime_tib(&drive, 8192, 6.0), Some(2.0), "the host wrote three pages for one of an application");
        assert_eq!(lifetime_tib(&drive, 0, 6.0), None);
    }

    /// The layer and the flash count for themselves: neither may be the other's source.
    #[test]
    fn a_count_that_differs_breaks_its_sum() {
        assert!(broken(&drive(), 4)[0].contains("pages that page received"));
        let mut more = drive();
        more.below[0].sent = tally(4);
        assert_eq!(broken(&more, 3).len(), 2, "what was sent and what blocks hold");
        let mut lost = drive();
        lost.below[0].flash.as_mut().unwrap().programmed_now = 2;
        assert!(broken(&lost, 3)[0].contains("pages programmed now"));
        let mut erased = drive();
        erased.below[0].flash.as_mut().unwrap().erased_blocks = 1;
        assert_eq!(broken(&erased, 3), ["blocks erased = the sum of the erase counts"]);
    }

    /// A file system on the drive: two host writes, and a block that it cleaned.
    fn stacked() -> Account {
        let cleaned = Label::first(Cause::SegmentCleaning, Content::Data);
        let of_file_system: Tally = [(Label::host(Content::Data), 2), (cleaned, 1)].into_iter().collect();
        let again = Label::again(Cause::HostWrite, cleaned.provenance());
        let of_layer: Tally = [(Label::host(Content::Data), 2), (again, 1)].into_iter().collect();
        let Account { below, .. } = drive();
        let nand = Account { received: of_layer.clone(), sent: of_layer.clone(), ..below[0].clone() };
        let page = Account {
            station: "page",
            received: of_file_system.clone(),
            sent: of_layer.clone(),
            covered: Some(of_layer),
            below: vec![nand],
            ..Account::default()
        };
        Account { station: "sfs", received: tally(9), sent: of_file_system, below: vec![page], ..Account::default() }
    }

    /// The names of the sums that do not hold.
    fn broken_below(account: &Account) -> Vec<String> {
        let parts = accounted(Some((account, account)), 16384, None, None);
        parts.sums.into_iter().filter(|sum| !sum.holds).map(|sum| sum.name).collect()
    }

    #[test]
    fn each_station_stands_behind_the_one_above_it_with_what_it_received_and_erased() {
        let mut account = stacked();
        let beside = Account { received: tally(2), sent: tally(2), station: "conv", ..Account::default() };
        account.below.push(beside);
        account.below[0].below[0].flash.as_mut().unwrap().erased_blocks = 3;
        let stations = accounted(Some((&account, &account)), 16384, None, None).stations;
        let names: Vec<_> = stations.iter().map(|station| (station.name.as_str(), station.above.as_str())).collect();
        assert_eq!(names, [("sfs", "workload"), ("page", "sfs"), ("nand", "page"), ("conv", "sfs")]);
        let received = |number: usize| stations[number].received.iter().map(|row| row.blocks).sum::<f64>();
        assert_eq!([received(1), received(3)], [3.0, 2.0]);
        let erased: Vec<_> = stations.iter().map(|station| station.erased_blocks).collect();
        assert_eq!(erased, [None, None, Some(3.0 * 4.0 * 2.0), None], "three blocks of four pages of 8 KiB");
    }

    #[test]
    fn a_memory_is_a_station_with_events_and_breaks_no_sum_of_blocks() {
        let mut account = stacked();
        let rows = |account: &Account| accounted(Some((account, account)), 16384, None, None).ledger.len();
        let before = (rows(&account), stored_bytes(&account));
        account.below.push(Account { station: "nvm", events: vec![("nvm_fences", 3)], ..Account::default() });
        assert_eq!(broken_below(&account), [""; 0]);
        let parts = accounted(Some((&account, &account)), 16384, None, None);
        assert_eq!(
            (parts.media, parts.translation.events.get("nvm_fences")),
            (vec!["nand".into(), "nvm".into()], Some(&3))
        );
        let last = parts.stations.last().unwrap();
        assert_eq!((last.name.as_str(), last.above.as_str(), last.received.len()), ("nvm", "sfs", 0));
        assert_eq!((rows(&account), stored_bytes(&account)), before, "it stores no blocks");
    }

    /// Only the sums between stations were checked on such a path, and those by cause and content: a drive that lost the
    /// origin of a block, programmed another number of pages, or erased one too many would have passed.
    #[test]
    fn a_drive_below_a_file_system_is_checked_by_origin_and_to_its_erases() {
        assert_eq!(broken_below(&stacked()), [""; 0]);
        let mut forgets = stacked();
        forgets.below[0].received = tally(3);
        assert!(broken_below(&forgets)[0].starts_with("blocks that the stations below sfs received"), "same totals");
        let mut forgets = stacked();
        forgets.below[0].covered = Some(tally(3));
        assert!(broken_below(&forgets)[0].starts_with("blocks that page wrote for its host"), "same totals");
        let mut forgets = stacked();
        forgets.below[0].below[0].sent = tally(3);
        assert!(broken_below(&forgets)[0].starts_with("blocks that nand programmed"), "same totals");
        let mut erased = stacked();
        erased.below[0].below[0].flash.as_mut().unwrap().erased_blocks = 1;
        assert!(broken_below(&erased)[0].starts_with("nand: pages programmed before and since"));
    }
}
