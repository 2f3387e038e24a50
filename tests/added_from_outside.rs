//! A station, a translation layer, a grouping, a cleaner and a trace format that this test adds to the tables through the
//! public API.

use flashpath::device::nand::{Geometry, Nand, Timing};
use flashpath::device::station::{DeviceNode, DeviceSettings, Offer, OpenOptions, StationError, only_blocks};
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba, Medium};
use flashpath::expression::{ExpressionError, Kind, OptionKind, Row, Settings, Term, Values, parse_term, words_of};
use flashpath::fs::sfs::placement::lives::Lives;
use flashpath::fs::sfs::placement::table::{POLICIES, Policies, ReadCleaner, ReadGrouping};
use flashpath::fs::sfs::placement::{BlockView, Cleaner, Grouping, GroupingSettings, SegmentView, Tick};
use flashpath::fs::sfs::{self, SfsSettings};
use flashpath::label::{Label, Tally};
use flashpath::run::{Below, Options, Path, STATIONS, Station, prepare};
use flashpath::time::Time;
use flashpath::translation::FlashLayer;
use flashpath::translation::page_level::{self, PageLevel, PageSettings, RamMap};
use flashpath::workload::Action;
use flashpath::workload::generator::generator;
use flashpath::workload::trace::{FORMATS, Format, LineParser, Reason, Request, TraceOptions, scan};
use std::sync::{Arc, LazyLock, Mutex};

/// A station that delays every write.
static SLOW: Kind = Kind {
    name: "slow",
    about: "a device with delayed writes",
    options: &[OptionKind {
        name: "by",
        values: Values::Duration(0, 1_000_000_000),
        default: "1ms",
        about: "the delay",
    }],
};

#[derive(Debug)]
struct SlowSettings {
    by_ns: u64,
    written_out: String,
}

impl DeviceSettings for SlowSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn open(&self, below: Vec<Medium>, _: &OpenOptions) -> Result<Medium, StationError> {
        Ok(Medium::Blocks(Box::new(Slow { below: only_blocks(below), by_ns: self.by_ns, received: Mutex::default() })))
    }
}

fn read_slow(term: &Term, _: &[DeviceNode]) -> Result<Arc<dyn DeviceSettings>, ExpressionError> {
    let settings = term.settle(&SLOW)?;
    Ok(Arc::new(SlowSettings { by_ns: settings.duration_ns("by"), written_out: settings.written_out(&[]) }))
}

struct Slow {
    below: Box<dyn BlockDevice>,
    by_ns: u64,
    received: Mutex<Tally>,
}

impl BlockDevice for Slow {
    fn blocks(&self) -> u64 {
        self.below.blocks()
    }

    fn block_width(&self) -> usize {
        self.below.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.below.read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let count = (buffer.len() / self.block_width()) as u64;
        self.received.lock().unwrap().add(label, count);
        self.below.write(first, buffer, label, at + self.by_ns)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.below.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.below.flush(at)
    }

    fn account(&self) -> Account {
        let received = self.received.lock().unwrap().clone();
        Account {
            station: SLOW.name,
            received: received.clone(),
            sent: received,
            below: vec![self.below.account()],
            ..Account::default()
        }
    }
}

impl Abilities for Slow {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&self.below)
    }

    fn is_timed(&self) -> bool {
        true
    }
}

/// A translation layer: `page` under another name, with a fifth of the flash in reserve.
static OWN: Kind = Kind { name: "own", about: "a layer from outside", options: page_level::KIND.options };

#[derive(Debug)]
struct OwnSettings(PageSettings);

impl FlashLayer for OwnSettings {
    type On<T: Timing + Send + 'static> = PageLevel<T, RamMap>;

    fn read(term: &Term, geometry: &Geometry) -> Result<OwnSettings, ExpressionError> {
        term.settle(&OWN)?;
        Ok(OwnSettings(PageSettings::read(&parse_term("page:export=80%").unwrap(), geometry)?))
    }

    fn written_out(&self) -> &str {
        "own"
    }

