//! The write-back cache: a read returns the newest write, a flush writes all of it back, and data that was not flushed
//! is old or new on the device below. The caches are small, so that blocks are evicted again and again.

use flashpath::device::cache::{Cache, CacheSettings, Place, Policy};
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba, STAMP_BYTES, fill_with_stamp};
use flashpath::expression::parse_term;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile};
use flashpath::label::{Cause, Content, Label};
use flashpath::random::Random;
use flashpath::run::{
    Options, Path, Payload, check_file_system, check_volume, make_volume, open_device, open_file_system, prepare,
};
use flashpath::task::Task;
use flashpath::time::Time;
use flashpath::workload::generator::generator;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const BLOCKS: u64 = 96;
const DATA: Label = Label::host(Content::Data);
const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// The device below: shared with the test, and failing on request.
#[derive(Clone)]
struct Below {
    device: Arc<Mutex<Conventional>>,
    fails: Arc<AtomicBool>,
}

impl Below {
    fn new(blocks: u64) -> Below {
        let device = Arc::new(Mutex::new(Conventional::in_memory(blocks, STAMP_BYTES)));
        Below { device, fails: Arc::default() }
    }

    fn check(&self) -> Result<(), DeviceError> {
        match self.fails.load(Relaxed) {
            true => Err(DeviceError::Station { station: "below", reason: "it fails".to_string() }),
            false => Ok(()),
        }
    }

    fn stamp(&self, block: u64) -> u32 {
        let mut bytes = [0; STAMP_BYTES];
        self.device.lock().unwrap().read(Lba(block), &mut bytes, Time::ZERO).unwrap();
        u32::from_le_bytes(bytes)
    }
}

impl BlockDevice for Below {
    fn blocks(&self) -> u64 {
        self.device.lock().unwrap().blocks()
    }

    fn block_width(&self) -> usize {
        STAMP_BYTES
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.lock().unwrap().read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.check()?;
        self.device.lock().unwrap().write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.check()?;
        self.device.lock().unwrap().discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.check()?;
        self.device.lock().unwrap().flush(at)
    }

    fn account(&self) -> Account {
        self.device.lock().unwrap().account()
    }
}

