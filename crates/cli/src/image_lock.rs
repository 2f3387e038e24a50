//! Waiting for an image that another program has open: a server that is just ending holds it until its last checkpoint is
//! taken, and umount(8) does not wait for that.

use crate::tell;
use flashpath::device::ImageError;
use flashpath::run::OpenError;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// How long an image in use is waited for.
#[derive(clap::Args, Clone, Copy)]
pub struct Patience {
    /// Wait so long for an image that another program has open; 0 refuses it at once
    #[arg(long = "wait", value_name = "SECONDS", default_value = "10", value_parser = patience)]
    pub most: Duration,
}

/// Reads the seconds of `--wait`.
pub fn patience(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write a number of seconds from 0 to 86400".to_string())
}

impl Patience {
    /// Opens what may be in use: tries again until it is free, or patience ends. Says so once.
    pub fn open<T>(self, mut open: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
        let until = Instant::now() + self.most;
        let mut is_told = false;
        loop {
            match open() {
                Err(OpenError::Image(ImageError::InUse { image })) if Instant::now() < until => {
                    if !std::mem::replace(&mut is_told, true) {
                        let seconds = self.most.as_secs_f64();
                        tell(&format!(
                            "{image} is in use: waiting up to {seconds} s until it is free (--wait SECONDS)"
                        ));
                    }
                    std::thread::sleep(PAUSE);
                }
                ended => return ended,
            }
        }
    }
}
