//! The disk, by a virtual machine of the tests' own.

#![allow(clippy::disallowed_methods, reason = "a test has a clock")]

mod frontend;

use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::expression::parse_term;
use flashpath::run::shared::{Request, SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath_nbd::{Address, Listener};
use flashpath_vhost::Server;
use frontend::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZE: u64 = 16 << 20;
const SECTORS: u64 = SIZE / 512;

/// A served device, until the bench is dropped.
struct Bench {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    device: Arc<SharedDevice>,
    server: Option<Server>,
}

impl Bench {
    fn new(path: &str, sharing: Sharing) -> Bench {
        let settings = ConvSettings::read(&parse_term(path).unwrap()).unwrap();
        let began = Instant::now();
        let clock = Box::new(move || Time(began.elapsed().as_nanos() as u64));
        let device = SharedDevice::new(Box::new(Conventional::new(&settings, 4096)), sharing, clock).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let mut bench = Bench { _folder: folder, socket, device: Arc::new(device), server: None };
        bench.serve();
        bench
    }

    fn memory() -> Bench {
        Bench::new(&format!("conv:size={SIZE},timing=off"), Sharing::default())
    }

    fn serve(&mut self) {
        let listener = Listener::bind(&Address::Unix(self.socket.clone())).unwrap();
        let server = Server::start(listener, Arc::clone(&self.device), "a disk", Arc::new(|notice| panic!("{notice}")));
        self.server = Some(server.unwrap());
    }

    fn guest(&self, queues: u64) -> Guest {
        Guest::connected(&self.socket, queues)
    }

    fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A place in the guest's memory, bytes and flags.
type Descriptor = (u64, u32, u16);

fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|byte| (byte.wrapping_mul(seed | 1) >> 3 ^ seed) as u8).collect()
}

#[test]
fn a_driver_finds_size_limits_and_name_and_every_kind_of_request_does_what_it_says() {
    let bench = Bench::memory();
    // With all features, without flushes, and without events in the rings and tables of descriptors.
    for unwanted in [0, 1 << F_FLUSH, 1 << F_EVENT_INDEX | 1 << F_INDIRECT] {
        let mut guest = Guest::new(1);
        guest.wanted = !unwanted;
        guest.connect(&bench.socket);
        assert_eq!((guest.sectors(), guest.most_queues), (SECTORS, 32));
        assert!(!guest.offers(5), "it is not read-only");
        assert!([1, 2, 6, 9, 10, 12, 13, 14, 28, 29, 32].into_iter().all(|feature| guest.offers(feature)));
        // Blocks of 512 bytes, eight of them physically one, and 32 queues.
        assert_eq!(guest.configuration[20..28], [0, 2, 0, 0, 3, 0, 8, 0]);
        assert_eq!(guest.configuration[34], 32);
        let queue = &mut guest.queues[0];
        let name = queue.run(GET_ID, 0, &[], 20);
        assert!(name.status == OK && name.data.starts_with(b"flashpath-"), "{name:?}");
        let flushes = bench.device.counts().unwrap().of(Request::Flush).served;
        for (sector, bytes) in [(0, 512), (7, 1024), (9, 4096), (100, 65536), (1001, MOST_DATA)] {
            let data = pattern(sector + unwanted, bytes);
            queue.write(sector, &data);
            assert!(queue.read(sector, bytes) == data, "{bytes} bytes at {sector}");
        }
        assert_eq!(queue.run(FLUSH, 0, &[], 0).status, OK);
        assert_eq!(bench.device.counts().unwrap().of(Request::Flush).served, flushes + 1);
        queue.write(0, &pattern(5, 16384));
        assert_eq!(queue.ranges(DISCARD, &[(0, 8, 0), (16, 8, 0)]), OK);
        assert_eq!(queue.ranges(WRITE_ZEROES, &[(9, 1, 0), (30, 2, 1)]), OK);
        let read = queue.read(0, 16384);
        for (sector, bytes) in read.chunks(512).enumerate() {
            let is_zero = matches!(sector, 0..=7 | 9 | 16..=23 | 30..=31);
            let expected = if is_zero { vec![0; 512] } else { pattern(5, 16384)[sector * 512..][..512].to_vec() };
            assert!(bytes == expected, "sector {sector}");
        }
        let discarded = bench.device.counts().unwrap().of(Request::Discard).bytes;
        assert_eq!(discarded % 8192, 0, "what else reads as zeros was zeroed");
        assert!(discarded > 0);
    }
}

