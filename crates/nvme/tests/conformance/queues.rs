//! Several queues, hosts and commands at once; resets, shutdowns, and ends of connections.

use super::initiator::{Command, Ended, Host, Queue};
use super::target::{BLOCKS, NAME, Target};
use flashpath_nvme::Limits;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn is_gone(queue: &mut Queue) -> bool {
    matches!(queue.try_run(Command::new(2, BLOCKS).blocks(0, 1), &[], 4096), Err(Ended::Io(_)))
}

#[test]
fn many_commands_of_several_queues_are_under_way_at_once() {
    let target = Target::start();
    let hosts = [target.host(), target.host()];
    std::thread::scope(|scope| {
        for (index, host) in hosts.iter().enumerate() {
            for number in 1..=3u16 {
                let mut queue = host.queue(number).unwrap();
                let base = (index as u64 * 3 + u64::from(number) - 1) * 600;
                scope.spawn(move || {
                    for round in 0..20u8 {
                        // Long writes, whose data is asked for, between short ones and reads.
                        let mut ids = BTreeSet::new();
                        for command in 0..30u64 {
                            let first = base + command * 20;
                            let blocks = if command % 3 == 0 { 20 } else { 1 };
                            let data = vec![round ^ command as u8; blocks as usize * 4096];
                            ids.insert(queue.submit(Command::new(1, BLOCKS).blocks(first, blocks), &data, 0).unwrap());
                        }
                        while !ids.is_empty() {
                            let answer = queue.complete().unwrap();
                            assert!(answer.status == 0 && ids.remove(&answer.id), "{answer:?}");
                        }
                        for command in 0..30u64 {
                            let blocks = if command % 3 == 0 { 20 } else { 1 };
                            let read = queue.read(BLOCKS, base + command * 20, blocks);
                            assert!(read.iter().all(|byte| *byte == round ^ command as u8));
                        }
                    }
                    assert!(queue.asked >= 200);
                });
            }
        }
    });
}

#[test]
fn the_position_of_the_queue_advances_and_can_be_done_without() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let heads: Vec<u16> = (0..33).map(|_| queue.run(Command::new(0, BLOCKS), &[], 0).head).collect();
    assert_eq!(heads[..3], [2, 3, 4], "the connect was the first");
    assert_eq!(heads[29..33], [31, 0, 1, 2], "a queue of 32 entries");
    let mut free = host.open().unwrap();
    let mut data = vec![0; 1024];
    data[0] = 7;
    data[16..18].copy_from_slice(&host.controller.to_le_bytes());
    data[256..256 + NAME.len()].copy_from_slice(NAME.as_bytes());
    data[512..512 + super::initiator::HOST.len()].copy_from_slice(super::initiator::HOST.as_bytes());
    let connect = Command::fabric(1).word(10, 2 << 16).word(11, 31 | 4 << 16);
    assert_eq!(free.run(connect, &data, 0).head, 0xffff);
    assert_eq!(free.run(Command::new(0, BLOCKS), &[], 0).head, 0xffff);
}

#[test]
fn a_reset_ends_the_queues_of_data_and_the_controller_can_be_enabled_again() {
    let target = Target::start();
    let mut host = target.host();
    let mut queue = host.queue(1).unwrap();
    assert_eq!(queue.write(BLOCKS, 0, &[7; 4096]), 0);
    assert_eq!(host.admin.configure(0x46_0060), 0);
    assert_eq!(host.admin.register(0x1c), 0);
    assert!(is_gone(&mut queue));
    assert_eq!(host.admin.configure(0x46_0061), 0);
    let until = Instant::now() + Duration::from_secs(10);
    let mut queue = loop {
        // The old queue may not have left yet.
        let mut queue = host.open().unwrap();
        if queue.connect(NAME, 1, host.controller, 0).unwrap().status == 0 {
            break queue;
        }
        assert!(Instant::now() < until);
    };
    assert_eq!(queue.read(BLOCKS, 0, 1), [7; 4096]);
}

#[test]
fn a_shutdown_is_told_to_be_complete_and_a_disconnect_ends_its_queue_alone() {
    let target = Target::start();
    let mut host = target.host();
    let (mut first, mut second) = (host.queue(1).unwrap(), host.queue(2).unwrap());
    assert_eq!(first.run(Command::fabric(8), &[], 0).status, 0);
    assert!(is_gone(&mut first));
    second.read(BLOCKS, 0, 1);
    assert_eq!(host.admin.configure(0x46_4061), 0);
    assert_eq!(host.admin.register(0x1c) >> 2 & 3, 2);
}

#[test]
fn the_end_of_administration_ends_the_controller() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    queue.read(BLOCKS, 0, 1);
    let Host { admin, controller, .. } = host;
    drop(admin);
    let until = Instant::now() + Duration::from_secs(10);
    while !is_gone(&mut queue) {
        assert!(Instant::now() < until);
    }
    let mut late = Queue::open(target.dial()().unwrap(), false, false).unwrap();
    assert_eq!(late.connect(NAME, 1, controller, 0).unwrap().status, 0x182);
}

#[test]
fn a_silent_host_loses_its_controller() {
    let target = Target::start();
    let mut admin = Queue::open(target.dial()().unwrap(), false, false).unwrap();
    assert_eq!(admin.connect(NAME, 0, 0xffff, 1000).unwrap().status, 0);
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(admin.configure(0x46_0061), 0, "a sign of life");
    }
    let began = Instant::now();
    assert!(matches!(admin.complete(), Err(Ended::Io(_))));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn there_are_limits_of_connections() {
    let limits = Limits { queues: 3, newcomers: 2, handshake: Duration::from_millis(400) };
    let target = Target::with(limits, false, "");
    let host = target.host();
    let _queues = [host.queue(1).unwrap(), host.queue(2).unwrap()];
    let refused = host.open().unwrap().connect(NAME, 3, host.controller, 0).unwrap();
    assert_eq!((refused.status, refused.is_final), (0x181, false), "it may try again");
    let mut silent = host.open().unwrap();
    assert!(matches!(silent.complete(), Err(Ended::Io(_))), "it had its time to connect a queue");
    let mut oldest = host.open().unwrap();
    let _others = [host.open().unwrap(), host.open().unwrap()];
    assert!(matches!(oldest.complete(), Err(Ended::Io(_))), "one more newcomer disconnects the oldest");
}

#[test]
fn the_end_of_the_server_answers_what_has_arrived() {
    let mut target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let ids: Vec<u16> =
        (0..8u64).map(|block| queue.submit(Command::new(1, BLOCKS).blocks(block, 1), &[3; 4096], 0).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let traffic = target.server.as_ref().unwrap().traffic();
    assert_eq!((traffic().connected, traffic().accepted), (2, 2));
    drop(target.server.take());
    for id in ids {
        let answer = queue.complete().unwrap();
        assert_eq!((answer.id, answer.status), (id, 0));
    }
    assert!(matches!(queue.complete(), Err(Ended::Io(_))));
    assert_eq!(traffic().connected, 0);
}
