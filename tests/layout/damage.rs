//! Damage never makes the reader of a layout panic, or return an impossible layout.

use crate::image::{Image, has_programs};
use flashpath::layout::{Layout, LayoutError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The blocks of an image that a reader has read, and the bytes in which damage may matter.
struct Seen {
    size_bytes: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

const BLOCK: u64 = 1024;

impl Seen {
    /// Records the reads of a layout.
    fn of(image: &Image) -> Seen {
        let file = File::open(image.path()).unwrap();
        let mut blocks = BTreeMap::new();
        let mut read = |offset: u64, buffer: &mut [u8]| -> io::Result<()> {
            for block in offset / BLOCK..=(offset + buffer.len() as u64 - 1) / BLOCK {
                let mut bytes = vec![0; BLOCK as usize];
                file.read_exact_at(&mut bytes, block * BLOCK)?;
                blocks.insert(block, bytes);
            }
            file.read_exact_at(buffer, offset)
        };
        Layout::read_with_files(&mut read, image.size_bytes).unwrap();
        Seen { size_bytes: image.size_bytes, blocks }
    }

    /// Reads with changed bytes; blocks that were not read before are zero.
    fn read(&self, damage: &BTreeMap<u64, u8>, with_files: bool) -> Result<Layout, LayoutError> {
        let mut read = |offset: u64, buffer: &mut [u8]| -> io::Result<()> {
            buffer.fill(0);
            let end = offset + buffer.len() as u64;
            for (at, block) in self.blocks.range(offset / BLOCK..end.div_ceil(BLOCK)) {
                let (from, to) = ((at * BLOCK).max(offset), (at * BLOCK + BLOCK).min(end));
                let part = &block[(from - at * BLOCK) as usize..(to - at * BLOCK) as usize];
                buffer[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
            for (place, value) in damage.range(offset..end) {
                buffer[(place - offset) as usize] = *value;
            }
            Ok(())
        };
        if with_files {
            Layout::read_with_files(&mut read, self.size_bytes)
        } else {
            Layout::read(&mut read, self.size_bytes)
        }
    }
}

/// Checks the properties of any layout that was read.
fn check(seen: &Seen, damage: &BTreeMap<u64, u8>) {
    for with_files in [false, true] {
        match seen.read(damage, with_files) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(layout) => {
                let mut end = 0;
                for (range, _) in layout.regions.iter() {
                    assert!(end <= range.start && range.start < range.end && range.end <= seen.size_bytes, "{range:?}");
                    end = range.end;
                }
            }
        }
    }
}

fn images() -> Vec<Seen> {
    let kinds: [(&str, &[&str], u64); 6] = [
        ("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "1024"], 40 << 20),
        ("mke2fs", &["-q", "-F", "-t", "ext3", "-b", "1024"], 40 << 20),
        ("mke2fs", &["-q", "-F", "-t", "ext4", "-O", "meta_bg,^resize_inode", "-b", "1024"], 40 << 20),
        ("mke2fs", &["-q", "-F", "-b", "4096", "-O", "journal_dev"], 40 << 20),
        ("mkfs.xfs", &["-q", "-f"], 512 << 20),
        ("mkfs.btrfs", &["-q", "-f"], 512 << 20),
    ];
    let made = kinds.into_iter().filter(|(program, ..)| has_programs(&[program]));
    made.map(|(program, arguments, size_bytes)| Seen::of(&Image::make(size_bytes, program, arguments))).collect()
}

#[test]
fn no_byte_that_a_reader_believes_makes_it_panic() {
    for seen in images() {
        let places: Vec<u64> = seen
            .blocks
            .iter()
            .flat_map(|(block, bytes)| {
                bytes.iter().enumerate().map(move |(at, byte)| (block * BLOCK + at as u64, *byte))
            })
            .filter(|(_, byte)| *byte != 0)
            .map(|(place, _)| place)
            .collect();
        // Every byte that is not zero is damaged, up to a number that keeps the test short.
        for place in places.iter().step_by(places.len() / 200 + 1) {
            for value in [0, 1, 0x7F, 0xFF] {
                check(&seen, &BTreeMap::from([(*place, value)]));
            }
        }
    }
}

#[test]
fn no_damage_makes_a_reader_panic() {
    let images = images();
    if images.is_empty() {
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
    let image = 0..images.len();
    let damage =
        proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..40);
    runner
        .run(&(image, damage), |(image, damage)| {
            let seen = &images[image];
            let blocks: Vec<u64> = seen.blocks.keys().copied().collect();
            // Superblocks and descriptors come first: half of the damage is theirs.
            let damage = damage
                .into_iter()
                .enumerate()
                .map(|(number, (block, at, value))| {
                    let among = if number % 2 == 0 { blocks.len().min(3) } else { blocks.len() };
                    (blocks[block.index(among)] * BLOCK + at.index(BLOCK as usize) as u64, value)
                })
                .collect();
            check(seen, &damage);
            Ok(())
        })
        .unwrap();
}

#[test]
fn noise_is_no_file_system() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(50));
    runner
        .run(&any::<u64>(), |seed| {
            let mut state = seed | 1;
            let mut read = |_: u64, buffer: &mut [u8]| -> io::Result<()> {
                for byte in buffer {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    *byte = state as u8;
                }
                Ok(())
            };
            prop_assert!(matches!(Layout::read_with_files(&mut read, 1 << 30), Err(LayoutError::Unknown)));
            Ok(())
        })
        .unwrap();
}
