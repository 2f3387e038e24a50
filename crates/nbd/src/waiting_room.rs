//! Clients that are connected and have not got as far as to be served. Anyone can connect and say nothing: so only some
//! wait, and the one that has waited longest is sent away when one more comes.

use crate::socket::Socket;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where clients wait.
#[derive(Debug)]
pub struct WaitingRoom {
    most: usize,
    room: Mutex<Room>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Room {
    came: u64,
    /// By the order in which they came.
    waiting: BTreeMap<u64, Socket>,
    /// Places that are taken: also by those that were sent away and have not noticed yet.
    taken: usize,
}

/// A client's place, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    room: Arc<WaitingRoom>,
    number: u64,
}

impl WaitingRoom {
    /// An empty one, in which `most` clients may wait.
    pub fn new(most: usize) -> Arc<WaitingRoom> {
        Arc::new(WaitingRoom { most, room: Mutex::default(), left: Condvar::new() })
    }

    /// Lets a client in, and answers whether another had to go for it. Waits while as many as may wait have not noticed that
    /// they were sent away: a flood of clients takes a bounded number of threads.
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

    /// Sends all away that wait now.
    pub fn clear(&self) {
        std::mem::take(&mut self.room().waiting).values().for_each(Socket::close);
    }

    /// Waits until all have noticed.
    pub fn wait_until_empty(&self) {
        let mut room = self.room();
        while room.taken > 0 {
            room = self.wait(room);
        }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        // Nothing that holds the lock can panic; and the list would still be one.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, room: MutexGuard<'a, Room>) -> MutexGuard<'a, Room> {
        self.left.wait(room).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether the client still waits: it may have been sent away.
    pub fn is_held(&self) -> bool {
        self.room.room().waiting.contains_key(&self.number)
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
