//! The message of a test that cannot run on this machine. Included by path.
//!
//! A test that returns early counts as passed. So that none does silently, `make test` names a file in `SKIPPED_TESTS`,
//! and prints its content at the end.

use std::io::Write;

/// Reports the current test as skipped, with the reason.
pub fn skipped(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    println!("skipped: {reason}");
    if let Ok(name) = std::env::var("SKIPPED_TESTS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(name);
        let line = format!("skipped: {test}: {reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of skipped tests is writable");
    }
}
