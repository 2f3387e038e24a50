//! The completions of a backend that answers each request with the time at which it is done.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The watched requests that are not told.
#[derive(Debug, Default)]
pub(super) struct Answered(BinaryHeap<Reverse<(Time, u64)>>);

impl Answered {
    /// Request `number` is done at `at`.
    pub fn watch(&mut self, number: u64, at: Time) {
        self.0.push(Reverse((at, number)));
    }

    /// The next request that is done, and when, if that is not after `until`.
    pub fn next_done(&mut self, until: Time) -> Option<(u64, Time)> {
        let &Reverse((at, number)) = self.0.peek()?;
        (at <= until).then(|| {
            self.0.pop();
            (number, at)
        })
    }
}

/// The methods of a [`Backend`](super::Backend) that answers with times and has them in its field `answered`.
macro_rules! answers_with_times {
    () => {
        type Moment = Time;

        fn issue(&mut self, at: Time) -> Time {
            at
        }

        fn later(&mut self, sum: Time, other: Time) -> Time {
            sum.max(other)
        }

        fn watch(&mut self, number: u64, moment: Time) {
            self.answered.watch(number, moment);
        }

        fn next_done(&mut self, until: Time) -> Option<(u64, Time)> {
            self.answered.next_done(until)
        }
    };
}

pub(super) use answers_with_times;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_in_the_order_of_their_ends() {
        let mut answered = Answered::default();
        for (number, at) in [(1, 500), (2, 300), (3, 300)] {
            answered.watch(number, Time(at));
        }
        assert_eq!(answered.next_done(Time(299)), None);
        assert_eq!(answered.next_done(Time(300)), Some((2, Time(300))));
        assert_eq!(answered.next_done(Time(900)), Some((3, Time(300))));
        assert_eq!(answered.next_done(Time(900)), Some((1, Time(500))));
        assert_eq!(answered.next_done(Time(900)), None);
    }
}
