//! What a commit to another process cannot do without, alone: a message there and back, and a call that protects pages.

use super::{BLOCK, median};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::os::unix::net::UnixDatagram;
use std::time::Instant;

/// The memory whose pages are protected, far more than the caches hold.
const PAGES: usize = 1 << 14;

/// Nanoseconds of a message to another thread on the same processor, and of its answer: the median of `rounds`.
pub fn round_trip(rounds: usize) -> f64 {
    let (own, other) = UnixDatagram::pair().expect("a pair of sockets");
    let all = sched_getaffinity(None).expect("the processors of this thread");
    let mut only = CpuSet::new();
    only.set(sched_getcpu());
    sched_setaffinity(None, &only).expect("the processor is there");
    // A thread begins on the processors of the one that makes it.
    let answering = std::thread::spawn(move || {
        let mut message = [0; 16];
        while other.recv(&mut message).expect("a message") > 0 {
            other.send(&message[..1]).expect("it is answered");
        }
    });
    let mut answer = [0; 16];
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            own.send(&[1; 16]).expect("a message");
            own.recv(&mut answer).expect("an answer");
            began.elapsed().as_nanos() as f64
        })
        .collect();
    own.send(&[]).expect("a last message");
    answering.join().expect("it answers");
    sched_setaffinity(None, &all).expect("they were there");
    median(&mut times)
}

/// Pages of memory of this process.
pub struct Pages {
    start: *mut u8,
    next: usize,
}

impl Pages {
    pub fn new() -> Pages {
        #[allow(unsafe_code, reason = "memory whose protection changes")]
        // SAFETY: the kernel selects an address at which nothing is mapped.
        let start = unsafe {
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
            mmap_anonymous(std::ptr::null_mut(), PAGES * BLOCK, protection, flags)
        };
        Pages { start: start.expect("memory").cast(), next: 0 }
    }

    /// Nanoseconds of one call that makes so many pages read-only that have just been written.
    pub fn protect(&mut self, pages: usize) -> f64 {
        if self.next + pages > PAGES {
            self.next = 0;
        }
        let start = self.start.wrapping_add(self.next * BLOCK);
        self.next += pages;
        #[allow(unsafe_code, reason = "writes to memory of this process, whose protection changes")]
        // SAFETY: the pages are mapped, can be written here, and only this method uses them.
        unsafe {
            let set = |flags| mprotect(start.cast(), pages * BLOCK, flags).expect("its protection changes");
            std::slice::from_raw_parts_mut(start, pages * BLOCK).fill(pages as u8);
            let began = Instant::now();
            set(MprotectFlags::READ);
            let ns = began.elapsed().as_nanos() as f64;
            set(MprotectFlags::READ | MprotectFlags::WRITE);
            ns
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        #[allow(unsafe_code, reason = "the end of a mapping")]
        // SAFETY: it was mapped by `new`, and nothing refers to it.
        unsafe { munmap(self.start.cast(), PAGES * BLOCK) }.expect("it was mapped");
    }
}
