//! `journal=vmm`: commits hand memory to a monitor. It is not changed while it is kept, it is enough for a recovery, and what
//! does not fit is refused.

use crate::crashes::{BLOCK, BLOCKS, findings, image_of};
use crate::image::{Image, call, has_e2fsprogs};
use crate::power_cut::{Disk, Power};
use crate::walk::of_volume;
use crate::work::Work;
use flashpath::device::{DeviceError, Frame, KeptBlocks, KeptVolume, Medium, Monitor, OwnMonitor};
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, Mounting, RepairOutcome, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::label::{Cause, Content};
use flashpath::run::{Path, simulated_file_system};
use flashpath::time::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

fn regular() -> NewFile<'static> {
    let kind = FileKind::Regular;
    NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] }
}

fn settings(options: &str) -> ExtSettings {
    ExtSettings::read(&parse_term(&format!("ext:dirty=1M{options}")).unwrap()).unwrap()
}

/// A volume, and the monitor of its process.
struct World {
    disk: Disk,
    monitor: Arc<dyn Monitor>,
    seed: u64,
}

impl World {
    fn new(monitor: Arc<dyn Monitor>, seed: u64) -> World {
        World { disk: Disk::new(&Power::new(), BLOCKS, 0), monitor, seed }
    }

    fn mounting(&self) -> Mounting {
        Mounting::at(self.seed, 1_700_000_000_000_000_000)
    }

    fn media(&self, monitor: Option<&Arc<dyn Monitor>>) -> Vec<Medium> {
        let monitor = monitor.map(|monitor| Medium::Monitor(Arc::clone(monitor)));
        [Medium::Blocks(Box::new(self.disk.clone()))].into_iter().chain(monitor).collect()
    }

    fn made(&self, options: &str) -> Arc<dyn Volume> {
        settings(options)
            .create(self.media(Some(&self.monitor)), &self.mounting())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn open(&self, options: &str, monitor: Option<&Arc<dyn Monitor>>) -> Result<Arc<dyn Volume>, String> {
        let opened = settings(options).open(self.media(monitor), &self.mounting(), Access::IfWhole);
        opened.map_err(|error| error.to_string())
    }

    /// The process dies in the middle of its work.
    fn crashed(monitor: Arc<dyn Monitor>, seed: u64) -> (World, crate::walk::Tree) {
        let world = World::new(monitor, seed);
        let volume = world.made("");
        let mut work = Work::new(seed);
        (0..800).for_each(|_| work.step(&*volume));
        call(|call| volume.sync(call)).unwrap();
        let tree = of_volume(&*volume);
        drop(volume);
        (world, tree)
    }

    /// A mount is refused with these words, and changes nothing.
    fn refused(&self, options: &str, monitor: Option<&Arc<dyn Monitor>>, words: &[&str]) {
        let before = self.bytes();
        let error = self.open(options, monitor).err().unwrap_or_else(|| panic!("{words:?}: it is refused"));
        words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
        assert!(self.bytes() == before, "a refusal changes nothing: {error}");
    }

    fn bytes(&self) -> Vec<u8> {
        (0..BLOCKS).flat_map(|block| self.disk.bytes(block).to_vec()).collect()
    }

    fn image(&self) -> Image {
        image_of(&self.disk, BLOCKS)
    }
}

/// A monitor that has no share of the memory, as one in another process has none: the journal has to hold on to it. It
/// looks at all that it keeps whenever it is called.
#[derive(Default)]
struct Watching {
    kept: OwnMonitor,
    frames: Mutex<BTreeMap<u64, Watched>>,
    /// Done by another thread while the next `let_go` is not answered.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

struct Watched {
    memory: Weak<[u8]>,
    bytes: Vec<u8>,
    number: u32,
}

impl Watching {
    fn check(&self) {
        for (block, Watched { memory, bytes, .. }) in &*self.frames.lock().unwrap() {
            // One who wants to change memory that nobody shares takes it away from those who only watch it.
            let now =
                memory.upgrade().unwrap_or_else(|| panic!("the memory of block {block} was let go while it was kept"));
            assert!(now[..] == bytes[..], "block {block} was changed while it was kept");
        }
    }
}

impl Monitor for Watching {
    fn kept_of(&self, volume: [u8; 16]) -> Result<Option<KeptBlocks>, DeviceError> {
        self.kept.kept_of(volume)
    }

