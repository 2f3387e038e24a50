//! The requests of a flash cache's drive, beside a model that only keeps lists, and what a drive makes of them.

use flashpath::expression::{ExpressionError, parse_term};
use flashpath::random::Random;
use flashpath::report::{CacheResult, RunResult};
use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath::workload::generator::{file_of, generator};
use flashpath::workload::{Action, CacheCounts, Operation};
use std::fmt::Write;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A read or a write: the action, the first byte, and the number of bytes.
type Request = (Action, u64, u64);

/// The requests of a workload, and the counts of its cache.
fn requests_of(text: &str, device_bytes: u64, seed: u64) -> Result<(Vec<Operation>, CacheCounts), ExpressionError> {
    let mut workload = generator(&parse_term(text)?, device_bytes, seed)?;
    let mut all = Vec::new();
    while workload.next_batch(&mut all, 777).expect("the trace is right") > 0 {}
    Ok((all, workload.cache().expect("it is a cache's")))
}

/// A random trace of 20,000 lines in the order of Twitter's or under CacheLib's header: 3,000 keys of 1 to 9,000 bytes.
struct Trace {
    lines: Vec<Line>,
}

#[derive(Clone)]
struct Line {
    second: u64,
    key: String,
    action: &'static str,
    value_bytes: u64,
    count: u64,
    ttl: u64,
}

impl Trace {
    fn drawn(seed: u64, is_with_lives: bool) -> Trace {
        let mut random = Random::new(seed, "trace of keys");
        let mut lines = Vec::new();
        for number in 0..20_000u64 {
            // The square of a draw: some keys are asked for much more often than others.
            let draw = random.unit();
            let key = (draw * draw * 3000.0) as u64;
            let action = match random.below(20) {
                0..12 => "get",
                12..18 => "set",
                18 => "incr",
                _ => "delete",
            };
            // Sizes change sometimes, also from small to large.
            let version = if random.below(10) == 0 { random.below(5) } else { 0 };
            let value_bytes = if key.is_multiple_of(3) {
                1500 + (key * 7919 + version * 997) % 7500
            } else {
                1 + (key * 31 + version * 400) % 900
            };
            let value_bytes = if random.below(50) == 0 { 0 } else { value_bytes };
            let ttl = if is_with_lives { random.below(3) * 40 } else { 0 };
            let count = 1 + random.below(8) / 7;
            lines.push(Line { second: number / 100, key: format!("k{key}"), action, value_bytes, count, ttl });
        }
        Trace { lines }
    }

    fn of_twitter(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            for _ in 0..line.count {
                let Line { second, key, action, value_bytes, ttl, .. } = line;
                writeln!(text, "{second},{key},20,{value_bytes},7,{action},{ttl}").unwrap();
            }
        }
        text
    }

    /// CacheLib has no word for a change of what is there: such lines are left out.
    fn of_cachelib(&self) -> String {
        let mut text = "key,op,size,op_count,key_size,ttl,op_time\n".to_string();
        for line in self.lines.iter().filter(|line| line.action != "incr") {
            let Line { second, key, action, value_bytes, count, ttl } = line;
            writeln!(text, "{key},{},{value_bytes},{count},20,{ttl},{second}", action.to_uppercase()).unwrap();
        }
        text
    }
}

/// An object of the model.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    key: String,
    bytes: u64,
    expires: u64,
}

/// The model: lists that are searched from end to end.
struct Model {
    bucket_bytes: u64,
    buckets: Vec<Vec<Item>>,
    region_bytes: u64,
    /// Each region's entries with their offsets, and its used bytes.
    regions: Vec<(Vec<(Item, u64)>, u64)>,
    /// Regions in the order in which they are rewritten.
    order: Vec<usize>,
    open: usize,
    is_lru: bool,
    /// The last used is the last.
    memory: Vec<Item>,
    memory_bytes: u64,
    small_bytes: u64,
    asked: Vec<Request>,
    now: u64,
    hits: [u64; 3],
    gets: u64,
}

