//! Mounts whose committed memory a monitor keeps: what happens when the monitor ends, and what it refuses.

use super::bench::Bench;
use super::serve::{Served, bench_to_mount_in, client, replay, succeeds, wait_until};
use nix::libc;
use nix::sys::socket::sockopt::{ReceiveTimeout, SendTimeout};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, setsockopt, socket,
};
use nix::sys::time::TimeVal;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The first message of a guest: its version.
const HELLO: [u8; 2] = [0, 3];
const PATH: &str = "ext:journal=vmm/conv:image=v+monitor:socket=s";

/// A bench with an empty volume, for FUSE mounts.
fn bench() -> Option<Bench> {
    let bench = bench_to_mount_in()?;
    client(&bench, "e2fsck")?;
    let made = bench.flashpath(&["mkfs", "ext/conv:image=v,size=64M"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    Some(bench)
}

fn write(place: &Path, name: &str, bytes: &[u8]) {
    let mut file = File::create(place.join(name)).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    File::open(place).unwrap().sync_all().unwrap();
}

/// The kernel's tools take the journal for an ordinary one.
fn names_own_log(bench: &Bench) -> bool {
    succeeds(client(bench, "dumpe2fs").unwrap().args(["-h", "v"])).contains("Journal inode:            8")
}

#[test]
fn a_mount_goes_on_with_the_log_in_its_volume_when_its_monitor_dies() {
    for (writes_later, is_killed) in [(true, true), (false, true), (true, false)] {
        let Some(bench) = bench() else { return };
        let monitor = Served::monitor(&bench);
        let place = bench.path("m");
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        (0..20).for_each(|number| write(&place, &format!("before{number}"), &[number; 9000]));
        fs::remove_file(place.join("before7")).unwrap();
        assert!(!names_own_log(&bench), "the volume names the memory");
        monitor.signal("-KILL");
        drop(monitor);
        if writes_later {
            (0..20).for_each(|number| write(&place, &format!("later{number}"), &[number; 9000]));
        } else {
            wait_until("the journal moves though nobody writes", || names_own_log(&bench));
        }
        assert!(names_own_log(&bench));
        if is_killed {
            served.signal("-KILL");
            drop(served);
            replay(&bench, "v");
        } else {
            let error = served.end();
            assert!(error.contains("the monitor is gone: the journal is in the volume"), "{error}");
        }
        succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
        let served = Served::mounted(&bench, &["mount", "ext/conv:image=v", "m"]);
        for number in 0..20_u8 {
            let before = fs::read(place.join(format!("before{number}")));
            assert!(number == 7 || before.is_ok_and(|bytes| bytes == [number; 9000]), "before{number}");
            let later = fs::read(place.join(format!("later{number}")));
            assert!(!writes_later || later.is_ok_and(|bytes| bytes == [number; 9000]), "later{number}");
        }
        served.end();
    }
}

/// Their frames are protected until they are reclaimed, which takes a thousand of them.
#[test]
fn blocks_that_a_checkpoint_wrote_home_are_changed_again() {
    for protect in ["best", "mprotect"] {
        let Some(bench) = bench() else { return };
        let monitor = Served::monitor(&bench);
        let place = bench.path("m");
        let path = format!("ext:journal=vmm,data=journal/conv:image=v+monitor:socket=s,protect={protect}");
        let served = Served::mounted(&bench, &["mount", &path, "m"]);
        // Their inodes are in several blocks, each of which is changed again after the log was full once.
        (0..64).for_each(|number| drop(File::create(place.join(format!("small{number}"))).unwrap()));
        for round in 0..2_u8 {
            (0..60).for_each(|number| write(&place, &format!("large{number}"), &[round + number; 1 << 18]));
            for number in (0..64).step_by(8) {
                let file = File::open(place.join(format!("small{number}"))).unwrap();
                file.set_permissions(fs::Permissions::from_mode(0o600 + u32::from(round))).unwrap();
                file.sync_all().unwrap();
            }
        }
        for number in 0..60_u8 {
            assert_eq!(fs::read(place.join(format!("large{number}"))).unwrap(), [1 + number; 1 << 18], "{protect}");
        }
        served.end();
        monitor.end();
        succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
    }
}

#[test]
fn a_monitor_that_ends_in_good_order_leaves_its_mounts_whole() {
    let Some(bench) = bench() else { return };
    let monitor = Served::monitor(&bench);
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", &[7; 100_000]);
    assert!(monitor.end().is_empty(), "its messages are in the log");
    let log = fs::read_to_string(bench.path("monitor.log")).unwrap();
    assert!(log.contains("of 1 volumes are kept"), "{log}");
    assert!(!bench.path("s").exists(), "the socket is removed");
    wait_until("the journal moves", || names_own_log(&bench));
    served.end();
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
}

#[test]
fn a_monitor_refuses_what_it_cannot_keep_and_says_why() {
    let Some(bench) = bench() else { return };
    let refused = |arguments: &[&str], words: &str| {
        let ended = bench.flashpath(arguments);
        assert!(ended.code != Some(0) && ended.stderr.contains(words), "{words}: {ended:?}");
    };
    refused(&["mount", PATH, "m"], "flashpath monitor");
    refused(&["mount", "ext:journal=vmm/conv:image=v", "m"], "flashpath monitor");
    refused(&["mount", "ext:journal=vmm/conv:image=v+monitor", "m"], "found by its socket");
    refused(&["run", "uniform:writes=1M", "--on", "ext:journal=vmm/conv:size=64M+monitor:socket=s"], "a simulation");
    fs::write(bench.path("s"), "a file").unwrap();
    refused(&["monitor", "s"], "another process listens there, or it is no socket");
    assert_eq!(fs::read(bench.path("s")).unwrap(), b"a file", "it is not removed");
    fs::remove_file(bench.path("s")).unwrap();
    let monitor = Served::monitor(&bench);
    refused(&["monitor", "s"], "another process listens there");
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", b"kept");
    refused(&["mount", PATH, "n"], "in use");
    // A copy has the same UUID.
    succeeds(client(&bench, "cp").unwrap().args(["v", "copy"]));
    refused(&["mount", "ext:journal=vmm/conv:image=copy+monitor:socket=s", "n"], "is mounted by process");
    refused(&["mount", "ext/conv:image=copy", "n"], "the volume uses journal");
    served.end();
    monitor.end();
}

/// The host has lost power: nobody knows what was committed.
#[test]
fn a_volume_that_lost_its_monitor_and_its_mount_is_refused_until_it_is_given_up() {
    let Some(bench) = bench() else { return };
    let monitor = Served::monitor(&bench);
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", &[1; 50_000]);
    // Stopped, the mount cannot move its journal.
    served.signal("-STOP");
    monitor.signal("-KILL");
    served.signal("-KILL");
    drop((served, monitor));
    let new = Served::monitor(&bench);
    let refused = bench.flashpath(&["mount", PATH, "m"]);
    assert!(refused.stderr.contains("is not kept by this monitor"), "{refused:?}");
    new.end();
    let given_up = bench.flashpath(&["fsck", "ext:journal=inline/conv:image=v"]);
    assert!(given_up.stdout.contains("which is given up"), "{given_up:?}");
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
}

/// The monitor is warned, spills, and the host loses power then: the next monitor recovers the volume. The kernel's tools find
/// nothing wrong in it.
#[test]
fn what_a_monitor_spills_is_recovered_by_the_next_one() {
    for signal in ["-TERM", "-PWR"] {
        let Some(bench) = bench() else { return };
        let spilling = ["--spill", "spilled"];
        let monitor = Served::monitor_with(&bench, &spilling);
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        (0..20).for_each(|number| write(&bench.path("m"), &format!("file{number}"), &[number; 9000]));
        // Stopped, the mount cannot move its journal.
        served.signal("-STOP");
        monitor.signal(signal);
        let (ended, _) = { monitor }.wait();
        assert!(ended.success(), "{ended}");
        served.signal("-KILL");
        drop(served);
        assert!(bench.path("spilled").exists());
        let monitor = Served::monitor_with(&bench, &spilling);
        wait_until("the monitor recovers the volume", || names_own_log(&bench));
        wait_until("the spill is removed", || !bench.path("spilled").exists());
        replay(&bench, "v");
        succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        for number in 0..20_u8 {
            assert_eq!(fs::read(bench.path(&format!("m/file{number}"))).unwrap(), [number; 9000]);
        }
        served.end();
        monitor.end();
        assert!(!bench.path("spilled").exists(), "nothing is kept");
    }
}

/// The mount lives on after the spill, and its journal moves into the volume: what was spilled is old, and does no harm.
#[test]
fn a_spill_that_is_older_than_its_volume_is_forgotten() {
    let Some(bench) = bench() else { return };
    let spilling = ["--spill", "spilled"];
    let monitor = Served::monitor_with(&bench, &spilling);
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", &[1; 20_000]);
    monitor.end();
    assert!(bench.path("spilled").exists());
    write(&bench.path("m"), "file", &[2; 20_000]);
    let monitor = Served::monitor_with(&bench, &spilling);
    write(&bench.path("m"), "other", &[3; 20_000]);
    served.end();
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    assert_eq!(fs::read(bench.path("m/file")).unwrap(), [2; 20_000]);
    assert_eq!(fs::read(bench.path("m/other")).unwrap(), [3; 20_000]);
    assert!(!bench.path("spilled").exists(), "it is forgotten");
    served.end();
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
    monitor.end();
    // A file that is no spill is not taken for one.
    fs::write(bench.path("spilled"), "notes of mine").unwrap();
    let refused = bench.flashpath(&["monitor", "s", "--spill", "spilled"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("is not what a monitor has written"), "{refused:?}");
    assert_eq!(fs::read(bench.path("spilled")).unwrap(), b"notes of mine");
}

/// The system refuses a userfaultfd to the command, as in a container whose filter of system calls lacks it.
fn without_userfaultfd(command: &mut Command) {
    let step = |code: u32, k: u32, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let refuse = move || {
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_userfaultfd as u32, 0, 1),
            step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
            step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
        ];
        let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        #[allow(unsafe_code, reason = "a filter of system calls")]
        // SAFETY: the filter and its steps are alive during the call.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
        };
        if refused { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    #[allow(unsafe_code, reason = "the filter is of the command alone")]
    // SAFETY: between fork and exec it allocates nothing, and takes no lock.
    unsafe {
        command.pre_exec(refuse)
    };
}

#[test]
fn without_the_right_to_a_userfaultfd_protection_is_weaker_and_says_so_or_is_refused() {
    let Some(bench) = bench() else { return };
    let monitor = Served::monitor(&bench);
    let required = "ext:journal=vmm/conv:image=v+monitor:socket=s,protect=required";
    let mut refused = bench.command(&["mount", required, "m"]);
    without_userfaultfd(&mut refused);
    let refused = refused.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("userfaultfd") && said.contains("protect="), "{said}");
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
    let mut command = bench.command(&["mount", PATH, "m"]);
    without_userfaultfd(&mut command);
    let served = Served::begun(command, &["mount", PATH, "m"], Some(bench.path("m")));
    write(&bench.path("m"), "file", &[7; 100_000]);
    served.signal("-KILL");
    let (_, said) = { served }.wait();
    assert!(said.contains("protected by mprotect in this process"), "{said}");
    wait_until("the monitor recovers the volume", || names_own_log(&bench));
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
    let log = fs::read_to_string(bench.path("monitor.log")).unwrap();
    assert!(log.contains("its committed memory is protected by the process itself"), "{log}");
    monitor.end();
}

/// A command that begins with so few descriptors.
fn with_descriptors(inner: &Command, most: u32) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {most} && exec \"$0\" \"$@\"")]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inner.get_current_dir().map(|directory| command.current_dir(directory));
    command
}

