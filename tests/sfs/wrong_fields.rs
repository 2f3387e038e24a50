//! Wrong fields with right checksums.
//!
//! With `open_segment` and `open_block` of a superblock 0 and a right checksum, a check said "clean", and the next
//! writes overwrote live blocks. So each field is changed here, in one superblock and in both: the mount refuses the
//! volume, or the check reports it, or nothing is lost, even after the volume was used.

use super::forged::{self, FIELDS, Field};
use super::log_damage::{BLOCKS, assert_newest, killed};
use super::machine::Machine;
use super::unclean::{checked, repaired};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs, SfsError};
use flashpath::task::Task;
use flashpath::time::Time;
use std::collections::BTreeSet;

const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// Writes enough to free and reuse segments.
fn use_volume(task: &Task<'_>, sfs: &mut Sfs) -> Result<(), SfsError> {
    for round in 0..30u8 {
        let name = format!("new{}", round % 5);
        let inode = match sfs.lookup(task, InodeNumber::ROOT, name.as_bytes()) {
            Ok(inode) => inode,
            Err(_) => sfs.make(task, InodeNumber::ROOT, name.as_bytes(), &NEW)?,
        };
        sfs.write(task, inode, 0, &vec![round; 100_000])?;
        if round % 3 == 0 { sfs.sync(task)? } else { sfs.sync_file(task, inode, Durable::All)? }
    }
    sfs.unmount(task)
}

/// The outcome of a forged volume: refused by the mount, reported by the check, or harmless.
fn examine(task: &Task<'_>, machine: &Machine, context: &str) -> &'static str {
    let is_reported = !matches!(checked(machine), Ok(findings) if findings.is_empty());
    let used = machine.copy();
    let mut sfs = match used.open() {
        Ok(sfs) if sfs.damage().is_empty() => sfs,
        _ if is_reported => return "refused",
        _ => panic!("{context}: the mount refuses it, but the check finds nothing"),
    };
    if !is_reported {
        assert_newest(task, &mut sfs, context);
        use_volume(task, &mut sfs).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(checked(&used).unwrap(), [], "{context}, after use");
        assert_newest(task, &mut used.open().unwrap(), context);
        return "harmless";
    }
    // The mount may not detect everything that the check reports, but must not make it worse.
    match use_volume(task, &mut sfs) {
        Ok(()) | Err(SfsError::Damaged { .. } | SfsError::ReadOnly(_)) => {}
        Err(error) => panic!("{context}: {error}"),
    }
    assert_newest(
        task,
        &mut Sfs::open(&Task::at(Time::ZERO), used.medium(), &super::settings("sfs"), super::IDENTITY, true).unwrap(),
        context,
    );
    "reported"
}

fn values(field: &Field, now: u64) -> Vec<u64> {
    let largest = u64::MAX >> (64 - 8 * field.width);
    let values = [0, 1, 2, 7, now.wrapping_add(1), now.wrapping_sub(1), now ^ 0x10, now / 2, largest, largest / 2];
    values.into_iter().map(|value| value & largest).filter(|value| *value != now).collect()
}

#[test]
fn each_wrong_field_of_a_superblock_is_refused_reported_or_harmless() {
    let task = &Task::at(Time::ZERO);
    let mut outcomes = std::collections::BTreeMap::<&str, u64>::new();
    for (is_zoned, is_unmounted) in [(false, true), (false, false), (true, true), (true, false)] {
        let base = killed(task, (BLOCKS, is_zoned));
        if is_unmounted {
            base.open().unwrap().unmount(task).unwrap();
        }
        for field in &FIELDS {
            let now = forged::get(&super::unclean::superblock(&base), field.at, field.width);
            for (value, copies) in
                values(field, now).into_iter().flat_map(|value| (0..3).map(move |copy| (value, copy)))
            {
                let machine = base.copy();
                forged::superblocks(&machine, |copy, bytes| {
                    if copies == 2 || copies == copy {
                        forged::set(bytes, field, value);
                    }
                });
                let context = format!(
                    "zones {is_zoned}, unmounted {is_unmounted}, {} of superblock {copies} is {value} for {now}",
                    field.name
                );
                *outcomes.entry(examine(task, &machine, &context)).or_default() += 1;
            }
        }
    }
    eprintln!("{outcomes:?}");
}

/// Regression: with an invalid state in an entry of the DAT, a check said "clean", and the volume needed a repair after
/// use.
#[test]
fn a_wrong_entry_of_the_dat_is_reported_and_repaired() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let base = killed(task, (BLOCKS, is_zoned));
        base.open().unwrap().unmount(task).unwrap();
        for (number, at, value) in (0..128).flat_map(|number| {
            [(30, 7), (29, 0), (29, 2), (29, 255), (28, 100), (26, 1), (7, 0x80), (3, 1), (15, 0xff), (23, 0xff)]
                .map(|(at, value)| (number, at, value))
        }) {
            let machine = base.copy();
            forged::dat_entry(&machine, number, |entry| entry[at] = value);
            let context = format!("zones {is_zoned}, byte {at} of entry {number} is {value}");
            if checked(&machine).unwrap().is_empty() {
                let mut sfs = machine.open().unwrap();
                assert_newest(task, &mut sfs, &context);
                use_volume(task, &mut sfs).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(checked(&machine).unwrap(), [], "{context}, after use");
                continue;
            }
            assert_eq!(repaired(&machine).unwrap().left, [], "{context}");
            assert_eq!(checked(&machine).unwrap(), [], "{context}");
        }
    }
}

