//! The thread in which a device or a volume does what it does by itself: reclaim, cleaning, commits of metadata.

use super::{cannot, tell};
use crate::failure::Failure;
use flashpath::run::shared::SharedDevice;
use flashpath::time::Time;
use flashpath_fuse::SharedVolume;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often it looks whether something happened.
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
    fn begun(&self) -> u64;

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

    fn begun(&self) -> u64 {
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

    fn begun(&self) -> u64 {
        self.begun()
    }

    fn wanting(&self) -> u64 {
        self.wanting()
    }
}

/// The thread that works in the background.
pub struct Worker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts it. Fails if the system starts no thread.
    pub fn start<D: Diligent>(diligent: Arc<D>) -> Result<Worker, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new().name("work".into()).spawn(move || work(&*diligent, &stopped));
        let thread = thread.map_err(|error| cannot("start a thread", error))?;
        Ok(Worker { stop, thread })
    }

    /// Lets it finish its piece, and waits for its end.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
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
        let seen = diligent.begun();
        match diligent.work() {
            Ok(Some(next)) => {
                let left = next.since_ns(diligent.now());
                if left > 0 {
                    std::thread::park_timeout(Duration::from_nanos(left).min(PAUSE));
                } else if diligent.wanting() > 0 {
                    std::thread::sleep(COURTESY);
                }
            }
            Ok(None) => {
                while diligent.begun() == seen && !stop.load(Ordering::SeqCst) {
                    std::thread::park_timeout(PAUSE);
                }
            }
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
