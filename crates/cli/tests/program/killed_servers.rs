//! Servers are killed under load, repeatedly on the same images: flushed and FUA writes survive, and every other block
//! has its old or new content.
//!
//! `SERVER_KILL_SECONDS` sets the time for each kind of path.

use super::bench::Bench;
use super::campaign::Campaign;
use super::nbd_client::{Client, FLUSH, FUA, Request, WRITE, WRITE_ZEROES};
use super::nvme_initiator::versions::{BLOCK, BLOCKS, Kind, Oracle, content};
use super::serve::Served;
use flashpath::random::Random;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writing connections. Each has its own blocks, so that the order of writes is known.
const WRITERS: u64 = 3;
/// The longest request, in blocks: more than a server takes in one piece.
const LONGEST: u64 = 150;

/// One client's work until its server is gone.
fn write(socket: &Path, oracle: &Mutex<Oracle>, writer: u64, mut random: Random, answers: &AtomicU64) {
    let Ok(mut client) = Client::try_connect(socket) else { return };
    let own = BLOCKS / WRITERS;
    loop {
        let mut sent = Vec::new();
        for cookie in 0..1 + random.below(8) {
            let durable = random.below(8) == 0;
            let flags = if durable { FUA } else { 0 };
            if random.below(6) == 0 {
                let answered = oracle.lock().unwrap().answered();
                let request = Request { flags: 0, command: FLUSH, cookie, offset: 0, length: 0 };
                if client.0.write_all(&request.bytes()).is_err() {
                    return;
                }
                sent.push((cookie, None, answered));
                continue;
            }
            let count = 1 + if random.below(8) == 0 { random.below(LONGEST) } else { random.below(4) };
            let first = writer * own + random.below(own - count + 1);
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
            let command = if is_zero { WRITE_ZEROES } else { WRITE };
            let (offset, length) = (first * BLOCK as u64, (count as usize * BLOCK) as u32);
            let mut bytes = Request { flags, command, cookie, offset, length }.bytes();
            bytes.extend(if is_zero { Vec::new() } else { payload });
            if client.0.write_all(&bytes).is_err() {
                return;
            }
            sent.push((cookie, Some((first..first + count, version, durable)), Vec::new()));
        }
        for (sent_cookie, written, answered) in sent {
            let Ok((cookie, error)) = client.reply() else { return };
            assert_eq!(cookie, sent_cookie);
            assert_eq!(error, 0, "{written:?}");
            let mut oracle = oracle.lock().unwrap();
            match written {
                None => oracle.flushed(&answered),
                Some((blocks, version, durable)) => {
                    for block in blocks {
                        let known = &mut oracle.blocks[block as usize];
                        known.answered = version;
                        if durable {
                            known.durable = version;
                        }
                    }
                }
            }
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Kills servers of this existing path.
fn kill_again_and_again(bench: &Bench, name: &'static str, path: &str) {
    let mut campaign = Campaign::new(name, "SERVER_KILL_SECONDS");
    let socket = bench.path("s");
    let mut oracle = Mutex::new(Oracle::new());
    let (mut answers_in_all, mut newer) = (0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let mut served = Served::nbd(bench, path, &[]);
        let answers = AtomicU64::new(0);
        let most = random.below(600);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (oracle, answers, socket) = (&oracle, &answers, &socket);
                    let random = Random::new(seed, &format!("{name} {writer}"));
                    scope.spawn(move || write(socket, oracle, writer, random, answers))
                })
                .collect();
            // A client that ends before its server has failed.
            while answers.load(Ordering::SeqCst) < most && !writers.iter().any(|writer| writer.is_finished()) {
                std::thread::yield_now();
            }
            served.signal("-KILL");
            served.wait();
        });
        answers_in_all += answers.into_inner();
        let again = Served::nbd(bench, path, &[]);
        let oracle = oracle.get_mut().unwrap();
        let mut client = Client::connect(&socket);
        let mut read = |first: u64, blocks: u64| client.read(first * BLOCK as u64, blocks as usize * BLOCK);
        newer += oracle.check(&mut read, &format!("{path}, seed {seed}"));
        drop(again);
    }
    campaign.end(&format!("{answers_in_all} answers, {newer} blocks newer than they had to be"));
}

#[test]
fn flushed_blocks_of_an_image_survive_a_kill() {
    let bench = Bench::new();
    std::fs::File::create(bench.path("a")).unwrap().set_len(BLOCKS * BLOCK as u64).unwrap();
    kill_again_and_again(&bench, "kills of conv", "conv:image=a,timing=off");
}

fn kill_dm_zoned(name: &'static str, options: &str) {
    let bench = Bench::new();
    let devices = "conv:image=a,size=16M,timing=off+zns:image=b,size=64M,zone=1M,timing=off";
    let made = bench.flashpath(&["mkfs", &format!("dm-zoned:reserved=6{options}/{devices}")]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let images = "conv:image=a,timing=off+zns:image=b,timing=off";
    kill_again_and_again(&bench, name, &format!("dm-zoned:reserved=6{options}/{images}"));
}

#[test]
fn flushed_blocks_of_dm_zoned_survive_a_kill() {
    kill_dm_zoned("kills of dm-zoned", "");
}

#[test]
fn flushed_blocks_of_dm_zoned_with_a_journal_zone_survive_a_kill() {
    kill_dm_zoned("kills of dm-zoned with a journal zone", ",journal-zone");
}
