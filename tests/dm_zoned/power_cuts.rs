//! Power cuts: at every operation of a history, at random ones under load, repeatedly, and during recovery.

use super::Machine;
use super::model::{Model, check_sums};
use flashpath::random::Random;
use flashpath::translation::zoned::DmZoned;

const ZONE: u64 = 32;
const STEPS: u64 = 110;

fn text(has_journal: bool) -> &'static str {
    if has_journal {
        "dm-zoned:reserved=3,journal-zone,idle=5s,commit=2s"
    } else {
        "dm-zoned:reserved=2,idle=5s,commit=2s"
    }
}

fn machine(has_journal: bool) -> Machine {
    let machine = Machine::new(ZONE, 8, 20);
    machine.mkfs(text(has_journal));
    machine
}

/// Opens the volume after a cut; `cuts_recovery` cuts the power again during it, at any operation.
fn open_again(machine: &Machine, random: &mut Random, has_journal: bool, mut cuts_recovery: u64) -> DmZoned {
    loop {
        machine.lose_power(random);
        if cuts_recovery > 0 {
            cuts_recovery -= 1;
            machine.power.cut_after(random.below(80));
        }
        match DmZoned::open(machine.devices(), &super::settings(text(has_journal))) {
            Ok(volume) if !machine.power.is_off() => {
                machine.power.restore();
                return volume;
            }
            Ok(_) => {}
            Err(error) => assert!(machine.power.is_off(), "the volume cannot be opened again: {error}"),
        }
    }
}

/// Repeats work, a power cut after a number of operations, and recovery.
fn live(seed: u64, has_journal: bool, cuts: &[u64]) {
    let mut random = Random::new(seed, "dm-zoned power cuts");
    let machine = machine(has_journal);
    let mut volume = machine.open(text(has_journal));
    let mut model = Model::new(flashpath::device::BlockDevice::blocks(&volume));
    for &cut in cuts {
        let opened = flashpath::device::BlockDevice::account(&volume);
        machine.power.cut_after(cut);
        for _ in 0..STEPS {
            if model.step(&mut volume, &mut random, ZONE, has_journal).is_err() {
                assert!(machine.power.is_off());
                break;
            }
        }
        if !machine.power.is_off() {
            check_sums(&volume, &opened);
        }
        drop(volume);
        let cuts_recovery = random.below(3);
        volume = open_again(&machine, &mut random, has_journal, cuts_recovery);
        model.check_after_power_cut(&mut volume);
    }
}

/// The factor of the number of seeds, set by `make crash`.
pub fn seeds() -> u64 {
    std::env::var("POWER_CUT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10)
}

#[test]
fn flushed_blocks_survive_a_power_cut_at_every_operation_of_a_history() {
    for has_journal in [false, true] {
        // The number of operations of the history without a cut.
        let machine = machine(has_journal);
        let before = machine.power.operations();
        let mut volume = machine.open(text(has_journal));
        let mut model = Model::new(flashpath::device::BlockDevice::blocks(&volume));
        let mut random = Random::new(1, "dm-zoned power cuts");
        for _ in 0..STEPS {
            model.step(&mut volume, &mut random, ZONE, has_journal).unwrap();
        }
        let operations = machine.power.operations() - before;
        assert!(operations > 200, "the history has {operations} operations");
        for cut in 0..operations {
            live(1, has_journal, &[cut, 20]);
        }
    }
}

#[test]
fn flushed_blocks_survive_random_power_cuts_under_load() {
    // Ten cuts each: a thousand by default.
    for seed in 0..seeds() * 10 {
        let mut random = Random::new(seed, "cuts");
        let cuts: Vec<u64> = (0..10).map(|_| random.below(400)).collect();
        live(seed, seed % 2 == 1, &cuts);
    }
}
