//! The program's output: results on standard output, all else on standard error. No other module writes there, so that
//! closed and full streams are handled in one place.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// True if standard error is a log file.
static IS_LOG: AtomicBool = AtomicBool::new(false);

/// Writes results to standard output. A closed pipe, as of `head`, is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::write("standard output", error)),
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Errors are ignored: a closed stream does not stop the work.
pub fn print_message(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}{line}", prefix());
}

/// Prints an error on standard error and returns the exit code.
pub fn report(failure: Failure) -> u8 {
    match &failure {
        Failure::Input(report) | Failure::Failed(report) if is_log() => print_message(&format!("error: {report}")),
        Failure::Input(report) | Failure::Failed(report) => print_message(&format!("{report:?}")),
        Failure::Quiet(_) => {}
    }
    failure.code()
}

/// True if the terminal cannot move its cursor or show colours (`TERM=dumb`).
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| kind == "dumb")
}

/// Treats standard error as a log from now on: each line begins with its time.
pub fn begin_log() {
    IS_LOG.store(true, Ordering::SeqCst);
}

/// True if standard error is a log file, where each line begins with its time.
fn is_log() -> bool {
    IS_LOG.load(Ordering::SeqCst)
}

/// The prefix of a line: nothing on a terminal, the time in a log.
fn prefix() -> String {
    match is_log() {
        true => format!("{} ", now()),
        false => String::new(),
    }
}

/// The day in UTC: `2026-11-22`.
pub fn today() -> String {
    now().chars().take_while(|letter| *letter != 'T').collect()
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_and_time(since.as_secs())
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
    fn seconds_since_1970_are_formatted_as_utc() {
        assert_eq!(date_and_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_and_time(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date_and_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_and_time(1_795_321_680), "2026-11-22T04:28:00Z");
        assert_eq!(date_and_time(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
