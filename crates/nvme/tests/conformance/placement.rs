//! Flexible data placement: directives, management of handles, logs and features.

use super::initiator::{Command, Queue};
use super::target::Target;

/// A drive with three handles in each of two groups, whose units have 64 blocks, and a drive without.
const PLACED: &str = "page:export=40%,fdp=3,fdp-groups=2,fdp-persistent=1/nand:size=16M,page=4K,pages-per-block=32,channels=2,dies=2,timing=off";
const PLAIN: &str = "page:export=40%/nand:size=16M,page=4K,pages-per-block=32,timing=off";
const UNIT: u64 = 64;

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(bytes[offset..offset + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
}

/// A log of an endurance group: its beginning.
fn log(admin: &mut Queue, page: u32, group: u32, bytes: u32) -> (u16, Vec<u8>) {
    let words = bytes / 4 - 1;
    let command = Command::new(2, 0).word(10, page | words << 16).word(11, group << 16);
    let answer = admin.run(command, &[], bytes as usize);
    (answer.status, answer.data)
}

/// Writes blocks with the directive of placement; returns the status.
fn place(queue: &mut Queue, first: u64, count: u64, identifier: u16) -> u16 {
    let command = Command::new(1, 1).blocks(first, count);
    let words = u32::from_le_bytes(command.0[48..52].try_into().unwrap());
    let command = command.word(12, words | 2 << 20).word(13, u32::from(identifier) << 16);
    queue.run(command, &vec![7; count as usize * 4096], 0).status
}

/// The status of the handles: identifier, handle, and blocks that can be written.
fn handles(queue: &mut Queue) -> Vec<(u16, u16, u64)> {
    let data = queue.run(Command::new(0x12, 1).word(10, 1).word(11, 1023), &[], 4096).data;
    let one = |at: usize| (u16_at(&data, at), u16_at(&data, at + 2), u64_at(&data, at + 8));
    (0..usize::from(u16_at(&data, 14))).map(|number| one(16 + 32 * number)).collect()
}

/// Lets handles refer to empty units; returns the status.
fn update(queue: &mut Queue, namespace: u32, identifiers: &[u16]) -> u16 {
    let data: Vec<u8> = identifiers.iter().flat_map(|identifier| identifier.to_le_bytes()).collect();
    let command = Command::new(0x1d, namespace).word(10, 1 | (identifiers.len() as u32 - 1) << 16);
    queue.run(command, &data, 0).status
}

#[test]
fn a_drive_with_placement_is_an_endurance_group_with_one_configuration() {
    let target = Target::of_paths(&[PLACED, PLAIN]);
    let mut host = target.host();
    let controller = host.admin.identify(1, 0, 0).data;
    assert_eq!((u32_at(&controller, 96) >> 4 & 1, u32_at(&controller, 96) >> 19 & 1), (1, 1));
    assert_eq!((u16_at(&controller, 256) >> 5 & 1, u16_at(&controller, 340)), (1, 2));
    assert_eq!([1, 2].map(|number| u16_at(&host.admin.identify(0, number, 0).data, 102)), [1, 2]);
    let (status, configurations) = log(&mut host.admin, 0x20, 1, 512);
    assert_eq!((status, u16_at(&configurations, 0), u32_at(&configurations, 4)), (0, 0, 16 + 80));
    let one = &configurations[16..];
    assert_eq!((u16_at(one, 0), one[2], u32_at(one, 4)), (80, 0x91, 2), "a bit of identifiers is the group");
    assert_eq!((u16_at(one, 8), u16_at(one, 10), u64_at(one, 16)), (3, 5, UNIT * 4096));
    assert_eq!([one[64], one[68], one[72]], [1, 2, 1]);
    let (status, usage) = log(&mut host.admin, 0x21, 1, 64);
    assert_eq!((status, u16_at(&usage, 0), usage[8], usage[24]), (0, 3, 1, 1));
    for page in [0x20, 0x21, 0x22, 0x23] {
        assert_eq!(log(&mut host.admin, page, 2, 64).0, 0x029, "placement is off there");
        assert_eq!(log(&mut host.admin, page, 3, 64).0, 0x002, "there is no such group");
    }
    let feature = |queue: &mut Queue, opcode: u8, group: u32| {
        let answer = queue.run(Command::new(opcode, 0).word(10, 0x1d).word(11, group), &[], 0);
        (answer.status, answer.result as u32)
    };
    assert_eq!([1, 2].map(|group| feature(&mut host.admin, 0x0a, group)), [(0, 1), (0, 0)]);
    assert_eq!(feature(&mut host.admin, 0x0a, 9).0, 0x002);
    assert_eq!(feature(&mut host.admin, 0x09, 1).0, 0x00c, "not while there is a namespace");
    let events = host.admin.run(Command::new(0x0a, 1).word(10, 0x1e).word(11, 2 | 16 << 16), &[], 32);
    assert_eq!((events.status, events.result, &events.data[..8]), (0, 3, &[0, 1, 3, 1, 0x80, 1, 0, 0][..]));
    let directives = host.admin.run(Command::new(0x1a, 1).word(10, 1023).word(11, 1), &[], 4096).data;
    assert_eq!((directives[0], directives[32], directives[64]), (0b101, 0b101, 0b100));
    let effects = host.admin.log(5, u32::MAX, 4096, 0, 0).data;
    assert_eq!((u32_at(&effects, 1024 + 0x12 * 4), u32_at(&effects, 1024 + 0x1d * 4)), (1, 1));
    assert_eq!(u32_at(&host.admin.log(0, 0, 1024, 0, 0).data, 0x23 * 4), 1);
}

#[test]
fn a_drive_without_placement_says_so() {
    let target = Target::of_paths(&[PLAIN]);
    let mut host = target.host();
    let controller = host.admin.identify(1, 0, 0).data;
    assert_eq!((u32_at(&controller, 96), u16_at(&controller, 256), u16_at(&controller, 340)), (0, 0, 0));
    assert_eq!(log(&mut host.admin, 0x22, 1, 64).0, 0x002);
    let mut queue = host.queue(1).unwrap();
    assert_eq!(place(&mut queue, 0, 1, 0), 0x002, "it has no such directive");
    assert_eq!(update(&mut queue, 1, &[0]), 0x029);
    assert_eq!(queue.run(Command::new(0x12, 1).word(10, 1).word(11, 15), &[], 64).status, 0x029);
}

#[test]
fn writes_go_to_the_handles_of_their_identifiers() {
    let target = Target::of_paths(&[PLACED]);
    let mut host = target.host();
    let mut queue = host.queue(1).unwrap();
    let group = 1 << 15;
    assert_eq!(place(&mut queue, 0, 5, 2), 0);
    assert_eq!(place(&mut queue, 5, 3, group | 1), 0);
    assert_eq!(queue.read(1, 0, 8), vec![7; 8 * 4096], "the data is there");
    let mut expected: Vec<(u16, u16, u64)> =
        (0..6).map(|number| (number / 3 * group + number % 3, number % 3, UNIT)).collect();
    (expected[2].2, expected[4].2) = (UNIT - 5, UNIT - 3);
    assert_eq!(handles(&mut queue), expected);
    // Without an identifier, and with a wrong one: to the default handle.
    assert_eq!(queue.write(1, 8, &[1; 2 * 4096]), 0);
    assert_eq!((place(&mut queue, 10, 1, 3), place(&mut queue, 11, 1, group | 9)), (0, 0));
    let of_default =
        handles(&mut queue).iter().filter(|(_, handle, _)| *handle == 0).map(|(.., left)| *left).sum::<u64>();
    assert_eq!(of_default, 2 * UNIT - 4);
    let (_, statistics) = log(&mut host.admin, 0x22, 1, 64);
    assert_eq!([0, 16, 32].map(|at| u64_at(&statistics, at)), [12 * 4096, 12 * 4096, 0]);
    // Other directives are unknown.
    let command = Command::new(1, 1).blocks(0, 1).word(12, 1 << 20);
    assert_eq!(queue.run(command, &[0; 4096], 0).status, 0x002);
}

#[test]
fn handles_are_updated_all_or_none_and_events_tell() {
    let target = Target::of_paths(&[PLACED]);
    let mut host = target.host();
    let mut queue = host.queue(1).unwrap();
    let group = 1 << 15;
    assert_eq!(place(&mut queue, 0, 5, 1), 0);
    assert_eq!(update(&mut queue, 1, &[1, 7]), 0x002);
    assert_eq!(handles(&mut queue)[1].2, UNIT - 5, "one of them is wrong: nothing is done");
    assert_eq!(update(&mut queue, 1, &[group | 2, 1]), 0);
    assert_eq!(handles(&mut queue)[1].2, UNIT);
    assert_eq!(place(&mut queue, 5, 1, 77), 0);
    let events = |admin: &mut Queue, of_host: u32| {
        let command = Command::new(2, 0).word(10, 0x23 | of_host << 8 | 255 << 16).word(11, 1 << 16);
        admin.run(command, &[], 1024).data
    };
    let of_host = events(&mut host.admin, 1);
    assert_eq!(u32_at(&of_host, 0), 2);
    let (given_up, wrong) = (&of_host[64..128], &of_host[128..192]);
    assert_eq!((given_up[0], given_up[1], u16_at(given_up, 2), u32_at(given_up, 12)), (0, 7, 1, 1));
    assert_eq!((u16_at(given_up, 32), given_up[34]), (0, 1));
    assert_eq!((wrong[0], wrong[1]), (3, 2), "the namespace alone is known");
    // Two units, and one page more.
    for first in (6..6 + 2 * UNIT + 1).step_by(43) {
        assert_eq!(place(&mut queue, first, 43, group), 0);
    }
    // Writes that fill a unit are actions of the host: that the handle refers to another one then is no event.
    let of_drive = events(&mut host.admin, 0);
    assert_eq!(u32_at(&of_drive, 0), 0);
}

#[test]
fn what_no_drive_has_is_refused() {
    let target = Target::of_paths(&[PLACED]);
    let mut host = target.host();
    let mut queue = host.queue(1).unwrap();
    // An operation of no meaning, more identifiers than there are, more data than a command has.
    assert_eq!(queue.run(Command::new(0x12, 1).word(10, 2).word(11, 15), &[], 64).status, 0x002);
    assert_eq!(queue.run(Command::new(0x1d, 1).word(10, 2), &[0; 2], 0).status, 0x002);
    assert_eq!(update(&mut queue, 1, &[0; 7]), 0x002);
    assert_eq!(queue.run(Command::new(0x12, 1).word(10, 1).word(11, u32::MAX), &[], 64).status, 0x002);
    assert_eq!(queue.run(Command::new(0x12, 1).word(10, 0), &[], 0).status, 0);
    assert_eq!(update(&mut queue, 2, &[0]), 0x00b);
    // A log from behind its end; directives that are sent.
    let command = Command::new(2, 0).word(10, 0x22 | 15 << 16).word(11, 1 << 16).word(12, 4096);
    assert_eq!(host.admin.run(command, &[], 64).status, 0x002);
    let send = |word: u32| Command::new(0x19, 1).word(11, 1).word(12, word);
    assert_eq!(host.admin.run(send(2 << 8 | 1), &[], 0).status, 0, "it is enabled");
    assert_eq!(host.admin.run(send(2 << 8), &[], 0).status, 0x002, "it stays so");
    assert_eq!(host.admin.run(Command::new(0x1a, 1).word(10, 2047).word(11, 1), &[], 4096).status, 0x002);
    assert_eq!(host.admin.run(Command::new(0x0a, 1).word(10, 0x1e).word(11, 3 | 4 << 16), &[], 8).status, 0x002);
}
