//! The runs of the bench, beside each other on all cores. A journal keeps those that are done.

use super::{CLEANERS, FULL, GROUPINGS, Load, SYNCS, Syncs, Writes};
use crate::ReproduceError;
use crate::lab::Lab;
use crate::recording::Compact;
use flashpath::run::{FileShape, Path};
use flashpath::units::format_size;
use flashpath_sweep::{DoneRun, Journal};
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Segments of the volume.
pub const SEGMENTS: u64 = 1024;
/// The size of the device over that of the load's file.
pub const DEVICE: f64 = 2.4;
/// Multiples of the file written before counting and counted.
pub const AGING: u64 = 4;
pub const COUNTED: u64 = 2;
/// Dirty segments: room for the groups to fill theirs.
const DIRTY_SEGMENTS: u64 = 16;
/// The smallest segment that holds the segment-usage file of such a volume, and the unit of segments.
pub const LEAST_SEGMENT: u64 = 96 << 10;
const UNIT: u64 = 4096;
/// The smallest scale of the whole bench.
pub const WHOLE: f64 = 1.0 / 64.0;
/// The column of the journal.
const COLUMN: &str = "stored_per_written";

/// One run.
#[derive(Clone, Copy)]
struct Point<'l> {
    load: &'l Load,
    full: f64,
    syncs: Syncs,
    grouping: &'static str,
    cleaner: &'static str,
}

/// The values of all runs: blocks stored per block that the load writes, by load, utilization, syncs, grouping and
/// cleaner. A generated load has none for syncs as recorded.
pub struct Values(Vec<Option<f64>>);

impl Values {
    /// The value of these indexes.
    pub fn of(&self, load: usize, full: usize, syncs: usize, grouping: usize, cleaner: usize) -> Option<f64> {
        let at = ((load * FULL.len() + full) * SYNCS.len() + syncs) * GROUPINGS.len() + grouping;
        self.0[at * CLEANERS.len() + cleaner]
    }
}

/// The size of the file of a generated load.
pub fn generated_bytes(lab: &Lab) -> u64 {
    lab.scaled(super::FILE, 1 << 20).max(16 << 20)
}

/// True if the bench has these runs. At the smallest scales it is a sample, to see that it works.
fn is_made(lab: &Lab, load: &Load, full: f64, syncs: Syncs) -> bool {
    let is_recorded = matches!(load.writes, Writes::Recorded(_));
    let is_sampled = ["uniform", "Zipf 1.0"].contains(&load.name)
        && full == 0.9
        && [Syncs::Never, Syncs::Every(64)].contains(&syncs);
    (is_recorded || syncs != Syncs::Recorded) && (lab.scale >= WHOLE || is_sampled)
}

/// All points, in the order of [`Values`].
fn points<'l>(lab: &Lab, loads: &'l [Load]) -> Vec<Option<Point<'l>>> {
    let mut points = Vec::new();
    for load in loads {
        for full in FULL {
            for syncs in SYNCS {
                let is_made = is_made(lab, load, full, syncs);
                for grouping in GROUPINGS {
                    let point = |cleaner| Point { load, full, syncs, grouping, cleaner };
                    points.extend(CLEANERS.map(|cleaner| is_made.then(|| point(cleaner))));
                }
            }
        }
    }
    points
}

/// Makes all runs that the journal lacks.
pub fn measure(lab: &Lab, loads: &[Load]) -> Result<Values, ReproduceError> {
    let points = points(lab, loads);
    let plan: Vec<String> = points.iter().flatten().map(|point| point.described(lab)).collect();
    let journal = Mutex::new(lab.journal("placement", &plan.join("\n"), points.len() as u64)?);
    let missing: Vec<(usize, &Point<'_>)> = {
        let journal = journal.lock().expect("no thread panics with this lock");
        let all = points.iter().enumerate().filter_map(|(number, point)| Some((number, point.as_ref()?)));
        all.filter(|(number, _)| !journal.done().contains_key(&(*number as u64))).collect()
    };
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, point)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = make(lab, *number, point, &journal) {
                        failure.lock().expect("no thread panics with this lock").get_or_insert(error);
                        next.store(missing.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no thread panics with this lock") {
        return Err(error);
    }
    let journal = journal.into_inner().expect("no thread panics with this lock");
    journal.sync()?;
    let value = |number: usize| journal.done().get(&(number as u64))?.row.get(COLUMN)?.as_f64();
    Ok(Values((0..points.len()).map(value).collect()))
}

