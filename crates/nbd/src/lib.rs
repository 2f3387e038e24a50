//! Exports a device over NBD to any client of the fixed newstyle protocol: the kernel's nbd-client, qemu, libnbd and
//! its tools, fio.
//!
//! | file | role |
//! |---|---|
//! | `wire` | the protocol's numbers and headers |
//! | `address`, `socket` | addresses to listen on, and sockets of both families |
//! | `entrance` | accepts clients, whatever fails |
//! | `server` | a thread for each client; the shutdown |
//! | `waiting_room` | clients that are not served yet |
//! | `connection` | one client, from its first byte to its last |
//! | `handshake` | the negotiation of options |
//! | `transmission` | requests and their replies |
//! | `input`, `polling` | buffered input from a client; waiting for it without a sleep |
//! | `replies`, `paced` | reply buffers: sent promptly, or at their completion time |
//!
//! The one export has no name and takes several connections at once; a flush on one covers all writes that were
//! answered on any. The server listens on a Unix socket that only its owner may use, or on a loopback port: without
//! TLS, no other address is safe.
//!
//! Clients are not trusted. Invalid input gets an error or ends its connection; it takes bounded memory and does not
//! disturb other clients.

#![allow(clippy::disallowed_methods, reason = "a server has threads, and disconnects slow clients")]

mod address;
mod connection;
mod entrance;
mod error;
mod handshake;
mod input;
mod paced;
mod polling;
mod replies;
mod server;
mod socket;
mod transmission;
mod waiting_room;
#[allow(missing_docs, reason = "the names are those of the protocol")]
mod wire;

pub use address::Address;
pub use connection::serve_client;
pub use entrance::{Entrance, Notice, Notices, guarded};
pub use error::{ConnectionError, ListenError};
pub use polling::Polling;
pub use server::{Limits, Server, Traffic};
pub use socket::{Listener, Socket};
pub use waiting_room::{Place, WaitingRoom};