impl Abilities for Below {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

fn settings(blocks: u64, policy: Policy) -> CacheSettings {
    let read = CacheSettings::read(&parse_term("cache:age=1ms").unwrap(), 1).unwrap();
    CacheSettings { blocks, policy, ..read }
}

/// The expected content: the newest write of each block, and the versions that the device below may have.
struct Model {
    newest: Vec<u32>,
    below: Vec<BTreeSet<u32>>,
}

/// Random operations on a cache of `cache_blocks`, above a device that fails at times.
fn work(cache_blocks: u64, policy: Policy, on_device: bool, seed: u64) {
    let below = Below::new(BLOCKS);
    let own = Below::new(cache_blocks + 3);
    let place = match on_device {
        true => Place::device(Box::new(own.clone())),
        false => Place::memory(STAMP_BYTES),
    };
    let cache = Cache::new(&settings(cache_blocks, policy), place, Box::new(below.clone()));
    let mut model = Model { newest: vec![0; BLOCKS as usize], below: vec![BTreeSet::from([0]); BLOCKS as usize] };
    let mut random = Random::new(seed, "cache");
    for step in 1..3000u32 {
        let first = random.below(BLOCKS);
        let most = if random.below(8) == 0 { 40 } else { 6 };
        let count = 1 + random.below(most.min(BLOCKS - first));
        let range = first as usize..(first + count) as usize;
        let at = Time(u64::from(step) * 100_000);
        below.fails.store(random.below(20) == 0, Relaxed);
        own.fails.store(random.below(40) == 0, Relaxed);
        let mut bytes = vec![0; count as usize * STAMP_BYTES];
        match random.below(20) {
            0..=8 => {
                fill_with_stamp(step, &mut bytes);
                let content = if random.below(2) == 0 { Content::Data } else { Content::Journal };
                let written = cache.write(Lba(first), &bytes, Label::host(content), at);
                model.below[range.clone()].iter_mut().for_each(|may| {
                    may.insert(step);
                });
                match written {
                    Ok(_) => model.newest[range].fill(step),
                    // Each block is old or new.
                    Err(_) => {
                        for block in range {
                            let mut bytes = [0; STAMP_BYTES];
                            cache.read(Lba(block as u64), &mut bytes, at).unwrap();
                            let found = u32::from_le_bytes(bytes);
                            assert!([model.newest[block], step].contains(&found), "block {block} is {found}");
                            model.newest[block] = found;
                        }
                    }
                }
            }
            9..=15 => {
                cache.read(Lba(first), &mut bytes, at).expect("a read does not fail");
                let found: Vec<u32> =
                    bytes.chunks(4).map(|stamp| u32::from_le_bytes(stamp.try_into().unwrap())).collect();
                assert_eq!(found, model.newest[range], "blocks {first} to {}", first + count);
            }
            16 => {
                if cache.discard(Lba(first), count, at).is_ok() {
                    model.newest[range.clone()].fill(0);
                    model.below[range].fill(BTreeSet::from([0]));
                }
            }
            17 => {
                if cache.flush(at).is_ok() {
                    for (block, may) in model.below.iter_mut().enumerate() {
                        *may = BTreeSet::from([model.newest[block]]);
                    }
                }
            }
            _ => {
                // A failed write-back is repeated by the next request that needs it.
                let _ = cache.work(at);
            }
        }
        for (block, may) in model.below.iter().enumerate() {
            let stamp = below.stamp(block as u64);
            assert!(may.contains(&stamp), "step {step}: below, block {block} is {stamp}, and may be {may:?}");
        }
    }
    below.fails.store(false, Relaxed);
    own.fails.store(false, Relaxed);
    cache.close(Time(u64::MAX / 2)).unwrap();
    (0..BLOCKS).for_each(|block| assert_eq!(below.stamp(block), model.newest[block as usize], "block {block}"));
    let account = cache.account();
    let received = account.below.iter().map(|below| below.received.total()).sum::<u64>();
    assert_eq!(account.sent.total(), received, "it sent what the stations below received");
    assert!(account.events.iter().all(|(_, count)| *count > 0), "{:?}", account.events);
}

#[test]
fn a_cache_returns_the_newest_write_and_a_flush_writes_it_back() {
    for (seed, policy) in [Policy::Lru, Policy::Fifo, Policy::Clock].into_iter().enumerate() {
        for blocks in [1, 2, 7, 40, 90] {
            for on_device in [false, true] {
                work(blocks, policy, on_device, seed as u64 * 100 + blocks);
            }
        }
    }
}

/// Adjacent journal and data blocks are written back with their own labels.
#[test]
fn a_block_keeps_its_label_when_it_is_written_back() {
    let below = Below::new(BLOCKS);
    let cache = Cache::new(&settings(64, Policy::Lru), Place::memory(STAMP_BYTES), Box::new(below.clone()));
    for block in 0..20 {
        let content = if block % 3 == 0 { Content::Journal } else { Content::Data };
        cache.write(Lba(block), &[1; STAMP_BYTES], Label::host(content), Time::ZERO).unwrap();
        cache.write(Lba(block), &[2; STAMP_BYTES], Label::host(content), Time::ZERO).unwrap();
    }
    assert_eq!(below.account().received.total(), 0, "nothing was written back");
    cache.flush(Time::ZERO).unwrap();
    let received = below.account().received;
    let of = |content| received.get(Cause::HostWrite, content);
    assert_eq!((of(Content::Journal), of(Content::Data)), (7, 13), "each block once, for two writes");
}

/// A block that is dirty for `age` is written back without a flush, with its neighbours, and not earlier.
#[test]
fn a_block_dirty_for_the_age_limit_is_written_back_in_the_background() {
    let below = Below::new(BLOCKS);
    let cache = Cache::new(&settings(64, Policy::Lru), Place::memory(STAMP_BYTES), Box::new(below.clone()));
    cache.write(Lba(3), &[1; 2 * STAMP_BYTES], DATA, Time(500)).unwrap();
    cache.write(Lba(50), &[1; STAMP_BYTES], DATA, Time(700_000)).unwrap();
    assert_eq!(cache.work(Time(1_000_000)).unwrap(), Some(Time(1_000_500)));
    assert_eq!(below.account().received.total(), 0);
    assert_eq!(cache.work(Time(1_000_500)).unwrap(), Some(Time(1_700_000)));
    assert_eq!(below.account().received.total(), 2);
    assert_eq!(cache.work(Time(1_700_000)).unwrap(), None);
    assert_eq!(below.account().received.total(), 3);
}

/// A cache in memory absorbs overwrites until it evicts, and the ledger's sums hold above and below it.
#[test]
fn a_cache_works_between_any_station_and_its_device() {
    for path in [
        "cache:size=1M/conv:size=16M",
        "cache:size=1M,policy=clock/conv:size=2M+page/nand:size=64M",
        "cache:size=1M/cache:size=4M,policy=fifo/dftl/nand:size=128M",
        "cache:size=1M/dm-zoned:reserved=3/conv:size=8M+zns:size=64M,zone=1M",
        "dm-zoned:reserved=3/cache:size=1M/conv:size=8M+zns:size=64M,zone=1M",
        "sfs/cache:size=1M/page/nand:size=64M",
        "sfs/cache:size=1M/conv:size=64M,ftl=page",
    ] {
        let path = Path::read(path).unwrap();
        let options = Options { verify: true, ..Options::default() };
        let prepared = prepare(&path, 1).unwrap_or_else(|error| panic!("{}: {error}", path.text));
        let term = parse_term("hotcold:r=0.1,f=0.9,writes=1x").unwrap();
        let mut workload = generator(&term, prepared.exported_bytes(), 1).unwrap();
        let outcome = prepared.run(&mut *workload, &options, &mut |_| true);
        assert!(outcome.failure.is_none(), "{}: {:?}", path.text, outcome.failure);
        let rows: BTreeSet<&str> = outcome.result.ledger.iter().map(|row| row.station.as_str()).collect();
        assert!(rows.contains("cache"), "{}: {rows:?}", path.text);
        assert!(outcome.result.sums.iter().all(|sum| sum.holds), "{}: {:?}", path.text, outcome.result.sums);
    }
}

/// The simulated device is as fast as memory while everything fits, and as slow as the device below if nothing does.
#[test]
fn a_hit_takes_the_time_of_memory_and_a_miss_that_of_the_device() {
    let path = Path::read("cache:size=64K,access=1us/conv:size=1M,read=40us,write=200us").unwrap();
    let cache = open_device(&path, Payload::Stamps, 1).unwrap();
    let mut bytes = [0; STAMP_BYTES];
    assert_eq!(cache.read(Lba(1), &mut bytes, Time::ZERO).unwrap(), Time(40_000));
    assert_eq!(cache.read(Lba(1), &mut bytes, Time(50_000)).unwrap(), Time(51_000));
    assert_eq!(cache.write(Lba(2), &bytes, DATA, Time(60_000)).unwrap(), Time(61_000));
    assert_eq!(cache.flush(Time(70_000)).unwrap(), Time(271_000));
}

/// Volumes on images below a cache, of dm-zoned and of a file system on dm-zoned: made, filled, checked, opened again.
#[test]
fn volumes_are_made_and_found_again_on_images_under_any_stack() {
    for text in [
        "sfs/cache:size=1M/conv:image=A,size=32M",
        "sfs/cache:size=1M/conv:image=C,size=2M+conv:image=A,size=32M",
        "sfs/cache:size=1M/conv:size=2M+conv:image=A,size=32M",
        "sfs/dm-zoned:reserved=3/conv:image=A,size=8M+zns:image=B,size=64M,zone=1M",
        "sfs:segment=256K/dm-zoned:reserved=3/cache:size=1M/conv:image=A,size=8M+zns:image=B,size=64M,zone=1M",
    ] {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("image={}/{name}", place.path().display());
        let text = text.replace("image=A", &at("A")).replace("image=B", &at("B")).replace("image=C", &at("C"));
        let path = Path::read(&text).unwrap();
        make_volume(&path, false, 7, 0, None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let exists = make_volume(&path, false, 7, 0, None).expect_err("the images exist").to_string();
        assert!(exists.contains("exists") || exists.contains("is there"), "{text}: {exists}");
        let (task, mounting, name) = (Task::at(Time::ZERO), Mounting::at(1, 0), (InodeNumber::ROOT, &b"file"[..]));
        let call = Call::by_root(&task);
        let volume = open_file_system(&path, &mounting, Access::IfWhole).unwrap();
        let file = volume.make(&call, name, &NEW, Hold::No, None).unwrap().inode;
        let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number / 7) as u8).collect();
        volume.write(&call, file, 0, &bytes, None).unwrap();
        volume.unmount(&call).unwrap();
        drop(volume);
        assert_eq!(check_file_system(&path).unwrap(), [], "{text}");
        let volume = open_file_system(&path, &mounting, Access::ReadOnly).unwrap();
        let file = volume.lookup(&call, name, Hold::No).unwrap().inode;
        let mut found = vec![0; bytes.len()];
        assert_eq!(volume.read(&call, file, 0, &mut found).unwrap().length, bytes.len());
        assert!(found == bytes, "{text}");
        if text.contains("dm-zoned") {
            drop(volume);
            let below = Path::read(text.split_once('/').unwrap().1).unwrap();
            assert_eq!(check_volume(&below).unwrap(), [], "{text}: dm-zoned below");
        }
    }
    let mixed = Path::read("sfs/dm-zoned/conv:size=8M+zns:image=B,size=64M,zone=1M").unwrap();
    let error = make_volume(&mixed, false, 7, 0, None).unwrap_err().to_string();
    assert!(error.contains("storage in memory is new in each run"), "{error}");
}

