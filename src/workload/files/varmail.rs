//! `varmail`: the mail server of filebench (`workloads/varmail.f`), flowop by flowop.
//!
//! Each loop deletes a file; creates one, appends to it and makes it durable; opens one, reads it whole, appends to it
//! and makes it durable; opens one and reads it whole: 13 flowops. Files are picked in rotation by their number, as
//! filebench does: those that are there, and those that are not, each from where the last pick ended. filebench's threads
//! pick from one set of files, and which they get is decided by their race; here each has a share of its own.

use super::{FileOperation, Lane, Name, Parts, ROOT, Stage, draws, part, push_reads, push_writes, root_once, share_of};
use crate::expression::{ExpressionError, Settings};
use crate::random::Random;
use crate::workload::WorkloadError;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

const STAGES: &[Stage] = &[
    Stage { name: "directory", counted: false },
    Stage { name: "files", counted: false },
    Stage { name: "loops", counted: true },
];

pub(super) fn lanes(settings: &Settings, seed: u64) -> Result<Parts, ExpressionError> {
    let (files, threads) = (settings.count("files"), settings.count("threads"));
    if files < threads {
        let message = format!("{threads} threads cannot share {files} files");
        let help = format!("take {threads} files or more: each thread works on files of its own");
        return Err(settings.error(if settings.is_given("threads") { "threads" } else { "files" }, message, help));
    }
    let lane = |lane| {
        let mut random = Random::new(seed, &format!("varmail {lane}"));
        let numbers = share_of(files, lane, threads);
        let mut lane = Varmail {
            directory: lane == 0,
            present: BTreeSet::new(),
            absent: BTreeSet::new(),
            sizes: vec![0; (numbers.end - numbers.start) as usize],
            set_up: numbers.start,
            present_rotor: numbers.start,
            absent_rotor: numbers.start,
            numbers,
            append_bytes: settings.size("append"),
            read_bytes: settings.size("read"),
            loops: share_of(settings.count("loops"), lane, threads),
            version: 0,
            random: random.clone(),
        };
        lane.lay_out(settings, &mut random);
        lane.random = random;
        Box::new(lane) as _
    };
    Ok((STAGES, (0..threads).map(lane).collect()))
}

/// A thread of varmail.
struct Varmail {
    directory: bool,
    /// The files of this lane.
    numbers: Range<u64>,
    /// Those that are there.
    present: BTreeSet<u64>,
    /// Those that are not.
    absent: BTreeSet<u64>,
    /// The length of each file, in bytes.
    sizes: Vec<u64>,
    /// The next file to be made in the setup.
    set_up: u64,
    present_rotor: u64,
    absent_rotor: u64,
    append_bytes: u64,
    read_bytes: u64,
    loops: Range<u64>,
    version: u32,
    random: Random,
}

impl Varmail {
    /// Draws which files are there at first, and how long they are.
    fn lay_out(&mut self, settings: &Settings, random: &mut Random) {
        let (share, mean) = (settings.share("prealloc"), settings.size("size"));
        let shape = settings.is_set("shape").then(|| settings.real("shape"));
        for number in self.numbers.clone() {
            // One at least is there to be deleted.
            if random.unit() < share || number == self.numbers.start {
                self.present.insert(number);
            } else {
                self.absent.insert(number);
            }
            let size = shape.map_or(mean, |shape| draws::gamma(random, mean as f64, shape) as u64);
            self.sizes[(number - self.numbers.start) as usize] = size;
        }
    }

    fn size(&mut self, number: u64) -> &mut u64 {
        &mut self.sizes[(number - self.numbers.start) as usize]
    }

    /// The file that is there from the last pick on, and round again.
    fn pick(&mut self) -> u64 {
        let number = next_in(&self.present, self.present_rotor);
        self.present_rotor = number + 1;
        number
    }

    /// filebench's appendfilerand: up to so many bytes, none being one of the numbers, and then fsync.
    fn append_and_sync(&mut self, number: u64, operations: &mut Vec<FileOperation>) {
        let (length, version) = (self.random.below(self.append_bytes), self.version);
        let size = self.size(number);
        let bytes = *size..*size + length;
        *size = bytes.end;
        push_writes(operations, 1 + number, bytes, length, version);
        operations.extend([FileOperation::Fsync(1 + number), FileOperation::Close(1 + number)]);
    }

    fn open_and_read(&mut self, operations: &mut Vec<FileOperation>) -> u64 {
        let number = self.pick();
        operations.push(FileOperation::Open(1 + number));
        push_reads(operations, 1 + number, *self.size(number), self.read_bytes);
        number
    }
}

/// The first of `numbers` from `rotor` on, and round again. There is one at least: a lane begins with one, and a loop
/// makes as many as it deletes.
fn next_in(numbers: &BTreeSet<u64>, rotor: u64) -> u64 {
    *numbers.range(rotor..).next().or(numbers.first()).expect("a lane has a file of either kind when it picks one")
}

impl Lane for Varmail {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        match stage {
            0 => return Ok(root_once(&mut self.directory, operations)),
            1 => {
                let Some(&number) = self.present.range(self.set_up..).next() else { return Ok(false) };
                self.set_up = number + 1;
                operations.push(FileOperation::Create(1 + number));
                push_writes(operations, 1 + number, 0..*self.size(number), self.read_bytes, 0);
                operations.push(FileOperation::Close(1 + number));
            }
            _ => {
                if self.loops.next().is_none() {
                    return Ok(false);
                }
                self.version = self.version.wrapping_add(1);
                let deleted = self.pick();
                self.present.remove(&deleted);
                self.absent.insert(deleted);
                operations.push(FileOperation::Unlink(1 + deleted));

                let created = next_in(&self.absent, self.absent_rotor);
                self.absent_rotor = created + 1;
                self.absent.remove(&created);
                self.present.insert(created);
                *self.size(created) = 0;
                operations.push(FileOperation::Create(1 + created));
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
            1 => part(self.set_up - self.numbers.start, self.numbers.end - self.numbers.start),
            2 => part(self.version.into(), u64::from(self.version) + (self.loops.end - self.loops.start)),
            _ => None,
        }
    }
}
