//! Large writes to a file that go past the page cache, while whoever wrote goes on.
//!
//! To fill the page cache with new pages costs a processor about a second a GB, and a log that writes whole segments reads none of them
//! soon (docs/decisions/0005-writes-behind.md). So a thread writes them with `O_DIRECT`, one after the other. What is read meanwhile is read from
//! what waits; what is written or given back in the same place waits its turn. A write that fails fails the next one and the next sync: as
//! with any cache, what was not synced is not durable.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes from which on a write goes this way: less is not worth it, and is often read again.
pub const LARGE: usize = 1 << 20;
/// Bytes that may wait: one large segment is written while the next one is filled.
const MOST_WAITING: usize = 64 << 20;
/// What direct writes must be aligned to, at the most.
const PAGE: usize = 4096;

/// A page where a disk can fetch it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// A write that waits, or is being written.
struct Write {
    offset: u64,
    length: usize,
    pages: Vec<Page>,
}

impl Write {
    fn bytes(&self) -> &[u8] {
        &self.pages.as_bytes()[..self.length]
    }

    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

#[derive(Default)]
struct Line {
    /// The first of them is being written.
    writes: VecDeque<Arc<Write>>,
    waiting: usize,
    /// Pages that no write uses.
    spare: Vec<Vec<Page>>,
    /// The number of the first error, and what it said.
    failed: Option<(Option<i32>, String)>,
    is_ended: bool,
}

impl Line {
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some((Some(number), _)) => Err(io::Error::from_raw_os_error(*number)),
            Some((None, said)) => Err(io::Error::other(said.clone())),
        }
    }
}

struct Shared {
    line: Mutex<Line>,
    changed: Condvar,
    direct: File,
    /// The same file, for what `O_DIRECT` does not take.
    cached: File,
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        // Whoever panicked left it whole: nothing between two changes of it can.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, line: MutexGuard<'a, Line>) -> MutexGuard<'a, Line> {
        self.changed.wait(line).unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: &Write) -> io::Result<()> {
        match self.direct.write_all_at(write.bytes(), write.offset) {
            // Some file systems want more than a page's alignment.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                self.cached.write_all_at(write.bytes(), write.offset)
            }
            written => written,
        }
    }

    /// What the thread does.
    fn write_all(&self) {
        let mut line = self.line();
        loop {
            let Some(write) = line.writes.front().map(Arc::clone) else {
                if line.is_ended {
                    return;
                }
                line = self.wait(line);
                continue;
            };
            drop(line);
            let written = self.write(&write);
            line = self.line();
            if let (Err(error), None) = (written, &line.failed) {
                line.failed = Some((error.raw_os_error(), error.to_string()));
            }
            line.writes.pop_front();
            line.waiting -= write.length;
            if let Some(write) = Arc::into_inner(write) {
                line.spare.push(write.pages);
            }
            self.changed.notify_all();
        }
    }
}

/// The thread that writes, and what waits for it.
pub struct Behind {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Behind").finish_non_exhaustive()
    }
}

impl Behind {
    /// For this file. Fails where it cannot be opened so: on a file system of memory, for one.
    pub fn start(file: &File) -> io::Result<Behind> {
        let direct = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Behind::writing(direct, file.try_clone()?)
    }

    fn writing(direct: File, cached: File) -> io::Result<Behind> {
        let shared = Arc::new(Shared { line: Mutex::default(), changed: Condvar::new(), direct, cached });
        let writer = Arc::clone(&shared);
        let thread = Builder::new().name("behind".into()).spawn(move || writer.write_all())?;
        Ok(Behind { shared, thread: Some(thread) })
    }

