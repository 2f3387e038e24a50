//! The log of the discovery controller: where the subsystem is.

use crate::bytes::{put_text, put_u16, put_u64};
use crate::controller::{MOST_ENTRIES, Portal};
use crate::subsystem::Subsystem;
use std::net::IpAddr;

/// Bytes of the header, and of each entry.
const ENTRY: usize = 1024;

/// The whole log.
pub fn log(subsystem: &Subsystem, portal: &Portal) -> Vec<u8> {
    let mut log = vec![0; 2 * ENTRY];
    put_u64(&mut log, 8, 1);
    let entry = &mut log[ENTRY..];
    let (transport, family, address, service) = match portal {
        Portal::Tcp(address @ IpAddr::V4(_), port) => (3, 1, address.to_string(), port.to_string()),
        Portal::Tcp(address @ IpAddr::V6(_), port) => (3, 2, address.to_string(), port.to_string()),
        Portal::Local(path) => (254, 254, path.clone(), String::new()),
    };
    // An NVM subsystem, whose security is not specified; flow control of queues can be disabled.
    entry[..4].copy_from_slice(&[transport, family, 2, 0b100]);
    put_u16(entry, 4, 1);
    // A controller for each host.
    put_u16(entry, 6, 0xffff);
    put_u16(entry, 8, MOST_ENTRIES);
    put_text(entry, 32, 32, &service, b' ');
    put_text(entry, 256, 256, subsystem.name(), 0);
    put_text(entry, 512, 256, &address, b' ');
    log
}
