//! Order without flushes: a device that keeps the order of epochs.
//!
//! A *barrier* ends an *epoch*: writes before it are durable before writes behind it, and nothing waits for that. Within an
//! epoch a device stores writes in any order. (Won and others, "Barrier-Enabled IO Stack for Flash Storage", FAST 2018, call
//! such a device barrier-compliant; eMMC 5.1 and UFS have the command.)

use super::DeviceError;
use crate::time::Time;

/// A device that keeps the order of epochs, one of its [`Abilities`](super::Abilities).
///
/// After a cut of power there is an epoch such that all writes of the epochs before it are there, any of its own, and none
/// of those behind it. A discard belongs to no epoch.
pub trait Epochs {
    /// Ends the epoch of all writes that were answered before the call. Nothing is durable by it.
    fn barrier(&self, at: Time) -> Result<Time, DeviceError>;
}
