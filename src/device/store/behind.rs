//! What is done to a file while whoever asked for it goes on: large writes past the page cache, and what comes behind
//! them.
//!
//! To fill the page cache with new pages costs a processor about a second a GB, and a log that writes whole segments
//! reads none of them soon (docs/decisions/0005-writes-behind.md). So a thread writes them with `O_DIRECT`, one after
//! the other. While it does, the file is locked by the system: smaller writes, and holes that are punched, join the
//! queue then. What is read meanwhile is read from what waits. What fails fails the next write and the next sync: as
//! with any cache, what was not synced is not durable.

use super::hole::punch;
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
const LARGE: usize = 1 << 20;
/// What direct writes must be aligned to, at the most.
const PAGE: usize = 4096;

/// A page where a disk can fetch it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// What waits to be done, or is being done.
struct Task {
    offset: u64,
    length: u64,
    /// What is to be written there; `None`: it shall be a hole.
    pages: Option<Vec<Page>>,
}

impl Task {
    fn overlaps(&self, offset: u64, end: u64) -> bool {
        self.offset < end && offset < self.offset + self.length
    }

    /// The bytes from `offset` to `end`, if all of them are within.
    fn bytes(&self, offset: u64, end: u64) -> Option<&[u8]> {
        let pages = self.pages.as_ref()?;
        (self.offset <= offset && end <= self.offset + self.length)
            .then(|| &pages.as_bytes()[(offset - self.offset) as usize..(end - self.offset) as usize])
    }

    /// What it takes of what may wait.
    fn weight(&self) -> u64 {
        if self.pages.is_some() { self.length } else { 0 }
    }
}

#[derive(Default)]
struct Line {
    /// The first of them is being done.
    tasks: VecDeque<Arc<Task>>,
    waiting: u64,
    /// Buffers that no write uses. Together with what waits they take no more than may wait.
    spare: Vec<Vec<Page>>,
    /// The number of the first error, and what it said.
    failed: Option<(Option<i32>, String)>,
    is_ended: bool,
}

impl Line {
    /// Bytes of buffers that no write uses.
    fn spare_bytes(&self) -> u64 {
        self.spare.iter().map(|pages| (pages.capacity() * PAGE) as u64).sum()
    }

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
    /// Bytes that may wait: large segments are written while the next ones are filled.
    most: u64,
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

    fn execute(&self, task: &Task) -> io::Result<()> {
        let Some(bytes) = task.bytes(task.offset, task.offset + task.length) else {
            return punch(&self.cached, task.offset, task.length);
        };
        match self.direct.write_all_at(bytes, task.offset) {
            // It is not aligned, or the file system wants more than a page's alignment.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                self.cached.write_all_at(bytes, task.offset)
            }
            written => written,
        }
    }

    /// What the thread does.
    fn execute_all(&self) {
        let mut line = self.line();
        loop {
            let Some(task) = line.tasks.front().map(Arc::clone) else {
                if line.is_ended {
                    return;
                }
                line = self.wait(line);
                continue;
            };
            drop(line);
            let done = self.execute(&task);
            line = self.line();
            if let (Err(error), None) = (done, &line.failed) {
                line.failed = Some((error.raw_os_error(), error.to_string()));
            }
            line.tasks.pop_front();
            line.waiting -= task.weight();
            if let Some(pages) = Arc::into_inner(task).and_then(|task| task.pages)
                && line.waiting + line.spare_bytes() + (pages.capacity() * PAGE) as u64 <= self.most
            {
                line.spare.push(pages);
            }
            self.changed.notify_all();
        }
    }
}