/// FNV-1a and the end of SplitMix64, written down once more: the bucket of a key.
fn bucket_of(key: &str, count: usize) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in key.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash = (hash ^ hash >> 30).wrapping_mul(13_787_848_793_156_543_929);
    hash = (hash ^ hash >> 27).wrapping_mul(10_723_151_780_598_845_931);
    hash ^= hash >> 31;
    (u128::from(hash) * count as u128 / (1 << 64)) as usize
}

impl Model {
    fn is_valid(&self, item: &Item) -> bool {
        item.expires == 0 || item.expires > self.now
    }

    fn bucket_requests(&mut self, number: usize, actions: &[Action]) {
        actions
            .iter()
            .for_each(|action| self.asked.push((*action, number as u64 * self.bucket_bytes, self.bucket_bytes)));
    }

    fn region_start(&self, number: usize) -> u64 {
        self.buckets.len() as u64 * self.bucket_bytes + number as u64 * self.region_bytes
    }

    fn place_in_regions(&self, key: &str) -> Option<(usize, Item, u64)> {
        let mut found = None;
        for (number, (entries, _)) in self.regions.iter().enumerate() {
            found = entries
                .iter()
                .find(|(item, _)| item.key == key)
                .map(|(item, offset)| (number, item.clone(), *offset))
                .or(found);
        }
        found
    }

    fn forget(&mut self, key: &str) {
        let number = bucket_of(key, self.buckets.len());
        if self.buckets[number].iter().any(|item| item.key == key) {
            self.buckets[number].retain(|item| item.key != key);
            self.bucket_requests(number, &[Action::Read, Action::Write]);
        }
        self.forget_in_regions(key);
    }

    fn forget_in_regions(&mut self, key: &str) {
        self.regions.iter_mut().for_each(|(entries, _)| entries.retain(|(item, _)| item.key != key));
    }

    fn get(&mut self, key: &str) -> bool {
        self.gets += 1;
        if let Some(at) = self.memory.iter().position(|item| item.key == key) {
            let item = self.memory.remove(at);
            self.memory.push(item.clone());
            if self.is_valid(&item) {
                self.hits[0] += 1;
                return true;
            }
        }
        let number = bucket_of(key, self.buckets.len());
        let in_bucket = self.buckets[number].iter().find(|item| item.key == key && self.is_valid(item)).cloned();
        let in_region = self.place_in_regions(key).filter(|(_, item, _)| self.is_valid(item));
        let item = match (in_bucket, in_region) {
            (Some(item), _) => {
                self.bucket_requests(number, &[Action::Read]);
                self.hits[1] += 1;
                item
            }
            (None, Some((region, item, offset))) => {
                if region != self.open {
                    let from = (self.region_start(region) + offset) / 4096 * 4096;
                    let end = self.region_start(region) + offset + (item.bytes + 32).div_ceil(512) * 512;
                    self.asked.push((Action::Read, from, end.div_ceil(4096) * 4096 - from));
                    if self.is_lru {
                        self.order.retain(|other| *other != region);
                        self.order.push(region);
                    }
                }
                self.hits[2] += 1;
                item
            }
            (None, None) => return false,
        };
        if self.memory_bytes > 0 {
            self.memory.retain(|other| other.key != key);
            self.memory.push(item);
            self.shrink();
        }
        true
    }

    fn has(&self, key: &str) -> bool {
        let in_bucket = self.buckets[bucket_of(key, self.buckets.len())].iter();
        let in_region = self.place_in_regions(key).map(|(_, item, _)| item);
        self.memory.iter().chain(in_bucket).chain(&in_region).any(|item| item.key == key && self.is_valid(item))
    }

