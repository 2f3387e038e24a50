//! The worked example of docs/ledger.md, three times: as the page states it, as a drive of a few lines computes it, and as
//! the station `page` counts it.

use flashpath::device::{Account, Lba};
use flashpath::label::{Cause, Content, Label, Tally};
use flashpath::run::{Path, Payload, open_device};
use flashpath::time::Time;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../docs/ledger.md");
const PAGES_PER_BLOCK: usize = 4;

fn cause(name: &str) -> Cause {
    Cause::ALL.into_iter().find(|cause| cause.name() == name).unwrap_or_else(|| panic!("{name} is no cause"))
}

fn content(name: &str) -> Content {
    Content::ALL.into_iter().find(|content| content.name() == name).unwrap_or_else(|| panic!("{name} is no content"))
}

/// The cells of the table of docs/ledger.md whose first heading is this.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let lines = PAGE.lines().skip_while(|line| !line.starts_with(&format!("| {heading} |"))).skip(2);
    lines.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The writes of the example: the drive's block and the label of each.
fn writes() -> Vec<(u64, Label)> {
    let row = |cells: Vec<&'static str>| {
        let label = Label::first(cause(cells[2]), content(cells[3]));
        cells[1].split(' ').map(|block| (block.parse().unwrap(), label)).collect::<Vec<_>>()
    };
    table("writes").into_iter().flat_map(row).collect()
}

/// A drive with the policy of the example, and its counts: greedy, one open block, and a block in reserve.
#[derive(Default)]
struct TinyDrive {
    /// The pages of each erase block: the logical page and its label's origin and content.
    blocks: Vec<Vec<(u64, Label)>>,
    newest: BTreeMap<u64, (usize, usize)>,
    open: Option<usize>,
    programmed: Tally,
    erased: u64,
}

impl TinyDrive {
    fn program(&mut self, page: u64, label: Label) {
        let open = self.open.expect("a block is open");
        self.newest.insert(page, (open, self.blocks[open].len()));
        self.blocks[open].push((page, label));
        self.programmed.add(label, 1);
    }

    fn has_room(&self) -> bool {
        self.open.is_some_and(|open| self.blocks[open].len() < PAGES_PER_BLOCK)
    }

    fn erased_blocks(&self) -> Vec<usize> {
        (0..self.blocks.len()).filter(|block| self.blocks[*block].is_empty()).collect()
    }

    fn valid_in(&self, block: usize) -> Vec<(u64, Label)> {
        let is_newest = |(place, (page, _)): &(usize, &(u64, Label))| self.newest[page] == (block, *place);
        self.blocks[block].iter().enumerate().filter(is_newest).map(|(_, page)| *page).collect()
    }

    fn write(&mut self, page: u64, label: Label) {
        if !self.has_room() {
            if self.erased_blocks().len() == 1 {
                let full = (0..self.blocks.len()).filter(|block| !self.blocks[*block].is_empty());
                let victim = full.min_by_key(|block| self.valid_in(*block).len()).unwrap();
                self.open = self.erased_blocks().first().copied();
                for (page, label) in self.valid_in(victim) {
                    self.program(page, Label::again(Cause::GarbageCollection, label.provenance()));
                }
                self.blocks[victim].clear();
                self.erased += 1;
            }
            self.open = self.open.filter(|_| self.has_room()).or(self.erased_blocks().first().copied());
        }
        self.program(page, Label::again(Cause::HostWrite, label.provenance()));
    }
}

fn sorted(tally: &Tally) -> Vec<(Label, u64)> {
    tally.entries().collect()
}

/// The blocks that a station passed on, as the page states them.
fn stated(station: &str) -> Tally {
    let rows = table("station").into_iter().filter(|cells| cells[0] == station);
    rows.map(|cells| {
        let label = Label { cause: cause(cells[1]), origin: cause(cells[2]), content: content(cells[3]) };
        (label, cells[4].parse().unwrap())
    })
    .collect()
}

#[test]
fn the_worked_example_is_what_a_drive_of_a_few_lines_computes_and_what_the_program_counts() {
    let writes = writes();
    assert_eq!(writes.len(), 20);
    let mut tiny = TinyDrive { blocks: vec![Vec::new(); 5], ..TinyDrive::default() };
    let path = Path::read("page:frontiers=shared,reserve=1,export=40%/nand:size=80K,pages-per-block=4").unwrap();
    let drive = open_device(&path, Payload::Stamps, 1).unwrap();
    for (number, &(block, label)) in writes.iter().enumerate() {
        tiny.write(block, label);
        drive.write(Lba(block), &(number as u32 + 1).to_le_bytes(), label, Time::ZERO).unwrap();
    }
    let Account { received, sent, below, .. } = drive.account();
    assert_eq!(sorted(&received), sorted(&stated("sfs")), "what the file system sent");
    assert_eq!(sorted(&tiny.programmed), sorted(&stated("page")), "the page, and the drive of a few lines");
    assert_eq!(sorted(&sent), sorted(&stated("page")), "the page, and the station");
    assert_eq!(sorted(&below[0].sent), sorted(&stated("nand")), "the page, and the flash");
    let flash = below[0].flash.clone().unwrap();
    let there: usize = tiny.blocks.iter().map(Vec::len).sum();
    assert_eq!((flash.erased_blocks, flash.programmed_now), (tiny.erased, there as u64));
    assert_eq!(flash.programmed_pages, flash.erased_blocks * PAGES_PER_BLOCK as u64 + flash.programmed_now);
    // The sentences of the page that count these.
    let amplification = flash.programmed_pages as f64 / writes.len() as f64;
    for sentence in [
        format!("{} pages are programmed for {} blocks", flash.programmed_pages, writes.len()),
        format!("a write amplification of {amplification:.2}"),
        format!("{} blocks are erased", flash.erased_blocks),
        format!("{} pages are programmed now", flash.programmed_now),
    ] {
        assert!(PAGE.contains(&sentence), "docs/ledger.md says: {sentence}");
    }
}
