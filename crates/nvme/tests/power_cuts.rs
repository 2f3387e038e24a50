//! Served zones after power cuts: a zone is in a state that it had at the last answered flush or later, as a whole, and its write
//! pointer is never before flushed data. A block of a random write area has one of its contents since, on a disk that writes blocks
//! as a whole.
//!
//! `NVME_POWER_CUTS` sets the number of rounds.

#[allow(dead_code, reason = "the tests of images use the rest")]
#[path = "../../../tests/images/bytes.rs"]
mod bytes;
#[allow(dead_code, reason = "the other tests use the rest")]
mod initiator;

use bytes::Bytes;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::random::Random;
use flashpath::run::shared::{SharedZones, Sharing};
use flashpath::time::Time;
use flashpath_nbd::{Address, Listener};
use flashpath_nvme::{Drive, Limits, Server, Subsystem};
use initiator::known_zones::{KnownZone, OPTIONS, flush};
use initiator::{Host, unix};
use std::sync::Arc;

const NAME: &str = "nqn.2026-01.org.example:drive";
const ZONES: u64 = 6;

fn settings() -> ZnsSettings {
    let text = format!("zns:image=unused,size={}M,{OPTIONS}", ZONES);
    parse_term(&text).and_then(|term| ZnsSettings::read(&term)).unwrap_or_else(|error| panic!("{error}"))
}

/// Serves the zones on a disk while `work` is done. The server has ended when this returns.
fn serve(disk: &Bytes, work: impl FnOnce(&Host)) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let image = parse_term("zns:image=unused,timing=off").and_then(|term| ZnsSettings::read(&term)).unwrap();
    let device = Zns::open_on(Box::new(disk.clone()), &image).unwrap();
    let sharing = Sharing { read_only: false, paced: false };
    let zones = SharedZones::new(Box::new(device), sharing, Box::new(|| Time::ZERO)).unwrap();
    let subsystem = Subsystem::new(Some(NAME), "", vec![Drive::Zones(Arc::new(zones))]).unwrap();
    let listener = Listener::bind(&Address::Unix(socket.clone())).unwrap();
    let server = Server::start(listener, Arc::new(subsystem), Limits::default(), Arc::new(|_| {})).unwrap();
    let host = Host::connect(unix(&socket), NAME, (false, false)).unwrap();
    work(&host);
    drop(host);
    server.stop();
}

#[test]
fn flushed_zones_and_areas_survive_power_cuts() {
    let rounds = std::env::var("NVME_POWER_CUTS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let first = std::env::var("CAMPAIGN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut disk = Bytes::for_drive(&settings()).of_blocks();
    drop(Zns::create_on(Box::new(disk.clone()), &settings()).unwrap());
    let mut zones: Vec<KnownZone> = (0..ZONES).map(KnownZone::new).collect();
    let (mut answers, mut flushes, mut newer, mut version) = (0_u64, 0_u64, 0_u64, 0);
    for seed in first..first + rounds {
        let mut random = Random::new(seed, "cuts of power below NVMe");
        serve(&disk, |host| {
            let mut queue = host.queue(1).unwrap();
            for zone in &mut zones {
                newer += u64::from(zone.check(&mut queue, &format!("seed {seed}")));
            }
            // The found states are durable with the next flush only.
            assert_eq!(flush(&mut queue).unwrap().status, 0);
            disk.cut_after(1 + random.below(300));
            loop {
                if random.below(12) == 0 {
                    match flush(&mut queue).unwrap().status {
                        0 => zones.iter_mut().for_each(KnownZone::is_kept),
                        _ => break,
                    }
                    flushes += 1;
                    continue;
                }
                version += 1;
                let zone = &mut zones[random.below(ZONES) as usize];
                let step = zone.step(&mut random, version);
                zone.asked(&step);
                let status = queue.run(step.command, &step.data, 0).status;
                if status != 0 {
                    assert!(disk.is_cut(), "seed {seed}: {:?} has status {status:x}", step.command);
                    break;
                }
                answers += 1;
            }
        });
        disk = disk.after_cut(&mut random);
    }
    println!(
        "campaign: cuts of power below NVMe zones: {rounds} rounds from seed {first}, {answers} answers, {flushes} flushes, {newer} \
         zones newer than they had to be"
    );
}
