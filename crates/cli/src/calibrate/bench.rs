//! Volumes of sfs in memory, and the calls that are timed.
//!
//! The calls are those of `fs::volume::steps`, each with one step that the calls before it do not have. So a step is the
//! time of a call beyond that of its other steps, and a simulated call takes what the same call takes here.

use super::memory::{MemoryFile, Ring, line_shared, thread_woken};
use flashpath::device::{BlockDevice, Lba};
use flashpath::fs::Durable;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, Change, FileKind, Hold, InodeNumber, Name, NewFile, Volume, VolumeError};
use flashpath::label::{Cause, Content, Label};
use flashpath::run::{Path, Payload, open_device, open_file_system};
use flashpath::task::{Step, Task};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least time of a measured loop.
const LOOP: Duration = Duration::from_millis(2);

/// Names in the directory: as many as fit a block.
const NAMES: usize = 60;

/// Blocks of a long read.
const RUN: usize = 64;

/// Bytes that are copied in order, a block at a time.
const COPIED: usize = 16 << 20;

const BLOCK: usize = BLOCK_BYTES as usize;

/// The time of each step in a round, in nanoseconds, in the order of [`Step::NAMES`].
pub type Round = [f64; Step::NAMES.len()];

/// The way in which a step is measured.
pub fn how(step: Step) -> &'static str {
    match step {
        Step::Call => "a call that looks at no file",
        Step::NameLookedUp => "a lookup in a directory of 60 names, beyond the call and the inode",
        Step::InodeRead => "the attributes of a file, beyond the call",
        Step::InodeChanged => "a change of a file's times, beyond the call",
        Step::BlockCopied => "4 KiB copied, of 16 MiB in order",
        Step::BlockSummed => "CRC-32C of 4 KiB",
        Step::MapStep => "a read of 64 buffered blocks, beyond the call, the inode and the copies, over 64",
        Step::LogRecord => "a link or an unlink, beyond the call, the name and two inodes",
        Step::LogWritten => "an fsync of one block, beyond the call, the inode, the checksum and the device's own time",
        Step::BlockStored => {
            "CRC-32C of 4 KiB and of a header of 64 bytes, both stored to memory with non-temporal stores; a fence"
        }
        Step::LineShared => {
            "an atomic addition to each of 64 lines that a thread on another core has just changed, over 64"
        }
        Step::RequestServed => "a write of 4 KiB to a file in memory, beyond the copy",
        Step::ThreadWoken => {
            "half of the time in which two threads on one core wake each other, each asleep until then"
        }
    }
}

/// The measured volumes and device.
pub struct Bench {
    /// Its blocks stay buffered.
    volume: Arc<dyn Volume>,
    /// Its log is written.
    logged: Arc<dyn Volume>,
    /// A device as the one below `logged`.
    device: Box<dyn BlockDevice>,
    /// Memory as that of a journal.
    ring: Ring,
    /// A file as the device of a journal in memory.
    memory_file: MemoryFile,
    /// A file with 64 buffered blocks.
    file: InodeNumber,
    /// A file of `logged`.
    written: InodeNumber,
    from: Vec<u8>,
    to: Vec<u8>,
    copied: usize,
}

const DEVICE: &str = "conv:size=64M,timing=off";
const DEVICE_BYTES: usize = 64 << 20;
const LABEL: Label = Label::first(Cause::HostWrite, Content::Data);
const NAME: Name = (InodeNumber::ROOT, b"name-030");

fn volume() -> Arc<dyn Volume> {
    let path = Path::read(&format!("sfs:segment=1M/{DEVICE}")).expect("the stations are in the table");
    open_file_system(&path, &Mounting::at(1, 0), Access::IfWhole).expect("memory holds a volume")
}

/// Makes a call by root.
fn by_root<T>(act: impl FnOnce(&Call) -> Result<T, VolumeError>) -> Result<T, VolumeError> {
    act(&Call::by_root(&Task::at(Time::ZERO)))
}

fn make(volume: &dyn Volume, name: &str) -> Result<InodeNumber, VolumeError> {
    let (kind, permissions, target, attributes) = (FileKind::Regular, 0o644, &b""[..], &[][..]);
    let new = NewFile { kind, permissions, user: 0, group: 0, device: 0, target, attributes };
    let name = (InodeNumber::ROOT, name.as_bytes());
    by_root(|call| volume.make(call, name, &new, Hold::Yes, None)).map(|made| made.inode)
}

impl Bench {
    pub fn new() -> Result<Bench, VolumeError> {
        let (volume, logged) = (volume(), volume());
        for number in 0..NAMES {
            make(&*volume, &format!("name-{number:03}"))?;
        }
        let file = make(&*volume, "file")?;
        by_root(|call| volume.write(call, file, 0, &vec![1; RUN * BLOCK], None))?;
        let written = make(&*logged, "file")?;
        let device = open_device(&Path::read(DEVICE).expect("it is a device"), Payload::Bytes, 1);
        let device = device.expect("memory holds a device");
        let (from, to) = (vec![1; COPIED], vec![0; COPIED]);
        let bench = Bench {
            volume,
            logged,
            device,
            ring: Ring::new(),
            memory_file: MemoryFile::new(),
            file,
            written,
            from,
            to,
            copied: 0,
        };
        bench.touch_memory()?;
        Ok(bench)
    }

    /// Writes each block of the devices once, so that no round waits for the system's memory.
    fn touch_memory(&self) -> Result<(), VolumeError> {
        for block in 0..DEVICE_BYTES / BLOCK {
            self.device.write(Lba(block as u64), &self.from[..BLOCK], LABEL, Time::ZERO)?;
            self.write_one()?;
            by_root(|call| self.logged.sync_file(call, self.written, Durable::All))?;
        }
        Ok(())
    }