/// Makes a run, and adds it to the journal.
fn make(lab: &Lab, number: usize, point: &Point<'_>, journal: &Mutex<Journal>) -> Result<(), ReproduceError> {
    let began = std::time::Instant::now();
    let value = point.run(lab)?;
    let seconds = began.elapsed().as_secs_f64();
    let row: Map<String, Value> =
        [("point".to_string(), Value::from(point.name())), (COLUMN.to_string(), Value::from(value))]
            .into_iter()
            .collect();
    lab.progress(&format!("{}: {value:.3}", point.name()));
    let mut journal = journal.lock().expect("no thread panics with this lock");
    Ok(journal.add(&DoneRun { run: number as u64, seconds, row })?)
}

impl Point<'_> {
    fn name(&self) -> String {
        let Point { load, full, syncs, grouping, cleaner } = self;
        format!("{} at {:.0} %, {}: {grouping} with {cleaner}", load.name, full * 100.0, syncs.name())
    }

    fn file_bytes(&self, lab: &Lab) -> u64 {
        match &self.load.writes {
            Writes::Generated(_) => generated_bytes(lab),
            Writes::Recorded(recording) => recording.bytes(),
        }
    }

    fn path(&self, lab: &Lab) -> String {
        let device = (self.file_bytes(lab) as f64 * DEVICE) as u64;
        let segment = (device / SEGMENTS).div_ceil(UNIT).max(LEAST_SEGMENT / UNIT) * UNIT;
        format!(
            "sfs:segment={},dirty={},grouping={},cleaner={}/conv:size={},timing=off",
            format_size(segment),
            format_size((DIRTY_SEGMENTS * segment).max(1 << 20)),
            self.grouping,
            self.cleaner,
            format_size(device.div_ceil(segment) * segment)
        )
    }

    /// All that the result depends on, besides seed and program.
    fn described(&self, lab: &Lab) -> String {
        let writes = match &self.load.writes {
            Writes::Generated(expression) => expression.to_string(),
            Writes::Recorded(recording) => format!("{recording:?}").len().to_string(),
        };
        format!("{} {} {} {AGING} {COUNTED} {writes}", self.name(), self.path(lab), self.file_bytes(lab))
    }

    /// Blocks stored per block that the load writes.
    fn run(&self, lab: &Lab) -> Result<f64, ReproduceError> {
        let path = Path::read(&self.path(lab))?;
        let file = self.file_bytes(lab);
        let (aging, amount) = (AGING * file, (AGING + COUNTED) * file);
        let fsync_every = match self.syncs {
            Syncs::Every(writes) => Some(writes),
            Syncs::Never | Syncs::Recorded => None,
        };
        let shape = FileShape { bytes: Some(file), utilization: Some(self.full), fsync_every };
        let outcome = match &self.load.writes {
            Writes::Generated(expression) => {
                let expression = format!("{expression},writes={}", format_size(amount));
                lab.run_in_file(&path, shape, aging, |bytes| lab.generator(&expression, bytes))?
            }
            Writes::Recorded(recording) => lab.run_in_file(&path, shape, aging, |_| {
                Ok(Box::new(Compact::open(recording, amount, self.syncs == Syncs::Recorded)?))
            })?,
        };
        let result = outcome.result;
        let stored: f64 = result.ledger.iter().filter(|row| row.station == "sfs").map(|row| row.blocks).sum();
        Ok(stored / result.workload.written_blocks as f64)
    }
}
