//! A machine with one device and a volume, whose power can be cut.

use super::calls::Call;
use super::history::{History, Look, look};
use super::power_cut::{Disk, Power, Zones};
use super::{IDENTITY, settings};
use flashpath::fs::sfs::{Medium, OpenSfsError, Sfs};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

/// The device of the volume.
pub enum Device {
    Blocks(Disk),
    Zones(Zones),
}

/// A machine.
pub struct Machine {
    pub power: Power,
    pub device: Device,
    /// Blocks per segment.
    pub segment_blocks: u64,
    /// Number of segments.
    pub segments: u64,
    text: &'static str,
}

impl Machine {
    /// A machine with a device of `segments` segments of `segment` blocks, for a volume with these options.
    pub fn new(text: &'static str, segment: u64, segments: u64, is_zoned: bool) -> Machine {
        let power = Power::new();
        let device = match is_zoned {
            true => Device::Zones(Zones::new(&power, segments as u32 + 2, segment, 0)),
            // Any block may be torn.
            false => Device::Blocks(Disk::new(&power, (segments + 1) * segment, u64::MAX)),
        };
        Machine { power, device, segment_blocks: segment, segments, text }
    }

    /// A machine with a copy of the device.
    pub fn copy(&self) -> Machine {
        let power = Power::new();
        let device = match &self.device {
            Device::Blocks(disk) => Device::Blocks(disk.copy(&power)),
            Device::Zones(zones) => Device::Zones(zones.copy(&power)),
        };
        Machine { power, device, ..*self }
    }

    pub fn medium(&self) -> Medium {
        match &self.device {
            Device::Blocks(disk) => Medium::Blocks(Box::new(disk.clone())),
            Device::Zones(zones) => Medium::Zones(Box::new(zones.clone())),
        }
    }

    pub fn create(&self) -> Sfs {
        Sfs::create(&Task::at(Time::ZERO), self.medium(), &settings(self.text), IDENTITY).unwrap()
    }

    pub fn open(&self) -> Result<Sfs, OpenSfsError> {
        Sfs::open(&Task::at(Time::ZERO), self.medium(), &settings(self.text), IDENTITY, false)
    }

    /// Makes calls on the mounted volume until the power fails, or to the end. Returns the volume, and the number of
    /// device operations.
    pub fn work(&self, task: &Task<'_>, history: &mut History, calls: &[Call], cut: Option<u64>) -> (Sfs, u64) {
        let mut sfs = self.open().unwrap();
        let begun = self.power.operations();
        if let Some(cut) = cut {
            self.power.cut_after(cut);
        }
        for call in calls {
            match call.run(task, &mut sfs, history.step()) {
                Ok(made) => {
                    history.apply(call, made);
                    history.answered(call);
                }
                Err(_) if self.power.is_off() => {
                    history.cut_in(task, call, &mut sfs);
                    break;
                }
                Err(error) => panic!("{call:?}: {error}"),
            }
        }
        (sfs, self.power.operations() - begun)
    }

    /// Cuts the power and restores it.
    pub fn lose_power(&self, random: &mut Random) {
        match &self.device {
            Device::Blocks(disk) => disk.lose_power(random),
            Device::Zones(zones) => zones.lose_power(random),
        }
        self.power.restore();
    }

    /// Mounts the volume after a cut, checks it, and compares its content with the history.
    pub fn recover(&self, task: &Task<'_>, history: &History) -> Result<(Sfs, Look), String> {
        let mut sfs = self.open().map_err(|error| format!("it cannot be mounted: {error}"))?;
        if let Some(why) = sfs.read_only() {
            return Err(format!("a power cut causes no damage, but {why}: {:?}", sfs.damage()));
        }
        let wrong = sfs.check(task).map_err(|error| format!("it cannot be checked: {error}"))?;
        if let Some(finding) = wrong.first() {
            return Err(format!("{} faults, the first: {finding}", wrong.len()));
        }
        let found = look(task, &mut sfs)?;
        history.check(&found)?;
        Ok((sfs, found))
    }
}

/// Prints the case if the test fails in it.
pub struct Case(pub String);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it fails in this case: {}", self.0);
        }
    }
}

/// The factor of the number of cases: 1 by default, more in `make crash`.
pub fn seeds() -> u64 {
    std::env::var("POWER_CUT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1).max(1)
}
