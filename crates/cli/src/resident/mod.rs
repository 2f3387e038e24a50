//! Common parts of `serve` and `mount`: processes that run until a signal, and end cleanly.
//!
//! | file | role |
//! |---|---|
//! | `mod` | the clocks, and errors of the system in words |
//! | `process` | begins in the foreground or background, reports readiness, waits for the end |
//! | `signals` | requests to end the program |
//! | `background` | `--background`: the same command in a child process |
//! | `log` | `--log`: messages go to a file |
//! | `exit_notifier` | sends the exit status of a mount's server to `flashpath umount` |
//! | `faults` | notices of the servers of clients, and failures that end the program |
//! | `worker` | the background worker of a device or volume |
//! | `watch` | the thread that prints figures and failures |
//! | `warnings` | the stations' warnings, each printed once |
//! | `unmount` | unmounts, and waits while the mount is in use |

pub mod background;
pub mod exit_notifier;
pub mod faults;
pub mod log;
pub mod process;
pub mod signals;
pub mod unmount;
pub mod warnings;
pub mod watch;
pub mod worker;

use crate::failure::Failure;
use flashpath::run::shared::Clock;
use flashpath::time::Time;
use std::fmt::Display;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since now.
pub fn clock() -> Clock {
    clock_since(Instant::now())
}

/// Time since then: the same for all that is opened together.
pub fn clock_since(began: Instant) -> Clock {
    Box::new(move || Time(began.elapsed().as_nanos() as u64))
}

/// Nanoseconds since 1970.
pub fn wall_time_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The error that an operation failed.
pub fn cannot(doing: &str, error: impl Display) -> Failure {
    Failure::failed(format!("cannot {doing}: {error}"))
}

/// Reads the interval of `--stats`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds from 0.1 to 86400".to_string())
}
