//! `--log`: what is told goes into a file, a line at a time, each with its time (UTC).

use super::cannot;
use crate::failure::Failure;
use flashpath::report::WriteError;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether standard error is a log.
static IS_LOG: AtomicBool = AtomicBool::new(false);

/// Opens a log, behind whose end lines will be added.
pub fn open(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| WriteError::new(path, error).into())
}

/// From now on what goes to standard error goes there.
pub fn begin(log: &File) -> Result<(), Failure> {
    nix::unistd::dup2_stderr(log).map_err(|error| cannot("write the log", error))?;
    IS_LOG.store(true, Ordering::SeqCst);
    Ok(())
}

/// True if standard error is a log, and each line of it begins with its time.
pub fn is_begun() -> bool {
    IS_LOG.load(Ordering::SeqCst)
}

/// What a line begins with: nothing on a terminal, the time in a log.
pub fn prefix() -> String {
    match is_begun() {
        true => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{} ", date_and_time(since.as_secs()))
        }
        false => String::new(),
    }
}

/// Seconds since 1970 as `2026-11-22T04:28:00Z`.
fn date_and_time(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_and_an_hour() {
        assert_eq!(date_and_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_and_time(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date_and_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_and_time(1_795_321_680), "2026-11-22T04:28:00Z");
        assert_eq!(date_and_time(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
