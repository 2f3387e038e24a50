//! Exports devices as an NVMe subsystem over TCP, to any host: the kernel's nvme-tcp, nvme-cli, SPDK, libnvme.
//!
//! | file | role |
//! |---|---|
//! | `bytes` | fields of structures |
//! | `pdu` | the units of the transport, and the checks of their fields |
//! | `status`, `command` | status codes; commands and completions |
//! | `identifiers` | the numbers of handles in groups |
//! | `namespace` | devices of blocks and of zones as namespaces |
//! | `events`, `controller` | asynchronous events; registers, features and errors of a controller |
//! | `subsystem` | namespaces, controllers and names |
//! | `health` | wear and written media, from the accounts of the stations |
//! | `identify`, `logs`, `features`, `directives`, `discovery` | what a host asks of a controller |
//! | `placement` | flexible data placement: identifiers, management, logs |
//! | `admin`, `blocks`, `copy`, `zones` | the commands of administration, on blocks, and on zones |
//! | `session` | the commands of one queue, whatever carries them |
//! | `input`, `output` | buffered input; answers that are sent promptly, or at their time |
//! | `answers`, `transfers` | units to the host; data from it that comes in units of its own |
//! | `connection` | one connection, from its first byte to its last |
//! | `server` | a thread for each connection; the shutdown |
//!
//! Each connection is a queue, and has a thread. A command is executed when it and its data have come, and answers go out in
//! the order of completion. A host gets a controller of its own; a flush on any queue covers all writes to the namespace that
//! were answered on any.
//!
//! Hosts are not trusted. A refused command gets its status code, a broken transport a termination request with the field at
//! fault; a connection takes bounded memory, and does not disturb others.

#![allow(clippy::disallowed_methods, reason = "a server has threads, and disconnects slow hosts")]

mod admin;
mod answers;
mod blocks;
mod bytes;
#[allow(missing_docs, reason = "the names are those of the specification")]
mod command;
mod connection;
mod controller;
mod copy;
mod directives;
mod discovery;
mod error;
mod events;
mod features;
mod health;
mod identifiers;
mod identify;
mod input;
mod logs;
mod namespace;
mod output;
#[allow(missing_docs, reason = "the names are those of the specification")]
mod pdu;
mod placement;
mod server;
mod session;
#[allow(missing_docs, reason = "the names are those of the specification")]
mod status;
mod subsystem;
mod transfers;
mod zones;

pub use connection::serve_host;
pub use controller::{Hangup, Portal};
pub use error::ConnectionError;
pub use health::Health;
pub use namespace::{CommandSet, Drive, Namespace, NamespaceError};
pub use server::{Limits, Server};
pub use subsystem::{DISCOVERY_NAME, Subsystem, SubsystemError, check_name};
