//! What every translation layer promises, checked once for all of them: a read returns the newest write, and the
//! ledger's sums hold, under random writes, discards, reads and collection.

use flashpath::device::nand::{LogicalPage, Nand, Untimed};
use flashpath::label::{Cause, Content};
use flashpath::random::Random;
use flashpath::run::Path;
use flashpath::time::Time;
use flashpath::translation::page_level::PageLevel;
use flashpath::translation::{PageWrite, Translation};

/// A small drive of this path, with stamps.
fn page_level(path: &str, seed: u64) -> PageLevel<Untimed> {
    let path = Path::read(path).unwrap();
    let flash = Nand::new(path.nand.geometry, path.nand.endurance, true, Untimed);
    PageLevel::new(flash, &path.page, seed)
}

/// Random operations, each checked against an array of what every page must hold.
fn holds_its_promises<T: Translation>(mut drive: T, seed: u64) {
    let pages = drive.exported_pages();
    let mut model: Vec<Option<(u32, Content)>> = vec![None; pages as usize];
    let mut random = Random::new(seed, "model");
    let mut host_writes = [0u64; Content::COUNT];
    for step in 1..=(8 * pages as u32) {
        // Most requests go to an eighth of the pages, so that blocks are emptied at different rates.
        let span = if random.below(4) > 0 { pages / 8 } else { pages };
        let page = LogicalPage(random.below(span) as u32);
        match random.below(20) {
            0 => {
                drive.discard(page);
                model[page.0 as usize] = None;
            }
            1 | 2 => {
                let (stamp, _) = drive.read(page, Time::ZERO).unwrap();
                assert_eq!(stamp, model[page.0 as usize].map(|(stamp, _)| stamp), "page {}", page.0);
            }
            _ => {
                let content = Content::from_low_bits(random.below(4) as u8);
                let write = PageWrite { page, content, stream: random.below(7) as u8, stamp: step };
                drive.write(write, Time::ZERO).unwrap();
                model[page.0 as usize] = Some((step, content));
                host_writes[content as usize] += 1;
            }
        }
    }
    for (page, expected) in model.iter().enumerate() {
        let (stamp, _) = drive.read(LogicalPage(page as u32), Time::ZERO).unwrap();
        assert_eq!(stamp, expected.map(|(stamp, _)| stamp), "page {page} at the end");
    }
    for content in Content::ALL {
        assert_eq!(drive.sent().get(Cause::HostWrite, content), host_writes[content as usize]);
    }
    let flash = drive.flash();
    assert_eq!(&flash.counts.programmed, drive.sent(), "the flash programmed what the layer sent");
    assert!(flash.counts.erased_blocks > 0, "the work was heavy enough to collect");
    let erases: u64 = flash.erase_counts.iter().map(|&count| u64::from(count)).sum();
    let there: u64 = flash.programmed_pages.iter().map(|&pages| u64::from(pages)).sum();
    assert_eq!(erases * u64::from(flash.geometry.pages_per_block) + there, flash.counts.programmed.total());
}

#[test]
fn the_page_level_layer_returns_the_newest_write_whatever_its_options() {
    let mut options = Vec::new();
    for victim in ["greedy", "fifo", "random", "d-choices", "cost-benefit"] {
        for frontiers in ["separate", "shared"] {
            options.push(format!("export=80%,victim={victim},frontiers={frontiers}"));
        }
    }
    for wear in ["none", "dynamic", "static"] {
        options.push(format!("export=75%,wear={wear}"));
    }
    options.push("export=70%,wear=static,wear-gap=1".to_string());
    options.push("export=60%,streams=content".to_string());
    options.push("export=60%,streams=hint,hints=3".to_string());
    options.push("export=60%,streams=hint,hints=3,spare-shares=50%+30%+20%".to_string());
    options.push("export=60%,streams=content,frontiers=shared,wear=static,wear-gap=2".to_string());
    for (seed, option) in (1..).zip(&options) {
        for shape in ["size=4M,pages-per-block=16", "size=4M,pages-per-block=12,channels=2,dies=2,planes=2"] {
            // Where many blocks can be open at once, less can be exported.
            let option = if shape.contains("planes") {
                option.replace("export=", "export=0.6,reserve=1,x=")
            } else {
                option.clone()
            };
            let option: Vec<&str> = option.split(',').filter(|part| !part.starts_with("x=")).collect();
            let path = format!("page:{}/nand:{shape},endurance=100000", option.join(","));
            if option.iter().any(|part| part.starts_with("streams")) && shape.contains("planes") {
                continue;
            }
            println!("{path}");
            holds_its_promises(page_level(&path, seed), seed);
        }
    }
}

#[test]
fn a_tight_drive_with_many_open_blocks_still_finds_room() {
    // Every plane has an open block for hosts and one for copies, and hardly a block is spare beyond them.
    for seed in 1..=5 {
        let text = "page:export=99%,streams=content/nand:size=4M,pages-per-block=8,channels=4,dies=2,planes=1";
        let error = Path::read(text).err().map(|error| error.help);
        let export =
            error.and_then(|help| help.split("export=").nth(1).map(str::to_string)).expect("a share that would do");
        let path = text.replace("export=99%", &format!("export={export}"));
        println!("{path}");
        holds_its_promises(page_level(&path, seed), seed);
    }
}
