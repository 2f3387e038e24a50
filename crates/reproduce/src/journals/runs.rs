//! The runs: a sweep for each drive and load, over all journals and numbers of threads, and what is taken of each run.

use super::matrix::{Drive, JOURNALS, Journal, Load, MOST, THREADS};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath_sweep::{Request, WorkloadRequest};
use serde_json::Value;
use std::collections::BTreeMap;

/// A row of a sweep.
type Row = serde_json::Map<String, Value>;

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Measured(Row);

impl Measured {
    fn number(&self, column: &str) -> Option<f64> {
        self.0.get(column)?.as_f64()
    }

    /// MiB that the medium stores, of all columns of the ledger that `is_counted` by cause, origin and content.
    pub fn mib(&self, is_counted: impl Fn(&str, &str, &str) -> bool) -> f64 {
        let media: Vec<&str> = self.0.get("media").and_then(Value::as_str).map(names_of).unwrap_or_default();
        let blocks = self.0.iter().filter_map(|(column, value)| {
            let [station, cause, origin, content] = column.strip_prefix("ledger.")?.split('.').collect::<Vec<_>>()[..]
            else {
                return None;
            };
            (media.contains(&station) && is_counted(cause, origin, content)).then(|| value.as_f64()).flatten()
        });
        blocks.sum::<f64>() / 256.0
    }

    /// MiB of journal.
    pub fn journal_mib(&self) -> f64 {
        self.mib(|_, _, content| content == "journal")
    }

    /// Write amplification.
    pub fn amplification(&self) -> Option<f64> {
        self.number("write_amplification.total")
    }

    /// Blocks of flash that were erased.
    pub fn erases(&self) -> Option<f64> {
        self.number("flash.erased_blocks")
    }

    /// A percentile of fsync in milliseconds, or of fdatasync if nothing calls fsync.
    pub fn sync_ms(&self, percentile: &str) -> Option<f64> {
        let of = |call: &str| self.number(&format!("latency_ns.{call}.{percentile}"));
        of("fsync").or_else(|| of("fdatasync")).map(|ns| ns / 1e6)
    }

    /// Operations of the load a second.
    pub fn throughput(&self) -> Option<f64> {
        let seconds = self.number("seconds_counted").filter(|seconds| *seconds > 0.0)?;
        Some(self.number("workload.requests")? / seconds)
    }

    /// Simulated seconds of the counted part.
    pub fn seconds(&self) -> Option<f64> {
        self.number("seconds_counted")
    }
}

/// The names in a list that a row has as text.
fn names_of(text: &str) -> Vec<&str> {
    text.split(['[', ']', '"', ',', ' ']).filter(|name| !name.is_empty()).collect()
}

/// The runs of a load on a drive.
pub struct Runs {
    /// By number of threads, and by journal in the order of [`JOURNALS`]; a recording has its own threads, and one number, 0.
    rows: BTreeMap<(u64, usize), Measured>,
}

impl Runs {
    /// Makes the runs of a load on a drive with all journals that it can have. Empty, if a recording is not there.
    pub fn make(lab: &Lab, drive: Drive, load: Load) -> Result<Runs, ReproduceError> {
        let threads: Vec<u64> = match (load.is_recorded(), drive) {
            (true, _) => vec![0],
            (false, Drive::Tlc) => THREADS.to_vec(),
            (false, _) => vec![MOST],
        };
        let several = threads.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let text = if threads.len() > 1 { format!("{{{several}}}") } else { several };
        let Some(workload) = load.request(lab, &text) else {
            lab.progress(&format!("no recording of {}: its tables are empty", load.name()));
            return Ok(Runs { rows: BTreeMap::new() });
        };
        let volumes: Vec<(usize, String)> = JOURNALS
            .iter()
            .enumerate()
            .filter_map(|(number, journal)| Some((number, drive.volume(lab, journal, load.is_recorded())?)))
            .collect();
        let on = volumes.iter().map(|(_, path)| (None, path.clone())).collect();
        let made = lab.sweep(&format!("journals-{}-{}", drive.name(), load.name()), request(lab, workload, on))?;
        let mut rows = BTreeMap::new();
        for row in made {
            let of = |column: &str| row.get(column).and_then(Value::as_str).unwrap_or_default().to_string();
            let (path, name) = (of("path"), of("workload.name"));
            let journal = volumes.iter().find(|(_, volume)| *volume == path).map(|(number, _)| *number);
            let number = threads.iter().find(|threads| load.expression(lab, &threads.to_string()) == name);
            let (Some(journal), Some(number)) = (journal, number) else {
                return Err(ReproduceError::failed(format!("no cell of the matrix is {name} on {path}")));
            };
            rows.insert((*number, journal), Measured(row));
        }
        Ok(Runs { rows })
    }

    /// The run with this number of threads, of a recording 0, and this journal.
    pub fn of(&self, threads: u64, journal: &Journal) -> Option<&Measured> {
        let number = JOURNALS.iter().position(|other| other.name == journal.name)?;
        self.rows.get(&(threads, number))
    }

    /// A value for each journal.
    pub fn each(&self, threads: u64, value: impl Fn(&Measured) -> Option<f64>) -> Vec<Option<f64>> {
        JOURNALS.iter().map(|journal| self.of(threads, journal).and_then(&value)).collect()
    }
}

/// A sweep of one load.
fn request(lab: &Lab, workload: WorkloadRequest, on: Vec<(Option<String>, String)>) -> Request {
    Request {
        workloads: vec![workload],
        on,
        options: vec![("seed".to_string(), lab.seed.to_string())],
        ..Request::default()
    }
}

/// Runs of loads on paths beside each other: a value for each load and path, by name.
pub fn table(
    lab: &Lab,
    name: &str,
    loads: &[String],
    paths: &[String],
) -> Result<BTreeMap<(String, String), Measured>, ReproduceError> {
    let mut made = BTreeMap::new();
    for (number, load) in loads.iter().enumerate() {
        let on = paths.iter().map(|path| (None, path.clone())).collect();
        let request = request(lab, WorkloadRequest::Expression(load.clone()), on);
        for row in lab.sweep(&format!("{name}-{number}"), request)? {
            let path = row.get("path").and_then(Value::as_str).unwrap_or_default().to_string();
            made.insert((load.clone(), path), Measured(row));
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_gives_bytes_by_cause_on_the_medium_alone() {
        let row = json!({
            "media": "[\"nand\"]",
            "ledger.ext.host-write.host-write.data": 512,
            "ledger.nand.host-write.host-write.data": 256,
            "ledger.nand.host-write.journal-commit.journal": 512,
            "ledger.nand.garbage-collection.host-write.data": 128,
            "ledger.nand.host-write.checkpoint.data": null,
            "latency_ns.fdatasync.p99": 2_000_000,
        });
        let Value::Object(row) = row else { unreachable!("it is an object") };
        let measured = Measured(row);
        assert_eq!(measured.journal_mib(), 2.0);
        assert_eq!(measured.mib(|_, _, _| true), 3.5);
        assert_eq!(measured.mib(|cause, _, _| cause == "garbage-collection"), 0.5);
        assert_eq!((measured.sync_ms("p99"), measured.erases()), (Some(2.0), None));
    }
}
