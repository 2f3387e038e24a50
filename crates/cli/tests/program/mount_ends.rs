//! The end of a mount: the data stored by then, the programs that wait for it, and the effect of a failing store.

use super::bench::{Answer, Bench};
use super::serve::{PATIENCE, Served, bench_to_mount_in, client, is_mounted, wait_until};
use super::skipped::skipped;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const IMAGE: &str = "sfs/conv:image=volume.img,timing=off";
const COPY: &str = "sfs/conv:image=copy.img,timing=off";
/// It writes nothing on its own for an hour.
const LAZY: &str = "sfs:flush=3600s,checkpoint=3600s/conv:image=volume.img,timing=off";

fn make(bench: &Bench, size: &str) {
    let made = bench.flashpath(&["mkfs", &format!("sfs/conv:image=volume.img,size={size},timing=off")]);
    assert_eq!(made.code, Some(0), "{made:?}");
}

/// Mounts at `m` in the background; returns the server's process number.
fn mounted(bench: &Bench, path: &str, more: &[&str]) -> String {
    let answer = bench.flashpath(&[&["mount", path, "m", "--background"], more].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.stdout.trim().to_string()
}

fn unmounted(bench: &Bench) -> Answer {
    let answer = bench.flashpath(&["umount", "m"]);
    assert!(!is_mounted(&bench.path("m")), "{answer:?}");
    answer
}

/// A tmpfs of this many MiB at `t`, unmounted on drop.
struct Small(PathBuf);

impl Small {
    fn new(bench: &Bench, mebibytes: u32) -> Option<Small> {
        let place = bench.path("t");
        fs::create_dir(&place).unwrap();
        let options = format!("size={mebibytes}m");
        match mount(Some("none"), &place, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())) {
            Ok(()) => Some(Small(place)),
            Err(error) => {
                skipped(&format!("a tmpfs cannot be mounted: {error}"));
                None
            }
        }
    }

    fn resize(&self, mebibytes: u32) {
        let options = format!("size={mebibytes}m");
        mount(Some("none"), &self.0, Some("tmpfs"), MsFlags::MS_REMOUNT, Some(options.as_str())).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_copy_of_the_image_after_umount_has_all_files() {
    // umount(8) returned before the last checkpoint: of eight copies made after it, three had none of the 2,000 files,
    // without a message.
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench, "512M");
    let bytes = vec![7; 5000];
    for round in 0..8 {
        mounted(&bench, IMAGE, &[]);
        let directory = bench.path("m").join(format!("d{round}"));
        fs::create_dir(&directory).unwrap();
        (0..2000).for_each(|number| fs::write(directory.join(number.to_string()), &bytes).unwrap());
        let ended = unmounted(&bench);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        fs::copy(bench.path("volume.img"), bench.path("copy.img")).unwrap();
        mounted(&bench, COPY, &["--read-only"]);
        let found =
            directory.read_dir().unwrap().filter(|file| fs::read(file.as_ref().unwrap().path()).unwrap() == bytes);
        assert_eq!(found.count(), 2000, "round {round}");
        assert_eq!(unmounted(&bench).code, Some(0));
    }
}

/// Unmounts `m` as root does. A program that another test starts has the files of this one open until it runs: the mount is busy
/// until then.
fn unmount(bench: &Bench) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let output = Command::new("umount").arg(bench.path("m")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => return,
            false => assert!(said.contains("busy") && Instant::now() < until, "umount: {}, {said}", output.status),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_image_of_an_ending_server_is_awaited() {
    // `umount m; flashpath mount ...` failed with "in use" in 27 of 56 tries.
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench, "256M");
    for _ in 0..20 {
        mounted(&bench, IMAGE, &[]);
        (0..100).for_each(|number| fs::write(bench.path(&format!("m/{number}")), [1; 5000]).unwrap());
        unmount(&bench);
    }
    let checked = bench.flashpath(&["fsck", IMAGE]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn commands_wait_for_an_image_in_use_for_the_given_time() {
    let bench = Bench::new();
    make(&bench, "64M");
    let held = File::open(bench.path("volume.img")).unwrap();
    held.lock().unwrap();
    for arguments in [&["fsck", IMAGE][..], &["mount", IMAGE, "m"], &["mkfs", IMAGE, "--force"]] {
        let refused = bench.flashpath(&[arguments, &["--wait", "0"]].concat());
        assert!(refused.code != Some(0) && refused.stderr.contains("is in use"), "{refused:?}");
        assert!(!refused.stderr.contains("waiting"), "{refused:?}");
    }
    let refused = bench.flashpath(&["fsck", IMAGE, "--wait", "0.3"]);
    assert!(refused.code == Some(8) && refused.stderr.contains("waiting up to 0.3 s"), "{refused:?}");
    let child = bench.command(&["fsck", IMAGE, "--wait", "3600"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    held.unlock().unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn umount_names_the_mounts_that_it_cannot_unmount() {
    let Some(bench) = bench_to_mount_in() else { return };
    fs::create_dir(bench.path("plain")).unwrap();
    for place in ["plain", "nowhere", "/proc"] {
        bench.refuses(&["umount", place], &[&format!("{place} is not a mount point of flashpath")]);
    }
    let served = Served::mounted(&bench, &["mount", "sfs/conv:size=64M,timing=off", "m"]);
    let open = File::create(bench.path("m/open")).unwrap();
    let busy = bench.flashpath(&["umount", "m"]);
    assert!(busy.code == Some(1) && busy.stderr.contains("m is in use by process"), "{busy:?}");
    fs::write(bench.path("m/still"), "it works").unwrap();
    drop(open);
    assert_eq!(unmounted(&bench).code, Some(0));
    drop(served);
}

#[test]
fn a_mount_whose_server_was_killed_is_unmounted_and_its_loss_is_reported() {
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench, "64M");
    let mut served = Served::mounted(&bench, &["mount", IMAGE, "m"]);
    fs::write(bench.path("m/file"), "x").unwrap();
    served.signal("-KILL");
    served.wait();
    let ended = unmounted(&bench);
    assert!(ended.code == Some(1) && ended.stderr.contains("data that was not synced is lost"), "{ended:?}");
    assert_eq!(bench.flashpath(&["fsck", IMAGE]).code, Some(0), "the log is whole");
}

#[test]
fn a_device_as_one_file_is_unmounted_in_the_same_way() {
    let Some(bench) = bench_to_mount_in() else { return };
    let serve = ["serve", "conv:image=disk.img", "--file", "m/disk", "--background"];
    File::create(bench.path("disk.img")).unwrap().set_len(64 << 20).unwrap();
    for round in 0..3u8 {
        let answer = bench.flashpath(&serve);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        fs::OpenOptions::new().write(true).open(bench.path("m/disk")).unwrap().write_all(&[round + 1; 4096]).unwrap();
        assert_eq!(unmounted(&bench).code, Some(0));
        assert_eq!(fs::read(bench.path("disk.img")).unwrap()[..4096], [round + 1; 4096]);
    }
}

#[test]
fn unsynced_data_is_durable_soon_after_the_last_request() {
    // It waited for the periodic checkpoint, every 30 seconds, or every hour as here.
    let Some(bench) = bench_to_mount_in() else { return };
    make(&bench, "64M");
    let mut served = Served::mounted(&bench, &["mount", LAZY, "m"]);
    fs::write(bench.path("m/file"), "not synced").unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(300));
        fs::copy(bench.path("volume.img"), bench.path("copy.img")).unwrap();
        let place = bench.path("c");
        let mount = bench.flashpath(&["mount", COPY, "c", "--read-only", "--background"]);
        assert_eq!(mount.code, Some(0), "{mount:?}");
        let found = fs::read(place.join("file"));
        assert_eq!(bench.flashpath(&["umount", "c"]).code, Some(0));
        if found.is_ok_and(|found| found == b"not synced") {
            break;
        }
        assert!(Instant::now() < until, "it waits in memory");
    }
    served.signal("-KILL");
    served.wait();
    drop(served);
}

#[test]
fn a_mount_that_could_not_store_all_ends_with_1_and_the_next_fsck_reports_it() {
    // A failed write made the volume read-only, and the mount ended with 0 without a message.
    for (is_in_background, fsck_first) in [(false, true), (true, false)] {
        let Some(bench) = bench_to_mount_in() else { return };
        let Some(small) = Small::new(&bench, 24) else { return };
        let path = "sfs/conv:image=t/volume.img,timing=off";
        assert_eq!(bench.flashpath(&["mkfs", "sfs/conv:image=t/volume.img,size=256M,timing=off"]).code, Some(0));
        let mut served = None;
        if is_in_background {
            mounted(&bench, path, &["--log", "log"]);
        } else {
            served = Some(Served::mounted(&bench, &["mount", path, "m"]));
        }
        fs::write(bench.path("m/synced"), "it is there").unwrap();
        File::open(bench.path("m/synced")).unwrap().sync_all().unwrap();
        let file = File::create(bench.path("m/large")).unwrap();
        let mut writes = std::iter::repeat_with(|| (&file).write_all(&[3; 1 << 20]).and_then(|()| file.sync_data()));
        let failed = writes.by_ref().take(64).find_map(Result::err).expect("24 MiB do not hold 64");
        assert_eq!(failed.raw_os_error(), Some(Errno::EIO as i32), "{failed}");
        assert_eq!(
            File::create(bench.path("m/more")).unwrap_err().raw_os_error(),
            Some(Errno::EROFS as i32),
            "it is read-only"
        );
        drop(file);
        small.resize(400);
        let ended = unmounted(&bench);
        assert!(ended.code == Some(1) && ended.stderr.contains("lost is what was not synced"), "{ended:?}");
        let stderr = match served {
            Some(mut served) => {
                let (status, stderr) = served.wait();
                assert_eq!(status.code(), Some(1), "{stderr}");
                stderr
            }
            // The server answers before it writes its last words.
            None => {
                let log = || fs::read_to_string(bench.path("log")).unwrap();
                wait_until("the server says what is lost", || log().contains("blocks of 4 KiB"));
                log()
            }
        };
        let stderr = stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        let last = stderr.rsplit("cannot store all of").next().unwrap();
        assert!(last.contains("changes to") && last.contains("blocks of 4 KiB"), "{stderr}");
        if fsck_first {
            let found = bench.flashpath(&["fsck", "-n", path]);
            assert!(found.code == Some(4) && found.stdout.contains("a write or a flush failed"), "{found:?}");
            assert_eq!(bench.flashpath(&["fsck", path]).code, Some(1));
            assert_eq!(bench.flashpath(&["fsck", path]).code, Some(0), "reported once");
        }
        let answer = bench.flashpath(&["mount", path, "m", "--background"]);
        assert_eq!(
            answer.stderr.contains("a write or a flush failed during its last mount"),
            !fsck_first,
            "{answer:?}"
        );
        assert_eq!(fs::read(bench.path("m/synced")).unwrap(), b"it is there");
        assert_eq!(unmounted(&bench).code, Some(0));
        let clean = bench.flashpath(&["fsck", path]);
        assert_eq!(clean.code, Some(0), "{clean:?}");
    }
}

#[test]
fn an_image_that_is_removed_or_cut_off_under_a_mount_is_noticed_at_the_next_flush() {
    // fsync succeeded for files that were lost for ever.
    for (removes, why) in [(true, "was removed while it was open"), (false, "was cut off while it was open")] {
        let Some(bench) = bench_to_mount_in() else { return };
        make(&bench, "64M");
        let mut served = Served::mounted(&bench, &["mount", IMAGE, "m"]);
        let mut file = File::create(bench.path("m/file")).unwrap();
        file.write_all(&[1; 4096]).unwrap();
        file.sync_all().unwrap();
        match removes {
            true => fs::remove_file(bench.path("volume.img")).unwrap(),
            false => OpenOptions::new().write(true).open(bench.path("volume.img")).unwrap().set_len(32 << 20).unwrap(),
        }
        file.write_all(&[2; 4096]).unwrap();
        assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(Errno::EIO as i32), "{why}");
        assert_eq!(fs::write(bench.path("m/more"), "").unwrap_err().raw_os_error(), Some(Errno::EROFS as i32), "{why}");
        drop(file);
        let ended = unmounted(&bench);
        assert!(ended.code == Some(1) && ended.stderr.contains(why), "{ended:?}");
        let (status, stderr) = served.wait();
        assert!(status.code() == Some(1) && stderr.contains(why), "{stderr}");
    }
}

#[test]
fn mount_and_umount_call_this_program_by_their_names_for_it() {
    let Some(bench) = bench_to_mount_in() else { return };
    let (Some(_), Some(_), Some(_)) = (client(&bench, "mount"), client(&bench, "umount"), client(&bench, "unshare"))
    else {
        return;
    };
    make(&bench, "64M");
    let program = env!("CARGO_BIN_EXE_flashpath");
    let place = bench.directory.path().display();
    let path = format!("sfs/conv:image={place}/volume.img,timing=off");
    // A private mount namespace gets the two names in /sbin.
    let script = format!(
        "set -e
        mount -t tmpfs none {place}/t
        mkdir {place}/t/up {place}/t/work
        mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir={place}/t/up,workdir={place}/t/work /usr/sbin || exit 77
        ln -sf {program} /usr/sbin/mount.fuse.flashpath
        ln -sf {program} /usr/sbin/mount.fuse.sfs
        ln -sf {program} /usr/sbin/umount.fuse.sfs
        mount -t fuse.flashpath -o noexec,nosuid,_netdev,x-gvfs-hide '{path}' {place}/m
        grep ' {place}/m fuse.sfs rw,nosuid,noexec,' /proc/mounts
        echo one >{place}/m/file
        umount {place}/m
        cp {place}/volume.img {place}/copy.img
        echo '{path} {place}/m fuse.flashpath noauto,nofail,user,ro,nodev,log={place}/log 0 0' >{place}/fstab
        mount -T {place}/fstab {place}/m
        grep ' {place}/m fuse.sfs ro,nosuid,nodev,noexec,' /proc/mounts
        cat {place}/m/file
        umount {place}/m
        mount -t fuse.flashpath '{path}' {place}/m
        mount -o remount,ro {place}/m
        touch {place}/m/more && exit 1
        grep ' {place}/m fuse.sfs ro,' /proc/mounts
        mount -t fuse.flashpath -o remount,rw,nodev '{path}' {place}/m
        touch {place}/m/more
        grep ' {place}/m fuse.sfs rw,nodev,' /proc/mounts
        umount {place}/m
        mount -o remount,ro {place}/m && exit 1
        mount -t fuse.flashpath '{path}' {place}/m -o nosuch && exit 1
        [ $? = 1 ]
        mount -t fuse.flashpath '{path}' {place}/nowhere/m && exit 1
        mount -t fuse.flashpath 'sfs/conv:image={place}/copy.img,timing=off' {place}/m
        cat {place}/m/file
        umount {place}/m
        if [ -x /usr/sbin/mount.fuse ]; then
            rm /usr/sbin/mount.fuse.flashpath
            ln -sf {program} /usr/sbin/flashpath
            mount -t fuse.flashpath -o noatime '{path}' {place}/m
            grep ' {place}/m fuse.sfs rw,' /proc/mounts
            cat {place}/m/file
            umount {place}/m
        fi"
    );
    ["m", "t"].iter().for_each(|name| fs::create_dir(bench.path(name)).unwrap());
    let output =
        Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(bench.directory.path()).output().unwrap();
    if output.status.code() == Some(77) {
        return skipped("no overlay can be mounted over /usr/sbin");
    }
    let answer = Answer::of(output);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("-o nosuch: there is no such mount option"), "{answer:?}");
    let found = answer.stdout.lines().filter(|line| *line == "one").count();
    assert_eq!(found, if PathBuf::from("/usr/sbin/mount.fuse").exists() { 3 } else { 2 });
    assert_eq!(fs::read_to_string(bench.path("log")).unwrap(), "", "nothing went wrong");
}

#[test]
fn the_first_steps_of_the_manual_work_for_an_ordinary_user() {
    // The root directory of a volume belonged to root, whoever ran mkfs: the first write failed with EACCES.
    let Some(bench) = bench_to_mount_in() else { return };
    for program in ["setpriv", "unshare", "fusermount3"] {
        if client(&bench, program).is_none() {
            return;
        }
    }
    let place = bench.directory.path().display();
    fs::copy(env!("CARGO_BIN_EXE_flashpath"), bench.path("flashpath")).unwrap();
    std::os::unix::fs::chown(bench.directory.path(), Some(65534), Some(65534)).unwrap();
    let user = "setpriv --reuid=65534 --regid=65534 --clear-groups sh -ec";
    // Some systems restrict /dev/fuse.
    let script = format!(
        "set -e
        mount -t tmpfs none /mnt
        mknod -m 666 /mnt/fuse c 10 229
        mount --bind /mnt/fuse /dev/fuse
        {user} 'exec 3<>/dev/fuse' || exit 77
        cd {place}
        {user} '
            PATH={place}:$PATH
            flashpath mkfs sfs/conv:image=volume.img,size=64M >/dev/null
            flashpath mount sfs/conv:image=volume.img mnt --background >/dev/null
            stat -c %u:%g:%a mnt
            echo hello >mnt/file
            mkdir mnt/directory
            cat mnt/file
            flashpath umount mnt
            flashpath fsck sfs/conv:image=volume.img
            flashpath mount sfs/conv:size=64M mnt --background >/dev/null
            echo memory >mnt/file
            cat mnt/file
            flashpath umount mnt
            flashpath mkfs sfs/conv:image=other.img,size=64M --owner 7:8 >/dev/null
            flashpath mount sfs/conv:image=other.img mnt --background >/dev/null
            stat -c %u:%g mnt
            ! echo x 2>/dev/null >mnt/file
            flashpath umount mnt
        '"
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    if output.status.code() == Some(77) {
        return skipped("an ordinary user cannot open /dev/fuse here");
    }
    let answer = Answer::of(output);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let expected = "65534:65534:755\nhello\nsfs/conv:image=volume.img: clean\nmemory\n7:8\n";
    assert_eq!(answer.stdout, expected, "{answer:?}");
    wait_until("nothing is mounted", || !is_mounted(&bench.path("mnt")));
}

#[test]
fn an_owner_that_does_not_exist_or_owns_nothing_is_refused() {
    let bench = Bench::new();
    let made = "sfs/conv:image=a.img,size=64M";
    bench.refuses(&["mkfs", made, "--owner", "no-such-user"], &["there is no user 'no-such-user'", "names or numbers"]);
    bench.refuses(&["mkfs", made, "--owner", "0:no-such-group"], &["there is no group 'no-such-group'"]);
    let zoned = "dm-zoned:reserved=3/conv:image=A,size=64M+zns:image=B,size=160M,zone=4M";
    bench.refuses(&["mkfs", zoned, "--owner", "0"], &["no directory that --owner could own"]);
    assert!(bench.files().is_empty());
}

/// umount(8) of a bind mount waited for ever for the server of the volume, which continued to serve.
#[test]
fn unmounting_a_bind_mount_waits_for_no_server() {
    let Some(bench) = bench_to_mount_in() else { return };
    if client(&bench, "mount").is_none() {
        return;
    }
    make(&bench, "64M");
    mounted(&bench, IMAGE, &[]);
    fs::write(bench.path("m/file"), "one").unwrap();
    fs::create_dir(bench.path("beside")).unwrap();
    let bound = Command::new("mount").arg("--bind").args([bench.path("m"), bench.path("beside")]).status().unwrap();
    if !bound.success() {
        unmounted(&bench);
        return skipped("nothing can be bound here");
    }
    let unbound = bench.flashpath(&["umount", "beside"]);
    assert_eq!((unbound.code, unbound.stderr.as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(bench.path("m/file")).unwrap(), "one");
    assert_eq!(unmounted(&bench).code, Some(0));
}

/// The volume was opened before the mount point was looked at, and closed with a checkpoint.
#[test]
fn a_mount_that_is_refused_changes_nothing_on_the_image() {
    let bench = Bench::new();
    make(&bench, "64M");
    let before = fs::read(bench.path("volume.img")).unwrap();
    fs::create_dir_all(bench.path("full/of")).unwrap();
    fs::write(bench.path("file"), "").unwrap();
    for (place, expected) in [("full", "not empty"), ("file", "file"), ("none/none", "none/none")] {
        let answer = bench.flashpath(&["mount", IMAGE, place]);
        assert!(answer.code != Some(0) && answer.stderr.contains(expected), "{place}: {answer:?}");
        assert!(fs::read(bench.path("volume.img")).unwrap() == before, "{place}: the image has changed");
    }
    assert!(!bench.path("none").exists());
}