/// A cache on a device of one unit that reads a block in 100 us and writes one in 200 us.
fn cache_on_one_unit() -> Cache {
    let below = ConvSettings::read(&parse_term("conv:size=1M,read=100us,write=200us,units=1").unwrap()).unwrap();
    let settings = CacheSettings::read(&parse_term("cache:size=64K,access=1us").unwrap(), 1).unwrap();
    let below = Box::new(Conventional::new(&below, STAMP_BYTES));
    Cache::new(&settings, Place::memory(STAMP_BYTES), below)
}

/// Regression: a block that another thread was fetching was returned from memory before it had arrived: the cache did
/// not record the time of arrival.
#[test]
fn a_hit_on_a_block_being_fetched_waits_for_its_arrival() {
    let (cache, mut bytes) = (cache_on_one_unit(), [0; STAMP_BYTES]);
    assert_eq!(cache.read(Lba(7), &mut bytes, Time(0)).unwrap(), Time(100_000));
    assert_eq!(
        cache.read(Lba(7), &mut bytes, Time(10_000)).unwrap(),
        Time(101_000),
        "read while the block is being fetched"
    );
    assert_eq!(cache.read(Lba(7), &mut bytes, Time(300_000)).unwrap(), Time(301_000));
}

/// Regression: the second of two concurrent flushes found nothing dirty, and returned before the first had written
/// back.
#[test]
fn a_flush_waits_for_the_writeback_of_a_concurrent_flush() {
    let cache = cache_on_one_unit();
    assert_eq!(cache.write(Lba(7), &[1; STAMP_BYTES], DATA, Time(0)).unwrap(), Time(1000));
    let first = cache.flush(Time(2000)).unwrap();
    assert!(first >= Time(202_000), "{first:?}");
    assert_eq!(cache.flush(Time(3000)).unwrap(), first);
    assert_eq!(cache.flush(Time(900_000)).unwrap(), Time(900_000));
}
