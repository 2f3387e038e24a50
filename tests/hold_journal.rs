//! `hold-journal`: the journal of a file system is in memory, and the device below has the rest. The loss of a client
//! loses nothing; the loss of the server is detected before anything is written.

#[path = "skipped/mod.rs"]
mod skipped;

use flashpath::device::{Abilities, BlockDevice, Lba};
use flashpath::label::{Content, Label};
use flashpath::layout::{Layout, Region};
use flashpath::random::Random;
use flashpath::run::{Labelling, Path, Payload, make_volume, open_device};
use flashpath::time::Time;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const BLOCK: usize = 4096;
const DATA: Label = Label::host(Content::Data);

/// An image with an empty ext4 volume, and a place for spill files.
struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench { directory: TempDir::new().unwrap() };
        bench.make("image");
        bench
    }

    fn make(&self, name: &str) {
        let text = format!("ext:journal-size=4M/conv:image={},size=64M", self.path(name).display());
        make_volume(&Path::read(&text).unwrap(), true, 3, 0, None).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Serves the image, or another, with these options of hold-journal.
    fn serve_image(&self, options: &str, image: &str) -> Result<Labelling<Box<dyn BlockDevice>>, String> {
        let options = options.replace("SPILL", &self.path("spill").display().to_string());
        let text = format!("hold-journal:{options},memory=4M/conv:image={}", self.path(image).display());
        let text = if options.contains("memory=") { text.replace(",memory=4M", "") } else { text };
        let path = Path::read(&text).map_err(|error| error.to_string())?;
        let device = open_device(&path, Payload::Bytes, 1).map_err(|error| error.to_string())?;
        Labelling::new(device, Time::ZERO).map_err(|error| error.to_string())
    }

    fn serve(&self, options: &str) -> Result<Labelling<Box<dyn BlockDevice>>, String> {
        self.serve_image(options, "image")
    }

    fn refuses(&self, options: &str, expected: &str) {
        let before = std::fs::read(self.path("image")).unwrap();
        let error = self.serve(options).err().expect("it is refused");
        assert!(error.contains(expected), "{error}");
        assert!(std::fs::read(self.path("image")).unwrap() == before, "nothing was written");
    }

    fn journal(&self) -> Range<u64> {
        let image = File::open(self.path("image")).unwrap();
        let mut read = |at: u64, buffer: &mut [u8]| image.read_exact_at(buffer, at);
        let layout = Layout::read(&mut read, 64 << 20).unwrap();
        let journal: Vec<_> = layout.regions.of(Region::Journal).collect();
        assert_eq!(journal.len(), 1, "the journal of an empty volume is in one piece");
        journal[0].start / BLOCK as u64..journal[0].end / BLOCK as u64
    }

    /// A block as the image has it.
    fn stored(&self, place: u64) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        File::open(self.path("image")).unwrap().read_exact_at(&mut block, place * BLOCK as u64).unwrap();
        block
    }
}

fn block(fill: u8) -> Vec<u8> {
    vec![fill; BLOCK]
}

fn write(device: &dyn BlockDevice, place: u64, bytes: &[u8]) {
    device.write(Lba(place), bytes, DATA, Time::ZERO).unwrap();
}

fn read(device: &dyn BlockDevice, place: u64, blocks: usize) -> Vec<u8> {
    let mut bytes = vec![0; blocks * BLOCK];
    device.read(Lba(place), &mut bytes, Time::ZERO).unwrap();
    bytes
}

