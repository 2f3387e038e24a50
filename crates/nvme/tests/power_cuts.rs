//! Served namespaces after power cuts: a zone is in a state that it had at the last answered flush or later, as a whole, and its write
//! pointer is never before flushed data. A block of a namespace of blocks, or of a random write area, has one of its contents since, on a
//! disk that writes blocks as a whole. Flash loses its buffer and the memory of its translation layer, at any operation.
//!
//! `NVME_POWER_CUTS` sets the number of rounds.

#[allow(dead_code, reason = "the tests of images use the rest")]
#[path = "../../../tests/images/bytes.rs"]
mod bytes;
#[path = "power_cuts/flash.rs"]
mod flash;
#[allow(dead_code, reason = "the other tests use the rest")]
mod initiator;
#[path = "../../../tests/plug/mod.rs"]
mod plug;

use bytes::Bytes;
use flash::Flash;
use flashpath::device::BlockDevice;
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::nand::Nand;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::random::Random;
use flashpath::run::Path;
use flashpath::run::shared::{SharedDevice, SharedZones, Sharing};
use flashpath::time::Time;
use flashpath::translation::fdp::FdpSettings;
use flashpath::translation::page_level::PageSettings;
use flashpath::translation::{Buffered, FlashLayer, Translation};
use flashpath_nbd::{Address, Listener};
use flashpath_nvme::{Drive, Limits, Server, Subsystem};
use initiator::known_blocks::{self, Target, WRITERS};
use initiator::known_zones::{KnownZone, OPTIONS, flush};
use initiator::versions::{BLOCK, BLOCKS, Oracle};
use initiator::{Host, unix};
use plug::Plug;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

const NAME: &str = "nqn.2026-01.org.example:drive";
const ZONES: u64 = 6;

fn settings() -> ZnsSettings {
    let text = format!("zns:image=unused,size={}M,{OPTIONS}", ZONES);
    parse_term(&text).and_then(|term| ZnsSettings::read(&term)).unwrap_or_else(|error| panic!("{error}"))
}

const SHARING: Sharing = Sharing { read_only: false, paced: false };

fn zones_on(disk: &Bytes) -> Drive {
    let image = parse_term("zns:image=unused,timing=off").and_then(|term| ZnsSettings::read(&term)).unwrap();
    let device = Zns::open_on(Box::new(disk.clone()), &image).unwrap();
    Drive::Zones(Arc::new(SharedZones::new(Box::new(device), SHARING, Box::new(|| Time::ZERO)).unwrap()))
}

fn blocks_of(device: Box<dyn BlockDevice>) -> Drive {
    Drive::Blocks(Arc::new(SharedDevice::new(device, SHARING, Box::new(|| Time::ZERO)).unwrap()))
}

/// Serves a drive while `work` is done. The server has ended when this returns.
fn serve(drive: Drive, work: impl FnOnce(&Host)) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let subsystem = Subsystem::new(Some(NAME), "", vec![drive]).unwrap();
    let listener = Listener::bind(&Address::Unix(socket.clone())).unwrap();
    let server = Server::start(listener, Arc::new(subsystem), Limits::default(), Arc::new(|_| {})).unwrap();
    let host = Host::connect(unix(&socket), NAME, (false, false)).unwrap();
    work(&host);
    drop(host);
    server.stop();
}

/// The number of rounds, and the first seed.
fn rounds() -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    (number("NVME_POWER_CUTS").unwrap_or(40), number("CAMPAIGN_SEED").unwrap_or(1))
}

