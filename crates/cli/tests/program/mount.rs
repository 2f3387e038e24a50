//! A mounted volume in use by other programs.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in, client, is_mounted, succeeds, wait_until};
use nix::errno::Errno;
use nix::fcntl::{RenameFlags, renameat2};
use nix::unistd::{Whence, lseek};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A volume in memory.
const PATH: &str = "sfs/conv:size=256M,timing=off";
/// Another file system.
const TREE: &str = "tree:size=256M";
/// A volume on an image.
const IMAGE: &str = "sfs/conv:image=volume.img,size=256M,timing=off";

fn mount(bench: &Bench, path: &str, more: &[&str]) -> Served {
    Served::mounted(bench, &[&["mount", path, "m"], more].concat())
}

fn make(bench: &Bench) {
    let made = bench.flashpath(&["mkfs", IMAGE]);
    assert_eq!(made.code, Some(0), "{made:?}");
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Option<Errno> {
    result.unwrap_err().raw_os_error().map(Errno::from_raw)
}

fn names(place: PathBuf) -> Vec<String> {
    let mut names: Vec<String> =
        place.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_made_written_renamed_and_removed_in_it() {
    [PATH, TREE].into_iter().for_each(use_files);
}

fn use_files(path: &str) {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, path, &[]);
    assert_eq!(served.ready, format!("mounted {path} at m\n"));
    let place = bench.path("m");
    fs::create_dir(place.join("a")).unwrap();
    fs::write(place.join("a/one"), "first").unwrap();
    fs::rename(place.join("a/one"), place.join("two")).unwrap();
    assert_eq!(fs::read(place.join("two")).unwrap(), b"first");
    let mut file = OpenOptions::new().append(true).open(place.join("two")).unwrap();
    file.write_all(b" and second").unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert_eq!(fs::read(place.join("two")).unwrap(), b"first and second");
    fs::write(place.join("two"), "cut").unwrap();
    assert_eq!(fs::metadata(place.join("two")).unwrap().len(), 3);
    symlink("two", place.join("link")).unwrap();
    fs::hard_link(place.join("two"), place.join("a/three")).unwrap();
    assert_eq!(fs::read_link(place.join("link")).unwrap(), PathBuf::from("two"));
    assert_eq!(fs::metadata(place.join("link")).unwrap().nlink(), 2);
    assert_eq!(errno(fs::remove_dir(place.join("a"))), Some(Errno::ENOTEMPTY), "it is not empty");
    assert_eq!(errno(fs::create_dir(place.join("a"))), Some(Errno::EEXIST));
    assert_eq!(errno(fs::read(place.join("nothing"))), Some(Errno::ENOENT));
    fs::write(place.join("nothing"), "now it is there").unwrap();
    assert_eq!(fs::read(place.join("nothing")).unwrap(), b"now it is there");
    assert_eq!(errno(fs::write(place.join("x".repeat(256)), "")), Some(Errno::ENAMETOOLONG));
    fs::remove_file(place.join("a/three")).unwrap();
    fs::remove_dir(place.join("a")).unwrap();
    assert_eq!(names(place), ["link", "nothing", "two"]);
    assert_eq!(served.end(), "");
    assert!(bench.files().is_empty(), "the mount point was made, and is removed");
}

#[test]
fn a_rename_replaces_refuses_or_exchanges() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &[]);
    let (one, two) = (bench.path("m/one"), bench.path("m/two"));
    fs::write(&one, "1").unwrap();
    fs::write(&two, "2").unwrap();
    let rename = |flags| renameat2(nix::fcntl::AT_FDCWD, &one, nix::fcntl::AT_FDCWD, &two, flags);
    assert_eq!(rename(RenameFlags::RENAME_NOREPLACE), Err(nix::errno::Errno::EEXIST));
    let whiteout_of_two = RenameFlags::RENAME_WHITEOUT | RenameFlags::RENAME_EXCHANGE;
    assert_eq!(rename(whiteout_of_two), Err(nix::errno::Errno::EINVAL));
    rename(RenameFlags::RENAME_EXCHANGE).unwrap();
    assert_eq!((fs::read(&one).unwrap(), fs::read(&two).unwrap()), (b"2".to_vec(), b"1".to_vec()));
    fs::rename(&one, &two).unwrap();
    assert_eq!((fs::read(&two).unwrap(), one.exists()), (b"2".to_vec(), false));
    fs::write(&one, "3").unwrap();
    rename(RenameFlags::RENAME_WHITEOUT).unwrap();
    let left = fs::symlink_metadata(&one).unwrap();
    assert!(left.file_type().is_char_device() && left.rdev() == 0 && left.mode() & 0o7777 == 0, "{left:?}");
    assert_eq!(fs::read(&two).unwrap(), b"3");
    served.end();
}

