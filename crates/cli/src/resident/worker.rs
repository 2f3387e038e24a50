//! The background threads of a device or volume: reclaim, cleaning, commits of metadata, checkpoints.

use super::cannot;
use crate::failure::Failure;
use crate::print_message;
use flashpath::run::shared::{Served, Shared};
use flashpath::time::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The pause after new requests before the next look for work, so that a burst of requests is not disturbed.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause that lets waiting clients go first: the time of a few requests.
const COURTESY: Duration = Duration::from_micros(50);
/// The pause after an error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The worker threads: as many as can work at the same time.
pub struct Workers<T: Served> {
    target: Arc<Shared<T>>,
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Common {
    stop: AtomicBool,
    /// The last error that a warning was printed of, by any of the threads.
    last_error: Mutex<String>,
}

impl<T: Served> Workers<T> {
    /// Starts the threads. Fails if the system cannot.
    pub fn start(target: Arc<Shared<T>>) -> Result<Workers<T>, Failure> {
        let mut workers = Workers { target, common: Arc::default(), threads: Vec::new() };
        for _ in 0..workers.target.workers() {
            let (target, common) = (Arc::clone(&workers.target), Arc::clone(&workers.common));
            let thread = Builder::new().name("work".into()).spawn(move || work(&*target, &common));
            workers.threads.push(thread.map_err(|error| cannot("start a thread", error))?);
        }
        Ok(workers)
    }

    /// Stops the threads after their current pieces of work.
    pub fn stop(self) {}
}

impl<T: Served> Drop for Workers<T> {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::SeqCst);
        self.target.begun().wake();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // If it panicked, the next request reports it.
            let _ = thread.join();
        }
    }
}

/// Calls `serve` with background threads for `target`, if given.
pub fn run_with_workers<T: Served>(
    target: Option<Arc<Shared<T>>>,
    serve: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _workers = target.map(Workers::start).transpose()?;
    serve()
}

impl Common {
    fn warn(&self, name: &str, error: String) {
        let mut last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        if error != *last {
            print_message(&format!("warning: the {name} cannot work in the background: {error}"));
            *last = error;
        }
    }
}

fn work<T: Served>(target: &Shared<T>, common: &Common) {
    let stop = &common.stop;
    while !stop.load(Ordering::SeqCst) {
        let seen = target.begun().read();
        match target.work() {
            Ok(Some(next)) => {
                if next > target.now() {
                    wait(target, seen, Some(next), stop);
                } else if target.wanting() > 0 {
                    std::thread::sleep(COURTESY);
                }
            }
            Ok(None) => wait(target, seen, None, stop),
            Err(error) => {
                common.warn(T::NAME, error.to_string());
                std::thread::park_timeout(AFTER_ERROR);
            }
        }
    }
}

/// Waits until work is due or more requests than `seen` have begun.
fn wait<T: Served>(target: &Shared<T>, seen: u64, due: Option<Time>, stop: &AtomicBool) {
    let left = || due.map(|due| Duration::from_nanos(due.since_ns(target.now())));
    target.begun().wait(seen, left(), || stop.load(Ordering::SeqCst));
    if target.begun().read() != seen && !stop.load(Ordering::SeqCst) {
        std::thread::park_timeout(left().map_or(PAUSE, |left| left.min(PAUSE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::run::shared::{Broken, Sharing};
    use std::sync::atomic::AtomicU64;

    /// Has no work, and counts the looks for it.
    #[derive(Default)]
    struct Idle {
        looks: Arc<AtomicU64>,
    }

    #[derive(Debug)]
    struct Never;

    impl std::fmt::Display for Never {
        fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(to, "never")
        }
    }

    impl From<Broken> for Never {
        fn from(_: Broken) -> Never {
            Never
        }
    }

    impl Served for Idle {
        const NAME: &'static str = "idler";
        type Error = Never;

        fn work(&self, _: Time) -> Result<Option<Time>, Never> {
            self.looks.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        }
    }

    #[test]
    fn an_idle_worker_wakes_up_for_a_request() {
        let looked = Arc::new(AtomicU64::new(0));
        let idle = Idle { looks: Arc::clone(&looked) };
        let idle = Arc::new(Shared::over(idle, Sharing::default(), Box::new(|| Time::ZERO)));
        let served = run_with_workers(Some(Arc::clone(&idle)), || {
            // It has looked once before anything was asked for: what is asked for then lets it look again.
            for looks in 1..4 {
                while looked.load(Ordering::SeqCst) < looks {
                    std::thread::sleep(Duration::from_millis(1));
                }
                idle.begun().advance();
            }
            Ok(())
        });
        assert!(served.is_ok());
    }
}
