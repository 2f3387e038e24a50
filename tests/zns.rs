//! The ZNS drive: every transition of its zones and every error, by the specification's names; its flash, its limits
//! and its timing.

use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::device::{
    Account, DeviceError, Lba, STAMP_BYTES, ZoneError, ZoneKind, ZoneState, ZonedDevice, fill_with_stamp,
};
use flashpath::expression::parse_term;
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use std::cmp::Reverse;

const LABEL: Label = Label::host(Content::Data);
/// Eight zones of 64 blocks, 48 of them writable; pages of four blocks on four planes.
const DRIVE: &str = "zns:size=2M,zone=256K,capacity=192K,channels=2,dies=2,planes=1";
const ZONE: u64 = 64;
const CAPACITY: u64 = 48;

fn settings(text: &str) -> ZnsSettings {
    parse_term(text).and_then(|term| ZnsSettings::read(&term)).unwrap_or_else(|error| panic!("{error}"))
}

fn drive(options: &str) -> Zns {
    Zns::new(&settings(&format!("{DRIVE}{options}")), STAMP_BYTES)
}

fn stamps(first: u32, count: u64) -> Vec<u8> {
    let mut buffer = vec![0; count as usize * STAMP_BYTES];
    for (stamp, block) in (first..).zip(buffer.chunks_exact_mut(STAMP_BYTES)) {
        fill_with_stamp(stamp, block);
    }
    buffer
}

fn write(drive: &mut Zns, zone: u32, from: u64, count: u64) -> Result<Time, ZoneError> {
    let first = Lba(u64::from(zone) * ZONE + from);
    zone_error(drive.write(first, &stamps(first.0 as u32 + 1, count), LABEL, Time::ZERO))
}

