use super::*;
use crate::device::conv::Conventional;
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use crate::label::Label;
use crate::random::Random;
use crate::units::BLOCK_BYTES;

const SIZE: u64 = 40 * BLOCK_BYTES;

fn shared(sharing: Sharing) -> SharedDevice {
    let device = Conventional::in_memory(SIZE / BLOCK_BYTES, BLOCK_BYTES as usize);
    SharedDevice::new(Box::new(device), sharing, Box::new(|| Time(7))).unwrap()
}

#[test]
fn bytes_of_any_alignment_are_as_on_a_flat_disk() {
    let device = shared(Sharing::default());
    let mut disk = vec![0u8; SIZE as usize];
    let mut random = Random::new(1, "shared bytes");
    for round in 0..4000u64 {
        let offset = random.below(SIZE);
        let length = random.below((SIZE - offset).min(3 * BLOCK_BYTES) + 1);
        let range = offset as usize..(offset + length) as usize;
        match random.below(5) {
            0 => {
                disk[range].fill(0);
                device.write_zeroes(offset, length, round % 2 == 0, round % 3 == 0).unwrap();
            }
            1 => {
                let first = offset.next_multiple_of(BLOCK_BYTES);
                let end = (offset + length) / BLOCK_BYTES * BLOCK_BYTES;
                if first < end {
                    disk[first as usize..end as usize].fill(0);
                }
                device.discard(offset, length, false).unwrap();
            }
            2 | 3 => {
                disk[range.clone()].fill(round as u8);
                device.write(offset, &disk[range], round % 7 == 0).unwrap();
            }
            _ => {
                let mut found = vec![1; length as usize];
                device.read(offset, &mut found).unwrap();
                assert!(found == disk[range], "round {round}: {length} bytes from {offset}");
            }
        }
    }
    let mut found = vec![1; SIZE as usize];
    device.read(0, &mut found).unwrap();
    assert!(found == disk);
    let mut offset = 0;
    while offset < SIZE {
        let extent = device.extent(offset, SIZE - offset).unwrap();
        assert!(extent.length > 0);
        let range = offset as usize..(offset + extent.length) as usize;
        assert!(extent.is_stored || disk[range].iter().all(|byte| *byte == 0), "a hole holds nothing");
        offset += extent.length;
    }
    assert_eq!(offset, SIZE);
}

#[test]
fn a_range_beyond_the_end_is_refused_and_counted_nowhere() {
    let device = shared(Sharing::default());
    for (offset, length) in [(SIZE, 1), (SIZE - 1, 2), (u64::MAX, 1), (1, u64::MAX), (0, SIZE + 1)] {
        assert_eq!(device.discard(offset, length, false).unwrap_err().fault(), Fault::BeyondEnd, "{offset} {length}");
        assert_eq!(device.extent(offset, length).unwrap_err().fault(), Fault::BeyondEnd);
    }
    assert_eq!(device.read(SIZE, &mut [0]).unwrap_err().fault(), Fault::BeyondEnd);
    device.read(SIZE, &mut []).unwrap();
    assert_eq!(device.counts().unwrap().served_in_all(), 1);
}

#[test]
fn a_device_served_for_reading_only_does_not_change() {
    let device = shared(Sharing { read_only: true, paced: false });
    for refused in
        [device.write(0, &[1], false), device.discard(0, 4096, false), device.write_zeroes(0, 9, false, true)]
    {
        assert_eq!(refused.unwrap_err().fault(), Fault::ReadOnly);
    }
    device.flush().unwrap();
    assert_eq!(device.account().unwrap().received.total(), 0);
}

#[test]
fn a_device_of_stamps_is_not_served() {
    let device = Conventional::in_memory(8, crate::device::STAMP_BYTES);
    let refused = SharedDevice::new(Box::new(device), Sharing::default(), Box::new(|| Time::ZERO));
    assert!(matches!(refused, Err(ServeError::NoBytes { width: 4 })));
}

#[test]
fn latencies_are_counted_below_their_bounds() {
    assert_eq!(LATENCY_BOUNDS_NS[..4], [1_000, 2_000, 5_000, 10_000]);
    assert_eq!(LATENCY_BOUNDS_NS[21], 10_000_000_000);
    let mut counts = Counts::default();
    for latency in [0, 1_000, 1_001, 10_000_000_001] {
        counts.served(Request::Read, 1, latency);
    }
    let read = &counts.of(Request::Read).latencies;
    assert_eq!((read.counts[0], read.counts[1], read.counts[22]), (2, 1, 1));
}

/// Threads write ranges that lie side by side, within blocks and across them: nobody loses a byte to a neighbour, and
/// answered writes are read.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test has threads")]
fn threads_that_write_parts_of_the_same_blocks_lose_nothing() {
    let shared = shared(Sharing::default());
    // From one to the next: parts of one block, a whole block, a block and parts of both neighbours.
    let ranges = [(0, 1000), (1000, 1500), (2500, 1596), (4096, 4096), (8192, 100), (8292, 8092), (16384, 4096)];
    std::thread::scope(|scope| {
        for (thread, (offset, length)) in ranges.into_iter().enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                for round in 0..2000usize {
                    let byte = (round * ranges.len() + thread) as u8;
                    match round % 5 {
                        4 => drop(shared.write_zeroes(offset, length, round % 2 == 0, false).unwrap()),
                        _ => drop(shared.write(offset, &vec![byte; length as usize], round % 7 == 0).unwrap()),
                    }
                    let mut found = vec![1; length as usize];
                    shared.read(offset, &mut found).unwrap();
                    let byte = if round % 5 == 4 { 0 } else { byte };
                    assert!(found.iter().all(|found| *found == byte), "thread {thread}, round {round}");
                }
            });
        }
    });
    let counts = shared.counts().unwrap();
    assert_eq!(counts.of(Request::Write).served, 7 * 1600);
    assert_eq!(counts.of(Request::WriteZeroes).served, 7 * 400);
}

/// A device that fails as no device may: its content is not known.
struct Panicking;

impl BlockDevice for Panicking {
    fn blocks(&self) -> u64 {
        16
    }

    fn block_width(&self) -> usize {
        BLOCK_BYTES as usize
    }

    fn read(&self, _: Lba, _: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn write(&self, _: Lba, _: &[u8], _: Label, _: Time) -> Result<Time, DeviceError> {
        panic!("a bug of the device")
    }

    fn discard(&self, _: Lba, _: u64, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn account(&self) -> Account {
        Account::default()
    }
}

impl Abilities for Panicking {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

#[test]
fn a_device_that_panicked_serves_nobody_any_more() {
    let shared = SharedDevice::new(Box::new(Panicking), Sharing::default(), Box::new(|| Time::ZERO)).unwrap();
    shared.read(0, &mut [0; 10]).unwrap();
    assert!(matches!(shared.write(0, &[0; 4096], false), Err(ServeError::Broken)));
    assert!(matches!(shared.read(0, &mut [0; 10]), Err(ServeError::Broken)));
    assert!(matches!(shared.flush(), Err(ServeError::Broken)));
    assert!(matches!(shared.close(), Err(ServeError::Broken)));
    assert_eq!(shared.counts().unwrap().served_in_all(), 1);
}
