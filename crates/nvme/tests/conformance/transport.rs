//! A host that breaks the transport is told the field at fault, and loses its connection; nobody else does.

use super::initiator::{Command, Ended, Host, Queue, connection_request, unit};
use super::target::{BLOCKS, NAME, Target};
use std::io::Write;

/// The status and the information with which a connection ends.
fn ended(queue: &mut Queue) -> (u16, u32) {
    match queue.complete() {
        Err(Ended::Terminated(status, information)) => (status, information),
        other => panic!("{other:?}"),
    }
}

/// A queue of a number that is free once its last connection has left.
fn new_queue(host: &Host) -> Queue {
    for number in (1..=32).cycle().take(32_000) {
        let mut queue = host.open().unwrap();
        if queue.connect(NAME, number, host.controller, 0).unwrap().status == 0 {
            return queue;
        }
    }
    panic!("no queue is free");
}

#[test]
fn wrong_units_name_their_field() {
    let target = Target::start();
    let (good_host, host) = (target.host(), target.host());
    let mut good = good_host.queue(1).unwrap();
    let with_length = |mut bytes: Vec<u8>, length: u32| {
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    let write = Command::new(1, BLOCKS).blocks(0, 1).describe(4096, true);
    let data = |fields: [u32; 2], length: u32, flags: u8| {
        let mut header = Vec::new();
        header.extend(fields[0].to_le_bytes());
        header.extend(fields[1].to_le_bytes());
        header.extend(length.to_le_bytes());
        header.extend([0; 4]);
        unit(6, flags, 24, 24, &header, &[0; 512])
    };
    for (what, bytes, status, information) in [
        ("an unknown type", unit(0x20, 0, 8, 0, &[], &[]), 1, 0),
        ("a type of targets", unit(5, 0, 24, 0, &[0; 16], &[]), 1, 0),
        ("a header of another length", unit(4, 0, 71, 0, &[0; 64], &[]), 1, 2),
        ("a unit that is too short", with_length(unit(4, 0, 72, 0, &write.0, &[]), 60), 1, 3),
        ("a unit that is too long", with_length(unit(4, 0, 72, 72, &write.0, &[0; 16]), u32::MAX), 1, 4),
        ("data in the header", unit(4, 0, 72, 64, &write.0, &[0; 16]), 1, 3),
        ("a digest that was not agreed on", unit(4, 1, 72, 0, &write.0, &[0; 4]), 1, 1),
        ("a second connection request", connection_request(0, false, false), 2, 0),
        ("data that was not asked for", data([0, 0], 512, 4), 1, 10),
        ("data of a transfer that cannot be", data([0xffff_0000, 0], 512, 4), 1, 10),
        ("a length that is not that of the data", data([0, 0], 511, 4), 1, 16),
    ] {
        let mut queue = new_queue(&host);
        queue.stream.write_all(&bytes).unwrap();
        assert_eq!(ended(&mut queue), (status, information), "{what}");
        assert!(matches!(queue.complete(), Err(Ended::Io(_))), "{what}: the connection has ended");
    }
    good.read(BLOCKS, 0, 1);
}

#[test]
fn a_connection_is_agreed_on_first() {
    let target = Target::start();
    for (what, bytes, status, information) in [
        ("a command", unit(4, 0, 72, 0, &[0; 64], &[]), 2, 0),
        (
            "another version",
            unit(
                0,
                0,
                128,
                0,
                &{
                    let mut fields = [0; 120];
                    fields[0] = 1;
                    fields
                },
                &[],
            ),
            6,
            8,
        ),
        ("an alignment that cannot be", connection_request(32, false, false), 1, 10),
        (
            "a third digest",
            unit(
                0,
                0,
                128,
                0,
                &{
                    let mut fields = [0; 120];
                    fields[3] = 4;
                    fields
                },
                &[],
            ),
            1,
            11,
        ),
    ] {
        let mut stream = target.dial()().unwrap();
        stream.write_all(&bytes).unwrap();
        let mut response = [0; 24];
        std::io::Read::read_exact(&mut *stream, &mut response).unwrap();
        let found = (u16::from_le_bytes([response[8], response[9]]), response[10]);
        assert_eq!((response[0], found), (3, (status, information)), "{what}");
    }
}

#[test]
fn data_comes_in_order_and_as_asked_for() {
    let target = Target::start();
    let host = target.host();
    for (what, pieces, status, information) in [
        ("a gap", &[(0usize, 4096usize, false), (8192, 4096, false)][..], 1, 12),
        ("the same again", &[(0, 4096, false), (0, 4096, false)], 1, 12),
        ("more than was asked for", &[(0, 8192, false), (8192, 16384, true)], 4, 0),
        ("a last one that is not", &[(0, 4096, true)], 1, 1),
        ("an end that is not told", &[(0, 16384, false)], 1, 1),
    ] {
        let mut queue = new_queue(&host);
        let command = Command::new(1, BLOCKS).blocks(0, 4).with_id(55).describe(16384, false);
        let bytes = queue.capsule(&command, &[]);
        queue.stream.write_all(&bytes).unwrap();
        let (kind, _, fields, _) = queue.receive().unwrap();
        assert_eq!((kind, fields[0]), (9, 55));
        let tag = u16::from_le_bytes([fields[2], fields[3]]);
        for (offset, length, is_last) in pieces {
            let bytes = queue.host_data(55, tag, *offset, &vec![1; *length], *is_last);
            // The target may have ended the connection already.
            let _ = queue.stream.write_all(&bytes);
        }
        assert_eq!(ended(&mut queue), (status, information), "{what}");
    }
    assert!(new_queue(&host).read(BLOCKS, 0, 4).iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn a_wrong_header_digest_ends_the_connection_and_a_wrong_data_digest_its_command() {
    let target = Target::start();
    let host = Host::connect(target.dial(), NAME, (true, true)).unwrap();
    let mut queue = host.queue(1).unwrap();
    let write = Command::new(1, BLOCKS).blocks(0, 1).with_id(70).describe(4096, true);
    let mut bytes = queue.capsule(&write, &[9; 4096]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    queue.stream.write_all(&bytes).unwrap();
    let answer = queue.complete().unwrap();
    assert_eq!((answer.id, answer.status, answer.is_final), (70, 0x022, false), "it may be repeated");
    let long = Command::new(1, BLOCKS).blocks(0, 4).with_id(71).describe(16384, false);
    let bytes = queue.capsule(&long, &[]);
    queue.stream.write_all(&bytes).unwrap();
    let (_, _, fields, _) = queue.receive().unwrap();
    let tag = u16::from_le_bytes([fields[2], fields[3]]);
    let mut bytes = queue.host_data(71, tag, 0, &[9; 8192], false);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    bytes.extend(queue.host_data(71, tag, 8192, &[9; 8192], true));
    queue.stream.write_all(&bytes).unwrap();
    assert_eq!(queue.complete().unwrap().status, 0x022);
    assert!(queue.read(BLOCKS, 0, 4).iter().all(|byte| *byte == 0), "nothing was written");
    let mut bytes = queue.capsule(&write, &[9; 4096]);
    bytes[72] ^= 1;
    let received = u32::from_le_bytes(bytes[72..76].try_into().unwrap());
    queue.stream.write_all(&bytes).unwrap();
    assert_eq!(ended(&mut queue), (3, received));
}

#[test]
fn a_queue_that_overruns_ends() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let long = Command::new(1, BLOCKS).blocks(0, 4).describe(16384, false);
    for id in 0..33 {
        let bytes = queue.capsule(&long.with_id(id), &[]);
        // The target may have ended the connection already.
        let _ = queue.stream.write_all(&bytes);
    }
    let mut asked = 0;
    let end = loop {
        match queue.receive() {
            Ok((9, ..)) => asked += 1,
            other => break other,
        }
    };
    assert!(matches!(end, Err(Ended::Terminated(2, 0))), "{end:?}");
    assert_eq!(asked, 8, "transfers at once");
}

#[test]
fn a_host_that_ends_in_the_middle_leaves_nothing_behind() {
    let target = Target::start();
    let host = target.host();
    let traffic = target.server.as_ref().unwrap().traffic();
    let write = Command::new(1, BLOCKS).blocks(0, 2).describe(8192, true);
    let long = Command::new(1, BLOCKS).blocks(0, 4).with_id(5).describe(16384, false);
    for cut in [1, 7, 8, 40, 72, 73, 5000, 8200] {
        let mut queue = host.queue(1).unwrap();
        let bytes = queue.capsule(&write, &[9; 8192]);
        queue.stream.write_all(&bytes[..cut]).unwrap();
        drop(queue);
        wait_until(|| traffic().connected == 1);
        let mut queue = host.queue(1).unwrap();
        let bytes = queue.capsule(&long, &[]);
        queue.stream.write_all(&bytes).unwrap();
        queue.receive().unwrap();
        let bytes = queue.host_data(5, 0, 0, &[9; 16384], true);
        queue.stream.write_all(&bytes[..cut]).unwrap();
        drop(queue);
        wait_until(|| traffic().connected == 1);
    }
    let mut queue = host.queue(1).unwrap();
    assert!(queue.read(BLOCKS, 0, 4).iter().all(|byte| *byte == 0), "no part of a write was done");
    // A host that ends the connection with a termination request.
    let mut fields = [0; 16];
    fields[0] = 1;
    queue.stream.write_all(&unit(2, 0, 24, 0, &fields, &[0; 72])).unwrap();
    assert!(matches!(queue.complete(), Err(Ended::Io(_))));
}

fn wait_until(is_done: impl Fn() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !is_done() {
        assert!(std::time::Instant::now() < until);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
