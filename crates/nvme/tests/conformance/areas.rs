//! Random write areas of zones (ZRWA): the fields that tell a host of them, their commands in every state, and their data.

use super::initiator::{Command, Queue};
use super::status_codes::zone_send;
use super::target::{CAPACITY, MOST_ACTIVE, Target, ZONE, ZONES};
use flashpath_nvme::Limits;

/// Areas of 16 blocks, flushed by four, in two zones at a time.
const OPTIONS: &str = ",zrwa=64K,zrwa-flush=16K,max-zrwa=2";
const BLOCK: usize = 4096;
const OPEN_WITH_AREA: u32 = 3 | 1 << 9;

/// The attributes, the state and the write pointer of a zone, from its start.
fn describe(queue: &mut Queue, zone: u64) -> (u8, u8, u64) {
    let command = Command::new(0x7a, ZONES).blocks(zone * ZONE, 1).word(12, 31).word(13, 1 << 16);
    let answer = queue.run(command, &[], 128);
    assert_eq!(answer.status, 0);
    let pointer = u64::from_le_bytes(answer.data[64 + 24..64 + 32].try_into().unwrap());
    (answer.data[66], answer.data[65] >> 4, pointer.wrapping_sub(zone * ZONE))
}

fn send(queue: &mut Queue, first: u64, action: u32) -> u16 {
    queue.run(zone_send(first, action), &[], 0).status
}

/// Moves the write pointer of a zone to this block of it: the command names the last block of the range.
fn flush_to(queue: &mut Queue, zone: u64, end: u64) -> u16 {
    send(queue, (zone * ZONE + end).wrapping_sub(1), 0x11)
}

fn append(queue: &mut Queue, zone: u64) -> u16 {
    queue.run(Command::new(0x7d, ZONES).blocks(zone * ZONE, 1), &[7; BLOCK], 0).status
}

#[test]
fn a_host_is_told_of_the_areas() {
    let target = Target::with(Limits::default(), false, OPTIONS);
    let mut host = target.host();
    let data = host.admin.identify(5, ZONES, 2).data;
    assert_eq!(data[2..4], [2, 0], "areas are supported");
    assert_eq!(data[44..48], [2, 0, 0, 0], "their number");
    assert_eq!((data[48..50].to_vec(), data[50..52].to_vec()), (vec![4, 0], vec![16, 0]), "granularity and size");
    assert_eq!(data[52], 1, "they are flushed by a command, too");
    let unlimited = Target::with(Limits::default(), false, &OPTIONS.replace("max-zrwa=2", "max-zrwa=0"));
    assert_eq!(u64::from(unlimited.host().admin.identify(5, ZONES, 2).data[44]), MOST_ACTIVE);
    let without = Target::start();
    assert!(without.host().admin.identify(5, ZONES, 2).data[44..53].iter().all(|byte| *byte == 0));
}

/// The status of each command on a zone in each state, with and without an area: Invalid Zone Operation Request (1B6h), Invalid
/// Zone State Transition (1BFh), Zone Invalid Write (1BCh), Zone Is Full (1B9h).
#[test]
fn commands_on_areas_by_state() {
    let bring = |queue: &mut Queue, state: &str| {
        let commands: &[u32] = match state {
            "empty" | "implicitly open" => &[],
            "explicitly open" => &[3],
            "closed" => &[3, 1],
            "full" => &[2],
            "open with an area" => &[OPEN_WITH_AREA],
            "closed with an area" => &[OPEN_WITH_AREA, 1],
            "implicitly open with an area" => &[OPEN_WITH_AREA, 1],
            other => panic!("{other}"),
        };
        if state == "implicitly open" {
            assert_eq!(queue.write(ZONES, 0, &[1; BLOCK]), 0);
        }
        commands.iter().for_each(|action| assert_eq!(send(queue, 0, *action), 0, "{state}"));
        if state == "implicitly open with an area" {
            assert_eq!(queue.write(ZONES, 3, &[1; BLOCK]), 0);
        }
    };
    // Opened with an area, opened, flushed to block 4, written at block 5, appended to.
    let table: [(&str, [u16; 5]); 8] = [
        ("empty", [0, 0, 0x1b6, 0x1bc, 0]),
        ("implicitly open", [0x1b6, 0, 0x1b6, 0x1bc, 0]),
        ("explicitly open", [0x1b6, 0, 0x1b6, 0x1bc, 0]),
        ("closed", [0x1b6, 0, 0x1b6, 0x1bc, 0]),
        ("full", [0x1bf, 0x1bf, 0x1b6, 0x1b9, 0x1b9]),
        ("open with an area", [0x1b6, 0, 0, 0, 0x1b6]),
        ("implicitly open with an area", [0x1b6, 0, 0, 0, 0x1b6]),
        ("closed with an area", [0x1b6, 0, 0, 0, 0x1b6]),
    ];
    for (state, expected) in table {
        let target = Target::with(Limits::default(), false, OPTIONS);
        let host = target.host();
        let mut queue = host.queue(1).unwrap();
        let statuses = [0, 1, 2, 3, 4].map(|command| {
            bring(&mut queue, state);
            let before = describe(&mut queue, 0);
            let status = match command {
                0 => send(&mut queue, 0, OPEN_WITH_AREA),
                1 => send(&mut queue, 0, 3),
                2 => flush_to(&mut queue, 0, 4),
                3 => queue.write(ZONES, 5, &[2; BLOCK]),
                _ => append(&mut queue, 0),
            };
            if status != 0 {
                assert_eq!(describe(&mut queue, 0), before, "{state}: a refused command changes nothing");
            }
            assert_eq!(send(&mut queue, 0, 4), 0);
            status
        });
        assert_eq!(
            statuses.map(|status| format!("{status:03x}")),
            expected.map(|status| format!("{status:03x}")),
            "{state}"
        );
    }
}

