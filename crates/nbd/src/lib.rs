//! A device as an NBD export, for every client that speaks the fixed newstyle protocol: the kernel's nbd-client, qemu,
//! libnbd and its tools, fio.
//!
//! | file | what it is |
//! |---|---|
//! | `wire` | the protocol's numbers and headers |
//! | `address`, `socket` | where a server listens, and the sockets of both families |
//! | `server` | a thread for each client, and the end of all |
//! | `waiting_room` | clients that are not served yet |
//! | `connection` | one client, from its first byte to its last |
//! | `handshake` | what client and server agree on |
//! | `transmission` | requests and their replies |
//! | `input` | what a client sends, read ahead |
//! | `replies`, `paced` | how replies leave: promptly, or when their time has come |
//!
//! It serves one device without a name, to several connections at once; a flush on one covers what was answered on any.
//! It listens on a Unix socket that only its owner may use, or on a loopback port. There is no TLS, and so no other address.
//!
//! Clients are not trusted: whatever one sends is answered with an error or ends its connection, takes bounded memory,
//! and leaves the others alone.

#![allow(clippy::disallowed_methods, reason = "a server has threads, and sends away who takes too long")]

mod address;
mod connection;
mod error;
mod handshake;
mod input;
mod paced;
mod replies;
mod server;
mod socket;
mod transmission;
mod waiting_room;
#[allow(missing_docs, reason = "the names are those of the protocol")]
mod wire;

pub use address::Address;
pub use connection::serve_client;
pub use error::{ConnectionError, ListenError};
pub use server::{Limits, Server, Traffic};
pub use socket::{Listener, Socket};
pub use waiting_room::{Place, WaitingRoom};
