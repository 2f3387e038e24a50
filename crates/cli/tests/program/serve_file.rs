//! The file export under the kernel's loop device and file systems.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in, client, is_mounted, succeeds, wait_until};
use super::skipped::skipped;
use flashpath_kernel::{LoopDevice, Mount};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

const PATH: &str = "conv:size=256M,timing=off";

fn open(bench: &Bench) -> File {
    OpenOptions::new().read(true).write(true).open(bench.path("m/disk")).unwrap()
}

/// A loop device on the file; `None` and a message without loop devices.
fn attach(bench: &Bench) -> Option<LoopDevice> {
    match LoopDevice::attach(&open(bench)) {
        Ok(device) => Some(device),
        Err(error) => {
            skipped(&error.to_string());
            None
        }
    }
}

#[test]
fn the_file_is_as_large_as_the_device_and_stays_so() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = Served::file(&bench, PATH, &[]);
    let file = open(&bench);
    assert_eq!(file.metadata().unwrap().len(), 256 << 20);
    file.write_all_at(b"here", 5000).unwrap();
    file.sync_all().unwrap();
    let mut found = [1; 8];
    file.read_exact_at(&mut found, 4998).unwrap();
    assert_eq!(&found, b"\0\0here\0\0");
    assert_eq!(file.set_len(5).unwrap_err().raw_os_error(), Some(Errno::EINVAL as i32), "it cannot be cut");
    // Like a block device, it ignores O_TRUNC.
    OpenOptions::new().write(true).truncate(true).open(bench.path("m/disk")).unwrap();
    assert_eq!(open(&bench).metadata().unwrap().len(), 256 << 20);
    assert_eq!(file.write_at(b"beyond", 256 << 20).unwrap_err().raw_os_error(), Some(Errno::ENOSPC as i32));
    assert_eq!(file.write_at(b"beyond", (256 << 20) - 2).unwrap(), 2, "what fits is written");
    assert!(File::create(bench.path("m/other")).is_err() && std::fs::remove_file(bench.path("m/disk")).is_err());
    let names: Vec<_> = bench.path("m").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["disk"]);
    drop(file);
    served.end();
    assert!(bench.files().is_empty(), "the mount point was made, and is removed");
}

/// `mv` failed with ENOSYS. Errors must be those of a kernel file system with fixed entries.
#[test]
fn names_and_attributes_are_refused_as_a_kernel_file_system_does() {
    const DENIED: &str = "Operation not permitted";
    const UNSUPPORTED: &str = "Operation not supported";
    for read_only in [false, true] {
        let Some(bench) = bench_to_mount_in() else { return };
        let served = Served::file(&bench, PATH, if read_only { &["--read-only"] } else { &[] });
        let fixed = if read_only { "Read-only file system" } else { DENIED };
        for (command, expected) in [
            ("mv m/disk m/other", fixed),
            ("ln m/disk m/other", fixed),
            ("ln -s disk m/other", fixed),
            ("mkdir m/folder", fixed),
            ("rmdir m/folder", "No such file or directory"),
            ("rmdir m/disk", "Not a directory"),
            ("mkfifo m/pipe", fixed),
            ("mknod m/zero c 1 5", fixed),
            ("touch m/other", fixed),
            ("cp m/disk m/other", fixed),
            ("rm -f m/disk", fixed),
            ("chmod 777 m/disk", fixed),
            ("chown 1:1 m/disk", fixed),
            ("chmod 777 m", fixed),
            ("setfattr -n user.a -v b m/disk", UNSUPPORTED),
            ("setfattr -x user.a m/disk", UNSUPPORTED),
            ("getfattr -n user.a m/disk", UNSUPPORTED),
            ("getfattr -d m/disk", UNSUPPORTED),
            ("touch m/disk", ""),
            ("readlink m/disk", "-"),
            ("readlink -v m/disk", "Invalid argument"),
            ("stat m/disk", ""),
            ("stat -f m/disk", ""),
            ("ls -la m", ""),
            ("sync m/disk", ""),
            ("sync -f m/disk", ""),
            ("sync m", ""),
            ("flock -n m/disk true", ""),
            ("lsattr m/disk", "-"),
            ("cp --reflink=always m/disk other", "-"),
            ("filefrag m/disk", "-"),
            ("dd if=m/disk of=/dev/null bs=4k count=2 iflag=direct", "-"),
            ("truncate -s 5 m/disk", "Invalid argument"),
            ("fallocate -c -l 4096 m/disk", UNSUPPORTED),
            ("fallocate -i -l 4096 m/disk", UNSUPPORTED),
            ("fallocate -o 256M -l 4096 m/disk", "No space left on device"),
        ] {
            let is_write = ["truncate", "fallocate"].iter().any(|program| command.starts_with(program));
            let program = command.split(' ').next().unwrap();
            let Some(mut run) = client(&bench, program) else { continue };
            let output = run.args(command.split(' ').skip(1)).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("not implemented"), "{command}: {stderr}");
            // Older programs lack some options.
            if expected == "-" || stderr.contains("unrecognized option") || (is_write && read_only) {
                continue;
            }
            assert_eq!(output.status.success(), expected.is_empty(), "{command}: {stderr}");
            assert!(stderr.contains(expected), "{command}: {stderr}");
        }
        let names: Vec<_> = bench.path("m").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["disk"]);
        served.end();
    }
}

