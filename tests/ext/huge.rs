//! Volumes of 16 TiB, 2^32 blocks, in sparse images: what is kept in memory of their 131,072 groups.
//!
//! Memory is counted for a process, and the tests of this program run side by side in one. So a test starts this program
//! again, for itself alone, and the child asks the kernel for the peak of its own memory (`VmHWM`).

use crate::image::{Image, call, has_e2fsprogs, program, run};
use crate::skipped::skipped;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile};
use flashpath::run::{Path as StationPath, make_volume, open_file_system};
use std::fs::File;
use tempfile::TempDir;

/// Set in the child: the image.
const IMAGE: &str = "EXT_HUGE_IMAGE";
const SIZE_BYTES: u64 = 16 << 40;
const MAX_MEMORY_KIB: u64 = 64 << 10;
const FILE_BYTES: usize = 8 << 20;
const PART_BYTES: usize = 64 << 10;

/// A directory whose file system has files of 16 TiB: those of ext4 end a block below.
fn directory() -> Option<TempDir> {
    let directories = [TempDir::new(), TempDir::new_in("/dev/shm")].into_iter().flatten();
    let can_hold = |directory: &TempDir| {
        let file = File::create(directory.path().join("tried")).unwrap();
        file.set_len(SIZE_BYTES).is_ok()
    };
    directories.into_iter().find(can_hold)
}

/// The parts of the file, and where each begins.
fn parts() -> impl Iterator<Item = (u64, Vec<u8>)> {
    (0..FILE_BYTES)
        .step_by(PART_BYTES)
        .map(|at| (at as u64, (at..at + PART_BYTES).map(|at| (at / 4096 * 31 + at) as u8).collect()))
}

/// The child: opens the volume, writes and reads a file, and unmounts. Returns the peak of its memory in KiB.
fn write_and_read(image: &str) -> u64 {
    let path = StationPath::read(&format!("ext/conv:image={image}")).unwrap();
    let volume =
        open_file_system(&path, &Mounting::at(7, 0), Access::IfWhole).unwrap_or_else(|error| panic!("{error}"));
    let kind = FileKind::Regular;
    let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    let file = call(|call| volume.make(call, (InodeNumber::ROOT, b"file"), &new, Hold::No, None)).unwrap().inode;
    for (at, part) in parts() {
        call(|call| volume.write(call, file, at, &part, None)).unwrap();
    }
    call(|call| volume.sync(call)).unwrap();
    let mut read = vec![0; PART_BYTES];
    for (at, part) in parts() {
        call(|call| volume.read(call, file, at, &mut read)).unwrap();
        assert!(read == part, "the part at {at} is read as it was written");
    }
    call(|call| volume.unmount(call)).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A test of 16 TiB: `make` makes the volume in a sparse image.
fn is_bounded(test: &str, make: impl FnOnce(&Image)) {
    if let Ok(image) = std::env::var(IMAGE) {
        let peak_kib = write_and_read(&image);
        assert!(peak_kib <= MAX_MEMORY_KIB, "{peak_kib} KiB of memory; the bound is {MAX_MEMORY_KIB}");
        println!("peak of memory: {peak_kib} KiB");
        return;
    }
    if !has_e2fsprogs() {
        return;
    }
    let Some(directory) = directory() else {
        return skipped("no directory for temporary files holds one of 16 TiB");
    };
    let image = Image { directory };
    make(&image);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", test, "--nocapture"]).env(IMAGE, image.text()).output().unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("peak of memory: "), "{said}");
    let said = String::from_utf8(run("dumpe2fs", &["-h", &image.text()]).stdout).unwrap();
    assert!(said.contains("Block count:              4294967296"), "{said}");
    let state = said.lines().find(|line| line.starts_with("Filesystem state:")).unwrap();
    assert!(state.ends_with(" clean"), "{state}");
    // -c: the bitmaps of all groups are left alone.
    let read = program("debugfs").args(["-c", "-R", "cat /file", &image.text()]).output().unwrap();
    let content: Vec<u8> = parts().flat_map(|(_, part)| part).collect();
    assert!(read.stdout == content, "e2fsprogs reads {} bytes, or others", read.stdout.len());
}

#[test]
fn an_own_volume_of_16_tib_is_used_within_64_mib() {
    is_bounded("huge::an_own_volume_of_16_tib_is_used_within_64_mib", |image| {
        let path = StationPath::read(&format!("ext/conv:image={},size=16T", image.text())).unwrap();
        make_volume(&path, false, 7, Mounting::at(7, 0).origin.0, None).unwrap_or_else(|error| panic!("{error}"));
    });
}

#[test]
fn a_volume_of_mke2fs_of_16_tib_is_used_within_64_mib() {
    is_bounded("huge::a_volume_of_mke2fs_of_16_tib_is_used_within_64_mib", |image| {
        File::create(image.path()).unwrap().set_len(SIZE_BYTES).unwrap();
        image.mke2fs(&["-t", "ext4"]);
    });
}
