//! Journals found on a running device from the file system's own metadata: made by real tools in a file, whose bytes
//! are then written to the device as a kernel would.

use crate::image::{Image, has_programs};
use flashpath::device::conv::Conventional;
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::label::{Content, Label};
use flashpath::layout::Region;
use flashpath::run::Labelling;
use flashpath::time::Time;
use std::ops::Range;
use std::sync::{Arc, Mutex};

const SIZE_BYTES: u64 = 256 << 20;
const EXT4: [&str; 6] = ["-q", "-F", "-t", "ext4", "-b", "4096"];

type Journals = Arc<Mutex<Vec<Vec<Range<Lba>>>>>;

/// A device in memory that records the journals set on it.
struct RecordingDevice {
    device: Conventional,
    set: Journals,
}

impl BlockDevice for RecordingDevice {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.device.write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

impl Abilities for RecordingDevice {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }

    fn set_journal(&self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        self.set.lock().unwrap().push(journal.to_vec());
        Ok(())
    }
}

/// A running device, and the journals set on it.
struct Running {
    device: Labelling<RecordingDevice>,
    set: Journals,
}

impl Running {
    fn new(size_bytes: u64) -> Running {
        let set = Journals::default();
        let device =
            RecordingDevice { device: Conventional::in_memory(size_bytes / 4096, 4096), set: Arc::clone(&set) };
        Running { device: Labelling::new(device, Time::ZERO).unwrap(), set }
    }

    /// Writes the differences between the device and `bytes`, from `start` on, then flushes.
    fn become_like(&mut self, start: u64, bytes: &[u8]) {
        let mut old = vec![0; 4096];
        for (number, block) in (start / 4096..).zip(bytes.chunks_exact(4096)) {
            self.device.read(Lba(number), &mut old, Time::ZERO).unwrap();
            if old != block {
                self.write(number, block);
            }
        }
        self.device.flush(Time::ZERO).unwrap();
    }

    fn write(&mut self, block: u64, bytes: &[u8]) {
        self.device.write(Lba(block), bytes, Label::host(Content::Data), Time::ZERO).unwrap();
    }

    /// The content in a block's label.
    fn label_of(&mut self, block: u64, bytes: &[u8]) -> Content {
        let before = self.device.account().received;
        self.write(block, bytes);
        let after = self.device.account().received.since(&before);
        after.entries().next().expect("a block was written").0.content
    }

    /// The journals set last, as bytes.
    fn journals(&self) -> Vec<Range<u64>> {
        let set = self.set.lock().unwrap();
        set.last().into_iter().flatten().map(|range| range.start.0 * 4096..range.end.0 * 4096).collect()
    }

    fn times_set(&self) -> usize {
        self.set.lock().unwrap().len()
    }
}

fn bytes_of(image: &Image) -> Vec<u8> {
    std::fs::read(image.path()).unwrap()
}

fn journals_of(image: &Image) -> Vec<Range<u64>> {
    let layout = image.layout();
    layout.regions.of(Region::Journal).collect()
}

#[test]
fn writes_before_there_is_a_file_system_are_data() {
    let mut running = Running::new(SIZE_BYTES);
    assert_eq!(running.label_of(5, &[7; 4096]), Content::Data);
    running.device.flush(Time::ZERO).unwrap();
    assert_eq!(running.times_set(), 0);
}

#[test]
fn a_file_system_made_on_a_running_device_is_found_at_its_flush() {
    if !has_programs(&["mke2fs", "mkfs.xfs"]) {
        return;
    }
    let xfs = || Image::make(512 << 20, "mkfs.xfs", &["-q", "-f"]);
    for image in [Image::make(SIZE_BYTES, "mke2fs", &EXT4), xfs()] {
        let mut running = Running::new(image.size_bytes);
        running.become_like(0, &bytes_of(&image));
        let journals = journals_of(&image);
        assert_eq!(running.journals(), journals);
        assert_eq!(running.label_of(journals[0].start / 4096, &[1; 4096]), Content::Journal);
        assert_eq!(running.label_of(journals[0].end / 4096, &[1; 4096]), Content::Data);
        assert_eq!(running.label_of(0, &bytes_of(&image)[..4096]), Content::Metadata);
        // Files are written and flushed: the journal's location is unchanged, and is not set again.
        let set = running.times_set();
        running.device.flush(Time::ZERO).unwrap();
        assert_eq!(running.times_set(), set);
    }
}

#[test]
fn a_write_over_the_end_of_a_journal_is_labelled_part_by_part() {
    if !has_programs(&["mke2fs"]) {
        return;
    }
    let image = Image::make(SIZE_BYTES, "mke2fs", &EXT4);
    let mut running = Running::new(SIZE_BYTES);
    running.become_like(0, &bytes_of(&image));
    let end = running.journals()[0].end / 4096;
    let before = running.device.account().received;
    running.write(end - 3, &[9; 5 * 4096]);
    let after = running.device.account().received.since(&before);
    let counted: Vec<(Label, u64)> = after.entries().collect();
    assert_eq!(counted, [(Label::host(Content::Data), 2), (Label::host(Content::Journal), 3)]);
}

