//! `dbench`: clients of a file server, after the load file `client.txt` of the benchmark of that name.
//!
//! It is no replay of that file. dbench prints how often its clients made each call; of 1,000 opens about 735 are closed, 202 files
//! are removed, 42 renamed and 70 flushed, with 499 writes and 1,570 reads of up to 64 KiB. A step here is an open:
//!
//! | share of the steps | calls |
//! |---|---|
//! | 20 % | a file is removed and made anew: writes, with `flush` a sync, close; a fifth of them under another name first, and then renamed |
//! | 80 % | a file is looked up, opened, read, at most twice, and closed |
//!
//! The number of files stays. Each client has a directory of its own.

use super::sync_call::SyncCall;
use super::{FileOperation, Lane, Name, Parts, ROOT, Setup, Stage, check_threads, part, push_writes, share_of};
use crate::expression::{ExpressionError, Settings};
use crate::random::Random;
use crate::workload::WorkloadError;
use std::fmt::Write;
use std::ops::Range;

const STAGES: &[Stage] = &[
    Stage { name: "directories", counted: false },
    Stage { name: "files", counted: false },
    Stage { name: "opens", counted: true },
];

/// The share of the opens that make a file, and the share of these that rename it.
const MADE: f64 = 0.202;
const RENAMED: f64 = 0.042 / 0.202;
/// The most reads of a file that was opened.
const READS: u64 = 2;

/// The least that the setup creates.
pub(super) fn setup(settings: &Settings) -> Setup {
    Setup { files: settings.count("files"), bytes_each: 1 }
}

pub(super) fn lanes(settings: &Settings, seed: u64) -> Result<Parts, ExpressionError> {
    check_threads(settings)?;
    let (files, threads) = (settings.count("files"), settings.count("threads"));
    let lane = |lane| {
        let own = share_of(files, lane, threads);
        Box::new(Client {
            number: lane,
            clients: threads,
            files,
            directories: if lane == 0 { 0..threads + 1 } else { 0..0 },
            to_make: own.clone(),
            sizes: vec![0; (own.end - own.start) as usize],
            own,
            largest_bytes: settings.size("largest"),
            block_bytes: settings.size("block"),
            flushed: settings.share("flush"),
            sync_call: settings.choice("sync-call"),
            opens: share_of(settings.count("loops"), lane, threads),
            version: 0,
            random: Random::new(seed, &format!("dbench {lane}")),
        }) as _
    };
    Ok((STAGES, (0..threads).map(lane).collect()))
}

/// A client. Names are the root, the clients' directories, all files, and as many names before a rename.
struct Client {
    number: u64,
    clients: u64,
    /// Those of all clients.
    files: u64,
    /// The directories still to be made: all are the first client's.
    directories: Range<u64>,
    /// The files still to be made by the setup.
    to_make: Range<u64>,
    own: Range<u64>,
    /// The length of each of its own files.
    sizes: Vec<u64>,
    largest_bytes: u64,
    block_bytes: u64,
    /// The share of the written files that are synced.
    flushed: f64,
    sync_call: SyncCall,
    opens: Range<u64>,
    version: u32,
    random: Random,
}

impl Client {
    fn name(&self, file: u64) -> Name {
        1 + self.clients + file
    }

    fn name_before(&self, file: u64) -> Name {
        self.name(file) + self.files
    }

    /// Makes a file under a name, and writes it.
    fn make(&mut self, file: u64, name: Name, operations: &mut Vec<FileOperation>) {
        let bytes = 1 + self.random.below(self.largest_bytes);
        self.sizes[(file - self.own.start) as usize] = bytes;
        operations.push(FileOperation::Create(name));
        push_writes(operations, name, 0..bytes, self.block_bytes, self.version);
    }