#[test]
fn an_open_file_that_is_unlinked_exists_until_it_is_closed() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &[]);
    let place = bench.path("m/file");
    let mut file = File::options().read(true).write(true).create_new(true).open(&place).unwrap();
    file.write_all(b"before").unwrap();
    fs::remove_file(&place).unwrap();
    assert_eq!(errno(File::open(&place)), Some(Errno::ENOENT));
    file.write_all(b" and after").unwrap();
    file.sync_all().unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), file.metadata().unwrap().nlink()), ("before and after", 0));
    fs::write(&place, "another").unwrap();
    drop(file);
    assert_eq!(fs::read(&place).unwrap(), b"another");
    served.end();
}

/// A mount kept all inodes that the kernel knew: a million files took 927 MiB, 300,000 took 288 MiB.
#[test]
fn a_hundred_thousand_files_take_no_more_memory_than_the_mount_may() {
    const BOUND_KIB: u64 = 64 << 10;
    const FILES: usize = 100_000;
    let Some(bench) = bench_to_mount_in() else { return };
    let image = "conv:image=volume.img,size=1G,timing=off";
    let made = bench.flashpath(&["mkfs", &format!("sfs/{image}")]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let within = format!("sfs:memory={}K/{image}", BOUND_KIB);
    let most_kib = |served: &Served| {
        let status = fs::read_to_string(format!("/proc/{}/status", served.process())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap()
    };
    let file = |number: usize| bench.path("m/many").join(format!("file{number:06}"));
    let served = mount(&bench, &within, &[]);
    fs::create_dir(bench.path("m/many")).unwrap();
    for number in 0..FILES {
        fs::write(file(number), if number % 50 == 0 { "some bytes" } else { "" }).unwrap();
    }
    let making = most_kib(&served);
    served.end();
    let served = mount(&bench, &within, &[]);
    assert_eq!(names(bench.path("m/many")).len(), FILES);
    for number in (0..FILES).rev() {
        assert_eq!(fs::metadata(file(number)).unwrap().len(), if number % 50 == 0 { 10 } else { 0 });
    }
    fs::remove_dir_all(bench.path("m/many")).unwrap();
    let removing = most_kib(&served);
    served.end();
    assert!(making < BOUND_KIB && removing < BOUND_KIB, "{making} KiB making, {removing} KiB removing");
    let checked = bench.flashpath(&["fsck", &format!("sfs/{image}")]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn threads_that_make_list_read_and_remove_files_at_once_find_each_of_them() {
    const THREADS: usize = 16;
    const FILES: usize = 600;
    let Some(bench) = bench_to_mount_in() else { return };
    for path in [PATH, TREE] {
        let served = mount(&bench, path, &[]);
        fs::create_dir(bench.path("m/shared")).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (own, shared) = (bench.path(&format!("m/{thread}")), bench.path("m/shared"));
                scope.spawn(move || {
                    fs::create_dir(&own).unwrap();
                    let content = |number: usize| format!("{thread} {number}").repeat(number % 700);
                    for number in 0..FILES {
                        fs::write(own.join(format!("{number:03}")), content(number)).unwrap();
                    }
                    fs::write(shared.join(format!("{thread:02}")), content(1)).unwrap();
                    assert_eq!(names(own.clone()), (0..FILES).map(|number| format!("{number:03}")).collect::<Vec<_>>());
                    for number in 0..FILES {
                        let file = own.join(format!("{number:03}"));
                        assert!(fs::read_to_string(&file).unwrap() == content(number), "{path}: {thread} {number}");
                        fs::remove_file(file).unwrap();
                    }
                    fs::remove_dir(own).unwrap();
                });
            }
        });
        assert_eq!(names(bench.path("m/shared")).len(), THREADS, "{path}");
        served.end();
    }
}

#[test]
fn ten_thousand_names_are_listed_once_each_and_found() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &[]);
    let place = bench.path("m/many");
    fs::create_dir(&place).unwrap();
    let wanted: Vec<String> = (0..10_000).map(|number| format!("name-{number:05}")).collect();
    for name in &wanted {
        File::create(place.join(name)).unwrap();
    }
    assert!(names(place.clone()) == wanted);
    for (number, entry) in place.read_dir().unwrap().enumerate() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().len(), 0, "{number}");
        fs::remove_file(entry.path()).unwrap();
    }
    assert!(names(place).is_empty(), "what is removed while it is listed does not hide the rest");
    served.end();
}

