//! Recordings of calls to a file system as file workloads: `flashpath mount --record FILE` writes one, and `flashpath run
//! FILE` replays it.
//!
//! | file | what it is |
//! |---|---|
//! | [`mod@format`] | the format: reader and writer |
//! | `tree` | the files and names of a recording as it goes on |
//! | `plan` | calls of threads as operations of lanes |
//! | `restore` | what is between two replays of one recording |
//! | `lane` | a lane, which waits for what it needs of others |

pub mod format;
mod lane;
mod plan;
mod restore;
mod tree;

use super::{FileWorkload, Setup, Stage};
use crate::workload::WorkloadError;
use format::{MAGIC, Record, RecordingError, RecordingReader};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The directory in which a recording is replayed.
const DIRECTORY: &str = "recorded";

/// The most replays of one recording in a run.
const MOST_REPLAYS: usize = 4096;

/// How often a recording is replayed. Between two replays the first lane brings the names and lengths back that the first one
/// began with; that is counted like the replay behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replays {
    /// Replays before counting begins.
    pub uncounted: u32,
    /// Those that are counted, at least one.
    pub counted: u32,
}

impl Replays {
    /// One, which is counted.
    pub const ONCE: Replays = Replays { uncounted: 0, counted: 1 };

    /// The stages: the setup, and the replays with what is between them.
    fn stages(self) -> Vec<Stage> {
        let mut stages = vec![Stage { name: "setup", counted: false }];
        let (uncounted, counted) = (self.uncounted as usize, self.counted.max(1) as usize);
        for replay in 0..(uncounted + counted).min(MOST_REPLAYS + 1) {
            let counted = replay >= uncounted;
            stages.extend((replay > 0).then_some(Stage { name: "restore", counted }));
            stages.push(Stage { name: "replay", counted });
        }
        stages
    }
}

/// The bytes of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedBytes {
    /// The most that its files have at any time, in whole blocks.
    pub most: u64,
    /// Those that its calls write.
    pub written: u64,
}

/// The calls of a recording, from which workloads are made.
#[derive(Debug)]
pub struct RecordedCalls {
    name: String,
    records: Vec<Record>,
}

impl RecordedCalls {
    /// Reads a recording.
    ///
    /// Errors name the file, the call and the fault.
    pub fn open(path: &Path) -> Result<RecordedCalls, WorkloadError> {
        let name = path.display().to_string();
        let failed = |error: RecordingError| match error {
            RecordingError::Read(source) => WorkloadError::Read { file: name.clone(), source },
            error => WorkloadError::Unusable { file: name.clone(), reason: error.to_string() },
        };
        let file = File::open(path).map_err(|error| failed(error.into()))?;
        RecordedCalls::read(BufReader::new(file), name.clone()).map_err(failed)
    }

    /// Reads the bytes of a recording.
    pub fn read(file: impl Read, name: String) -> Result<RecordedCalls, RecordingError> {
        Ok(RecordedCalls { name, records: read(file)? })
    }

    /// The sizes of one replay.
    pub fn bytes(&self) -> RecordedBytes {
        let plan = plan::Plan::of(&self.records);
        RecordedBytes { most: plan.most_bytes, written: plan.written_bytes }
    }

    /// The workload: its first stage makes the files that existed before, the others repeat the calls.
    ///
    /// Fails if they are too many, or if the calls cannot be repeated, as the name of something is too long.
    pub fn workload(&self, seed: u64, replays: Replays) -> Result<FileWorkload, WorkloadError> {
        let plan = plan::Plan::of(&self.records);
        let stages = replays.stages();
        if stages.len() > 2 * MOST_REPLAYS {
            let reason = format!("{MOST_REPLAYS} replays are the most");
            return Err(WorkloadError::Unusable { file: self.name.clone(), reason });
        }
        if plan.restore.is_none() && stages.len() > 2 {
            let reason = "it cannot be repeated: a path is too long to be named".to_string();
            return Err(WorkloadError::Unusable { file: self.name.clone(), reason });
        }
        let (files, bytes) = (plan.found_files, plan.found_bytes);
        let setup = Setup { files, bytes_each: bytes.checked_div(files).unwrap_or(0) };
        let lanes = lane::lanes(plan);
        Ok(FileWorkload { name: self.name.clone(), root: DIRECTORY, seed, stages, setup, lanes })
    }
}

/// True if it is a regular file that begins as a recording does. A pipe is not opened, which could wait for ever.
pub fn is_recording(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    path.is_file() && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
}

/// All calls of a recording.
fn read(file: impl Read) -> Result<Vec<Record>, RecordingError> {
    let mut reader = RecordingReader::new(file)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}
