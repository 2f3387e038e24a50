//! Guests that send wrong messages, or none: they are cut off, and a guest beside them is not disturbed.

use super::{BLOCKS, Bench, Random, WIDTH, Writer, child, damaged, volume};
use crate::arena::Arena;
use crate::event::Event;
use crate::guest::Guest;
use crate::ring::{ENTRIES, RING, Ring, Tuple};
use crate::shared::Shared;
use crate::slots::End;
use crate::socket::{address, socket};
use crate::userfault::Userfault;
use crate::wire::{Answer, Begin, Commit, Protection, Request, VERSION, Wire};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::connect;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// A message, and the reason of its refusal.
const LIES: &[(&str, &str)] = &[
    ("another version", "speaks version 77"),
    ("no version", "a guest begins with its version"),
    ("twice", "began twice"),
    ("noise", "a message cannot be read"),
    ("a long message", "longer than"),
    ("a reclaim before the volume", "has not begun a volume"),
    ("a commit before the volume", "has not begun a volume"),
    ("another's volume", "is mounted by process"),
    ("two volumes", "has one volume"),
    ("no descriptors", "a descriptor is missing"),
    ("memory that can change", "seals"),
    ("shorter memory", "was passed as one of"),
    ("a device as memory", "seals"),
    ("no userfaultfd", "cannot protect the guest's memory"),
    ("frames elsewhere", "cannot protect the guest's memory"),
    ("wide blocks", "blocks of 8192 bytes"),
    ("two begins", "has begun already"),
    ("a block outside", "there are 2000 blocks"),
    ("a frame outside", "64 frames"),
    ("a frame without number", "in no frame"),
    ("a block twice", "is twice in transaction"),
    ("a frame twice", "is twice in transaction"),
    ("a frame of another block", "which is kept for another block"),
    ("another transaction", "1 is the next"),
    ("a freed block outside", "were freed"),
    ("a place outside of the ring", "of a ring"),
    ("more than the ring", "of a ring"),
    ("a commit without end", "has no end"),
    ("an end before all is home", "are not home"),
    ("noise in a slot", "a message cannot be read"),
    ("a block outside, without the bell", "there are 2000 blocks"),
];

/// A connection that sends any message.
struct Liar(Wire);

impl Liar {
    fn connect(path: &Path) -> Liar {
        let socket = socket().unwrap();
        connect(&socket, &address(path).unwrap()).unwrap();
        let wire = Wire::of(socket);
        wire.set_patience(Some(Duration::from_secs(60)), Some(Duration::from_secs(60))).unwrap();
        Liar(wire)
    }