#[test]
fn extended_attributes_are_kept_in_their_namespaces() {
    let Some(bench) = bench_to_mount_in() else { return };
    let (Some(_), Some(_)) = (client(&bench, "setfattr"), client(&bench, "getfattr")) else { return };
    let served = mount(&bench, PATH, &[]);
    fs::write(bench.path("m/file"), "x").unwrap();
    let run = |program: &str, arguments: &[&str]| client(&bench, program).unwrap().args(arguments).output().unwrap();
    for name in ["user.colour", "trusted.owner"] {
        assert!(run("setfattr", &["-n", name, "-v", "blue", "m/file"]).status.success(), "{name}");
        let found = run("getfattr", &["--only-values", "-n", name, "m/file"]);
        assert_eq!(String::from_utf8_lossy(&found.stdout), "blue");
    }
    let listed = run("getfattr", &["-m", "-", "m/file"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("user.colour") && listed.contains("trusted.owner"), "{listed}");
    assert!(run("setfattr", &["-x", "user.colour", "m/file"]).status.success());
    assert!(!run("getfattr", &["-n", "user.colour", "m/file"]).status.success());
    served.end();
}

#[test]
fn holes_can_be_allocated_punched_and_found() {
    let Some(bench) = bench_to_mount_in() else { return };
    let Some(mut fallocate) = client(&bench, "fallocate") else { return };
    let served = mount(&bench, PATH, &[]);
    let file = File::options().read(true).write(true).create_new(true).open(bench.path("m/file")).unwrap();
    file.write_all_at(&vec![7; 1 << 20], 1 << 20).unwrap();
    assert_eq!(lseek(&file, 0, Whence::SeekData).unwrap(), 1 << 20);
    assert_eq!(lseek(&file, 1 << 20, Whence::SeekHole).unwrap(), 2 << 20);
    assert_eq!(lseek(&file, 2 << 20, Whence::SeekData), Err(nix::errno::Errno::ENXIO));
    succeeds(fallocate.args(["--punch-hole", "--offset", "1049000", "--length", "512K", "m/file"]));
    let mut found = vec![1; 1 << 20];
    file.read_exact_at(&mut found, 1 << 20).unwrap();
    let (from, to) = (1_049_000 - (1 << 20), 1_049_000 - (1 << 20) + (512 << 10));
    assert!(found[..from].iter().all(|byte| *byte == 7), "what is before the hole stays, to the byte");
    assert!(found[from..to].iter().all(|byte| *byte == 0) && found[to..].iter().all(|byte| *byte == 7));
    succeeds(client(&bench, "fallocate").unwrap().args(["--length", "3M", "m/file"]));
    assert_eq!(file.metadata().unwrap().len(), 3 << 20);
    File::create(bench.path("m/kept")).unwrap();
    succeeds(client(&bench, "fallocate").unwrap().args(["--keep-size", "--offset", "3M", "--length", "1M", "m/file"]));
    assert_eq!(file.metadata().unwrap().len(), 3 << 20);
    succeeds(client(&bench, "fallocate").unwrap().args(["--zero-range", "--length", "4M", "m/file"]));
    assert_eq!(file.metadata().unwrap().len(), 4 << 20);
    let mut found = vec![1; 4 << 20];
    file.read_exact_at(&mut found, 0).unwrap();
    assert!(found.iter().all(|byte| *byte == 0));
    let collapse = client(&bench, "fallocate").unwrap().args(["--collapse-range", "--length", "4K", "m/file"]).output();
    assert!(!collapse.unwrap().status.success());
    drop(file);
    served.end();
}

#[test]
fn a_program_loses_its_set_id_bits_when_its_owner_or_its_bytes_change() {
    let Some(bench) = bench_to_mount_in() else { return };
    // The temporary directory is private to its owner, but another user needs access.
    fs::set_permissions(bench.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(_) = client(&bench, "setpriv") else { return };
    let served = mount(&bench, PATH, &[]);
    let place = bench.path("m/program");
    fs::write(&place, "x").unwrap();
    let set = || fs::set_permissions(&place, fs::Permissions::from_mode(0o6777)).unwrap();
    let mode = || fs::metadata(&place).unwrap().mode() & 0o7777;
    set();
    std::os::unix::fs::chown(&place, Some(1), Some(1)).unwrap();
    assert_eq!(mode(), 0o777);
    set();
    fs::write(&place, "root may").unwrap();
    assert_eq!(mode(), 0o6777);
    let nobody = |command: &str| {
        let mut setpriv = client(&bench, "setpriv").unwrap();
        succeeds(setpriv.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", command]))
    };
    nobody("printf y >> m/program");
    assert_eq!(mode(), 0o777);
    set();
    nobody("truncate -s 3 m/program");
    assert_eq!((mode(), fs::read(&place).unwrap()), (0o777, b"roo".to_vec()));
    fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = client(&bench, "setpriv").unwrap().args(["--reuid", "65534", "cat", "m/program"]).output().unwrap();
    assert!(!refused.status.success(), "its mode holds for others");
    served.end();
}

#[test]
fn its_size_is_what_df_shows() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &[]);
    let before = nix::sys::statvfs::statvfs(&bench.path("m")).unwrap();
    assert_eq!((before.block_size(), before.name_max()), (4096, 255));
    assert!((128..=256).contains(&((before.blocks() * 4096) >> 20)), "{}", before.blocks());
    assert!(before.blocks_free() <= before.blocks() && before.files_free() > 0);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(mounts.contains(&format!("{PATH} ")) && mounts.contains(" fuse.sfs "), "{mounts}");
    served.end();
}

#[test]
fn files_survive_a_remount() {
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench);
    let served = mount(&bench, IMAGE, &[]);
    let place = bench.path("m");
    fs::create_dir_all(place.join("a/b")).unwrap();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number / 3) as u8).collect();
    fs::write(place.join("a/b/large"), &bytes).unwrap();
    for number in 0..500 {
        fs::write(place.join(format!("a/{number}")), number.to_string()).unwrap();
    }
    symlink("a/b/large", place.join("link")).unwrap();
    fs::set_permissions(place.join("a/7"), fs::Permissions::from_mode(0o4711)).unwrap();
    let before = fs::metadata(place.join("a/7")).unwrap();
    served.end();
    let served = mount(&bench, IMAGE, &["--read-only"]);
    assert!(fs::read(place.join("link")).unwrap() == bytes);
    assert_eq!(names(place.join("a")).len(), 501);
    assert!(
        (0..500).all(|number| fs::read(place.join(format!("a/{number}"))).unwrap() == number.to_string().as_bytes())
    );
    let after = fs::metadata(place.join("a/7")).unwrap();
    assert_eq!((after.mode(), after.ino(), after.mtime_nsec()), (before.mode(), before.ino(), before.mtime_nsec()));
    assert_eq!(errno(fs::write(place.join("new"), "")), Some(Errno::EROFS), "it can only be read");
    served.end();
}

