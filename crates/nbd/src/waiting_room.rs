//! Clients in the handshake. Anyone can connect and stay silent, so their number is limited: one more disconnects the
//! oldest.

use crate::socket::Socket;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded set of clients in the handshake.
#[derive(Debug)]
pub struct WaitingRoom {
    most: usize,
    room: Mutex<Room>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Room {
    came: u64,
    /// By order of arrival.
    waiting: BTreeMap<u64, Socket>,
    /// Places in use, including those of disconnected clients whose threads have not ended.
    taken: usize,
}

/// A client's place; dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    room: Arc<WaitingRoom>,
    number: u64,
}

impl WaitingRoom {
    /// An empty room for `most` clients.
    pub fn new(most: usize) -> Arc<WaitingRoom> {
        Arc::new(WaitingRoom { most, room: Mutex::default(), left: Condvar::new() })
    }

    /// Admits a client; true if the oldest was disconnected for it. Waits while `most` disconnected clients have not
    /// ended: a flood of clients takes a bounded number of threads.
    pub fn enter(self: &Arc<Self>, socket: &Socket) -> (Place, bool) {
        let mut room = self.room();
        while room.taken >= 2 * self.most {
            room = self.wait(room);
        }
        let number = room.came;
        room.came += 1;
        room.taken += 1;
        room.waiting.insert(number, socket.clone());
        let is_full = room.waiting.len() > self.most;
        let oldest = if is_full { room.waiting.pop_first() } else { None };
        oldest.into_iter().for_each(|(_, oldest)| oldest.close());
        debug_assert!(room.waiting.len() <= self.most.max(1), "the one that waited longest has left");
        (Place { room: Arc::clone(self), number }, is_full)
    }

    /// Disconnects all waiting clients.
    pub fn clear(&self) {
        std::mem::take(&mut self.room().waiting).values().for_each(Socket::close);
    }

    /// Waits until all places are free.
    pub fn wait_until_empty(&self) {
        let mut room = self.room();
        while room.taken > 0 {
            room = self.wait(room);
        }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        // No code that holds the lock can panic; and the list would still be valid.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, room: MutexGuard<'a, Room>) -> MutexGuard<'a, Room> {
        self.left.wait(room).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Ends the wait: from here on no other client disconnects this one. False if one did, or if the wait ended before.
    pub fn leave(&self) -> bool {
        self.room.room().waiting.remove(&self.number).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut room = self.room.room();
        room.waiting.remove(&self.number);
        debug_assert!(room.taken > 0, "each place that is left was taken");
        room.taken -= 1;
        drop(room);
        self.room.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn connect() -> (UnixStream, Socket) {
        let (client, server) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        (client, Socket::of(server.into()))
    }

    fn is_connected(mut client: &UnixStream) -> bool {
        client.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// A client whose handshake was answered was still among those that wait until its thread went on, and could be
    /// disconnected for a newcomer.
    #[test]
    fn a_client_that_left_the_room_is_not_disconnected_for_another() {
        let room = WaitingRoom::new(1);
        let ((served, served_socket), (waiting, waiting_socket)) = (connect(), connect());
        let (served_place, _) = room.enter(&served_socket);
        assert!(served_place.leave());
        let (waiting_place, displaces) = room.enter(&waiting_socket);
        assert!(!displaces && is_connected(&served), "the served client left the room before");
        let (newest, newest_socket) = connect();
        drop(served_place);
        let (_newest_place, displaces) = room.enter(&newest_socket);
        assert!(displaces && !is_connected(&waiting) && is_connected(&newest) && is_connected(&served));
        assert!(!waiting_place.leave());
    }
}
