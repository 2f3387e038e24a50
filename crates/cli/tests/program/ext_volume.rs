//! `fsck`, `inspect` and `mount` of volumes of ext that other programs made: exit codes, and what is said.

use super::bench::Bench;
use std::fs::{File, OpenOptions};
use std::process::Command;

const PATH: &str = "ext/conv:image=v";

/// A volume that mke2fs made; `None` without it.
fn made_by_mke2fs(arguments: &[&str]) -> Option<Bench> {
    let bench = Bench::new();
    File::create(bench.path("v")).unwrap().set_len(16 << 20).unwrap();
    let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let made =
        Command::new("mke2fs").env("PATH", path).args(arguments).args(["-q", "-F"]).arg(bench.path("v")).output();
    made.is_ok_and(|made| made.status.success()).then_some(bench)
}

/// A device without a superblock was "damaged" (4), as if there had been a volume.
#[test]
fn what_has_no_superblock_cannot_be_checked() {
    let bench = Bench::new();
    File::create(bench.path("v")).unwrap().set_len(1 << 20).unwrap();
    for arguments in [&["fsck", PATH][..], &["fsck", "-n", PATH]] {
        let refused = bench.flashpath(arguments);
        assert!(refused.code == Some(8) && refused.stderr.contains("magic number"), "{refused:?}");
    }
}

/// Images of an odd number of sectors were refused by every command.
#[test]
fn an_image_of_any_length_is_checked_and_inspected() {
    let bench = Bench::new();
    let made = bench.flashpath(&["mkfs", "ext/conv:image=v,size=16M"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    OpenOptions::new().write(true).open(bench.path("v")).unwrap().set_len((16 << 20) + 512).unwrap();
    for arguments in [&["fsck", "-n", PATH][..], &["fsck", PATH], &["inspect", PATH]] {
        let done = bench.flashpath(arguments);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

/// The check of a feature that is not known here says so, with the code of a check that was not made.
#[test]
fn a_volume_that_cannot_be_checked_is_not_called_damaged() {
    let Some(bench) = made_by_mke2fs(&["-t", "ext4", "-O", "casefold"]) else { return };
    for arguments in [&["fsck", PATH][..], &["fsck", "-n", PATH]] {
        let refused = bench.flashpath(arguments);
        let words = refused.stderr.replace("│", "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(refused.code == Some(8), "{refused:?}");
        assert!(
            words.contains("cannot check the volume, because it has features") && words.contains("casefold"),
            "{words}"
        );
    }
}
