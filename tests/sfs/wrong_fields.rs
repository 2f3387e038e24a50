//! Wrong fields with right checksums.
//!
//! With `open_segment` and `open_block` of a superblock 0 and a right checksum, a check said "clean", and the next
//! writes overwrote live blocks. So each field is changed here, in one superblock and in both: the mount refuses the
//! volume, or the check reports it, or nothing is lost, even after the volume was used.

use super::forged::{self, FIELDS, Field};
use super::log_damage::{assert_newest, killed};
use super::machine::Machine;
use super::unclean::{checked, repaired};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile, Sfs, SfsError};
use flashpath::task::Task;
use flashpath::time::Time;

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
        let base = killed(task, is_zoned);
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
        let base = killed(task, is_zoned);
        base.open().unwrap().unmount(task).unwrap();
        for (number, at, value) in (0..128).flat_map(|number| {
            [(26, 1), (25, 2), (25, 255), (24, 100), (7, 0x80), (3, 1), (15, 0xff), (23, 0xff)]
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
