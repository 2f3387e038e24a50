//! The page cache, readahead and preallocation, on simulated volumes whose device counts what is asked of it.

use crate::image::{Image, call, has_e2fsprogs};
use flashpath::fs::Durable;
use flashpath::fs::station::Access;
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::run::{Path, simulated_file_system};
use std::sync::Arc;

fn volume(options: &str) -> Arc<dyn Volume> {
    let path = Path::read(&format!("ext:journal-size=4M{options}/conv:size=64M,timing=off")).unwrap();
    simulated_file_system(&path, 3).unwrap()
}

fn file(volume: &dyn Volume, name: &[u8]) -> InodeNumber {
    let kind = FileKind::Regular;
    let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    call(|call| volume.make(call, (InodeNumber::ROOT, name), &new, Hold::Yes, None)).unwrap().inode
}

fn write(volume: &dyn Volume, file: InodeNumber, block: u64, blocks: usize) {
    call(|call| volume.write(call, file, block * 4096, &vec![7; blocks * 4096], None)).unwrap();
    call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
}

/// The blocks that the device was asked to read for these reads of `file`.
fn blocks_read(volume: &dyn Volume, file: InodeNumber, blocks: impl Iterator<Item = u64>) -> u64 {
    let read = || call(|call| volume.account(call)).unwrap().read_blocks;
    let before = read();
    for block in blocks {
        let mut bytes = [0; 4096];
        call(|call| volume.read(call, file, block * 4096, &mut bytes)).unwrap();
    }
    read() - before
}

#[test]
fn a_file_is_read_from_the_device_once_while_it_fits_into_the_page_cache() {
    let cached = volume(",page-cache=8M");
    let small = file(&*cached, b"small");
    write(&*cached, small, 0, 512);
    assert_eq!(blocks_read(&*cached, small, 0..512), 0, "what was written is still in memory");
    let large = file(&*cached, b"large");
    (0..16).for_each(|part| write(&*cached, large, part * 512, 512));
    assert_eq!(blocks_read(&*cached, small, 0..512), 512, "32 MiB of another file displaced it");
    assert_eq!(blocks_read(&*cached, small, 0..512), 0);

    let uncached = volume(",page-cache=0");
    let small = file(&*uncached, b"small");
    write(&*uncached, small, 0, 512);
    assert_eq!(blocks_read(&*uncached, small, (0..512).chain(0..512)), 1024);
}

#[test]
fn reads_in_sequence_go_ahead_and_reads_at_random_do_not() {
    let volume = volume(",page-cache=1M,readahead=64K");
    let (ours, other) = (file(&*volume, b"ours"), file(&*volume, b"other"));
    write(&*volume, ours, 0, 1024);
    (0..4).for_each(|part| write(&*volume, other, part * 512, 512));
    assert_eq!(blocks_read(&*volume, ours, [0].into_iter()), 5, "the first read reads four blocks ahead");
    assert_eq!(blocks_read(&*volume, ours, 1..5), 0);
    assert_eq!(blocks_read(&*volume, ours, 5..6), 17, "the window has grown to its limit");
    assert_eq!(blocks_read(&*volume, ours, [700, 300, 900, 500].into_iter()), 4);
    assert_eq!(blocks_read(&*volume, ours, [1023].into_iter()), 1, "the end of the file ends it");
}

#[test]
fn a_page_that_is_cached_follows_writes_truncation_and_reuse_of_its_block() {
    if !has_e2fsprogs() {
        return;
    }
    for data in ["ordered", "writeback", "journal"] {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(&["-t", "ext4", "-b", "1024"]);
        let volume = image.volume(&format!(":data={data},page-cache=64M"), Access::IfWhole);
        let bytes = |file| {
            let mut bytes = vec![0xEE; 40_000];
            let length = call(|call| volume.read(call, file, 0, &mut bytes)).unwrap().length;
            bytes.truncate(length);
            bytes
        };
        let mut before = None;
        for round in 0..40u8 {
            let own = file(&*volume, format!("{round}").as_bytes());
            call(|call| volume.write(call, own, 100, &[round + 1; 30_000], None)).unwrap();
            if round % 2 == 0 {
                call(|call| volume.sync(call)).unwrap();
            }
            assert_eq!(bytes(own), [vec![0; 100], vec![round + 1; 30_000]].concat(), "{data}");
            call(|call| volume.write(call, own, 5000, &[0x99; 10], None)).unwrap();
            call(|call| volume.sync_file(call, own, Durable::Data)).unwrap();
            let mut expected = [vec![0; 100], vec![round + 1; 30_000]].concat();
            expected[5000..5010].fill(0x99);
            assert_eq!(bytes(own), expected, "{data}: a cached page is written");
            // Its blocks are another file's in the next round.
            if let Some(name) = before.replace(format!("{round}")) {
                call(|call| volume.unlink(call, (InodeNumber::ROOT, name.as_bytes()), None)).unwrap();
                call(|call| volume.sync(call)).unwrap();
            }
        }
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        image.check();
    }
}

/// Each file had one extent for each synced block.
#[test]
fn files_that_grow_side_by_side_and_are_synced_after_each_block_lie_in_few_runs() {
    if !has_e2fsprogs() {
        return;
    }
    for data in ["ordered", "journal"] {
        let image = Image::of_bytes(256 << 20);
        image.mke2fs(&["-t", "ext4"]);
        let volume = image.volume(&format!(":data={data}"), Access::IfWhole);
        let files: Vec<InodeNumber> = (0..4).map(|number| file(&*volume, format!("{number}").as_bytes())).collect();
        (0..128).for_each(|block| files.iter().for_each(|file| write(&*volume, *file, block, 1)));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        image.check();
        for number in 0..4 {
            let extents = image.debugfs(&format!("extents {number}"));
            let runs = extents.lines().count() - 1;
            assert!(runs <= 12, "{data}: 128 blocks in {runs} runs\n{extents}");
        }
    }
}

/// Windows are a wish: a volume with as many files that grow as it has blocks can be filled to the last.
#[test]
fn preallocation_leaves_no_block_of_a_full_volume_unused() {
    let volume = volume(",page-cache=0");
    let files: Vec<InodeNumber> = (0..100).map(|number| file(&*volume, format!("{number}").as_bytes())).collect();
    let mut is_full = false;
    for block in 0..10_000 {
        for file in &files {
            let written = call(|call| volume.write(call, *file, block * 4096, &[7; 4096], None));
            is_full |= written.and_then(|_| call(|call| volume.sync_file(call, *file, Durable::All))).is_err();
        }
        if is_full {
            break;
        }
    }
    let space = call(|call| volume.space(call)).unwrap();
    assert!(is_full && space.free_blocks < 64, "{} blocks are free", space.free_blocks);
}
