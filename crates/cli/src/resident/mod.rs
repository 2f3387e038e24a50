//! Common parts of `serve` and `mount`: processes that run until a signal, and end cleanly.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the clocks, and the words of what failed |
//! | `stay` | how they begin, say that they are ready, and wait |
//! | `signals` | who tells them to end |
//! | `background` | the same command in a process of its own |
//! | `log` | where the lines go that nobody is there to read |
//! | `farewell` | how a mount ended, for whoever waits for it |
//! | `worker` | the background worker |
//! | `watch` | the thread that tells figures and failures |
//! | `heard` | what the stations of a path warn of, each told once |
//! | `leave` | unmounting, in use or not |

pub mod background;
pub mod exit_notifier;
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
    let began = Instant::now();
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
