//! Volumes of dm-zoned on images: mkfs, fsck, inspect, and a server that is killed.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in, client, succeeds, wait_until};
use flashpath_kernel::{LoopDevice, Mount};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

const NEW: &str = "dm-zoned:reserved=3,label=ref/conv:image=A,size=64M+zns:image=B,size=160M,zone=4M";
const PATH: &str = "dm-zoned/conv:image=A+zns:image=B";

fn code(bench: &Bench, arguments: &[&str]) -> Option<i32> {
    bench.flashpath(arguments).code
}

#[test]
fn a_volume_is_made_once_checked_and_inspected() {
    let bench = Bench::new();
    let made = bench.flashpath(&["mkfs", NEW]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.stdout.contains("0 417792 zoned 56 zones 14/14 cache 0/0 random 36/36 sequential"), "{made:?}");
    assert_eq!(bench.path("A").metadata().unwrap().len(), 64 << 20);
    let again = bench.flashpath(&["mkfs", NEW]);
    assert!(again.code == Some(2) && again.stderr.contains("--force"), "{again:?}");
    assert_eq!(code(&bench, &["mkfs", "--force", NEW]), Some(0));
    assert_eq!(code(&bench, &["fsck", PATH]), Some(0));
    let inspected = bench.flashpath(&["inspect", PATH, "--zones"]);
    assert!(inspected.stdout.contains("volume 'ref'") && inspected.stdout.contains("zone 16: sequential, metadata"));
    let json = bench.flashpath(&["inspect", PATH, "--json", "-"]).stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["reserved_zones"], 3);
    // A failed mkfs leaves no files.
    let bench = Bench::new();
    let refused =
        bench.flashpath(&["mkfs", "dm-zoned:reserved=300/conv:image=A,size=64M+zns:image=B,size=160M,zone=4M"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("reserved"), "{refused:?}");
    assert_eq!(bench.files(), Vec::<String>::new());
}

#[test]
fn fsck_answers_with_e2fscks_bits() {
    let bench = Bench::new();
    assert_eq!(code(&bench, &["mkfs", NEW]), Some(0));
    let damage = |offset: u64, bytes: &[u8]| {
        OpenOptions::new().write(true).open(bench.path("A")).unwrap().write_all_at(bytes, offset).unwrap();
    };
    damage(0, &[0; 512]);
    let checked = bench.flashpath(&["fsck", "-n", PATH]);
    assert!(
        checked.code == Some(4) && checked.stdout.contains("can be repaired: the first metadata set"),
        "{checked:?}"
    );
    assert_eq!(code(&bench, &["fsck", PATH]), Some(1));
    assert_eq!(code(&bench, &["fsck", PATH]), Some(0));
    damage(0, &[0; 512]);
    damage(4 << 20, &[0; 512]);
    let lost = bench.flashpath(&["fsck", PATH]);
    assert!(lost.code == Some(4) && lost.stdout.contains("cannot be repaired"), "{lost:?}");
    assert_eq!(code(&bench, &["fsck", "page/nand"]), Some(16));
    assert_eq!(code(&bench, &["fsck", "dm-zoned/conv:image=none+zns:image=B"]), Some(8));
}

#[test]
fn a_server_that_is_killed_under_fio_loses_no_synced_byte() {
    let Some(bench) = bench_to_mount_in() else { return };
    let (Some(mut mkfs), Some(_)) = (client(&bench, "mkfs.ext4"), client(&bench, "fio")) else { return };
    assert_eq!(code(&bench, &["mkfs", NEW]), Some(0));
    let path = "dm-zoned:journal-zone/conv:image=A,timing=off+zns:image=B,timing=off";
    let attach = || {
        let file = OpenOptions::new().read(true).write(true).open(bench.path("m/disk")).unwrap();
        LoopDevice::attach(&file).unwrap()
    };
    let mut served = Served::file(&bench, path, &[]);
    let device = attach();
    succeeds(mkfs.args(["-q", "-F", "-E", "lazy_itable_init=0"]).arg(device.path()));
    let mount = Mount::new(device.path(), "ext4", "data=journal", bench.directory.path()).unwrap();
    let place = mount.path().to_path_buf();
    let mut fio = client(&bench, "fio").unwrap();
    let job = ["--name=load", "--rw=randwrite", "--bs=4k", "--size=16M", "--time_based", "--runtime=60"];
    let mut fio = fio.arg(format!("--directory={}", place.display())).args(job);
    fio = fio.stdout(Stdio::null()).stderr(Stdio::null());
    let mut fio = fio.spawn().unwrap();
    let content = |number: usize| format!("file {number} ").repeat(1000);
    let name = |number: usize| format!("synced.{number}");
    for number in 0..12 {
        let mut file = File::create(place.join(name(number))).unwrap();
        file.write_all(content(number).as_bytes()).unwrap();
        file.sync_all().unwrap();
    }
    served.signal("-KILL");
    served.wait();
    let _ = fio.kill();
    wait_until("fio ends", || fio.try_wait().unwrap().is_some());
    // The file system has lost its device, and may report it.
    let _ = mount.unmount();
    drop(device);
    drop(served);

    let served = Served::file(&bench, path, &[]);
    let device = attach();
    // The journal is replayed as at a mount, and then nothing is wrong.
    let mount = Mount::new(device.path(), "ext4", "data=journal", bench.directory.path()).unwrap();
    for number in 0..12 {
        let found = std::fs::read_to_string(mount.path().join(name(number))).unwrap();
        assert!(found == content(number), "{} is whole", name(number));
    }
    mount.unmount().unwrap();
    succeeds(client(&bench, "e2fsck").unwrap().args(["-f", "-n"]).arg(device.path()));
    drop(device);
    served.end();
    assert_eq!(code(&bench, &["fsck", PATH]), Some(0));
}

/// The README had no word of the exit code with which fsck says that it could not check.
#[test]
fn the_readme_names_every_exit_code_of_fsck() {
    let readme = include_str!("../../../../README.md");
    let codes = readme.split_once("`fsck` has e2fsck's:").expect("the README tells fsck's exit codes").1;
    let codes = codes.split_once(". ").map_or(codes, |(first, _)| first);
    for code in ["0 clean", "1 errors repaired", "4 errors left", "8 it could not check", "16 wrong use"] {
        assert!(codes.contains(code), "{code}: {codes}");
    }
    let bench = Bench::new();
    assert_eq!(bench.flashpath(&["fsck", "sfs/conv:image=none"]).code, Some(8));
    assert_eq!(bench.flashpath(&["fsck", "sfs/none"]).code, Some(16));
}
