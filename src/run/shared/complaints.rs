//! Messages about failures: each one once, and a bounded number.

use crate::time::Time;
use std::collections::BTreeSet;

/// The receiver of a line for the user.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// The maximum number of different lines remembered; a damaged volume could have any number.
const MOST_REMEMBERED: usize = 1000;
/// The maximum number of lines printed within [`WINDOW_NS`].
const MOST_AT_ONCE: usize = 10;
const WINDOW_NS: u64 = 10_000_000_000;

/// The messages so far.
pub struct Complaints {
    tell: Tell,
    told: BTreeSet<String>,
    window_began: Time,
    in_window: usize,
    /// The lines suppressed since the last printed one.
    held_back: u64,
}

impl Complaints {
    /// No messages yet.
    pub fn new(tell: Tell) -> Complaints {
        Complaints { tell, told: BTreeSet::new(), window_began: Time::ZERO, in_window: 0, held_back: 0 }
    }

    /// Prints a message if it is new.
    pub fn add(&mut self, line: &str, now: Time) {
        if self.told.contains(line) {
            return;
        }
        if now.since_ns(self.window_began) >= WINDOW_NS {
            (self.window_began, self.in_window) = (now, 0);
        }
        if self.in_window >= MOST_AT_ONCE || self.told.len() >= MOST_REMEMBERED {
            self.held_back += 1;
            return;
        }
        self.in_window += 1;
        self.told.insert(line.to_string());
        let held_back = std::mem::take(&mut self.held_back);
        if held_back > 0 {
            (self.tell)(&format!("warning: {held_back} more failures were not told"));
        }
        (self.tell)(line);
    }

    /// Prints the number of suppressed lines.
    pub fn end(&mut self) {
        let held_back = std::mem::take(&mut self.held_back);
        if held_back > 0 {
            (self.tell)(&format!("warning: {held_back} more failures were not told"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_failure_is_told_once_and_a_flood_of_them_is_counted() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let takes = Arc::clone(&lines);
        let mut complaints = Complaints::new(Box::new(move |line| takes.lock().unwrap().push(line.to_string())));
        let now = complaints.window_began;
        for number in 0..15 {
            complaints.add(&format!("inode {}", number), now);
            complaints.add("inode 0", now);
        }
        assert_eq!(lines.lock().unwrap().len(), 10);
        complaints.add("inode 99", now + WINDOW_NS);
        assert_eq!(lines.lock().unwrap()[10..], ["warning: 5 more failures were not told", "inode 99"]);
        complaints.end();
        assert_eq!(lines.lock().unwrap().len(), 12);
    }
}