#[test]
fn queues_are_served_at_once_and_each_has_its_own_answers() {
    let bench = Bench::memory();
    let mut guest = bench.guest(4);
    std::thread::scope(|scope| {
        for (number, queue) in (0u64..).zip(&mut guest.queues) {
            scope.spawn(move || {
                for round in 0..200 {
                    let first = number * SECTORS / 4;
                    let data = |place: u64| pattern(round * 100 + place + number, 4096);
                    for place in 0..SLOTS as u64 {
                        queue.submit(WRITE, first + place * 8, &data(place), 0);
                    }
                    (0..SLOTS).for_each(|_| assert_eq!(queue.complete().unwrap().status, OK));
                    let sent = (0..SLOTS as u64).map(|place| (queue.submit(READ, first + place * 8, &[], 4096), place));
                    let sent: std::collections::BTreeMap<usize, u64> = sent.collect();
                    for _ in 0..SLOTS {
                        let answer = queue.complete().unwrap();
                        assert!(answer.status == OK && answer.data == data(sent[&answer.slot]), "{number}, {round}");
                    }
                }
            });
        }
    });
    assert_eq!(bench.device.counts().unwrap().of(Request::Write).served, 4 * 200 * SLOTS as u64);
}

#[test]
fn wrong_requests_get_the_status_that_says_so_and_change_nothing() {
    let bench = Bench::memory();
    let mut guest = bench.guest(1);
    let queue = &mut guest.queues[0];
    let before = pattern(9, 65536);
    queue.write(SECTORS - 128, &before);
    let data = [7; 4096];
    for (kind, sector, data, room, status) in [
        (READ, SECTORS - 7, &[][..], 4096, FAILED),
        (READ, u64::MAX, &[], 4096, FAILED),
        (READ, u64::MAX / 512, &[], 4096, FAILED),
        (READ, 0, &[], 511, FAILED),
        (WRITE, SECTORS - 7, &data, 0, FAILED),
        (WRITE, SECTORS, &data, 0, FAILED),
        (WRITE, SECTORS - 8, &data[..100], 0, FAILED),
        (READ, SECTORS - 8, &data, 0, FAILED),
        (WRITE, SECTORS - 8, &[], 4096, FAILED),
        (2, 0, &[], 0, UNSUPPORTED),
        (14, 0, &data[..16], 0, UNSUPPORTED),
        (u32::MAX, 0, &data, 0, UNSUPPORTED),
        (DISCARD, 0, &[], 0, FAILED),
        (DISCARD, 0, &data[..15], 0, FAILED),
        (DISCARD, 0, &data[..65 * 16], 0, FAILED),
        (READ, SECTORS, &[], 0, OK),
    ] {
        assert_eq!(queue.run(kind, sector, data, room).status, status, "kind {kind} at {sector}");
    }
    let all = (SECTORS - 128, 128, 0);
    for (kind, range, status) in [
        (DISCARD, (SECTORS - 8, 9, 0), FAILED),
        (DISCARD, (u64::MAX, 1, 0), FAILED),
        (DISCARD, (0, (1 << 23) + 1, 0), FAILED),
        (DISCARD, (0, 8, 1), UNSUPPORTED),
        (WRITE_ZEROES, (0, 8, 2), UNSUPPORTED),
        (WRITE_ZEROES, (SECTORS - 8, 9, 1), FAILED),
    ] {
        // The range before it is not changed either.
        assert_eq!(queue.ranges(kind, &[all, range]), status, "kind {kind}, {range:?}");
    }
    assert!(queue.read(SECTORS - 128, 65536) == before);
}