/// The names in a directory.
fn names(task: &Task<'_>, sfs: &mut Sfs, directory: InodeNumber) -> BTreeSet<Vec<u8>> {
    let mut names = BTreeSet::new();
    sfs.list(task, directory, 0, &mut |entry| {
        names.insert(entry.name.to_vec());
        true
    })
    .unwrap();
    names
}

/// The DAT had one page, and both superblocks said two: the page was read as a block of pointers, all entries seemed
/// free, and a repair gave their numbers to other files, which read as each other's bytes.
#[test]
fn a_wrong_number_of_pages_of_the_dat_in_both_superblocks_costs_nothing() {
    let task = &Task::at(Time::ZERO);
    let field = FIELDS.iter().find(|field| field.name == "dat.pages").unwrap();
    for (is_zoned, large) in [(false, 20), (true, 20), (false, 400), (true, 400)] {
        let base = Machine::new("sfs:segment=64K", 16, 80, is_zoned);
        let mut sfs = base.create();
        let bytes = |file: u8| vec![file + 1; if file == 0 { large * 4096 } else { 30_000 }];
        for file in 0..8 {
            let inode = sfs.make(task, InodeNumber::ROOT, &[b'a' + file], &NEW).unwrap();
            sfs.write(task, inode, 0, &bytes(file)).unwrap();
            if file < 4 { sfs.sync(task).unwrap() } else { sfs.sync_file(task, inode, Durable::All).unwrap() }
        }
        let before = names(task, &mut sfs, InodeNumber::ROOT);
        drop(sfs);
        let newest = super::unclean::superblock(&base);
        let (now, used) = (forged::get(&newest, field.at, field.width), forged::get(&newest, 136, 8));
        assert_eq!(now, if large == 20 { 1 } else { 4 });
        for pages in [1, 2, 3, 4, 5, 200, 256, 257, 1000, 1200].into_iter().filter(|pages| *pages != now) {
            let machine = base.copy();
            forged::superblocks(&machine, |_, bytes| forged::set(bytes, field, pages));
            let context = format!("zones {is_zoned}, {pages} pages for {now}");
            let is_told = !matches!(checked(&machine), Ok(findings) if findings.is_empty());
            assert!(is_told || pages > now && machine.open().is_ok(), "{context}");
            if used >= pages * 128 {
                // The superblocks contradict themselves: they are damaged.
                continue;
            }
            assert_eq!(repaired(&machine).unwrap().left, [], "{context}");
            assert_eq!(checked(&machine).unwrap(), [], "{context}");
            let mut sfs = machine.open().unwrap();
            assert_eq!(names(task, &mut sfs, InodeNumber::ROOT), before, "{context}");
            for file in 0..8 {
                let expected = bytes(file);
                let inode = sfs.lookup(task, InodeNumber::ROOT, &[b'a' + file]).unwrap();
                let mut read = vec![0; expected.len()];
                sfs.read(task, inode, 0, &mut read).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert!(read == expected, "{context}: file {file}");
            }
        }
    }
}

/// A file was deleted after the checkpoint, and the state of one of its DAT entries is wrong. The log took the blocks
/// before that one away, and failed: the file came back to lost+found, and read as zeros.
#[test]
fn a_deleted_file_with_a_wrong_dat_entry_does_not_come_back_as_zeros() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let base = Machine::new("sfs:segment=64K", 16, 56, is_zoned);
        let mut sfs = base.create();
        for name in [b"stays", b"goes1", b"goes2"] {
            let inode = sfs.make(task, InodeNumber::ROOT, name, &NEW).unwrap();
            sfs.write(task, inode, 0, &[name[4]; 50_000]).unwrap();
        }
        sfs.sync(task).unwrap();
        for name in [b"goes1", b"goes2"] {
            sfs.unlink(task, InodeNumber::ROOT, name).unwrap();
        }
        sfs.sync_file(task, InodeNumber::ROOT, Durable::All).unwrap();
        drop(sfs);
        // Number 1 is the block with the names.
        for (number, at, value) in
            (2..60).flat_map(|number| [(29, 0), (29, 34), (7, 0x80), (28, 99)].map(|(at, value)| (number, at, value)))
        {
            // The byte of the address is of 2^56; those of the group, and of the state: free, taken, or neither.
            let machine = base.copy();
            assert!(forged::dat_entry(&machine, number, |entry| entry[at] = value));
            let context = format!("zones {is_zoned}, byte {at} of entry {number} is {value}");
            assert_eq!(repaired(&machine).unwrap().left, [], "{context}");
            assert_eq!(checked(&machine).unwrap(), [], "{context}");
            let mut sfs = machine.open().unwrap();
            let found = names(task, &mut sfs, InodeNumber::ROOT);
            assert_eq!(found, [&b"."[..], b"..", b"stays"].map(<[u8]>::to_vec).into(), "{context}");
            let inode = sfs.lookup(task, InodeNumber::ROOT, b"stays").unwrap();
            for place in 0..12 {
                let mut read = [0; 4096];
                let is_read = sfs.read(task, inode, place * 4096, &mut read).is_ok();
                assert!(!is_read || read == [b's'; 4096], "{context}: block {place}");
            }
        }
    }
}
