//! Journals in non-volatile memory: crashes beside the reference, and memory that does not belong to the volume.

use crate::image::{call, has_e2fsprogs, program};
use crate::work::Work;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::Volume;
use flashpath::run::{Path, check_file_system, make_volume, open_file_system, repair_file_system};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A volume and its memory, in files `v` and `j`.
struct World {
    place: TempDir,
}

impl World {
    /// Made with these options of `ext`; the sizes are those of the volume and of the memory.
    fn new(options: &str, volume: &str, memory: &str) -> World {
        World::of_seed(5, options, volume, memory)
    }

    /// The same; volumes of two seeds have two UUIDs.
    fn of_seed(seed: u64, options: &str, volume: &str, memory: &str) -> World {
        let world = World { place: tempfile::tempdir().unwrap() };
        let text = format!(
            "ext{options}/conv:image={},size={volume}+nvm:image={},size={memory}",
            world.file("v").display(),
            world.file("j").display()
        );
        make_volume(&Path::read(&text).unwrap(), false, seed, 0, None).unwrap();
        world
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The path of the volume with memory `j`, or without any.
    fn path(&self, options: &str, memory: Option<&str>) -> Path {
        let memory = memory.map(|name| format!("+nvm:image={}", self.file(name).display())).unwrap_or_default();
        Path::read(&format!("ext{options}/conv:image={}{memory}", self.file("v").display())).unwrap()
    }

    fn opened(&self, options: &str) -> Arc<dyn Volume> {
        open_file_system(&self.path(options, Some("j")), &Mounting::at(9, 0), Access::IfWhole).unwrap()
    }

    /// The files as a killed process leaves them now.
    fn copied(&self) -> World {
        let copy = World { place: tempfile::tempdir().unwrap() };
        for name in ["v", "j"] {
            fs::copy(self.file(name), copy.file(name)).unwrap();
        }
        copy
    }

    fn check(&self, what: &str) {
        if has_e2fsprogs() {
            let checked = program("e2fsck").arg("-fn").arg(self.file("v")).output().unwrap();
            assert!(checked.status.success(), "{what}: {}", String::from_utf8_lossy(&checked.stdout));
        }
    }

    /// The message of a refused mount, which has changed neither the volume nor the memory.
    fn refused(&self, options: &str, memory: Option<&str>) -> String {
        let files = || ["v", "j"].map(|name| fs::read(self.file(name)).unwrap());
        let before = files();
        let error = open_file_system(&self.path(options, memory), &Mounting::at(9, 0), Access::IfWhole);
        let error = error.map(drop).unwrap_err();
        assert!(files() == before, "{error}: nothing is changed");
        error.to_string()
    }
}

/// Does random work, syncs, and answers the files as a crash leaves them then.
fn crashed(world: &World, options: &str, work: &mut Work, steps: u64) -> World {
    let volume = world.opened(options);
    for _ in 0..steps {
        work.step(&*volume);
    }
    call(|call| volume.sync(call)).unwrap();
    let crashed = world.copied();
    call(|call| volume.unmount(call)).unwrap();
    crashed
}

#[test]
fn synced_work_is_there_after_a_crash_with_each_mode_and_scheme() {
    for (seed, made, options) in [
        (1, "", ""),
        (2, ":block=1K", ":partitions=8"),
        (3, "", ":scheme=paper"),
        (4, "", ":data=ordered"),
        (5, "", ":data=writeback,scheme=paper"),
        (6, ":partitions=3,hash=multiplicative", ":checkpointers=2"),
    ] {
        let (world, mut work) = (World::new(made, "64M", "28M"), Work::new(seed));
        for round in 0..6 {
            let what = format!("seed {seed}, {made} {options}, round {round}");
            let crashed = crashed(&world, options, &mut work, 150);
            let recovered = crashed.opened(options);
            work.compare(&*recovered);
            call(|call| recovered.unmount(call)).unwrap();
            drop(recovered);
            crashed.check(&what);
            let path = world.path("", None);
            assert_eq!(check_file_system(&path).unwrap(), [], "{what}: an ordinary volume after its unmount");
            world.check(&what);
        }
    }
}

#[test]
fn a_repair_takes_in_the_journal_and_gives_up_a_lost_one() {
    let (world, mut work) = (World::new("", "64M", "28M"), Work::new(7));
    let crashed = crashed(&world, "", &mut work, 200);
    let (kept, lost) = (crashed.copied(), crashed.copied());
    let found = repair_file_system(&kept.path("", Some("j")), 0).unwrap();
    assert_eq!((found.repaired, found.left), (vec![], vec![]), "it is whole with its journal");
    kept.check("repaired with its journal");
    let volume = kept.opened("");
    work.compare(&*volume);
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    let found = repair_file_system(&lost.path(":journal=inline", None), 0).unwrap();
    assert!(found.repaired[0].what.contains("which is given up") && found.left.is_empty(), "{found:?}");
    lost.check("repaired without its journal");
    // The memory has transactions of a volume that does not name it any more.
    let error = lost.refused("", Some("j"));
    assert!(error.contains("has transactions of this volume, which does not name it"), "{error}");
    call(|call| lost.opened(":renew=on").unmount(call)).unwrap();
    lost.check("with a new journal");
}
