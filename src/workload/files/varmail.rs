//! `varmail`: the mail server of filebench (`workloads/varmail.f`), flowop by flowop.
//!
//! Each loop deletes a file; creates one, appends to it and fsyncs it; opens one, reads it whole, appends to it and
//! fsyncs it; opens one and reads it whole: 13 flowops.
//!
//! filebench's threads pick from one set of files in rotation, and race for them. Here each thread draws from a share
//! of its own. Rotation without races would be wrong: a single thread picks three files a loop, so with a number of
//! files divisible by three it would delete the same third for ever and append to files that are never deleted, and
//! throughput would rise with the length of the run. With draws, a file is created with half of `append` and grows by
//! as much on average before it is deleted: the mean size stays at `append`.

use super::sync_call::SyncCall;
use super::{
    FileOperation, Lane, Name, Parts, ROOT, Setup, Stage, check_threads, draws, part, push_reads, push_writes,
    root_once, share_of,
};
use crate::expression::{ExpressionError, Settings};
use crate::random::Random;
use crate::workload::WorkloadError;
use std::fmt::Write;
use std::ops::Range;

const STAGES: &[Stage] = &[
    Stage { name: "directory", counted: false },
    Stage { name: "files", counted: false },
    Stage { name: "loops", counted: true },
];

/// The initial files are drawn: their number is below the mean by more than this many standard deviations once in a
/// billion runs.
const DEVIATIONS: f64 = 6.0;

/// The least that the setup creates.
pub(super) fn setup(settings: &Settings) -> Setup {
    let (files, share) = (settings.count("files") as f64, settings.share("prealloc"));
    let deviation = (files * share * (1.0 - share)).sqrt();
    // A drawn size may be zero.
    let bytes_each = if settings.is_set("shape") { 0 } else { settings.size("size") };
    Setup { files: (files * share - DEVIATIONS * deviation).max(1.0) as u64, bytes_each }
}

pub(super) fn lanes(settings: &Settings, seed: u64) -> Result<Parts, ExpressionError> {
    let (files, threads) = (settings.count("files"), settings.count("threads"));
    check_threads(settings)?;
    let lane = |lane| {
        let numbers = share_of(files, lane, threads);
        let lane = Varmail {
            directory: lane == 0,
            present: Vec::new(),
            absent: Vec::new(),
            sizes: Vec::new(),
            first: numbers.start,
            to_draw: numbers,
            share: settings.share("prealloc"),
            mean_bytes: settings.size("size"),
            shape: settings.is_set("shape").then(|| settings.real("shape")),
            set_up: 0,
            append_bytes: settings.size("append"),
            read_bytes: settings.size("read"),
            sync_call: settings.choice("sync-call"),
            loops: share_of(settings.count("loops"), lane, threads),
            version: 0,
            random: Random::new(seed, &format!("varmail {lane}")),
        };
        Box::new(lane) as _
    };
    Ok((STAGES, (0..threads).map(lane).collect()))
}

/// A thread of varmail.
struct Varmail {
    directory: bool,
    /// The existing files.
    present: Vec<u64>,
    /// The files that do not exist.
    absent: Vec<u64>,
    /// The length of each file of the lane, in bytes.
    sizes: Vec<u64>,
    /// The first file of the lane.
    first: u64,
    /// The files whose initial existence and length are still to be drawn: all before the first step.
    to_draw: Range<u64>,
    /// The share of the files that exist at first.
    share: f64,
    mean_bytes: u64,
    /// The shape of the distribution of sizes; `None`: all have the mean size.
    shape: Option<f64>,
    /// The number of the existing files that the setup has created.
    set_up: usize,
    append_bytes: u64,
    read_bytes: u64,
    sync_call: SyncCall,
    loops: Range<u64>,
    version: u32,
    random: Random,
}

impl Varmail {
    /// Draws the initial files and their lengths.
    fn lay_out(&mut self) {
        let (mean, shape) = (self.mean_bytes, self.shape);
        for number in std::mem::take(&mut self.to_draw) {
            // At least one exists, so that it can be deleted.
            let exists = self.random.unit() < self.share || number == self.first;
            if exists {
                self.present.push(number)
            } else {
                self.absent.push(number)
            }
            let size = shape.map_or(mean, |shape| draws::gamma(&mut self.random, mean as f64, shape) as u64);
            self.sizes.push(size);
        }
    }

    fn size(&mut self, number: u64) -> &mut u64 {
        debug_assert!(number >= self.first, "file {number} is the lane's own, from {} on", self.first);
        &mut self.sizes[(number - self.first) as usize]
    }

    /// A random index among this many files.
    fn pick(&mut self, files: usize) -> usize {
        debug_assert!(files > 0, "a lane begins with a file, and creates as many as it deletes");
        self.random.below(files as u64) as usize
    }

    /// filebench's appendfilerand (from zero up to the limit), and then fsync.
    fn append_and_sync(&mut self, number: u64, operations: &mut Vec<FileOperation>) {
        let (length, version) = (self.random.below(self.append_bytes), self.version);
        let size = self.size(number);
        let bytes = *size..*size + length;
        *size = bytes.end;
        push_writes(operations, 1 + number, bytes, length, version);
        operations.extend([self.sync_call.of(1 + number), FileOperation::Close(1 + number)]);
    }

    fn open_and_read(&mut self, operations: &mut Vec<FileOperation>) -> u64 {
        let place = self.pick(self.present.len());
        let number = self.present[place];
        operations.push(FileOperation::Open(1 + number));
        push_reads(operations, 1 + number, *self.size(number), self.read_bytes);
        number
    }
}

impl Lane for Varmail {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        self.lay_out();
        match stage {
            0 => return Ok(root_once(&mut self.directory, operations)),
            1 => {
                let Some(&number) = self.present.get(self.set_up) else { return Ok(false) };
                self.set_up += 1;
                operations.push(FileOperation::Create(1 + number));
                push_writes(operations, 1 + number, 0..*self.size(number), self.read_bytes, 0);
                operations.push(FileOperation::Close(1 + number));
            }
            _ => {
                if self.loops.next().is_none() {
                    return Ok(false);
                }
                self.version = self.version.wrapping_add(1);
                // At least one exists: a lane begins with one, and a loop creates as many as it deletes.
                let place = self.pick(self.present.len());
                let deleted = self.present.swap_remove(place);
                self.absent.push(deleted);
                operations.push(FileOperation::Unlink(1 + deleted));

                let place = self.pick(self.absent.len());
                let created = self.absent.swap_remove(place);
                self.present.push(created);
                operations.push(FileOperation::Create(1 + created));
                *self.size(created) = 0;
                self.append_and_sync(created, operations);

                let grown = self.open_and_read(operations);
                self.append_and_sync(grown, operations);

                let read = self.open_and_read(operations);
                operations.push(FileOperation::Close(1 + read));
            }
        }
        Ok(true)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        path.push_str("varmail");
        if name != ROOT {
            // Writing to a String cannot fail.
            let _ = write!(path, "/{:08}", name - 1);
        }
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage {
            1 => part(self.set_up as u64, self.present.len() as u64),
            2 => part(self.version.into(), u64::from(self.version) + (self.loops.end - self.loops.start)),
            _ => None,
        }
    }
}