/// A guest of the monitor that says these messages, and what it hears of the last.
fn guest(bench: &Bench, messages: &[&[u8]]) -> Option<(OwnedFd, Vec<u8>)> {
    let guest = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let patience = TimeVal::new(5, 0);
    setsockopt(&guest, ReceiveTimeout, &patience).unwrap();
    setsockopt(&guest, SendTimeout, &patience).unwrap();
    connect(guest.as_raw_fd(), &UnixAddr::new(&bench.path("s")).unwrap()).ok()?;
    let mut heard = vec![0; 4096];
    let mut count = 0;
    for message in messages {
        // One that is refused hears why, whatever it says.
        let _ = send(guest.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL);
        count = recv(guest.as_raw_fd(), &mut heard, MsgFlags::empty()).ok()?;
    }
    heard.truncate(count);
    Some((guest, heard))
}

/// After one accept that failed for want of descriptors, the monitor served nobody, and said so at its end: no test had taken
/// all that a server may open. Here it is crossed with a guest that dies meanwhile.
#[test]
fn a_monitor_without_descriptors_says_so_at_once_and_serves_again() {
    let Some(bench) = bench() else { return };
    let arguments = ["monitor", "s", "--log", "monitor.log"];
    let monitor = Served::begun(with_descriptors(&bench.command(&arguments), 24), &arguments, None);
    let log = || fs::read_to_string(bench.path("monitor.log")).unwrap_or_default();
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", &[7; 20_000]);
    // Guests that have a volume are not cut off for others, and take what is left.
    let mut guests = Vec::new();
    for number in 1..40 {
        let claim = [&[1][..], &[number; 16]].concat();
        guests.extend(guest(&bench, &[&HELLO, &claim]));
        if log().contains("no guest can be accepted") {
            break;
        }
    }
    wait_until("it says so at once", || log().contains("no guest can be accepted"));
    let refused = guest(&bench, &[&HELLO]).map(|(_, heard)| String::from_utf8_lossy(&heard).into_owned());
    assert!(refused.is_some_and(|why| why.contains("no file descriptor left")), "a guest is told");
    served.signal("-KILL");
    drop(served);
    drop(guests);
    wait_until("it accepts again", || guest(&bench, &[&HELLO]).is_some_and(|(_, heard)| heard.first() == Some(&1)));
    assert!(log().contains("guests are accepted again"), "{}", log());
    wait_until("the dead guest's memory is written home", || names_own_log(&bench));
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    assert_eq!(fs::read(bench.path("m/file")).unwrap(), [7; 20_000]);
    served.end();
    monitor.end();
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
}

