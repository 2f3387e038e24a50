//! The room of a log: when a checkpoint is due, and how much it has to let go.

use super::TransactionId;

/// So many bytes wait in memory at the most until a checkpoint is due, however large the log is.
const MOST_WAITING: u64 = 256 << 20;

/// The room of a log, in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) capacity: u32,
    pub(super) block_bytes: usize,
}

impl Room {
    /// The most blocks that a transaction may have.
    pub(super) fn most_blocks(self) -> usize {
        (self.capacity / 4) as usize
    }

    /// True if there is room for so many blocks more: the head of a log never reaches its tail, since a full one would look
    /// empty.
    pub(super) fn holds(self, used: u32, more: u32) -> bool {
        used + more < self.capacity
    }

    /// The last of the oldest transactions that should go home now, of those that are `stored` with so many blocks each,
    /// `used` in all.
    ///
    /// A checkpoint is due when the log is half full, and lets an eighth of it go: blocks that change often are in the part that is
    /// left, and need not go home. So is one that a commit of so many blocks is `waiting` for, if there is no room for it.
    pub(super) fn due(
        self,
        used: u32,
        waiting: Option<u32>,
        stored: impl Iterator<Item = (TransactionId, u32)>,
    ) -> Option<TransactionId> {
        let most_waiting = u32::try_from(MOST_WAITING / self.block_bytes as u64).unwrap_or(u32::MAX);
        let half = (self.capacity / 2).min(most_waiting);
        let piece = self.capacity / 8;
        let goal = match waiting {
            Some(blocks) if self.holds(used, blocks) => return None,
            Some(blocks) => self.capacity - piece.max(blocks + 1),
            None if used <= half => return None,
            None => half - piece.min(half / 2),
        };
        let mut left = used;
        let gone = stored.take_while(|(_, blocks)| {
            let is_too_much = left > goal;
            left -= blocks;
            is_too_much
        });
        gone.last().map(|(id, _)| id)
    }
}