    fn set(&mut self, item: Item) {
        if self.memory_bytes == 0 {
            return self.write(item);
        }
        self.forget(&item.key);
        self.memory.retain(|other| other.key != item.key);
        self.memory.push(item);
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.memory.iter().map(|item| item.bytes).sum::<u64>() > self.memory_bytes {
            let item = self.memory.remove(0);
            let in_bucket = self.buckets[bucket_of(&item.key, self.buckets.len())].contains(&item);
            let in_region = self.place_in_regions(&item.key).is_some_and(|(_, there, _)| there == item);
            if !in_bucket && !in_region && self.is_valid(&item) {
                self.write(item);
            }
        }
    }

    fn write(&mut self, item: Item) {
        let number = bucket_of(&item.key, self.buckets.len());
        if item.bytes <= self.small_bytes {
            self.forget_in_regions(&item.key);
            let bucket = &mut self.buckets[number];
            bucket.retain(|other| other.key != item.key);
            bucket.push(item);
            while bucket.iter().map(|item| item.bytes + 20).sum::<u64>() > self.bucket_bytes - 24 {
                bucket.remove(0);
            }
            return self.bucket_requests(number, &[Action::Read, Action::Write]);
        }
        let had_small = self.buckets[number].iter().any(|other| other.key == item.key);
        if had_small {
            self.buckets[number].retain(|other| other.key != item.key);
            self.bucket_requests(number, &[Action::Read, Action::Write]);
        }
        let taken = (item.bytes + 32).div_ceil(512) * 512;
        if self.regions[self.open].1 + taken > self.region_bytes {
            self.asked.push((Action::Write, self.region_start(self.open), self.region_bytes));
            self.order.push(self.open);
            let fresh =
                (0..self.regions.len()).find(|number| self.regions[*number].1 == 0 && !self.order.contains(number));
            self.open = fresh.unwrap_or_else(|| {
                let victim = self.order.remove(0);
                let used = self.regions[victim].1.div_ceil(4096) * 4096;
                self.asked.push((Action::Read, self.region_start(victim), used));
                self.regions[victim] = (Vec::new(), 0);
                victim
            });
        }
        self.forget_in_regions(&item.key);
        let (entries, used) = &mut self.regions[self.open];
        entries.push((item, *used));
        *used += taken;
    }

    fn serve(&mut self, line: &Line, has_times: bool, sets_on_miss: bool) {
        self.now = line.second;
        let expires = if has_times && line.ttl > 0 { line.second + line.ttl } else { 0 };
        let item = Item { key: line.key.clone(), bytes: line.value_bytes + 20, expires };
        for _ in 0..line.count {
            match line.action {
                "get" => {
                    if !self.get(&line.key) && sets_on_miss && line.value_bytes > 0 {
                        self.set(item.clone());
                    }
                }
                "set" => self.set(item.clone()),
                "incr" if self.has(&line.key) => self.set(item.clone()),
                "incr" => {}
                _ => {
                    self.memory.retain(|other| other.key != line.key);
                    self.forget(&line.key);
                }
            }
        }
    }
}

