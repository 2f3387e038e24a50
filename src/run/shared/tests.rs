use super::*;
use crate::device::conv::Conventional;
use crate::random::Random;

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
fn what_is_served_for_reading_only_does_not_change() {
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
