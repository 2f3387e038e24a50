//! Lines of ftrace's events: `process-pid [cpu] flags seconds: event: fields`.
//!
//! trace-cmd leaves out the flags; perf writes `process pid`, may leave out the processor, may put a count after the
//! time, and has `subsystem:event`; systrace has the thread group before the processor.

use super::fields::{Reason, decimal, number, take_word};
use std::collections::BTreeMap;

/// The number of names of other events that are kept for messages.
const MOST_NAMES: usize = 12;
const LONGEST_NAME: usize = 64;

/// An event with its time and fields.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub time_ns: u64,
    /// The name without its subsystem.
    pub name: &'a [u8],
    pub fields: &'a [u8],
}

/// The words after which a line is an event.
enum Found<'a> {
    Event(Event<'a>),
    /// An event without a name, such as a called function.
    Unnamed,
    Nothing,
}

/// The time of an event, with the colon after it.
fn time(word: &[u8]) -> Option<u64> {
    let time = word.strip_suffix(b":")?;
    decimal(time, 9).filter(|_| time.contains(&b'.'))
}

/// The name of an event without its subsystem, with the colon after it.
fn name(word: &[u8]) -> Option<&[u8]> {
    let name = word.strip_suffix(b":")?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.');
    let name = name.iter().all(is_name).then_some(name)?;
    name.rsplit(|byte| *byte == b':').next().filter(|name| !name.is_empty())
}

fn find(line: &[u8]) -> Found<'_> {
    let mut rest = line;
    let mut saw_cpu = false;
    loop {
        match take_word(&mut rest) {
            b"" => return Found::Nothing,
            [b'[', cpu @ .., b']'] => saw_cpu |= number(cpu).is_some(),
            word => {
                let Some(time_ns) = time(word) else { continue };
                let mut fields = rest;
                let mut next = take_word(&mut fields);
                if number(next).is_some() {
                    next = take_word(&mut fields);
                }
                match name(next) {
                    Some(name) => return Found::Event(Event { time_ns, name, fields }),
                    None if saw_cpu => return Found::Unnamed,
                    None => {}
                }
            }
        }
    }
}

/// The event of a line; `None` for a valid line without a named one.
#[inline]
pub(super) fn event(line: &[u8]) -> Result<Option<Event<'_>>, Reason> {
    match find(line) {
        Found::Event(event) => Ok(Some(event)),
        Found::Unnamed => Ok(None),
        Found::Nothing if is_around_events(line) || is_of_a_call_chain(line) => Ok(None),
        Found::Nothing => Err("not an ftrace event"),
    }
}

/// True for a line of a tool around the events.
fn is_around_events(line: &[u8]) -> bool {
    let beginnings: [&[u8]; 5] = [b"#", b"cpus=", b"version =", b"CPU", b"TRACE:"];
    beginnings.iter().any(|beginning| line.starts_with(beginning))
}

/// True for a line of perf's call chain: an address, a symbol, and a module in parentheses.
fn is_of_a_call_chain(line: &[u8]) -> bool {
    let mut rest = line;
    let address = take_word(&mut rest);
    line.starts_with(b"\t")
        && address.len() >= 4
        && address.iter().all(u8::is_ascii_hexdigit)
        && rest.trim_ascii_end().ends_with(b")")
}

/// Counts of the events that are not read, by their names.
#[derive(Debug, Default)]
pub(super) struct OtherEvents(BTreeMap<Vec<u8>, u64>);

impl OtherEvents {
    pub fn add(&mut self, name: &[u8]) {
        let name = &name[..name.len().min(LONGEST_NAME)];
        if let Some(count) = self.0.get_mut(name) {
            *count += 1;
        } else if self.0.len() < MOST_NAMES {
            self.0.insert(name.to_vec(), 1);
        }
    }

    /// The number of events of this name.
    pub fn count(&self, name: &[u8]) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// A list of the names and counts.
    pub fn list(&self) -> String {
        if self.0.is_empty() {
            return "no event".to_string();
        }
        let others: Vec<String> =
            self.0.iter().map(|(name, count)| format!("{} ({count})", name.escape_ascii())).collect();
        let more = if others.len() == MOST_NAMES { " and perhaps others" } else { "" };
        format!("{}{more}", others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_the_name_and_the_fields_are_found_in_every_layout() {
        for before in [
            "a-1 [000] .... ",
            "   kworker/0:1-100   (-----) [000] d..1 ",
            "     fio-1234  [000]  ",
            "fio  1234 [000]  ",
            "a b  1234/1234  ",
        ] {
            let line = format!("{before}5.000250: block:some_event: x=1, y");
            let event = event(line.as_bytes()).unwrap().unwrap();
            assert_eq!((event.time_ns, event.name), (5_000_250_000, &b"some_event"[..]), "{line}");
            assert_eq!(event.fields.trim_ascii(), b"x=1, y");
        }
    }

    #[test]
    fn names_of_other_events_are_bounded() {
        let mut others = OtherEvents::default();
        assert_eq!(others.list(), "no event");
        for number in 0..100 {
            others.add(format!("event_{:02}", number % 20).as_bytes());
        }
        assert_eq!((others.count(b"event_03"), others.count(b"event_19")), (5, 0));
        assert!(others.list().ends_with("event_11 (5) and perhaps others"), "{}", others.list());
    }
}
