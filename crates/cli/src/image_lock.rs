//! Waits for an image that another program has open: a server that is ending holds it until its last checkpoint, and
//! umount(8) does not wait for that.

use crate::print_message;
use flashpath::device::ImageError;
use flashpath::device::station::StationError;
use flashpath::run::OpenError;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// The time to wait for an image in use.
#[derive(clap::Args, Clone, Copy)]
pub struct Patience {
    /// Wait this long for an image that another program has open; 0 fails at once
    #[arg(long = "wait", value_name = "SECONDS", default_value = "10", value_parser = patience)]
    pub most: Duration,
}

/// Reads the seconds of `--wait`.
pub fn patience(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds from 0 to 86400".to_string())
}

impl Patience {
    /// Calls `open` until the image is free or the time is over. Prints once that it waits.
    pub fn open<T>(self, mut open: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
        let until = Instant::now() + self.most;
        let mut is_announced = false;
        loop {
            let opened = open();
            match opened.as_ref().err().and_then(use_of) {
                Some((image, user)) if Instant::now() < until => {
                    if !std::mem::replace(&mut is_announced, true) {
                        let seconds = self.most.as_secs_f64();
                        print_message(&format!(
                            "{image} is in use: {user}: waiting up to {seconds} s for it (--wait SECONDS)"
                        ));
                    }
                    std::thread::sleep(PAUSE);
                }
                _ => return opened,
            }
        }
    }
}

/// What is in use, and by whom, if that is the error: the image, or a journal that a monitor keeps.
fn use_of(error: &OpenError) -> Option<(&str, &str)> {
    let error = match error {
        OpenError::Station(StationError::Image(error)) => error,
        OpenError::FileSystem { fault, .. } => fault.source.downcast_ref::<ImageError>()?,
        _ => return None,
    };
    match error {
        ImageError::InUse { image, user } => Some((image, user)),
        _ => None,
    }
}