#[test]
fn synced_files_survive_a_kill_of_the_server() {
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench);
    let mut served = mount(&bench, IMAGE, &[]);
    let file = File::create(bench.path("m/synced")).unwrap();
    file.write_all_at(&[9; 8192], 4096).unwrap();
    file.sync_all().unwrap();
    served.signal("-KILL");
    served.wait();
    assert_eq!(errno(fs::metadata(bench.path("m/synced"))), Some(Errno::ENOTCONN), "the mount is dead");
    drop(file);
    let again = mount(&bench, IMAGE, &[]);
    let found = fs::read(bench.path("m/synced")).unwrap();
    assert!(found[..4096].iter().all(|byte| *byte == 0) && found[4096..] == [9; 8192]);
    again.end();
    drop(served);
}

/// `fallocate -l 100M m/f; sync m/f; kill -9`: the size came back, and the blocks did not.
#[test]
fn reserved_and_synced_space_survives_a_kill_of_the_server() {
    let Some(bench) = bench_to_mount_in() else { return };
    let Some(mut fallocate) = client(&bench, "fallocate") else { return };
    make(&bench);
    let mut served = mount(&bench, IMAGE, &[]);
    succeeds(fallocate.args(["--length", "100M", "m/f"]));
    File::create(bench.path("m/kept")).unwrap();
    succeeds(client(&bench, "fallocate").unwrap().args(["--keep-size", "--length", "1M", "m/kept"]));
    let synced = ["f", "kept"].map(|name| {
        let file = File::open(bench.path("m").join(name)).unwrap();
        file.sync_data().unwrap();
        let metadata = file.metadata().unwrap();
        (metadata.len(), metadata.blocks())
    });
    assert!(synced[0].0 == 100 << 20 && synced[0].1 >= 100 << 11 && synced[1].0 == 0, "{synced:?}");
    served.signal("-KILL");
    served.wait();
    let again = mount(&bench, IMAGE, &[]);
    let found = ["f", "kept"].map(|name| {
        let metadata = fs::metadata(bench.path("m").join(name)).unwrap();
        (metadata.len(), metadata.blocks())
    });
    assert_eq!(found, synced);
    again.end();
    drop(served);
}

