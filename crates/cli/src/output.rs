//! What the program says: results on standard output, all else on standard error. Nothing else in it writes there, so that
//! a stream that is closed or full is met in one place.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// True if standard error is a log.
static IS_LOG: AtomicBool = AtomicBool::new(false);

/// Writes results to standard output. A reader that has gone away, such as `head`, is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::write("standard output", error)),
        _ => Ok(()),
    }
}

/// A line on standard error. Whoever closed that does not want to know, and work goes on.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}{line}", prefix());
}

/// Says on standard error why the program ends, and answers the exit code.
pub fn report(failure: Failure) -> u8 {
    match &failure {
        Failure::Input(report) | Failure::Failed(report) if is_log() => tell(&format!("error: {report}")),
        Failure::Input(report) | Failure::Failed(report) => tell(&format!("{report:?}")),
        Failure::Quiet(_) => {}
    }
    failure.code()
}

/// From now on each line on standard error begins with its time: it is a log.
pub fn tells_times() {
    IS_LOG.store(true, Ordering::SeqCst);
}

/// True if standard error is a log, and each line of it begins with its time.
fn is_log() -> bool {
    IS_LOG.load(Ordering::SeqCst)
}

/// What a line begins with: nothing on a terminal, the time in a log.
fn prefix() -> String {
    match is_log() {
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