#[test]
fn a_journal_that_is_made_anew_elsewhere_is_followed() {
    if !has_programs(&["mke2fs", "tune2fs"]) {
        return;
    }
    let image = Image::make(SIZE_BYTES, "mke2fs", &[&EXT4[..], &["-J", "size=8"]].concat());
    let mut running = Running::new(SIZE_BYTES);
    running.become_like(0, &bytes_of(&image));
    let first = running.journals();
    image.run("tune2fs", &["-O", "^has_journal"]);
    running.become_like(0, &bytes_of(&image));
    assert_eq!(running.journals(), [], "it is detached");
    assert_eq!(running.label_of(first[0].start / 4096, &[1; 4096]), Content::Data);
    image.run("tune2fs", &["-J", "size=16"]);
    running.become_like(0, &bytes_of(&image));
    assert_eq!(running.journals(), journals_of(&image));
    assert_ne!(running.journals(), first);
    let bytes: u64 = running.journals().iter().map(|range| range.end - range.start).sum();
    assert!((16 << 20..17 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn a_device_that_is_all_journal_is_one() {
    if !has_programs(&["mke2fs"]) {
        return;
    }
    let image = Image::make(64 << 20, "mke2fs", &["-q", "-F", "-b", "4096", "-O", "journal_dev"]);
    let mut running = Running::new(64 << 20);
    running.become_like(0, &bytes_of(&image));
    let whole = Range { start: 0, end: 64 << 20 };
    assert_eq!(running.journals(), [whole]);
}

/// An MBR with two partitions of 64 MiB each, at 1 MiB and at 128 MiB.
fn mbr() -> Vec<u8> {
    let mut sector = vec![0; 4096];
    for (number, first) in [(0, 1u32 << 11), (1, 128 << 11)] {
        let at = 446 + 16 * number;
        sector[at + 4] = 0x83;
        sector[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        sector[at + 12..at + 16].copy_from_slice(&(64u32 << 11).to_le_bytes());
    }
    sector[510..512].copy_from_slice(&[0x55, 0xAA]);
    sector
}

/// The same partitions in a GPT with sectors of `sector_bytes`, without the copy at the end, which is not read.
fn gpt(sector_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; 6 * sector_bytes.max(4096)];
    bytes[446 + 4] = 0xEE;
    bytes[446 + 8..446 + 16].copy_from_slice(&[1, 0, 0, 0, 255, 255, 255, 255]);
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    let header = sector_bytes;
    bytes[header..header + 8].copy_from_slice(b"EFI PART");
    bytes[header + 72] = 2;
    bytes[header + 80] = 4;
    bytes[header + 84] = 128;
    for (number, first) in [(0, 1u64 << 20), (1, 128 << 20)] {
        let entry = 2 * sector_bytes + 128 * number;
        bytes[entry] = 1;
        let (first, end) = (first / sector_bytes as u64, (first + (64 << 20)) / sector_bytes as u64);
        bytes[entry + 32..entry + 40].copy_from_slice(&first.to_le_bytes());
        bytes[entry + 40..entry + 48].copy_from_slice(&(end - 1).to_le_bytes());
    }
    bytes.truncate(bytes.len() / 4096 * 4096);
    bytes
}

#[test]
fn the_file_system_of_every_partition_is_found() {
    if !has_programs(&["mke2fs"]) {
        return;
    }
    let image = Image::make(64 << 20, "mke2fs", &[&EXT4[..], &["-J", "size=4"]].concat());
    let within = journals_of(&image);
    for table in [mbr(), gpt(512), gpt(4096)] {
        let mut running = Running::new(SIZE_BYTES);
        running.become_like(0, &table);
        let moved = |start: u64| within.iter().map(move |range| start + range.start..start + range.end);
        running.become_like(1 << 20, &bytes_of(&image));
        assert_eq!(running.journals(), moved(1 << 20).collect::<Vec<_>>());
        running.become_like(128 << 20, &bytes_of(&image));
        let both: Vec<_> = moved(1 << 20).chain(moved(128 << 20)).collect();
        assert_eq!(running.journals(), both, "the second one, too");
        assert_eq!(running.label_of(both[1].start / 4096, &[1; 4096]), Content::Journal);
        assert_eq!(running.device.file_systems(), 2);
    }
}

#[test]
fn a_damaged_file_system_has_no_labels_and_one_beside_it_keeps_them() {
    if !has_programs(&["mke2fs"]) {
        return;
    }
    let image = Image::make(64 << 20, "mke2fs", &[&EXT4[..], &["-J", "size=4"]].concat());
    let mut running = Running::new(SIZE_BYTES);
    running.become_like(0, &mbr());
    running.become_like(1 << 20, &bytes_of(&image));
    running.become_like(128 << 20, &bytes_of(&image));
    // Its superblock is inconsistent, with a valid magic number.
    let mut superblock = bytes_of(&image)[..4096].to_vec();
    superblock[1024 + 4..1024 + 8].copy_from_slice(&[0xFF; 4]);
    running.write((128 << 20) / 4096, &superblock);
    running.device.flush(Time::ZERO).unwrap();
    assert!(running.journals().iter().all(|range| range.end <= 128 << 20), "{:?}", running.journals());
    assert!(!running.journals().is_empty());
    running.device.discard(Lba(0), (1 << 20) / 4096, Time::ZERO).unwrap();
    running.device.flush(Time::ZERO).unwrap();
    assert_eq!(running.journals(), [], "without a table there are no partitions");
}
