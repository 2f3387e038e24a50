//! NVMe servers are killed under load, repeatedly on the same images: flushed and FUA writes survive, every other block has its old
//! or new content, and zones have what was answered.
//!
//! `SERVER_KILL_SECONDS` sets the time for each campaign.

use super::bench::Bench;
use super::campaign::Campaign;
use super::killed_servers::{BLOCK, BLOCKS, Oracle, content};
use super::nvme_initiator::{Command, Ended, Host, Queue, unix};
use super::serve::{NVME_NAME, Served};
use flashpath::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writing connections. Each has its own blocks or zones, so that the order of writes is known.
const WRITERS: u64 = 3;
/// The longest write, in blocks: the limit.
const LONGEST: u64 = 128;
const DURABLE: u32 = 1 << 30;

fn connect(socket: &Path) -> Result<Host, Ended> {
    Host::connect(unix(socket), NVME_NAME, (false, false))
}

/// One queue's writes, zeros and flushes until its server is gone.
fn write(mut queue: Queue, oracle: &Mutex<Oracle>, writer: u64, mut random: Random, answers: &AtomicU64) {
    let own = BLOCKS / WRITERS;
    loop {
        let mut sent = BTreeMap::new();
        for _ in 0..1 + random.below(8) {
            if random.below(6) == 0 {
                let answered = oracle.lock().unwrap().answered();
                let Ok(id) = queue.submit(Command::new(0, 1), &[], 0) else { return };
                sent.insert(id, (None, answered));
                continue;
            }
            let durable = random.below(8) == 0;
            let count = 1 + if random.below(8) == 0 { random.below(LONGEST) } else { random.below(4) };
            // Commands that are under way at once may be done in any order: they have blocks of their own.
            let part = own / 8;
            let first = writer * own + sent.len() as u64 * part + random.below(part.saturating_sub(count) + 1);
            let count = count.min(part);
            let is_zero = random.below(8) == 0;
            let mut payload = Vec::new();
            let version = {
                let mut oracle = oracle.lock().unwrap();
                oracle.version += 1;
                let version = oracle.version;
                for block in first..first + count {
                    oracle.blocks[block as usize].asked.push((version, is_zero));
                    payload.extend(content(block, version, is_zero));
                }
                version
            };
            let deallocates = if is_zero && random.below(2) == 0 { 1 << 25 } else { 0 };
            let fields = (count as u32 - 1) | deallocates | if durable { DURABLE } else { 0 };
            let command = Command::new(if is_zero { 8 } else { 1 }, 1).blocks(first, count).word(12, fields);
            let Ok(id) = queue.submit(command, if is_zero { &[] } else { &payload }, 0) else { return };
            sent.insert(id, (Some((first..first + count, version, durable)), Vec::new()));
        }
        while !sent.is_empty() {
            let Ok(answer) = queue.complete() else { return };
            let (written, answered) = sent.remove(&answer.id).unwrap();
            assert_eq!(answer.status, 0, "{written:?}");
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

/// Kills a server of these paths while `work` is done by each writer, and waits for all.
fn kill_under_load(
    bench: &Bench,
    paths: &[&str],
    random: &mut Random,
    answers: &AtomicU64,
    work: &(dyn Fn(u64, Queue) + Sync),
) {
    let mut served = Served::nvme(bench, paths, &[]);
    let host = connect(&bench.path("s")).unwrap();
    let most = random.below(600);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let queue = host.queue(writer as u16 + 1).unwrap();
                scope.spawn(move || work(writer, queue))
            })
            .collect();
        // A writer that ends before its server has failed.
        while answers.load(Ordering::SeqCst) < most && !writers.iter().any(|writer| writer.is_finished()) {
            std::thread::yield_now();
        }
        served.signal("-KILL");
        served.wait();
    });
}

#[test]
fn flushed_blocks_survive_a_kill_of_an_nvme_server() {
    let bench = Bench::new();
    std::fs::File::create(bench.path("a")).unwrap().set_len(BLOCKS * BLOCK as u64).unwrap();
    let mut campaign = Campaign::new("kills of NVMe servers of conv", "SERVER_KILL_SECONDS");
    let paths = ["conv:image=a,timing=off"];
    let mut oracle = Mutex::new(Oracle::new());
    let (mut answers_in_all, mut newer) = (0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let answers = AtomicU64::new(0);
        kill_under_load(&bench, &paths, &mut random, &answers, &|writer, queue| {
            write(queue, &oracle, writer, Random::new(seed, &format!("nvme {writer}")), &answers);
        });
        answers_in_all += answers.into_inner();
        let again = Served::nvme(&bench, &paths, &[]);
        let host = connect(&bench.path("s")).unwrap();
        let mut queue = host.queue(1).unwrap();
        let mut read = |first: u64, blocks: u64| queue.read(1, first, blocks);
        newer += oracle.get_mut().unwrap().check(&mut read, &format!("seed {seed}"));
        drop(again);
    }
    campaign.end(&format!("{answers_in_all} answers, {newer} blocks newer than they had to be"));
}

const ZONE: u64 = 256;
const CAPACITY: u64 = 200;
const ZONES: u64 = 24;

