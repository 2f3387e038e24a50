//! btrfs, made by mkfs.btrfs and read by `btrfs inspect-internal`.

use crate::image::{Image, has_programs};
use flashpath::layout::{FileSystem, Journal, Region, Regions};

/// The chunks that `dump-tree` lists, with the mirrors of the superblock.
fn chunks(image: &Image) -> Regions {
    let text = image.run("btrfs", &["inspect-internal", "dump-tree", "-t", "chunk"]);
    let (mut ranges, mut length, mut region) = (Vec::new(), 0, None);
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // length 8388608 owner 2 stripe_len 65536 type SYSTEM|DUP
            ["length", bytes, "owner", .., kind] => {
                length = bytes.parse().unwrap();
                region = match kind.split('|').next().unwrap() {
                    "DATA" if kind.contains("METADATA") => None,
                    "DATA" => Some(Region::Data),
                    _ => Some(Region::Metadata),
                };
            }
            // stripe 0 devid 1 offset 22020096
            ["stripe", _, "devid", _, "offset", offset] => {
                let start: u64 = offset.parse().unwrap();
                ranges.extend(region.map(|region| (start..start + length, region)));
            }
            _ => {}
        }
    }
    assert!(text.contains("CHUNK_ITEM"), "{text}");
    ranges.extend([64u64 << 10, 64 << 20].map(|at| (at..at + 4096, Region::Metadata)));
    Regions::new(ranges)
}

#[test]
fn chunks_match_dump_tree() {
    if !has_programs(&["mkfs.btrfs", "btrfs"]) {
        return;
    }
    let kinds: [(&[&str], u64); 5] = [
        (&[], 512 << 20),
        (&["-m", "single"], 512 << 20),
        (&["-d", "dup", "-m", "dup"], 1 << 30),
        (&["-n", "4096"], 300 << 20),
        (&["--mixed"], 300 << 20),
    ];
    for (kind, size_bytes) in kinds {
        let image = Image::make(size_bytes, "mkfs.btrfs", &[&["-q", "-f"], kind].concat());
        let layout = image.layout();
        assert_eq!((layout.file_system, layout.journal), (FileSystem::Btrfs, Journal::None));
        assert_eq!(layout.regions, chunks(&image), "{kind:?}");
        let says_data = layout.regions.bytes_of(Region::Data) > 0;
        assert_eq!(says_data, !kind.contains(&"--mixed"), "mixed chunks do not separate data by place: {kind:?}");
    }
}