#[test]
fn flushed_zones_and_areas_survive_power_cuts() {
    let (rounds, first) = rounds();
    let mut disk = Bytes::for_drive(&settings()).of_blocks();
    drop(Zns::create_on(Box::new(disk.clone()), &settings()).unwrap());
    let mut zones: Vec<KnownZone> = (0..ZONES).map(KnownZone::new).collect();
    let (mut answers, mut flushes, mut newer, mut version) = (0_u64, 0_u64, 0_u64, 0);
    for seed in first..first + rounds {
        let mut random = Random::new(seed, "cuts of power below NVMe");
        serve(zones_on(&disk), |host| {
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

/// A device of blocks whose power can be cut.
trait Machine: Sync {
    fn open(&self) -> Box<dyn BlockDevice>;

    /// Cuts the power at a random operation from now on.
    fn cut(&self, random: &mut Random);

    fn is_cut(&self) -> bool;

    /// The machine when it has power again.
    fn lose_power(&mut self, random: &mut Random);

    /// What there is to tell.
    fn told(&self) -> String {
        String::new()
    }
}

impl Machine for Bytes {
    fn open(&self) -> Box<dyn BlockDevice> {
        let settings = parse_term("conv:image=unused,timing=off").and_then(|term| ConvSettings::read(&term)).unwrap();
        Box::new(Conventional::open_on(Box::new(self.clone()), &settings).unwrap())
    }

    fn cut(&self, random: &mut Random) {
        self.cut_after(1 + random.below(300));
    }

    fn is_cut(&self) -> bool {
        Bytes::is_cut(self)
    }

    fn lose_power(&mut self, random: &mut Random) {
        *self = self.after_cut(random);
    }
}

impl<T: Translation<Timing = Plug> + Send + 'static> Machine for Flash<T> {
    fn open(&self) -> Box<dyn BlockDevice> {
        Box::new(self.clone())
    }

    fn cut(&self, random: &mut Random) {
        self.cut_after(random.below(6000));
    }

    fn is_cut(&self) -> bool {
        Flash::is_cut(self)
    }

    fn lose_power(&mut self, _: &mut Random) {
        Flash::lose_power(self);
    }

    fn told(&self) -> String {
        assert!(rounds().0 < 10 || self.erased_blocks() > 0, "the work is heavy enough to collect");
        format!(", {} erases", self.erased_blocks())
    }
}

/// Several queues write until the power is cut, again and again on the same machine.
fn cut_again_and_again(name: &str, mut machine: impl Machine, oracle: Oracle, handles: u64) {
    let (rounds, first) = rounds();
    let (mut oracle, answers, mut newer) = (Mutex::new(oracle), AtomicU64::new(0), 0);
    for seed in first..first + rounds {
        let mut random = Random::new(seed, name);
        serve(blocks_of(machine.open()), |host| {
            let mut queue = host.queue(1).unwrap();
            let mut read = |first: u64, blocks: u64| queue.read(1, first, blocks);
            newer += oracle.get_mut().unwrap().check(&mut read, &format!("{name}, seed {seed}"));
            assert_eq!(flush(&mut queue).unwrap().status, 0);
            machine.cut(&mut random);
            let may_fail = || machine.is_cut();
            let target = Target { oracle: &oracle, handles, answers: &answers, may_fail: &may_fail };
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let queue = host.queue(writer as u16 + 2).unwrap();
                    let random = Random::new(seed, &format!("{name} {writer}"));
                    scope.spawn(move || known_blocks::write(queue, target, writer, random));
                }
            });
        });
        machine.lose_power(&mut random);
    }
    println!(
        "campaign: cuts of power below NVMe, {name}: {rounds} rounds from seed {first}, {} answers, {newer} blocks newer than they \
         had to be{}",
        answers.into_inner(),
        machine.told()
    );
}

#[test]
fn flushed_blocks_of_an_image_survive_power_cuts() {
    let disk = Bytes::holding(vec![0; BLOCKS as usize * BLOCK]).of_blocks();
    cut_again_and_again("conv", disk, Oracle::new(), 0);
}

/// The layer of type `L` on flash, with or without a buffer.
fn cut_flash<L: FlashLayer>(text: &str, handles: u64) {
    let path = Path::read(text).unwrap();
    let drive = path.drive().unwrap();
    let layer = drive.layer::<L>().unwrap();
    let plug = Plug(Arc::new(AtomicU64::new(u64::MAX)));
    let nand = Nand::new(drive.nand.geometry, drive.nand.endurance, true, plug.clone());
    let oracle = Oracle { forgets_deallocations: true, writes_through: layer.buffer().is_none(), ..Oracle::new() };
    match layer.buffer() {
        None => cut_again_and_again(text, Flash::new(layer.on(nand, 1), plug, BLOCKS), oracle, handles),
        Some(buffer) => {
            let buffered = Buffered::new(layer.on(nand, 1), buffer);
            cut_again_and_again(text, Flash::new(buffered, plug, BLOCKS), oracle, handles);
        }
    }
}

const FLASH: &str = "nand:size=16M,pages-per-block=16,channels=2,planes=2,endurance=1000000";
const BUFFER: &str = "buffer=256K,buffer-policy=volatile";

#[test]
fn answered_blocks_of_a_drive_without_a_buffer_survive_power_cuts() {
    cut_flash::<PageSettings>(&format!("page:export=60%/{FLASH}"), 0);
}

#[test]
fn flushed_blocks_of_a_drive_with_a_volatile_buffer_survive_power_cuts() {
    cut_flash::<PageSettings>(&format!("page:export=60%,{BUFFER}/{FLASH}"), 0);
}

#[test]
fn flushed_blocks_of_a_drive_with_placement_survive_power_cuts() {
    cut_flash::<FdpSettings>(&format!("page:export=50%,fdp=4,{BUFFER}/{FLASH}"), 4);
}