    fn replace(&mut self, file: u64, operations: &mut Vec<FileOperation>) {
        let is_renamed = self.random.unit() < RENAMED;
        let name = if is_renamed { self.name_before(file) } else { self.name(file) };
        operations.push(FileOperation::Unlink(self.name(file)));
        self.make(file, name, operations);
        if self.random.unit() < self.flushed {
            operations.push(self.sync_call.of(name));
        }
        operations.push(FileOperation::Close(name));
        if is_renamed {
            operations.push(FileOperation::Rename { from: name, to: self.name(file) });
        }
    }

    fn read(&self, file: u64, operations: &mut Vec<FileOperation>) {
        let name = self.name(file);
        operations.extend([FileOperation::Stat(name), FileOperation::Open(name)]);
        let size = self.sizes[(file - self.own.start) as usize].min(READS * self.block_bytes);
        super::push_reads(operations, name, size, self.block_bytes);
        operations.push(FileOperation::Close(name));
    }
}

impl Lane for Client {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        match stage {
            0 => {
                // The root is name 0, and a client's directory is its number and one.
                let directory = self.directories.next();
                operations.extend(directory.map(FileOperation::MakeDirectory));
                return Ok(directory.is_some());
            }
            1 => {
                let Some(file) = self.to_make.next() else { return Ok(false) };
                let name = self.name(file);
                self.make(file, name, operations);
                operations.push(FileOperation::Close(name));
            }
            _ => {
                if self.opens.next().is_none() {
                    return Ok(false);
                }
                self.version = self.version.wrapping_add(1);
                let file = self.own.start + self.random.below(self.own.end - self.own.start);
                match self.random.unit() < MADE {
                    true => self.replace(file, operations),
                    false => self.read(file, operations),
                }
            }
        }
        Ok(true)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        path.push_str("dbench");
        // Writing to a String cannot fail.
        if name == ROOT {
            return;
        }
        let Some(file) = name.checked_sub(1 + self.clients) else {
            let _ = write!(path, "/client{}", name - 1);
            return;
        };
        let _ = match file.checked_sub(self.files) {
            Some(file) => write!(path, "/client{}/{file:08}.new", self.number),
            None => write!(path, "/client{}/{file:08}", self.number),
        };
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage {
            1 => part(self.to_make.start - self.own.start, self.own.end - self.own.start),
            2 => part(self.version.into(), u64::from(self.version) + (self.opens.end - self.opens.start)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse_term;
    use crate::workload::files::file_workload;

    /// The counts of dbench's summary, of 1,000 opens: within four standard deviations of a draw.
    #[test]
    fn the_calls_have_the_shares_of_the_summary() {
        let mut workload = file_workload(&parse_term("dbench:threads=3,loops=60000,files=90").unwrap(), 1).unwrap();
        let mut operations = Vec::new();
        for stage in 0..workload.stages.len() {
            operations.clear();
            for lane in &mut workload.lanes {
                while lane.step(stage, &mut operations).unwrap() {}
            }
        }
        let per_thousand = |is_counted: fn(&FileOperation) -> bool| {
            operations.iter().filter(|operation| is_counted(operation)).count() as f64 / 60.0
        };
        let made = per_thousand(|operation| matches!(operation, FileOperation::Create(_)));
        let opened = per_thousand(|operation| matches!(operation, FileOperation::Open(_)));
        assert_eq!(made + opened, 1000.0, "each step opens a file");
        assert_eq!(made, per_thousand(|operation| matches!(operation, FileOperation::Unlink(_))));
        let renamed = per_thousand(|operation| matches!(operation, FileOperation::Rename { .. }));
        let synced = per_thousand(|operation| matches!(operation, FileOperation::Fsync(_)));
        let deviation = |expected: f64| 4.0 * (expected * (1000.0 - expected) / 1000.0 / 60.0).sqrt();
        for (found, expected) in [(made, 202.0), (renamed, 42.0), (synced, 70.0)] {
            assert!((found - expected).abs() < deviation(expected), "{found} for {expected}");
        }
    }
}
