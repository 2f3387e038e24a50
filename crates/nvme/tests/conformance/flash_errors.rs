//! A drive whose flash has errors: a lost page is an unrecovered read error, a write heals it, and a drive without spare blocks
//! is write-protected.

use super::initiator::{Command, Queue};
use super::target::Target;
use flashpath::device::station::Payload;
use flashpath::run::shared::{Clock, SharedDevice, Sharing};
use flashpath::run::{Path, open_device};
use flashpath::time::Time;
use flashpath_nvme::{Drive, Limits};
use std::sync::Arc;

const BLOCK: usize = 4096;
const UNRECOVERED_READ_ERROR: u16 = 0x281;
const WRITE_PROTECTED: u16 = 0x020;

fn target(path: &str) -> Target {
    let device = open_device(&Path::read(path).unwrap(), Payload::Bytes, 1).unwrap();
    let clock: Clock = Box::new(|| Time::ZERO);
    let shared = SharedDevice::new(device, Sharing { read_only: false, paced: false }, clock).unwrap();
    Target::of(Limits::default(), vec![Drive::Blocks(Arc::new(shared))])
}

fn write(queue: &mut Queue, block: u64, byte: u8) -> u16 {
    queue.run(Command::new(0x01, 1).blocks(block, 1), &[byte; BLOCK], 0).status
}

/// The status of a read, and the byte that it has found everywhere.
fn read(queue: &mut Queue, block: u64) -> (u16, Option<u8>) {
    let answer = queue.run(Command::new(0x02, 1).blocks(block, 1), &[], BLOCK);
    let byte = answer.data.first().copied();
    assert!(answer.data.iter().all(|found| Some(*found) == byte), "block {block} is whole");
    (answer.status, byte)
}

#[test]
fn a_lost_page_is_an_unrecovered_read_error_until_it_is_written() {
    let target = target("page/nand:size=16M,pages-per-block=32,timing=off,errors=on,rber=7.2e-3,retry=0");
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let (mut lost, mut found) = (0, 0);
    for block in 0..1000u64 {
        let byte = block as u8;
        assert_eq!(write(&mut queue, block, byte), 0);
        match read(&mut queue, block) {
            (0, Some(read)) => {
                assert_eq!(read, byte, "block {block}");
                found += 1;
            }
            (UNRECOVERED_READ_ERROR, None) => {
                assert_eq!(read(&mut queue, block), (UNRECOVERED_READ_ERROR, None), "it is still lost");
                while read(&mut queue, block).0 != 0 {
                    assert_eq!(write(&mut queue, block, !byte), 0, "it can be written");
                }
                assert_eq!(read(&mut queue, block).1.unwrap_or(!byte), !byte, "block {block}");
                lost += 1;
            }
            other => panic!("block {block}: {other:x?}"),
        }
    }
    assert!(lost > 20 && found > 200, "{lost} lost, {found} found");
}

#[test]
fn a_drive_without_spare_blocks_is_write_protected() {
    let target = target(
        "page:export=70%/nand:size=16M,pages-per-block=32,timing=off,endurance=50,errors=on,rber=0,erase-failures=80%",
    );
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let mut number = 0u64;
    let status = loop {
        match write(&mut queue, number % 2000, (number / 2000) as u8) {
            0 => number += 1,
            status => break status,
        }
        assert!(number < 400_000, "the drive comes to its end");
    };
    assert_eq!(status, WRITE_PROTECTED);
    let last = number - 1;
    assert_eq!(read(&mut queue, last % 2000), (0, Some((last / 2000) as u8)), "reads go on");
}