#[test]
fn descriptors_that_lie_are_answered_and_the_queue_goes_on() {
    let bench = Bench::memory();
    let mut guest = bench.guest(2);
    let queue = &mut guest.queues[0];
    let place = queue.slot(31);
    let status = (place + 64, 1, WRITABLE);
    let header = (place, 16, 0);
    let readable = (place + 4096, 4096, 0);
    let room = (place + 4096, 4096, WRITABLE);
    let nowhere = |flags| (1 << 40, 4096, flags);
    // Chains with the status that is to be found, and of those without a place for it, none.
    let chains: [(u32, &[Descriptor], u8); 12] = [
        (WRITE, &[header, readable], UNTOUCHED),
        (READ, &[status], FAILED),
        (READ, &[(place, 8, 0), room, status], FAILED),
        (WRITE, &[header, nowhere(0), status], FAILED),
        (READ, &[header, nowhere(WRITABLE), status], FAILED),
        (READ, &[header, (u64::MAX - 4, 4096, WRITABLE), status], FAILED),
        (WRITE, &[header, room, readable, status], FAILED),
        (READ, &[header, (place + 4096, u32::MAX / 2, WRITABLE), status], FAILED),
        (FLUSH, &[header, nowhere(WRITABLE)], UNTOUCHED),
        (FLUSH, &[header, (place + 4096, 0, WRITABLE)], UNTOUCHED),
        (WRITE, &[(place, 8, 0), (place + 8, 8, 0), (place + 4096, 0, 0), readable, status], OK),
        (FLUSH, &[header, status], OK),
    ];
    for (kind, parts, expected) in chains {
        queue.head(31, kind, 64);
        for (entry, (place, bytes, flags)) in (0u16..).zip(parts) {
            let more = if usize::from(entry) + 1 < parts.len() { NEXT } else { 0 };
            queue.describe(None, 120 + u64::from(entry), *place, *bytes, flags | more, 121 + entry);
        }
        queue.offer(120);
        assert_eq!(queue.next_used().unwrap().0, 120);
        let found: u8 = vm_memory::Bytes::read_obj(&*queue.memory, vm_memory::GuestAddress(place + 64)).unwrap();
        assert_eq!(found, expected, "kind {kind}, {parts:?}");
    }
    // Loops, entries that are not there, and tables in tables, too long, cut off or elsewhere.
    queue.head(31, WRITE, 64);
    let table = place + 8192;
    for (bytes, flags, next, place) in [
        (16, NEXT, 120, place),
        (16, NEXT, 5000, place),
        (16, INDIRECT, 0, 1 << 41),
        (17, INDIRECT, 0, table),
        (0, INDIRECT, 0, table),
        (!15, INDIRECT, 0, table),
        (16, INDIRECT, 0, place),
    ] {
        queue.describe(None, 120, place, bytes, flags, next);
        queue.offer(120);
        assert_eq!(queue.next_used().unwrap(), (120, 0), "{bytes} {flags} {next}");
    }
    queue.write(64, &[3; 4096]);
    assert!(queue.read(64, 4096) == [3; 4096]);
    // A head that no queue has has no answer, and the request after it has one.
    queue.offer(700);
    assert_eq!(queue.run(FLUSH, 0, &[], 0).status, OK);
    // A ring that has gone ahead by more than it holds is given up; the other one is served.
    (0..200).for_each(|_| queue.offer(120));
    assert_eq!(guest.queues[1].run(FLUSH, 0, &[], 0).status, OK);
}

#[test]
fn a_client_that_leaves_in_the_middle_makes_room_for_another() {
    let bench = Bench::memory();
    let mut guest = bench.guest(2);
    for round in 0..12u8 {
        for place in 0..SLOTS as u64 {
            guest.queues[1].submit(WRITE, place * 128, &[round; 65536], 0);
        }
        guest.disconnect();
        let traffic = bench.server.as_ref().unwrap().traffic();
        bench.wait_for("the session ends", || traffic().connected == 0);
        guest = bench.guest(2);
        guest.queues[0].write(0, &[round; 512]);
        assert!(guest.queues[1].read(0, 512) == [round; 512]);
    }
    guest.disconnect();
    let traffic = bench.server.as_ref().unwrap().traffic();
    bench.wait_for("the session ends", || traffic().connected == 0);
    assert_eq!((traffic().accepted, traffic().broken), (13, 0));
    // Bytes that are no message end their connection alone.
    for bytes in [&[0xff; 64][..], &[0; 12], &[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]] {
        std::io::Write::write_all(&mut std::os::unix::net::UnixStream::connect(&bench.socket).unwrap(), bytes).unwrap();
    }
    bench.guest(1).queues[0].write(0, &[1; 512]);
}

