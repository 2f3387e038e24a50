//! Dirty journals in either direction: the kernel's is replayed here, and ours by the kernel.

use crate::image::{Image, call, can_mount, program};
use crate::reading::fill;
use crate::walk::{assert_same, of_directory, of_volume};
use crate::work::Work;
use flashpath::fs::station::Access;
use std::fs;

/// A copy of an image as it is now, mounted or not: what a crash would leave.
pub fn copied(image: &Image) -> Image {
    let copy = Image::of_bytes(0);
    let copied = program("cp").arg("--sparse=always").arg(image.path()).arg(copy.path()).status().unwrap();
    assert!(copied.success());
    copy
}

pub fn needs_recovery(image: &Image) -> bool {
    let said = String::from_utf8(program("dumpe2fs").arg("-h").arg(image.path()).output().unwrap().stdout).unwrap();
    said.lines().any(|line| line.starts_with("Filesystem features") && line.contains("needs_recovery"))
}

#[test]
fn a_journal_that_the_kernel_left_dirty_is_replayed() {
    if !can_mount() {
        return;
    }
    for (mke2fs, options) in [
        (&["-t", "ext4"][..], ""),
        (&["-t", "ext4"], ",data=journal"),
        (&["-t", "ext4", "-O", "^64bit,^metadata_csum"], ",data=writeback"),
        (&["-t", "ext3", "-b", "1024"], ",data=journal"),
    ] {
        let image = Image::of_bytes(128 << 20);
        image.mke2fs(mke2fs);
        let mounted = image.mount(options);
        fill(&mounted.directory, 500, true);
        // Blocks of names that are freed, and used for bytes: they must not come back.
        fs::remove_dir_all(mounted.directory.join("many")).unwrap();
        rustix::fs::sync();
        fs::write(mounted.directory.join("after"), vec![5; 3_000_000]).unwrap();
        fs::File::open(mounted.directory.join("after")).unwrap().sync_all().unwrap();
        let crashed = copied(&image);
        let theirs = of_directory(&mounted.directory);
        drop(mounted);
        assert!(needs_recovery(&crashed), "{mke2fs:?}: the copy is dirty");
        let volume = crashed.volume("", Access::ReadOnly);
        let read_only = of_volume(&*volume);
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        assert!(needs_recovery(&crashed), "{mke2fs:?}: who only reads changes nothing");
        assert_same(&read_only, &theirs, &format!("{mke2fs:?}{options}, replayed in memory"));
        let volume = crashed.volume("", Access::IfWhole);
        assert_same(&of_volume(&*volume), &theirs, &format!("{mke2fs:?}{options}, replayed"));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        assert!(!needs_recovery(&crashed));
        crashed.check();
    }
}

#[test]
fn a_journal_that_this_program_left_dirty_is_replayed_by_the_kernel_and_by_e2fsck() {
    if !can_mount() {
        return;
    }
    for (mke2fs, options) in [
        (&["-t", "ext4"][..], ""),
        (&["-t", "ext4", "-b", "1024"], ":data=journal"),
        (&["-t", "ext4", "-O", "^64bit,^metadata_csum"], ":data=writeback"),
        (&["-t", "ext3"], ":data=journal"),
    ] {
        let image = Image::of_bytes(64 << 20);
        image.mke2fs(mke2fs);
        let volume = image.volume(options, Access::IfWhole);
        let mut work = Work::new(21);
        (0..3000).for_each(|_| work.step(&*volume));
        call(|call| volume.sync(call)).unwrap();
        let ours = of_volume(&*volume);
        drop(volume);
        assert!(needs_recovery(&image), "{mke2fs:?}{options}");
        let (for_e2fsck, for_us) = (copied(&image), copied(&image));
        let mounted = image.mount("");
        assert_same(&ours, &of_directory(&mounted.directory), &format!("{mke2fs:?}{options}, by the kernel"));
        drop(mounted);
        image.check();
        let preened = program("e2fsck").arg("-fp").arg(for_e2fsck.path()).output().unwrap();
        assert!(preened.status.code().is_some_and(|code| code <= 1), "{preened:?}");
        for_e2fsck.check();
        let volume = for_us.volume("", Access::IfWhole);
        assert_same(&of_volume(&*volume), &ours, &format!("{mke2fs:?}{options}, by this program"));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        for_us.check();
    }
}
