//! Serves a device as a virtio disk (vhost-user-blk) to a virtual machine, such as QEMU's: the queues of requests and the data are in
//! memory that the machine shares, and no socket carries them.
//!
//! | file | role |
//! |---|---|
//! | `disk` | the features and the configuration space that the guest reads |
//! | `chain` | the parts of a request in the guest's memory |
//! | `request` | a request and its status |
//! | `answers` | answers that wait for their time |
//! | `session` | one client: its queues, each with a thread |
//! | `server` | one client after the other; the shutdown |
//!
//! The protocol, the threads and the rings are those of the rust-vmm crates. Requests of a queue are served in their order, and each is
//! answered before the next is taken: a server that was killed has left a ring of which the next server takes up the rest. Only
//! answers that wait for their time (`paced`) overtake each other.
//!
//! Guests are not trusted: a chain that is none, or leads out of the memory, changes nothing and is answered with an error if it has a
//! place for one. A client can end its own session alone, unless it takes back memory that it has shared: that ends the process.

#![allow(clippy::disallowed_methods, reason = "a server has threads, and disconnects slow clients")]

mod answers;
mod chain;
mod disk;
mod error;
mod request;
mod server;
mod session;

pub use error::SessionError;
pub use server::Server;
