//! ext2, ext3 and ext4, made by mke2fs and read by dumpe2fs and debugfs.

use crate::image::{Image, blocks_of, has_programs, inclusive};
use flashpath::layout::{FileSystem, Journal, Region};
use std::collections::BTreeSet;

const TOOLS: [&str; 3] = ["mke2fs", "dumpe2fs", "debugfs"];

/// All kinds with different placement rules.
const KINDS: [&[&str]; 14] = [
    &["-t", "ext4"],
    &["-t", "ext4", "-b", "4096", "-O", "^64bit"],
    &["-t", "ext4", "-b", "1024"],
    &["-t", "ext4", "-b", "2048", "-I", "512"],
    &["-t", "ext4", "-O", "meta_bg,^resize_inode", "-b", "1024"],
    &["-t", "ext4", "-O", "meta_bg,^resize_inode,^64bit", "-b", "1024", "-g", "256"],
    &["-t", "ext4", "-O", "^flex_bg"],
    &["-t", "ext4", "-O", "sparse_super2"],
    &["-t", "ext4", "-O", "^sparse_super,^resize_inode", "-b", "1024"],
    &["-t", "ext4", "-O", "bigalloc", "-C", "16384"],
    &["-t", "ext4", "-O", "mmp,quota"],
    &["-t", "ext3"],
    &["-t", "ext3", "-b", "1024", "-J", "size=40"],
    &["-t", "ext2", "-b", "1024"],
];
const SIZE_BYTES: u64 = 300 << 20;

fn make(kind: &[&str]) -> Image {
    let lazy = ["-q", "-F", "-E", "lazy_itable_init=1,nodiscard"];
    Image::make(SIZE_BYTES, "mke2fs", &[&lazy[..], kind].concat())
}

/// The blocks of an inode, as `debugfs` lists them, with its indirect and extent blocks.
fn blocks_of_inode(image: &Image, inode: &str) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let text = image.run("debugfs", &["-R", &format!("stat {inode}")]);
    let list = text.split("BLOCKS:").nth(1).or(text.split("EXTENTS:").nth(1)).unwrap_or_default();
    let list = list.split("TOTAL").next().unwrap();
    let (mut blocks, mut naming) = (BTreeSet::new(), BTreeSet::new());
    // (0-11):1054-1065, (IND):1066, (12-267):1067-1322, (ETB0):33
    for item in list.split(['(']).skip(1) {
        let (name, place) = item.split_once("):").unwrap();
        let place = place.trim().trim_end_matches(',').trim();
        let range = inclusive(place).unwrap_or_else(|| panic!("{item}"));
        if name.contains("IND") || name.contains("ETB") { naming.extend(range) } else { blocks.extend(range) }
    }
    (blocks, naming)
}

/// The fixed blocks that `dumpe2fs` lists.
fn fixed_blocks(image: &Image) -> BTreeSet<u64> {
    let mut fixed = BTreeSet::new();
    for line in image.run("dumpe2fs", &[]).lines() {
        let line = line.trim();
        let named = ["Primary superblock at", "Backup superblock at", "Group descriptors at", "Reserved GDT blocks at"];
        for part in line.split(',').map(str::trim) {
            if let Some(place) = named.iter().find_map(|name| part.strip_prefix(name)) {
                fixed.extend(inclusive(place).unwrap());
            }
            // The descriptor block of a group of meta groups.
            if let Some(place) = part.strip_prefix("Group descriptor at") {
                fixed.extend(inclusive(place).unwrap());
            }
        }
        for name in ["Block bitmap at", "Inode bitmap at", "Inode table at"] {
            for (at, _) in line.match_indices(name) {
                let place = line[at + name.len()..].trim_start();
                let end = place.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(place.len());
                fixed.extend(inclusive(&place[..end]).unwrap());
            }
        }
    }
    fixed
}

