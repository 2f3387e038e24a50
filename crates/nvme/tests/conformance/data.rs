//! Data of all lengths, in capsules and in units of its own, with and without digests, comes back as it was written.

use super::initiator::{Command, Host, Queue};
use super::target::{BLOCK_COUNT, BLOCKS, NAME, Target};
use flashpath::random::Random;

fn pattern(seed: u64, blocks: u64) -> Vec<u8> {
    let mut random = Random::new(seed, "data");
    (0..blocks * 512).flat_map(|_| random.bits().to_le_bytes()).collect()
}

#[test]
fn every_length_with_every_digest() {
    let target = Target::start();
    for digests in [(false, false), (true, false), (false, true), (true, true)] {
        let host = Host::connect(target.dial(), NAME, digests).unwrap();
        let mut queue = host.queue(1).unwrap();
        for blocks in [1, 2, 3, 31, 32, 33, 100, 128] {
            let data = pattern(blocks, blocks);
            assert_eq!(queue.write(BLOCKS, 5, &data), 0, "{blocks} blocks, {digests:?}");
            assert!(queue.read(BLOCKS, 5, blocks) == data, "{blocks} blocks, {digests:?}");
            let compare = Command::new(5, BLOCKS).blocks(5, blocks);
            assert_eq!(queue.run(compare, &data, 0).status, 0);
            let mut other = data;
            *other.last_mut().unwrap() ^= 1;
            assert_eq!(queue.run(compare, &other, 0).status, 0x285);
        }
        // The three lengths of at most 8 KiB came in capsules: one write, two compares each.
        assert_eq!(queue.asked, 6 * 3, "requests for data");
    }
}

#[test]
fn data_is_aligned_as_the_host_asks() {
    let target = Target::start();
    let host = target.host();
    for alignment in [0, 1, 7, 31] {
        let mut queue = Queue::open_aligned(target.dial()().unwrap(), alignment, true, true).unwrap();
        assert_eq!(queue.connect(NAME, 1 + u16::from(alignment), host.controller, 0).unwrap().status, 0);
        let id = queue.submit(Command::new(2, BLOCKS).blocks(0, 1), &[], 4096).unwrap();
        let mut header = [0; 8];
        std::io::Read::read_exact(&mut *queue.stream, &mut header).unwrap();
        assert!(header[0] == 7 && usize::from(header[3]).is_multiple_of((usize::from(alignment) + 1) * 4), "{id}");
    }
}

#[test]
fn zeros_and_deallocated_blocks_read_as_zeros() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let data = pattern(1, 64);
    assert_eq!(queue.write(BLOCKS, 0, &data), 0);
    for deallocates in [0, 1 << 25] {
        let zeros = Command::new(8, BLOCKS).blocks(3, 2);
        let fields = u32::from_le_bytes(zeros.0[48..52].try_into().unwrap());
        assert_eq!(queue.run(zeros.word(12, fields | deallocates), &[], 0).status, 0);
        let read = queue.read(BLOCKS, 0, 64);
        assert!(read[..3 * 4096] == data[..3 * 4096] && read[5 * 4096..] == data[5 * 4096..]);
        assert!(read[3 * 4096..5 * 4096].iter().all(|byte| *byte == 0));
        assert_eq!(queue.write(BLOCKS, 0, &data), 0);
    }
    // Three ranges, one of them empty; without the attribute they are a hint only.
    let range = |first: u64, blocks: u32| {
        let mut bytes = vec![0; 4];
        bytes.extend(blocks.to_le_bytes());
        bytes.extend(first.to_le_bytes());
        bytes
    };
    let ranges = [range(0, 1), range(10, 0), range(20, 4)].concat();
    let dataset = Command::new(9, BLOCKS).word(10, 2);
    assert_eq!(queue.run(dataset, &ranges, 0).status, 0);
    assert!(queue.read(BLOCKS, 0, 64) == data);
    let wrong = [range(0, 1), range(BLOCK_COUNT, 1), range(20, 4)].concat();
    assert_eq!(queue.run(dataset.word(11, 4), &wrong, 0).status, 0x080);
    assert!(queue.read(BLOCKS, 0, 64) == data, "a command with a wrong range changes nothing");
    assert_eq!(queue.run(dataset.word(11, 4), &ranges, 0).status, 0);
    let read = queue.read(BLOCKS, 0, 64);
    let zero = |block: usize| read[block * 4096..(block + 1) * 4096].iter().all(|byte| *byte == 0);
    assert!(zero(0) && !zero(1) && !zero(10) && !zero(19) && zero(20) && zero(23) && !zero(24));
}

#[test]
fn copied_ranges_follow_each_other_and_may_overlap_their_place() {
    let target = Target::start();
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let data = pattern(3, 128);
    assert_eq!(queue.write(BLOCKS, 0, &data), 0);
    let source = |first: u64, blocks: u16| {
        let mut bytes = vec![0; 32];
        bytes[8..16].copy_from_slice(&first.to_le_bytes());
        bytes[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
        bytes
    };
    let copy = |sources: u32| Command::new(0x19, BLOCKS).blocks(20, 1).word(12, sources - 1);
    let sources = [source(10, 15), source(100, 3), source(0, 1)].concat();
    assert_eq!(queue.run(copy(3), &sources, 0).status, 0);
    let expected = [&data[10 * 4096..25 * 4096], &data[100 * 4096..103 * 4096], &data[..4096]].concat();
    assert!(queue.read(BLOCKS, 20, 19) == expected && queue.read(BLOCKS, 39, 1) == data[39 * 4096..40 * 4096]);
    let whole = queue.read(BLOCKS, 0, 128);
    assert_eq!(queue.run(copy(2), &[source(0, 128), source(0, 1)].concat(), 0).status, 0x183);
    assert_eq!(queue.run(copy(2), &[source(0, 1), source(BLOCK_COUNT, 1)].concat(), 0).status, 0x080);
    assert!(queue.read(BLOCKS, 0, 128) == whole, "a refused copy changes nothing");
}

#[test]
fn paced_answers_are_the_same() {
    let target = Target::with(Default::default(), true, "");
    let host = target.host();
    let mut queue = host.queue(1).unwrap();
    let data = pattern(9, 128);
    assert_eq!(queue.write(BLOCKS, 7, &data), 0);
    assert!(queue.read(BLOCKS, 7, 128) == data);
    assert_eq!(queue.run(Command::new(0, BLOCKS), &[], 0).status, 0);
}
