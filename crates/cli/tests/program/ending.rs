//! The end of a mount, of a volume or of a device as one file: in use, forced, or unmounted by others.

use super::serve::{Served, bench_to_mount_in, client, is_mounted, succeeds};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// The command that mounts at `m`, and a file in it.
const KINDS: [(&[&str], &str); 2] = [
    (&["mount", "sfs/conv:size=256M,timing=off", "m"], "m/file"),
    (&["serve", "conv:size=256M,timing=off", "--file", "m/disk"], "m/disk"),
];

/// Opens a file for reading and writing; creates it if missing.
fn open(place: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(place).unwrap()
}

#[test]
fn a_mount_in_use_is_awaited_and_its_user_is_named() {
    for (arguments, file) in KINDS {
        let Some(bench) = bench_to_mount_in() else { return };
        let mut served = Served::mounted(&bench, arguments);
        let file = open(&bench.path(file));
        served.signal("-TERM");
        std::thread::sleep(Duration::from_millis(500));
        file.write_all_at(b"it still works", 0).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let (status, error) = served.wait();
        assert!(status.success(), "{arguments:?}: {status}: {error}");
        assert!(error.contains("is in use by process") && error.contains(&std::process::id().to_string()), "{error}");
        assert!(!is_mounted(&bench.path("m")));
    }
}

#[test]
fn a_second_signal_abandons_a_mount_in_use() {
    for (arguments, file) in KINDS {
        let Some(bench) = bench_to_mount_in() else { return };
        let mut served = Served::mounted(&bench, arguments);
        let file = open(&bench.path(file));
        file.write_all_at(b"end", 2 << 20).unwrap();
        served.signal("-HUP");
        std::thread::sleep(Duration::from_millis(300));
        served.signal("-TERM");
        let (status, error) = served.wait();
        assert_eq!(status.code(), Some(130), "{arguments:?}: {error}");
        assert!(!is_mounted(&bench.path("m")));
        let read = file.read_at(&mut [0; 4096], 1 << 20);
        assert!(read.is_err() && file.sync_all().is_err(), "it is gone, and nobody waits for it");
    }
}

#[test]
fn an_unmount_ends_the_program() {
    for (arguments, _) in KINDS {
        let Some(bench) = bench_to_mount_in() else { return };
        fs::create_dir(bench.path("m")).unwrap();
        for program in [&["umount"][..], &["fusermount3", "-u"]] {
            let Some(mut command) = client(&bench, program[0]) else { return };
            let mut served = Served::mounted(&bench, arguments);
            succeeds(command.args(&program[1..]).arg("m"));
            let (status, error) = served.wait();
            assert_eq!((status.code(), error.as_str()), (Some(0), ""), "{arguments:?} {program:?}");
            assert_eq!(bench.files(), ["m"], "a directory that was there stays");
        }
    }
}
