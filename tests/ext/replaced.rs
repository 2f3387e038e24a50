//! A file that is renamed over another one, or cut to nothing and rewritten, has the old bytes or the new ones after a cut of
//! power at any operation, and never none: as the kernel's auto_da_alloc has it.
//!
//! The delayed bytes of the new file waited while the rename was committed, so that the name had a file of length zero. No
//! test had it: those of crashes looked at bytes that were synced, and these were not. (Crossing: what programs rely on x
//! what POSIX promises.)

use crate::crashes::{BLOCKS, Disks, Place, mounting};
use crate::image::call;
use crate::power_cut::Power;
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{
    Change, FileKind, Hold, IfExists, InodeNumber, Locked, NewFile, Renaming, Volume, VolumeError,
};
use flashpath::random::Random;

const ROOT: InodeNumber = InodeNumber::ROOT;
const OLD: &[u8] = &[b'o'; 3000];
const NEW: &[u8] = &[b'n'; 9000];

/// The ways in which programs replace the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rename,
    Exchange,
    Rewrite,
}

fn settings(data: &str, place: Place, options: &str) -> ExtSettings {
    let of_memory = if place == Place::Memory { ",partitions=2" } else { "" };
    ExtSettings::read(&parse_term(&format!("ext:data={data},dirty=1M{of_memory}{options}")).unwrap()).unwrap()
}

fn make(volume: &dyn Volume, name: &[u8], bytes: &[u8]) -> Result<InodeNumber, VolumeError> {
    let new = NewFile {
        kind: FileKind::Regular,
        permissions: 0o644,
        user: 0,
        group: 0,
        device: 0,
        target: b"",
        attributes: &[],
    };
    let file = call(|call| volume.make(call, (ROOT, name), &new, Hold::No, None))?.inode;
    call(|call| volume.write(call, file, 0, bytes, None))?;
    Ok(file)
}

fn replace(volume: &dyn Volume, file: InodeNumber, by: By) -> Result<(), VolumeError> {
    if by == By::Rewrite {
        let mut cut = |_: &mut dyn Locked| Ok(Some(Change { size: Some(0), ..Change::default() }));
        call(|call| volume.change(call, file, &mut cut))?;
        call(|call| volume.write(call, file, 0, NEW, None))?;
        make(volume, b"other", b"")?;
    } else {
        make(volume, b"temporary", NEW)?;
        let if_exists = if by == By::Exchange { IfExists::Exchange } else { IfExists::Replace };
        let how = Renaming { if_exists, whiteout: None };
        call(|call| volume.rename(call, (ROOT, b"temporary"), (ROOT, b"file"), how, None))?;
    }
    // A sync of the directory, which has changed, commits it.
    call(|call| volume.sync_file(call, ROOT, Durable::All))
}

/// The bytes of the file after a cut of power behind so many operations, and true if the work came to its end before.
fn after_cut(settings: &ExtSettings, place: Place, by: By, operations: u64) -> (Vec<u8>, bool) {
    let mut random = Random::new(operations, "replaced");
    let power = Power::new();
    let disks = Disks::new(&power, place);
    let volume = settings.create(disks.media(), &mounting()).unwrap();
    let file = make(&*volume, b"file", OLD).unwrap();
    call(|call| volume.sync(call)).unwrap();
    power.cut_after(operations);
    let done = replace(&*volume, file, by);
    let is_whole = done.is_ok() && !power.is_off();
    drop(volume);
    disks.lose_power(&mut random);
    power.restore();
    let volume = settings.open(disks.media(), &mounting(), Access::IfWhole).unwrap();
    let found = call(|call| volume.lookup(call, (ROOT, b"file"), Hold::No)).unwrap();
    let mut bytes = vec![0; 20_000];
    let length = call(|call| volume.read(call, found.inode, 0, &mut bytes)).unwrap().length;
    bytes.truncate(length);
    (bytes, is_whole)
}

#[test]
fn after_any_cut_a_replaced_file_has_its_old_bytes_or_its_new_ones() {
    assert_eq!(BLOCKS, 4096, "the volumes are small");
    for place in [Place::Inline, Place::Device, Place::Memory, Place::Monitor] {
        for data in ["ordered", "writeback", "journal"] {
            for by in [By::Rename, By::Exchange, By::Rewrite] {
                let settings = settings(data, place, "");
                // A store of memory is a small part of a block.
                let step = if place == Place::Memory { 13 } else { 1 };
                let mut has_new = false;
                for operations in (0..).step_by(step) {
                    let (bytes, is_whole) = after_cut(&settings, place, by, operations);
                    let what = format!("{place:?}, data={data}, {by:?}, a cut after {operations}");
                    assert!(bytes == OLD || bytes == NEW, "{what}: {} bytes", bytes.len());
                    assert!(!is_whole || bytes == NEW, "{what}: it was synced");
                    has_new |= bytes == NEW;
                    if is_whole {
                        break;
                    }
                }
                assert!(has_new, "{place:?}, data={data}, {by:?}");
            }
        }
    }
}

/// The same without it, as with noauto_da_alloc: the tests above see what they look for.
#[test]
fn without_it_a_replaced_file_may_have_no_bytes() {
    for by in [By::Rename, By::Rewrite] {
        let settings = settings("ordered", Place::Inline, ",auto-da-alloc=off");
        let left: Vec<usize> = (0..40).map(|cut| after_cut(&settings, Place::Inline, by, cut).0.len()).collect();
        assert!(left.contains(&0), "{by:?}: {left:?}");
    }
}
