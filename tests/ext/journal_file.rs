//! The journal's file: its inode damaged, another inode than 8, a map with more blocks than the size. A repair of them gave
//! the log up, with what was acknowledged, or freed its blocks. Our own volumes have it in inode 8, whole and of its size,
//! and no test damaged that inode and looked for the log's blocks in the bitmaps afterwards (foreign maker x checker, and
//! the replay x the mend of what the replay needs).

use crate::crashes::{BLOCK, Disks, Place, findings, mounting, settings};
use crate::image::{Image, call, has_e2fsprogs, program};
use crate::logs::{copied, open, put_image};
use crate::power_cut::Power;
use crate::walk::{assert_same, of_volume};
use crate::work::Work;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes};
use std::fs;

fn options() -> ExtSettings {
    settings("ordered", Place::Inline, 0)
}

/// The image as the disks of a volume.
fn disks_of(image: &Image) -> Disks {
    let disks = Disks::new(&Power::new(), Place::Inline);
    put_image(&disks.volume, image);
    disks
}

/// The same, after work that left its log.
fn killed(disks: &Disks) -> Disks {
    let killed = copied(disks);
    let volume = open(&killed, &options(), Access::IfWhole).unwrap();
    let mut work = Work::new(31);
    (0..600).for_each(|_| work.step(&*volume));
    call(|call| volume.sync(call)).unwrap();
    drop(volume);
    killed
}

fn checked(disks: &Disks) -> Vec<String> {
    let found = options().check(disks.media()).unwrap_or_else(|fault| panic!("{}", fault.source));
    found.into_iter().map(|damage| damage.what).collect()
}

/// Repairs a volume, which then has these files, a log in blocks that are in use, and can be written.
fn repair(disks: &Disks, wanted: &crate::walk::Tree, what: &str) {
    let outcome =
        options().repair(disks.media(), &mounting()).unwrap_or_else(|fault| panic!("{what}: {}", fault.source));
    assert!(outcome.left.is_empty(), "{what}: {outcome:?}");
    assert_eq!((checked(disks), findings(&disks.images())), (Vec::new(), None), "{what}: {outcome:?}");
    let again = options().repair(disks.media(), &mounting()).unwrap();
    assert!(again.repaired.is_empty(), "{what}: repaired twice: {again:?}");
    let volume = open(disks, &options(), Access::IfWhole).unwrap_or_else(|why| panic!("{what}: {why}"));
    let state = call(|call| volume.state(call)).unwrap();
    assert!(state.read_only.is_none(), "{what}: {state:?}");
    let mut there = of_volume(&*volume);
    // A journal with a name: its bytes are the log.
    there.remove(&b"/log"[..]);
    assert_same(wanted, &there, what);
    let mut work = Work::within(32, &*volume, "used");
    (0..300).for_each(|_| work.step(&*volume));
    call(|call| volume.unmount(call)).unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(volume);
    assert_eq!((checked(disks), findings(&disks.images())), (Vec::new(), None), "{what}: used");
}

/// The place of inode 8.
fn place_of_inode(image: &Image) -> usize {
    let said = image.debugfs("imap <8>");
    let (block, rest) = said.split_once("located at block ").unwrap().1.split_once(", offset ").unwrap();
    let offset = rest.trim().trim_start_matches("0x");
    let block_bytes = block_bytes_of(image);
    block.parse::<usize>().unwrap() * block_bytes + usize::from_str_radix(offset, 16).unwrap()
}

fn block_bytes_of(image: &Image) -> usize {
    1024 << fs::read(image.path()).unwrap()[1024 + 24]
}

const KINDS: [&[&str]; 4] = [
    &["-t", "ext4", "-b", "4096"],
    &["-t", "ext4", "-b", "1024"],
    &["-t", "ext4", "-b", "4096", "-O", "^metadata_csum"],
    &["-t", "ext3", "-b", "2048"],
];

#[test]
fn each_flipped_bit_in_the_inode_of_the_journal_is_repaired_and_the_log_stays() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in KINDS {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(mke2fs);
        let at = place_of_inode(&image);
        let clean = disks_of(&image);
        let unclean = killed(&clean);
        let tree = of_volume(&*open(&copied(&unclean), &options(), Access::ReadOnly).unwrap());
        let empty = of_volume(&*open(&clean, &options(), Access::ReadOnly).unwrap());
        for byte in
            [0, 1, 2, 4, 5, 6, 7, 8, 0x14, 0x1a, 0x1b, 0x1c, 0x20, 0x22, 0x28, 0x2a, 0x2c, 0x34, 0x38, 0x3c, 0x40]
                .into_iter()
                .chain([0x64, 0x6c, 0x7c, 0x80, 0x82])
        {
            for (disks, wanted, state) in [(&clean, &empty, "clean"), (&unclean, &tree, "unclean")] {
                let damaged = copied(disks);
                let (block, offset) = (((at + byte) / BLOCK) as u64, (at + byte) % BLOCK);
                let mut bytes = damaged.volume.bytes(block);
                bytes[offset] ^= 1;
                damaged.volume.put(block, &bytes);
                repair(&damaged, wanted, &format!("{mke2fs:?}, byte {byte:#x}, {state}"));
            }
        }
    }
}

