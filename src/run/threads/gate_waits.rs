//! The time that simulated threads have waited at gates: who was there before them had not left.

use std::collections::BTreeMap;

/// Waits by the name of the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateWaits(BTreeMap<&'static str, Waits>);

/// The waits at all gates of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub count: u64,
    pub ns: u64,
}

impl GateWaits {
    pub(super) fn add(&mut self, gate: &'static str, ns: u64) {
        let waits = self.0.entry(gate).or_default();
        *waits = Waits { count: waits.count + 1, ns: waits.ns + ns };
    }

    /// Each name with its waits.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Waits)> {
        self.0.iter().map(|(gate, waits)| (*gate, *waits))
    }
}
