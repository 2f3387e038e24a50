//! The log of requests, read back: a row for each request, whose parts are its time, and whose latencies are the result's.

use flashpath::expression::parse_term;
use flashpath::report::{LatencyHistogram, LatencyParts, Percentiles, RequestLog, RunResult};
use flashpath::run::{BlockWork, FileShape, Fill, Job, Logging, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath::workload::files::file_workload;
use flashpath::workload::generator::generator;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use std::collections::BTreeMap;
use std::fs::File;

const PARTS: [&str; 9] = [
    "die_wait_ns",
    "channel_wait_ns",
    "collection_ns",
    "erase_ns",
    "mapping_ns",
    "buffer_ns",
    "retry_ns",
    "service_ns",
    "other_ns",
];

/// A row: its words and its numbers, by column; none of what is null.
#[derive(Debug, Default)]
struct Row {
    words: BTreeMap<String, String>,
    numbers: BTreeMap<String, u64>,
}

impl Row {
    fn latency_ns(&self) -> Option<u64> {
        Some(self.numbers.get("done_ns")? - self.numbers.get("issued_ns")?)
    }
}

/// A run with a log, its rows, and the same run without one.
struct Logged {
    result: RunResult,
    rows: Vec<Row>,
}

impl Logged {
    /// `work` makes the same work each time.
    fn of(path: &str, options: RunOptions, work: &dyn Fn() -> Work<'static>) -> Logged {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("log.parquet");
        let log = Logging::new(Some(RequestLog::create(&file).unwrap()), false);
        let result = ran(path, work(), RunOptions { log: Some(log.clone()), ..options.clone() });
        log.finish().unwrap();
        let without = ran(path, work(), options);
        assert_eq!(format!("{result:?}"), format!("{without:?}"), "{path}: a log changes nothing");
        Logged { result, rows: rows(&file) }
    }

    fn sum(&self, part: &str) -> u64 {
        self.rows.iter().filter_map(|row| row.numbers.get(part)).sum()
    }

    /// The rows of each log, with or without times.
    fn check_rows(&self) {
        let path = &self.result.path;
        assert_eq!(self.rows.len() as u64, self.result.workload.requests, "{path}");
        let blocks = |row: &&Row| {
            let (offset, length) = (row.numbers["offset_bytes"], row.numbers["length_bytes"]);
            (offset + length).div_ceil(4096) - offset / 4096
        };
        let of =
            |action: &str| self.rows.iter().filter(|row| row.words["action"] == action).map(|row| blocks(&row)).sum();
        let (read, written): (u64, u64) = (of("read"), of("write"));
        assert_eq!((read, written), (self.result.workload.read_blocks, self.result.workload.written_blocks), "{path}");
        let writes = self.rows.iter().filter(|row| row.words["action"] == "write");
        assert!(writes.clone().count() > 0 && writes.clone().all(|row| row.words["content"] == "data"), "{path}");
    }

    fn check_times(&self) {
        let path = &self.result.path;
        let mut latencies: BTreeMap<&str, LatencyHistogram> = BTreeMap::new();
        for row in &self.rows {
            let latency = row.latency_ns().unwrap_or_else(|| panic!("{path}: {row:?} has times"));
            let parts: u64 = PARTS.iter().map(|part| row.numbers[*part]).sum();
            assert_eq!(parts, latency, "{path}: {row:?}");
            latencies.entry(&row.words["action"]).or_default().record(latency);
        }
        let expected = self.result.latency_ns.as_ref().unwrap();
        let mut classes: BTreeMap<&str, &Percentiles> =
            expected.others.iter().map(|(class, of)| (*class, of)).collect();
        classes.extend(expected.read.as_ref().map(|read| ("read", read)));
        classes.extend(expected.write.as_ref().map(|write| ("write", write)));
        for (class, expected) in classes {
            let found = latencies[class].percentiles().unwrap();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{path}: {class}");
        }
        let end = self.rows.iter().map(|row| row.numbers["done_ns"]).max().unwrap();
        assert!(
            end as f64 / 1e9 <= self.result.seconds_simulated.unwrap() + 1e-9,
            "{path}: from the start of the count"
        );
        assert!(self.sum("service_ns") > 0 && self.sum("die_wait_ns") > 0, "{path}");
    }
}

fn ran(path: &str, work: Work<'static>, options: RunOptions) -> RunResult {
    let read = Path::read(path).unwrap();
    let outcome = run(Job { work, place: Place::Path(&read), seed: 5, options }, &NoMachine, &mut |_| true);
    let outcome = outcome.unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(outcome.failure.is_none(), "{path}: {:?}", outcome.failure);
    outcome.result
}

fn rows(file: &std::path::Path) -> Vec<Row> {
    let file = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let row = |row: parquet::record::Row| {
        assert_eq!(row.len(), 17);
        let mut read = Row::default();
        for (at, (name, field)) in row.get_column_iter().enumerate() {
            match field {
                Field::Null => {}
                Field::Str(word) => drop(read.words.insert(name.clone(), word.clone())),
                Field::UInt(number) => drop(read.numbers.insert(name.clone(), u64::from(*number))),
                _ => drop(read.numbers.insert(name.clone(), row.get_ulong(at).unwrap())),
            }
        }
        read
    };
    file.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

fn blocks(path: &str, workload: &str, file: FileShape) -> Logged {
    let fill = file.bytes.is_none();
    let options = RunOptions { file, fill: fill.into(), ..RunOptions::default() };
    Logged::of(path, options, &|| {
        let term = parse_term(workload).unwrap();
        let open = Box::new(move |bytes| Ok(generator(&term, bytes, 5).unwrap()));
        Work::Blocks(BlockWork { name: "blocks".to_string(), has_times: false, open })
    })
}

fn files(path: &str) -> Logged {
    let text = "varmail:files=200,size=16K,loops=1500,threads=3";
    Logged::of(path, RunOptions::default(), &|| Work::Files(file_workload(&parse_term(text).unwrap(), 5).unwrap()))
}

const MIXED: &str = "hotcold:r=0.2,f=0.8,writes=1x,reads=30%,discards=2%";

#[test]
fn every_nanosecond_of_a_request_on_a_drive_has_a_part() {
    for (path, part) in [
        ("page/nand:size=64M,pages-per-block=64", "collection_ns"),
        ("dftl:table=500/nand:size=64M,pages-per-block=64", "mapping_ns"),
        ("fast/nand:size=64M,pages-per-block=64", "collection_ns"),
        ("superblock:cache=100/nand:size=64M,pages-per-block=64", "mapping_ns"),
        ("page/nand:size=64M,pages-per-block=64,channels=1,dies=8", "channel_wait_ns"),
        ("page/nand:size=64M,pages-per-block=64,planes=4,plane-commands=multi", "die_wait_ns"),
        (
            "page:buffer=1M/nand:size=64M,pages-per-block=64,channels=2,planes=2,plane-commands=multi,suspend=both",
            "buffer_ns",
        ),
        (
            "page:buffer=1M,pace=2/nand:size=64M,pages-per-block=64,planes=2,plane-commands=multi,cache-program=on",
            "collection_ns",
        ),
        ("page/nand:size=64M,pages-per-block=63,cells=tlc,cache-program=on", "collection_ns"),
    ] {
        let logged = blocks(path, MIXED, FileShape::default());
        logged.check_rows();
        logged.check_times();
        assert!(logged.sum(part) > 0, "{path} has some {part}");
        assert_eq!(logged.sum("other_ns"), 0, "{path}: a drive alone spends no other time");
    }
}

/// Numbers to follow by hand: one die, no collection yet, one request after the other.
#[test]
fn a_request_alone_waits_for_nothing() {
    let path = "page/nand:size=64M,channels=1,dies=1,planes=1,timing=off";
    let timed = path.replace(",timing=off", "");
    let one = RunOptions { replay: Some(flashpath::run::Replay::Closed { depth: 1 }), ..RunOptions::default() };
    let work = || {
        let term = parse_term("sequential:writes=1M").unwrap();
        let open = Box::new(move |bytes| Ok(generator(&term, bytes, 5).unwrap()));
        Work::Blocks(BlockWork { name: "blocks".to_string(), has_times: false, open })
    };
    let logged = Logged::of(&timed, one, &work);
    for row in &logged.rows {
        assert_eq!(row.numbers["service_ns"], row.latency_ns().unwrap(), "{row:?}");
    }
    let untimed = Logged::of(path, RunOptions::default(), &work);
    untimed.check_rows();
    assert!(untimed.rows.iter().all(|row| row.latency_ns().is_none() && !row.numbers.contains_key("other_ns")));
}

#[test]
fn devices_above_a_drive_and_zones_have_logs_too() {
    for path in [
        "cache:size=1M/page/nand:size=64M,pages-per-block=64",
        "dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
        "dm-zoned:reserved=3/zns:size=96M,zone=1M,conventional=16",
        "conv:size=64M",
        "conv:size=64M,ftl=page",
    ] {
        let logged = blocks(path, MIXED, FileShape::default());
        logged.check_rows();
        logged.check_times();
        let collects = path.contains("page") || path.contains("dm-zoned");
        assert_eq!(logged.sum("collection_ns") > 0, collects, "{path}");
    }
}

#[test]
fn blocks_in_a_file_of_sfs_wait_for_its_cleaning() {
    for path in [
        "sfs:segment=128K,discard=off/page/nand:size=64M,pages-per-block=96",
        "sfs/zns:size=64M,zone=1M",
        "sfs:segment=256K/dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
    ] {
        let shape = FileShape { utilization: Some(0.8), fsync_every: Some(32), bytes: Some(16 << 20) };
        let logged = blocks(path, "zipf:theta=0.9,writes=2x,reads=20%", shape);
        logged.check_rows();
        logged.check_times();
        assert!(logged.sum("collection_ns") > 0, "{path}");
    }
}

#[test]
fn an_operation_on_files_is_a_request() {
    for path in [
        "sfs:segment=128K/page/nand:size=64M,pages-per-block=64",
        "sfs/zns:size=64M,zone=1M",
        "ext:journal-size=4M/page/nand:size=64M,pages-per-block=64",
        "ext:journal-size=4M/cache:size=1M/fast/nand:size=64M,pages-per-block=64",
        "ext:journal-size=4M/dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
    ] {
        let logged = files(path);
        logged.check_rows();
        logged.check_times();
        assert!(logged.sum("other_ns") > 0, "{path}: CPU time");
        let threads: std::collections::BTreeSet<u64> = logged.rows.iter().map(|row| row.numbers["thread"]).collect();
        assert_eq!(threads, [1, 2, 3].into(), "{path}");
        let has_file = |row: &&Row| row.numbers.contains_key("file");
        assert!(logged.rows.iter().filter(has_file).count() > logged.rows.len() / 2, "{path}");
        let share =
            logged.sum("other_ns") as f64 / logged.rows.iter().map(|row| row.latency_ns().unwrap()).sum::<u64>() as f64;
        println!("{path}: {share:.3} of the time is other");
    }
    let untimed = files("sfs/page/nand:size=64M,pages-per-block=64,timing=off");
    untimed.check_rows();
    assert!(untimed.rows.iter().all(|row| row.latency_ns().is_none()));
}

/// The longest write of a drive whose buffer is full waits for it, and its parts are those of its row; a median write finds a place.
#[test]
fn the_latencies_at_each_percentile_have_the_parts_of_their_requests() {
    let path = "page:op=28%,buffer=1M/nand:size=64M,pages-per-block=64";
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("log.parquet");
    let log = Logging::new(Some(RequestLog::create(&file).unwrap()), true);
    let open = Box::new(|bytes| Ok(generator(&parse_term("uniform:writes=4x,reads=30%").unwrap(), bytes, 5).unwrap()));
    let work = Work::Blocks(BlockWork { name: "blocks".to_string(), has_times: false, open });
    let options = RunOptions { log: Some(log.clone()), fill: Fill::ALL, ..RunOptions::default() };
    let result = ran(path, work, options);
    log.finish().unwrap();
    let rows = rows(&file);
    let latencies = result.latency_ns.as_ref().unwrap();
    for (class, percentiles) in [("read", &latencies.read), ("write", &latencies.write)] {
        let percentiles = percentiles.as_ref().unwrap();
        let parts = percentiles.parts.as_ref().unwrap();
        let sum = |parts: &LatencyParts| parts.named().iter().map(|(_, ns)| ns).sum::<f64>();
        for (latency, parts) in
            [(percentiles.p50, parts.p50), (percentiles.p99, parts.p99), (percentiles.p999, parts.p999)]
        {
            let (latency, sum) = (latency as f64, sum(&parts));
            assert!((latency - sum).abs() <= latency / 64.0 + 1.0, "{class}: {latency} and {sum}");
        }
        assert!((sum(&parts.mean) - percentiles.mean).abs() < 1e-6 * percentiles.mean, "{class}");
        let of_class = rows.iter().filter(|row| row.words["action"] == class);
        let longest = of_class.max_by_key(|row| row.latency_ns()).unwrap();
        assert_eq!(longest.latency_ns(), Some(percentiles.max));
        assert_eq!(sum(&parts.max), percentiles.max as f64);
    }
    let write = latencies.write.as_ref().unwrap().parts.as_ref().unwrap();
    let sum_of = |part: &str| rows.iter().map(|row| row.numbers[part]).sum::<u64>();
    assert_eq!(write.mean.service, 0.0, "a write is in the buffer at once, or waits for a place in it");
    assert!(write.mean.buffer > 0.0 && write.p999.collection + write.p999.erase + write.p999.buffer > 0.0, "{write:?}");
    assert!(sum_of("erase_ns") > 0 && sum_of("retry_ns") == 0);
}

/// Old flash: reads that are tried again say so, and those of new flash do not.
#[test]
fn retries_have_a_part_of_their_own() {
    let path = "page/nand:size=64M,pages-per-block=64,errors=on";
    let retries = |age: &str| {
        let age = Some(flashpath::run::Age::read(age).unwrap());
        let options = RunOptions { fill: Fill::ALL, age, limit: Some(20_000), ..RunOptions::default() };
        let logged = Logged::of(path, options, &|| {
            let open = Box::new(|bytes| Ok(generator(&parse_term("uniform:reads=99%").unwrap(), bytes, 5).unwrap()));
            Work::Blocks(BlockWork { name: "blocks".to_string(), has_times: false, open })
        });
        logged.check_times();
        logged.sum("retry_ns")
    };
    assert_eq!(retries("years=0,cycles=0%"), 0);
    assert!(retries("years=1,cycles=50%") > 0);
}
