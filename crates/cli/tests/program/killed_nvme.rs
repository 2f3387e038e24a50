//! NVMe servers are killed under load, repeatedly on the same images: flushed and FUA writes survive, every other block has its old
//! or new content, and zones and their random write areas have what was answered.
//!
//! `SERVER_KILL_SECONDS` sets the time for each campaign, `CAMPAIGN_ROUNDS` a number of rounds instead.

use super::bench::Bench;
use super::campaign::Campaign;
use super::nvme_initiator::known_blocks::{self, Target, WRITERS};
use super::nvme_initiator::known_zones::{KnownZone, OPTIONS, flush};
use super::nvme_initiator::versions::{BLOCK, BLOCKS, Oracle};
use super::nvme_initiator::{Ended, Host, Queue, unix};
use super::serve::{NVME_NAME, Served};
use flashpath::random::Random;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn connect(socket: &Path) -> Result<Host, Ended> {
    Host::connect(unix(socket), NVME_NAME, (false, false))
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
            let target = Target { oracle: &oracle, handles: 0, answers: &answers, may_fail: &|| false };
            known_blocks::write(queue, target, writer, Random::new(seed, &format!("nvme {writer}")));
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

const ZONES: u64 = 24;

/// One queue's commands on its zones, until its server is gone.
fn write_zones(mut queue: Queue, zones: &Zones, writer: u64, mut random: Random, answers: &AtomicU64) {
    let own = ZONES / WRITERS;
    loop {
        let zone = (writer * own + random.below(own)) as usize;
        let step = {
            let mut known = zones.known[zone].lock().unwrap();
            let step = known.step(&mut random, zones.versions.fetch_add(1, Ordering::SeqCst));
            known.asked(&step);
            step
        };
        let Ok(id) = queue.submit(step.command, &step.data, 0) else { return };
        let Ok(answer) = queue.complete() else { return };
        assert_eq!((answer.id, answer.status), (id, 0), "zone {zone}: {:?}", step.command);
        zones.known[zone].lock().unwrap().is_kept();
        answers.fetch_add(1, Ordering::SeqCst);
        if random.below(10) == 0 && !matches!(flush(&mut queue), Ok(flush) if flush.status == 0) {
            return;
        }
    }
}

/// The knowledge of all zones.
struct Zones {
    known: Vec<Mutex<KnownZone>>,
    versions: AtomicU64,
}

#[test]
fn zones_survive_a_kill_with_all_that_was_answered() {
    let bench = Bench::new();
    let path = format!("zns:image=z,size={ZONES}M,{OPTIONS}");
    let made = bench.flashpath(&["mkfs", &path]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let mut campaign = Campaign::new("kills of NVMe servers of zns", "SERVER_KILL_SECONDS");
    let paths = ["zns:image=z,timing=off"];
    let known = (0..ZONES).map(|zone| Mutex::new(KnownZone::new(zone))).collect();
    let zones = Zones { known, versions: AtomicU64::new(1) };
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
        for known in &zones.known {
            newer += u64::from(known.lock().unwrap().check(&mut queue, &format!("seed {seed}")));
        }
        drop(again);
    }
    campaign.end(&format!("{answers_in_all} answers, {newer} zones newer than they had to be"));
}
