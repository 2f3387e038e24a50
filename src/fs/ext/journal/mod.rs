//! The seam between the file system and its journal.
//!
//! Above it, [`Journal`] keeps the running transaction: handles begin, change blocks and end; a commit closes the
//! transaction and has a [`Log`] store it; a checkpoint writes what the oldest transactions
//! changed home, beside commits, and lets them go. Below it, a [`Log`]
//! is where transactions are stored: `jbd2`, in the volume itself or on a device of its own. Another kind of log replaces
//! [`Log`] alone.
//!
//! | file | content |
//! |---|---|
//! | `mod` | what the two sides say to each other |
//! | `transactions` | the running transaction, and commits |
//! | `checkpoint` | what is committed goes home, beside commits |
//! | `home` | the list of what is committed and not home yet |
//! | `jbd2` | a log in jbd2's format, in blocks of a device |
//! | `place` | which blocks of which device |

mod checkpoint;
#[cfg(test)]
mod checkpoint_tests;
mod home;
mod jbd2;
mod place;
mod transactions;

pub use jbd2::Jbd2;
pub use place::LogPlace;
pub use transactions::{Handle, Journal};

use super::blocks::Bytes;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;

/// The number of a transaction. Numbers go round after 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionId(pub u32);

impl TransactionId {
    pub fn next(self) -> TransactionId {
        TransactionId(self.0.wrapping_add(1))
    }

    /// True if this one is later than `other`.
    pub fn is_after(self, other: TransactionId) -> bool {
        self.0.wrapping_sub(other.0) as i32 > 0
    }
}

/// A block that a transaction changes, as it is when that is committed.
#[derive(Clone, Debug)]
pub struct Logged {
    pub block: u64,
    pub bytes: Bytes,
    /// What it is at home: metadata, or bytes of a file.
    pub content: Content,
}

/// Changes that are there together after a crash, or not at all.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub id: TransactionId,
    pub blocks: Vec<Logged>,
    /// Blocks that were freed: older copies of them in the log are not replayed.
    pub revokes: Vec<u64>,
}

/// A place where transactions are stored until they are home. One at a time is stored, and one at a time lets go.
pub trait Log: Send + Sync {
    /// The most blocks that a transaction may have.
    fn most_blocks(&self) -> usize;

    /// True if there is room for a transaction.
    fn has_room(&self, transaction: &Transaction) -> bool;

    /// The last of the oldest transactions that a checkpoint should write home now; `None` if none is due. `waiting`: a
    /// transaction that waits for room.
    fn due(&self, waiting: Option<&Transaction>) -> Option<TransactionId>;

    /// Stores a transaction; it is durable when this returns, with all that was written to the volume's device before.
    /// `at_ns`: the time on the wall clock.
    fn store(&self, task: &Task<'_>, transaction: &Transaction, at_ns: i64) -> Result<(), VolumeError>;

    /// What the transactions before `next` have changed is home, and durable there: lets them go. `is_closed`: they are all,
    /// and none follows in this mount. Others may be stored at the same time.
    fn let_go(&self, task: &Task<'_>, next: TransactionId, is_closed: bool) -> Result<(), VolumeError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_transactions_go_round() {
        let last = TransactionId(u32::MAX);
        assert!(last.next().is_after(last) && !last.is_after(last.next()) && !last.is_after(last));
        assert_eq!(last.next(), TransactionId(0));
    }
}
