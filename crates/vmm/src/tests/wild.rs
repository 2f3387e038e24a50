//! Guests that write to committed memory: each such write is impossible, or is detected before it is done, and what was
//! committed is written home as it was. Beside it the same writes without protection.

use super::{Bench, Random, Writer, child, damaged, read_to_end, rounds};
use crate::arena::FRAME_BYTES;
use crate::event::Event;
use crate::wire::Protection;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mremap};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The ways to write.
const WAYS: [&str; 7] = ["store", "kernel", "memory-file", "forked", "second-mapping", "pwrite", "doubled-mapping"];
/// Transactions before the write.
const TRANSACTIONS: u32 = 5;

fn protection(name: &str) -> Protection {
    match name {
        "monitor" => Protection::Monitor,
        "guest" => Protection::Guest,
        _ => Protection::Nothing,
    }
}

/// A guest that commits, and writes to one of its frames then. Says "written", or "impossible: ERROR"; or dies.
pub fn write_wildly(words: &[&str]) {
    let &[socket, image, seed, way, protected] = words else { panic!("{words:?}") };
    let seed = seed.parse().unwrap();
    let mut writer = Writer::begin(Path::new(socket), Path::new(image), seed, protection(protected));
    (0..TRANSACTIONS).for_each(|_| writer.commit().unwrap());
    let mut random = Random(seed ^ 0x5711D);
    let mut blocks: Vec<u64> = writer.cache.keys().copied().collect();
    blocks.sort_unstable();
    let block = blocks[random.below(blocks.len() as u64) as usize];
    let frame = &writer.cache[&block];
    let offset = random.below(FRAME_BYTES as u64 - 16) as usize;
    println!("\nblock {block}");
    let start = writer.arena.mapping().start();
    let place = (frame.bytes().as_ptr() as usize + offset) as *mut u8;
    let bytes = random.next().to_le_bytes();
    match write(way, place, place as u64 - start, (start, writer.arena.mapping().bytes()), bytes) {
        Ok(()) => {
            println!("\nwritten");
            // As one that is killed: the monitor's memory counts.
            std::process::abort();
        }
        Err(error) => {
            println!("\nimpossible: {error}");
            writer.end();
        }
    }
}

#[allow(unsafe_code, reason = "these are the writes that no safe code makes")]
fn store(place: *mut u8, bytes: [u8; 8]) {
    // SAFETY: there is none. A frame of this process is written behind the back of its owner, which is not used afterwards.
    unsafe { place.cast::<[u8; 8]>().write_unaligned(bytes) }
}

/// The file that is mapped at a place: the memory file of the arena.
fn mapped_file((start, bytes): (u64, u64)) -> std::io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/self/map_files/{start:x}-{:x}", start + bytes))
}

/// Writes somewhere in an arena, in one of the ways. `offset`: the place in the arena.
#[allow(unsafe_code, reason = "these are the writes that no safe code makes")]
fn write(way: &str, place: *mut u8, offset: u64, arena: (u64, u64), bytes: [u8; 8]) -> std::io::Result<()> {
    match way {
        "store" => store(place, bytes),
        // A system call that is given the wrong buffer.
        "kernel" => {
            // SAFETY: as in `store`.
            let wrong = unsafe { std::slice::from_raw_parts_mut(place, 8) };
            File::open("/dev/urandom")?.read_exact(wrong)?;
        }
        "memory-file" => File::options().write(true).open("/proc/self/mem")?.write_all_at(&bytes, place as u64)?,
        "forked" => {
            let place = place as usize;
            let mut program = Command::new("true");
            // SAFETY: the forked process stores, and executes another program.
            unsafe {
                program.pre_exec(move || {
                    store(place as *mut u8, bytes);
                    Ok(())
                })
            };
            let forked = program.status()?;
            if !forked.success() {
                return Err(std::io::Error::other(format!("the forked process ends with {forked}")));
            }
        }
        "second-mapping" => {
            let file = mapped_file(arena)?;
            let (length, flags) = (arena.1 as usize, ProtFlags::READ | ProtFlags::WRITE);
            // SAFETY: the kernel selects the address.
            let second = unsafe { mmap(std::ptr::null_mut(), length, flags, MapFlags::SHARED, &file, 0) }?;
            store(second.cast::<u8>().wrapping_add(offset as usize), bytes);
        }
        "pwrite" => mapped_file(arena)?.write_all_at(&bytes, offset)?,
        "doubled-mapping" => {
            let (first, length) = (arena.0 as *mut _, arena.1 as usize);
            // SAFETY: the first mapping stays.
            let second = unsafe { mremap(first, 0, length, MremapFlags::MAYMOVE) }?;
            // The monitor is told, and kills the process about now.
            std::thread::sleep(std::time::Duration::from_millis(200));
            store(second.cast::<u8>().wrapping_add(offset as usize), bytes);
        }
        other => panic!("{other} is no way to write"),
    }
    Ok(())
}