#[test]
fn the_free_space_of_df_can_be_used_and_comes_back() {
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench);
    let served = mount(&bench, IMAGE, &[]);
    let place = bench.path("m");
    let df = || nix::sys::statvfs::statvfs(&place).unwrap();
    let fresh = df();
    fs::create_dir(place.join("many")).unwrap();
    for number in 0..5000 {
        File::create(place.join(format!("many/{number}"))).unwrap();
    }
    let Some(mut fallocate) = client(&bench, "fallocate") else { return };
    let available = (df().blocks_available() * 4096).to_string();
    succeeds(fallocate.args(["--length", &available, "m/all"]));
    fs::remove_file(place.join("all")).unwrap();
    fs::remove_dir_all(place.join("many")).unwrap();
    served.end();
    let served = mount(&bench, IMAGE, &[]);
    let now = df();
    // The first block of the root directory and the first DAT page remain.
    assert!(now.blocks_free() + 2 >= fresh.blocks_free(), "{} of {} blocks", now.blocks_free(), fresh.blocks_free());
    assert!(now.files_free() + 32 >= fresh.files_free(), "{} of {} inodes", now.files_free(), fresh.files_free());
    served.end();
}

#[test]
fn a_second_mount_at_the_same_place_is_refused() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &[]);
    bench
        .refuses(&["mount", PATH, "m"], &["m is a mount point already, of sfs/conv", "end it with flashpath umount m"]);
    fs::write(bench.path("m/still"), "it works").unwrap();
    served.end();
}

