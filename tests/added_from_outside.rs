//! A station and a translation layer that the library does not know, added to its table from here.

use flashpath::device::nand::{Geometry, Nand, Timing};
use flashpath::device::station::{DeviceNode, DeviceSettings, Offer, Opening, StationError, only_blocks};
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba, Medium};
use flashpath::expression::{ExpressionError, Kind, OptionKind, Term, Values, parse_term};
use flashpath::label::{Label, Tally};
use flashpath::run::{Below, Options, Path, STATIONS, Station, prepare};
use flashpath::time::Time;
use flashpath::translation::FlashLayer;
use flashpath::translation::page_level::{self, PageLevel, PageSettings, RamMap};
use flashpath::workload::generator::generator;
use std::sync::{Arc, Mutex};

/// A station that makes every write wait.
static SLOW: Kind = Kind {
    name: "slow",
    about: "a device whose writes wait",
    options: &[OptionKind {
        name: "by",
        values: Values::Duration(0, 1_000_000_000),
        default: "1ms",
        about: "how long",
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

    fn open(&self, below: Vec<Medium>, _: &Opening) -> Result<Medium, StationError> {
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
        self.received.lock().unwrap().add(label.cause, label.content, count);
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

/// A translation layer: that of `page`, by another name, which keeps a fifth of the flash in reserve.
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
    let below = Below { takes: &[Offer::Blocks], count: (1, 1), example: None };
    let own = [Station::device(&SLOW, "fault", Offer::Blocks, below, read_slow), Station::layer::<OwnSettings>(&OWN)];
    STATIONS.iter().cloned().chain(own).collect()
}

#[test]
fn a_station_and_a_layer_from_outside_stand_in_a_path_like_any_other() {
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

/// What is wrong is told with the names of the table that is used.
#[test]
fn errors_name_the_stations_of_the_table() {
    let table = table();
    let wrong = |text: &str| Path::read_with(text, &table).expect_err(text);
    assert!(wrong("slow/zns").help.contains("slow or own"), "{}", wrong("slow/zns"));
    assert!(wrong("slw/conv").help.contains("did you mean slow?"));
    assert!(wrong("nand").help.contains("superblock/ or own/ before it"), "{}", wrong("nand"));
    assert!(Path::read("slow/conv").is_err(), "the library's own table does not have it");
}