/// Each request of the drive is that of the model, whatever the options.
#[test]
fn a_cache_asks_its_drive_for_what_the_model_does() {
    let folder = TempDir::new().unwrap();
    let device_bytes = 4 * MIB;
    for (seed, order, memory, on_miss, is_of_cachelib) in [
        (1, "fifo", 0.0, "on", false),
        (2, "lru", 0.0, "off", true),
        (3, "fifo", 0.05, "on", true),
        (4, "lru", 0.05, "on", false),
        (5, "lru", 0.3, "off", false),
    ] {
        let trace = Trace::drawn(seed, seed % 2 == 0);
        let mut lines = trace.lines.clone();
        let text = if is_of_cachelib {
            lines.retain(|line| line.action != "incr");
            trace.of_cachelib()
        } else {
            trace.of_twitter()
        };
        let file = folder.path().join(format!("{seed}.csv"));
        std::fs::write(&file, text).unwrap();
        let text = format!(
            "kvcache:trace={},small=10%,object=1000,region=128K,request=128K,order={order},memory={memory},set-on-miss={on_miss}",
            file.display()
        );
        let (operations, counts) = requests_of(&text, device_bytes, 1).unwrap();
        let buckets = (device_bytes as f64 * 0.1) as u64 / 4096;
        let mut model = Model {
            bucket_bytes: 4096,
            buckets: vec![Vec::new(); buckets as usize],
            region_bytes: 128 << 10,
            regions: vec![(Vec::new(), 0); ((device_bytes - buckets * 4096) / (128 << 10)) as usize],
            order: Vec::new(),
            open: 0,
            is_lru: order == "lru",
            memory: Vec::new(),
            memory_bytes: (device_bytes as f64 * memory) as u64,
            small_bytes: 1000,
            asked: Vec::new(),
            now: 0,
            hits: [0; 3],
            gets: 0,
        };
        lines.iter().for_each(|line| model.serve(line, true, on_miss == "on"));
        let found: Vec<Request> = operations.iter().map(|of| (of.action, of.offset_bytes, of.length_bytes)).collect();
        let differs = (0..found.len().max(model.asked.len())).find(|at| found.get(*at) != model.asked.get(*at));
        assert_eq!(differs.map(|at| (at, found.get(at), model.asked.get(at))), None, "{text}");
        assert!(found.len() > 3000, "{} requests", found.len());
        assert_eq!([counts.memory_hits, counts.buckets.hits, counts.regions.hits], model.hits, "{text}");
        assert!(model.hits[1] > 100 && model.hits[2] > 100 && counts.gets == model.gets, "{counts:?}");
        assert!(counts.regions.evicted > 0 && counts.buckets.evicted > 0, "{counts:?}");
        // What was written is what is counted, by engine, each with its hint.
        for (stream, counted) in [(1, counts.buckets.written_bytes), (2, counts.regions.written_bytes)] {
            let of_engine = operations.iter().filter(|of| of.action == Action::Write && of.stream == stream);
            assert_eq!(of_engine.map(|of| of.length_bytes).sum::<u64>(), counted);
        }
    }
}

#[test]
fn an_admission_halves_what_is_written_and_a_trace_is_repeated_and_amplified() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("keys.csv");
    std::fs::write(&file, Trace::drawn(9, false).of_cachelib()).unwrap();
    let with = |more: &str| {
        let text = format!("kvcache:trace={},region=64K,memory=1%{more}", file.display());
        requests_of(&text, 8 * MIB, 3).unwrap().1
    };
    let (all, half) = (with(""), with(",admit=50%"));
    let objects = |counts: &CacheCounts| counts.buckets.objects + counts.regions.objects;
    assert!(half.not_admitted > 1000 && all.not_admitted == 0, "{half:?}");
    let share = half.not_admitted as f64 / (half.not_admitted + objects(&half)) as f64;
    assert!((share - 0.5).abs() < 0.03, "{share} were refused");
    let (twice, three_keys) = (with(",repeat=2"), with(",amplify=3"));
    assert_eq!((twice.gets, three_keys.gets), (2 * all.gets, 3 * all.gets));
    assert_eq!(twice.deletes, 2 * all.deletes);
    assert_eq!(with(",admit=0%").object_bytes(), 0);
}

#[test]
fn drawn_requests_write_what_was_asked_for_and_a_seed_decides_them() {
    let text = "kvcache:writes=1x,region=256K,objects=2x";
    let (operations, counts) = requests_of(text, 32 * MIB, 1).unwrap();
    let written: u64 = operations.iter().filter(|of| of.action == Action::Write).map(|of| of.length_bytes).sum();
    assert!((32 * MIB..33 * MIB).contains(&written), "{written} bytes");
    assert!(operations.iter().all(|of| of.end_bytes() <= 32 * MIB && of.offset_bytes.is_multiple_of(4096)));
    let hits = counts.memory_hits + counts.buckets.hits + counts.regions.hits;
    assert!(counts.gets > 10_000 && hits > counts.gets / 10, "{counts:?}");
    assert_eq!(requests_of(text, 32 * MIB, 1).unwrap().0, operations);
    assert_ne!(requests_of(text, 32 * MIB, 2).unwrap().0, operations);
    // A bucket is written for each of its objects.
    assert_eq!(
        requests_of("kvcache:writes=1M,region=256K,large=0,memory=0", 32 * MIB, 1).unwrap().1.buckets.objects,
        256
    );
}