#[test]
fn in_the_background_it_returns_when_it_is_mounted_and_prints_the_servers_number() {
    let Some(bench) = bench_to_mount_in() else { return };
    let answer = bench.flashpath(&["mount", PATH, "m", "--background"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    fs::write(bench.path("m/file"), "x").unwrap();
    assert!(answer.stderr.contains("mounted sfs/conv"), "{answer:?}");
    let process = answer.stdout.trim();
    assert!(process.parse::<u32>().is_ok(), "{answer:?}");
    succeeds(Command::new("kill").arg(process));
    wait_until("it is unmounted", || !is_mounted(&bench.path("m")));
    wait_until("the mount point is removed", || bench.files().is_empty());
    bench.write("file", "");
    bench.refuses(&["mount", PATH, "file", "--background"], &["cannot use the directory file"]);
}

#[test]
fn figures_are_printed_while_it_is_mounted() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &["--stats", "0.2"]);
    fs::write(bench.path("m/file"), vec![1; 4 << 20]).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let stderr = served.end();
    assert!(stderr.lines().any(|line| line.contains("requests/s") && !line.contains("written 0.0 MiB/s")), "{stderr}");
}

#[test]
fn reading_is_noted_once_after_each_change_unless_it_shall_not_be() {
    let Some(bench) = bench_to_mount_in() else { return };
    for (more, is_noted) in [(&[][..], true), (&["--noatime"], false), (&["-o", "noatime"], false)] {
        let served = mount(&bench, PATH, more);
        let place = bench.path("m/file");
        fs::write(&place, vec![1; 1 << 20]).unwrap();
        // Reads that hit the page cache do not reach the volume.
        let file = File::open(&place).unwrap();
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
        drop(file);
        let before = fs::metadata(&place).unwrap();
        fs::read(&place).unwrap();
        let after = fs::metadata(&place).unwrap();
        let times = |data: &fs::Metadata| (data.atime(), data.atime_nsec());
        assert_eq!(times(&after) > times(&before), is_noted, "{more:?}");
        assert_eq!((after.ctime(), after.ctime_nsec()), (before.ctime(), before.ctime_nsec()));
        served.end();
    }
}

#[test]
fn with_strictatime_each_read_is_noted_that_comes_to_the_volume() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &["-o", "strictatime,nosuid,nodev,noexec"]);
    let place = bench.path("m/file");
    fs::write(&place, vec![1; 1 << 20]).unwrap();
    let times = || fs::metadata(&place).map(|data| (data.atime(), data.atime_nsec())).unwrap();
    let mut before = times();
    for read in 0..3 {
        let file = File::open(&place).unwrap();
        nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
        drop(file);
        fs::read(&place).unwrap();
        let after = times();
        assert!(after > before, "read {read}");
        before = after;
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(bench.path("m").to_str().unwrap())).unwrap();
    assert!(line.contains(" rw,nosuid,nodev,noexec"), "{line}");
    served.end();
}

#[test]
fn writes_that_wait_in_the_page_cache_arrive() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = mount(&bench, PATH, &["--writeback"]);
    let place = bench.path("m/file");
    let mut file = File::create(&place).unwrap();
    for number in 0..2000u32 {
        file.write_all(&number.to_le_bytes()).unwrap();
    }
    file.sync_all().unwrap();
    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
    drop(file);
    let bytes: Vec<u8> = (0..2000u32).flat_map(u32::to_le_bytes).collect();
    assert!(fs::read(&place).unwrap() == bytes);
    served.end();
}

#[test]
fn paths_without_a_file_system_and_unusable_mount_points_are_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.path("full")).unwrap();
    bench.write("full/x", "");
    for (arguments, expected) in [
        (&["mount", PATH][..], "<DIR>"),
        (&["mount", "sf/conv", "m"], "did you mean sfs?"),
        (&["mount", "conv:size=64M", "m"], "no file system"),
        (&["mount", "kernel-ext4/conv:size=64M", "m"], "kernel-ext4"),
        (&["mount", PATH, "full"], "full is not empty"),
        (&["mount", PATH, "nowhere/m"], "cannot use the directory nowhere/m"),
        (&["mount", PATH, "m", "--stats", "0"], "expected seconds"),
        (&["mount", PATH, "m", "--stats", "1", "--background"], "cannot be used with"),
    ] {
        bench.refuses(arguments, &[expected]);
    }
    assert_eq!(bench.files(), ["full"]);
}