    fn begin(&self, volume: KeptVolume, first: u32) -> Result<(), DeviceError> {
        self.kept.begin(volume, first)
    }

    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError> {
        self.check();
        let mut frames = self.frames.lock().unwrap();
        freed.iter().for_each(|block| drop(frames.remove(block)));
        for (block, frame) in blocks {
            let Frame::Own(memory) = frame else { panic!("there is no arena") };
            let watched = Watched { memory: Arc::downgrade(memory), bytes: frame.to_vec(), number };
            frames.insert(*block, watched);
        }
        Ok(at)
    }

    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError> {
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().take() {
            std::thread::scope(|scope| scope.spawn(meanwhile).join().unwrap());
        }
        self.check();
        self.frames.lock().unwrap().retain(|_, watched| watched.number >= next);
        Ok(at)
    }

    fn end(&self) -> Result<(), DeviceError> {
        assert!(self.frames.lock().unwrap().is_empty(), "all was home");
        self.kept.end()
    }
}

#[test]
fn memory_is_not_changed_while_a_monitor_keeps_it() {
    for (options, seed) in [("", 1), (",data=ordered", 2), (",journal-size=1M", 3)] {
        let watching = Arc::new(Watching::default());
        let world = World::new(Arc::clone(&watching) as Arc<dyn Monitor>, seed);
        let volume = world.made(options);
        let mut work = Work::new(seed);
        for step in 0..1200 {
            work.step(&*volume);
            if step % 7 == 0 {
                call(|call| volume.sync(call)).unwrap();
            }
            if step % 5 == 0 {
                call(|call| volume.work(call)).unwrap();
            }
            watching.check();
        }
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        if has_e2fsprogs() {
            world.image().check();
        }
    }
}

/// What is home is released, and could be changed in its place before the monitor has let it go.
#[test]
fn memory_that_is_home_is_not_changed_before_the_monitor_has_let_it_go() {
    let watching = Arc::new(Watching::default());
    let world = World::new(Arc::clone(&watching) as Arc<dyn Monitor>, 4);
    let volume = world.made(",journal-size=1M");
    let file = call(|call| volume.make(call, (InodeNumber::ROOT, b"file"), &regular(), Hold::No, None)).unwrap().inode;
    let write = move |volume: &dyn Volume, byte: u8, block: u64| {
        call(|call| volume.write(call, file, block * BLOCK as u64, &[byte; BLOCK], None)).unwrap();
    };
    let blocks = 700;
    for block in 0..blocks {
        write(&*volume, 1, block);
        call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
    }
    let beside = Arc::clone(&volume);
    *watching.meanwhile.lock().unwrap() = Some(Box::new(move || (0..40).for_each(|block| write(&*beside, 2, block))));
    while watching.meanwhile.lock().unwrap().is_some() {
        write(&*volume, 3, blocks - 1);
        call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
        call(|call| volume.work(call)).unwrap();
    }
    call(|call| volume.unmount(call)).unwrap();
}

#[test]
fn a_commit_writes_nothing_and_the_rest_goes_home_once() {
    let sent = |path: &str| {
        let volume = simulated_file_system(&Path::read(path).unwrap(), 3).unwrap();
        let file =
            call(|call| volume.make(call, (InodeNumber::ROOT, b"file"), &regular(), Hold::No, None)).unwrap().inode;
        for step in 0..2000 {
            call(|call| volume.write(call, file, step * 7 % 300 * 4096, &[7; 2 * BLOCK], None)).unwrap();
            if step % 4 == 0 {
                call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
            }
        }
        let account = call(|call| volume.account(call)).unwrap();
        call(|call| volume.unmount(call)).unwrap();
        (account.sent, account.events)
    };
    let (kept, events) = sent("ext:journal=vmm/conv:size=64M,timing=off");
    let (logged, _) = sent("ext:data=journal/conv:size=64M,timing=off");
    let journal = |sent: &flashpath::label::Tally| sent.get(Cause::JournalCommit, Content::Journal);
    assert_eq!(journal(&kept), 1, "the superblock of the empty log, when the mount begins");
    assert!(journal(&logged) > 1000, "{}", journal(&logged));
    let count = |name: &str| events.iter().find(|(event, _)| *event == name).expect("it is counted").1;
    assert!(count("most blocks kept") >= count("blocks kept by the monitor") && count("most blocks kept") > 100);
}

#[test]
fn a_recovery_brings_back_what_was_committed_and_can_be_repeated() {
    let (world, tree) = World::crashed(Arc::new(OwnMonitor::new()), 5);
    let read_only = settings("").open(world.media(Some(&world.monitor)), &world.mounting(), Access::ReadOnly).unwrap();
    assert_eq!(of_volume(&*read_only), tree, "who only reads changes nothing");
    drop(read_only);
    let volume = world.open("", Some(&world.monitor)).unwrap();
    assert_eq!(of_volume(&*volume), tree);
    drop(volume);
    // It died again at once.
    let volume = world.open(",data=ordered", Some(&world.monitor)).unwrap();
    assert_eq!(of_volume(&*volume), tree);
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    assert!(world.monitor.kept_of([0; 16]).unwrap().is_none_or(|kept| kept.blocks.is_empty()), "all is home");
    let volume = world.open("", None).unwrap();
    assert_eq!(of_volume(&*volume), tree, "it is an ordinary volume again");
    call(|call| volume.unmount(call)).unwrap();
    if has_e2fsprogs() {
        world.image().check();
    }
}

#[test]
fn what_was_kept_is_in_the_cache_of_the_next_mount() {
    const BYTES: [u8; BLOCK] = [0xAB; BLOCK];
    let world = World::new(Arc::new(OwnMonitor::new()), 8);
    let volume = world.made("");
    let file = call(|call| volume.make(call, (InodeNumber::ROOT, b"file"), &regular(), Hold::No, None)).unwrap().inode;
    for block in 0..20 {
        call(|call| volume.write(call, file, block * BLOCK as u64, &BYTES, None)).unwrap();
    }
    call(|call| volume.sync_file(call, file, Durable::All)).unwrap();
    drop(volume);
    let on_disk = || (0..BLOCKS).filter(|block| world.disk.bytes(*block) == BYTES).collect::<Vec<_>>();
    assert!(on_disk().is_empty(), "nothing was home");
    let volume = world.open("", Some(&world.monitor)).unwrap();
    let home = on_disk();
    assert_eq!(home.len(), 20);
    // Whoever asks the device finds other bytes.
    home.into_iter().for_each(|block| world.disk.put(block, &[0; BLOCK]));
    let mut found = vec![0; 20 * BLOCK];
    call(|call| volume.read(call, file, 0, &mut found)).unwrap();
    assert!(found.chunks(BLOCK).all(|block| block == BYTES));
}

#[test]
fn a_volume_whose_memory_is_lost_is_refused_until_it_is_given_up() {
    let (world, _) = World::crashed(Arc::new(OwnMonitor::new()), 6);
    world.refused("", None, &["the volume uses journal", "fsck ext:journal=inline/DATA"]);
    world.refused(",journal=vmm", None, &["needs a monitor"]);
    // Its host lost power: a new monitor knows nothing.
    let new: Arc<dyn Monitor> = Arc::new(OwnMonitor::new());
    world.refused("", Some(&new), &["is not kept by this monitor", "fsck ext:journal=inline/DATA"]);
    let (other, _) = World::crashed(Arc::new(OwnMonitor::new()), 7);
    world.refused("", Some(&other.monitor), &["the monitor keeps memory", "of volume", "the volume names"]);
    if has_e2fsprogs() {
        let image = world.image();
        assert!(image.findings().is_some(), "e2fsck does not take it for a whole volume");
    }
    let repaired = settings(",journal=inline").repair(world.media(None), &world.mounting()).unwrap();
    let RepairOutcome { repaired: found, .. } = &repaired;
    assert!(found.iter().any(|found| found.what.contains("which is given up")), "{found:?}");
    let volume = world.open("", None).unwrap();
    call(|call| volume.unmount(call)).unwrap();
    assert_eq!(has_e2fsprogs().then(|| findings(&(world.image(), None))).flatten(), None);
}

#[test]
fn a_repair_takes_in_what_the_monitor_keeps() {
    let (world, tree) = World::crashed(Arc::new(OwnMonitor::new()), 8);
    settings("").repair(world.media(Some(&world.monitor)), &world.mounting()).unwrap();
    assert!(world.monitor.kept_of([0; 16]).unwrap().is_none(), "it keeps nothing any more");
    let volume = world.open("", None).unwrap();
    assert_eq!(of_volume(&*volume), tree);
    call(|call| volume.unmount(call)).unwrap();
}

#[test]
fn memory_that_is_not_of_the_volume_is_refused_and_a_repair_leaves_it_out() {
    for (block, length, why) in [(BLOCKS + 7, BLOCK, "which the volume has not"), (30, 100, "100 bytes")] {
        let (world, _) = World::crashed(Arc::new(OwnMonitor::new()), 9);
        let kept = world.monitor.kept_of([0; 16]).unwrap().unwrap();
        let next = kept.last.wrapping_add(1);
        world.monitor.commit(Time::ZERO, next, &[(block, vec![0; length].into())], &[]).unwrap();
        world.refused("", Some(&world.monitor), &["the memory that the monitor kept", why]);
        let repaired = settings("").repair(world.media(Some(&world.monitor)), &world.mounting()).unwrap();
        assert!(repaired.repaired.iter().any(|found| found.what.contains(why)), "{:?}", repaired.repaired);
        if has_e2fsprogs() {
            world.image().check();
        }
    }
}

#[test]
fn a_monitor_that_keeps_memory_of_a_volume_is_not_taken_by_another() {
    let (world, _) = World::crashed(Arc::new(OwnMonitor::new()), 10);
    let other = World::new(Arc::new(OwnMonitor::new()), 11);
    let volume = other.made("");
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    other.refused("", Some(&world.monitor), &["the monitor keeps memory", "mount that one first"]);
    let made = settings("").create(other.media(Some(&world.monitor)), &other.mounting());
    let error = made.err().expect("mkfs would drop what it keeps").to_string();
    assert!(error.contains("mount that one first"), "{error}");
    assert!(!world.monitor.kept_of([0; 16]).unwrap().unwrap().blocks.is_empty());
}

#[test]
fn options_that_contradict_a_monitor_are_refused() {
    let world = World::new(Arc::new(OwnMonitor::new()), 12);
    let volume = world.made("");
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    for (options, words) in [
        (",journal=inline", "leave one of them out"),
        (",journal=nvm", "write journal=vmm"),
        (",partitions=2", "partitions= is of a journal in non-volatile memory"),
    ] {
        world.refused(options, Some(&world.monitor), &[words]);
    }
    // What is read before any device is opened.
    let refused = ExtSettings::read(&parse_term("ext:journal=vmm,hash=modulo").unwrap()).unwrap_err().to_string();
    assert!(refused.contains("hash="), "{refused}");
}

/// A monitor that ends when it is told to.
#[derive(Default)]
struct Ending {
    kept: OwnMonitor,
    is_gone: AtomicBool,
    /// The blocks that it keeps.
    blocks: Mutex<BTreeMap<u64, u32>>,
    most: AtomicUsize,
}

impl Ending {
    fn answer<T>(&self, answer: impl FnOnce() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        match self.is_gone.load(Ordering::SeqCst) {
            true => Err(DeviceError::Station { station: "monitor", reason: "it has ended".to_string() }),
            false => answer(),
        }
    }
}

impl Monitor for Ending {
    fn kept_of(&self, volume: [u8; 16]) -> Result<Option<KeptBlocks>, DeviceError> {
        self.kept.kept_of(volume)
    }

