//! The journal of a sweep: a line for each run that is done, appended, each with a checksum.
//!
//! ```text
//!     CHECKSUM {"flashpath_sweep":1,"program":...,"plan":SHA-256,"command":...,"runs":N}
//!     CHECKSUM {"run":17,"seconds":0.5,"row":{...}}
//!     ...
//! ```
//!
//! The checksum is the CRC-32C of the JSON, in eight hexadecimal digits. A process that is killed leaves at most one line
//! that is not whole, at the end: it is cut off, and its run is done again. A damaged line in the middle is passed over in
//! the same way; the others have their own checksums.

use crate::error::{JournalFault, SweepError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The version of the format.
const FORMAT: u32 = 1;

/// Bytes of a checksum and the space behind it.
const CHECKSUM: usize = 9;

/// The identity of a sweep: what its rows have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The format of the journal.
    pub flashpath_sweep: u32,
    /// The program and its version, with the commit.
    pub program: String,
    /// The SHA-256 of all that the results depend on, in hexadecimal digits.
    pub plan: String,
    /// The sweep in words, for messages.
    pub command: String,
    /// The number of runs.
    pub runs: u64,
}

impl Identity {
    /// The identity of a plan of `runs` runs.
    pub fn new(program: String, plan: String, command: String, runs: u64) -> Identity {
        Identity { flashpath_sweep: FORMAT, program, plan, command, runs }
    }
}

/// A run that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoneRun {
    /// Its number.
    pub run: u64,
    /// Wall-clock seconds. They are no part of the table.
    pub seconds: f64,
    /// Its row: a value for each column.
    pub row: Map<String, Value>,
}

/// The journal of a sweep.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The end of the last whole line.
    end: u64,
    done: BTreeMap<u64, DoneRun>,
    damaged_lines: u64,
}

impl Journal {
    /// Opens the journal at `path`, or begins it. No other process can open it until it is dropped.
    ///
    /// Fails if the file is something else, or of another sweep or version: nothing was changed then.
    pub fn open(path: &Path, identity: &Identity) -> Result<Journal, SweepError> {
        let fail = |fault: JournalFault| SweepError::journal(path, fault);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| fail(error.into()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(fail(JournalFault::Locked)),
            Err(TryLockError::Error(error)) => return Err(fail(error.into())),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| fail(error.into()))?;
        let begun = line_of(identity);
        let mut journal = Journal { path: path.to_path_buf(), file, end: 0, done: BTreeMap::new(), damaged_lines: 0 };
        // A kill can leave a part of the first line.
        if begun.starts_with(&bytes) && bytes.len() < begun.len() {
            journal.append(&begun).map_err(|error| fail(error.into()))?;
            return Ok(journal);
        }
        journal.check_identity(&bytes, identity).map_err(fail)?;
        journal.read_rows(&bytes, identity.runs);
        journal.file.set_len(journal.end).map_err(|error| fail(error.into()))?;
        Ok(journal)
    }

    fn check_identity(&self, bytes: &[u8], identity: &Identity) -> Result<(), JournalFault> {
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let found: Identity = json_of(first).ok_or(JournalFault::Foreign)?;
        if found.program != identity.program || found.flashpath_sweep != identity.flashpath_sweep {
            return Err(JournalFault::OtherVersion { of: found.program, this: identity.program.clone() });
        }
        match found.plan == identity.plan && found.runs == identity.runs {
            true => Ok(()),
            false => Err(JournalFault::OtherSweep { of: found.command }),
        }
    }

    /// Reads the rows behind the first line, and finds the end of the last whole line.
    fn read_rows(&mut self, bytes: &[u8], runs: u64) {
        let mut at = 0;
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            at += line.len() as u64;
            let Some(line) = line.strip_suffix(b"\n") else { continue };
            if number == 0 {
                self.end = at;
                continue;
            }
            match json_of::<DoneRun>(line).filter(|done| done.run < runs) {
                Some(done) => {
                    self.done.entry(done.run).or_insert(done);
                    self.end = at;
                }
                // Cut off if no whole line follows.
                None => self.damaged_lines += 1,
            }
        }
    }

    /// The runs that are done, by number.
    pub fn done(&self) -> &BTreeMap<u64, DoneRun> {
        &self.done
    }

    /// The lines that were damaged: their runs are done again.
    pub fn damaged_lines(&self) -> u64 {
        self.damaged_lines
    }

    /// Appends a run that is done.
    pub fn add(&mut self, done: &DoneRun) -> Result<(), SweepError> {
        let line = line_of(done);
        self.append(&line).map_err(|error| SweepError::journal(&self.path, error))?;
        // The table is made of what the journal holds, so that it is the same after any interruption.
        let kept = json_of(&line[..line.len() - 1]).expect("a line that was just written is whole");
        self.done.insert(done.run, kept);
        Ok(())
    }

    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(line)?;
        self.end += line.len() as u64;
        Ok(())
    }

    /// Makes all rows durable.
    pub fn sync(&self) -> Result<(), SweepError> {
        self.file.sync_data().map_err(|error| SweepError::journal(&self.path, error))
    }
}

