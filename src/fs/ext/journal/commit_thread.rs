//! A thread of its own that commits, as jbd2 has one: a task that needs a commit asks for it, and sleeps until it is durable.
//!
//! Without it, the task that needs a commit does it. The thread is lent by a front end ([`Journal::watch`]); while none is lent, the task that
//! needs a commit does it too. In a simulated run the commit is done in the task that asks, and each of the two hand-overs
//! costs a wake-up ([`Step::ThreadWoken`]).
//!
//! [`Journal::watch`]: super::Journal::watch

use super::TransactionId;
use super::common::locked;
use crate::task::{Step, Task};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The thread goes back to its lender, which may want to stop it, after so long without work.
const PATIENCE: Duration = Duration::from_millis(2);

/// The commit thread of a journal.
pub(super) struct CommitThread {
    is_on: bool,
    state: Mutex<State>,
    /// Wakes the thread.
    asked: Condvar,
    /// Wakes the tasks that wait for it.
    served: Condvar,
}

#[derive(Default)]
struct State {
    /// A thread is lent.
    is_lent: bool,
    /// The last transaction that somebody asks for, if it is not served.
    wanted: Option<TransactionId>,
    /// The last transaction that the thread has committed, or failed to.
    served: Option<TransactionId>,
}

impl CommitThread {
    pub(super) fn new(is_on: bool) -> CommitThread {
        CommitThread { is_on, state: Mutex::default(), asked: Condvar::new(), served: Condvar::new() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Spends the CPU time of `times` hand-overs between a thread and this one.
    pub(super) fn wakes(&self, task: &Task<'_>, times: u64) {
        if self.is_on {
            task.spend(Step::ThreadWoken, times);
        }
    }

    /// Asks the thread to commit a transaction, and waits until it has tried. False if there is none: the caller commits.
    pub(super) fn has_committed(&self, task: &Task<'_>, id: TransactionId) -> bool {
        if !self.is_on || task.is_simulated() {
            return false;
        }
        let mut state = locked(&self.state);
        if !state.is_lent {
            return false;
        }
        if state.wanted.is_none_or(|wanted| id.is_after(wanted)) {
            state.wanted = Some(id);
        }
        self.asked.notify_one();
        while state.served.is_none_or(|served| id.is_after(served)) {
            if !state.is_lent {
                return false;
            }
            state = self.served.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Lends a thread, which makes the commits that are asked for with `commit`. True if it is to be lent again at once.
    pub(super) fn serve(&self, task: &Task<'_>, commit: impl Fn(TransactionId)) -> bool {
        if !self.is_on || task.is_simulated() {
            return false;
        }
        {
            let mut state = locked(&self.state);
            if state.is_lent {
                return false;
            }
            state.is_lent = true;
        }
        let _lent = Lent(self);
        loop {
            let wanted = {
                let mut state = locked(&self.state);
                if state.wanted.is_none() {
                    state = self.asked.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
                }
                state.wanted.take()
            };
            let Some(id) = wanted else { return true };
            commit(id);
            locked(&self.state).served = Some(id);
            self.served.notify_all();
        }
    }
}

/// A thread is lent until this is dropped.
struct Lent<'t>(&'t CommitThread);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        locked(&self.0.state).is_lent = false;
        self.0.served.notify_all();
    }
}