fn read(drive: &mut Zns, zone: u32, from: u64, count: u64) -> Result<Vec<u32>, ZoneError> {
    let mut buffer = vec![0xff; count as usize * STAMP_BYTES];
    zone_error(drive.read(Lba(u64::from(zone) * ZONE + from), &mut buffer, Time::ZERO))?;
    Ok(buffer.chunks_exact(STAMP_BYTES).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
}

fn zone_error<T>(answer: Result<T, DeviceError>) -> Result<T, ZoneError> {
    answer.map_err(|error| match error {
        DeviceError::Zone(error) => error,
        other => panic!("no error of a zone: {other}"),
    })
}

fn open(drive: &mut Zns, zone: u32) -> Result<Time, ZoneError> {
    zone_error(drive.open(zone, Time::ZERO))
}

fn close(drive: &mut Zns, zone: u32) -> Result<Time, ZoneError> {
    zone_error(drive.close(zone, Time::ZERO))
}

fn finish(drive: &mut Zns, zone: u32) -> Result<Time, ZoneError> {
    zone_error(drive.finish(zone, Time::ZERO))
}

fn reset(drive: &mut Zns, zone: u32) -> Result<Time, ZoneError> {
    zone_error(drive.reset(zone, Time::ZERO))
}

/// Brings zone 0 of a new drive into `state`, by commands if possible.
fn in_state(state: ZoneState) -> Zns {
    in_state_of(state, "")
}

fn in_state_of(state: ZoneState, options: &str) -> Zns {
    let mut drive = drive(options);
    match state {
        ZoneState::Empty => {}
        ZoneState::ImplicitlyOpen => drop(write(&mut drive, 0, 0, 5).unwrap()),
        ZoneState::ExplicitlyOpen => drop(open(&mut drive, 0).unwrap()),
        ZoneState::Closed => {
            write(&mut drive, 0, 0, 5).unwrap();
            close(&mut drive, 0).unwrap();
        }
        ZoneState::Full => drop(finish(&mut drive, 0).unwrap()),
        ZoneState::ReadOnly | ZoneState::Offline => {
            write(&mut drive, 0, 0, 5).unwrap();
            drive.set_state(0, state).unwrap();
        }
    }
    assert_eq!(drive.zone(0).state, state);
    drive
}

const STATES: [ZoneState; 7] = [
    ZoneState::Empty,
    ZoneState::ImplicitlyOpen,
    ZoneState::ExplicitlyOpen,
    ZoneState::Closed,
    ZoneState::Full,
    ZoneState::ReadOnly,
    ZoneState::Offline,
];

/// The result of a command in each state, in the order of [`STATES`]; `None` is Invalid Zone State Transition.
fn check_command(action: &str, command: fn(&mut Zns, u32) -> Result<Time, ZoneError>, become_: [Option<ZoneState>; 7]) {
    for (state, expected) in STATES.into_iter().zip(become_) {
        let mut drive = in_state(state);
        let answer = command(&mut drive, 0);
        match expected {
            Some(expected) => {
                assert_eq!((answer.is_ok(), drive.zone(0).state), (true, expected), "{action} of {state:?}")
            }
            None => {
                let Err(ZoneError::InvalidTransition { zone: 0, state: reported, .. }) = answer else {
                    panic!("{action} of {state:?}: {answer:?}")
                };
                assert_eq!((reported, drive.zone(0).state), (state, state));
            }
        }
    }
}

#[test]
fn open_makes_writable_zones_explicitly_open() {
    let open_ = Some(ZoneState::ExplicitlyOpen);
    check_command("open", open, [open_, open_, open_, open_, None, None, None]);
}

#[test]
fn close_closes_open_zones() {
    let closed = Some(ZoneState::Closed);
    check_command("close", close, [None, closed, closed, closed, None, None, None]);
}

#[test]
fn finish_makes_writable_zones_full() {
    let full = Some(ZoneState::Full);
    check_command("finish", finish, [full, full, full, full, full, None, None]);
}

#[test]
fn reset_empties_all_zones_except_failed_ones() {
    let empty = Some(ZoneState::Empty);
    check_command("reset", reset, [empty, empty, empty, empty, empty, None, None]);
}

#[test]
fn a_write_opens_its_zone_and_fills_it() {
    let mut drive = drive("");
    write(&mut drive, 2, 0, 1).unwrap();
    assert_eq!((drive.zone(2).state, drive.zone(2).write_pointer), (ZoneState::ImplicitlyOpen, 1));
    close(&mut drive, 2).unwrap();
    write(&mut drive, 2, 1, CAPACITY - 2).unwrap();
    assert_eq!((drive.zone(2).state, drive.zone(2).write_pointer), (ZoneState::ImplicitlyOpen, CAPACITY - 1));
    open(&mut drive, 2).unwrap();
    write(&mut drive, 2, CAPACITY - 1, 1).unwrap();
    assert_eq!((drive.zone(2).state, drive.zone(2).write_pointer), (ZoneState::Full, CAPACITY));
    write(&mut drive, 3, 0, CAPACITY).unwrap();
    assert_eq!(drive.zone(3).state, ZoneState::Full);
}

#[test]
fn a_write_that_no_zone_takes_is_refused_by_the_specifications_name() {
    for state in STATES {
        let mut drive = in_state(state);
        let before = drive.zone(0);
        let written = if state == ZoneState::Full { 0 } else { before.write_pointer };
        let expected = match state {
            ZoneState::Full => ZoneError::IsFull { zone: 0 },
            ZoneState::ReadOnly => ZoneError::IsReadOnly { zone: 0 },
            ZoneState::Offline => ZoneError::IsOffline { zone: 0 },
            _ => {
                let error = ZoneError::InvalidWrite { zone: 0, from: written + 1, write_pointer: written };
                assert_eq!(write(&mut drive, 0, written + 1, 1), Err(error));
                ZoneError::BoundaryError { zone: 0, from: written, end: CAPACITY + 1, capacity: CAPACITY }
            }
        };
        assert_eq!(write(&mut drive, 0, written, CAPACITY + 1 - written), Err(expected), "{state:?}");
        assert_eq!(drive.zone(0), before, "a refused write changes nothing");
        assert_eq!(drive.account().received.total(), drive.account().sent.total());
    }
}

#[test]
fn a_read_of_an_offline_zone_is_refused_and_no_other() {
    for state in STATES {
        let mut drive = in_state(state);
        match state {
            ZoneState::Offline => assert_eq!(read(&mut drive, 0, 0, 8), Err(ZoneError::IsOffline { zone: 0 })),
            ZoneState::Empty | ZoneState::ExplicitlyOpen | ZoneState::Full => {
                assert_eq!(read(&mut drive, 0, 0, 8), Ok(vec![0; 8]));
            }
            _ => assert_eq!(read(&mut drive, 0, 0, 8), Ok(vec![1, 2, 3, 4, 5, 0, 0, 0])),
        }
    }
}

#[test]
fn requests_beyond_their_zone_or_the_drive_are_refused() {
    let mut drive = drive("");
    let error = ZoneError::BoundaryError { zone: 1, from: 60, end: 65, capacity: ZONE };
    assert_eq!(read(&mut drive, 1, 60, 5), Err(error));
    let mut buffer = stamps(0, 2);
    let beyond = drive.read(Lba(8 * ZONE - 1), &mut buffer, Time::ZERO);
    assert!(matches!(beyond, Err(DeviceError::BeyondEnd { first: Lba(511), count: 2, blocks: 512 })), "{beyond:?}");
    assert!(matches!(drive.write(Lba(u64::MAX), &buffer, LABEL, Time::ZERO), Err(DeviceError::BeyondEnd { .. })));
    for command in [ZonedDevice::open, ZonedDevice::close, ZonedDevice::finish, ZonedDevice::reset]
        as [fn(&mut Zns, u32, Time) -> _; 4]
    {
        assert!(matches!(command(&mut drive, 8, Time::ZERO), Err(DeviceError::BeyondEnd { .. })));
    }
    assert!(matches!(drive.set_state(8, ZoneState::Offline), Err(DeviceError::BeyondEnd { .. })));
}

#[test]
fn an_append_goes_to_the_write_pointer() {
    let mut drive = drive("");
    for place in [0, 3, 6] {
        let (first, _) = drive.append(5, &stamps(place + 1, 3), LABEL, Time::ZERO).unwrap();
        assert_eq!(first, Lba(5 * ZONE + u64::from(place)));
    }
    assert_eq!(read(&mut drive, 5, 0, 10).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    finish(&mut drive, 5).unwrap();
    let refused = zone_error(drive.append(5, &stamps(0, 1), LABEL, Time::ZERO));
    assert_eq!(refused.unwrap_err(), ZoneError::IsFull { zone: 5 });
}

#[test]
fn a_rewritten_zone_reads_as_zeros_after_its_write_pointer() {
    let mut drive = drive("");
    write(&mut drive, 0, 0, 20).unwrap();
    reset(&mut drive, 0).unwrap();
    assert_eq!(read(&mut drive, 0, 0, 20).unwrap(), [0; 20]);
    write(&mut drive, 0, 0, 2).unwrap();
    assert_eq!(read(&mut drive, 0, 0, 4).unwrap(), [1, 2, 0, 0]);
    finish(&mut drive, 0).unwrap();
    assert_eq!(read(&mut drive, 0, 0, 4).unwrap(), [1, 2, 0, 0]);
}

#[test]
fn an_implicitly_open_zone_makes_room_and_an_explicitly_open_one_does_not() {
    let mut drive = drive(",max-open=2");
    for zone in [4, 1] {
        write(&mut drive, zone, 0, 1).unwrap();
    }
    write(&mut drive, 2, 0, 1).unwrap();
    let states = |drive: &Zns, zones: [u32; 3]| zones.map(|zone| drive.zone(zone).state);
    use ZoneState::{Closed, ExplicitlyOpen, ImplicitlyOpen};
    assert_eq!(states(&drive, [4, 1, 2]), [Closed, ImplicitlyOpen, ImplicitlyOpen], "the one longest open was closed");
    open(&mut drive, 3).unwrap();
    assert_eq!(states(&drive, [1, 2, 3]), [Closed, ImplicitlyOpen, ExplicitlyOpen]);
    open(&mut drive, 2).unwrap();
    assert_eq!(write(&mut drive, 5, 0, 1), Err(ZoneError::TooManyOpen { zone: 5, limit: 2 }));
    assert_eq!(open(&mut drive, 5), Err(ZoneError::TooManyOpen { zone: 5, limit: 2 }));
    assert_eq!(write(&mut drive, 4, 1, 1), Err(ZoneError::TooManyOpen { zone: 4, limit: 2 }));
    write(&mut drive, 3, 0, CAPACITY).unwrap();
    write(&mut drive, 5, 0, 1).unwrap();
}

#[test]
fn closed_zones_stay_active_and_full_and_empty_ones_do_not() {
    let mut drive = drive(",max-active=3,max-open=2");
    for zone in 0..3 {
        write(&mut drive, zone, 0, 1).unwrap();
    }
    assert_eq!(write(&mut drive, 3, 0, 1), Err(ZoneError::TooManyActive { zone: 3, limit: 3 }));
    assert_eq!(open(&mut drive, 3), Err(ZoneError::TooManyActive { zone: 3, limit: 3 }));
    finish(&mut drive, 0).unwrap();
    write(&mut drive, 3, 0, 1).unwrap();
    reset(&mut drive, 1).unwrap();
    open(&mut drive, 4).unwrap();
    drive.set_state(2, ZoneState::ReadOnly).unwrap();
    write(&mut drive, 5, 0, 1).unwrap();
    assert_eq!(write(&mut drive, 6, 0, 1), Err(ZoneError::TooManyActive { zone: 6, limit: 3 }));
    // Finishing an empty zone takes no resource.
    finish(&mut drive, 6).unwrap();
}

#[test]
fn a_failed_zone_never_recovers() {
    let mut drive = drive("");
    drive.set_state(0, ZoneState::ReadOnly).unwrap();
    drive.set_state(0, ZoneState::Offline).unwrap();
    for state in [ZoneState::ReadOnly, ZoneState::Empty, ZoneState::Full] {
        let refused = zone_error(drive.set_state(0, state)).unwrap_err();
        assert!(matches!(refused, ZoneError::InvalidTransition { zone: 0, state: ZoneState::Offline, .. }));
    }
    assert!(zone_error(drive.set_state(1, ZoneState::Full)).is_err(), "a fault fills no zone");
}

#[test]
fn a_zone_goes_offline_at_its_last_erase() {
    let mut drive = drive(",endurance=2");
    for _ in 0..2 {
        write(&mut drive, 0, 0, 4).unwrap();
        reset(&mut drive, 0).unwrap();
    }
    assert_eq!((drive.zone(0).state, drive.erases(0)), (ZoneState::Offline, 2));
    assert_eq!(write(&mut drive, 0, 0, 4), Err(ZoneError::IsOffline { zone: 0 }));
    assert!(drive.account().events.contains(&("worn_out_zones", 1)));
}

#[test]
fn a_zone_without_a_programmed_page_is_not_erased() {
    let mut drive = drive("");
    write(&mut drive, 0, 0, 3).unwrap();
    reset(&mut drive, 0).unwrap();
    open(&mut drive, 0).unwrap();
    reset(&mut drive, 0).unwrap();
    assert_eq!((drive.erases(0), drive.account().flash.unwrap().erased_blocks), (0, 0));
    write(&mut drive, 0, 0, 4).unwrap();
    reset(&mut drive, 0).unwrap();
    finish(&mut drive, 0).unwrap();
    reset(&mut drive, 0).unwrap();
    assert_eq!((drive.erases(0), drive.account().flash.unwrap().erased_blocks), (2, 8));
}

#[test]
fn conventional_zones_are_written_anywhere_and_not_managed() {
    let mut drive = drive(",conventional=2");
    assert_eq!((drive.zone(1).kind, drive.zone(1).capacity), (ZoneKind::Conventional, ZONE));
    assert_eq!(drive.zone(2).kind, ZoneKind::Sequential);
    for from in [60, 3, 3] {
        write(&mut drive, 1, from, 4).unwrap();
    }
    assert_eq!((drive.zone(1).state, drive.zone(1).write_pointer), (ZoneState::Empty, 0));
    assert_eq!(read(&mut drive, 1, 2, 6).unwrap(), [0, 68, 69, 70, 71, 0]);
    let error = ZoneError::BoundaryError { zone: 1, from: 62, end: 66, capacity: ZONE };
    assert_eq!(write(&mut drive, 1, 62, 4), Err(error));
    for command in [open, close, finish, reset] {
        assert!(matches!(command(&mut drive, 1), Err(ZoneError::InvalidTransition { zone: 1, .. })));
    }
    drive.set_state(1, ZoneState::ReadOnly).unwrap();
    assert_eq!(write(&mut drive, 1, 0, 1), Err(ZoneError::IsReadOnly { zone: 1 }));
    assert_eq!(drive.account().flash.unwrap().programmed_pages, 0);
}

#[test]
fn errors_use_the_specifications_names() {
    let mut drive = drive(",max-active=1,max-open=1");
    write(&mut drive, 0, 0, 1).unwrap();
    let message_of = |answer: Result<Time, ZoneError>| answer.unwrap_err().to_string();
    for (message, name) in [
        (message_of(write(&mut drive, 0, 9, 1)), "zone invalid write: at block 9 of zone 0, whose write pointer is 1"),
        (message_of(write(&mut drive, 0, 1, 60)), "zone boundary error: blocks 1 to 61 of zone 0"),
        (message_of(write(&mut drive, 1, 0, 1)), "too many active zones: zone 1"),
        (message_of(close(&mut drive, 1)), "invalid zone state transition: cannot close zone 1, which is empty"),
    ] {
        assert!(message.starts_with(name), "{message}");
    }
}

/// The flash's account: every written block is in a programmed page, in the buffer, or was dropped from it.
#[test]
fn every_page_is_accounted_for() {
    for page in ["2K", "4K", "8K", "16K"] {
        let mut drive = drive(&format!(",page={page}"));
        for (zone, blocks) in [(0, 7), (1, CAPACITY), (2, 13), (3, 1)] {
            for from in 0..blocks {
                write(&mut drive, zone, from, 1).unwrap();
            }
        }
        reset(&mut drive, 0).unwrap();
        reset(&mut drive, 1).unwrap();
        finish(&mut drive, 2).unwrap();
        let account = drive.account();
        let flash = account.flash.unwrap();
        let event = |name: &str| account.events.iter().find(|event| event.0 == name).unwrap().1;
        let blocks_of_pages = |pages: u64| pages * flash.page_bytes / BLOCK_BYTES;
        let in_buffer = if page == "2K" || page == "4K" { 0 } else { 1 };
        let written = account.received.total() + event("padded_blocks") - event("dropped_blocks") - in_buffer;
        assert_eq!(blocks_of_pages(flash.programmed_pages), written, "{page}");
        assert_eq!(event("padded_blocks"), CAPACITY - 13);
        let of_erased = flash.erased_blocks * flash.pages_per_block - event("erased_unprogrammed_pages");
        let still_there = blocks_of_pages(flash.programmed_pages - of_erased);
        assert_eq!(still_there, CAPACITY + 1 - in_buffer, "{page}: zone 2, and the rest of zone 3");
        assert_eq!(flash.erase_counts, [1, 1, 0, 0, 0, 0, 0, 0]);
    }
}

/// Sequential 4 KiB writes of `bytes`, each issued after the previous answer; returns bytes per second.
fn sequential_write_bandwidth(drive: &mut Zns, bytes: u64) -> f64 {
    let (zone_blocks, mut now) = (drive.shape().zone_blocks, Time::ZERO);
    for block in 0..bytes / BLOCK_BYTES {
        let (zone, within) = (block / zone_blocks, block % zone_blocks);
        now = drive.write(Lba(zone * zone_blocks + within), &[1; STAMP_BYTES], LABEL, now).unwrap();
    }
    bytes as f64 / now.seconds()
}

#[test]
fn sequential_writes_are_as_fast_as_channels_and_planes_allow() {
    let (page, transfer, program) = (16384.0, 36e-6, 187e-6);
    for (channels, dies, planes) in [(1, 1, 1), (1, 2, 2), (4, 2, 2), (2, 8, 2), (8, 4, 2)] {
        let text = format!("zns:size=1G,zone=64M,channels={channels},dies={dies},planes={planes}");
        let mut drive = Zns::new(&settings(&text), STAMP_BYTES);
        let buses = f64::from(channels) * page / transfer;
        let arrays = f64::from(channels * dies * planes) * page / (transfer + program);
        let expected = f64::min(buses, arrays);
        let measured = sequential_write_bandwidth(&mut drive, 512 << 20);
        assert!((measured / expected - 1.0).abs() < 0.01, "{text}: {measured:.3e} instead of {expected:.3e}");
    }
}

#[test]
fn operations_take_the_time_of_their_planes() {
    let mut drive = drive(",read=10us,program=100us,erase=1ms,transfer=1us");
    let mut buffer = stamps(0, 4);
    let at = |drive: &mut Zns, first: u64, blocks: u64, at: u64| {
        drive.write(Lba(first), &stamps(1, blocks), LABEL, Time(at)).unwrap()
    };
    assert_eq!(at(&mut drive, 0, 3, 5), Time(5), "three quarters of a page stay in the buffer");
    assert_eq!(drive.read(Lba(0), &mut buffer[..8], Time(5)).unwrap(), Time(5), "and are read from there");
    assert_eq!(at(&mut drive, 3, 1, 5), Time(5), "a full page does, too");
    assert_eq!(drive.read(Lba(0), &mut buffer, Time(5)).unwrap(), Time(112_005), "but is read from its plane");
    assert_eq!(at(&mut drive, 4, 16, 5), Time(1005), "the buffer has a place for each of the four planes");
    assert_eq!(drive.reset(0, Time(1_000_000)).unwrap(), Time(2_000_000));
}

/// Times of a page of 8 KiB: 99.9 us to read and transfer, 774.9 us to transfer and program.
const SLOW: &str = "page=8K,read=75us,program=750us,erase=3800us,transfer=24900ns";

/// A read of a busy die holds the channel only while it transfers. It once held it while it waited, and the read of the idle die
/// beside it took 790 us.
#[test]
fn a_read_that_waits_for_its_die_leaves_the_channel_to_others() {
    let mut drive =
        Zns::new(&settings(&format!("zns:size=2M,zone=256K,channels=1,dies=2,planes=1,{SLOW}")), STAMP_BYTES);
    let mut write = |first: u64, blocks: u64, at: u64| {
        drive.write(Lba(first), &stamps(1, blocks), LABEL, Time(at)).unwrap();
    };
    write(0, 4, 0);
    write(4, 2, 5_000_000);
    let mut read = |first: u64, at: u64| drive.read(Lba(first), &mut [0; 2 * STAMP_BYTES], Time(at)).unwrap().0;
    assert_eq!(read(0, 5_100_000), 5_874_800, "after the program of the same die");
    assert_eq!(read(2, 5_110_000), 5_209_900, "of the idle die");
}

/// A closed loop of reads of random pages, and of appends to a zone, reaches the bound of channel and dies. While waiting operations
/// held the channel, reads and writes in these shares reached a third of it.
#[test]
fn a_closed_loop_reaches_what_the_channel_and_the_dies_allow() {
    let (read_us, program_us, transfer_us) = (75.0, 750.0, 24.9);
    for (reads, least) in [(100, 0.95), (90, 0.88), (70, 0.9)] {
        let mut drive =
            Zns::new(&settings(&format!("zns:size=64M,zone=8M,channels=1,dies=8,planes=1,{SLOW}")), STAMP_BYTES);
        let zone = drive.shape().zone_blocks;
        let mut now = Time::ZERO;
        for page in 0..zone / 2 {
            now = drive.write(Lba(page * 2), &stamps(1, 2), LABEL, now).unwrap();
        }
        let (begin, requests) = (now + 10_000_000, 4000);
        let mut random = Random::new(1, "zones");
        let mut ends = std::collections::BinaryHeap::from(vec![Reverse(begin); 32]);
        let (mut next, mut last) = (0, begin);
        for _ in 0..requests {
            let Reverse(at) = ends.pop().unwrap();
            let done = if random.below(100) < reads {
                let page = random.below(zone / 2);
                drive.read(Lba(page * 2), &mut [0; 2 * STAMP_BYTES], at).unwrap()
            } else {
                next += 1;
                drive.write(Lba(zone + next * 2 - 2), &stamps(1, 2), LABEL, at).unwrap()
            };
            last = last.max(done);
            ends.push(Reverse(done));
        }
        let (read, written) = (f64::from(requests) - next as f64, next as f64);
        let dies = (read * (read_us + transfer_us) + written * (transfer_us + program_us)) / 8.0;
        let bound = f64::max(f64::from(requests) * transfer_us, dies);
        let share = bound / (last.since_ns(begin) as f64 / 1e3);
        println!("{reads} % reads: {share:.3} of the bound");
        assert!((least..=1.02).contains(&share), "{reads} % reads: {share:.3} of the bound");
    }
}

#[test]
fn a_drive_without_time_counts_the_same() {
    let counts = |options: &str| {
        let mut drive = drive(options);
        for zone in [0, 5] {
            for from in 0..CAPACITY {
                let now = write(&mut drive, zone, from, 1).unwrap();
                assert!(options.is_empty() || now == Time::ZERO);
            }
        }
        read(&mut drive, 0, 3, 20).unwrap();
        reset(&mut drive, 0).unwrap();
        finish(&mut drive, 1).unwrap();
        let account = drive.account();
        (account.flash, account.events, account.received, account.read_blocks)
    };
    assert_eq!(counts(""), counts(",timing=off"));
}

#[test]
fn options_that_do_not_go_together_are_pointed_at() {
    for (text, pointed, message) in [
        ("zns:size=100M", "100M", "take 64M or 128M"),
        ("zns:zone=48M,size=96M", "48M", "a power of two"),
        ("zns:zone=4M,size=16M,capacity=5M", "5M", "at most the zone's 4M"),
        ("zns:zone=4M,size=16M,capacity=4K", "4K", "in pages of 16K"),
        ("zns:zone=8K,size=16M", "zns", "in pages of 16K"),
        ("zns:size=16T,zone=4M", "16T", "1 to 1048576 zones"),
        ("zns:max-open=5,max-active=4", "5", "at most max-active, 4"),
        ("zns:conventional=65", "65", "at most all 64 zones"),
        ("zns:device=b,timing=off", "off", "leave it out"),
        ("zns:pages-per-block=64", "pages-per-block", "zns takes"),
    ] {
        let error = parse_term(text).and_then(|term| ZnsSettings::read(&term)).map(drop).unwrap_err();
        assert_eq!(&text[error.span.clone()], pointed, "{error}");
        assert!(error.help.contains(message), "{error}");
    }
    assert!(settings("zns:preset=ssd-h").written_out.contains("channels=8,dies=2"), "a preset gives the flash");
    assert!(settings("zns:preset=tlc,timing=off").written_out.contains("size=4G,zone=64M"), "and not the zones");
}

/// Areas of eight blocks, of which the write pointer passes two at a time.
const AREAS: &str = ",zrwa=32K,zrwa-flush=8K,max-zrwa=2";

fn open_with_area(drive: &mut Zns, zone: u32) -> Result<Time, ZoneError> {
    zone_error(drive.open_with_area(zone, Time::ZERO))
}

fn flush_area(drive: &mut Zns, zone: u32, end: u64) -> Result<Time, ZoneError> {
    zone_error(drive.flush_area(zone, end, Time::ZERO))
}

fn write_stamps(drive: &mut Zns, from: u64, first: u32, count: u64) -> Result<Time, ZoneError> {
    zone_error(drive.write(Lba(from), &stamps(first, count), LABEL, Time::ZERO))
}

/// Each block that an area received was passed on, joined or dropped, or is in it; and all blocks that the drive sent went to
/// pages, or wait for them.
fn check_areas(account: &Account) {
    let buffer = account.buffer.as_ref().expect("a drive with areas has a buffer");
    let [received, came] = buffer.sides();
    assert_eq!(received, came);
    let flash = account.flash.as_ref().unwrap();
    let of = |name: &str| account.events.iter().find(|(event, _)| *event == name).unwrap().1;
    let in_pages = account.sent.total() + of("padded_blocks") - of("dropped_blocks");
    let programmed = flash.programmed_pages * flash.page_bytes / BLOCK_BYTES;
    assert!(programmed <= in_pages && in_pages - programmed < 4 * 8, "{programmed} of {in_pages}");
}

#[test]
fn a_random_write_area_is_written_in_any_order_and_again() {
    let mut drive = drive(AREAS);
    open_with_area(&mut drive, 0).unwrap();
    let zone = drive.zone(0);
    assert!(zone.has_area && zone.state == ZoneState::ExplicitlyOpen && zone.write_pointer == 0);
    for (from, first) in [(6, 60), (0, 10), (6, 61), (2, 30), (0, 11)] {
        write_stamps(&mut drive, from, first, 1).unwrap();
    }
    assert_eq!(read(&mut drive, 0, 0, 10).unwrap(), [11, 0, 30, 0, 0, 0, 61, 0, 0, 0]);
    assert_eq!((drive.zone(0).write_pointer, drive.account().sent.total()), (0, 0), "nothing is on flash");
    let account = drive.account();
    let buffer = account.buffer.as_ref().unwrap();
    assert_eq!((account.received.total(), buffer.joined.total(), buffer.held.total()), (5, 2, 3));
    // A write behind the area moves the pointer as far as it must, in steps of the granularity.
    write_stamps(&mut drive, 8, 80, 1).unwrap();
    assert_eq!(drive.zone(0).write_pointer, 2);
    assert_eq!(write_stamps(&mut drive, 1, 9, 1), Err(ZoneError::InvalidWrite { zone: 0, from: 1, write_pointer: 2 }));
    write_stamps(&mut drive, 15, 150, 3).unwrap();
    assert_eq!(drive.zone(0).write_pointer, 10);
    assert_eq!(read(&mut drive, 0, 0, 18).unwrap(), [11, 0, 30, 0, 0, 0, 61, 0, 80, 0, 0, 0, 0, 0, 0, 150, 151, 152]);
    // Six of the ten blocks that were passed had never been written.
    let account = drive.account();
    assert_eq!((account.sent.total(), account.sent.of_cause(flashpath::label::Cause::Padding)), (10, 6));
    check_areas(&account);
}

#[test]
fn writes_to_an_area_end_at_twice_its_size_and_at_the_capacity() {
    let mut drive = drive(AREAS);
    open_with_area(&mut drive, 0).unwrap();
    let invalid = |from| Err(ZoneError::InvalidWrite { zone: 0, from, write_pointer: 0 });
    assert_eq!(write(&mut drive, 0, 16, 1), invalid(16));
    assert_eq!(write(&mut drive, 0, 10, 7), invalid(10));
    write(&mut drive, 0, 0, 16).unwrap();
    assert_eq!(drive.zone(0).write_pointer, 8);
    flush_area(&mut drive, 0, 16).unwrap();
    write(&mut drive, 0, 16, 16).unwrap();
    write(&mut drive, 0, 32, 8).unwrap();
    write(&mut drive, 0, 47, 1).unwrap();
    let boundary = ZoneError::BoundaryError { zone: 0, from: 46, end: 49, capacity: CAPACITY };
    assert_eq!(write(&mut drive, 0, 46, 3), Err(boundary));
    assert_eq!((drive.zone(0).write_pointer, drive.zone(0).state), (40, ZoneState::ExplicitlyOpen));
    flush_area(&mut drive, 0, CAPACITY).unwrap();
    assert_eq!((drive.zone(0).state, drive.zone(0).has_area), (ZoneState::Full, false));
    assert_eq!(read(&mut drive, 0, 40, 8).unwrap(), [0, 0, 0, 0, 0, 0, 0, 48]);
    check_areas(&drive.account());
}

#[test]
fn an_area_is_flushed_within_it_and_by_its_granularity() {
    let mut drive = drive(AREAS);
    let refused = |answer: Result<Time, ZoneError>| matches!(answer, Err(ZoneError::InvalidOperation { zone: 0, .. }));
    assert!(refused(flush_area(&mut drive, 0, 2)), "the zone has no area");
    open_with_area(&mut drive, 0).unwrap();
    for end in [0, 1, 3, 9, 10, ZONE] {
        assert!(refused(flush_area(&mut drive, 0, end)), "to {end}");
    }
    let append = zone_error(drive.append(0, &stamps(1, 1), LABEL, Time::ZERO));
    assert!(matches!(append, Err(ZoneError::InvalidOperation { zone: 0, .. })), "appends have no place in an area");
    write(&mut drive, 0, 0, 4).unwrap();
    close(&mut drive, 0).unwrap();
    assert!(drive.zone(0).has_area);
    flush_area(&mut drive, 0, 4).unwrap();
    assert_eq!((drive.zone(0).write_pointer, drive.zone(0).state), (4, ZoneState::ImplicitlyOpen));
    assert!(refused(flush_area(&mut drive, 0, 4)), "there is nothing to pass");
    let mut without = self::drive("");
    assert!(refused(open_with_area(&mut without, 0)) && refused(flush_area(&mut without, 0, 2)));
    assert!(without.account().buffer.is_none());
}

#[test]
fn only_an_empty_zone_gets_an_area() {
    for state in STATES {
        let mut drive = in_state_of(state, AREAS);
        let answer = open_with_area(&mut drive, 0);
        match state {
            ZoneState::Empty => {
                assert!(answer.is_ok() && drive.zone(0).state == ZoneState::ExplicitlyOpen);
            }
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => {
                assert!(matches!(answer, Err(ZoneError::InvalidOperation { .. })), "{state:?}: {answer:?}");
            }
            _ => assert!(matches!(answer, Err(ZoneError::InvalidTransition { .. })), "{state:?}: {answer:?}"),
        }
        assert_eq!(drive.zone(0).has_area, state == ZoneState::Empty);
    }
}

#[test]
fn areas_are_limited_and_end_with_full_reset_and_failed_zones() {
    let ends: [fn(&mut Zns) -> bool; 4] = [
        |drive| finish(drive, 1).is_ok(),
        |drive| reset(drive, 1).is_ok(),
        |drive| drive.set_state(1, ZoneState::ReadOnly).is_ok(),
        |drive| drive.set_state(1, ZoneState::Offline).is_ok(),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut drive = drive(AREAS);
        open_with_area(&mut drive, 1).unwrap();
        open_with_area(&mut drive, 2).unwrap();
        write(&mut drive, 1, 3, 2).unwrap();
        assert_eq!(open_with_area(&mut drive, 3), Err(ZoneError::NoAreaLeft { zone: 3, limit: 2 }));
        assert!(end(&mut drive) && !drive.zone(1).has_area);
        open_with_area(&mut drive, 3).unwrap();
        check_areas(&drive.account());
        let first = ZONE as u32 + 4;
        match number {
            0 | 2 => assert_eq!(read(&mut drive, 1, 0, 6).unwrap(), [0, 0, 0, first, first + 1, 0]),
            1 => assert_eq!(read(&mut drive, 1, 0, 6).unwrap(), [0; 6]),
            _ => assert_eq!(drive.account().buffer.unwrap().dropped.total(), 2),
        }
    }
    let mut drive = drive(&format!("{AREAS},max-active=3").replace("max-zrwa=2", "max-zrwa=0"));
    assert_eq!(drive.shape().areas.unwrap().count, 3, "as many as can be active");
    assert!((0..3).all(|zone| open_with_area(&mut drive, zone).is_ok()));
    assert_eq!(open_with_area(&mut drive, 3), Err(ZoneError::TooManyActive { zone: 3, limit: 3 }));
}

/// Overwrites of one block cost one page of flash at most, and an area takes them at once.
#[test]
fn overwrites_in_an_area_are_joined_before_the_flash() {
    let mut drive = drive(AREAS);
    open_with_area(&mut drive, 0).unwrap();
    let mut last = Time::ZERO;
    for round in 0..100 {
        last = drive.write(Lba(0), &stamps(round + 1, 8), LABEL, last).unwrap();
    }
    assert_eq!(last, Time::ZERO, "an area takes blocks at once");
    flush_area(&mut drive, 0, 8).unwrap();
    let account = drive.account();
    assert_eq!((account.received.total(), account.sent.total()), (800, 8));
    assert_eq!(account.flash.as_ref().unwrap().programmed_pages, 2);
    assert_eq!(account.buffer.as_ref().unwrap().joined.total(), 792);
    check_areas(&account);
}

#[test]
fn areas_that_no_drive_has_are_pointed_at() {
    for (options, message) in [
        (",zrwa=6K", "a zrwa of 6K is not made of blocks of 4K"),
        (",zrwa=196K", "zrwa cannot be 196K"),
        (",zrwa=32K,zrwa-flush=12K", "zrwa-flush cannot be 12K"),
        (",zrwa=8K", "zrwa-flush cannot be 16K"),
    ] {
        let error = parse_term(&format!("{DRIVE}{options}")).and_then(|term| ZnsSettings::read(&term)).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}
