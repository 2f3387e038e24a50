//! Blocks that are overwritten with the bytes that they had are not written again by a sync.

use super::machine::{Device, Machine};
use super::power_cut::Disk;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs};
use flashpath::label::{Cause, Content};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const BLOCK: usize = 4096;
const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
const TEXT: &str = "sfs:segment=64K,cleaner=greedy,dirty=1M";

fn block(random: &mut Random) -> Vec<u8> {
    (0..BLOCK).map(|_| random.below(256) as u8).collect()
}

/// Data blocks written for the host.
fn written(sfs: &Sfs) -> u64 {
    sfs.account().sent.get(Cause::HostWrite, Content::Data)
}

fn bytes_of(task: &Task<'_>, sfs: &mut Sfs, file: InodeNumber, blocks: usize) -> Vec<u8> {
    let mut bytes = vec![0; blocks * BLOCK];
    sfs.read(task, file, 0, &mut bytes).unwrap();
    bytes
}

/// A volume with a file of 8 random blocks, synced.
fn with_file(task: &Task<'_>) -> (Machine, Sfs, InodeNumber, Vec<u8>) {
    let machine = Machine::new(TEXT, 16, 72, false);
    let mut sfs = machine.create();
    let mut random = Random::new(1, "bytes");
    let bytes: Vec<u8> = (0..8).flat_map(|_| block(&mut random)).collect();
    let file = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
    sfs.write(task, file, 0, &bytes).unwrap();
    sfs.sync_file(task, file, Durable::Data).unwrap();
    (machine, sfs, file, bytes)
}

#[test]
fn a_sync_writes_the_blocks_that_changed_and_no_others() {
    let task = &Task::at(Time::ZERO);
    let (machine, mut sfs, file, mut bytes) = with_file(task);
    assert_eq!(written(&sfs), 8);
    sfs.write(task, file, 0, &bytes).unwrap();
    sfs.sync_file(task, file, Durable::Data).unwrap();
    assert_eq!(written(&sfs), 8, "all as before");
    bytes[3 * BLOCK + 77] ^= 1;
    sfs.write(task, file, 0, &bytes).unwrap();
    sfs.sync_file(task, file, Durable::All).unwrap();
    assert_eq!(written(&sfs), 9, "one of eight");
    drop(sfs);
    let mut sfs = machine.open().unwrap();
    assert_eq!(bytes_of(task, &mut sfs, file, 8), bytes);
    assert_eq!(sfs.check(task).unwrap(), []);
}

#[test]
fn a_damaged_block_is_replaced_by_the_same_bytes() {
    let task = &Task::at(Time::ZERO);
    let (machine, mut sfs, file, bytes) = with_file(task);
    sfs.unmount(task).unwrap();
    drop(sfs);
    let Device::Blocks(disk) = &machine.device else { unreachable!("the medium is a disk") };
    let holds = |disk: &Disk, at: u64| disk.bytes(at)[..] == bytes[..BLOCK];
    let blocks = 73 * 16;
    let place = (0..blocks).find(|at| holds(disk, *at)).expect("the first block is stored");
    let mut damaged = disk.bytes(place);
    damaged[5] ^= 1;
    disk.put(place, &damaged);
    let mut sfs = machine.open().unwrap();
    assert!(sfs.read(task, file, 0, &mut [0; BLOCK]).is_err());
    sfs.write(task, file, 0, &bytes).unwrap();
    sfs.sync_file(task, file, Durable::Data).unwrap();
    assert_eq!(written(&sfs), 1, "only the damaged one");
    assert_eq!(bytes_of(task, &mut sfs, file, 8), bytes);
    assert_eq!(sfs.check(task).unwrap(), []);
}

/// Segments are cleaned meanwhile, blocks wait to be cleaned when they are overwritten, and the machine crashes.
#[test]
fn a_nearly_full_volume_keeps_what_was_overwritten_with_the_same_bytes() {
    const BLOCKS: u64 = 560;
    for seed in 0..3 {
        let task = &Task::at(Time::ZERO);
        let mut random = Random::new(seed, "unchanged");
        let machine = Machine::new(TEXT, 16, 72, false);
        let mut sfs = machine.create();
        let mut bytes: Vec<u8> = (0..BLOCKS).flat_map(|_| block(&mut random)).collect();
        let file = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
        sfs.write(task, file, 0, &bytes).unwrap();
        sfs.sync(task).unwrap();
        let (mut overwritten, mut sent, mut cleaned) = (0, 0, 0);
        for round in 0..2400 {
            let count = 1 + random.below(12);
            let first = random.below(BLOCKS - count);
            // Every other block never changes.
            for place in first..first + count {
                if place % 2 == 0 {
                    bytes[place as usize * BLOCK..][..BLOCK].copy_from_slice(&block(&mut random));
                }
            }
            overwritten += count;
            let range = first as usize * BLOCK..(first + count) as usize * BLOCK;
            sfs.write(task, file, range.start as u64, &bytes[range]).unwrap();
            sfs.sync_file(task, file, Durable::Data).unwrap();
            if round % 800 == 799 {
                (sent, cleaned) = (sent + written(&sfs), cleaned + sfs.account().events[2].1);
                drop(sfs);
                machine.lose_power(&mut random);
                sfs = machine.open().unwrap();
                assert!(bytes_of(task, &mut sfs, file, BLOCKS as usize) == bytes, "seed {seed}, round {round}");
                assert_eq!(sfs.check(task).unwrap(), [], "seed {seed}, round {round}");
            }
        }
        assert!(cleaned > 1000, "seed {seed}: {cleaned} blocks were cleaned");
        // Those that wait to be cleaned are written, too.
        assert!(sent < overwritten * 3 / 4, "seed {seed}: {sent} of {overwritten} were written");
    }
}
