//! A pair of inode number and generation is never reused: an old file handle must not open a new file.

use super::machine::Machine;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use std::collections::BTreeMap;

const NEW: NewFile<'static> =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// Number and generation of a new file.
fn make(task: &Task<'_>, sfs: &mut Sfs, name: &str) -> (u64, u32) {
    let inode = sfs.make(task, InodeNumber::ROOT, name.as_bytes(), &NEW).unwrap();
    (inode.0, sfs.attributes(task, inode).unwrap().generation)
}

/// Regression: a created, unsynced file is lost in a crash, and its number is reused. The generation was the same: it
/// counted how often the number had been freed, and the crash undid the count.
#[test]
fn a_file_lost_in_a_crash_and_its_successor_have_different_generations() {
    let task = &Task::at(Time::ZERO);
    let machine = Machine::new("sfs:segment=64K", 16, 64, false);
    let mut sfs = machine.create();
    let mut seen: BTreeMap<(u64, u32), String> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for round in 0..12 {
        for file in 0..5 {
            let name = format!("{round}-{file}");
            let handle = make(task, &mut sfs, &name);
            *numbers.entry(handle.0).or_insert(0) += 1;
            assert_eq!(seen.insert(handle, name.clone()), None, "{handle:?} also belongs to {name}");
            if file == 1 && round % 3 == 0 {
                sfs.sync_file(task, InodeNumber(handle.0), Durable::All).unwrap();
            }
            if file == 2 {
                sfs.unlink(task, InodeNumber::ROOT, name.as_bytes()).unwrap();
            }
        }
        match round % 4 {
            0 => sfs.sync(task).unwrap(),
            1 => sfs.unmount(task).unwrap(),
            _ => {}
        }
        drop(sfs);
        machine.lose_power(&mut Random::new(round, "generations"));
        sfs = machine.open().unwrap();
        let mut names = Vec::new();
        sfs.list(task, InodeNumber::ROOT, 2, &mut |entry| {
            names.push((entry.inode, String::from_utf8(entry.name.to_vec()).unwrap()));
            true
        })
        .unwrap();
        for (inode, name) in names {
            let handle = (inode.0, sfs.attributes(task, inode).unwrap().generation);
            assert_eq!(seen.get(&handle), Some(&name), "a handle refers to its file forever");
        }
    }
    assert!(numbers.values().any(|times| *times > 2), "numbers are reused: {numbers:?}");
}
