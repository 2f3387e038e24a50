//! The counts of a memory. Threads that store at the same time count in different lines, as a shared line would cost each
//! of them more than its store.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const PARTS: usize = 16;

/// The counts of some threads, in a line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Part {
    stored_bytes: AtomicU64,
    read_bytes: AtomicU64,
    fences: AtomicU64,
}

/// Bytes that were stored and read, and fences.
#[derive(Debug, Default)]
pub struct Counts {
    parts: [Part; PARTS],
}

/// The part in which this thread counts.
fn own_part() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PART: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PARTS;
    }
    PART.with(|part| *part)
}

impl Counts {
    pub fn stored(&self, bytes: usize) {
        self.parts[own_part()].stored_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn read(&self, bytes: usize) {
        self.parts[own_part()].read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn fenced(&self) {
        self.parts[own_part()].fences.fetch_add(1, Ordering::Relaxed);
    }

    /// The sums over all threads, as events of an account.
    pub fn events(&self) -> Vec<(&'static str, u64)> {
        let sum = |count: fn(&Part) -> &AtomicU64| -> u64 {
            self.parts.iter().map(|part| count(part).load(Ordering::Relaxed)).sum()
        };
        vec![
            ("nvm_stored_bytes", sum(|part| &part.stored_bytes)),
            ("nvm_read_bytes", sum(|part| &part.read_bytes)),
            ("nvm_fences", sum(|part| &part.fences)),
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
