//! A volume with a memory bound behaves like one without, and what it counts stays within the bound.
//!
//! A mount kept each inode that the kernel knew, and was killed in 256 MiB at 229,329 files. No test of ours had more files
//! than a test holds, or looked at memory: many files x little memory.

use crate::crashes::{Disks, Place, mounting};
use crate::image::call;
use crate::power_cut::Power;
use crate::work::Work;
use flashpath::device::Medium;
use flashpath::device::conv::Conventional;
use flashpath::expression::parse_term;
use flashpath::fs::ext::{Ext, ExtSettings, MemoryUse, create};
use flashpath::fs::station::{Access, Mounting, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{Change, FileKind, Hold, InodeNumber, NewFile, Timestamp, Volume, VolumeError};
use flashpath::random::Random;
use std::sync::Mutex;

/// The least that is taken. Of its seven eighths, 16 MiB are the program's.
const MEMORY: u64 = 37 << 20;
const COUNTED: u64 = MEMORY / 8 * 7 - (16 << 20);
const FILES: u64 = 24_000;

fn settings(options: &str) -> ExtSettings {
    ExtSettings::read(&parse_term(&format!("ext:memory=37M{options}")).unwrap()).unwrap()
}

fn device(bytes: u64) -> Vec<Medium> {
    vec![Medium::Blocks(Box::new(Conventional::in_memory(bytes >> 12, 4096)))]
}

fn name(number: u64) -> Vec<u8> {
    format!("file{number:07}").into_bytes()
}

fn content(number: u64) -> Vec<u8> {
    if number.is_multiple_of(10) { vec![number as u8; 100 + number as usize % 5000] } else { Vec::new() }
}

fn make(ext: &Ext, directory: InodeNumber, name: &[u8], kind: FileKind) -> InodeNumber {
    let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
    call(|call| ext.make(call, (directory, name), &new, Hold::Yes, None)).unwrap().inode
}

fn check_content(ext: &Ext, inode: InodeNumber, number: u64) {
    let (mut bytes, right) = (vec![1; 6000], content(number));
    let length = call(|call| ext.read(call, inode, 0, &mut bytes)).unwrap().length;
    assert!(bytes[..length] == right[..], "file {number}: {length} bytes, and {} are right", right.len());
}

/// The most of each part so far. What is counted is within the bound at each look.
#[derive(Default)]
struct Most(Mutex<MemoryUse>);

impl Most {
    fn look(&self, ext: &Ext, when: &str) {
        let used = ext.memory_use();
        assert!(used.sum() <= COUNTED, "{when}: {} bytes of {COUNTED}: {used:?}", used.sum());
        let mut most = self.0.lock().unwrap();
        most.changed = most.changed.max(used.changed);
        most.inodes = most.inodes.max(used.inodes);
    }
}

#[test]
fn many_files_that_the_kernel_knows_stay_within_the_memory_bound() {
    let ext = create(device(512 << 20), &settings(""), &mounting()).unwrap();
    let most = Most::default();
    let threads = 3;
    let each = FILES / threads;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (ext, most) = (&ext, &most);
            scope.spawn(move || {
                let directory = make(ext, InodeNumber::ROOT, &name(thread), FileKind::Directory);
                let numbers = thread * each..(thread + 1) * each;
                let mut files = Vec::new();
                for number in numbers.clone() {
                    let file = make(ext, directory, &name(number), FileKind::Regular);
                    call(|call| ext.write(call, file, 0, &content(number), None)).unwrap();
                    files.push(file);
                    most.look(ext, "made");
                }
                for (number, file) in numbers.zip(files) {
                    let change = Change { modified: Some(Timestamp(number as i64)), ..Change::default() };
                    call(|call| ext.change(call, file, &mut |_| Ok(Some(change.clone())))).unwrap();
                    most.look(ext, "touched");
                }
            });
        }
    });
    let inode = |parent, name: &[u8]| call(|call| ext.lookup(call, (parent, name), Hold::No)).unwrap();
    let directory = |number: u64| inode(InodeNumber::ROOT, &name(number / each)).inode;
    let mut random = Random::new(5, "any order");
    for _ in 0..FILES {
        let number = random.below(FILES);
        let found = inode(directory(number), &name(number));
        let seen = (found.size, found.times.modified.0);
        assert_eq!(seen, (content(number).len() as u64, number as i64), "file {number}");
        check_content(&ext, found.inode, number);
        most.look(&ext, "looked up");
    }
    for number in 0..FILES {
        let parent = directory(number);
        let file = inode(parent, &name(number)).inode;
        call(|call| ext.unlink(call, (parent, &name(number)), None)).unwrap();
        // As the kernel does, which still knows it.
        check_content(&ext, file, number);
        call(|call| ext.forget(call, file, 1)).unwrap();
        let gone = call(|call| ext.attributes(call, file));
        assert!(matches!(gone, Err(VolumeError::NotFound)), "file {number}");
        most.look(&ext, "removed");
    }
    call(|call| ext.unmount(call)).unwrap();
    let most = most.0.into_inner().unwrap();
    assert!(most.changed > 1 << 20 && most.inodes > 1 << 20, "memory use did not approach the bound: {most:?}");
}

