//! Data from hosts in units of their own: it is asked for, arrives in pieces beside other commands, and is then complete.
//!
//! A few transfers are under way at once, each with memory of its own that the next one uses again; further commands wait. So a
//! connection takes bounded memory.

use crate::command::Command;
use crate::pdu::{Fatal, HostData, fatal};
use std::collections::VecDeque;

/// Transfers at once: with the longest data, 4 MiB.
const MOST_TRANSFERS: usize = 8;

/// A transfer, or the memory for one.
#[derive(Debug, Default)]
struct Transfer {
    /// The command and the bytes of its data; `None` if there is no transfer.
    command: Option<(Command, usize)>,
    buffer: Vec<u8>,
    received: usize,
    is_damaged: bool,
}

/// The transfers of a connection.
#[derive(Debug)]
pub struct Transfers {
    slots: [Transfer; MOST_TRANSFERS],
    waiting: VecDeque<(Command, usize)>,
}

/// A complete transfer.
#[derive(Debug)]
pub struct Complete<'t> {
    /// The command.
    pub command: Command,
    /// The data.
    pub data: &'t [u8],
    /// True if a digest did not fit.
    pub is_damaged: bool,
}

impl Transfers {
    /// No transfers.
    pub fn new() -> Transfers {
        Transfers { slots: Default::default(), waiting: VecDeque::new() }
    }

    /// Commands whose data is not complete.
    pub fn count(&self) -> usize {
        self.waiting.len() + self.slots.iter().filter(|slot| slot.command.is_some()).count()
    }

    /// Adds a command with data of this length.
    pub fn add(&mut self, command: &Command, length: usize) {
        self.waiting.push_back((*command, length));
    }

    /// The next transfer that can begin: its tag, the identifier of its command, and its length.
    pub fn begin_next(&mut self) -> Option<(u16, u16, usize)> {
        let free = self.slots.iter().position(|slot| slot.command.is_none())?;
        let (command, length) = self.waiting.pop_front()?;
        let slot = &mut self.slots[free];
        if slot.buffer.len() < length {
            slot.buffer.resize(length.next_power_of_two(), 0);
        }
        (slot.command, slot.received, slot.is_damaged) = (Some((command, length)), 0, false);
        Some((free as u16, command.id(), length))
    }

    /// The place for data that arrives, of this length.
    pub fn place(&mut self, data: &HostData, length: usize) -> Result<&mut [u8], Fatal> {
        let slot = self.slots.get_mut(usize::from(data.tag));
        let Some((slot, (command, whole))) = slot.and_then(|slot| slot.command.map(|command| (slot, command))) else {
            return Err(Fatal::field(10, "there is no transfer with this tag"));
        };
        if command.id() != data.command {
            return Err(Fatal::field(8, "the transfer is that of another command"));
        }
        if data.offset != slot.received {
            return Err(Fatal::field(12, "data comes in order, without gaps"));
        }
        match data.offset + length {
            end if end > whole => {
                let why = "more data comes than was asked for";
                Err(Fatal { status: fatal::OUT_OF_RANGE, information: 0, why })
            }
            end if (end == whole) != data.is_last => {
                Err(Fatal::field(1, "the last unit of a transfer is not the last, or not told to be"))
            }
            end => {
                slot.received = end;
                Ok(&mut slot.buffer[data.offset..end])
            }
        }
    }

    /// Notes that data has arrived whose digest is wrong.
    pub fn damage(&mut self, tag: u16) {
        self.slots[usize::from(tag)].is_damaged = true;
    }

    /// The transfer, which ends: its last data has arrived.
    pub fn complete(&mut self, tag: u16) -> Option<Complete<'_>> {
        let slot = &mut self.slots[usize::from(tag)];
        let (command, length) = slot.command.take()?;
        Some(Complete { command, data: &slot.buffer[..length], is_damaged: slot.is_damaged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_begin_at_once_and_the_others_wait_their_turn() {
        let mut transfers = Transfers::new();
        for id in 0..12u16 {
            let mut command = Command([0; 64]);
            command.0[2] = id as u8;
            transfers.add(&command, 5000);
        }
        let begun: Vec<_> = std::iter::from_fn(|| transfers.begin_next()).collect();
        assert_eq!((begun.len(), transfers.count()), (MOST_TRANSFERS, 12));
        let data = |tag, command, offset, is_last| HostData { command, tag, offset, is_last };
        for (wrong, length, field) in [
            (data(8, 0, 0, false), 10, 10),
            (data(3, 4, 0, false), 10, 8),
            (data(3, 3, 1, false), 10, 12),
            (data(3, 3, 0, true), 5001, 0),
            (data(3, 3, 0, true), 4999, 1),
            (data(3, 3, 0, false), 5000, 1),
        ] {
            assert_eq!(transfers.place(&wrong, length).unwrap_err().information, field, "{wrong:?}");
        }
        transfers.place(&data(3, 3, 0, false), 4000).unwrap().fill(7);
        transfers.place(&data(3, 3, 4000, true), 1000).unwrap().fill(8);
        let complete = transfers.complete(3).unwrap();
        assert!(complete.command.id() == 3 && complete.data[3999..4001] == [7, 8] && complete.data.len() == 5000);
        assert_eq!(transfers.begin_next(), Some((3, 8, 5000)));
        assert_eq!(transfers.count(), 11);
    }
}
