//! POSIX and Linux features of a mounted volume: access control lists, large extended attributes, file handles,
//! whiteouts, O_DIRECT beside the page cache.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in, client, succeeds, wait_until};
use nix::errno::Errno;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const IMAGE: &str = "sfs/conv:image=volume.img,size=256M,timing=off";

/// A bench with a volume on an image, accessible to other users.
fn bench_with_volume() -> Option<Bench> {
    let bench = bench_to_mount_in()?;
    fs::set_permissions(bench.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let made = bench.flashpath(&["mkfs", IMAGE]);
    assert_eq!(made.code, Some(0), "{made:?}");
    Some(bench)
}

fn mount(bench: &Bench, more: &[&str]) -> Served {
    Served::mounted(bench, &[&["mount", IMAGE, "m"], more].concat())
}

/// Runs a Python script, for system calls without a safe Rust wrapper; `None` and a message without Python.
fn python(bench: &Bench, script: &str, arguments: &[&str]) -> Option<String> {
    let mut command = client(bench, "python3")?;
    Some(succeeds(command.arg("-c").arg(script).args(arguments)))
}

fn is_clean(bench: &Bench) {
    let checked = bench.flashpath(&["fsck", IMAGE]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

/// Another mounted file system, unmounted on drop.
struct Beside(PathBuf);

impl Beside {
    fn mount(bench: &Bench, arguments: &[&str], place: &str) -> Option<Beside> {
        let place = bench.path(place);
        fs::create_dir_all(&place).unwrap();
        succeeds(client(bench, "mount")?.args(arguments).arg(&place));
        Some(Beside(place))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

fn run_script(bench: &Bench, script: &str, place: &Path) -> String {
    fs::create_dir(place).unwrap();
    fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
    succeeds(client(bench, "sh").unwrap().arg("-c").arg(script).current_dir(place))
}

/// There were no access control lists, and a set-group-id bit without group execution survived any write.
#[test]
fn access_lists_and_set_id_bits_are_what_they_are_on_ext4() {
    let Some(bench) = bench_with_volume() else { return };
    let script = include_str!("as_on_ext4.sh");
    for program in ["setfacl", "getfacl", "getfattr", "setpriv"] {
        if client(&bench, program).is_none() {
            return;
        }
    }
    let Some(mut mkfs) = client(&bench, "mkfs.ext4") else { return };
    fs::File::create(bench.path("ext4.img")).unwrap().set_len(64 << 20).unwrap();
    succeeds(mkfs.args(["-q", "-b", "4096", "ext4.img"]));
    let Some(ext4) = Beside::mount(&bench, &["-o", "loop,acl", "ext4.img"], "ext4") else { return };
    let wanted = run_script(&bench, script, &ext4.0.join("t"));
    assert!(wanted.contains("user:1000:rwx") && wanted.contains("2767, 1000 2000 --clear-groups, echo x >> f: 767"));
    for more in [&[][..], &["--writeback"]] {
        let served = mount(&bench, more);
        let found = run_script(&bench, script, &bench.path("m/t"));
        for (line, (found, wanted)) in (1..).zip(found.lines().zip(wanted.lines())) {
            assert_eq!(found, wanted, "line {line}, {more:?}");
        }
        assert_eq!(found.lines().count(), wanted.lines().count());
        // They are on the media, not only in the kernel's cache.
        let lists = |name: &str| succeeds(client(&bench, "getfacl").unwrap().args(["-n", name]));
        let before = [lists("m/t/d"), lists("m/t/d/file"), lists("m/t/many")];
        served.end();
        let served = mount(&bench, more);
        assert_eq!([lists("m/t/d"), lists("m/t/d/file"), lists("m/t/many")], before);
        fs::remove_dir_all(bench.path("m/t")).unwrap();
        served.end();
        is_clean(&bench);
    }
}

/// A file's attributes were limited to 4 KiB in all.
#[test]
fn extended_attributes_of_64_kib_are_kept_over_a_kill_and_a_remount() {
    let Some(bench) = bench_with_volume() else { return };
    let script = include_str!("large_attributes.py");
    let mut served = mount(&bench, &[]);
    fs::write(bench.path("m/file"), "x").unwrap();
    if python(&bench, script, &["set", "m/file"]).is_none() {
        return;
    }
    python(&bench, script, &["check", "m/file"]);
    served.signal("-KILL");
    served.wait();
    let again = mount(&bench, &[]);
    python(&bench, script, &["check", "m/file"]);
    let free = || nix::sys::statvfs::statvfs(&bench.path("m")).unwrap().blocks_free();
    let before = free();
    fs::remove_file(bench.path("m/file")).unwrap();
    // The kernel forgets the inode a moment later.
    wait_until("their blocks are free again", || free() >= before + 45);
    again.end();
    is_clean(&bench);
}

/// `open_by_handle_at` gave ESTALE once the kernel had forgotten the inode, so that no NFS server could export a volume.
#[test]
fn a_file_handle_opens_its_file_when_the_caches_are_dropped_and_after_a_remount_and_never_another() {
    let Some(bench) = bench_with_volume() else { return };
    let script = include_str!("file_handles.py");
    let served = mount(&bench, &[]);
    fs::create_dir_all(bench.path("m/a/b")).unwrap();
    fs::write(bench.path("m/a/b/file"), "its bytes").unwrap();
    fs::write(bench.path("m/gone"), "gone").unwrap();
    let take = |name: &str| python(&bench, script, &["take", name]).map(|handle| handle.trim().to_string());
    let open = |handle: &str| python(&bench, script, &["open", "m", handle]).unwrap().trim().to_string();
    let drop_caches = || {
        nix::unistd::sync();
        fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    };
    let Some(file) = take("m/a/b/file") else { return };
    let (directory, root, gone) = (take("m/a/b").unwrap(), take("m").unwrap(), take("m/gone").unwrap());
    let place = bench.path("m").canonicalize().unwrap();
    let all_open = |when: &str| {
        drop_caches();
        assert_eq!(open(&file), "its bytes", "{when}");
        drop_caches();
        assert_eq!(open(&directory), format!("file in {}/a/b", place.display()), "{when}");
        drop_caches();
        assert!(open(&root).ends_with(&format!("in {}", place.display())), "{when}");
    };
    all_open("at first");
    let number = fs::metadata(bench.path("m/gone")).unwrap().ino();
    fs::remove_file(bench.path("m/gone")).unwrap();
    drop_caches();
    assert_eq!(open(&gone), format!("error {}", nix::errno::Errno::ESTALE as i32));
    served.end();
    let served = mount(&bench, &[]);
    all_open("mounted again");
    fs::write(bench.path("m/another"), "another").unwrap();
    assert_eq!(fs::metadata(bench.path("m/another")).unwrap().ino(), number, "it has the number of what is gone");
    assert_eq!(open(&gone), format!("error {}", nix::errno::Errno::ESTALE as i32));
    drop_caches();
    assert_eq!(open(&gone), format!("error {}", nix::errno::Errno::ESTALE as i32));
    served.end();
}

/// xfstests' generic/451: the kernel cached pages that were read during an asynchronous O_DIRECT write (11 to 25 of 200
/// rounds), and later readers got the old bytes.
#[test]
fn asynchronous_direct_writes_leave_no_stale_pages() {
    let Some(bench) = bench_with_volume() else { return };
    let script = include_str!("asynchronous_writes.py");
    for more in [&[][..], &["--writeback"]] {
        let served = mount(&bench, more);
        let Some(output) = python(&bench, script, &["m/file", "300"]) else { return };
        assert_eq!(output, "0 of 300 rounds left stale pages\n", "{more:?}");
        served.end();
    }
}

#[test]
fn options_that_fuse_cannot_support_are_refused_by_name() {
    let Some(bench) = bench_with_volume() else { return };
    let served = mount(&bench, &[]);
    let unnamed = nix::fcntl::OFlag::O_TMPFILE | nix::fcntl::OFlag::O_RDWR;
    let opened = nix::fcntl::open(&bench.path("m"), unnamed, nix::sys::stat::Mode::empty());
    assert_eq!(opened.unwrap_err(), nix::errno::Errno::EOPNOTSUPP);
    served.end();
}

/// A rename could not leave a whiteout (EINVAL), so that overlayfs could not have its upper directory on a volume.
#[test]
fn overlayfs_has_its_upper_directory_on_a_volume() {
    let Some(bench) = bench_with_volume() else { return };
    if !fs::read_to_string("/proc/filesystems").unwrap().contains("overlay") {
        return super::skipped::skipped("the kernel has no overlayfs");
    }
    fs::create_dir_all(bench.path("lower/directory/below")).unwrap();
    for name in ["kept", "changed", "removed", "renamed", "directory/one", "directory/below/two"] {
        fs::write(bench.path("lower").join(name), name).unwrap();
    }
    let served = mount(&bench, &[]);
    fs::create_dir(bench.path("m/upper")).unwrap();
    fs::create_dir(bench.path("m/work")).unwrap();
    let options = "lowerdir=lower,upperdir=m/upper,workdir=m/work,redirect_dir=on,index=on";
    let arguments = ["-t", "overlay", "overlay", "-o", options];
    let Some(both) = Beside::mount(&bench, &arguments, "both") else { return };
    let place = bench.path("both");
    let upper = bench.path("m/upper");
    fs::write(place.join("changed"), "changed above").unwrap();
    fs::remove_file(place.join("removed")).unwrap();
    fs::rename(place.join("renamed"), place.join("elsewhere")).unwrap();
    fs::rename(place.join("directory"), place.join("moved")).unwrap();
    fs::remove_dir_all(place.join("moved/below")).unwrap();
    fs::create_dir(place.join("moved/below")).unwrap();
    fs::write(place.join("moved/below/new"), "new").unwrap();
    fs::hard_link(place.join("kept"), place.join("linked")).unwrap();
    for whiteout in ["removed", "renamed", "directory"] {
        let found = fs::symlink_metadata(upper.join(whiteout)).unwrap();
        assert!(found.file_type().is_char_device() && found.rdev() == 0, "{whiteout} is a whiteout");
    }
    let check = || {
        let read = |name: &str| {
            fs::read_to_string(place.join(name)).map_err(|error| error.raw_os_error().map(Errno::from_raw))
        };
        let wanted = [
            ("kept", Ok("kept")),
            ("linked", Ok("kept")),
            ("changed", Ok("changed above")),
            ("removed", Err(Some(Errno::ENOENT))),
            ("renamed", Err(Some(Errno::ENOENT))),
            ("elsewhere", Ok("renamed")),
            ("directory/one", Err(Some(Errno::ENOENT))),
            ("moved/one", Ok("directory/one")),
            ("moved/below/two", Err(Some(Errno::ENOENT))),
            ("moved/below/new", Ok("new")),
        ];
        for (name, wanted) in wanted {
            assert_eq!(read(name), wanted.map(str::to_string), "{name}");
        }
    };
    check();
    drop(both);
    served.end();
    is_clean(&bench);
    let served = mount(&bench, &[]);
    let Some(both) = Beside::mount(&bench, &arguments, "both") else { return };
    check();
    drop(both);
    served.end();
}