/// In the moment after the death of a mount, fsck gave up what its living monitor kept, as fsck itself had advised: no test
/// crossed the check of a volume with a recovery that is about to begin.
#[test]
fn what_a_living_monitor_keeps_is_not_given_up() {
    let Some(bench) = bench() else { return };
    let give_up = "ext:journal=inline/conv:image=v";
    for (path, wait) in [(give_up, "0"), (give_up, "60"), ("ext/conv:image=v", "0"), ("ext/conv:image=v", "60")] {
        let monitor = Served::monitor(&bench);
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        (0..20).for_each(|number| write(&bench.path("m"), &format!("file{number}"), &[number; 9000]));
        // Stopped, the monitor cannot take the image before fsck comes.
        monitor.signal("-STOP");
        served.signal("-KILL");
        drop(served);
        let refused = bench.flashpath(&["fsck", "--wait", "0", path]);
        assert_eq!(refused.code, Some(8), "{refused:?}");
        let said: Vec<&str> = refused.stderr.split_whitespace().filter(|word| *word != "\u{2502}").collect();
        let keeper = format!("process {} keeps, which lives", monitor.process());
        assert!(said.join(" ").contains(&keeper) && !refused.stdout.contains("given up"), "{refused:?}");
        monitor.signal("-CONT");
        let checked = bench.flashpath(&["fsck", "--wait", wait, path]);
        assert!(!checked.stdout.contains("given up"), "{checked:?}");
        assert!(wait == "0" || checked.code == Some(0), "the recovery is waited for: {checked:?}");
        wait_until("the monitor recovers the volume", || names_own_log(&bench));
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        for number in 0..20_u8 {
            assert_eq!(fs::read(bench.path(&format!("m/file{number}"))).unwrap(), [number; 9000]);
        }
        served.end();
        monitor.end();
    }
    // A copy in the state of a mount, whose monitor is dead: it is given up by its word.
    let monitor = Served::monitor(&bench);
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", b"kept");
    monitor.signal("-STOP");
    served.signal("-KILL");
    drop(served);
    assert_eq!(bench.flashpath(&["fsck", "--wait", "0", give_up]).code, Some(8));
    monitor.signal("-KILL");
    drop(monitor);
    let given_up = bench.flashpath(&["fsck", give_up]);
    assert!(given_up.stdout.contains("which is given up") && given_up.stdout.contains("is lost"), "{given_up:?}");
}

