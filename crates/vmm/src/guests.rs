//! The connections of all guests: those that have no volume yet are few, and all are told when the monitor ends.
//!
//! Anyone of the monitor's user can connect and stay silent, and each connection takes descriptors and a thread. So one newcomer
//! too many cuts off the oldest.

use crate::wire::{Answer, Wire};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Guests that have no volume yet, at most.
const MOST_NEWCOMERS: u64 = 64;
/// The share of the descriptors of a process that they may take; each takes a few.
const SHARE: u64 = 16;

struct Connection {
    wire: Arc<Wire>,
    is_newcomer: bool,
}

/// The connections by the numbers of their sessions.
pub(crate) struct Guests {
    all: Mutex<BTreeMap<u64, Connection>>,
    most_newcomers: usize,
}

impl Default for Guests {
    fn default() -> Guests {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Guests { all: Mutex::default(), most_newcomers: (descriptors / SHARE).clamp(1, MOST_NEWCOMERS) as usize }
    }
}

impl Guests {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        // Each change of it is one step.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a newcomer. One too many cuts off the oldest.
    pub fn enter(&self, number: u64, wire: &Arc<Wire>) {
        let mut all = self.all();
        all.insert(number, Connection { wire: Arc::clone(wire), is_newcomer: true });
        let newcomers = all.iter().filter(|(_, guest)| guest.is_newcomer);
        let oldest = newcomers.clone().next().map(|(oldest, _)| *oldest);
        if newcomers.count() > self.most_newcomers
            && let Some(oldest) = oldest.and_then(|oldest| all.remove(&oldest))
        {
            let why = format!("more than {} guests without a volume: the oldest is cut off", self.most_newcomers);
            // It may have gone.
            let _ = oldest.wire.send_at_once(&Answer::Refused(why));
            oldest.wire.close();
        }
    }

    /// A guest has a volume, and is not cut off for others any more.
    pub fn settle(&self, number: u64) {
        self.all().entry(number).and_modify(|guest| guest.is_newcomer = false);
    }

    /// The session of a guest has ended.
    pub fn leave(&self, number: u64) {
        self.all().remove(&number);
    }

    /// Tells all of them that the monitor ends.
    pub fn tell(&self, why: &str) {
        // One that takes no message sees the end of the connection.
        self.all().values().for_each(|guest| drop(guest.wire.send_at_once(&Answer::Ends(why.to_string()))));
    }
}
