//! Structures, logs and features: what Linux, nvme-cli and SPDK ask for.

use super::initiator::{Command, DISCOVERY, Host, Queue};
use super::target::{BLOCK_COUNT, BLOCKS, CAPACITY, MOST_ACTIVE, MOST_OPEN, NAME, Target, ZONE, ZONE_COUNT, ZONES};

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(bytes[offset..offset + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

#[test]
fn registers_say_what_the_controller_can() {
    let target = Target::start();
    let mut host = target.host();
    let capabilities = host.admin.register(0);
    assert_eq!(capabilities & 0xffff, 127, "entries of a queue");
    assert!(capabilities >> 37 & 1 == 1 && capabilities >> 43 & 1 == 1, "NVM, and other sets");
    assert_eq!(host.admin.register(8), 0x2_0000);
    assert_eq!(host.admin.register(0x14), 0x46_0061);
}

#[test]
fn the_controller_and_its_namespaces_are_described() {
    let target = Target::start();
    let mut host = target.host();
    let controller = host.admin.identify(1, 0, 0).data;
    assert_eq!((controller[77], controller[111], u32_at(&controller, 516)), (7, 1, 3));
    assert_eq!((controller[512], controller[513], u32_at(&controller, 1792)), (0x66, 0x44, 516));
    assert_eq!(u16_at(&controller, 78), host.controller);
    assert!(controller[768..].starts_with(NAME.as_bytes()) && u32_at(&controller, 536) & 3 == 1);
    assert_eq!(host.admin.identify(0x1c, 0xffff << 16 >> 16, 0).status, 0x002, "the sets of another controller");
    let sets = host.admin.run(Command::new(6, 0).word(10, 0x1c | 0xffff << 16), &[], 4096).data;
    assert_eq!(u64_at(&sets, 0), 0b101);
    let list = |data: &[u8]| (0..4).map(|place| u32_at(data, place * 4)).collect::<Vec<_>>();
    assert_eq!(list(&host.admin.identify(2, 0, 0).data), [1, 2, 3, 0]);
    assert_eq!(list(&host.admin.identify(2, 1, 0).data), [2, 3, 0, 0]);
    assert_eq!(list(&host.admin.identify(7, 0, 0).data), [1, 3, 0, 0]);
    assert_eq!(list(&host.admin.identify(7, 0, 2).data), [2, 0, 0, 0]);
    let blocks = host.admin.identify(0, BLOCKS, 0).data;
    assert_eq!((u64_at(&blocks, 0), blocks[130], blocks[99]), (BLOCK_COUNT, 12, 0));
    assert_eq!(host.admin.identify(0, 3, 0).data[99], 1, "it is protected from writes");
    assert_eq!(host.admin.identify(8, 3, 0).data[8], 1);
    let zones = host.admin.identify(0, ZONES, 0).data;
    assert_eq!((u64_at(&zones, 0), u64_at(&zones, 8)), (ZONE * ZONE_COUNT, CAPACITY * ZONE_COUNT));
    let zones = host.admin.identify(5, ZONES, 2).data;
    assert_eq!((u32_at(&zones, 4), u32_at(&zones, 8)), (MOST_ACTIVE as u32 - 1, MOST_OPEN as u32 - 1));
    assert_eq!(u64_at(&zones, 2816), ZONE);
    assert_eq!(host.admin.identify(6, 0, 2).data[0], 5, "the limit of an append");
    assert_eq!(host.admin.identify(6, 0, 0).data[0], 7, "the limit of a verify");
    let names = host.admin.identify(3, ZONES, 0).data;
    assert_eq!((names[0], names[1], names[20], names[21]), (2, 16, 3, 16));
    assert_eq!(names[40..45], [4, 1, 0, 0, 2], "the set of its commands");
    assert_ne!(names[4..20], host.admin.identify(3, BLOCKS, 0).data[4..20]);
    let controllers = host.admin.identify(0x13, 0, 0).data;
    assert_eq!((u16_at(&controllers, 0), u16_at(&controllers, 2)), (1, host.controller));
}

#[test]
fn a_host_of_blocks_alone_sees_no_zones() {
    let target = Target::start();
    let mut admin = Queue::open(target.dial()().unwrap(), false, false).unwrap();
    let connected = admin.connect(NAME, 0, 0xffff, 0).unwrap();
    assert_eq!(admin.configure(0x46_0001), 0);
    assert_eq!(admin.identify(2, 0, 0).data[..12], [1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(admin.identify(0, ZONES, 0).status, 0x00b);
    let mut queue = Queue::open(target.dial()().unwrap(), false, false).unwrap();
    assert_eq!(queue.connect(NAME, 1, connected.result as u16, 0).unwrap().status, 0);
    assert_eq!(queue.run(Command::new(2, ZONES).blocks(0, 1), &[], 4096).status, 0x00b);
}

#[test]
fn the_discovery_controller_tells_where_the_drives_are() {
    let target = Target::start();
    assert_eq!(Host::discover(&target.dial()).unwrap(), NAME);
    let mut queue = Queue::open(target.dial()().unwrap(), false, false).unwrap();
    assert_eq!(queue.connect(DISCOVERY, 0, 0xffff, 0).unwrap().status, 0);
    assert_eq!(queue.configure(0x1), 0);
    let controller = queue.identify(1, 0, 0).data;
    assert!(controller[111] == 2 && controller[768..].starts_with(DISCOVERY.as_bytes()));
    assert_eq!(queue.identify(2, 0, 0).status, 0x002, "it has no namespaces");
    assert_eq!(queue.log(2, 0, 512, 0, 0).status, 0x109);
    let (first, second) = (queue.log(0x70, 0, 16, 0, 0).data, queue.log(0x70, 0, 1024, 1024, 0).data);
    assert_eq!((u64_at(&first, 8), u16_at(&second, 6)), (1, 0xffff));
}

#[test]
fn logs_tell_errors_effects_health_and_written_media() {
    let target = Target::start();
    let mut host = target.host();
    let mut queue = host.queue(1).unwrap();
    assert_eq!(queue.write(BLOCKS, 0, &vec![1; 100 * 4096]), 0);
    assert_eq!(queue.write(ZONES, 0, &vec![1; 50 * 4096]), 0);
    queue.read(BLOCKS, 0, 10);
    assert_eq!(queue.write(ZONES, 5, &[1; 4096]), 0x1bc);
    let errors = host.admin.log(1, 0, 128, 0, 0).data;
    assert_eq!((u64_at(&errors, 0), u16_at(&errors, 8), u16_at(&errors, 12) >> 1 & 0x7ff), (1, 1, 0x1bc));
    assert_eq!((u64_at(&errors, 16), u32_at(&errors, 24), u64_at(&errors, 64)), (5, ZONES, 0));
    let health = host.admin.log(2, u32::MAX, 512, 0, 0).data;
    assert_eq!((u64_at(&health, 48), u64_at(&health, 80)), ((150u64 * 4096).div_ceil(512_000), 2));
    assert_eq!((u64_at(&health, 64), u64_at(&health, 176)), (1, 1));
    let extended = host.admin.log(0xc0, u32::MAX, 512, 0, 0).data;
    assert_eq!(extended[496..500], [0xc5, 0xaf, 0x10, 0x28]);
    assert!(u64_at(&extended, 0) >= 100 * 4096, "bytes that the media took");
    let of_blocks = host.admin.log(0xc0, BLOCKS, 512, 0, 0).data;
    assert_eq!(u64_at(&of_blocks, 0), 100 * 4096);
    let firmware = host.admin.log(3, u32::MAX, 512, 0, 0).data;
    assert!(firmware[0] == 1 && firmware[8].is_ascii_digit());
    let effects = host.admin.log(5, u32::MAX, 4096, 0, 2).data;
    assert_eq!((u32_at(&effects, 1024 + 0x7d * 4), u32_at(&effects, 1024 + 9 * 4)), (3, 0));
    let effects = host.admin.log(5, u32::MAX, 4096, 0, 0).data;
    assert_eq!((u32_at(&effects, 1024 + 0x7d * 4), u32_at(&effects, 1024 + 9 * 4)), (0, 3));
    assert_eq!(host.admin.log(4, u32::MAX, 4096, 0, 0).data, vec![0; 4096]);
    let supported = host.admin.log(0, 0, 1024, 0, 0).data;
    let pages: Vec<usize> = (0..256).filter(|page| u32_at(&supported, page * 4) == 1).collect();
    assert_eq!(pages, [0, 1, 2, 3, 4, 5, 0xbf, 0xc0]);
    for page in pages {
        let namespace = if page == 0xbf { ZONES } else { u32::MAX };
        assert_eq!(host.admin.log(page as u32, namespace, 512, 0, 0).status, 0, "log {page:x}");
    }
}

#[test]
fn features_are_kept_and_the_write_cache_can_be_off() {
    let target = Target::start();
    let mut host = target.host();
    let set = |host: &mut Host, feature: u32, value: u32| {
        host.admin.run(Command::new(9, 0).word(10, feature).word(11, value), &[], 0)
    };
    let get = |host: &mut Host, feature: u32| {
        let answer = host.admin.run(Command::new(10, 0).word(10, feature), &[], 0);
        assert_eq!(answer.status, 0, "feature {feature:x}");
        answer.result
    };
    assert_eq!(set(&mut host, 7, 3 | 3 << 16).result, 31 | 31 << 16);
    for (feature, value) in [(1, 7), (4, 340), (5, 1), (0x0a, 1), (0x0b, 1 << 27), (0x0f, 15_000)] {
        assert_eq!(set(&mut host, feature, value).status, 0, "feature {feature:x}");
        assert_eq!(get(&mut host, feature), u64::from(value));
    }
    assert_eq!(get(&mut host, 6), 1);
    assert_eq!((set(&mut host, 6, 0).status, get(&mut host, 6)), (0, 0));
    let answer = host.admin.run(Command::new(10, 0).word(10, 0x81).word(11, 1), &[], 16);
    assert_eq!((answer.status, answer.data[0]), (0, 7), "the identifier of the host");
    assert_eq!(host.queue(1).unwrap().write(BLOCKS, 0, &[1; 4096]), 0);
}

#[test]
fn events_wait_until_something_happens() {
    // A zone wears out with its second erase.
    let target = Target::with(Default::default(), false, ",endurance=2");
    let mut host = target.host();
    let set = Command::new(9, 0).word(10, 0x0b).word(11, 1 << 27);
    assert_eq!(host.admin.run(set, &[], 0).status, 0);
    let first = host.admin.submit(Command::new(0x0c, 0), &[], 0).unwrap();
    let others: Vec<u16> = (0..3).map(|_| host.admin.submit(Command::new(0x0c, 0), &[], 0).unwrap()).collect();
    let fifth = host.admin.run(Command::new(0x0c, 0), &[], 0);
    assert_eq!(fifth.status, 0x105, "four requests may wait");
    let abort = host.admin.submit(Command::new(0x08, 0).word(10, u32::from(others[2]) << 16), &[], 0).unwrap();
    let (aborted, done) = (host.admin.complete().unwrap(), host.admin.complete().unwrap());
    assert_eq!((aborted.id, aborted.status), (others[2], 0x007));
    assert_eq!((done.id, done.status, done.result), (abort, 0, 0));
    let mut queue = host.queue(1).unwrap();
    for round in 0..2 {
        // A zone that is full has programmed pages, which the reset erases.
        for first in [ZONE, ZONE + CAPACITY / 2] {
            assert_eq!(queue.write(ZONES, first, &vec![1; CAPACITY as usize / 2 * 4096]), 0, "round {round}");
        }
        assert_eq!(queue.run(super::status_codes::zone_send(ZONE, 4), &[], 0).status, 0);
    }
    assert_eq!(queue.write(ZONES, ZONE, &[1; 4096]), 0x1bb, "it is offline");
    let event = host.admin.complete().unwrap();
    assert_eq!((event.id, event.status, event.result), (first, 0, u64::from(ZONES) << 32 | 0xbf_ef02));
    let log = host.admin.log(0xbf, ZONES, 4096, 0, 0).data;
    assert_eq!((u16_at(&log, 0), u64_at(&log, 8)), (1, ZONE));
    assert_eq!(u16_at(&host.admin.log(0xbf, ZONES, 4096, 0, 0).data, 0), 0, "it was read");
    let health = host.admin.log(2, u32::MAX, 512, 0, 0).data;
    assert!(health[5] > 0, "a part of the endurance is used");
}