#[test]
fn a_stopped_server_has_answered_what_it_took_and_the_next_one_goes_on_in_the_ring() {
    let mut bench = Bench::memory();
    let mut guest = bench.guest(1);
    for round in 0..20u8 {
        let sent = (0..SLOTS as u64).map(|place| guest.queues[0].submit(WRITE, place * 8, &[round; 4096], 0));
        let mut sent: std::collections::BTreeSet<usize> = sent.collect();
        bench.server.take().unwrap().stop();
        while let Ok(answer) = guest.queues[0].complete() {
            assert!(answer.status == OK && sent.remove(&answer.slot));
        }
        bench.serve();
        guest.connect(&bench.socket);
        // The requests that were not taken are answered by the next server, and none is twice.
        for _ in 0..sent.len() {
            let answer = guest.queues[0].complete().unwrap();
            assert!(answer.status == OK && sent.remove(&answer.slot));
        }
        assert!(guest.queues[0].read(31 * 8, 4096) == [round; 4096]);
    }
}

/// A ring that was stopped between two requests had answers of which the guest heard nothing.
#[test]
fn a_ring_that_is_stopped_has_woken_its_guest_for_each_answer() {
    let bench = Bench::memory();
    let mut guest = bench.guest(1);
    let (mut stopped_within, mut available, mut round) = (0, 0u16, 0u64);
    while round < 100 || stopped_within == 0 {
        assert!(round < 5000, "no ring was stopped between two requests");
        round += 1;
        guest.queues[0].arm();
        for place in 0..8 {
            guest.queues[0].submit(WRITE, place * 128, &[1; 65536], 0);
        }
        std::thread::sleep(Duration::from_micros(round % 200 * 2));
        let base = vhost::VhostBackend::get_vring_base(guest.frontend.as_ref().unwrap(), 0).unwrap();
        let (answers, is_woken) = guest.queues[0].woken();
        assert_eq!(u32::from(available.wrapping_add(answers)), base, "all that was taken is answered");
        assert_eq!(answers > 0, is_woken, "{answers} answers");
        stopped_within += u32::from((1..8).contains(&answers));
        guest.disconnect();
        guest.connect(&bench.socket);
        (0..8).for_each(|_| assert_eq!(guest.queues[0].complete().unwrap().status, OK));
        available = available.wrapping_add(8);
    }
}

#[test]
fn a_disk_that_is_served_for_reading_says_so_and_refuses_changes() {
    let sharing = Sharing { read_only: true, ..Sharing::default() };
    let bench = Bench::new(&format!("conv:size={SIZE},timing=off"), sharing);
    let mut guest = bench.guest(1);
    assert!(guest.offers(5) && !guest.offers(13) && !guest.offers(14));
    let queue = &mut guest.queues[0];
    assert_eq!(queue.run(WRITE, 0, &[1; 512], 0).status, FAILED);
    assert_eq!(queue.ranges(DISCARD, &[(0, 8, 0)]), FAILED);
    assert_eq!(queue.ranges(WRITE_ZEROES, &[(0, 8, 0)]), FAILED);
    assert_eq!((queue.read(0, 512), queue.run(FLUSH, 0, &[], 0).status), (vec![0; 512], OK));
}

#[test]
fn paced_answers_come_at_the_time_of_the_device_and_a_ring_stops_when_all_are_given() {
    let path = format!("conv:size={SIZE},read=40ms,write=40ms");
    let bench = Bench::new(&path, Sharing { paced: true, ..Sharing::default() });
    let mut guest = bench.guest(2);
    let began = Instant::now();
    guest.queues[0].write(0, &[1; 4096]);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(35), "{took:?}");
    // The answers are in the ring when the front end has stopped it.
    for place in 0..4 {
        guest.queues[1].submit(WRITE, place * 8, &[2; 4096], 0);
    }
    bench.wait_for("the requests are taken", || bench.device.counts().unwrap().of(Request::Write).served == 5);
    let base = vhost::VhostBackend::get_vring_base(guest.frontend.as_ref().unwrap(), 1).unwrap();
    assert_eq!(base, 4);
    (0..4).for_each(|_| assert_eq!(guest.queues[1].complete().unwrap().status, OK));
}
