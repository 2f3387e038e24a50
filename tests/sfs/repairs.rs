//! A repair, and the device under it: a repair that is cut off leaves the volume as it was.

use super::calls::written;
use super::machine::{Case, Machine};
use super::unclean::{change, checked, image, log, repaired};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, NewFile};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// A volume with a damaged log, whose mount was killed while the device held the last writes in its memory.
fn killed(task: &Task<'_>, is_zoned: bool) -> Machine {
    let machine = Machine::new("sfs:segment=64K", 16, 56, is_zoned);
    let mut sfs = machine.create();
    let inode = sfs.make(task, InodeNumber::ROOT, b"file", &NEW).unwrap();
    sfs.sync(task).unwrap();
    for round in 0..4 {
        sfs.write(task, inode, round * 9000, &written(round, round * 9000, 9000)).unwrap();
        sfs.sync_file(task, inode, Durable::All).unwrap();
    }
    // Six seconds later it is written out, and not flushed.
    sfs.write(task, inode, 40_000, &written(9, 40_000, 300_000)).unwrap();
    task.wait_until(task.now() + 6_000_000_000);
    sfs.work(task).unwrap();
    drop(sfs);
    let first = &log(&machine)[0];
    change(&machine, first.segment, first.block, |bytes| bytes[100] ^= 1);
    machine
}

/// A repair wrote before the device was flushed: what it wrote over may have been freed by parts of the log that were
/// in the device's memory alone. A comment had swallowed the line.
#[test]
fn the_first_thing_that_a_repair_does_to_a_device_is_to_flush_it() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let killed = killed(task, is_zoned);
        assert_ne!(checked(&killed).unwrap(), []);
        let machine = killed.copy();
        machine.power.cut_after(0);
        repaired(&machine).unwrap_err();
        assert!(image(&machine) == image(&killed), "zones {is_zoned}: it was written to");
    }
}

#[test]
fn a_repair_that_is_cut_off_at_any_operation_can_be_made_again() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let killed = killed(task, is_zoned);
        for cut in 0.. {
            let machine = killed.copy();
            machine.power.cut_after(cut);
            let is_done = repaired(&machine).is_ok();
            machine.lose_power(&mut Random::new(cut, "repairs"));
            let _case = Case(format!("zones {is_zoned}, cut {cut}"));
            assert_eq!(repaired(&machine).unwrap().left, []);
            assert_eq!(checked(&machine).unwrap(), []);
            let mut sfs = machine.open().unwrap();
            let inode = sfs.lookup(task, InodeNumber::ROOT, b"file").unwrap();
            // The first fsync is lost; the bytes of the others are there, but for the block that the first one ended.
            for round in 1..4 {
                let mut bytes = [0; 4096];
                let at = (round * 9000_u64).next_multiple_of(4096);
                sfs.read(task, inode, at, &mut bytes).unwrap();
                assert!(bytes[..] == written(round, round * 9000, 9000)[(at - round * 9000) as usize..][..4096]);
            }
            if is_done {
                break;
            }
        }
    }
}