    fn exported_pages(&self) -> u64 {
        self.0.exported_pages
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> Self::On<T> {
        PageLevel::new(flash, &self.0, RamMap::new(self.0.exported_pages), seed)
    }
}

fn table() -> Vec<Station> {
    let below = Below { takes: &[Offer::Blocks], later: &[], count: (1, 1), example: None, several: None };
    let own = [Station::device(&SLOW, "fault", Offer::Blocks, below, read_slow), Station::layer::<OwnSettings>(&OWN)];
    STATIONS.iter().cloned().chain(own).collect()
}

#[test]
fn a_station_and_a_layer_from_outside_work_in_a_path_like_any_other() {
    let table = table();
    for (text, in_full) in [
        ("slow/conv:size=16M", "slow:by=1ms/conv"),
        ("slow:by=2ms/own/nand:size=64M", "slow:by=2ms/own/nand"),
        ("own/nand:size=64M", "own/nand"),
        ("sfs/slow/cache/own/nand:size=128M", "/slow:by=1ms/cache"),
        ("dm-zoned:reserved=3/slow:by=1us/conv:size=8M+zns:size=64M,zone=1M", "/slow:by=1us/conv"),
    ] {
        let path = Path::read_with(text, &table).unwrap_or_else(|error| panic!("{error}"));
        assert!(path.in_full.contains(in_full), "{}", path.in_full);
        assert_eq!(Path::read_with(&path.in_full, &table).unwrap().in_full, path.in_full);
        let prepared = prepare(&path, 1).unwrap_or_else(|error| panic!("{text}: {error}"));
        let term = parse_term("uniform:writes=8M").unwrap();
        let mut workload = generator(&term, prepared.exported_bytes(), 1).unwrap();
        let outcome = prepared.run(&mut *workload, &Options { verify: true, ..Options::default() }, &mut |_| true);
        assert!(outcome.failure.is_none(), "{text}: {:?}", outcome.failure);
        if text.starts_with("slow") {
            let write = outcome.result.latency_ns.unwrap().write.unwrap();
            assert!(write.p50 >= 1_000_000, "{text}: {}", write.p50);
        }
    }
}

/// Errors list the names of the table in use.
#[test]
fn errors_name_the_stations_of_the_table() {
    let table = table();
    let wrong = |text: &str| Path::read_with(text, &table).expect_err(text);
    assert!(wrong("slow/zns").help.contains("slow or own"), "{}", wrong("slow/zns"));
    assert!(wrong("slw/conv").help.contains("did you mean slow?"));
    assert!(wrong("nand").help.contains("superblock/ or own/ before it"), "{}", wrong("nand"));
    assert!(Path::read("slow/conv").is_err(), "the library's own table does not have it");
}

/// A grouping with an option: blocks with at least this many writes go to the second group.
#[derive(Clone, Copy, Debug)]
struct Often {
    writes: u64,
}

impl Grouping for Often {
    fn groups(&self) -> usize {
        2
    }

    fn group_of(&mut self, block: &BlockView, _now: Tick) -> usize {
        usize::from(block.block.writes >= self.writes)
    }
}

fn read_often(settings: &Settings) -> Result<Arc<dyn GroupingSettings>, ExpressionError> {
    Ok(Arc::new(Often { writes: settings.count("often") }))
}

/// A cleaner that selects the segment written first.
#[derive(Debug)]
struct Oldest;

impl Cleaner for Oldest {
    fn score(&self, segment: &SegmentView, _lives: &Lives, now: Tick) -> f64 {
        (now.0 - segment.written.0) as f64
    }
}

static OWN_POLICIES: LazyLock<Policies> = LazyLock::new(|| Policies {
    groupings: Vec::leak(
        [POLICIES.groupings, &[Row { word: "often", about: "by writes", value: read_often as ReadGrouping }]].concat(),
    ),
    cleaners: Vec::leak(
        [
            POLICIES.cleaners,
            &[Row { word: "oldest", about: "by age", value: (|_| Ok(Arc::new(Oldest))) as ReadCleaner }],
        ]
        .concat(),
    ),
});

static OWN_SFS: LazyLock<&'static Kind> = LazyLock::new(|| {
    let option = |name| *sfs::KIND.options.iter().find(|option| option.name == name).unwrap();
    sfs::KIND.with_options(vec![
        OptionKind { values: Values::Choice(|| words_of(OWN_POLICIES.groupings)), ..option("grouping") },
        OptionKind { values: Values::Choice(|| words_of(OWN_POLICIES.cleaners)), ..option("cleaner") },
        OptionKind {
            name: "often",
            values: Values::Count(1, 1000),
            default: "2",
            about: "grouping=often: minimum number of writes of blocks in the second group",
        },
    ])
});

