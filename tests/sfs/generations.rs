//! A number and a generation are one inode's for ever: a file handle that somebody kept must not open another file.

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

/// A file that was made and never synced is gone after a crash, and its number is given out again. The generation was
/// the same: a count of how often a number had been freed, which the crash took back.
#[test]
fn what_a_crash_took_away_and_what_is_made_then_are_told_apart() {
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
            assert_eq!(seen.insert(handle, name.clone()), None, "{handle:?} is {name}'s, too");
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
            assert_eq!(seen.get(&handle), Some(&name), "a handle stays its file's");
        }
    }
    assert!(numbers.values().any(|times| *times > 2), "numbers are given out again: {numbers:?}");
}
