//! Asynchronous direct writes to a file: a thread writes large blocks of data past the page cache while the caller
//! continues.
//!
//! Filling the page cache with new pages costs about a second of CPU time a GB, and a log that writes whole segments
//! does not read them soon (docs/decisions/0005-writes-direct_writer.md). So a thread writes them with `O_DIRECT`, one after
//! the other. Meanwhile the system locks the file, so smaller writes and hole punches join the queue. Reads of queued
//! data are served from the queue. An error fails the next write and the next sync: as with any cache, data that was
//! not synced is not durable.
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

/// The minimum length of a direct write, in bytes: shorter ones gain little, and are often read again.
const LARGE: usize = 1 << 20;
/// The maximum alignment that direct writes need.
const PAGE: usize = 4096;

/// A page with the alignment of direct I/O.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// A queued operation.
struct Task {
    offset: u64,
    length: u64,
    /// The data to write; `None` to punch a hole.
    pages: Option<Vec<Page>>,
}

impl Task {
    fn overlaps(&self, offset: u64, end: u64) -> bool {
        self.offset < end && offset < self.offset + self.length
    }

    /// The bytes from `offset` to `end`, if the task writes all of them.
    fn bytes(&self, offset: u64, end: u64) -> Option<&[u8]> {
        let pages = self.pages.as_ref()?;
        (self.offset <= offset && end <= self.offset + self.length)
            .then(|| &pages.as_bytes()[(offset - self.offset) as usize..(end - self.offset) as usize])
    }

    /// Its share of the queue's limit, in bytes.
    fn weight(&self) -> u64 {
        if self.pages.is_some() { self.length } else { 0 }
    }
}

#[derive(Default)]
struct Queue {
    /// The queue; its first task is in progress.
    tasks: VecDeque<Arc<Task>>,
    waiting: u64,
    /// Unused buffers. Together with the queue they take at most its limit.
    spare: Vec<Vec<Page>>,
    /// The first error: its number and its text.
    failed: Option<(Option<i32>, String)>,
    is_ended: bool,
}

impl Queue {
    /// The bytes of unused buffers.
    fn spare_bytes(&self) -> u64 {
        self.spare.iter().map(|pages| (pages.capacity() * PAGE) as u64).sum()
    }

    fn check(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some((Some(number), _)) => Err(io::Error::from_raw_os_error(*number)),
            Some((None, message)) => Err(io::Error::other(message.clone())),
        }
    }
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The limit of the queue, in bytes: large segments are written while the next ones are filled.
    most: u64,
    direct: File,
    /// The same file, for writes that `O_DIRECT` rejects.
    cached: File,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic leaves the queue consistent: no code between two changes of it can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    fn execute(&self, task: &Task) -> io::Result<()> {
        let Some(bytes) = task.bytes(task.offset, task.offset + task.length) else {
            return punch(&self.cached, task.offset, task.length);
        };
        match self.direct.write_all_at(bytes, task.offset) {
            // It is not aligned, or the file system needs more than a page's alignment.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                self.cached.write_all_at(bytes, task.offset)
            }
            written => written,
        }
    }

    /// The thread's loop.
    fn execute_all(&self) {
        let mut queue = self.queue();
        loop {
            let Some(task) = queue.tasks.front().map(Arc::clone) else {
                if queue.is_ended {
                    return;
                }
                queue = self.wait(queue);
                continue;
            };
            drop(queue);
            let done = self.execute(&task);
            queue = self.queue();
            if let (Err(error), None) = (done, &queue.failed) {
                queue.failed = Some((error.raw_os_error(), error.to_string()));
            }
            queue.tasks.pop_front();
            queue.waiting -= task.weight();
            if let Some(pages) = Arc::into_inner(task).and_then(|task| task.pages)
                && queue.waiting + queue.spare_bytes() + (pages.capacity() * PAGE) as u64 <= self.most
            {
                queue.spare.push(pages);
            }
            self.changed.notify_all();
        }
    }
}

/// The thread and its queue.
pub struct DirectWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for DirectWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("DirectWriter").finish_non_exhaustive()
    }
}

impl DirectWriter {
    /// Starts a thread for `file`, with a queue of at most `most` bytes, or one write. Fails if the file cannot be
    /// opened with `O_DIRECT`, as on tmpfs.
    pub fn start(file: &File, most: u64) -> io::Result<DirectWriter> {
        let direct = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        DirectWriter::writing(direct, file.try_clone()?, most)
    }

