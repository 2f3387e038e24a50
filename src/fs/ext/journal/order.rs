//! The order of a log's transactions, and the means that keeps it until they are durable.
//!
//! | `flush=` | a commit waits for | a sync waits for | order |
//! |---|---|---|---|
//! | `full` | a flush before its record and one behind it | its commit | a transaction is durable before the next is stored |
//! | `barrier` | nothing: barriers stand in the places of both flushes | its commit, and one flush | the device keeps it |
//! | `optimistic` | nothing | its commit, and one flush | checksums: a replay ends before the first transaction that is not whole |
//!
//! In the last two an order (fbarrier) waits for the commit alone, and several commits become durable by one flush, which is
//! not in the way of the next commit.

use crate::device::BlockDevice;
use crate::expression::Choice;

/// The way in which the transactions of a log keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each is durable when it is stored.
    Flushes,
    /// The device keeps the order of epochs.
    Barriers,
    /// Checksums tell which are there.
    Checksums,
}

impl Choice for Order {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("full", Order::Flushes, "a commit flushes the device before its record and behind it"),
        (
            "barrier",
            Order::Barriers,
            "barriers stand in the places of both, and a sync flushes once; a device that keeps order, such as page:buffer=32M",
        ),
        (
            "optimistic",
            Order::Checksums,
            "checksums tell which commits are there, and a sync flushes once; with data=journal",
        ),
    ];
}

/// What a volume has below, as far as the order of its log needs it.
pub struct Below<'b> {
    pub device: &'b dyn BlockDevice,
    /// The journal has a device of its own.
    pub has_journal_device: bool,
    /// The journal is in memory.
    pub is_in_memory: bool,
    /// Records have checksums.
    pub has_sums: bool,
}

impl Order {
    /// True if a transaction that is stored is durable.
    pub fn is_durable(self) -> bool {
        self == Order::Flushes
    }

    /// Why this order cannot be kept there, and the remedy; `None` if it can.
    pub fn refused(self, below: &Below<'_>) -> Option<&'static str> {
        match self {
            Order::Flushes => None,
            _ if below.is_in_memory => {
                Some("flush= is of a journal in blocks of a device, and this one is in memory: leave it out")
            }
            Order::Barriers if below.has_journal_device => Some(
                "flush=barrier keeps order within one device, and the journal has one of its own: leave the second device out, or \
                 take flush=full",
            ),
            Order::Barriers if below.device.epochs().is_none() => Some(
                "flush=barrier needs a device that keeps the order of writes without a flush, and this one does not: take a \
                 drive with a write buffer, such as ext:flush=barrier/page:buffer=32M/nand, or flush=full",
            ),
            Order::Checksums if !below.has_sums => Some(
                "flush=optimistic needs checksums in the records of the journal, and the volume has no metadata_csum: take \
                 flush=full, or set the feature with 'tune2fs -O metadata_csum'",
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::conv::Conventional;

    #[test]
    fn an_order_that_the_devices_do_not_keep_is_refused_with_what_would_be_right() {
        let device = Conventional::in_memory(64, 4096);
        let below = |has_journal_device, is_in_memory, has_sums| Below {
            device: &device,
            has_journal_device,
            is_in_memory,
            has_sums,
        };
        assert_eq!(Order::Flushes.refused(&below(true, true, false)), None);
        assert_eq!(Order::Checksums.refused(&below(true, false, true)), None);
        for (order, below, right) in [
            (Order::Barriers, below(false, false, true), "page:buffer=32M"),
            (Order::Barriers, below(true, false, true), "leave the second device out"),
            (Order::Barriers, below(false, true, true), "leave it out"),
            (Order::Checksums, below(false, false, false), "metadata_csum"),
            (Order::Checksums, below(false, true, true), "leave it out"),
        ] {
            assert!(order.refused(&below).unwrap().contains(right), "{order:?}");
        }
    }
}
