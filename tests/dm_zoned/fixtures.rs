//! States written by the Linux kernel's own dm-zoned (tests/fixtures/dm-zoned): each is reproduced from the listed
//! writes, bit by bit, and each is read and continued.

use super::{BLOCK, Machine, settings, write};
use flashpath::device::{Abilities, BlockDevice, Lba, ZonedDevice};
use flashpath::label::Content;
use flashpath::time::Time;
use flashpath::translation::zoned::{DmZoned, SuperBlock, Uuids, mkfs};
use std::path::{Path, PathBuf};

const ZONE: u64 = 1024;
const STEPS: usize = 5;
const PATH: &str = "dm-zoned:reserved=3,label=ref";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dm-zoned").join(name)
}

fn set(step: usize, set: usize) -> Vec<u8> {
    zstd::decode_all(std::fs::File::open(fixture(&format!("{step}.set{set}.zst"))).unwrap()).unwrap()
}

fn superblock() -> SuperBlock {
    SuperBlock::read(&set(0, 0)[..BLOCK], 0).unwrap()
}

/// The write pointers in blocks, from the zone report.
fn write_pointers(step: usize) -> Vec<u64> {
    let report = std::fs::read_to_string(fixture(&format!("{step}.zones"))).unwrap();
    let pointer = |line: &str| {
        let hexadecimal = line.split("wptr 0x").nth(1).unwrap().split_whitespace().next().unwrap();
        u64::from_str_radix(hexadecimal, 16).unwrap() / 8
    };
    report.lines().filter(|line| line.contains("wptr")).map(pointer).collect()
}

fn status(step: usize) -> String {
    let line = std::fs::read_to_string(fixture(&format!("{step}.status"))).unwrap();
    line.trim().strip_prefix("ref: ").unwrap().to_string()
}

fn machine() -> Machine {
    Machine::new(ZONE, 16, 40)
}

/// Repeats the kernel's requests of a step, from the time at which the volume was opened.
fn do_step(volume: &mut DmZoned, step: usize, begin: Time) {
    let second = |seconds: u64| begin + seconds * 1_000_000_000;
    let block = |chunk: u64, block: u64| chunk * ZONE + block;
    let mut put = |first: u64, count: usize| write(volume, first, &vec![0x4242_4242; count], Content::Data, begin);
    match step {
        1 => {
            put(block(3, 5), 1);
            put(block(3, 0), 8);
        }
        2 => (0..16).for_each(|part| put(block(7, part * 64), 64)),
        3 => {
            // 14 seconds without a request.
            let mut now = begin;
            while let Some(next) = volume.work(now).unwrap().filter(|next| *next <= second(14)) {
                now = now.max(next);
            }
            return;
        }
        4 => {
            put(block(7, 9), 1);
            put(block(3, 8), 4);
            put(block(3, 20), 2);
        }
        step => unreachable!("there is no step {step}"),
    }
    volume.flush(begin).unwrap();
}

/// Compares the devices with the kernel's.
fn check(machine: &Machine, volume: &DmZoned, step: usize) {
    for number in 0..2 {
        let expected = set(step, number);
        for (block, expected) in expected.chunks(BLOCK).enumerate() {
            let found = machine.disk.bytes(number as u64 * ZONE + block as u64);
            assert!(found == expected, "step {step}, set {number}, block {block}");
        }
    }
    let pointers: Vec<u64> = (0..40).map(|zone| machine.zones.zone(zone).write_pointer).collect();
    assert_eq!(pointers, write_pointers(step), "step {step}");
    assert_eq!(volume.status(), status(step), "step {step}");
}

#[test]
fn every_state_follows_from_the_writes_to_the_last_bit() {
    let machine = machine();
    let kernel = superblock();
    let numbers = Uuids { volume: kernel.identity.volume, first_device: kernel.device, zoned_devices: vec![[7; 16]] };
    mkfs(machine.devices(), &settings(PATH), &numbers).unwrap();
    let mut volume = DmZoned::open(machine.devices(), &settings(PATH)).unwrap();
    check(&machine, &volume, 0);
    for step in 1..STEPS {
        do_step(&mut volume, step, Time(step as u64 * 100_000_000_000));
        check(&machine, &volume, step);
    }
}

/// The devices after the kernel's step. The content of the zones is not in the fixtures, but it was 0x42.
fn as_the_kernel_left_it(step: usize) -> Machine {
    let machine = machine();
    for number in 0..2 {
        for (block, bytes) in set(step, number).chunks(BLOCK).enumerate() {
            machine.disk.put(number as u64 * ZONE + block as u64, bytes);
        }
    }
    for zone in 2..16 {
        (0..ZONE).for_each(|block| machine.disk.put(zone * ZONE + block, &[0x42; BLOCK]));
    }
    for (zone, pointer) in write_pointers(step).into_iter().enumerate() {
        machine.zones.put(zone as u32, vec![vec![0x42; BLOCK]; pointer as usize]);
    }
    let member = SuperBlock { generation: 0, place: 16 * ZONE, device: [7; 16], ..superblock() };
    machine.zones.put(0, vec![member.to_bytes()]);
    machine
}

/// The written blocks of a chunk after a step.
fn written(step: usize, chunk: u64) -> Vec<u64> {
    match (step, chunk) {
        (1.., 3) => (0..8).chain((8..12).chain(20..22).filter(|_| step == 4)).collect(),
        (2.., 7) => (0..ZONE).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_state_of_the_kernel_is_read() {
    for step in 0..STEPS {
        let machine = as_the_kernel_left_it(step);
        let volume = machine.open(PATH);
        assert!(super::warnings(&volume).is_empty(), "{:?}", super::warnings(&volume));
        check(&machine, &volume, step);
        let mut bytes = vec![0; ZONE as usize * BLOCK];
        for chunk in 0..51 {
            volume.read(Lba(chunk * ZONE), &mut bytes, Time::ZERO).unwrap();
            let holding: Vec<u64> =
                (0..).zip(bytes.chunks(BLOCK)).filter(|(_, block)| block[0] != 0).map(|(number, _)| number).collect();
            assert_eq!(holding, written(step, chunk), "step {step}, chunk {chunk}");
        }
    }
}

#[test]
fn every_state_of_the_kernel_is_continued_to_its_next() {
    for step in 1..STEPS {
        let machine = as_the_kernel_left_it(step - 1);
        let mut volume = machine.open(PATH);
        // The kernel knew the order in which zones were used and freed; a volume that was opened again knows only their
        // numbers, and takes other buffers in step 4.
        do_step(&mut volume, step, Time(100_000_000_000));
        if step < 4 {
            check(&machine, &volume, step);
        }
        assert_eq!(volume.status(), status(step));
    }
}
