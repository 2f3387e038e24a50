//! What the program says: results on standard output, all else on standard error. Nothing else in it writes there, so that
//! a stream that is closed or full is met in one place.

use crate::failure::Failure;
use crate::resident::log;
use std::io::{ErrorKind, Write};

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
    let _ = writeln!(std::io::stderr(), "{}{line}", log::prefix());
}
