//! What a test says that cannot run on this machine. Included by path where it is needed.
//!
//! A test that returns early counts as passed. So that none does in silence, `make test` names a file in `SKIPPED_TESTS`, and
//! shows at its end what was put there.

use std::io::Write;

/// The current test is skipped, for this reason.
pub fn skipped(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    println!("skipped: {reason}");
    if let Ok(name) = std::env::var("SKIPPED_TESTS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(name);
        let line = format!("skipped: {test}: {reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("what was skipped can be told");
    }
}