#[test]
fn ranges_and_resources_that_there_are_not_are_refused() {
    let target = Target::with(Limits::default(), false, OPTIONS);
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    assert_eq!(send(&mut queue, 0, OPEN_WITH_AREA), 0);
    for end in [1, 3, 17, 20, ZONE] {
        assert_eq!(flush_to(&mut queue, 0, end), 0x1b6, "to block {end}");
    }
    assert_eq!(queue.write(ZONES, 32, &[1; BLOCK]), 0x1bc, "behind what moves the pointer");
    assert_eq!(queue.write(ZONES, 25, &[1; 8 * BLOCK]), 0x1bc);
    assert_eq!(send(&mut queue, ZONE, OPEN_WITH_AREA), 0);
    assert_eq!(send(&mut queue, 2 * ZONE, OPEN_WITH_AREA), 0x1b7, "a third area");
    assert_eq!(send(&mut queue, 0, OPEN_WITH_AREA | 1 << 8), 0x002, "areas in all zones");
    assert_eq!(send(&mut queue, 0, 0x11 | 1 << 8), 0x002, "flushes of all");
    assert_eq!(send(&mut queue, ZONE + 1, OPEN_WITH_AREA), 0x002, "an action into a zone");
    assert_eq!(send(&mut queue, 16 * ZONE, 0x11), 0x080, "a flush beyond the end");
    assert_eq!(send(&mut queue, 0, 2), 0);
    assert_eq!(send(&mut queue, 2 * ZONE, OPEN_WITH_AREA), 0, "a finished zone has left its area");
    let without = Target::start();
    let host = without.host();
    let mut queue = host.queue(1).unwrap();
    assert_eq!([send(&mut queue, 0, OPEN_WITH_AREA), send(&mut queue, 3, 0x11)], [0x1b6; 2], "a drive without areas");
}

#[test]
fn an_area_is_overwritten_and_flushed() {
    let target = Target::with(Limits::default(), false, OPTIONS);
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let valid = 1 << 3;
    assert_eq!(send(&mut queue, ZONE, OPEN_WITH_AREA), 0);
    assert_eq!(describe(&mut queue, 1), (valid, 3, 0));
    for (block, byte) in [(9, 1), (0, 2), (9, 3), (15, 4)] {
        assert_eq!(queue.write(ZONES, ZONE + block, &[byte; BLOCK]), 0);
    }
    assert_eq!(describe(&mut queue, 1), (valid, 3, 0));
    let bytes = |queue: &mut Queue, count: u64| -> Vec<u8> {
        queue.read(ZONES, ZONE, count).chunks(BLOCK).map(|block| block[0]).collect()
    };
    assert_eq!(bytes(&mut queue, 17), [2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 4, 0]);
    assert_eq!(flush_to(&mut queue, 1, 8), 0);
    assert_eq!(describe(&mut queue, 1), (valid, 3, 8));
    assert_eq!(queue.write(ZONES, ZONE, &[9; BLOCK]), 0x1bc, "what was flushed is written no more");
    // Zeros may overwrite, and a write behind the area flushes as much of it as must be.
    assert_eq!(queue.run(Command::new(8, ZONES).blocks(ZONE + 9, 3), &[], 0).status, 0);
    assert_eq!(queue.write(ZONES, ZONE + 24, &[5; 2 * BLOCK]), 0);
    assert_eq!(describe(&mut queue, 1), (valid, 3, 12));
    assert_eq!(bytes(&mut queue, 27)[8..], [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 0]);
    assert_eq!(queue.run(Command::new(8, ZONES).blocks(ZONE + 12, 33), &[], 0).status, 0x1bc);
    assert_eq!(describe(&mut queue, 1), (valid, 3, 12), "zeros are written as a whole or not at all");
    assert_eq!(send(&mut queue, ZONE, 2), 0);
    assert_eq!(describe(&mut queue, 1).1, 0xe);
    assert_eq!(bytes(&mut queue, 27)[24..], [5, 5, 0]);
    // An area ends at the capacity; flushed there, the zone is full.
    assert_eq!(send(&mut queue, ZONE, 4), 0);
    assert_eq!(send(&mut queue, ZONE, OPEN_WITH_AREA), 0);
    for first in (0..CAPACITY).step_by(16) {
        assert_eq!(queue.write(ZONES, ZONE + first, &[6; 16 * BLOCK]), 0);
    }
    assert_eq!(describe(&mut queue, 1), (valid, 3, CAPACITY - 16));
    assert_eq!(queue.write(ZONES, ZONE + CAPACITY - 1, &[6; 2 * BLOCK]), 0x1b8, "beyond the capacity");
    assert_eq!(flush_to(&mut queue, 1, CAPACITY), 0);
    assert_eq!((describe(&mut queue, 1).0, describe(&mut queue, 1).1), (0, 0xe));
    assert_eq!(queue.write(ZONES, ZONE + CAPACITY - 1, &[6; BLOCK]), 0x1b9);
}