    fn begin(&self, volume: KeptVolume, first: u32) -> Result<(), DeviceError> {
        self.kept.begin(volume, first)
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError> {
        let at = self.answer(|| self.kept.commit(at, number, blocks, freed))?;
        let mut kept = self.blocks.lock().unwrap();
        kept.retain(|block, _| !freed.contains(block));
        kept.extend(blocks.iter().map(|(block, _)| (*block, number)));
        self.most.fetch_max(kept.len(), Ordering::SeqCst);
        Ok(at)
    }

    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError> {
        let at = self.answer(|| self.kept.let_go(at, next))?;
        self.blocks.lock().unwrap().retain(|_, number| *number >= next);
        Ok(at)
    }

    fn end(&self) -> Result<(), DeviceError> {
        self.answer(|| self.kept.end())
    }
}

/// With `kept=` a monitor keeps more than the log in the volume could hold. When it ends, nothing that was synced is lost.
#[test]
fn what_a_monitor_keeps_is_not_bounded_by_the_log_in_the_volume() {
    const WRITTEN: u64 = 1500;
    let written = |options: &str| {
        let monitor = Arc::new(Ending::default());
        let world = World::new(Arc::clone(&monitor) as Arc<dyn Monitor>, 5);
        let volume = world.made(&format!(",data=journal,journal-size=1M{options}"));
        let file = call(|call| volume.make(call, (InodeNumber::ROOT, b"file"), &regular(), Hold::No, None)).unwrap();
        let write = |block: u64, byte: u8| {
            let bytes = [byte; BLOCK];
            call(|call| volume.write(call, file.inode, block * BLOCK as u64, &bytes, None)).unwrap();
            call(|call| volume.sync_file(call, file.inode, Durable::All)).unwrap();
        };
        (0..WRITTEN).for_each(|block| write(block, 1));
        let most = monitor.most.load(Ordering::SeqCst);
        monitor.is_gone.store(true, Ordering::SeqCst);
        (0..WRITTEN / 20).for_each(|block| write(block * 20, 2));
        drop(volume);
        // The process has died, too: its volume is whole, with all that was synced.
        let volume = world.open(",journal=inline", None).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = vec![0; BLOCK * WRITTEN as usize];
        let file = call(|call| volume.lookup(call, (InodeNumber::ROOT, b"file"), Hold::No)).unwrap().inode;
        call(|call| volume.read(call, file, 0, &mut bytes)).unwrap();
        for (block, bytes) in bytes.chunks(BLOCK).enumerate() {
            assert_eq!(bytes, [1 + u8::from(block % 20 == 0); BLOCK], "block {block}");
        }
        call(|call| volume.unmount(call)).unwrap();
        most
    };
    let (bounded, lifted) = (written(""), written(",kept=16M"));
    assert!(bounded < 1024 && lifted >= WRITTEN as usize, "{bounded} and {lifted} blocks");
    let refused = ExtSettings::read(&parse_term("ext:kept=16M,journal=inline").unwrap()).unwrap_err();
    assert!(format!("{refused:?}").contains("journal=vmm"), "{refused:?}");
}
