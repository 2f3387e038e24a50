//! Served devices after power cuts: data of an answered flush or durable request is there, and every later block has
//! one of its contents since. Requests have any alignment, as from clients.

mod power_cut;

use flashpath::device::BlockDevice;
use flashpath::expression::parse_term;
use flashpath::random::Random;
use flashpath::run::shared::{ServeError, SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned, Uuids, ZonedSettings, mkfs};
use power_cut::{Disk, Power, Zones};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: usize = 4096;
const ZONE: u64 = 32;

/// A machine, and the function that opens its device after a cut.
struct Machine {
    power: Power,
    disk: Disk,
    zones: Option<Zones>,
    settings: ZonedSettings,
}

impl Machine {
    fn of_disk() -> Machine {
        let power = Power::new();
        let disk = Disk::new(&power, 96, 0);
        Machine { power, disk, zones: None, settings: settings("dm-zoned") }
    }

    fn of_zones(text: &str) -> Machine {
        let power = Power::new();
        let disk = Disk::new(&power, 8 * ZONE, 2 * ZONE);
        let zones = Zones::new(&power, 20, ZONE, 0);
        let machine = Machine { power, disk, zones: Some(zones), settings: settings(text) };
        mkfs(machine.devices(), &machine.settings, &Uuids::from_seed(1, 1)).unwrap();
        machine
    }

    fn devices(&self) -> Devices {
        let zoned = self.zones.iter().map(|zones| Box::new(zones.clone()) as _).collect();
        Devices { conventional: Some(Box::new(self.disk.clone())), zoned }
    }

    fn serve(&self, clock: &Arc<AtomicU64>) -> SharedDevice {
        let device: Box<dyn BlockDevice> = match self.zones {
            None => Box::new(self.disk.clone()),
            Some(_) => Box::new(DmZoned::open(self.devices(), &self.settings).unwrap()),
        };
        let clock = Arc::clone(clock);
        let now = Box::new(move || Time(clock.load(Ordering::Relaxed)));
        SharedDevice::new(device, Sharing::default(), now).unwrap()
    }

    fn lose_power(&self, random: &mut Random) {
        self.disk.lose_power(random);
        self.zones.iter().for_each(|zones| zones.lose_power(random));
        self.power.restore();
    }
}

fn settings(text: &str) -> ZonedSettings {
    ZonedSettings::read(&parse_term(text).unwrap()).unwrap()
}

/// The contents of each block since the last answered flush, the newest last.
struct Model(Vec<Vec<Vec<u8>>>);

impl Model {
    fn change(&mut self, offset: u64, length: u64, change: impl Fn(&mut [u8])) {
        let end = offset + length;
        for block in offset / BLOCK as u64..end.div_ceil(BLOCK as u64) {
            let first = block * BLOCK as u64;
            let mut newest = self.0[block as usize].last().unwrap().clone();
            change(&mut newest[offset.saturating_sub(first) as usize..(end - first).min(BLOCK as u64) as usize]);
            self.0[block as usize].push(newest);
        }
    }

    fn flushed(&mut self) {
        self.0.iter_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1)));
    }

    fn newest(&self, offset: u64, length: u64) -> Vec<u8> {
        let blocks = &self.0[offset as usize / BLOCK..(offset + length).div_ceil(BLOCK as u64) as usize];
        let from = offset as usize % BLOCK;
        let bytes: Vec<u8> = blocks.iter().flat_map(|versions| versions.last().unwrap()).copied().collect();
        bytes[from..from + length as usize].to_vec()
    }

    /// A random request on both. The model knows the possible changes even if it fails.
    fn step(&mut self, device: &SharedDevice, random: &mut Random) -> Result<(), ServeError> {
        let size = device.size_bytes();
        // Most go to one part, so that blocks are overwritten.
        let offset = if random.below(4) == 0 { random.below(size) } else { random.below(size / 4) };
        let length = random.below((size - offset).min(5 * BLOCK as u64)) + 1;
        let (is_durable, fill) = (random.below(10) == 0, 1 + random.below(255) as u8);
        match random.below(12) {
            0 => {
                device.flush()?;
                self.flushed();
                return Ok(());
            }
            1 => {
                let mut found = vec![0; length as usize];
                device.read(offset, &mut found)?;
                assert!(found == self.newest(offset, length));
                return Ok(());
            }
            2 => {
                self.change(offset, length, |part| part.fill(0));
                device.write_zeroes(offset, length, fill.is_multiple_of(2), is_durable)?;
            }
            3 => {
                let first = offset.next_multiple_of(BLOCK as u64);
                let end = (offset + length) / BLOCK as u64 * BLOCK as u64;
                if first < end {
                    self.change(first, end - first, |part| part.fill(0));
                }
                device.discard(offset, length, is_durable)?;
            }
            4 => {
                device.work()?;
                return Ok(());
            }
            _ => {
                self.change(offset, length, |part| part.fill(fill));
                device.write(offset, &vec![fill; length as usize], is_durable)?;
            }
        }
        if is_durable {
            self.flushed();
        }
        Ok(())
    }

    /// Compares the device with the model after a cut, and keeps what it found.
    fn check(&mut self, device: &SharedDevice, context: &str) {
        for (number, versions) in self.0.iter_mut().enumerate() {
            let mut found = vec![0xee; BLOCK];
            device.read((number * BLOCK) as u64, &mut found).unwrap();
            assert!(versions.contains(&found), "{context}: block {number} is none of its {} versions", versions.len());
            *versions = vec![found];
        }
    }
}

/// The factor of the number of seeds, set by `make crash`.
fn seeds() -> u64 {
    std::env::var("POWER_CUT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10)
}

/// Ten lives of a machine, each with a cut at a random operation.
fn live(name: &str, machine: impl Fn() -> Machine) {
    for seed in 0..seeds() * 2 {
        let mut random = Random::new(seed, name);
        let (machine, clock) = (machine(), Arc::new(AtomicU64::new(0)));
        let mut device = machine.serve(&clock);
        let mut model = Model(vec![vec![vec![0; BLOCK]]; device.size_bytes() as usize / BLOCK]);
        for life in 0..10 {
            machine.power.cut_after(random.below(200));
            while !machine.power.is_off() {
                clock.fetch_add(random.below(20_000_000), Ordering::Relaxed);
                if let Err(error) = model.step(&device, &mut random) {
                    assert!(machine.power.is_off(), "{name}, seed {seed}: {error}");
                }
            }
            drop(device);
            machine.lose_power(&mut random);
            device = machine.serve(&clock);
            model.check(&device, &format!("{name}, seed {seed}, life {life}"));
        }
    }
}

#[test]
fn flushed_blocks_of_a_served_disk_survive_power_cuts() {
    live("served disk", Machine::of_disk);
}

#[test]
fn flushed_blocks_of_a_served_dm_zoned_survive_power_cuts() {
    live("served dm-zoned", || Machine::of_zones("dm-zoned:reserved=2,idle=5s,commit=2s"));
    live("served dm-zoned with a journal zone", || {
        Machine::of_zones("dm-zoned:reserved=3,journal-zone,idle=5s,commit=2s")
    });
}
