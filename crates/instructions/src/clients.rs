//! Requests of an NBD client, served from memory.

use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::expression::parse_term;
use flashpath::run::shared::{SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use flashpath_nbd::serve_client;

const BLOCKS: u64 = 1024;
const READ: u16 = 0;
const WRITE: u16 = 1;

/// A device, and what a client sends.
pub struct Ready {
    device: SharedDevice,
    sent: Vec<u8>,
}

/// Reads and writes of 4 KiB in turn, after the shortest handshake.
pub fn of_nbd() -> Ready {
    let term = parse_term(&format!("conv:size={},timing=off", BLOCKS * BLOCK_BYTES)).expect("a term");
    let conventional = Conventional::new(&ConvSettings::read(&term).expect("a device"), BLOCK_BYTES as usize);
    let sharing = Sharing { read_only: false, paced: false };
    let device = SharedDevice::new(Box::new(conventional), sharing, Box::new(|| Time(5))).expect("a device");
    // The client's flags (fixed newstyle, no zeroes), and NBD_OPT_GO with an empty name and no information.
    let mut sent = 3u32.to_be_bytes().to_vec();
    sent.extend(b"IHAVEOPT");
    sent.extend(7u32.to_be_bytes());
    sent.extend(6u32.to_be_bytes());
    sent.extend([0; 6]);
    for number in 0..crate::units("requests") {
        let command = if number % 2 == 0 { WRITE } else { READ };
        sent.extend(0x2560_9513u32.to_be_bytes());
        sent.extend(0u16.to_be_bytes());
        sent.extend(command.to_be_bytes());
        sent.extend(number.to_be_bytes());
        sent.extend((number * 7 % BLOCKS * BLOCK_BYTES).to_be_bytes());
        sent.extend((BLOCK_BYTES as u32).to_be_bytes());
        if command == WRITE {
            sent.extend([number as u8; BLOCK_BYTES as usize]);
        }
    }
    Ready { device, sent }
}

/// Serves it; returns the replies.
pub fn served(ready: Ready) -> Vec<u8> {
    let mut replies = Vec::new();
    // The client leaves without a word at the end.
    let _ = serve_client(&ready.device, &ready.sent[..], &mut replies);
    let reads = crate::units("requests") / 2;
    assert!(replies.len() as u64 > reads * BLOCK_BYTES, "every read was answered with its bytes");
    replies
}