#[test]
fn a_journal_without_links_is_mended_also_if_its_checksum_is_right() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in KINDS {
        for request in ["sif <8> links_count 0", "sif <8> mode 040755", "clri <8>", "sif <8> size 5000"] {
            let image = Image::of_bytes(16 << 20);
            image.mke2fs(mke2fs);
            let wanted = of_volume(&*open(&disks_of(&image), &options(), Access::ReadOnly).unwrap());
            image.debugfs(request);
            repair(&disks_of(&image), &wanted, &format!("{mke2fs:?}, {request}"));
        }
    }
}

/// Moves the journal into inode 12, with a name, as `tune2fs -j` does on a mounted volume. Its name there is `.journal`,
/// which e2fsck moves back into inode 8.
fn move_journal(image: &Image) {
    image.debugfs("copy_inode <8> <12>");
    for request in ["seti <12>", "ln <12> log", "sif <12> links_count 1", "clri <8>", "ssv journal_inum 12"] {
        image.debugfs(request);
    }
    let _ = program("e2fsck").args(["-fy", &image.text()]).output().unwrap();
    image.check();
    let said = String::from_utf8(program("dumpe2fs").args(["-h", &image.text()]).output().unwrap().stdout).unwrap();
    assert!(said.lines().any(|line| line.starts_with("Journal inode:") && line.ends_with(" 12")), "{said}");
}

#[test]
fn a_journal_in_another_inode_than_8_is_found_and_mended() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in [&["-t", "ext3", "-b", "4096", "-O", "^resize_inode"][..], &["-t", "ext4", "-b", "4096"]] {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(mke2fs);
        move_journal(&image);
        let clean = disks_of(&image);
        assert_eq!(checked(&clean), Vec::<String>::new(), "{mke2fs:?}");
        let unclean = killed(&clean);
        assert_eq!(checked(&unclean), Vec::<String>::new(), "{mke2fs:?}");
        let mut tree = of_volume(&*open(&copied(&unclean), &options(), Access::ReadOnly).unwrap());
        assert!(tree.remove(&b"/log"[..]).is_some());
        repair(&copied(&unclean), &tree, &format!("{mke2fs:?}, unclean"));
        // The copy in the superblock serves any inode.
        let damaged = copied(&clean);
        let wanted = of_volume(&*open(&copied(&clean), &options(), Access::ReadOnly).unwrap());
        let at = {
            let said = image.debugfs("imap <12>");
            let (block, rest) = said.split_once("located at block ").unwrap().1.split_once(", offset ").unwrap();
            let offset = usize::from_str_radix(rest.trim().trim_start_matches("0x"), 16).unwrap();
            (block.parse::<u64>().unwrap(), offset)
        };
        let mut bytes = damaged.volume.bytes(at.0);
        bytes[at.1 + 0x28..at.1 + 0x28 + 16].fill(0x33);
        damaged.volume.put(at.0, &bytes);
        let outcome = options().repair(damaged.media(), &mounting()).unwrap();
        assert!(outcome.left.is_empty(), "{mke2fs:?}: {outcome:?}");
        let volume = open(&damaged, &options(), Access::IfWhole).unwrap();
        assert_eq!(of_volume(&*volume).keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "{mke2fs:?}");
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        assert_eq!((checked(&damaged), findings(&damaged.images())), (Vec::new(), None), "{mke2fs:?}");
    }
}

/// Old mke2fs gave the journal a block more than its size.
#[test]
fn a_journal_that_maps_a_block_more_than_its_size_is_whole() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in [&["-t", "ext3", "-b", "4096", "-J", "size=5"][..], &["-t", "ext4", "-b", "4096", "-J", "size=5"]] {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(mke2fs);
        let blocks = 1279;
        image.debugfs(&format!("sif <8> size {}", blocks * 4096));
        let mut bytes = fs::read(image.path()).unwrap();
        let log =
            bytes.chunks(4096).position(|block| block[..8] == [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 4]).unwrap() * 4096;
        bytes[log + 16..log + 20].copy_from_slice(&(blocks as u32).to_be_bytes());
        fs::write(image.path(), &bytes).unwrap();
        image.check();
        let clean = disks_of(&image);
        assert_eq!(checked(&clean), Vec::<String>::new(), "{mke2fs:?}");
        let unclean = killed(&clean);
        assert_eq!(checked(&unclean), Vec::<String>::new(), "{mke2fs:?}");
        let tree = of_volume(&*open(&copied(&unclean), &options(), Access::ReadOnly).unwrap());
        repair(&unclean, &tree, &format!("{mke2fs:?}"));
    }
}

/// Such a volume went without a journal, and so could only be read.
#[test]
fn a_journal_of_which_nothing_is_left_is_made_anew() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in KINDS {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(mke2fs);
        let wanted = of_volume(&*open(&disks_of(&image), &options(), Access::ReadOnly).unwrap());
        image.debugfs("clri <8>");
        image.debugfs("ssv jnl_backup_type 0");
        let damaged = disks_of(&image);
        assert!(checked(&damaged)[0].starts_with("the journal has no file"), "{mke2fs:?}");
        repair(&damaged, &wanted, &format!("{mke2fs:?}"));
    }
}
