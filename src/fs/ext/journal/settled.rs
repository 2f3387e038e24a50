//! The stores of a log that a flush has made durable, of those that are in order. Flushes are shared: a task that comes to the gate and finds
//! that another's flush has covered it is done. None is in the way of commits, which are stored beside it.

use super::TransactionId;
use super::common::locked;
use crate::fs::volume::VolumeError;
use crate::task::{Gate, Task};
use crate::time::Time;
use std::sync::Mutex;

/// Stores of a log: transactions, and fast commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stores {
    /// Their number.
    pub(super) count: u64,
    /// The last transaction.
    pub(super) last: TransactionId,
}

/// Stores that were answered, and the answers that rely on them.
struct Answered {
    stores: Stores,
    /// Those of them that are durable.
    durable: Stores,
    /// When the first one was stored that is not durable.
    since: Option<Time>,
    /// Tasks that were told that their changes are in order: all, since the last flush began, and the most at once that a cut
    /// of power could have taken.
    orders: u64,
    waiting: u64,
    most_waiting: u64,
    flushes: u64,
}

/// Stores that are in order, and those of them that are durable.
pub(super) struct Settled {
    /// A task that flushes is inside.
    flush: Gate<()>,
    answered: Mutex<Answered>,
}

impl Settled {
    /// All up to transaction `last` are durable.
    pub(super) fn new(last: TransactionId) -> Settled {
        let stores = Stores { count: 0, last };
        let (orders, waiting, most_waiting, flushes) = (0, 0, 0, 0);
        let answered = Answered { stores, durable: stores, since: None, orders, waiting, most_waiting, flushes };
        Settled { flush: Gate::new("flush", ()), answered: Mutex::new(answered) }
    }

    /// Something was stored, in order with all before it; `last`: the last transaction by now.
    pub(super) fn has_stored(&self, last: TransactionId, at: Time) {
        let mut answered = locked(&self.answered);
        answered.stores = Stores { count: answered.stores.count + 1, last };
        answered.since.get_or_insert(at);
    }

    /// The stores that were answered.
    pub(super) fn stores(&self) -> Stores {
        locked(&self.answered).stores
    }

    /// The time at which the first one was stored that is not durable.
    pub(super) fn since(&self) -> Option<Time> {
        locked(&self.answered).since
    }

    /// A task is told that its changes are in order.
    pub(super) fn tell_order(&self) {
        let mut answered = locked(&self.answered);
        answered.orders += 1;
        answered.waiting += 1;
        answered.most_waiting = answered.most_waiting.max(answered.waiting);
    }

    /// Makes stores durable with `flush`, unless they are: those for which `is_durable` is not true of the last ones that
    /// are.
    pub(super) fn settle(
        &self,
        task: &Task<'_>,
        is_durable: impl Fn(Stores) -> bool,
        flush: impl FnOnce() -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let _alone = self.flush.enter(task);
        self.settle_beside(task, is_durable, flush)
    }

    /// The same beside others that do so, for a checkpoint thread, which enters no gate.
    pub(super) fn settle_beside(
        &self,
        task: &Task<'_>,
        is_durable: impl Fn(Stores) -> bool,
        flush: impl FnOnce() -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let (stores, told) = {
            let answered = locked(&self.answered);
            if answered.stores == answered.durable || is_durable(answered.durable) {
                return Ok(());
            }
            (answered.stores, answered.orders)
        };
        flush()?;
        let mut answered = locked(&self.answered);
        answered.flushes += 1;
        if stores.count > answered.durable.count {
            answered.durable = stores;
            // Others were stored and told meanwhile.
            answered.since = (answered.stores != stores).then(|| task.now());
            answered.waiting = answered.waiting.min(answered.orders - told);
        }
        Ok(())
    }

    /// Counts with their names.
    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        let answered = locked(&self.answered);
        [
            ("orders without a flush", answered.orders),
            ("most orders that a cut of power could take", answered.most_waiting),
            ("flushes of commits in order", answered.flushes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_flush_covers_all_that_was_stored_before_it() {
        let settled = Settled::new(TransactionId(6));
        let (task, flushes) = (Task::at(Time::ZERO), Cell::new(0));
        let flush = || {
            flushes.set(flushes.get() + 1);
            Ok(())
        };
        let covers = |id: u32| move |durable: Stores| !TransactionId(id).is_after(durable.last);
        settled.settle(&task, covers(9), flush).unwrap();
        assert_eq!(flushes.get(), 0, "nothing was stored");
        settled.has_stored(TransactionId(7), Time(5));
        settled.has_stored(TransactionId(8), Time(6));
        (0..3).for_each(|_| settled.tell_order());
        assert_eq!(settled.since(), Some(Time(5)));
        settled.settle(&task, covers(7), flush).unwrap();
        settled.settle(&task, covers(8), flush).unwrap();
        assert_eq!((flushes.get(), settled.since()), (1, None));
        settled.has_stored(TransactionId(8), Time(9));
        settled.tell_order();
        settled.settle(&task, |durable| durable.count >= 3, flush).unwrap();
        assert_eq!((flushes.get(), settled.counts().map(|(_, count)| count)), (2, [4, 3, 2]));
    }

    #[test]
    fn a_failed_flush_makes_nothing_durable() {
        let settled = Settled::new(TransactionId(0));
        let task = Task::at(Time::ZERO);
        settled.has_stored(TransactionId(1), Time::ZERO);
        let failed = settled.settle(&task, |_| false, || Err(VolumeError::NotFound));
        assert!(failed.is_err() && settled.since().is_some());
    }
}