#[test]
fn journal_and_fixed_metadata_match_the_tools() {
    if !has_programs(&TOOLS) {
        return;
    }
    for kind in KINDS {
        let image = make(kind);
        let layout = image.layout();
        assert_eq!(layout.file_system, FileSystem::Ext);
        let (journal, naming) = if kind.contains(&"ext2") {
            assert_eq!(layout.journal, Journal::None);
            Default::default()
        } else {
            assert_eq!(layout.journal, Journal::Inside, "{kind:?}");
            blocks_of_inode(&image, "<8>")
        };
        assert_eq!(blocks_of(&layout, Region::Journal), journal, "the journal of {kind:?}");
        let metadata = blocks_of(&layout, Region::Metadata);
        let fixed = fixed_blocks(&image);
        assert!(fixed.len() > 100, "dumpe2fs was understood: {kind:?}");
        let missing: Vec<_> = fixed.difference(&metadata).collect();
        assert!(
            missing.is_empty(),
            "{kind:?} has metadata that was not found: {:?}",
            missing.iter().take(9).collect::<Vec<_>>()
        );
        // Other metadata belongs to the root directory, lost+found, and the file system's own files.
        let mut own = naming;
        for inode in ["<2>", "<3>", "<4>", "<11>", "<12>"] {
            let (blocks, naming) = blocks_of_inode(&image, inode);
            own.extend(blocks.into_iter().chain(naming));
        }
        let protection = image.run("dumpe2fs", &["-h"]);
        let protection = protection.lines().find_map(|line| line.strip_prefix("MMP block number:"));
        own.extend(protection.map(|number| number.trim().parse::<u64>().unwrap()));
        own.insert(0);
        let unexplained: Vec<_> = metadata.difference(&fixed).filter(|block| !own.contains(block)).collect();
        assert!(
            unexplained.is_empty(),
            "{kind:?} has unknown metadata: {:?}",
            unexplained.iter().take(9).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_files_blocks_are_data_and_its_block_map_is_metadata() {
    if !has_programs(&TOOLS) {
        return;
    }
    for kind in [&["-t", "ext4", "-b", "1024"][..], &["-t", "ext3", "-b", "1024"]] {
        let image = make(kind);
        std::fs::write(image.directory.path().join("large"), vec![7; 9 << 20]).unwrap();
        image.run("debugfs", &["-w", "-R", "write large large"]);
        image.run("debugfs", &["-w", "-R", "mkdir place"]);
        image.run("debugfs", &["-w", "-R", &format!("symlink link {}", "x".repeat(100))]);
        let layout = image.layout();
        let (data, naming) = blocks_of_inode(&image, "large");
        assert_eq!(data.len(), 9 << 10);
        assert_eq!(blocks_of(&layout, Region::Data), data, "{kind:?}");
        let metadata = blocks_of(&layout, Region::Metadata);
        assert!(naming.is_subset(&metadata), "{kind:?}");
        assert!(naming.len() > 30 || kind.contains(&"ext4"), "a block map names itself: {naming:?}");
        for inode in ["place", "link"] {
            let (blocks, _) = blocks_of_inode(&image, inode);
            assert!(!blocks.is_empty() && blocks.is_subset(&metadata), "{inode}");
        }
        let mut block = vec![0; 1024];
        let place = blocks_of_inode(&image, "place").0.into_iter().next().unwrap();
        let file = std::fs::File::open(image.path()).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut block, place * 1024).unwrap();
        assert!(layout.reads_as_metadata(&block));
    }
}

#[test]
fn the_superblocks_copy_serves_if_the_journals_inode_is_lost() {
    if !has_programs(&TOOLS) {
        return;
    }
    for kind in [&["-t", "ext4"][..], &["-t", "ext3"]] {
        let image = make(kind);
        let journal = blocks_of(&image.layout(), Region::Journal);
        image.run("debugfs", &["-w", "-R", "clri <8>"]);
        assert_eq!(blocks_of(&image.layout(), Region::Journal), journal, "{kind:?}");
    }
}

#[test]
fn an_external_journal_is_seen_from_both_sides() {
    if !has_programs(&TOOLS) {
        return;
    }
    let journal = Image::make(64 << 20, "mke2fs", &["-q", "-F", "-b", "4096", "-O", "journal_dev"]);
    let layout = journal.layout();
    assert_eq!(layout.journal, Journal::Whole);
    assert_eq!(layout.regions.bytes_of(Region::Journal), 64 << 20);
    // mke2fs accepts no journal in a plain file; this is a feature without an inode.
    let image = Image::make(SIZE_BYTES, "mke2fs", &["-q", "-F", "-t", "ext4", "-O", "^has_journal"]);
    image.run("debugfs", &["-w", "-R", "feature has_journal"]);
    let layout = image.layout();
    assert_eq!((layout.journal, layout.regions.bytes_of(Region::Journal)), (Journal::External, 0));
}