fn event(device: &dyn BlockDevice, name: &str) -> u64 {
    device.account().events.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn a_journal_is_in_memory_until_the_end_and_then_on_the_device() {
    let bench = Bench::new();
    let journal = bench.journal();
    let superblock = bench.stored(journal.start);
    let before = bench.stored(journal.start + 3);
    let device = bench.serve("access=1us").unwrap();
    // A write across the journal's end: its last two blocks are held.
    write(&device, journal.end - 2, &[block(1), block(2), block(3)].concat());
    write(&device, journal.start + 3, &block(4));
    device.flush(Time::ZERO).unwrap();
    assert_eq!(read(&device, journal.end - 2, 3), [block(1), block(2), block(3)].concat());
    assert_eq!(read(&device, journal.start, 1), superblock, "a client does not see the marker");
    assert_eq!(bench.stored(journal.end), block(3));
    assert_eq!(bench.stored(journal.start + 3), before);
    assert!(bench.stored(journal.start).starts_with(b"FLPHMARK"));
    let account = device.account();
    assert_eq!((account.received.total(), account.sent.total()), (4, 2), "one block outside, and the marker");
    assert_eq!(account.sent, account.below[0].received);
    assert!(account.all_warnings()[0].contains("if power fails or this process is killed"), "the assumption is named");

    // A flush without a change below does not reach the device.
    let flushed = event(&device, "held_flushes");
    write(&device, journal.start + 4, &block(5));
    device.flush(Time::ZERO).unwrap();
    assert_eq!(event(&device, "held_flushes"), flushed + 1);
    write(&device, 9000, &block(6));
    device.flush(Time::ZERO).unwrap();
    assert_eq!(event(&device, "held_flushes"), flushed + 1);

    device.discard(Lba(journal.start + 4), 1, Time::ZERO).unwrap();
    assert_eq!(read(&device, journal.start + 4, 1), block(0));
    device.close(Time::ZERO).unwrap();
    assert_eq!(device.account().sent, device.account().below[0].received);
    drop(device);
    assert_eq!(bench.stored(journal.start), superblock);
    assert_eq!(bench.stored(journal.end - 1), block(2));
    assert_eq!(bench.stored(journal.start + 3), block(4));
    drop(bench.serve("access=1us").unwrap());
}

#[test]
fn the_journal_of_a_killed_server_is_refused_until_e2fsck_has_made_another() {
    let bench = Bench::new();
    let place = bench.journal().start + 1;
    let device = bench.serve("spill=SPILL").unwrap();
    write(&device, place, &block(1));
    // No close.
    drop(device);
    bench.refuses("spill=SPILL", "spill does not hold it); the file system on it can be inconsistent");
    bench.refuses("access=1us", "if that server had a spill=");
    let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let e2fsck =
        |option: &str| Command::new("e2fsck").args(["-f", option]).arg(bench.path("image")).env("PATH", &path).output();
    let Ok(repaired) = e2fsck("-y") else { return skipped::skipped("e2fsck is not installed") };
    assert!(String::from_utf8_lossy(&repaired.stdout).contains("invalid journal"), "{repaired:?}");
    assert_eq!(e2fsck("-n").unwrap().status.code(), Some(0));
    let device = bench.serve("spill=SPILL").unwrap();
    write(&device, bench.journal().start + 1, &block(2));
    device.close(Time::ZERO).unwrap();
}

#[test]
fn a_spilled_journal_returns_once_and_to_its_own_device_only() {
    let bench = Bench::new();
    let journal = bench.journal();
    let device = bench.serve("spill=SPILL").unwrap();
    let in_use = bench.serve_image("spill=SPILL", "image").err().unwrap();
    assert!(in_use.contains("is in use"), "{in_use}");
    write(&device, journal.start + 1, &[block(1), block(2)].concat());
    device.close(Time::ZERO).unwrap();
    assert_eq!(event(&device, "held_blocks_spilled"), 3, "with the superblock");
    assert_eq!(event(&device, "held_blocks_drained"), 0);
    drop(device);
    assert!(bench.stored(journal.start).starts_with(b"FLPHMARK"), "the journal is still not home");
    bench.refuses("access=1us", "if that server had a spill=");
    bench.refuses("spill=SPILL,memory=8K", "its number of blocks is 3, expected at most 2");

    // Another volume, and a copy that was changed without hold-journal.
    bench.make("other");
    let other = bench.serve_image("spill=SPILL", "other").err().unwrap();
    assert!(other.contains("holds the journal of another device"), "{other}");

    // A start and an end without a write keep the file; so does a kill.
    for is_killed in [false, true] {
        let device = bench.serve("spill=SPILL").unwrap();
        assert_eq!(read(&device, journal.start + 1, 2), [block(1), block(2)].concat());
        if !is_killed {
            device.close(Time::ZERO).unwrap();
        }
    }
    let spilled = std::fs::read(bench.path("spill")).unwrap();
    let device = bench.serve("spill=SPILL").unwrap();
    write(&device, journal.start + 2, &block(3));
    device.close(Time::ZERO).unwrap();
    drop(device);
    assert!(std::fs::read(bench.path("spill")).unwrap() != spilled);
    let device = bench.serve("spill=SPILL,drain").unwrap();
    write(&device, journal.start + 4, &block(4));
    assert_eq!(bench.stored(journal.start + 4), block(4), "nothing is held");
    device.close(Time::ZERO).unwrap();
    drop(device);
    assert_eq!(bench.stored(journal.start + 1), block(1));
    assert_eq!(bench.stored(journal.start + 2), block(3));

    // An older file does not come back.
    std::fs::write(bench.path("spill"), &spilled).unwrap();
    bench.refuses("spill=SPILL", "or of this one before it was changed without hold-journal");
}

#[test]
fn a_spill_file_that_is_cut_or_changed_is_refused() {
    let bench = Bench::new();
    let journal = bench.journal();
    let device = bench.serve("spill=SPILL").unwrap();
    write(&device, journal.start + 1, &[block(1), block(2)].concat());
    device.close(Time::ZERO).unwrap();
    drop(device);
    let whole = std::fs::read(bench.path("spill")).unwrap();
    assert_eq!(whole.len(), 5 * BLOCK, "a header, a table and three blocks");
    let mut random = Random::new(1, "damage");
    for _ in 0..300 {
        let mut bytes = whole.clone();
        let at = random.below(whole.len() as u64) as usize;
        // The rest of the table's block is unused.
        let is_used = !(BLOCK + 48..2 * BLOCK).contains(&at);
        match random.below(2) {
            0 => bytes.truncate(at),
            _ if is_used => bytes[at] ^= 1 << random.below(8),
            _ => continue,
        }
        std::fs::write(bench.path("spill"), &bytes).unwrap();
        let error = bench.serve("spill=SPILL").err().unwrap_or_else(|| panic!("byte {at} is missing or wrong"));
        assert!(error.contains("spill"), "{error}");
    }
    std::fs::write(bench.path("spill"), &whole).unwrap();
    assert_eq!(read(&bench.serve("spill=SPILL").unwrap(), journal.start + 2, 1), block(2));
}

#[test]
fn what_cannot_be_held_is_refused_or_left_to_the_device() {
    let bench = Bench::new();
    bench.refuses("memory=2M", "the journal has 4.00 MiB, and memory= allows 2.00 MiB");
    std::fs::write(bench.path("spill"), b"a letter, not a spill file").unwrap();
    bench.refuses("spill=SPILL", "its length is 26, expected at least 4096");
    std::fs::write(bench.path("spill"), block(7)).unwrap();
    bench.refuses("spill=SPILL", "this file is something else");
    assert_eq!(std::fs::read(bench.path("spill")).unwrap(), block(7));
    bench.refuses(&format!("spill={}", bench.path("image").display()), "is in use");
    for (text, expected) in [
        ("hold-journal:drain/conv:image=x", "there is no file to drain"),
        ("hold-journal:spill=s,memory=1M/conv:size=1M", "the device below is in memory"),
        ("hold-journal:spill=s/conv:size=1M", "behind a file name, after a comma"),
    ] {
        let error = Path::read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    // A journal that is none of ext.
    let device = bench.serve("access=1us").unwrap();
    device.set_journal(&[Lba(9000)..Lba(9100)]).unwrap();
    write(&device, 9001, &block(1));
    assert_eq!(bench.stored(9001), block(1));
    assert!(device.account().all_warnings().iter().any(|line| line.contains("no journal of ext3 or ext4 begins at")));
}

/// A jbd2 superblock of a journal of this many blocks.
fn superblock(blocks: u32) -> Vec<u8> {
    let mut superblock = block(0);
    for (at, word) in [(0, 0xC03B_3998), (4, 4), (12, BLOCK as u32), (16, blocks)] {
        superblock[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }
    superblock
}

#[test]
fn a_device_with_journals_that_come_and_go_returns_what_was_written() {
    const BLOCKS: u64 = 256;
    let directory = TempDir::new().unwrap();
    let image = directory.path().join("image");
    let spill = directory.path().join("spill");
    for seed in 1..=8 {
        let mut random = Random::new(seed, "moving journals");
        std::fs::write(&image, vec![0; BLOCKS as usize * BLOCK]).unwrap();
        let _ = std::fs::remove_file(&spill);
        let open = |drain: &str| {
            let text =
                format!("hold-journal:spill={},memory=512K{drain}/conv:image={}", spill.display(), image.display());
            open_device(&Path::read(&text).unwrap(), Payload::Bytes, 1).unwrap()
        };
        let mut device = open("");
        let mut expected = vec![0; BLOCKS as usize * BLOCK];
        let mut journals: Vec<Range<Lba>> = Vec::new();
        for _ in 0..400 {
            let first = random.below(BLOCKS);
            let blocks = 1 + random.below(8.min(BLOCKS - first));
            let bytes = first as usize * BLOCK..(first + blocks) as usize * BLOCK;
            match random.below(24) {
                0 => {
                    // One or two journals, of which a client first writes the superblocks.
                    let lengths = [8 + random.below(60), 8 + random.below(50)];
                    let starts = [random.below(60), 128 + random.below(60)];
                    journals.clear();
                    for (start, length) in starts.into_iter().zip(lengths).skip(random.below(2) as usize) {
                        let superblock = superblock(length as u32);
                        write(&device, start, &superblock);
                        expected[start as usize * BLOCK..][..BLOCK].copy_from_slice(&superblock);
                        journals.push(Lba(start)..Lba(start + length));
                    }
                    device.set_journal(&journals).unwrap();
                }
                1 => {
                    device.set_journal(&[]).unwrap();
                    journals.clear();
                    assert!(std::fs::read(&image).unwrap() == expected, "all is home");
                }
                2 => {
                    device.close(Time::ZERO).unwrap();
                    drop(device);
                    device = open("");
                }
                3 => drop(device.flush(Time::ZERO).unwrap()),
                4..6 => {
                    // A superblock that is gone would be found at the next start.
                    let is_superblock =
                        journals.iter().any(|journal| (first..first + blocks).contains(&journal.start.0));
                    if !is_superblock {
                        device.discard(Lba(first), blocks, Time::ZERO).unwrap();
                        expected[bytes].fill(0);
                    }
                }
                6..16 => {
                    expected[bytes.clone()].fill(1 + random.below(255) as u8);
                    write(&device, first, &expected[bytes]);
                }
                _ => assert!(read(&device, first, blocks as usize) == expected[bytes], "seed {seed}"),
            }
        }
        device.close(Time::ZERO).unwrap();
        drop(device);
        drop(open(",drain"));
        assert!(std::fs::read(&image).unwrap() == expected, "seed {seed}");
    }
}
