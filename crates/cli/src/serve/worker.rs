//! The thread in which a served device does what it does by itself: reclaim, commits of metadata.

use flashpath::run::shared::SharedDevice;
use std::io;
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

/// The thread that works in the background.
pub struct Worker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts it. Fails if the system starts no thread.
    pub fn start(device: Arc<SharedDevice>) -> io::Result<Worker> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new().name("work".into()).spawn(move || work(&device, &stopped))?;
        Ok(Worker { stop, thread })
    }

    /// Lets it finish its piece, and waits for its end.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        // If it panicked, the device says so at the next request.
        let _ = self.thread.join();
    }
}

fn work(device: &SharedDevice, stop: &AtomicBool) {
    let mut last_error = String::new();
    while !stop.load(Ordering::SeqCst) {
        let seen = device.begun();
        match device.work() {
            Ok(Some(next)) => {
                let left = next.since_ns(device.now());
                if left > 0 {
                    std::thread::park_timeout(Duration::from_nanos(left).min(PAUSE));
                } else if device.wanting() > 0 {
                    std::thread::sleep(COURTESY);
                }
            }
            Ok(None) => {
                while device.begun() == seen && !stop.load(Ordering::SeqCst) {
                    std::thread::park_timeout(PAUSE);
                }
            }
            Err(error) => {
                let said = error.to_string();
                if said != last_error {
                    super::tell(&format!("warning: the device cannot work in the background: {said}"));
                    last_error = said;
                }
                std::thread::park_timeout(AFTER_ERROR);
            }
        }
    }
}