    fn writing(direct: File, cached: File, most: u64) -> io::Result<DirectWriter> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), most, direct, cached });
        let worker = Arc::clone(&shared);
        let thread = Builder::new().name("direct-writer".into()).spawn(move || worker.execute_all())?;
        Ok(DirectWriter { shared, thread: Some(thread) })
    }

    /// Queues a write if it is large or others are queued; waits while the queue is full. False if the caller must
    /// write itself. Fails if an earlier operation failed.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let mut queue = self.shared.queue();
        if bytes.len() < LARGE && queue.tasks.is_empty() {
            return queue.check().map(|()| false);
        }
        while queue.waiting > 0 && queue.waiting + bytes.len() as u64 > self.shared.most {
            queue = self.shared.wait(queue);
        }
        queue.check()?;
        let mut pages = queue.spare.pop().unwrap_or_default();
        while queue.waiting + queue.spare_bytes() + bytes.len() as u64 > self.shared.most && queue.spare.pop().is_some()
        {
        }
        drop(queue);
        pages.resize(bytes.len().div_ceil(PAGE), Page([0; PAGE]));
        pages.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        self.append(Task { offset, length: bytes.len() as u64, pages: Some(pages) });
        Ok(true)
    }

    /// Queues a hole punch.
    pub fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.shared.queue().check()?;
        self.append(Task { offset, length, pages: None });
        Ok(())
    }

    fn append(&self, task: Task) {
        let mut queue = self.shared.queue();
        queue.waiting += task.weight();
        queue.tasks.push_back(Arc::new(task));
        self.shared.changed.notify_all();
    }

    /// Reads queued data, if a single write holds the whole range. If it holds only a part, waits until it is done.
    /// True if the data was read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let end = offset + buffer.len() as u64;
        {
            let queue = self.shared.queue();
            // The last one wins.
            let Some(last) = queue.tasks.iter().rev().find(|task| task.overlaps(offset, end)) else { return false };
            if let Some(bytes) = last.bytes(offset, end) {
                buffer.copy_from_slice(bytes);
                return true;
            }
        }
        self.wait_for(offset, buffer.len() as u64);
        false
    }

    /// Waits until no queued operation overlaps the range.
    pub fn wait_for(&self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let mut queue = self.shared.queue();
        while queue.tasks.iter().any(|task| task.overlaps(offset, end)) {
            queue = self.shared.wait(queue);
        }
    }

    /// Waits until the queue is empty. Fails if any operation failed, and always after that.
    pub fn finish(&self) -> io::Result<()> {
        let mut queue = self.shared.queue();
        while !queue.tasks.is_empty() {
            queue = self.shared.wait(queue);
        }
        queue.check()
    }
}

impl Drop for DirectWriter {
    fn drop(&mut self) {
        self.shared.queue().is_ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; a panic could not be reported here.
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

    /// A file that is removed on drop.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, length: u64) -> (Temporary, File) {
            let path = std::env::temp_dir().join(format!("flashpath-direct-writer-{name}-{}", std::process::id()));
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

    /// The limit of the queue, in bytes.
    const MOST: u64 = 6 << 20;

    /// A queue with `O_DIRECT` if the file system of temporary files supports it.
    fn direct_writer(file: &File) -> DirectWriter {
        let direct = DirectWriter::start(file, MOST);
        direct.or_else(|_| DirectWriter::writing(file.try_clone().unwrap(), file.try_clone().unwrap(), MOST)).unwrap()
    }

    #[test]
    fn what_is_read_is_what_was_written_whether_it_waits_or_not() {
        const PAGES: u64 = 1024;
        let (_temporary, file) = Temporary::new("model", PAGES * PAGE as u64);
        let direct_writer = direct_writer(&file);
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
                    direct_writer.punch(offset, (to - from) as u64).unwrap();
                }
                1..4 => {
                    model[from..to].fill(turn as u8);
                    if !direct_writer.write(offset, &model[from..to]).unwrap() {
                        file.write_all_at(&model[from..to], offset).unwrap();
                    }
                }
                _ => {
                    let mut read = vec![0; to - from];
                    if !direct_writer.read(offset, &mut read) {
                        file.read_exact_at(&mut read, offset).unwrap();
                    }
                    assert!(read == model[from..to], "pages {first} to {} in turn {turn}", first + count);
                }
            }
        }
        direct_writer.finish().unwrap();
        let mut read = vec![0; model.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == model, "nothing waits any more");
    }

    #[test]
    fn what_waits_is_written_before_the_file_is_let_go() {
        let (_temporary, file) = Temporary::new("end", 8 << 20);
        let written = vec![5; 8 << 20];
        let direct_writer = direct_writer(&file);
        written
            .chunks(LARGE)
            .zip((0..).step_by(LARGE))
            .for_each(|(part, at)| assert!(direct_writer.write(at, part).unwrap()));
        drop(direct_writer);
        let mut read = vec![0; 8 << 20];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == written);
    }

    #[test]
    fn a_write_that_failed_fails_all_that_follows() {
        let (temporary, file) = Temporary::new("failure", 8 << 20);
        let unwritable = File::open(&temporary.0).unwrap();
        let direct_writer = DirectWriter::writing(unwritable, file, MOST).unwrap();
        assert!(direct_writer.write(0, &[1; LARGE]).unwrap());
        for _ in 0..2 {
            let error = direct_writer.finish().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()), "{error}");
        }
        assert!(direct_writer.write(0, &[2; LARGE]).is_err() && direct_writer.write(0, &[2; PAGE]).is_err());
        assert!(direct_writer.punch(0, 4096).is_err());
    }
}