/// The writes of all ways.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    impossible: u64,
    detected: u64,
    unnoticed: u64,
    damaged: u64,
}

/// Lets guests write wildly.
fn campaign(name: &str, ways: &[&str], rounds: u64) -> Counts {
    let bench = Bench::new();
    let mut counts = Counts::default();
    let protected = protection(name);
    for seed in 1..=rounds {
        let (image, socket) = (bench.image(seed), bench.socket());
        let way = ways[seed as usize % ways.len()];
        let arguments = [socket.to_str().unwrap(), image.to_str().unwrap(), &seed.to_string(), way, name];
        let mut guest = child("wild", &arguments);
        let (last, said) = read_to_end(&mut guest, |_, _| {});
        let status = guest.wait().unwrap();
        let context = format!("{name}, {way}, seed {seed}: {status}, {said:?}");
        assert_eq!(last, TRANSACTIONS, "{context}");
        let block = said.iter().find_map(|line| line.strip_prefix("block ")).map(|block| block.parse::<u64>().unwrap());
        let is_said = |word: &str| said.iter().any(|line| line.starts_with(word));
        let is_impossible = is_said("impossible");
        assert_eq!(status.success(), is_impossible, "{context}");
        if !is_impossible {
            bench.wait_for_recovery(seed);
        }
        let wrong = damaged(&image, seed, last);
        std::fs::remove_file(image).unwrap();
        let uuid = super::volume(seed, Path::new("")).uuid;
        let reports = bench.heard(|event| match event {
            Event::WildWrite { volume, block: found, .. } if *volume == uuid => {
                assert_eq!(*found, block, "{context}");
                true
            }
            Event::SecondMapping { volume, .. } => *volume == uuid,
            _ => false,
        });
        match (is_impossible, is_said("written")) {
            (true, _) => counts.impossible += 1,
            (false, true) => counts.unnoticed += 1,
            (false, false) => counts.detected += 1,
        }
        assert_eq!(reports > 0, protected == Protection::Monitor && !is_impossible, "{context}");
        if protected != Protection::Nothing {
            assert!(wrong.is_empty(), "{context}: damaged are {wrong:?}");
        }
        counts.damaged += u64::from(!wrong.is_empty());
    }
    println!("campaign: wild writes, protection {name}: {rounds} from seed 1, {counts:?}");
    counts
}

#[test]
fn wild_writes_to_committed_memory_are_impossible_or_detected() {
    let rounds = rounds(21);
    let counts = campaign("monitor", &WAYS, rounds);
    assert_eq!((counts.unnoticed, counts.damaged), (0, 0));
    assert!(counts.impossible > 0 && counts.detected > 0, "{counts:?}");
}

/// A guest that protects itself dies of a store; a second mapping is not noticed.
#[test]
fn a_guest_that_protects_itself_does_not_survive_a_wild_write() {
    let counts = campaign("guest", &WAYS[..6], rounds(18));
    assert_eq!((counts.unnoticed, counts.damaged), (0, 0));
    assert!(counts.impossible > 0 && counts.detected > 0, "{counts:?}");
}

/// The benefit of protection.
#[test]
fn without_protection_wild_writes_reach_the_volume() {
    let counts = campaign("nothing", &WAYS, rounds(21));
    assert_eq!(counts.detected, 0);
    assert_eq!(counts.damaged, counts.unnoticed);
    assert!(counts.unnoticed > 0, "{counts:?}");
}

/// A guest of a user without privileges: a system call into a committed frame fails.
pub fn write_as_an_ordinary_user() {
    let nobody = rustix::process::Uid::from_raw(65534);
    // Of this thread, and of those that it begins.
    rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    let bench = Bench::new();
    let image = bench.image(1);
    let mut writer = Writer::begin(&bench.socket(), &image, 1, Protection::Monitor);
    writer.commit().unwrap();
    let frame = writer.cache.values().next().unwrap();
    let (place, before) = (frame.bytes().as_ptr() as *mut u8, frame.bytes().to_vec());
    let start = writer.arena.mapping().start();
    let error = write("kernel", place, place as u64 - start, (start, FRAME_BYTES as u64), [0; 8]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::FAULT.raw_os_error()), "{error}");
    assert_eq!(frame.bytes(), before);
    let last = writer.number;
    writer.end();
    assert!(damaged(&image, 1, last).is_empty());
    println!("\nimpossible: {error}");
}

#[test]
fn an_ordinary_user_has_a_userfaultfd_too() {
    if !rustix::process::geteuid().is_root() {
        // The other tests are that.
        return;
    }
    let mut guest = child("ordinary", &[]);
    let (_, said) = read_to_end(&mut guest, |_, _| {});
    assert!(guest.wait().unwrap().success() && said.iter().any(|line| line.starts_with("impossible")), "{said:?}");
}
