//! The times at which a plane or a channel is taken, and the purpose.

use crate::device::wait_log::{Purpose, Waits, part_of_hold};
use crate::time::Time;
use std::collections::VecDeque;

/// The times that a calendar remembers. Older gaps are not used any more.
const MOST: usize = 256;

/// The times at which a resource is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Calendar {
    /// In order, without an overlap.
    taken: VecDeque<Taken>,
    /// The end of what was forgotten.
    floor: Time,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    from: Time,
    until: Time,
    purpose: Purpose,
}

/// The instant after all gaps.
const NEVER: Time = Time(u64::MAX);

impl Calendar {
    /// The gaps from `at` on, in order: when each begins, not before `at`, and when it ends.
    pub fn gaps(&self, at: Time) -> impl Iterator<Item = (Time, Time)> + '_ {
        // Most ask for the time behind all that is taken.
        let behind = self.taken.iter().rev().take_while(|taken| taken.until > at).count();
        let first = self.taken.len() - behind;
        let at = at.max(self.floor);
        let begins = std::iter::once(at).chain(self.taken.range(first..).map(|taken| taken.until));
        let ends = self.taken.range(first..).map(|taken| taken.from).chain(std::iter::once(NEVER));
        begins.zip(ends).filter(|(begin, end)| begin < end)
    }

    /// The first instant from `at` on at which the resource is free for so long.
    pub fn first_free(&self, at: Time, length_ns: u64) -> Time {
        let mut gaps = self.gaps(at);
        gaps.find(|(begin, end)| end.since_ns(*begin) >= length_ns).expect("the last gap has no end").0
    }

    /// The end of all that is taken.
    pub fn end(&self) -> Time {
        self.taken.back().map_or(self.floor, |last| last.until)
    }

    /// True if nothing is taken then.
    pub fn is_free(&self, from: Time, until: Time) -> bool {
        from >= self.floor && self.taken.iter().rev().take_while(|taken| taken.until > from).all(|it| it.from >= until)
    }

    /// Takes a time, which must be free.
    pub fn take(&mut self, from: Time, until: Time, purpose: Purpose) {
        if from == until {
            return;
        }
        debug_assert!(from < until && self.floor <= from, "{from:?} to {until:?} is a time that can be taken");
        let place = self.taken.len() - self.taken.iter().rev().take_while(|taken| taken.from >= until).count();
        let before = place.checked_sub(1).map(|before| &mut self.taken[before]);
        debug_assert!(before.as_ref().is_none_or(|before| before.until <= from), "{from:?} to {until:?} is free");
        match before {
            Some(before) if before.until == from && before.purpose == purpose => before.until = until,
            _ => self.taken.insert(place, Taken { from, until, purpose }),
        }
        if self.taken.len() > MOST {
            self.floor = self.taken.pop_front().map_or(self.floor, |oldest| oldest.until);
        }
    }

    /// Splits a wait for the resource by the purposes for which it was taken. `of_host` is the part for requests, and that
    /// in which it was free, but not for long enough.
    pub fn wait(&self, from: Time, until: Time, of_host: fn(&mut Waits) -> &mut u64) -> Waits {
        let mut waits = Waits::default();
        for taken in self.taken.iter().rev().take_while(|taken| taken.until > from) {
            let ns = taken.until.min(until).since_ns(taken.from.max(from));
            *part_of_hold(&mut waits, taken.purpose, of_host) += ns;
        }
        let rest = until.since_ns(from) - waits.total_ns();
        *of_host(&mut waits) += rest;
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_taken_if_it_is_long_enough() {
        let mut calendar = Calendar::default();
        calendar.take(Time(100), Time(200), Purpose::Host);
        calendar.take(Time(250), Time(300), Purpose::Host);
        assert_eq!(calendar.first_free(Time(0), 100), Time(0));
        assert_eq!(calendar.first_free(Time(1), 100), Time(300));
        assert_eq!(calendar.first_free(Time(120), 50), Time(200));
        calendar.take(Time(200), Time(250), Purpose::Host);
        assert_eq!(calendar.first_free(Time(120), 1), Time(300));
        assert_eq!(calendar.first_free(Time(400), 1), Time(400));
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut calendar = Calendar::default();
        for number in 0..2 * MOST as u64 {
            calendar.take(Time(number * 20), Time(number * 20 + 10), Purpose::Host);
        }
        assert_eq!(calendar.first_free(Time(0), 10), Time((MOST as u64 - 1) * 20 + 10));
    }

    #[test]
    fn a_wait_is_split_by_what_the_resource_was_taken_for() {
        let mut calendar = Calendar::default();
        calendar.take(Time(10), Time(30), Purpose::Collection);
        calendar.take(Time(30), Time(35), Purpose::Mapping);
        calendar.take(Time(38), Time(40), Purpose::Host);
        let waits = calendar.wait(Time(12), Time(40), |waits| &mut waits.die_ns);
        assert_eq!(waits, Waits { die_ns: 5, collection_ns: 18, mapping_ns: 5, ..Waits::default() });
    }
}
