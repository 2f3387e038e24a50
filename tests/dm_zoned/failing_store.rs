//! A store with one failing operation, below either device of dm-zoned: flushed data is there after both are healed and
//! the volume is opened again, and every other block is one of those written since.

use super::failing_disk::{Budget, FailingDisk, Fault};
use super::model::Model;
use super::settings;
use flashpath::device::BlockDevice;
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::random::Random;
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned, Uuids, mkfs};

const ZONE: u64 = 32;
const ZONES: &str = "zns:image=unused,size=2560K,zone=128K,page=4K,timing=off";
const TEXTS: [&str; 2] =
    ["dm-zoned:reserved=2,idle=5s,commit=2s", "dm-zoned:reserved=3,journal-zone,idle=5s,commit=2s"];
const STEPS: u64 = 150;

fn zns() -> ZnsSettings {
    ZnsSettings::read(&parse_term(ZONES).unwrap()).unwrap()
}

/// The disks of both devices.
struct Disks([FailingDisk; 2]);

impl Disks {
    fn new(text: &str) -> Disks {
        let image = FailingDisk::holding(vec![0; Zns::image_bytes(&zns().shape().unwrap()) as usize]);
        Zns::create_on(Box::new(image.clone()), &zns()).unwrap();
        let disks = Disks([FailingDisk::holding(vec![0; (8 * ZONE * 4096) as usize]), image]);
        mkfs(disks.devices().unwrap(), &settings(text), &Uuids::from_seed(1, 1)).unwrap();
        disks
    }

    fn devices(&self) -> Result<Devices, String> {
        let zones = Zns::open_on(Box::new(self.0[1].clone()), &zns()).map_err(|error| error.to_string())?;
        let conv = ConvSettings::read(&parse_term("conv:image=unused,timing=off").unwrap()).unwrap();
        let conventional =
            Conventional::open_on(Box::new(self.0[0].clone()), &conv).map_err(|error| error.to_string())?;
        Ok(Devices { conventional: Some(Box::new(conventional)), zoned: vec![Box::new(zones)] })
    }

    fn open(&self, text: &str) -> Result<DmZoned, String> {
        DmZoned::open(self.devices()?, &settings(text)).map_err(|error| error.to_string())
    }

    fn has_failed(&self) -> bool {
        self.0.iter().any(FailingDisk::has_failed)
    }
}

/// Works with a fault in one of the disks, heals both, and checks. Returns the operations of both.
fn run(text: &str, has_journal: bool, seed: u64, fault: Option<(usize, Fault)>) -> Result<[[u64; 4]; 2], String> {
    let disks = Disks::new(text);
    let mut volume = disks.open(text)?;
    let mut model = Model::new(volume.blocks());
    let mut random = Random::new(seed, "before the failure");
    for _ in 0..STEPS {
        model.step(&mut volume, &mut random, ZONE, has_journal).map_err(|error| error.to_string())?;
    }
    volume.close(Time::ZERO).map_err(|error| error.to_string())?;
    model.settle();
    model.begin_anew();
    drop(volume);
    for (at, disk) in disks.0.iter().enumerate() {
        disk.fail(fault.filter(|(failing, _)| *failing == at).map(|(_, fault)| fault), seed);
    }
    match disks.open(text) {
        Err(_) if disks.has_failed() => {}
        Err(error) => return Err(format!("it cannot be opened: {error}")),
        Ok(mut volume) => {
            let mut answered = model.mark();
            for _ in 0..STEPS {
                match model.step(&mut volume, &mut random, ZONE, has_journal) {
                    Ok(()) => answered = model.mark(),
                    Err(_) if disks.has_failed() => break,
                    Err(error) => return Err(format!("a step fails although nothing did below: {error}")),
                }
            }
            // Every answer now must be true: everything is stored except the failed part of the step.
            let is_flushed = volume.flush(model.now()).is_ok();
            if volume.close(Time::ZERO).is_ok() || is_flushed {
                model.settle_before(&answered);
            }
        }
    }
    let operations = [disks.0[0].counts(), disks.0[1].counts()];
    let mut random = Random::new(seed, "healing");
    let is_same_boot = random.below(2) == 0;
    let healed = Disks([0, 1].map(|at| disks.0[at].healed(&mut random, is_same_boot)));
    let mut volume = healed.open(text).map_err(|error| format!("healed, it cannot be opened: {error}"))?;
    model.check_after_power_cut(&mut volume);
    Ok(operations)
}

#[test]
fn flushed_blocks_survive_the_failure_of_any_operation_of_the_store() {
    let mut budget = Budget::new(300);
    let (mut seed, mut cases) = (0, 0);
    while budget.goes_on() {
        let has_journal = seed % 2 == 1;
        let text = TEXTS[usize::from(has_journal)];
        let whole = run(text, has_journal, seed, None).unwrap_or_else(|why| panic!("seed {seed}, no fault: {why}"));
        let mut random = Random::new(seed, "faults");
        for _ in 0..20 {
            let at = random.below(2) as usize;
            let fault = Fault::any(whole[at], &mut random);
            eprintln!("{text}, seed {seed}, disk {at}, {fault:?}");
            run(text, has_journal, seed, Some((at, fault))).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            cases += 1;
            if !budget.goes_on() {
                break;
            }
        }
        seed += 1;
    }
    eprintln!("{seed} loads, {cases} faults");
}
