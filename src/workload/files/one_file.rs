//! `seq_write` and `rnd_write`: one file for each lane, written sequentially or at random. The micro-benchmarks of
//! Huang and Chang's VMA journaling on SSDs, section IV.

use super::sync_call::SyncCall;
use super::{FileOperation, Lane, Name, Parts, ROOT, Stage, part, push_writes, root_once};
use crate::expression::{ExpressionError, Settings};
use crate::random::Random;
use crate::workload::WorkloadError;
use std::fmt::Write;

/// The write size of the setup, in bytes.
const SETUP_BLOCK: u64 = 1 << 20;

/// `seq_write`: creates a file and appends to it up to its size.
pub(super) fn sequential(settings: &Settings) -> Parts {
    const STAGES: &[Stage] = &[Stage { name: "directory", counted: false }, Stage { name: "appends", counted: true }];
    let lanes = (0..settings.count("threads"))
        .map(|lane| {
            let fsyncs = FsyncEvery::new(settings);
            let (file_bytes, append_bytes) = (settings.size("file"), settings.size("append"));
            let (file, directory, next) = (1 + lane, lane == 0, Next::Create);
            Box::new(Sequential { file, directory, file_bytes, append_bytes, fsyncs, next, written: 0 }) as _
        })
        .collect();
    (STAGES, lanes)
}

/// `rnd_write`: overwrites uniformly random blocks of a file that the setup wrote.
pub(super) fn random(settings: &Settings, seed: u64) -> Result<Parts, ExpressionError> {
    const STAGES: &[Stage] = &[
        Stage { name: "directory", counted: false },
        Stage { name: "file", counted: false },
        Stage { name: "writes", counted: true },
    ];
    let (file_bytes, request_bytes) = (settings.size("file"), settings.size("request"));
    if request_bytes > file_bytes {
        let message =
            format!("a request of {} does not fit a file of {}", settings.text("request"), settings.text("file"));
        return Err(settings.error("request", message, "take a smaller request or a larger file".to_string()));
    }
    let requests = settings.amount("writes").bytes(file_bytes).div_ceil(request_bytes);
    if requests == 0 {
        let message = format!("writes={} requests nothing", settings.text("writes"));
        let help = "write a size such as 128M, or a multiple of the file such as 2x".to_string();
        return Err(settings.error("writes", message, help));
    }
    let lanes = (0..settings.count("threads"))
        .map(|lane| {
            let random = Random::new(seed, &format!("rnd_write {lane}"));
            let fsyncs = FsyncEvery::new(settings);
            let (file, directory, next) = (1 + lane, lane == 0, Next::Create);
            let done = 0;
            Box::new(Scattered { file, directory, file_bytes, request_bytes, requests, random, fsyncs, next, done })
                as _
        })
        .collect();
    Ok((STAGES, lanes))
}

/// The next operation of a lane in its stage.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Create,
    Write,
    Close,
    End,
}

impl Next {
    fn after(self, more: bool) -> Next {
        match self {
            Next::Create | Next::Write if more => Next::Write,
            Next::Create | Next::Write => Next::Close,
            Next::Close | Next::End => Next::End,
        }
    }
}

/// Emits an fsync after every so many writes, or another call in its place.
struct FsyncEvery {
    every: Option<u64>,
    call: SyncCall,
    writes: u64,
}

impl FsyncEvery {
    fn new(settings: &Settings) -> FsyncEvery {
        let every = settings.is_set("fsync-every").then(|| settings.count("fsync-every"));
        FsyncEvery { every, call: settings.choice("sync-call"), writes: 0 }
    }

    fn after_write(&mut self, file: Name, operations: &mut Vec<FileOperation>) {
        self.writes += 1;
        if self.every.is_some_and(|every| self.writes.is_multiple_of(every)) {
            operations.push(self.call.of(file));
        }
    }
}

/// `seq_write`'s lane.
struct Sequential {
    file: Name,
    directory: bool,
    file_bytes: u64,
    append_bytes: u64,
    fsyncs: FsyncEvery,
    next: Next,
    written: u64,
}

impl Lane for Sequential {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        if stage == 0 {
            return Ok(root_once(&mut self.directory, operations));
        }
        match self.next {
            Next::Create => operations.push(FileOperation::Create(self.file)),
            Next::Write => {
                let to = self.file_bytes.min(self.written + self.append_bytes);
                push_writes(operations, self.file, self.written..to, self.append_bytes, 0);
                self.written = to;
                self.fsyncs.after_write(self.file, operations);
            }
            Next::Close => operations.push(FileOperation::Close(self.file)),
            Next::End => return Ok(false),
        }
        self.next = self.next.after(self.written < self.file_bytes);
        Ok(true)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        write_path("seq_write", name, path);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        (stage == 1).then(|| part(self.written, self.file_bytes)).flatten()
    }
}

/// `rnd_write`'s lane.
struct Scattered {
    file: Name,
    directory: bool,
    file_bytes: u64,
    request_bytes: u64,
    requests: u64,
    random: Random,
    fsyncs: FsyncEvery,
    next: Next,
    /// Bytes in the setup, then requests.
    done: u64,
}

impl Lane for Scattered {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        match stage {
            0 => Ok(root_once(&mut self.directory, operations)),
            1 => self.set_up(operations),
            _ => self.write(operations),
        }
    }

    fn write_path(&self, name: Name, path: &mut String) {
        write_path("rnd_write", name, path);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage {
            1 => part(self.done, self.file_bytes),
            2 => part(self.done, self.requests),
            _ => None,
        }
    }
}

impl Scattered {
    fn set_up(&mut self, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        match self.next {
            Next::Create => operations.push(FileOperation::Create(self.file)),
            Next::Write => {
                let to = self.file_bytes.min(self.done + SETUP_BLOCK);
                push_writes(operations, self.file, self.done..to, SETUP_BLOCK, 0);
                self.done = to;
            }
            // The measured stage begins without dirty data.
            Next::Close => operations.extend([FileOperation::Fsync(self.file), FileOperation::Close(self.file)]),
            Next::End => {
                (self.next, self.done) = (Next::Create, 0);
                return Ok(false);
            }
        }
        self.next = self.next.after(self.done < self.file_bytes);
        Ok(true)
    }

    fn write(&mut self, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        match self.next {
            Next::Create => operations.push(FileOperation::Open(self.file)),
            Next::Write => {
                let place = self.random.below(self.file_bytes / self.request_bytes);
                self.done += 1;
                operations.push(FileOperation::Write {
                    file: self.file,
                    offset: place * self.request_bytes,
                    length: self.request_bytes,
                    version: self.done as u32,
                });
                self.fsyncs.after_write(self.file, operations);
            }
            Next::Close => operations.push(FileOperation::Close(self.file)),
            Next::End => return Ok(false),
        }
        self.next = self.next.after(self.done < self.requests);
        Ok(true)
    }
}

fn write_path(root: &str, name: Name, path: &mut String) {
    path.push_str(root);
    if name != ROOT {
        // Writing to a String cannot fail.
        let _ = write!(path, "/file{}", name - 1);
    }
}