/// A zone: how often it was reset, and its write pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ZoneState {
    resets: u64,
    pointer: u64,
}

/// The answered state of a zone, and the one to which the command under way may lead.
#[derive(Clone, Copy, Debug, Default)]
struct KnownZone {
    answered: ZoneState,
    asked: Option<ZoneState>,
}

/// One queue's appends, writes, resets and finishes on its zones, until its server is gone.
fn write_zones(mut queue: Queue, zones: &Mutex<Vec<KnownZone>>, writer: u64, mut random: Random, answers: &AtomicU64) {
    let own = ZONES / WRITERS;
    loop {
        let zone = writer * own + random.below(own);
        let state = zones.lock().unwrap()[zone as usize].answered;
        let first = zone * ZONE;
        let (command, data, next) = if state.pointer == CAPACITY || random.below(20) == 0 {
            let next = ZoneState { resets: state.resets + u64::from(state.pointer > 0), pointer: 0 };
            (Command::new(0x79, 1).blocks(first, 1).word(12, 0).word(13, 4), Vec::new(), next)
        } else {
            let count = (1 + random.below(32)).min(CAPACITY - state.pointer);
            let next = ZoneState { pointer: state.pointer + count, ..state };
            let blocks = first + state.pointer..first + next.pointer;
            let data: Vec<u8> = blocks.flat_map(|block| content(block, 1 + state.resets, false)).collect();
            let command = match random.below(2) {
                0 => Command::new(0x7d, 1).blocks(first, count),
                _ => Command::new(1, 1).blocks(first + state.pointer, count),
            };
            (command, data, next)
        };
        zones.lock().unwrap()[zone as usize].asked = Some(next);
        let Ok(id) = queue.submit(command, &data, 0) else { return };
        let Ok(answer) = queue.complete() else { return };
        assert_eq!((answer.id, answer.status), (id, 0), "zone {zone}, {state:?} to {next:?}");
        zones.lock().unwrap()[zone as usize] = KnownZone { answered: next, asked: None };
        answers.fetch_add(1, Ordering::SeqCst);
        if random.below(10) == 0 && !matches!(queue.try_run(Command::new(0, 1), &[], 0), Ok(flush) if flush.status == 0)
        {
            return;
        }
    }
}

/// The write pointers of all zones.
fn pointers(queue: &mut Queue) -> Vec<u64> {
    let length = 64 + ZONES as usize * 64;
    let answer = queue.run(Command::new(0x7a, 1).blocks(0, 1).word(12, length as u32 / 4 - 1), &[], length);
    assert_eq!(answer.status, 0);
    let pointer = |(zone, description): (u64, &[u8])| match description[1] >> 4 {
        0xe => CAPACITY,
        0x1..=0x4 => u64::from_le_bytes(description[24..32].try_into().unwrap()) - zone * ZONE,
        other => panic!("zone {zone} is in state {other:x}"),
    };
    (0..).zip(answer.data[64..].chunks(64)).map(pointer).collect()
}

#[test]
fn zones_survive_a_kill_with_all_that_was_answered() {
    let bench = Bench::new();
    let size = ZONES * ZONE * 4096;
    let path = format!("zns:image=z,size={size},zone=1M,capacity=800K,max-open=0,max-active=0,timing=off");
    let made = bench.flashpath(&["mkfs", &path]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let mut campaign = Campaign::new("kills of NVMe servers of zns", "SERVER_KILL_SECONDS");
    let paths = ["zns:image=z,timing=off"];
    let mut zones = Mutex::new(vec![KnownZone::default(); ZONES as usize]);
    let (mut answers_in_all, mut newer) = (0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let answers = AtomicU64::new(0);
        kill_under_load(&bench, &paths, &mut random, &answers, &|writer, queue| {
            write_zones(queue, &zones, writer, Random::new(seed, &format!("zones {writer}")), &answers);
        });
        answers_in_all += answers.into_inner();
        let again = Served::nvme(&bench, &paths, &[]);
        let host = connect(&bench.path("s")).unwrap();
        let mut queue = host.queue(1).unwrap();
        let found = pointers(&mut queue);
        for (zone, (known, pointer)) in (0..).zip(zones.get_mut().unwrap().iter_mut().zip(found)) {
            let KnownZone { answered, asked } = *known;
            let is = |state: &ZoneState| state.pointer == pointer;
            let state = [Some(answered), asked].into_iter().flatten().find(is);
            let state = state.unwrap_or_else(|| panic!("seed {seed}: zone {zone} is at {pointer}: {known:?}"));
            newer += u64::from(state != answered);
            for first in (0..pointer).step_by(100) {
                let blocks = (pointer - first).min(100);
                let read = queue.read(1, zone * ZONE + first, blocks);
                for (block, bytes) in (zone * ZONE + first..).zip(read.chunks(4096)) {
                    assert!(bytes == content(block, 1 + state.resets, false), "seed {seed}: block {block}, {known:?}");
                }
            }
            *known = KnownZone { answered: state, asked: None };
        }
        drop(again);
    }
    campaign.end(&format!("{answers_in_all} answers, {newer} zones newer than they had to be"));
}