/// Its inode leaves memory while it is in use, and comes back by its number, which no name has.
#[test]
fn files_without_a_name_are_there_until_the_last_of_their_users_leaves() {
    let mut settings = settings("");
    // Four inodes stay.
    settings.cache_bytes = 0;
    let disks = Disks::new(&Power::new(), Place::Inline);
    let ext = create(disks.media(), &settings, &mounting()).unwrap();
    let free = call(|call| ext.space(call)).unwrap().free_inodes;
    let held: Vec<InodeNumber> = (0..free / 2)
        .map(|number| {
            let file = make(&ext, InodeNumber::ROOT, &name(number), FileKind::Regular);
            call(|call| ext.write(call, file, 0, &[number as u8; 50], None)).unwrap();
            call(|call| ext.unlink(call, (InodeNumber::ROOT, &name(number)), None)).unwrap();
            file
        })
        .collect();
    call(|call| ext.sync(call)).unwrap();
    let are_there = |files: &[InodeNumber]| files.iter().all(|file| call(|call| ext.attributes(call, *file)).is_ok());
    assert!(are_there(&held));
    let used = ext.memory_use();
    assert!(used.inodes < 64 << 10, "{used:?}");
    for (number, file) in held.iter().enumerate() {
        let mut bytes = [0; 60];
        assert_eq!(call(|call| ext.read(call, *file, 0, &mut bytes)).unwrap().length, 50, "{number}");
        assert_eq!(bytes[..50], [number as u8; 50]);
        call(|call| ext.write(call, *file, 50, &[1; 10], None)).unwrap();
    }
    // Not in the order in which they have lost their names: the list names each by the next newer one.
    let (first, rest) = held.split_at(held.len() / 2);
    for file in first.iter().step_by(2).chain(first.iter().skip(1).step_by(2)) {
        call(|call| ext.forget(call, *file, 1)).unwrap();
        assert!(matches!(call(|call| ext.attributes(call, *file)), Err(VolumeError::NotFound)));
    }
    assert!(are_there(rest));
    // The others are freed at the end.
    call(|call| ext.unmount(call)).unwrap();
    drop(ext);
    assert_eq!(settings.check(disks.media()).unwrap(), []);
    let again = settings.open(disks.media(), &mounting(), Access::IfWhole).unwrap();
    assert_eq!(call(|call| again.space(call)).unwrap().free_inodes, free);
}

#[test]
fn random_work_within_little_memory_matches_the_reference() {
    for (seed, options) in [(31, ""), (32, ",data=journal"), (33, ",data=writeback,commit=10ms")] {
        let mut settings = settings(options);
        settings.cache_bytes = 0;
        let volume = settings.create(device(64 << 20), &mounting()).unwrap();
        let mut work = Work::new(seed);
        for step in 0..3000 {
            work.step(&*volume);
            if step % 50 == 0 {
                call(|call| volume.work(call)).unwrap();
            }
        }
        work.compare(&*volume);
        call(|call| volume.unmount(call)).unwrap();
    }
}

#[test]
fn too_little_memory_is_refused_but_the_share_of_a_small_machine_is_taken() {
    let settings = |text: &str| ExtSettings::read(&parse_term(text).unwrap()).unwrap();
    let refused = settings("ext:memory=36M").create(device(64 << 20), &mounting());
    let said = refused.map(drop).expect_err("it was taken").to_string();
    assert!(said.contains("memory=36M is too little: write memory=37M or more"), "{said}");
    let small = Mounting { memory_bytes: Some(1 << 20), ..mounting() };
    let ext = create(device(64 << 20), &settings("ext"), &small).unwrap();
    make(&ext, InodeNumber::ROOT, b"file", FileKind::Regular);
    call(|call| ext.unmount(call)).unwrap();
}
