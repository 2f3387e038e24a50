//! The thread in which a device or a volume does what it does by itself: reclaim, cleaning, commits of metadata.

use super::cannot;
use crate::failure::Failure;
use crate::tell;
use flashpath::run::shared::{EventCount, SharedDevice};
use flashpath::time::Time;
use flashpath_fuse::SharedVolume;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long it lets requests be that come one after the other, before it looks what they have left to do.
const PAUSE: Duration = Duration::from_millis(50);
/// How long clients that want a turn are let go first: some requests' time.
const COURTESY: Duration = Duration::from_micros(50);
/// How long it waits after an error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// What does something by itself, and shares its lock with those who ask it for something.
pub trait Diligent: Send + Sync + 'static {
    /// What it is, for a warning.
    const NAME: &'static str;

    /// Does a bounded piece. Answers when there will be more; `None`: not before something was asked for.
    fn work(&self) -> Result<Option<Time>, String>;

    /// Its own time.
    fn now(&self) -> Time;

    /// Requests that have begun so far.
    fn begun(&self) -> &EventCount;

    /// Requests that want a turn now.
    fn wanting(&self) -> u64;
}

impl Diligent for SharedDevice {
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

impl Diligent for SharedVolume {
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

/// The thread that works in the background.
pub struct Worker<D> {
    diligent: Arc<D>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl<D: Diligent> Worker<D> {
    /// Starts it. Fails if the system starts no thread.
    pub fn start(diligent: Arc<D>) -> Result<Worker<D>, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (works, stopped) = (Arc::clone(&diligent), Arc::clone(&stop));
        let thread = Builder::new().name("work".into()).spawn(move || work(&*works, &stopped));
        let thread = thread.map_err(|error| cannot("start a thread", error))?;
        Ok(Worker { diligent, stop, thread })
    }

    /// Lets it finish its piece, and waits for its end.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.diligent.begun().wake();
        self.thread.thread().unpark();
        // If it panicked, the next request says so.
        let _ = self.thread.join();
    }
}

/// Serves, and beside it lets work what does something by itself, if there is such. Ends with the serving.
pub fn beside<D: Diligent>(
    diligent: Option<Arc<D>>,
    serve: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let worker = diligent.map(Worker::start).transpose()?;
    let served = serve();
    if let Some(worker) = worker {
        worker.stop();
    }
    served
}

fn work<D: Diligent>(diligent: &D, stop: &AtomicBool) {
    let mut last_error = String::new();
    while !stop.load(Ordering::SeqCst) {
        let seen = diligent.begun().read();
        match diligent.work() {
            Ok(Some(next)) => {
                if next > diligent.now() {
                    rest(diligent, seen, Some(next), stop);
                } else if diligent.wanting() > 0 {
                    std::thread::sleep(COURTESY);
                }
            }
            Ok(None) => rest(diligent, seen, None, stop),
            Err(error) => {
                if error != last_error {
                    tell(&format!("warning: the {} cannot work in the background: {error}", D::NAME));
                    last_error = error;
                }
                std::thread::park_timeout(AFTER_ERROR);
            }
        }
    }
}

/// Waits until something is due, or more was asked for than was `seen`.
fn rest<D: Diligent>(diligent: &D, seen: u64, due: Option<Time>, stop: &AtomicBool) {
    let left = || due.map(|due| Duration::from_nanos(due.since_ns(diligent.now())));
    diligent.begun().wait(seen, left(), || stop.load(Ordering::SeqCst));
    if diligent.begun().read() != seen && !stop.load(Ordering::SeqCst) {
        std::thread::park_timeout(left().map_or(PAUSE, |left| left.min(PAUSE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Does nothing unless asked to, and counts how often it looks whether there is something to do.
    #[derive(Default)]
    struct Idle {
        requests: EventCount,
        looks: AtomicU64,
    }

    impl Diligent for Idle {
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
    fn whatever_has_nothing_to_do_is_looked_at_when_something_was_asked_for() {
        let idle = Arc::new(Idle::default());
        let served = beside(Some(Arc::clone(&idle)), || {
            for requests in 2..4 {
                idle.requests.advance();
                while idle.looks.load(Ordering::SeqCst) < requests {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        });
        assert!(served.is_ok());
    }
}
