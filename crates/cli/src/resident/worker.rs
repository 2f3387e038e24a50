//! The background worker of a device or volume: reclaim, cleaning, commits of metadata.

use super::cannot;
use crate::failure::Failure;
use crate::print_message;
use flashpath::run::shared::{EventCount, SharedDevice};
use flashpath::time::Time;
use flashpath_fuse::SharedVolume;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The pause after new requests before the next look for work, so that a burst of requests is not disturbed.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause that lets waiting clients go first: the time of a few requests.
const COURTESY: Duration = Duration::from_micros(50);
/// The pause after an error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// A device or volume with background work.
pub trait BackgroundWork: Send + Sync + 'static {
    /// The name in warnings.
    const NAME: &'static str;

    /// Does a bounded piece of work. Returns the time of the next piece; `None` if there is none before the next
    /// request.
    fn work(&self) -> Result<Option<Time>, String>;

    /// Its current time.
    fn now(&self) -> Time;

    /// The count of requests begun so far.
    fn begun(&self) -> &EventCount;

    /// The number of requests waiting for their turn.
    fn wanting(&self) -> u64;
}

impl BackgroundWork for SharedDevice {
    const NAME: &'static str = "device";

    fn work(&self) -> Result<Option<Time>, String> {
        self.work().map_err(|error| error.to_string())
    }

    fn now(&self) -> Time {
        self.now()
    }

    fn begun(&self) -> &EventCount {
        self.begun()
    }

    fn wanting(&self) -> u64 {
        self.wanting()
    }
}

impl BackgroundWork for SharedVolume {
    const NAME: &'static str = "volume";

    fn work(&self) -> Result<Option<Time>, String> {
        self.work().map_err(|error| error.to_string())
    }

    fn now(&self) -> Time {
        self.now()
    }

    fn begun(&self) -> &EventCount {
        self.begun()
    }

    fn wanting(&self) -> u64 {
        self.wanting()
    }
}

/// The worker thread.
pub struct Worker<D> {
    target: Arc<D>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl<D: BackgroundWork> Worker<D> {
    /// Starts the thread. Fails if the system cannot.
    pub fn start(target: Arc<D>) -> Result<Worker<D>, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (works, stopped) = (Arc::clone(&target), Arc::clone(&stop));
        let thread = Builder::new().name("work".into()).spawn(move || work(&*works, &stopped));
        let thread = thread.map_err(|error| cannot("start a thread", error))?;
        Ok(Worker { target, stop, thread })
    }

    /// Stops the thread after its current piece of work.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.target.begun().wake();
        self.thread.thread().unpark();
        // If it panicked, the next request reports it.
        let _ = self.thread.join();
    }
}

/// Calls `serve` with a background worker for `target`, if given.
pub fn run_with_worker<D: BackgroundWork>(
    target: Option<Arc<D>>,
    serve: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let worker = target.map(Worker::start).transpose()?;
    let served = serve();
    if let Some(worker) = worker {
        worker.stop();
    }
    served
}

fn work<D: BackgroundWork>(target: &D, stop: &AtomicBool) {
    let mut last_error = String::new();
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
                if error != last_error {
                    print_message(&format!("warning: the {} cannot work in the background: {error}", D::NAME));
                    last_error = error;
                }
                std::thread::park_timeout(AFTER_ERROR);
            }
        }
    }
}

/// Waits until work is due or more requests than `seen` have begun.
fn wait<D: BackgroundWork>(target: &D, seen: u64, due: Option<Time>, stop: &AtomicBool) {
    let left = || due.map(|due| Duration::from_nanos(due.since_ns(target.now())));
    target.begun().wait(seen, left(), || stop.load(Ordering::SeqCst));
    if target.begun().read() != seen && !stop.load(Ordering::SeqCst) {
        std::thread::park_timeout(left().map_or(PAUSE, |left| left.min(PAUSE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Has no work, and counts the looks for it.
    #[derive(Default)]
    struct Idle {
        requests: EventCount,
        looks: AtomicU64,
    }

    impl BackgroundWork for Idle {
        const NAME: &'static str = "idler";

        fn work(&self) -> Result<Option<Time>, String> {
            self.looks.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        }

        fn now(&self) -> Time {
            Time::ZERO
        }

        fn begun(&self) -> &EventCount {
            &self.requests
        }

        fn wanting(&self) -> u64 {
            0
        }
    }

    #[test]
    fn an_idle_worker_looks_for_work_after_each_request() {
        let idle = Arc::new(Idle::default());
        let served = run_with_worker(Some(Arc::clone(&idle)), || {
            // It looks once at the start, and again after each request.
            for looks in 1..4 {
                while idle.looks.load(Ordering::SeqCst) < looks {
                    std::thread::sleep(Duration::from_millis(1));
                }
                idle.requests.advance();
            }
            Ok(())
        });
        assert!(served.is_ok());
    }
}
