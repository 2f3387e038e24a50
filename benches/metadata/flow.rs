//! The flow, on any file system.

use flashpath::random::Random;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub const DIRECTORIES: u64 = 20;
pub const FILES_OF_THREAD: u64 = 200;
pub const APPENDED: usize = 16 << 10;

/// A name in one of the directories.
#[derive(Clone, Copy)]
pub struct Name {
    pub directory: u64,
    pub number: u64,
}

impl Name {
    pub fn text(self) -> String {
        format!("mail-{:08}", self.number)
    }
}

/// A file system under the flow.
pub trait Files: Sync {
    fn remove(&self, name: Name);
    /// Makes a file, and appends to it.
    fn make(&self, name: Name, bytes: &[u8]);
    /// Opens a file and reads all of it; appends to it then, if there are bytes to append.
    fn read(&self, name: Name, appended: &[u8], buffer: &mut [u8]);
    /// Background work, until it says so.
    fn work(&self);
}

/// Runs the flow, and returns operations a second: four in a loop.
pub fn run(files: &dyn Files, threads: u64, time: Duration, seed: u64) -> f64 {
    let (done, running) = (AtomicU64::new(0), AtomicU64::new(threads));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (done, running) = (&done, &running);
            scope.spawn(move || {
                let count = loops(files, thread, time, seed);
                done.fetch_add(4 * count, Ordering::Relaxed);
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) > 0 {
                files.work();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
    done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

fn loops(files: &dyn Files, thread: u64, time: Duration, seed: u64) -> u64 {
    let mut random = Random::new(seed * 100 + thread, "flow");
    let name = |number: u64| Name { directory: number % DIRECTORIES, number: thread * FILES_OF_THREAD + number };
    let mut pick = || name(random.below(FILES_OF_THREAD));
    let (bytes, mut buffer) = (vec![7; APPENDED], vec![0; 1 << 20]);
    (0..FILES_OF_THREAD).for_each(|number| files.make(name(number), &bytes));
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < time {
        let gone = pick();
        files.remove(gone);
        files.make(gone, &bytes);
        files.read(pick(), &bytes, &mut buffer);
        files.read(pick(), &[], &mut buffer);
        count += 1;
    }
    count
}