fn result_of(work: &str, path: &str) -> RunResult {
    let path = Path::read(path).unwrap();
    let work = Work::Blocks(BlockWork::generated(work, 1).unwrap());
    let outcome =
        run(Job { work, place: Place::Path(&path), seed: 1, options: RunOptions::default() }, &NoMachine, &mut |_| {
            true
        });
    let outcome = outcome.unwrap();
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.result
}

/// Buckets among regions are copied when the regions around them are rewritten; with a handle for each engine they are not.
#[test]
fn handles_for_the_engines_lower_the_drives_write_amplification_and_not_the_caches() {
    let work = "kvcache:writes=8x,region=1M,objects=2x,memory=1%";
    let mixed = result_of(work, "page:op=7%/nand:size=128M,channels=2,pages-per-block=64,timing=off");
    let apart = result_of(work, "page:op=7%,fdp=4/nand:size=128M,channels=2,pages-per-block=64,timing=off");
    let total = |result: &RunResult| result.write_amplification.total.unwrap();
    let cache = |result: &RunResult| -> CacheResult { result.cache.clone().unwrap() };
    assert_eq!(cache(&mixed).buckets.objects > 0, cache(&apart).buckets.objects > 0);
    assert!(total(&mixed) > 1.1 && total(&apart) < total(&mixed) - 0.1, "{} and {}", total(&mixed), total(&apart));
    let of_cache = cache(&apart);
    let written = of_cache.buckets.written_bytes + of_cache.regions.written_bytes;
    assert_eq!(written, apart.workload.written_blocks * 4096);
    // Bytes of objects are those of applications: their write amplification is that of the cache times that of the drive.
    let product = of_cache.write_amplification.unwrap() * total(&apart);
    let application = apart.write_amplification.application.unwrap();
    assert!((application / product - 1.0).abs() < 1e-3, "{application} and {product}");
}

#[test]
fn what_cannot_be_a_cache_is_refused_at_its_option() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("keys.csv");
    std::fs::write(&file, "key,op,size\na,GET,10\n").unwrap();
    let no_trace = folder.path().join("other.csv");
    std::fs::write(&no_trace, "1,2,3\n").unwrap();
    let traced = format!("kvcache:region=64K,trace={}", file.display());
    assert_eq!(file_of(&parse_term(&traced).unwrap()), Some(file));
    assert_eq!(file_of(&parse_term("kvcache").unwrap()), None);
    for (text, expected) in [
        ("kvcache".to_string(), "fewer than two regions of 16M"),
        ("kvcache:region=100000".to_string(), "not a multiple of 4K"),
        ("kvcache:region=64K,bucket=5000".to_string(), "not a multiple of 4K"),
        ("kvcache:region=64K,object=4053".to_string(), "does not fit a bucket of 4K"),
        ("kvcache:region=64K,repeat=2".to_string(), "repeat= is for a trace"),
        (format!("{traced},theta=1"), "theta= describes drawn requests"),
        ("kvcache:region=64K,gets=100%,set-on-miss=off".to_string(), "nothing is ever written"),
        ("kvcache:region=64K,writes=0".to_string(), "requests nothing"),
        ("kvcache:region=64K,trace=/none/x.csv".to_string(), "cannot read /none/x.csv"),
        (format!("kvcache:region=64K,trace={}", no_trace.display()), "not a trace of a cache's keys"),
    ] {
        let error = requests_of(&text, MIB, 1).err().unwrap_or_else(|| panic!("{text}"));
        assert!(error.message.contains(expected), "{text}: {}", error.message);
    }
    assert!(requests_of("kvcache:region=64K,object=4052", MIB, 1).is_ok());
}