/// `mkfs --force` replaced the volume while its living monitor was about to write home what a dead mount had left: the test of fsck
/// crossed that moment with one writer alone.
#[test]
fn a_volume_is_not_replaced_while_a_living_monitor_keeps_memory_of_it() {
    let Some(bench) = bench() else { return };
    for path in ["ext/conv:image=v,size=64M", "sfs/conv:image=v,size=64M"] {
        let made = bench.flashpath(&["mkfs", "--force", "ext/conv:image=v,size=64M"]);
        assert_eq!(made.code, Some(0), "{made:?}");
        let monitor = Served::monitor(&bench);
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        write(&bench.path("m"), "file", b"kept");
        monitor.signal("-STOP");
        served.signal("-KILL");
        drop(served);
        let refused = bench.flashpath(&["mkfs", "--force", "--wait", "0", path]);
        let said: Vec<&str> = refused.stderr.split_whitespace().filter(|word| *word != "\u{2502}").collect();
        let keeper = format!("process {} keeps, which lives", monitor.process());
        assert!(refused.code != Some(0) && said.join(" ").contains(&keeper), "{refused:?}");
        monitor.signal("-CONT");
        // It waits as for any other user of the image.
        let made = bench.flashpath(&["mkfs", "--force", "--wait", "60", path]);
        assert_eq!(made.code, Some(0), "{made:?}");
        let log = fs::read_to_string(bench.path("monitor.log")).unwrap();
        assert!(log.contains("is recovered"), "{log}");
        monitor.end();
        assert_eq!(bench.flashpath(&["fsck", "-n", path]).code, Some(0), "the new volume is whole");
    }
}

/// What a dead mount left was lost when its monitor was told to end before it was home.
#[test]
fn a_monitor_that_is_told_to_end_first_writes_home_what_dead_mounts_left() {
    let Some(bench) = bench() else { return };
    let monitor = Served::monitor(&bench);
    let served = Served::mounted(&bench, &["mount", PATH, "m"]);
    write(&bench.path("m"), "file", &[9; 50_000]);
    monitor.signal("-STOP");
    served.signal("-KILL");
    drop(served);
    monitor.signal("-TERM");
    monitor.signal("-CONT");
    let (ended, error) = { monitor }.wait();
    assert!(ended.success(), "{ended}: {error}");
    assert!(names_own_log(&bench), "{}", fs::read_to_string(bench.path("monitor.log")).unwrap());
    let served = Served::mounted(&bench, &["mount", "ext/conv:image=v", "m"]);
    assert_eq!(fs::read(bench.path("m/file")).unwrap(), [9; 50_000]);
    served.end();
}
