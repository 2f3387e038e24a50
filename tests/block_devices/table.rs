//! The devices: every station that offers blocks, in each mode, and every wrapper.

use crate::BLOCK;
use crate::failing_disk::FailingDisk;
use crate::power_cut::{Disk, Power};
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::{BlockDevice, Lba};
use flashpath::expression::parse_term;
use flashpath::run::{Labelling, Path, Payload, open_device};
use flashpath::time::Time;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

/// Blocks of an image.
const IMAGE_BLOCKS: u64 = 1024;

/// A device of the table.
pub struct Row {
    pub name: &'static str,
    /// True if it reads blocks beyond those of requests.
    reads_more: bool,
    open: fn(&TempDir) -> Box<dyn BlockDevice>,
}

/// An open device, and the directory of its images.
pub struct Opened {
    pub name: &'static str,
    pub reads_more: bool,
    pub device: Box<dyn BlockDevice>,
    _images: TempDir,
}

impl Row {
    /// Opens a new device of zeros.
    pub fn open(&self) -> Opened {
        let images = TempDir::new().unwrap();
        Opened { name: self.name, reads_more: self.reads_more, device: (self.open)(&images), _images: images }
    }
}

/// The device of a path; IMAGE stands for a new file.
fn path(images: &TempDir, text: &str) -> Box<dyn BlockDevice> {
    let image = images.path().join("image");
    if text.contains("IMAGE") {
        File::create(&image).unwrap().set_len(IMAGE_BLOCKS * BLOCK as u64).unwrap();
    }
    let path = Path::read(&text.replace("IMAGE", image.to_str().unwrap())).unwrap_or_else(|error| panic!("{error}"));
    open_device(&path, Payload::Bytes, 1).unwrap()
}

/// Makes blocks of zeros a journal that is held: its superblock is there only while the place is named.
fn hold_journal(images: &TempDir, device: &dyn BlockDevice, journal: Range<u64>) {
    let mut superblock = vec![0; BLOCK];
    for (at, word) in [(0, 0xC03B_3998), (4, 4), (12, BLOCK as u32), (16, (journal.end - journal.start) as u32)] {
        superblock[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }
    let image = File::options().write(true).open(images.path().join("image")).unwrap();
    image.write_all_at(&superblock, journal.start * BLOCK as u64).unwrap();
    device.set_journal(&[Lba(journal.start)..Lba(journal.end)]).unwrap();
    device.discard(Lba(journal.start), 1, Time::ZERO).unwrap();
}

macro_rules! paths {
    ($($text:literal),* $(,)?) => {
        [$(Row { name: $text, reads_more: false, open: |images| path(images, $text) }),*]
    };
}

/// Every station, by its path.
static PATHS: [Row; 19] = paths![
    "conv:size=4M",
    "conv:size=4M,timing=off",
    "conv:image=IMAGE",
    "conv:size=32M,ftl=page",
    "page/nand:size=64M,pages-per-block=64",
    "page/nand:size=64M,pages-per-block=64,timing=off",
    "dftl/nand:size=64M,pages-per-block=64",
    "fast/nand:size=64M,pages-per-block=64",
    "superblock/nand:size=64M,pages-per-block=64,page=8K",
    "dm-zoned:reserved=3/conv:size=8M+zns:size=64M,zone=1M",
    "dm-zoned:reserved=3/zns:size=64M,zone=1M,conventional=8",
    "cache:size=256K,policy=lru/conv:size=4M",
    "cache:size=256K,policy=fifo/conv:size=4M,timing=off",
    "cache:size=256K,policy=clock/page/nand:size=64M,pages-per-block=64",
    "cache:size=256K/conv:size=2M+conv:image=IMAGE",
    "cache:size=64K/cache:size=256K/conv:size=4M",
    "hold-journal/conv:size=4M",
    "hold-journal/conv:image=IMAGE",
    "dm-zoned:reserved=3/cache:size=256K/conv:size=8M+zns:size=64M,zone=1M",
];

/// Wrappers, of a device or of a disk below one.
static WRAPPERS: [Row; 5] = [
    Row {
        name: "labelled conv",
        reads_more: true,
        open: |images| Box::new(Labelling::new(path(images, "conv:size=4M"), Time::ZERO).unwrap()),
    },
    Row {
        name: "labelled cache on an image",
        reads_more: true,
        open: |images| Box::new(Labelling::new(path(images, "cache:size=256K/conv:image=IMAGE"), Time::ZERO).unwrap()),
    },
    Row {
        name: "hold-journal with a journal on an image",
        reads_more: false,
        open: |images| {
            let device = path(images, "hold-journal/conv:image=IMAGE");
            hold_journal(images, &*device, 4..40);
            device
        },
    },
    Row {
        name: "conv on a disk that can fail",
        reads_more: false,
        open: |_| {
            let disk = FailingDisk::holding(vec![0; IMAGE_BLOCKS as usize * BLOCK]);
            let settings = ConvSettings::read(&parse_term("conv:image=x").unwrap()).unwrap();
            Box::new(Conventional::open_on(Box::new(disk), &settings).unwrap())
        },
    },
    Row {
        name: "a disk whose power can fail",
        reads_more: false,
        open: |_| Box::new(Disk::new(&Power::new(), IMAGE_BLOCKS, 0)),
    },
];

pub fn rows() -> impl Iterator<Item = &'static Row> {
    PATHS.iter().chain(&WRAPPERS)
}