fn line_of(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_string(value).expect("a row holds only text, numbers and lists");
    format!("{:08x} {json}\n", checksum(json.as_bytes())).into_bytes()
}

/// The value of a line without its end; `None` if the line is damaged.
fn json_of<T: for<'d> Deserialize<'d>>(line: &[u8]) -> Option<T> {
    let (checksum_text, json) = line.split_at_checked(CHECKSUM)?;
    let stated = u32::from_str_radix(std::str::from_utf8(checksum_text).ok()?.strip_suffix(' ')?, 16).ok()?;
    (stated == checksum(json)).then(|| serde_json::from_slice(json).ok())?
}

fn checksum(json: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, json) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn identity(plan: &str) -> Identity {
        Identity::new("flashpath 1".to_string(), plan.to_string(), "the command".to_string(), 10)
    }

    fn row(run: u64) -> DoneRun {
        let row = json!({ "x": run as f64 / 3.0, "path": "größe\n" }).as_object().unwrap().clone();
        DoneRun { run, seconds: 0.25, row }
    }

    fn written(directory: &Path, runs: &[u64]) -> PathBuf {
        let path = directory.join("j");
        let mut journal = Journal::open(&path, &identity("a")).unwrap();
        runs.iter().for_each(|run| journal.add(&row(*run)).unwrap());
        path
    }

    #[test]
    fn a_journal_cut_at_any_byte_has_the_whole_rows_before_it_and_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path(), &[4, 0, 7]);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut journal = Journal::open(&path, &identity("a")).unwrap();
            let rows = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
            assert_eq!(journal.done().len(), rows, "{length}");
            journal.add(&row(9)).unwrap();
            drop(journal);
            let again = Journal::open(&path, &identity("a")).unwrap();
            assert_eq!((again.done().len(), again.damaged_lines()), (rows + 1, 0), "{length}");
            assert_eq!(again.done()[&9], row(9));
        }
    }

    #[test]
    fn a_damaged_row_is_done_again_and_the_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path(), &[1, 2, 3]);
        let whole = std::fs::read(&path).unwrap();
        let begin = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for at in begin..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x11;
            std::fs::write(&path, &bytes).unwrap();
            let mut journal = Journal::open(&path, &identity("a")).unwrap();
            assert!(!journal.done().is_empty() && journal.done().iter().all(|(run, done)| *done == row(*run)));
            let missing: Vec<u64> = [1, 2, 3].into_iter().filter(|run| !journal.done().contains_key(run)).collect();
            assert!(!missing.is_empty(), "byte {at}");
            missing.iter().for_each(|run| journal.add(&row(*run)).unwrap());
            drop(journal);
            assert_eq!(Journal::open(&path, &identity("a")).unwrap().done().len(), 3);
        }
    }

    #[test]
    fn a_file_of_others_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path(), &[1]);
        let before = std::fs::read(&path).unwrap();
        let refused = |identity: &Identity| match Journal::open(&path, identity).err().unwrap() {
            SweepError::Journal { fault, .. } => fault,
            other => panic!("{other}"),
        };
        assert!(matches!(refused(&identity("b")), JournalFault::OtherSweep { of } if of == "the command"));
        let newer = Identity { program: "flashpath 2".to_string(), ..identity("a") };
        assert!(matches!(refused(&newer), JournalFault::OtherVersion { .. }));
        let holder = Journal::open(&path, &identity("a")).unwrap();
        assert!(matches!(refused(&identity("a")), JournalFault::Locked));
        drop(holder);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        for foreign in ["my thesis", "00000000 {}\n", "\n", "0000\n0000"] {
            std::fs::write(&path, foreign).unwrap();
            assert!(matches!(refused(&identity("a")), JournalFault::Foreign), "{foreign}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
    }
}