/// The thread that does it, and what waits for it.
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
    /// For this file, with at most `most` bytes that wait, or one write. Fails where it cannot be opened so: on a file
    /// system of memory, for one.
    pub fn start(file: &File, most: u64) -> io::Result<Behind> {
        let direct = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Behind::writing(direct, file.try_clone()?, most)
    }

    fn writing(direct: File, cached: File, most: u64) -> io::Result<Behind> {
        let shared = Arc::new(Shared { line: Mutex::default(), changed: Condvar::new(), most, direct, cached });
        let worker = Arc::clone(&shared);
        let thread = Builder::new().name("behind".into()).spawn(move || worker.execute_all())?;
        Ok(Behind { shared, thread: Some(thread) })
    }

    /// Takes a write if it is large or others wait, as soon as not too much does. Answers whether it has; if not, it is
    /// up to the caller. Fails if something before it did.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let mut line = self.shared.line();
        if bytes.len() < LARGE && line.tasks.is_empty() {
            return line.check().map(|()| false);
        }
        while line.waiting > 0 && line.waiting + bytes.len() as u64 > self.shared.most {
            line = self.shared.wait(line);
        }
        line.check()?;
        let mut pages = line.spare.pop().unwrap_or_default();
        while line.waiting + line.spare_bytes() + bytes.len() as u64 > self.shared.most && line.spare.pop().is_some() {}
        drop(line);
        pages.resize(bytes.len().div_ceil(PAGE), Page([0; PAGE]));
        pages.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        self.append(Task { offset, length: bytes.len() as u64, pages: Some(pages) });
        Ok(true)
    }

    /// Makes a hole, in its turn.
    pub fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.shared.line().check()?;
        self.append(Task { offset, length, pages: None });
        Ok(())
    }

    fn append(&self, task: Task) {
        let mut line = self.shared.line();
        line.waiting += task.weight();
        line.tasks.push_back(Arc::new(task));
        self.shared.changed.notify_all();
    }

    /// Reads what waits, if all that is wanted does in one write. If only some does, waits until that is done. Answers
    /// whether it has read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let end = offset + buffer.len() as u64;
        {
            let line = self.shared.line();
            // The last one counts.
            let Some(last) = line.tasks.iter().rev().find(|task| task.overlaps(offset, end)) else { return false };
            if let Some(bytes) = last.bytes(offset, end) {
                buffer.copy_from_slice(bytes);
                return true;
            }
        }
        self.wait_for(offset, buffer.len() as u64);
        false
    }

    /// Waits until nothing waits for a place in these bytes.
    pub fn wait_for(&self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let mut line = self.shared.line();
        while line.tasks.iter().any(|task| task.overlaps(offset, end)) {
            line = self.shared.wait(line);
        }
    }

    /// Waits until nothing waits. Fails if anything did, and then always.
    pub fn finish(&self) -> io::Result<()> {
        let mut line = self.shared.line();
        while !line.tasks.is_empty() {
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

    /// Bytes that may wait.
    const MOST: u64 = 6 << 20;

    /// With `O_DIRECT` where the system has it for temporary files.
    fn behind(file: &File) -> Behind {
        let direct = Behind::start(file, MOST);
        direct.or_else(|_| Behind::writing(file.try_clone().unwrap(), file.try_clone().unwrap(), MOST)).unwrap()
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
            let count = 1 + random.below((PAGES - first).min(600));
            let (from, to) = (first as usize * PAGE, (first + count) as usize * PAGE);
            let offset = from as u64;
            match random.below(7) {
                0 => {
                    model[from..to].fill(0);
                    behind.punch(offset, (to - from) as u64).unwrap();
                }
                1..4 => {
                    model[from..to].fill(turn as u8);
                    if !behind.write(offset, &model[from..to]).unwrap() {
                        file.write_all_at(&model[from..to], offset).unwrap();
                    }
                }
                _ => {
                    let mut read = vec![0; to - from];
                    if !behind.read(offset, &mut read) {
                        file.read_exact_at(&mut read, offset).unwrap();
                    }
                    assert!(read == model[from..to], "pages {first} to {} in turn {turn}", first + count);
                }
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
        written.chunks(LARGE).zip((0..).step_by(LARGE)).for_each(|(part, at)| assert!(behind.write(at, part).unwrap()));
        drop(behind);
        let mut read = vec![0; 8 << 20];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == written);
    }

    #[test]
    fn a_write_that_failed_fails_all_that_follows() {
        let (temporary, file) = Temporary::new("failure", 8 << 20);
        let unwritable = File::open(&temporary.0).unwrap();
        let behind = Behind::writing(unwritable, file, MOST).unwrap();
        assert!(behind.write(0, &[1; LARGE]).unwrap());
        for _ in 0..2 {
            let error = behind.finish().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()), "{error}");
        }
        assert!(behind.write(0, &[2; LARGE]).is_err() && behind.write(0, &[2; PAGE]).is_err());
        assert!(behind.punch(0, 4096).is_err());
    }
}
