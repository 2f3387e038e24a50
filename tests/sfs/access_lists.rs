//! An access control list and the resulting permissions change atomically: after a cut at any operation both are
//! stored, or neither. The same holds for the initial lists of a new file.

use super::calls::find;
use super::machine::{Case, Machine};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{Change, FileKind, InodeNumber, NewFile, Sfs, SfsError};
use flashpath::fs::volume::ExtendedChange;
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

const LIST: &[u8] = b"system.posix_acl_access";

/// A list for these permissions, of one block, or for some permissions of several.
fn list(permissions: u16) -> Vec<u8> {
    vec![permissions as u8; 100 + usize::from(permissions % 7) * 3000]
}

/// Sets the list of a file, and its permissions.
fn set_list(task: &Task<'_>, sfs: &mut Sfs, file: InodeNumber, permissions: u16) -> Result<(), SfsError> {
    let extended = vec![ExtendedChange { name: LIST, value: Some(list(permissions).into()) }];
    let change = Change { permissions: Some(permissions), extended, ..Change::default() };
    sfs.change(task, file, &change).map(drop)
}

/// Creates files and changes their lists. `durable` becomes the permissions of `/file` at the last sync.
fn work(task: &Task<'_>, sfs: &mut Sfs, durable: &mut u16) -> Result<(), SfsError> {
    for permissions in [0o640, 0o777, 0o600, 0o750, 0o666] {
        let first = list(permissions);
        let attributes = [(LIST, &first[..])];
        let kind = FileKind::Regular;
        let new = NewFile { kind, permissions, user: 1, group: 2, device: 0, target: b"", attributes: &attributes };
        sfs.make(task, InodeNumber::ROOT, format!("{permissions:o}").as_bytes(), &new)?;
        let file = find(task, sfs, "/file")?;
        set_list(task, sfs, file, permissions)?;
        sfs.sync_file(task, file, Durable::All)?;
        *durable = permissions;
    }
    Ok(())
}

#[test]
fn a_list_and_its_permissions_change_atomically() {
    let task = &Task::at(Time::ZERO);
    for is_zoned in [false, true] {
        let base = Machine::new("sfs:segment=64K", 16, 56, is_zoned);
        let mut sfs = base.create();
        let new = NewFile {
            kind: FileKind::Regular,
            permissions: 0,
            user: 1,
            group: 2,
            device: 0,
            target: b"",
            attributes: &[],
        };
        let file = sfs.make(task, InodeNumber::ROOT, b"file", &new).unwrap();
        set_list(task, &mut sfs, file, 0).unwrap();
        sfs.unmount(task).unwrap();
        drop(sfs);
        let mut cut = 0;
        loop {
            let case = Case(format!("cut at operation {cut}, zones: {is_zoned}"));
            let machine = base.copy();
            let mut sfs = machine.open().unwrap();
            machine.power.cut_after(cut);
            let mut durable = 0;
            let ended = work(task, &mut sfs, &mut durable);
            drop(sfs);
            machine.lose_power(&mut Random::new(cut, "access lists"));
            let mut sfs = machine.open().unwrap();
            assert_eq!(sfs.check(task).unwrap(), [], "{}", case.0);
            let mut names = Vec::new();
            sfs.list(task, InodeNumber::ROOT, 2, &mut |entry| {
                names.push((entry.inode, String::from_utf8(entry.name.to_vec()).unwrap()));
                true
            })
            .unwrap();
            for (inode, name) in &names {
                let permissions = sfs.attributes(task, *inode).unwrap().permissions;
                assert_eq!(
                    sfs.extended_attribute(task, *inode, LIST).unwrap(),
                    list(permissions),
                    "{name}, {}",
                    case.0
                );
                assert!(name == "file" || *name == format!("{permissions:o}"), "{name}, {}", case.0);
            }
            let file = find(task, &mut sfs, "/file").unwrap();
            let found = sfs.attributes(task, file).unwrap().permissions;
            let order = [0, 0o640, 0o777, 0o600, 0o750, 0o666];
            let at = |permissions| order.iter().position(|other| *other == permissions);
            assert!(at(found) >= at(durable) && at(found).is_some(), "{found:o}, {durable:o}, {}", case.0);
            if ended.is_ok() {
                break;
            }
            cut += 1;
        }
        assert!(cut > 10, "{cut}");
    }
}
