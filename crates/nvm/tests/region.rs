//! Regions in memory and in files: contents, sizes, locks.

use flashpath_nvm::{Method, Persist, Region, RegionError};
use std::path::{Path, PathBuf};
use std::process::Command;

const BYTES: u64 = 1 << 16;

fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("region")
}

/// The methods of this processor.
fn methods() -> Vec<Persist> {
    let methods: Vec<Persist> = Method::ALL.into_iter().filter_map(|method| Persist::by(method).ok()).collect();
    assert!(!methods.is_empty());
    methods
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 253) as u8 ^ seed).collect()
}

#[test]
fn every_method_stores_what_is_read_back_at_any_offset_and_length() {
    let region = Region::anonymous(BYTES).unwrap();
    let mut model = vec![0; BYTES as usize];
    for (number, persist) in methods().into_iter().enumerate() {
        for (at, length) in [(0, 64), (128, 4096), (4096, 4160), (1, 1), (63, 3), (100, 4000), (65_535, 1), (60_000, 0)]
        {
            let bytes = pattern(length, number as u8 + 1);
            region.store(at as u64, &bytes, persist);
            region.fence();
            model[at..at + length].copy_from_slice(&bytes);
            let mut all = vec![0; BYTES as usize];
            region.read(0, &mut all);
            assert!(all == model, "{}: {length} bytes at {at}", persist.instructions());
        }
    }
}

#[test]
fn a_file_keeps_what_was_stored_and_is_allocated_in_full() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    for (number, persist) in methods().into_iter().enumerate() {
        let region = Region::create(&file(&folder), BYTES, number > 0).unwrap();
        let mut old = vec![1; BYTES as usize];
        region.read(0, &mut old);
        assert!(old.iter().all(|byte| *byte == 0), "a new region is one of zeros");
        let bytes = pattern(5000, number as u8);
        region.store(100, &bytes, persist);
        region.fence();
        drop(region);
        assert!(file(&folder).metadata().unwrap().blocks() * 512 >= BYTES, "no store finds the file system full");
        let region = Region::open(&file(&folder), None).unwrap();
        let mut found = vec![0; bytes.len()];
        region.read(100, &mut found);
        assert!(found == bytes && region.bytes() == BYTES);
        let stored = std::fs::read(file(&folder)).unwrap();
        assert!(stored[100..5100] == bytes[..], "other readers of the file see it");
    }
}

#[test]
fn an_access_beyond_the_end_panics() {
    let region = Region::anonymous(BYTES).unwrap();
    let beyond = |at: u64, length: usize| {
        let region = &region;
        let store = move || region.store(at, &vec![0; length], Persist::preferred());
        let read = move || region.read(at, &mut vec![0; length]);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(store)).is_err()
            && std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err()
    };
    assert!(beyond(BYTES, 1) && beyond(BYTES - 1, 2) && beyond(u64::MAX, 2));
    assert!(!beyond(BYTES - 2, 2) && !beyond(BYTES, 0));
}

#[test]
fn a_file_that_is_too_small_or_that_exists_or_that_is_no_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder);
    assert!(matches!(Region::open(&path, None), Err(RegionError::Io { doing: "open", .. })));
    assert!(!path.exists(), "a region that is opened is not made");
    drop(Region::create(&path, BYTES, false).unwrap());
    assert!(matches!(Region::create(&path, BYTES, false), Err(RegionError::Exists { bytes: BYTES, .. })));
    let small = Region::open(&path, Some(BYTES + 1));
    assert!(matches!(small, Err(RegionError::TooSmall { found: BYTES, needed, .. }) if needed == BYTES + 1));
    assert_eq!(Region::open(&path, Some(4096)).unwrap().bytes(), 4096);
    let null = Region::open(Path::new("/dev/null"), None);
    assert!(matches!(null, Err(RegionError::Kind { kind: "a device that is no memory", .. })), "{null:?}");
    std::fs::write(&path, []).unwrap();
    assert!(matches!(Region::open(&path, None), Err(RegionError::TooSmall { found: 0, .. })));
    assert!(matches!(Region::create(&path, u64::MAX / 4, false), Err(RegionError::Io { .. })), "there is no such room");
}

#[test]
fn a_region_is_used_by_one_process_and_by_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let region = Region::create(&file(&folder), BYTES, false).unwrap();
    let again = Region::open(&file(&folder), None);
    assert!(matches!(&again, Err(RegionError::InUse { .. })), "{again:?}");
    assert!(
        matches!(Region::create(&file(&folder), BYTES, true), Err(RegionError::InUse { .. })),
        "force takes no lock"
    );
    let lock = || Command::new("flock").arg("--nonblock").arg(file(&folder)).arg("true").status().unwrap();
    assert!(!lock().success(), "another process");
    drop(region);
    assert!(lock().success());
    Region::open(&file(&folder), None).unwrap();
}

/// tmpfs, and a file system on a disk, have no synchronous mappings: the page cache would be taken for the medium.
#[test]
fn only_a_mapping_of_non_volatile_memory_says_that_it_is_synchronous() {
    assert!(!Region::anonymous(4096).unwrap().is_synchronous());
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    assert!(!Region::create(&file(&memory), 4096, false).unwrap().is_synchronous());
}

#[test]
fn threads_share_a_region() {
    let region = Region::anonymous(BYTES).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let region = &region;
            scope.spawn(move || {
                let part = BYTES / 4;
                for round in 0..50u8 {
                    let bytes = pattern(part as usize, round ^ thread as u8);
                    region.store(thread * part, &bytes, Persist::preferred());
                    region.fence();
                    let mut found = vec![0; part as usize];
                    region.read(thread * part, &mut found);
                    assert!(found == bytes);
                }
            });
        }
    });
}

#[test]
fn a_method_without_its_instruction_is_refused_with_those_that_there_are() {
    for method in Method::ALL {
        match Persist::by(method) {
            Ok(persist) => assert_eq!(persist.method(), method),
            Err(error) => {
                assert!(error.to_string().contains(method.instruction()));
                assert!(error.present.contains(Method::NonTemporal.instruction()));
            }
        }
    }
    assert_eq!(Persist::preferred().method(), Method::NonTemporal);
}
