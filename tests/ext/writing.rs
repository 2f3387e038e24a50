//! Volumes that this program has made and written, as e2fsck and the kernel see them.

use crate::image::{Image, call, can_mount, has_e2fsprogs};
use crate::walk::{assert_same, of_directory, of_volume};
use crate::work::Work;
use flashpath::fs::station::{Access, Mounting};
use flashpath::run::{Path, make_volume};

/// A volume that this program makes.
pub fn made(megabytes: u64, options: &str) -> Image {
    let image = Image::of_bytes(4096);
    std::fs::remove_file(image.path()).unwrap();
    let path = format!("ext{options}/conv:image={},size={megabytes}M", image.text());
    make_volume(&Path::read(&path).unwrap(), false, 7, Mounting::at(7, 1_700_000_000_000_000_000).origin.0, None)
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    image
}

#[test]
fn a_new_volume_is_clean_for_e2fsck_whatever_its_size() {
    if !has_e2fsprogs() {
        return;
    }
    for (megabytes, options) in [
        (8, ""),
        (64, ""),
        (129, ""),
        (700, ""),
        (2049, ""),
        (5000, ""),
        (8, ":block=1K"),
        (600, ":block=1K"),
        (300, ":block=2K"),
    ] {
        made(megabytes, options).check();
    }
}

/// The map of such a journal has a block of its own: making it panicked.
#[test]
fn a_volume_with_a_large_journal_is_clean_and_works_with_the_kernel() {
    if !can_mount() {
        return;
    }
    for (megabytes, options) in
        [(3000, ":journal-size=512M"), (5000, ":journal-size=1G"), (700, ":block=1K,journal-size=256M")]
    {
        let image = made(megabytes, options);
        image.check();
        works(&image, "", 12, 998);
    }
}

/// Random work on a volume; then it is checked, and read by the kernel and by this program again.
fn works(image: &Image, options: &str, seed: u64, calls: u32) {
    let volume = image.volume(options, Access::IfWhole);
    let mut work = Work::new(seed);
    for number in 0..calls {
        work.step(&*volume);
        if number % 997 == 0 {
            call(|call| volume.sync(call)).unwrap();
        }
    }
    let ours = of_volume(&*volume);
    work.compare(&*volume);
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    image.check();
    let again = image.volume("", Access::ReadOnly);
    assert_same(&of_volume(&*again), &ours, &format!("{options}, seed {seed}, read again"));
    call(|call| again.unmount(call)).unwrap();
    drop(again);
    let mounted = image.mount(",ro");
    assert_same(&ours, &of_directory(&mounted.directory), &format!("{options}, seed {seed}, by the kernel"));
}

#[test]
fn what_random_work_leaves_is_clean_and_the_kernel_reads_the_same() {
    if !can_mount() {
        return;
    }
    for (options, made_with) in [
        ("", ""),
        (":data=writeback,dirty=1M", ""),
        (":data=journal", ""),
        (":data=journal", ":block=1K"),
        ("", ":block=2K"),
        // Less memory than what waits to be written home takes.
        (":cache=1M", ""),
    ] {
        works(&made(64, made_with), options, 11, 6000);
    }
}

#[test]
fn volumes_of_mke2fs_are_written_likewise() {
    if !can_mount() {
        return;
    }
    for (mke2fs, options) in [
        (&["-t", "ext3"][..], ""),
        (&["-t", "ext3", "-b", "1024"], ":data=journal"),
        (&["-t", "ext4"], ":data=writeback"),
        (&["-t", "ext4", "-O", "^64bit,^metadata_csum"], ""),
        (&["-t", "ext4", "-O", "^metadata_csum,uninit_bg", "-b", "1024"], ""),
        (&["-t", "ext4", "-O", "^dir_index,^extent,^64bit"], ""),
        (&["-t", "ext4", "-O", "metadata_csum_seed,orphan_file", "-I", "512"], ""),
    ] {
        let image = Image::of_bytes(64 << 20);
        image.mke2fs(mke2fs);
        works(&image, options, 12, 4000);
    }
}
