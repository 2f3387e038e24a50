//! The counts of a memory, apart for each thread.
//!
//! An atomic addition is a locked instruction: it waits until all stores before it have reached the memory, and so would
//! undo what non-temporal stores gain (a block of 4 KiB with one takes 1.6 times as long). A thread that alone changes a
//! count needs none.

use std::sync::atomic::{AtomicU64, Ordering};
use thread_local::ThreadLocal;

/// The counts of a thread, which alone changes them.
#[derive(Debug, Default)]
struct Own {
    stored_bytes: AtomicU64,
    read_bytes: AtomicU64,
    fences: AtomicU64,
}

/// Bytes that were stored and read, and fences.
#[derive(Debug, Default)]
pub struct Counts {
    threads: ThreadLocal<Own>,
}

/// Adds to a count that no other thread changes.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Counts {
    fn own(&self) -> &Own {
        self.threads.get_or_default()
    }

    pub fn stored(&self, bytes: usize) {
        add(&self.own().stored_bytes, bytes as u64);
    }

    pub fn read(&self, bytes: usize) {
        add(&self.own().read_bytes, bytes as u64);
    }

    pub fn fenced(&self) {
        add(&self.own().fences, 1);
    }

    /// The sums over all threads, as events of an account.
    pub fn events(&self) -> Vec<(&'static str, u64)> {
        let sum = |count: fn(&Own) -> &AtomicU64| -> u64 {
            self.threads.iter().map(|own| count(own).load(Ordering::Relaxed)).sum()
        };
        vec![
            ("nvm_stored_bytes", sum(|own| &own.stored_bytes)),
            ("nvm_read_bytes", sum(|own| &own.read_bytes)),
            ("nvm_fences", sum(|own| &own.fences)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_threads_add_up() {
        let counts = Counts::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        counts.stored(64);
                        counts.fenced();
                    }
                    counts.read(7);
                });
            }
        });
        let events = [("nvm_stored_bytes", 128_000), ("nvm_read_bytes", 140), ("nvm_fences", 2000)];
        assert_eq!(counts.events(), events);
    }
}
