//! The export of paths as virtio disks, by a virtual machine of the tests' own, and servers that are killed under load.
//!
//! `SERVER_KILL_SECONDS` sets the time of the campaign.

use super::bench::Bench;
use super::campaign::Campaign;
use super::nvme_initiator::versions::{BLOCK, BLOCKS, Kind, Oracle, content};
use super::serve::{Served, wait_until};
use super::serve_watch::ask;
use super::vhost_frontend::{DISCARD, FLUSH, Gone, Guest, OK, Queue, WRITE, WRITE_ZEROES};
use flashpath::random::Random;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Queues that write. Each has its own blocks, so that the order of writes is known.
const WRITERS: u64 = 3;
const SECTORS: u64 = BLOCK as u64 / 512;

fn serve(bench: &Bench, path: &str) -> Served {
    Served::start(bench, &["serve", path, "--vhost-user", "s"], None)
}

#[test]
fn each_path_is_a_disk_at_its_own_socket_and_has_figures_of_its_own() {
    let bench = Bench::new();
    let paths = ["serve", "page:op=28%/nand:size=64M,timing=off", "conv:size=32M,timing=off"];
    let options = ["--vhost-user", "a", "--vhost-user", "./b", "--metrics", "metrics"];
    let served = Served::start(&bench, &[&paths[..], &options].concat(), None);
    assert!(served.ready.contains("vhost-user:a, vhost-user:./b"), "{}", served.ready);
    assert_eq!(bench.path("a").metadata().unwrap().permissions().mode() & 0o777, 0o600, "its owner's alone");
    let mut guests = ["a", "b"].map(|socket| Guest::connected(&bench.path(socket), 2));
    assert_eq!(guests[1].sectors(), 65536);
    guests[0].queues[0].write(8, &[1; 4096]);
    guests[1].queues[1].write(0, &[2; 8192]);
    assert_eq!(guests[1].queues[0].ranges(DISCARD, &[(0, 8, 0)]), OK);
    assert_eq!(guests[1].queues[0].run(FLUSH, 0, &[], 0).status, OK);
    let page = ask(&bench.path("metrics"), "GET /metrics HTTP/1.1\r\n\r\n");
    for line in [
        "flashpath_requests_total{kind=\"write\",namespace=\"1\"} 1\n",
        "flashpath_request_bytes_total{kind=\"write\",namespace=\"2\"} 8192\n",
        "flashpath_requests_total{kind=\"discard\",namespace=\"2\"} 1\n",
        "flashpath_requests_total{kind=\"flush\",namespace=\"2\"} 1\n",
        "flashpath_vhost_user_clients 2\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    assert_eq!(served.end(), "");
    assert_eq!(guests[0].queues[0].complete(), Err(Gone));
    assert!(bench.files().is_empty(), "the sockets are removed");
}

#[test]
fn clients_that_come_and_go_leave_neither_threads_nor_descriptors() {
    let bench = Bench::new();
    let served = serve(&bench, "conv:size=32M,timing=off");
    let count = |what| std::fs::read_dir(format!("/proc/{}/{what}", served.process())).unwrap().count();
    let before = (count("fd"), count("task"));
    for round in 0..40u8 {
        let mut guest = Guest::connected(&bench.path("s"), 2);
        guest.queues[1].write(0, &[round; 4096]);
        (0..8).for_each(|place| assert!(guest.queues[0].submit(WRITE, place * 128, &[round; 65536], 0) < 8));
    }
    wait_until("all sessions have ended", || (count("fd"), count("task")) == before);
    assert_eq!(served.end(), "");
}

/// Of a session that lacked descriptors, the threads that had begun stayed for ever, with all that there had been: no client was
/// served any more.
#[test]
fn a_session_that_lacks_descriptors_leaves_nothing_and_the_next_one_is_served() {
    let bench = Bench::new();
    let served = serve(&bench, "conv:size=32M,timing=off");
    let count = |what| std::fs::read_dir(format!("/proc/{}/{what}", served.process())).unwrap().count();
    let before = (count("fd"), count("task"));
    let limit = |descriptors: usize| {
        let process = format!("--pid={}", served.process());
        let limited = Command::new("prlimit").args([process, format!("--nofile={descriptors}:4096")]).status();
        assert!(limited.unwrap().success());
    };
    limit(before.0 + 40);
    let waiting: Vec<_> = (0..3).map(|_| UnixStream::connect(bench.path("s")).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    wait_until("nothing is left of the sessions", || (count("fd"), count("task")) == before);
    drop(waiting);
    limit(4096);
    Guest::connected(&bench.path("s"), 2).queues[1].write(0, &[7; 4096]);
    let said = served.end();
    assert!(said.contains("no client can be accepted") && said.contains("clients are accepted again"), "{said}");
}

#[test]
fn what_has_no_meaning_is_refused_and_a_failing_device_is_told_to_guest_and_user() {
    let bench = Bench::new();
    let conv = "conv:size=16M";
    for (arguments, said) in [
        (&["serve", conv, conv, "--vhost-user", "s"][..], "2 paths, and --vhost-user for 1"),
        (&["serve", conv, "--vhost-user", "s", "--vhost-user", "t"], "once for each path"),
        (&["serve", conv, "--vhost-user", "127.0.0.1:9"], "Unix socket"),
        (&["serve", conv, "--vhost-user", "s", "--nbd", "t"], "cannot be used with"),
        (&["serve", conv, "--vhost-user", "s", "--any-address"], "cannot be used with"),
        (&["serve", "zns:size=64M,zone=4M", "--vhost-user", "s"], "translation layer"),
        (&["serve", "sfs/conv:size=64M", "--vhost-user", "s"], "file system on top"),
    ] {
        let answer = bench.flashpath(arguments);
        assert!(answer.code.is_some_and(|code| code != 0), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(said), "{arguments:?}: {}", answer.stderr);
    }
    let read_only = Served::start(&bench, &["serve", conv, "--vhost-user", "s", "--read-only"], None);
    assert!(Guest::connected(&bench.path("s"), 1).offers(5));
    assert_eq!(read_only.end(), "");
    // Flash of which many pages cannot be read.
    let worn = "page/nand:size=16M,pages-per-block=32,timing=off,errors=on,rber=7.2e-3,retry=0";
    let served = serve(&bench, worn);
    let mut guest = Guest::connected(&bench.path("s"), 1);
    let queue = &mut guest.queues[0];
    (0..64).for_each(|block| queue.write(block * 8, &[1; 4096]));
    let failed = (0..64).filter(|block| queue.run(0, block * 8, &[], 4096).status != OK).count();
    assert!(failed > 0);
    let error = served.end();
    assert!(error.contains("requests failed"), "{error}");
}

/// One queue's writes, zeros and flushes until its server is gone.
fn write(queue: &mut Queue, oracle: &Mutex<Oracle>, writer: u64, mut random: Random, answers: &AtomicU64) {
    let part = BLOCKS / WRITERS / 8;
    loop {
        let mut sent = BTreeMap::new();
        for turn in 0..1 + random.below(8) {
            if random.below(6) == 0 {
                let answered = oracle.lock().unwrap().answered();
                sent.insert(queue.submit(FLUSH, 0, &[], 0), (None, answered));
                continue;
            }
            // Each request that is under way has blocks of its own.
            let count = 1 + if random.below(8) == 0 { random.below(part) } else { random.below(4) };
            let first = writer * part * 8 + turn * part + random.below(part - count + 1);
            let is_zero = random.below(8) == 0;
            let kind = if is_zero { Kind::Zeros } else { Kind::Bytes };
            let mut payload = Vec::new();
            let version = {
                let mut oracle = oracle.lock().unwrap();
                oracle.version += 1;
                let version = oracle.version;
                for block in first..first + count {
                    oracle.blocks[block as usize].asked.push((version, kind));
                    payload.extend(content(block, version, kind));
                }
                version
            };
            let sector = first * SECTORS;
            let range = [
                &sector.to_le_bytes()[..],
                &((count * SECTORS) as u32).to_le_bytes(),
                &[random.below(2) as u8, 0, 0, 0],
            ];
            let slot = match is_zero {
                true => queue.submit(WRITE_ZEROES, 0, &range.concat(), 0),
                false => queue.submit(WRITE, sector, &payload, 0),
            };
            sent.insert(slot, (Some((first..first + count, version)), Vec::new()));
        }
        while !sent.is_empty() {
            let Ok(answer) = queue.complete() else { return };
            let (written, answered) = sent.remove(&answer.slot).unwrap();
            assert_eq!(answer.status, OK, "{written:?}");
            let mut oracle = oracle.lock().unwrap();
            match written {
                None => oracle.flushed(&answered),
                Some((blocks, version)) => blocks.for_each(|block| oracle.blocks[block as usize].answered = version),
            }
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn flushed_blocks_survive_a_kill_of_a_vhost_user_server() {
    let bench = Bench::new();
    std::fs::File::create(bench.path("a")).unwrap().set_len(BLOCKS * BLOCK as u64).unwrap();
    let mut campaign = Campaign::new("kills of vhost-user servers of conv", "SERVER_KILL_SECONDS");
    let path = "conv:image=a,timing=off";
    let mut oracle = Mutex::new(Oracle::new());
    let (mut answers_in_all, mut newer) = (0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let mut served = serve(&bench, path);
        let mut guest = Guest::connected(&bench.path("s"), WRITERS);
        let (answers, most) = (AtomicU64::new(0), random.below(600));
        std::thread::scope(|scope| {
            let queues = (0..).zip(&mut guest.queues);
            let writers: Vec<_> = queues
                .map(|(writer, queue)| {
                    let (oracle, answers) = (&oracle, &answers);
                    let random = Random::new(seed, &format!("vhost-user {writer}"));
                    scope.spawn(move || write(queue, oracle, writer, random, answers))
                })
                .collect();
            // A writer that ends before its server has failed.
            while answers.load(Ordering::SeqCst) < most && !writers.iter().any(|writer| writer.is_finished()) {
                std::thread::yield_now();
            }
            served.signal("-KILL");
            served.wait();
        });
        answers_in_all += answers.into_inner();
        let again = serve(&bench, path);
        let mut reader = Guest::connected(&bench.path("s"), 1);
        let mut read = |first: u64, blocks: u64| reader.queues[0].read(first * SECTORS, blocks as usize * BLOCK);
        newer += oracle.get_mut().unwrap().check(&mut read, &format!("seed {seed}"));
        drop(again);
    }
    campaign.end(&format!("{answers_in_all} answers, {newer} blocks newer than they had to be"));
}

#[test]
fn a_guest_goes_on_with_the_next_server_after_a_kill() {
    let bench = Bench::new();
    std::fs::File::create(bench.path("a")).unwrap().set_len(BLOCKS * BLOCK as u64).unwrap();
    let path = "conv:image=a,timing=off";
    let mut guest = Guest::new(2);
    for round in 0..10u8 {
        let mut served = serve(&bench, path);
        guest.connect(&bench.path("s"));
        for queue in [0, 1] {
            let first = queue as u64 * 1024 * SECTORS;
            // Those that the killed server had not answered are answered by this one.
            while guest.queues[queue].under_way() > 0 {
                assert_eq!(guest.queues[queue].complete().unwrap().status, OK);
            }
            if round > 0 {
                for place in 0..16 {
                    let found = guest.queues[queue].read(first + place * SECTORS, BLOCK);
                    assert!(found == [round - 1; BLOCK], "round {round}, queue {queue}, block {place}");
                }
            }
            for place in 0..16 {
                guest.queues[queue].submit(WRITE, first + place * SECTORS, &[round; BLOCK], 0);
            }
        }
        served.signal("-KILL");
        served.wait();
    }
}