    /// Measures each step once.
    pub fn round(&mut self) -> Result<Round, VolumeError> {
        let mut round = Round::default();
        let mut set = |step: Step, ns: f64| {
            round[step as usize] = ns;
            ns
        };
        let call = set(Step::Call, self.call()?);
        let read = set(Step::InodeRead, self.attributes()? - call);
        let copied = set(Step::BlockCopied, self.copy());
        let summed = set(Step::BlockSummed, self.sum());
        let name = set(Step::NameLookedUp, self.lookup()? - call - read);
        let changed = set(Step::InodeChanged, self.change()? - call);
        set(Step::MapStep, (self.read_run()? - call - read - self.copy_run()) / RUN as f64);
        set(Step::LogRecord, self.link_and_unlink()? / 2.0 - call - name - 2.0 * changed);
        let sync = self.write_and_sync()? - self.write()?;
        set(Step::LogWritten, sync - call - read - summed - self.device()?);
        set(Step::BlockStored, self.store());
        set(Step::LineShared, line_shared());
        set(Step::RequestServed, self.write_memory_file() - copied);
        set(Step::ThreadWoken, thread_woken());
        Ok(round)
    }

    fn call(&self) -> Result<f64, VolumeError> {
        each(|| by_root(|call| Ok(black_box(self.volume.is_changed(call)))))
    }

    fn attributes(&self) -> Result<f64, VolumeError> {
        each(|| by_root(|call| self.volume.attributes(call, self.file)))
    }

    fn lookup(&self) -> Result<f64, VolumeError> {
        each(|| by_root(|call| self.volume.lookup(call, NAME, Hold::No)))
    }

    fn change(&self) -> Result<f64, VolumeError> {
        let at = self.volume.timestamp(Time::ZERO);
        let change = || Change { accessed: Some(at), modified: Some(at), ..Change::default() };
        each(|| by_root(|call| self.volume.change(call, self.file, &mut |_| Ok(Some(change())))))
    }

    fn copy(&mut self) -> f64 {
        let Bench { from, to, copied: at, .. } = self;
        // The calls before have taken the caches.
        to.copy_from_slice(from);
        let copy = || {
            *at = (*at + BLOCK) % COPIED;
            to[*at..*at + BLOCK].copy_from_slice(&from[*at..*at + BLOCK]);
            black_box(&mut *to);
            Ok(())
        };
        each(copy).expect("a copy cannot fail")
    }

    fn sum(&self) -> f64 {
        each(|| Ok(black_box(flashpath::crc::crc32c(&self.from[..BLOCK])))).expect("a checksum cannot fail")
    }

    fn store(&mut self) -> f64 {
        let Bench { ring, from, .. } = self;
        let store = || {
            ring.store(&from[..BLOCK]);
            Ok(())
        };
        each(store).expect("a store cannot fail")
    }

    fn write_memory_file(&mut self) -> f64 {
        let Bench { memory_file, from, .. } = self;
        let write = || {
            memory_file.write(&from[..BLOCK]);
            Ok(())
        };
        each(write).expect("memory takes writes")
    }

    fn read_run(&mut self) -> Result<f64, VolumeError> {
        let Bench { volume, file, to, .. } = self;
        each(|| by_root(|call| volume.read(call, *file, 0, &mut to[..RUN * BLOCK])))
    }

    fn copy_run(&mut self) -> f64 {
        let Bench { from, to, .. } = self;
        let copy = || {
            to[..RUN * BLOCK].copy_from_slice(&from[..RUN * BLOCK]);
            black_box(&mut *to);
            Ok(())
        };
        each(copy).expect("a copy cannot fail")
    }

    fn link_and_unlink(&self) -> Result<f64, VolumeError> {
        by_root(|call| self.logged.sync(call))?;
        let name = (InodeNumber::ROOT, &b"link"[..]);
        each(|| {
            by_root(|call| self.logged.link(call, self.written, name, Hold::No, None))?;
            by_root(|call| self.logged.unlink(call, name, None))
        })
    }

    fn write_one(&self) -> Result<(), VolumeError> {
        by_root(|call| self.logged.write(call, self.written, 0, &[1], None))
    }

    fn write(&self) -> Result<f64, VolumeError> {
        by_root(|call| self.logged.sync(call))?;
        each(|| self.write_one())
    }

    fn write_and_sync(&self) -> Result<f64, VolumeError> {
        by_root(|call| self.logged.sync(call))?;
        each(|| {
            self.write_one()?;
            by_root(|call| self.logged.sync_file(call, self.written, Durable::All))
        })
    }

    /// The device's own part of a sync: two blocks are written, a summary and the file's, one behind the other; and a
    /// flush.
    fn device(&self) -> Result<f64, VolumeError> {
        let mut at = 0;
        each(|| {
            at = (at + 2 * BLOCK) % DEVICE_BYTES;
            self.device.write(Lba((at / BLOCK) as u64), &self.from[..2 * BLOCK], LABEL, Time::ZERO)?;
            Ok(self.device.flush(Time::ZERO)?)
        })
    }
}

/// The nanoseconds of one call, over as many as take 2 ms.
fn each<T>(mut call: impl FnMut() -> Result<T, VolumeError>) -> Result<f64, VolumeError> {
    let (began, mut calls) = (Instant::now(), 0u64);
    loop {
        for _ in 0..64 {
            call()?;
        }
        calls += 64;
        let passed = began.elapsed();
        if passed >= LOOP {
            return Ok(passed.as_nanos() as f64 / calls as f64);
        }
    }
}