#[test]
fn a_grouping_and_a_cleaner_from_outside_are_selected_like_any_other() {
    let below = Below { takes: &[Offer::Blocks], later: &[], count: (1, 1), example: None, several: None };
    let own =
        Station::volume(*OWN_SFS, below, |term| Ok(Arc::new(SfsSettings::read_with(term, *OWN_SFS, &OWN_POLICIES)?)));
    let others = STATIONS.iter().filter(|station| station.kind.name != "sfs").cloned();
    let table: Vec<Station> = std::iter::once(own).chain(others).collect();
    let copied = |text: &str| {
        let path = Path::read_with(text, &table).unwrap_or_else(|error| panic!("{error}"));
        let again = Path::read_with(&path.in_full, &table).unwrap();
        assert_eq!(again.in_full, path.in_full, "all options are written out and read again");
        let prepared = prepare(&path, 1).unwrap_or_else(|error| panic!("{text}: {error}"));
        let term = parse_term("zipf:writes=96M").unwrap();
        let options = Options { verify: true, ..Options::default() };
        let mut workload = generator(&term, prepared.exported_bytes(), 1).unwrap();
        let outcome = prepared.run(&mut *workload, &options, &mut |_| true);
        assert!(outcome.failure.is_none(), "{text}: {:?}", outcome.failure);
        format!("{:?}", outcome.result.ledger)
    };
    let results = [
        copied("sfs:segment=512K/conv:size=32M"),
        copied("sfs:segment=512K,grouping=often,often=3/conv:size=32M"),
        copied("sfs:segment=512K,grouping=often,often=30/conv:size=32M"),
        copied("sfs:segment=512K,cleaner=oldest/conv:size=32M"),
    ];
    let different: std::collections::BTreeSet<&String> = results.iter().collect();
    assert_eq!(different.len(), results.len(), "each policy and each value of its option copies other blocks");
    let wrong = Path::read_with("sfs:grouping=often,often=0/conv", &table).expect_err("0 is no count of writes");
    assert!(wrong.help.contains("often takes a whole number from 1 to 1000"), "{wrong}");
    let unknown = Path::read_with("sfs:cleaner=newest/conv", &table).expect_err("there is no such cleaner");
    assert!(unknown.help.contains("greedy or oldest"), "{unknown}");
    assert!(Path::read("sfs:grouping=often/conv").is_err(), "the library's own table does not have it");
}

/// A trace format: `action@offset+length` in bytes, one microsecond apart.
#[derive(Default)]
struct Places {
    lines: u64,
}

impl LineParser for Places {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let text = std::str::from_utf8(line).map_err(|_| "it is not text")?;
        let (action, place) = text.split_once('@').ok_or("there is no @")?;
        let (offset, length) = place.split_once('+').ok_or("there is no +")?;
        let action = match action {
            "read" => Action::Read,
            "write" => Action::Write,
            _ => return Err("the action is neither read nor write"),
        };
        let extent = (offset.parse().map_err(|_| "the offset"), length.parse().map_err(|_| "the length"));
        self.lines += 1;
        Ok(Some(Request::new(self.lines * 1000, action, (extent.0?, extent.1?))))
    }
}

static OWN_FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| [FORMATS, &[Format::lines::<Places>("places")]].concat());

#[test]
fn a_trace_format_from_outside_is_recognised_and_read_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    std::fs::write(&file, "write@0+8192\nread@4096+4096\nwrite@8192\nwrite@8192+4096\n").unwrap();
    let own = TraceOptions { formats: &OWN_FORMATS, ..TraceOptions::default() };
    for options in [own.clone(), TraceOptions { format: Format::named(&OWN_FORMATS, "places"), ..own }] {
        let summary = scan(&file, &options).unwrap();
        assert_eq!((summary.format.name(), summary.writes, summary.reads), ("places", 2, 1));
        assert_eq!((summary.written_bytes, summary.rejected), (12288, 1));
        assert!(summary.first_rejected[0].to_string().contains("there is no +"), "{:?}", summary.first_rejected);
    }
    let unknown = scan(&file, &TraceOptions::default()).unwrap_err().to_string();
    assert!(unknown.contains("unknown format") && !unknown.contains("places"), "{unknown}");
}
