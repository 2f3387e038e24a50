//! The protocol's conformance, by an initiator of the tests' own over a Unix socket.

#![allow(clippy::disallowed_methods, reason = "a test waits for a target beside it")]

#[path = "conformance/administration.rs"]
mod administration;
#[path = "conformance/areas.rs"]
mod areas;
#[path = "conformance/data.rs"]
mod data;
#[path = "conformance/flash_errors.rs"]
mod flash_errors;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "initiator/mod.rs"]
mod initiator;
#[path = "conformance/placement.rs"]
mod placement;
#[path = "conformance/queues.rs"]
mod queues;
#[path = "conformance/status_codes.rs"]
mod status_codes;
#[path = "conformance/target.rs"]
mod target;
#[path = "conformance/transport.rs"]
mod transport;
#[path = "conformance/zones.rs"]
mod zones;