#[test]
fn holes_can_be_punched_and_found() {
    let Some(bench) = bench_to_mount_in() else { return };
    let Some(mut fallocate) = client(&bench, "fallocate") else { return };
    let served = Served::file(&bench, PATH, &[]);
    let file = open(&bench);
    file.write_all_at(&vec![7; 4 << 20], 8 << 20).unwrap();
    use nix::unistd::{Whence, lseek};
    assert_eq!(lseek(&file, 0, Whence::SeekData).unwrap(), 8 << 20);
    assert_eq!(lseek(&file, 8 << 20, Whence::SeekHole).unwrap(), 12 << 20);
    succeeds(fallocate.args(["--punch-hole", "--offset", "8389000", "--length", "1M", "m/disk"]));
    let mut found = vec![1; 2 << 20];
    file.read_exact_at(&mut found, 8 << 20).unwrap();
    let from = 8_389_000 - (8 << 20);
    assert!(found[..from].iter().all(|byte| *byte == 7), "what is before the hole stays, to the byte");
    assert!(found[from..from + (1 << 20)].iter().all(|byte| *byte == 0));
    assert!(found[from + (1 << 20)..].iter().all(|byte| *byte == 7));
    succeeds(client(&bench, "fallocate").unwrap().args(["--zero-range", "--offset", "9M", "--length", "3M", "m/disk"]));
    file.read_exact_at(&mut found, 10 << 20).unwrap();
    assert!(found.iter().all(|byte| *byte == 0));
    drop(file);
    served.end();
}

#[test]
fn a_file_system_on_it_keeps_what_git_and_fio_wrote() {
    let Some(bench) = bench_to_mount_in() else { return };
    let (Some(mut mkfs), Some(_), Some(_)) =
        (client(&bench, "mkfs.ext4"), client(&bench, "git"), client(&bench, "fio"))
    else {
        return;
    };
    for path in [PATH, "dm-zoned/conv:size=128M,timing=off+zns:size=512M,zone=16M,timing=off"] {
        let served = Served::file(&bench, path, &[]);
        let Some(device) = attach(&bench) else { return };
        succeeds(mkfs.args(["-q", "-F", "-E", "lazy_itable_init=0"]).arg(device.path()));
        mkfs = client(&bench, "mkfs.ext4").unwrap();
        let mut mount = Mount::new(device.path(), "ext4", "discard", bench.directory.path()).unwrap();
        let place = mount.path().to_path_buf();
        let workload = "untar:files=200";
        let answer = bench.flashpath(&["run", workload, "--in", place.to_str().unwrap(), "--quiet"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
            succeeds(client(&bench, "git").unwrap().arg("-C").arg(&place).args(identity).args(arguments))
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "all"]);
        git(&["gc", "-q"]);
        let job = ["--name=x", "--rw=randwrite", "--bsrange=1k-64k", "--size=8M", "--verify=crc32c", "--fsync=16"];
        succeeds(client(&bench, "fio").unwrap().arg(format!("--directory={}", place.display())).args(job));
        mount.mount_again().unwrap();
        git(&["fsck", "--full", "--strict"]);
        assert_eq!(git(&["status", "--porcelain"]).trim(), "?? x.0.0");
        mount.unmount().unwrap();
        succeeds(client(&bench, "e2fsck").unwrap().args(["-f", "-n"]).arg(device.path()));
        drop(device);
        served.end();
    }
}

#[test]
fn a_server_that_is_killed_leaves_a_mount_that_does_not_hang_and_that_the_next_one_takes_over() {
    let Some(bench) = bench_to_mount_in() else { return };
    let path = "conv:image=disk.img,timing=off";
    File::create(bench.path("disk.img")).unwrap().set_len(64 << 20).unwrap();
    let mut served = Served::file(&bench, path, &[]);
    let file = open(&bench);
    file.write_all_at(&[9; 8192], 4096).unwrap();
    file.sync_all().unwrap();
    let mut load = Command::new("dd");
    let load = load.args(["if=/dev/zero", "bs=64k", "seek=512", "conv=notrunc"]);
    let mut load = load.arg(format!("of={}", bench.path("m/disk").display())).stderr(Stdio::null()).spawn().unwrap();
    served.signal("-KILL");
    served.wait();
    wait_until("the load ends", || load.try_wait().unwrap().is_some());
    assert!(file.read_at(&mut [0; 10], 30 << 20).is_err(), "an error, not an endless wait");
    drop(file);
    assert!(is_mounted(&bench.path("m")));
    let again = Served::file(&bench, path, &[]);
    let mut found = [0; 8192];
    open(&bench).read_exact_at(&mut found, 4096).unwrap();
    assert!(found == [9; 8192], "what was synced is there");
    again.end();
    drop(served);
}

#[test]
fn a_read_only_file_cannot_be_opened_for_writing() {
    let Some(bench) = bench_to_mount_in() else { return };
    let served = Served::file(&bench, PATH, &["--read-only"]);
    let refused = OpenOptions::new().write(true).open(bench.path("m/disk")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::EROFS as i32));
    File::open(bench.path("m/disk")).unwrap().read_exact_at(&mut [0; 10], 0).unwrap();
    served.end();
}