    /// Takes a write, as soon as not too much waits. Fails if one before it did.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut line = self.shared.line();
        while line.waiting > 0 && line.waiting + bytes.len() > MOST_WAITING {
            line = self.shared.wait(line);
        }
        line.check()?;
        let mut pages = line.spare.pop().unwrap_or_default();
        drop(line);
        pages.resize(bytes.len().div_ceil(PAGE), Page([0; PAGE]));
        pages.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        let mut line = self.shared.line();
        line.waiting += bytes.len();
        line.writes.push_back(Arc::new(Write { offset, length: bytes.len(), pages }));
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Reads what waits, if all that is wanted does in one write. If only some does, waits until it is written. Answers whether it has read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let end = offset + buffer.len() as u64;
        {
            let line = self.shared.line();
            // The last one counts.
            let last = line.writes.iter().rev().find(|write| write.offset < end && offset < write.end());
            match last {
                None => return false,
                Some(write) if write.offset <= offset && end <= write.end() => {
                    let from = (offset - write.offset) as usize;
                    buffer.copy_from_slice(&write.bytes()[from..from + buffer.len()]);
                    return true;
                }
                Some(_) => {}
            }
        }
        self.wait_for(offset, buffer.len() as u64);
        false
    }

    /// Waits until nothing waits for a place in these bytes.
    pub fn wait_for(&self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let mut line = self.shared.line();
        while line.writes.iter().any(|write| write.offset < end && offset < write.end()) {
            line = self.shared.wait(line);
        }
    }

    /// Waits until nothing waits. Fails if any write did, and then always.
    pub fn finish(&self) -> io::Result<()> {
        let mut line = self.shared.line();
        while !line.writes.is_empty() {
            line = self.shared.wait(line);
        }
        line.check()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.shared.line().is_ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, there is nobody to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::fs;
    use std::path::PathBuf;

    /// A file that is removed with it.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, length: u64) -> (Temporary, File) {
            let path = std::env::temp_dir().join(format!("flashpath-behind-{name}-{}", std::process::id()));
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
            file.set_len(length).unwrap();
            (Temporary(path), file)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// With `O_DIRECT` where the system has it for temporary files.
    fn behind(file: &File) -> Behind {
        Behind::start(file).or_else(|_| Behind::writing(file.try_clone().unwrap(), file.try_clone().unwrap())).unwrap()
    }

    #[test]
    fn what_is_read_is_what_was_written_whether_it_waits_or_not() {
        const PAGES: u64 = 1024;
        let (_temporary, file) = Temporary::new("model", PAGES * PAGE as u64);
        let behind = behind(&file);
        let mut model = vec![0_u8; PAGES as usize * PAGE];
        let mut random = Random::new(7, "writes behind");
        for turn in 0..600_u32 {
            let first = random.below(PAGES);
            let count = 1 + random.below((PAGES - first).min(300));
            let (from, to) = (first as usize * PAGE, (first + count) as usize * PAGE);
            let offset = from as u64;
            if random.below(2) == 0 {
                model[from..to].fill(turn as u8);
                behind.write(offset, &model[from..to]).unwrap();
            } else {
                let mut read = vec![0; to - from];
                if !behind.read(offset, &mut read) {
                    file.read_exact_at(&mut read, offset).unwrap();
                }
                assert!(read == model[from..to], "pages {first} to {} in turn {turn}", first + count);
            }
        }
        behind.finish().unwrap();
        let mut read = vec![0; model.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == model, "nothing waits any more");
    }

    #[test]
    fn what_waits_is_written_before_the_file_is_let_go() {
        let (_temporary, file) = Temporary::new("end", 8 << 20);
        let written = vec![5; 8 << 20];
        let behind = behind(&file);
        written.chunks(LARGE).zip((0..).step_by(LARGE)).for_each(|(part, at)| behind.write(at, part).unwrap());
        drop(behind);
        let mut read = vec![0; 8 << 20];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == written);
    }

    #[test]
    fn a_write_that_failed_fails_every_later_sync_and_write() {
        let (temporary, file) = Temporary::new("failure", 8 << 20);
        let unwritable = File::open(&temporary.0).unwrap();
        let behind = Behind::writing(unwritable, file).unwrap();
        behind.write(0, &[1; LARGE]).unwrap();
        for _ in 0..2 {
            let error = behind.finish().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()), "{error}");
        }
        assert!(behind.write(0, &[2; LARGE]).is_err());
    }
}
