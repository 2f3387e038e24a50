//! Images that the kernel has filled, read by this program: the same files, with the same bytes.

use crate::image::{Image, call, can_mount};
use crate::walk::{assert_same, of_directory, of_volume};
use flashpath::fs::station::Access;
use flashpath::random::Random;
use rustix::fs::{FallocateFlags, FileType, Mode, XattrFlags, fallocate, lsetxattr, mknodat};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

/// Fills a directory with what real ones have, and with what is rare.
pub fn fill(directory: &Path, names: usize, has_attributes: bool) {
    let mut random = Random::new(3, "fill");
    let mut bytes = vec![0; 200_000];
    bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
    let deep = directory.join("a/b/c/d");
    fs::create_dir_all(&deep).unwrap();
    for (number, length) in
        [0, 1, 59, 60, 61, 1023, 1024, 1025, 4095, 4096, 4097, 70_000, 200_000].into_iter().enumerate()
    {
        fs::write(deep.join(format!("file {number}")), &bytes[..length]).unwrap();
    }
    fs::hard_link(deep.join("file 5"), directory.join("another name")).unwrap();
    // A hole at the beginning, in the middle, at the end; and far away.
    let sparse = File::create(directory.join("sparse")).unwrap();
    for at in [50_000, 5_000_000, 300_000_000] {
        sparse.write_all_at(&bytes[..3000], at).unwrap();
    }
    sparse.set_len(900_000_000).unwrap();
    fragmented(directory, &bytes);
    let reserved = File::create(directory.join("reserved")).unwrap();
    // A block map knows no reserved blocks.
    if fallocate(&reserved, FallocateFlags::empty(), 0, 300_000).is_ok() {
        reserved.write_all_at(&bytes[..10_000], 100_000).unwrap();
        fallocate(&reserved, FallocateFlags::KEEP_SIZE, 400_000, 100_000).unwrap();
    }
    for length in [1, 59, 60, 1000] {
        symlink("x".repeat(length), directory.join(format!("link {length}"))).unwrap();
    }
    let node = |name: &str, kind, device| {
        mknodat(rustix::fs::CWD, directory.join(name), kind, Mode::from_bits_truncate(0o640), device).unwrap();
    };
    node("pipe", FileType::Fifo, 0);
    node("socket", FileType::Socket, 0);
    node("null", FileType::CharacterDevice, rustix::fs::makedev(1, 3));
    node("disk", FileType::BlockDevice, rustix::fs::makedev(259, 70_000));
    fs::set_permissions(directory.join("another name"), fs::Permissions::from_mode(0o6711)).unwrap();
    std::os::unix::fs::lchown(directory.join("link 59"), Some(70_000), Some(80_000)).unwrap();
    if has_attributes {
        attributes(directory);
    }
    let many = directory.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..names {
        File::create(many.join(format!("{:x} a name that takes some room, number {number}", random.below(u64::MAX))))
            .unwrap();
    }
    for (number, entry) in fs::read_dir(&many).unwrap().enumerate() {
        if number % 7 == 0 {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

/// Two files that grow in turn, so that neither lies in one run.
fn fragmented(directory: &Path, bytes: &[u8]) {
    let mut files = ["one", "other"].map(|name| File::create(directory.join(name)).unwrap());
    for part in bytes.chunks(5000).cycle().take(300) {
        for file in &mut files {
            file.write_all(part).unwrap();
            file.sync_data().unwrap();
        }
    }
}

/// Extended attributes in the inode, in a block, in one that is shared; and access control lists.
fn attributes(directory: &Path) {
    let set = |name: &str, attribute: &str, value: &[u8]| {
        lsetxattr(directory.join(name), attribute, value, XattrFlags::empty()).unwrap();
    };
    set("sparse", "user.small", b"value");
    set("sparse", "trusted.empty", b"");
    set("reserved", "user.large", &[7; 700]);
    set("one", "user.large", &[7; 700]);
    set("other", "security.capability", &[1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let nobody = u32::MAX;
    let list = [
        2u32.to_le_bytes().to_vec(),
        entry(1, 7, nobody),
        entry(2, 5, 1000),
        entry(4, 5, nobody),
        entry(8, 4, 70_000),
        entry(16, 7, nobody),
        entry(32, 1, nobody),
    ]
    .concat();
    set("one", "system.posix_acl_access", &list);
    set("a", "system.posix_acl_default", &list);
}

/// Fills an image by the kernel, and compares what it and this program read.
fn compare(mke2fs: &[&str], megabytes: u64, names: usize) {
    let image = Image::of_bytes(megabytes << 20);
    image.mke2fs(mke2fs);
    let mounted = image.mount("");
    fill(&mounted.directory, names, true);
    drop(mounted);
    let again = image.mount(",ro");
    let theirs = of_directory(&again.directory);
    drop(again);
    let volume = image.volume("", Access::ReadOnly);
    let ours = of_volume(&*volume);
    assert_same(&ours, &theirs, &format!("{mke2fs:?}"));
    assert!(theirs.len() > names * 6 / 7, "{} files", theirs.len());
    call(|call| volume.unmount(call)).unwrap();
    image.check();
}

#[test]
fn an_image_of_the_kernel_is_read_as_the_kernel_reads_it() {
    if can_mount() {
        compare(&["-t", "ext4"], 256, 12_000);
    }
}

#[test]
fn images_of_other_features_and_sizes_of_blocks_are_read_likewise() {
    if !can_mount() {
        return;
    }
    for mke2fs in [
        &["-t", "ext3"][..],
        &["-t", "ext4", "-O", "^64bit,^metadata_csum"],
        &["-t", "ext4", "-O", "^metadata_csum,uninit_bg"],
        &["-t", "ext4", "-b", "1024"],
        &["-t", "ext4", "-b", "2048", "-T", "small"],
        &["-t", "ext3", "-b", "1024", "-I", "128"],
        &["-t", "ext4", "-O", "^dir_index"],
        &["-t", "ext4", "-O", "metadata_csum_seed,orphan_file", "-T", "largefile4", "-N", "4096"],
        &["-t", "ext4", "-O", "meta_bg,^resize_inode"],
        &["-t", "ext4", "-O", "sparse_super2,^flex_bg"],
    ] {
        compare(mke2fs, 128, 900);
    }
}
