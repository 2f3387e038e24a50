//! Each refused command has the status code of the specification, and changes nothing.

use super::initiator::{Command, HOST, Queue};
use super::target::{BLOCK_COUNT, BLOCKS, CAPACITY, READ_ONLY, Target, ZONE, ZONE_COUNT, ZONES};

const BLOCK: usize = 4096;

/// A command, its data to the device, and the room for data from it.
struct Row(&'static str, Command, usize, usize, u16);

fn write(namespace: u32, first: u64, count: u64) -> Command {
    Command::new(0x01, namespace).blocks(first, count)
}

fn read(namespace: u32, first: u64, count: u64) -> Command {
    Command::new(0x02, namespace).blocks(first, count)
}

/// An action on the zone from this block on.
pub fn zone_send(first: u64, action: u32) -> Command {
    Command::new(0x79, ZONES).blocks(first, 1).word(12, 0).word(13, action)
}

fn append(first: u64, count: u64) -> Command {
    Command::new(0x7d, ZONES).blocks(first, count)
}

fn report(first: u64, words: u32, fields: u32) -> Command {
    Command::new(0x7a, ZONES).blocks(first, 1).word(12, words).word(13, fields)
}

fn check(queue: &mut Queue, rows: &[Row]) {
    for Row(what, command, data, room, status) in rows {
        let answer = queue.run(*command, &vec![1; *data], *room);
        assert_eq!(format!("{:03x}", answer.status), format!("{status:03x}"), "{what}");
        assert!(answer.data.is_empty() || *status == 0, "{what}: a refused command has no data");
    }
}

#[test]
fn commands_on_blocks() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let dataset = |ranges: u32, attributes: u32| Command::new(0x09, BLOCKS).word(10, ranges - 1).word(11, attributes);
    check(
        &mut queue,
        &[
            Row("an unknown opcode", Command::new(0x0e, BLOCKS), 0, 0, 0x001),
            Row("a command on zones, on blocks", Command::new(0x79, BLOCKS), 0, 0, 0x001),
            Row("an append on blocks", Command::new(0x7d, BLOCKS), 0, 0, 0x001),
            Row("namespace 0", read(0, 0, 1), 0, BLOCK, 0x00b),
            Row("namespace 4 of 3", read(4, 0, 1), 0, BLOCK, 0x00b),
            Row("a read of all namespaces", read(u32::MAX, 0, 1), 0, BLOCK, 0x00b),
            Row("a flush of namespace 9", Command::new(0x00, 9), 0, 0, 0x00b),
            Row("a flush of all namespaces", Command::new(0x00, u32::MAX), 0, 0, 0),
            Row("a read beyond the end", read(BLOCKS, BLOCK_COUNT, 1), 0, BLOCK, 0x080),
            Row("a read across the end", read(BLOCKS, BLOCK_COUNT - 1, 2), 0, 2 * BLOCK, 0x080),
            Row("a read whose end overflows", read(BLOCKS, u64::MAX, 2), 0, 2 * BLOCK, 0x080),
            Row("a read of more than the limit", read(BLOCKS, 0, 129), 0, 129 * BLOCK, 0x002),
            Row("a read with too little room", read(BLOCKS, 0, 2), 0, BLOCK, 0x00f),
            Row("a read with too much room", read(BLOCKS, 0, 1), 0, 2 * BLOCK, 0x00f),
            Row("a write beyond the end", write(BLOCKS, BLOCK_COUNT, 1), BLOCK, 0, 0x080),
            Row("a write with too little data", write(BLOCKS, 0, 2), BLOCK, 0, 0x00f),
            Row("a write with too much data", write(BLOCKS, 0, 1), 2 * BLOCK, 0, 0x00f),
            Row("a write with a directive", write(BLOCKS, 0, 1).word(12, 2 << 20), BLOCK, 0, 0x002),
            Row("a long write beyond the end", write(BLOCKS, BLOCK_COUNT - 1, 128), 128 * BLOCK, 0, 0x080),
            Row("a write to what can only be read", write(READ_ONLY, 0, 1), BLOCK, 0, 0x020),
            Row("zeros to it", Command::new(0x08, READ_ONLY).blocks(0, 1), 0, 0, 0x020),
            Row("a dataset command to it", Command::new(0x09, READ_ONLY).word(11, 4), 16, 0, 0x020),
            Row("a read of it", read(READ_ONLY, 0, 1), 0, BLOCK, 0),
            Row("zeros beyond the end", Command::new(0x08, BLOCKS).blocks(BLOCK_COUNT - 1, 2), 0, 0, 0x080),
            Row("a compare with what is not there", Command::new(0x05, BLOCKS).blocks(0, 2), 2 * BLOCK, 0, 0x285),
            Row("a compare beyond the end", Command::new(0x05, BLOCKS).blocks(BLOCK_COUNT, 1), BLOCK, 0, 0x080),
            Row("a verify", Command::new(0x0c, BLOCKS).blocks(0, 128), 0, 0, 0),
            Row("a verify of more than the limit", Command::new(0x0c, BLOCKS).blocks(0, 129), 0, 0, 0x002),
            Row("a range beyond the end", dataset(1, 4), 16, 0, 0x080),
            Row("a copy of an unknown format", Command::new(0x19, BLOCKS).word(12, 1 << 8), 32, 0, 0x002),
            Row("a copy of too many ranges", Command::new(0x19, BLOCKS).word(12, 128), 129 * 32, 0, 0x183),
            Row("a copy of too many blocks", Command::new(0x19, BLOCKS), 32, 0, 0x183),
            Row("a copy to what is beyond the end", Command::new(0x19, BLOCKS).blocks(BLOCK_COUNT, 1), 32, 0, 0x080),
            Row("a copy to what can only be read", Command::new(0x19, READ_ONLY), 32, 0, 0x020),
            Row("fewer ranges than there are", dataset(2, 4), 16, 0, 0x00f),
            Row("more data than ranges, which are wrong", dataset(2, 0), 4096, 0, 0x080),
            Row("more data than there may be", dataset(2, 0), 4112, 0, 0x00f),
            Row(
                "half of a fused operation",
                {
                    let mut fused = write(BLOCKS, 0, 1);
                    fused.0[1] |= 1;
                    fused
                },
                BLOCK,
                0,
                0x002,
            ),
            Row("a connect on a connected queue", Command::fabric(1), 1024, 0, 0x00c),
            Row("a register on a queue of data", Command::fabric(4).word(11, 8), 0, 0, 0x001),
        ],
    );
    let mut pages = read(BLOCKS, 0, 1);
    pages.0[1] = 0;
    assert_eq!(queue.run(pages, &[], BLOCK).status, 0x002, "data is described by lists, not by pages");
    let mut kind = read(BLOCKS, 0, 1).with_id(900).describe(BLOCK, false);
    kind.0[39] = 0x40;
    let unit = queue.capsule(&kind, &[]);
    queue.stream.write_all(&unit).unwrap();
    assert_eq!(queue.complete().unwrap().status, 0x011, "a keyed descriptor");
    let mut moved = write(BLOCKS, 0, 1).with_id(901).describe(BLOCK, true);
    moved.0[24] = 4;
    let unit = queue.capsule(&moved, &[1; BLOCK]);
    queue.stream.write_all(&unit).unwrap();
    assert_eq!(queue.complete().unwrap().status, 0x016, "an offset in the capsule");
    let into = read(BLOCKS, 0, 1).with_id(902).describe(BLOCK, true);
    let unit = queue.capsule(&into, &[]);
    queue.stream.write_all(&unit).unwrap();
    assert_eq!(queue.complete().unwrap().status, 0x011, "a read into the capsule");
    assert!(queue.read(BLOCKS, 0, 128).iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn commands_on_zones() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let end = ZONE * ZONE_COUNT;
    check(
        &mut queue,
        &[
            Row("deallocation", Command::new(0x09, ZONES).word(11, 4), 16, 0, 0x001),
            Row("a write that is not at the pointer", write(ZONES, 1, 1), BLOCK, 0, 0x1bc),
            Row("a write across the end of a zone", write(ZONES, 0, 100), 100 * BLOCK, 0, 0),
            Row("and beyond the capacity", write(ZONES, 100, 93), 93 * BLOCK, 0, 0x1b8),
            Row("the rest", write(ZONES, 100, CAPACITY - 100), (CAPACITY as usize - 100) * BLOCK, 0, 0),
            Row("a write to a full zone", write(ZONES, CAPACITY, 1), BLOCK, 0, 0x1b9),
            Row("an append to a full zone", append(0, 1), BLOCK, 0, 0x1b9),
            Row("zeros in a full zone", Command::new(0x08, ZONES).blocks(CAPACITY, 1), 0, 0, 0x1b9),
            Row("a read across zones", read(ZONES, ZONE - 1, 2), 0, 2 * BLOCK, 0x1b8),
            Row("a read beyond the capacity", read(ZONES, CAPACITY, 1), 0, BLOCK, 0),
            Row("a read beyond the end", read(ZONES, end, 1), 0, BLOCK, 0x080),
            Row("an append of the limit", append(ZONE, 32), 32 * BLOCK, 0, 0),
            Row("an append above the limit", append(ZONE, 33), 33 * BLOCK, 0, 0x002),
            Row("an append into a zone", append(ZONE + 1, 1), BLOCK, 0, 0x002),
            Row("an append beyond the end", append(end, 1), BLOCK, 0, 0x080),
            Row("an action into a zone", zone_send(1, 4), 0, 0, 0x002),
            Row("an action beyond the end", zone_send(end, 4), 0, 0, 0x080),
            Row("an unknown action", zone_send(0, 6), 0, 0, 0x002),
            Row("extensions of descriptions", zone_send(0, 0x10), 0, 0, 0x002),
            Row("a full zone is opened", zone_send(0, 3), 0, 0, 0x1bf),
            Row("a full zone is closed", zone_send(0, 1), 0, 0, 0x1bf),
            Row("an empty zone is closed", zone_send(2 * ZONE, 1), 0, 0, 0x1bf),
            Row("an empty zone goes offline", zone_send(2 * ZONE, 5), 0, 0, 0x1bf),
            Row("a full zone is finished", zone_send(0, 2), 0, 0, 0),
            Row("an empty zone is reset", zone_send(2 * ZONE, 4), 0, 0, 0),
            Row("an extended report", report(0, 1023, 1), 0, 4096, 0x002),
            Row("an unknown filter", report(0, 1023, 8 << 8), 0, 4096, 0x002),
            Row("a report beyond the end", report(end, 1023, 0), 0, 4096, 0x080),
            Row("a report without room for its header", report(0, 14, 0), 0, 60, 0x002),
        ],
    );
    // Three open zones, and then as many active ones as there may be: zone 1 is open from the append.
    let open = |number: u64| zone_send(number * ZONE, 3);
    check(
        &mut queue,
        &[
            Row("zone 1", open(1), 0, 0, 0),
            Row("zone 2", open(2), 0, 0, 0),
            Row("zone 3", open(3), 0, 0, 0),
            Row("a fourth open zone", open(4), 0, 0, 0x1be),
            Row("a write that would open a fourth", write(ZONES, 4 * ZONE, 1), BLOCK, 0, 0x1be),
            Row("zone 2 is written", write(ZONES, 2 * ZONE, 1), BLOCK, 0, 0),
            Row("zone 2 is closed", zone_send(2 * ZONE, 1), 0, 0, 0),
            Row("zone 3 is written", write(ZONES, 3 * ZONE, 1), BLOCK, 0, 0),
            Row("zone 3 is closed", zone_send(3 * ZONE, 1), 0, 0, 0),
            Row("zone 4", open(4), 0, 0, 0),
            Row("zone 5", open(5), 0, 0, 0),
            Row("a sixth active zone", open(6), 0, 0, 0x1bd),
            Row("an append to a sixth active zone", append(6 * ZONE, 1), BLOCK, 0, 0x1bd),
            Row("all closed zones are opened", zone_send(0, 3 | 1 << 8), 0, 0, 0x1be),
            Row("all zones are reset", zone_send(0, 4 | 1 << 8), 0, 0, 0),
            Row("zone 6", open(6), 0, 0, 0),
        ],
    );
}

#[test]
fn commands_of_administration() {
    let target = Target::start();
    let mut host = target.host();
    let identify = |structure: u32, namespace: u32, set: u32| {
        Command::new(0x06, namespace).word(10, structure).word(11, set << 24)
    };
    let log = |page: u32, words: u32| Command::new(0x02, u32::MAX).word(10, page | (words - 1) << 16);
    let set = |feature: u32, value: u32| Command::new(0x09, 0).word(10, feature).word(11, value);
    let get = |feature: u32| Command::new(0x0a, 0).word(10, feature);
    check(
        &mut host.admin,
        &[
            Row("an unknown opcode", Command::new(0x0d, 0), 0, 0, 0x001),
            Row("a write on the queue of administration", Command::new(0x01, 1), 0, 0, 0x001),
            Row("the end of that queue", Command::fabric(8), 0, 0, 0x001),
            Row("an unknown command of the fabric", Command::fabric(0x22), 0, 0, 0x001),
            Row("an unknown register", Command::fabric(4).word(11, 4), 0, 0, 0x002),
            Row("a register of another length", Command::fabric(4).word(10, 2).word(11, 0), 0, 0, 0x002),
            Row("a register that cannot be set", Command::fabric(0).word(11, 0x1c), 0, 0, 0x002),
            Row("namespace 9", identify(0, 9, 0), 0, 4096, 0x00b),
            Row("what is common to all", identify(0, u32::MAX, 0), 0, 4096, 0),
            Row("descriptors of namespace 0", identify(3, 0, 0), 0, 4096, 0x00b),
            Row("an unknown structure", identify(0x14, 0, 0), 0, 4096, 0x002),
            Row("an unknown set", identify(6, 0, 1), 0, 4096, 0x002),
            Row("zones of a namespace of blocks", identify(5, BLOCKS, 2), 0, 4096, 0x002),
            Row("a list above the last number", identify(2, u32::MAX - 1, 0), 0, 4096, 0x00b),
            Row("too little room", identify(1, 0, 0), 0, 4092, 0x00f),
            Row("an unknown log", log(0x7f, 128), 0, 512, 0x109),
            Row("the log of discovery on drives", log(0x70, 128), 0, 512, 0x109),
            Row("a log beyond its end", log(2, 128).word(12, 516), 0, 512, 0x002),
            Row("an offset that is no multiple of 4", log(2, 128).word(12, 2), 0, 512, 0x002),
            Row("more than the limit", log(2, 0x1_0000).word(11, 9), 0, 4096, 0x002),
            Row("the effects of an unknown set", log(5, 1024).word(14, 1 << 24), 0, 4096, 0x12c),
            Row("the health of one namespace", Command::new(0x02, 1).word(10, 2 | 127 << 16), 0, 512, 0x002),
            Row("changed zones of blocks", Command::new(0x02, 1).word(10, 0xbf | 1023 << 16), 0, 4096, 0x002),
            Row("no queues", set(7, 0xffff), 0, 0, 0x002),
            Row("a value that is saved", set(6 | 1 << 31, 1), 0, 0, 0x002),
            Row("an unknown feature", set(0x0c, 1), 0, 0, 0x002),
            Row("another state of power", set(2, 1), 0, 0, 0x002),
            Row("the identifier of the host", set(0x81, 1), 0, 0, 0x10e),
            Row("the same, read short", get(0x81), 0, 16, 0x002),
            Row("the default of a feature", get(6 | 1 << 8), 0, 0, 0x002),
            Row("an abort of what is not there", Command::new(0x08, 0).word(10, 1 | 77 << 16), 0, 0, 0),
        ],
    );
}

#[test]
fn connects() {
    let target = Target::start();
    let mut host = target.host();
    let try_connect = |subsystem: &str, queue: u16, controller: u16, change: &dyn Fn(&mut Command, &mut Vec<u8>)| {
        let mut open = Queue::open(target.dial()().unwrap(), false, false).unwrap();
        let mut data = vec![0; 1024];
        data[0] = 7;
        data[16..18].copy_from_slice(&controller.to_le_bytes());
        data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
        data[512..512 + HOST.len()].copy_from_slice(HOST.as_bytes());
        let mut command = Command::fabric(1).word(10, u32::from(queue) << 16).word(11, 31);
        change(&mut command, &mut data);
        let answer = open.run(command, &data, 0);
        (answer.status, answer.result as u32)
    };
    let name = super::target::NAME;
    let nothing = |_: &mut Command, _: &mut Vec<u8>| {};
    // Where the result names a field, its offset: with bit 16 in the data, else in the command.
    for (what, answered, expected) in [
        ("an unknown name", try_connect("nqn.2026-01.org.example:other", 0, 0xffff, &nothing), (0x182, 1 << 16 | 256)),
        ("a given controller", try_connect(name, 0, 1, &nothing), (0x182, 1 << 16 | 16)),
        ("a queue of no controller", try_connect(name, 1, 99, &nothing), (0x182, 1 << 16 | 16)),
        ("a queue of discovery", try_connect(super::initiator::DISCOVERY, 1, 1, &nothing), (0x182, 1 << 16 | 256)),
        ("queue 33", try_connect(name, 33, host.controller, &nothing), (0x182, 42)),
        ("a queue of one entry", try_connect(name, 0, 0xffff, &|command, _| command.0[44..46].fill(0)), (0x182, 44)),
        (
            "a queue of 65,536 entries",
            try_connect(name, 0, 0xffff, &|command, _| command.0[44..46].fill(0xff)),
            (0x182, 44),
        ),
        ("another format", try_connect(name, 0, 0xffff, &|command, _| command.0[40] = 1), (0x180, 0)),
        ("no host", try_connect(name, 0, 0xffff, &|_, data| data[512..768].fill(0)), (0x182, 1 << 16 | 512)),
        ("another host", try_connect(name, 1, host.controller, &|_, data| data[513] = b'x'), (0x182, 1 << 16 | 512)),
        (
            "a name without an end",
            try_connect(name, 0, 0xffff, &|_, data| data[256..512].fill(b'n')),
            (0x182, 1 << 16 | 256),
        ),
    ] {
        assert_eq!(answered, expected, "{what}");
    }
    let mut open = host.open().unwrap();
    assert_eq!(open.run(read(BLOCKS, 0, 1), &[], BLOCK).status, 0x00c, "a command before the connect");
    let _queue = host.queue(1).unwrap();
    let again = try_connect(name, 1, host.controller, &nothing);
    assert_eq!(again, (0x182, 42), "a second queue of one number");
    assert_eq!(host.admin.configure(0x46_0060), 0);
    assert_eq!(host.admin.identify(1, 0, 0).status, 0x00c, "the controller is not enabled");
    assert_eq!(try_connect(name, 2, host.controller, &nothing).0, 0x00c, "a queue of a controller that is not enabled");
}
