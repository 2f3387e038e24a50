//! `postmark`: the news and mail server of Katcher, "PostMark: a new file system benchmark", NetApp TR-3022, 1997, with
//! the defaults and the mixes of release 1.5.
//!
//! The setup creates a pool of files. Each transaction creates or deletes a file, and then reads a whole file or
//! appends to one that is below the largest size. The remaining files are deleted at the end. The pool holds at most
//! twice its initial files: creations beyond are skipped, and so are operations on an empty pool.

use super::contents::mix;
use super::{FileOperation, Lane, Name, Parts, ROOT, Stage, check_threads, part, push_reads, push_writes, share_of};
use crate::expression::{ExpressionError, Settings};
use crate::random::Random;
use crate::workload::WorkloadError;
use std::fmt::Write;
use std::ops::Range;

const STAGES: &[Stage] = &[
    Stage { name: "directories", counted: false },
    Stage { name: "creation", counted: false },
    Stage { name: "transactions", counted: true },
    Stage { name: "deletion", counted: true },
];

/// The size of stdio's buffer, in bytes.
const STDIO_BUFFER: u64 = 4096;

/// A bias of 10 means always.
const BIAS_MAX: u64 = 10;

pub(super) fn lanes(settings: &Settings, seed: u64) -> Result<Parts, ExpressionError> {
    let (smallest, largest) = (settings.size("smallest"), settings.size("largest"));
    if smallest > largest {
        let message = format!("smallest={} exceeds largest={}", settings.text("smallest"), settings.text("largest"));
        let option = if settings.is_given("smallest") { "smallest" } else { "largest" };
        return Err(settings.error(option, message, "take a smallest size of at most the largest".to_string()));
    }
    check_threads(settings)?;
    let (files, threads) = (settings.count("files"), settings.count("threads"));
    let call_size = |option| {
        let block = settings.size(option);
        if settings.switch("buffered") { block.max(STDIO_BUFFER) } else { block }
    };
    let subdirectories = settings.count("subdirectories");
    let lane = |lane| {
        let files = share_of(files, lane, threads);
        Box::new(Postmark {
            lane,
            threads,
            directories: if lane == 0 { 0..1 + subdirectories } else { 0..0 },
            subdirectories,
            to_create: files.end - files.start,
            pool: Vec::new(),
            pool_limit: 2 * (files.end - files.start),
            made: 0,
            transactions: share_of(settings.count("transactions"), lane, threads),
            first_transaction: share_of(settings.count("transactions"), lane, threads).start,
            smallest,
            largest,
            read_block: call_size("read-block"),
            write_block: call_size("write-block"),
            read_bias: settings.count("read-bias"),
            create_bias: settings.count("create-bias"),
            random: Random::new(seed, &format!("postmark {lane}")),
        }) as _
    };
    Ok((STAGES, (0..threads).map(lane).collect()))
}

/// A file of the pool.
#[derive(Clone, Copy)]
struct Pooled {
    name: Name,
    size: u64,
}

/// A thread of postmark. Names are the root, the subdirectories, then the files in order of creation, interleaved by
/// lane.
struct Postmark {
    lane: u64,
    threads: u64,
    directories: Range<u64>,
    subdirectories: u64,
    to_create: u64,
    pool: Vec<Pooled>,
    pool_limit: u64,
    /// The number of files created so far.
    made: u64,
    transactions: Range<u64>,
    first_transaction: u64,
    smallest: u64,
    largest: u64,
    read_block: u64,
    write_block: u64,
    read_bias: u64,
    create_bias: u64,
    random: Random,
}

impl Postmark {
    fn create(&mut self, operations: &mut Vec<FileOperation>) {
        let name = 1 + self.subdirectories + self.made * self.threads + self.lane;
        self.made += 1;
        let size = self.smallest + self.random.below(self.largest - self.smallest + 1);
        self.pool.push(Pooled { name, size });
        debug_assert!((self.smallest..=self.largest).contains(&size), "a file of {size} bytes is within the bounds");
        operations.push(FileOperation::Create(name));
        push_writes(operations, name, 0..size, self.write_block, 0);
        operations.push(FileOperation::Close(name));
    }

    /// A random file of the pool; `None` if it is empty.
    fn pick(&mut self) -> Option<usize> {
        (!self.pool.is_empty()).then(|| self.random.below(self.pool.len() as u64) as usize)
    }

    fn create_or_delete(&mut self, operations: &mut Vec<FileOperation>) {
        if self.random.below(BIAS_MAX) < self.create_bias {
            if (self.pool.len() as u64) < self.pool_limit {
                self.create(operations);
            }
        } else if let Some(place) = self.pick() {
            operations.push(FileOperation::Unlink(self.pool.swap_remove(place).name));
        }
    }

    fn read_or_append(&mut self, operations: &mut Vec<FileOperation>) {
        let reads = self.random.below(BIAS_MAX) < self.read_bias;
        let Some(place) = self.pick() else { return };
        let Pooled { name, size } = self.pool[place];
        if !reads && size >= self.largest {
            return;
        }
        operations.push(FileOperation::Open(name));
        if reads {
            push_reads(operations, name, size, self.read_block);
        } else {
            let end = size + 1 + self.random.below(self.largest - size);
            push_writes(operations, name, size..end, self.write_block, 0);
            self.pool[place].size = end;
        }
        operations.push(FileOperation::Close(name));
    }
}

impl Lane for Postmark {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        let goes_on = match stage {
            0 => {
                let directory = self.directories.next();
                operations.extend(directory.map(FileOperation::MakeDirectory));
                directory.is_some()
            }
            1 if self.made < self.to_create => {
                self.create(operations);
                true
            }
            2 => {
                let goes_on = self.transactions.next().is_some();
                if goes_on {
                    self.create_or_delete(operations);
                    self.read_or_append(operations);
                }
                goes_on
            }
            3 => {
                let left = self.pool.pop();
                operations.extend(left.map(|file| FileOperation::Unlink(file.name)));
                left.is_some()
            }
            _ => false,
        };
        Ok(goes_on)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        path.push_str("postmark");
        // Writing to a String cannot fail.
        let _ = match name.checked_sub(1 + self.subdirectories) {
            None if name == ROOT => Ok(()),
            None => write!(path, "/s{}", name - 1),
            Some(file) if self.subdirectories == 0 => write!(path, "/{file}"),
            Some(file) => write!(path, "/s{}/{file}", mix(file) % self.subdirectories),
        };
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage {
            1 => part(self.made, self.to_create),
            2 => part(self.transactions.start - self.first_transaction, self.transactions.end - self.first_transaction),
            _ => None,
        }
    }
}
