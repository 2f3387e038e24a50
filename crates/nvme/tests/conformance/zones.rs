//! Zoned namespaces: writes, appends, reports and the states of zones.

use super::initiator::{Command, Queue};
use super::status_codes::zone_send;
use super::target::{CAPACITY, Target, ZONE, ZONE_COUNT, ZONES};

/// State, capacity, first block and write pointer.
type Description = (u8, u64, u64, u64);

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

/// The count of a report, and its descriptions.
fn report(queue: &mut Queue, first: u64, filter: u32, is_partial: bool, room: usize) -> (u64, Vec<Description>) {
    let length = 64 + room * 64;
    let fields = filter << 8 | u32::from(is_partial) << 16;
    let command = Command::new(0x7a, ZONES).blocks(first, 1).word(12, length as u32 / 4 - 1).word(13, fields);
    let answer = queue.run(command, &[], length);
    assert_eq!(answer.status, 0);
    let descriptions = answer.data[64..].chunks(64).filter(|zone| zone[0] != 0).map(|zone| {
        assert_eq!(zone[0], 2, "sequential writes are required");
        (zone[1] >> 4, u64_at(zone, 8), u64_at(zone, 16), u64_at(zone, 24))
    });
    (u64_at(&answer.data, 0), descriptions.collect())
}

fn append(queue: &mut Queue, zone: u64, data: &[u8]) -> (u16, u64) {
    let answer = queue.run(Command::new(0x7d, ZONES).blocks(zone * ZONE, data.len() as u64 / 4096), data, 0);
    (answer.status, answer.result)
}

#[test]
fn zones_go_through_their_states() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let state = |queue: &mut Queue| report(queue, 2 * ZONE, 0, true, 1).1[0];
    let manage = |queue: &mut Queue, action| assert_eq!(queue.run(zone_send(2 * ZONE, action), &[], 0).status, 0);
    let at = 2 * ZONE;
    assert_eq!(state(&mut queue), (1, CAPACITY, at, at));
    assert_eq!(queue.write(ZONES, at, &[1; 3 * 4096]), 0);
    assert_eq!(state(&mut queue), (2, CAPACITY, at, at + 3));
    manage(&mut queue, 3);
    assert_eq!(state(&mut queue), (3, CAPACITY, at, at + 3));
    manage(&mut queue, 1);
    assert_eq!(state(&mut queue), (4, CAPACITY, at, at + 3));
    manage(&mut queue, 2);
    assert_eq!(state(&mut queue), (0xe, CAPACITY, at, u64::MAX));
    assert!(queue.read(ZONES, at, 3) == [1; 3 * 4096]);
    manage(&mut queue, 4);
    assert_eq!(state(&mut queue), (1, CAPACITY, at, at));
    assert!(queue.read(ZONES, at, 3) == [0; 3 * 4096]);
    let zeros = Command::new(8, ZONES).blocks(at, CAPACITY);
    assert_eq!(queue.run(zeros, &[], 0).status, 0);
    assert_eq!(state(&mut queue).0, 0xe, "zeros fill it");
}

#[test]
fn appends_of_several_queues_get_places_of_their_own() {
    let target = Target::start();
    let host = target.host();
    let places = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4u8)
            .map(|number| {
                let mut queue = host.queue(u16::from(number)).unwrap();
                scope.spawn(move || {
                    let mut places = Vec::new();
                    for round in 0..20 {
                        let blocks = 1 + round % 3;
                        let data = vec![number; blocks * 4096];
                        let (status, place) = append(&mut queue, 5, &data);
                        assert_eq!(status, 0);
                        places.extend((place..place + blocks as u64).map(|block| (block, number)));
                    }
                    places
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut queue = host.queue(5).unwrap();
    let mut blocks: Vec<u64> = places.iter().map(|(block, _)| *block).collect();
    blocks.sort_unstable();
    assert_eq!(blocks, (5 * ZONE..5 * ZONE + 156).collect::<Vec<_>>(), "no gap, and no place twice");
    for (block, number) in places {
        assert!(queue.read(ZONES, block, 1).iter().all(|byte| *byte == number));
    }
}

#[test]
fn reports_filter_count_and_end_where_their_room_does() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    for zone in [3, 7, 8] {
        assert_eq!(append(&mut queue, zone, &[1; 4096]).0, 0);
    }
    assert_eq!(queue.run(zone_send(7 * ZONE, 2), &[], 0).status, 0);
    let (count, zones) = report(&mut queue, 0, 0, false, 100);
    assert_eq!((count, zones.len()), (ZONE_COUNT, ZONE_COUNT as usize));
    let (count, zones) = report(&mut queue, 0, 0, false, 4);
    assert_eq!((count, zones.len()), (ZONE_COUNT, 4), "all are counted");
    let (count, zones) = report(&mut queue, 0, 0, true, 4);
    assert_eq!((count, zones.len()), (4, 4), "those in the report are counted");
    let (count, zones) = report(&mut queue, 4 * ZONE + 9, 0, true, 100);
    assert_eq!((count, zones[0].2), (ZONE_COUNT - 4, 4 * ZONE), "from the zone of the block on");
    for (filter, expected) in [(1, 13), (2, 2), (3, 0), (4, 0), (5, 1), (6, 0), (7, 0)] {
        assert_eq!(report(&mut queue, 0, filter, true, 100).0, expected, "filter {filter}");
    }
    assert_eq!(report(&mut queue, 0, 0, false, 0), (ZONE_COUNT, Vec::new()));
}

#[test]
fn commands_to_all_zones_mean_those_that_they_can_change() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let all = |queue: &mut Queue, action: u32| queue.run(zone_send(0, action | 1 << 8), &[], 0).status;
    let counts = |queue: &mut Queue| [1, 2, 3, 4, 5].map(|filter| report(queue, 0, filter, true, 100).0);
    for zone in [1, 2, 3] {
        assert_eq!(append(&mut queue, zone, &[1; 4096]).0, 0);
    }
    assert_eq!(counts(&mut queue), [13, 3, 0, 0, 0]);
    assert_eq!((all(&mut queue, 1), counts(&mut queue)), (0, [13, 0, 0, 3, 0]));
    assert_eq!((all(&mut queue, 3), counts(&mut queue)), (0, [13, 0, 3, 0, 0]));
    assert_eq!((all(&mut queue, 2), counts(&mut queue)), (0, [13, 0, 0, 0, 3]));
    assert_eq!((all(&mut queue, 5), counts(&mut queue)), (0, [13, 0, 0, 0, 3]), "none is read-only");
    assert_eq!((all(&mut queue, 4), counts(&mut queue)), (0, [16, 0, 0, 0, 0]));
}