    /// The answer; none when it is cut off.
    fn say(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> Option<Answer> {
        self.0.send(request, descriptors).ok()?;
        self.0.receive().ok()?.map(|(answer, _)| answer)
    }

    fn greet(path: &Path) -> Liar {
        let liar = Self::connect(path);
        assert!(matches!(liar.say(&Request::Hello { version: VERSION }, &[]), Some(Answer::Welcome { .. })));
        liar
    }
}

fn uuid(seed: u64) -> [u8; 16] {
    volume(seed, Path::new("")).uuid
}

/// The volume of the guest beside the liars.
const HONEST: u64 = 999;

fn begin(arena: &Arena, seed: u64) -> Begin {
    Begin {
        volume: uuid(seed),
        name: u128::from(std::process::id()).to_le_bytes(),
        blocks: BLOCKS,
        width: WIDTH as u32,
        first: 1,
        frames: arena.frames(),
        start: arena.mapping().start(),
        protection: Protection::Monitor,
        path: "a path".to_string(),
        directory: "/".to_string(),
    }
}

fn committed(at: u32, tuples: usize, ranges: usize) -> Request {
    let (tuples, ranges) = (tuples as u32, ranges as u32);
    Request::Commit(Commit { number: 1, at, tuples, ranges, is_last: true, processor: u32::MAX })
}

/// Says something that is refused.
pub fn say(lie: &str, path: &Path, seed: u64) {
    let lie = lie.replace('_', " ");
    let hello = |version| Request::Hello { version };
    match &lie[..] {
        "another version" => drop(Liar::connect(path).say(&hello(77), &[])),
        "no version" => drop(Liar::connect(path).say(&Request::End, &[])),
        "twice" => drop(Liar::greet(path).say(&hello(VERSION), &[])),
        "noise" | "a long message" => {
            let (liar, mut random) = (Liar::greet(path), Random(5));
            let length = if lie == "noise" { 100 } else { 20_000 };
            let noise: Vec<u8> = (0..length).map(|_| random.next() as u8 | 0x40).collect();
            rustix::io::write(liar.0.socket(), &noise).unwrap();
            let _ = liar.0.receive::<Answer>();
        }
        "a reclaim before the volume" => drop(Liar::greet(path).say(&Request::Reclaim, &[])),
        "a commit before the volume" => drop(Liar::greet(path).say(&committed(0, 0, 0), &[])),
        "another's volume" => drop(Liar::greet(path).say(&Request::Claim { volume: uuid(HONEST) }, &[])),
        "two volumes" => {
            let liar = Liar::greet(path);
            liar.say(&Request::Claim { volume: uuid(seed) }, &[]);
            liar.say(&Request::Claim { volume: uuid(seed + 500) }, &[]);
        }
        _ => lie_about_memory(&lie, &Liar::greet(path), seed),
    }
}

fn lie_about_memory(lie: &str, liar: &Liar, seed: u64) {
    let (arena, memory) = Arena::new(64).unwrap();
    let (mut ring, ring_memory) = Ring::new().unwrap();
    let userfault = Userfault::new(arena.mapping().start(), arena.mapping().bytes()).unwrap();
    let mut start = begin(&arena, seed);
    let open = Shared::new("open", start.frames as u64 * 4096).unwrap();
    let device = File::open("/dev/null").unwrap();
    match lie {
        "frames elsewhere" => start.start = 1 << 30,
        "wide blocks" => start.width = 8192,
        "shorter memory" => start.frames += 1,
        _ => {}
    }
    let descriptors = || {
        let memory = match lie {
            "memory that can change" => open.descriptor().as_fd().try_clone_to_owned().unwrap(),
            "a device as memory" => device.try_clone().unwrap().into(),
            _ => memory.descriptor().as_fd().try_clone_to_owned().unwrap(),
        };
        let tuples = ring_memory.descriptor().as_fd().try_clone_to_owned().unwrap();
        let faults = match lie {
            "no userfaultfd" => device.try_clone().unwrap().into(),
            _ => userfault.as_fd().try_clone_to_owned().unwrap(),
        };
        let mut all = vec![memory, tuples, faults];
        all.truncate(if lie == "no descriptors" { 0 } else { 3 });
        all
    };
    let passed = descriptors();
    let passed: Vec<BorrowedFd<'_>> = passed.iter().map(AsFd::as_fd).collect();
    if !matches!(liar.say(&Request::Begin(start.clone()), &passed), Some(Answer::Done)) {
        return;
    }
    if lie == "two begins" {
        return drop(liar.say(&Request::Begin(start), &passed));
    }
    let slots = ring.slots(End::Guest, Some(Duration::from_secs(60)));
    match lie {
        "noise in a slot" => {
            slots.put(&[0x7F; 40]);
            let _ = liar.0.receive::<Answer>();
        }
        // The monitor looks at the socket from time to time.
        "a block outside, without the bell" => lie_about_commits("a block outside", liar, &mut ring),
        _ => {
            liar.0.use_slots(Some(slots));
            lie_about_commits(lie, liar, &mut ring);
        }
    }
}

#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
fn lie_about_commits(lie: &str, liar: &Liar, ring: &mut Ring) {
    let mut commit = |tuples: &[Tuple], ranges: &[std::ops::Range<u64>], change: &dyn Fn(&mut Commit)| {
        let at = ring.put(tuples, ranges);
        let Request::Commit(mut commit) = committed(at, tuples.len(), ranges.len()) else { unreachable!() };
        change(&mut commit);
        liar.say(&Request::Commit(commit), &[])
    };
    let as_it_is = |_: &mut Commit| {};
    match lie {
        "a block outside" => drop(commit(&[(BLOCKS, 1)], &[], &as_it_is)),
        "a frame outside" => drop(commit(&[(1, 64)], &[], &as_it_is)),
        "a frame without number" => {
            // A range is as long as a tuple.
            let wide = 7..1 << 40;
            commit(&[], &[wide], &|commit| (commit.tuples, commit.ranges) = (1, 0));
        }
        "a block twice" => drop(commit(&[(1, 1), (1, 2)], &[], &as_it_is)),
        "a frame twice" => drop(commit(&[(1, 1), (2, 1)], &[], &as_it_is)),
        "a frame of another block" => {
            commit(&[(1, 1)], &[], &as_it_is);
            commit(&[(2, 1)], &[], &|commit| commit.number = 2);
        }
        "another transaction" => drop(commit(&[(1, 1)], &[], &|commit| commit.number = 7)),
        "a freed block outside" => drop(commit(&[], &[5..BLOCKS + 1], &as_it_is)),
        "a place outside of the ring" => drop(commit(&[(1, 1)], &[], &|commit| commit.at = RING as u32)),
        "more than the ring" => drop(commit(&[(1, 1)], &[], &|commit| commit.tuples = u32::MAX)),
        "a commit without end" => {
            let many: Vec<Tuple> = (0..ENTRIES as u64).map(|block| (block, 1)).collect();
            while commit(&many, &[], &|commit| commit.is_last = false).is_some_and(|said| matches!(said, Answer::Done))
            {
            }
        }
        "an end before all is home" => {
            commit(&[(1, 1)], &[], &as_it_is);
            liar.say(&Request::End, &[]);
        }
        other => panic!("{other} is no lie"),
    }
}

#[test]
fn guests_that_say_what_cannot_be_right_are_cut_off_and_others_are_not_disturbed() {
    // The commits of the others are kept, and never written home.
    let bench = Bench::with(|_| Box::new(|_| Ok(())));
    let image = bench.image(HONEST);
    let mut honest = Writer::begin(&bench.socket(), &image, HONEST, Protection::Monitor);
    for (seed, (lie, why)) in LIES.iter().enumerate() {
        honest.commit().unwrap();
        let before = bench.heard(|event| matches!(event, Event::Refused { .. }));
        let mut liar = child("hostile", &[&lie.replace(' ', "_"), bench.socket().to_str().unwrap(), &seed.to_string()]);
        let process = liar.id() as i32;
        let ended = liar.wait().unwrap();
        let said = bench.wait(lie, |event| match event {
            Event::Refused { process: refused, why } if *refused == process => Some(why.clone()),
            _ => None,
        });
        assert!(said.contains(why), "{lie}: {said}");
        assert_eq!(bench.heard(|event| matches!(event, Event::Refused { .. })), before + 1, "{lie}: once");
        // A guest that had begun is killed: it might write to its volume.
        assert!(ended.success() || ended.to_string().contains("signal: 9"), "{lie}: {ended}");
        honest.commit().unwrap();
    }
    let last = honest.number;
    honest.end();
    assert!(damaged(&image, HONEST, last).is_empty(), "all of the guest beside them is home");
}

/// It takes ten seconds until they are cut off.
#[test]
fn guests_that_say_nothing_are_cut_off_at_the_start_and_may_be_silent_later() {
    let bench = Bench::new();
    let silent = Liar::connect(&bench.socket());
    let quiet = Guest::connect(&bench.socket()).unwrap();
    let refused = || bench.heard(|event| matches!(event, Event::Refused { .. }));
    bench.wait("the silent one is cut off", |event| match event {
        Event::Refused { why, .. } => why.contains("has sent nothing for too long").then_some(()),
        _ => None,
    });
    let _ = silent.0.receive::<Answer>();
    assert!(quiet.kept(uuid(1)).unwrap().is_none(), "one who has said who it is may think");
    assert_eq!(refused(), 1);
}