/// After a kill, a bit rotted in the first of fifteen fsyncs after the last checkpoint: a check reported "clean", a
/// mount "mounted", and all fifteen were lost.
#[test]
fn rot_in_synced_data_is_reported_and_nothing_is_overwritten() {
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench);
    let image = bench.path("volume.img");
    let magic = |bytes: &[u8]| bytes.chunks(4096).map(|block| &block[..4] == b"SFSL").collect::<Vec<bool>>();
    let before = magic(&fs::read(&image).unwrap());
    // No checkpoint comes between, however long it takes.
    let patient = "sfs:checkpoint=3600s,checkpoint-segments=4096/conv:image=volume.img,size=256M,timing=off";
    let mut served = mount(&bench, patient, &[]);
    for round in 0..15u8 {
        let file = File::create(bench.path(&format!("m/{}", round % 8))).unwrap();
        file.write_all_at(&[round + 1; 9000], 0).unwrap();
        file.sync_all().unwrap();
    }
    served.signal("-KILL");
    served.wait();
    drop(served);
    let bytes = fs::read(&image).unwrap();
    let new = magic(&bytes).into_iter().zip(before).enumerate().filter(|(_, (now, before))| *now && !before);
    let summaries: Vec<u64> = new.map(|(block, _)| block as u64 * 4096).collect();
    assert!(summaries.len() >= 15, "{summaries:?}");
    let fifth = summaries[summaries.len() - 11];
    let file = OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[bytes[fifth as usize + 70] ^ 1], fifth + 70).unwrap();
    drop(file);
    let damaged = fs::read(&image).unwrap();

    let checked = bench.flashpath(&["fsck", "-n", IMAGE]);
    assert!(checked.code == Some(4) && checked.stdout.contains("partial segment"), "{checked:?}");
    let served = mount(&bench, IMAGE, &[]);
    assert_eq!(errno(fs::write(bench.path("m/new"), "")), Some(Errno::EROFS));
    // Its partial segment held the name 4, which is lost; the file's later content is not.
    let is_newest = |round: u8| fs::read(bench.path(&format!("m/{}", round % 8))).unwrap() == [round + 1; 9000];
    let are_newest = || (7..15).filter(|round| *round != 12).all(is_newest);
    assert!(are_newest(), "what was synced behind it is there");
    let stderr = served.end();
    assert!(stderr.contains("mounted read-only") && stderr.contains("--despite-damage"), "{stderr}");
    assert!(fs::read(&image).unwrap() == damaged, "nothing is overwritten");

    let copy = bench.path("copy.img");
    fs::copy(&image, &copy).unwrap();
    let served = mount(&bench, "sfs/conv:image=copy.img", &["--despite-damage"]);
    assert!(are_newest());
    fs::write(bench.path("m/new"), "it can be written").unwrap();
    assert!(served.end().contains("is lost"));

    let repaired = bench.flashpath(&["fsck", IMAGE]);
    assert!(repaired.code == Some(1) && repaired.stdout.contains("partial segment"), "{repaired:?}");
    assert_eq!(bench.flashpath(&["fsck", "-n", IMAGE]).code, Some(0));
    let served = mount(&bench, IMAGE, &[]);
    assert!(are_newest());
    let found = fs::read_dir(bench.path("m/lost+found")).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    assert!(found.collect::<Vec<_>>() == [vec![13; 9000]], "the file without its name");
    fs::write(bench.path("m/new"), "it can be written").unwrap();
    assert_eq!(served.end(), "");
}

#[test]
fn with_nodiratime_reading_a_directory_is_not_noted() {
    let Some(bench) = bench_to_mount_in() else { return };
    for (options, is_noted) in [("strictatime", true), ("strictatime,nodiratime", false)] {
        let served = mount(&bench, PATH, &["-o", options]);
        let place = bench.path("m/directory");
        fs::create_dir(&place).unwrap();
        let times = || fs::metadata(&place).map(|data| (data.atime(), data.atime_nsec())).unwrap();
        let before = times();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        assert_eq!(times() > before, is_noted, "{options}");
        served.end();
    }
}
