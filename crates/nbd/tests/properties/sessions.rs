//! Properties of any bytes that a client sends. The fuzzer in `fuzz/` checks the same.

use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::expression::parse_term;
use flashpath::run::shared::{SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use flashpath_nbd::serve_client;
use std::io::{self, Read};

/// The size of the device, in bytes.
pub const SIZE: u64 = 64 * BLOCK_BYTES;

/// A device in memory.
pub fn device(paced: bool) -> SharedDevice {
    let term = parse_term(&format!("conv:size={SIZE},timing=off")).unwrap();
    let settings = ConvSettings::read(&term).unwrap();
    let conventional = Conventional::new(&settings, BLOCK_BYTES as usize);
    let sharing = Sharing { read_only: false, paced };
    SharedDevice::new(Box::new(conventional), sharing, Box::new(|| Time(5))).unwrap()
}

/// The server's output for `bytes`, true if the session ended well, and the content of the device after it.
pub fn session(bytes: impl Read, paced: bool) -> (Vec<u8>, bool, Vec<u8>) {
    let device = device(paced);
    let mut told = Vec::new();
    let is_well = serve_client(&device, bytes, &mut told).is_ok();
    let mut content = vec![0; SIZE as usize];
    device.read(0, &mut content).expect("the device works whatever a client sends");
    (told, is_well, content)
}

/// A reader that returns single bytes, with timeouts between them.
struct Slowly<'b> {
    bytes: &'b [u8],
    is_pause: bool,
}

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_pause = !self.is_pause;
        if self.is_pause {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let one = buffer.len().min(1);
        self.bytes.read(&mut buffer[..one])
    }
}

/// The output and the content of the device do not depend on how the bytes arrive, or on pacing. Nothing panics, and
/// every session begins with the greeting.
pub fn check_session(bytes: &[u8]) {
    let at_once = session(bytes, false);
    assert!(at_once.0.starts_with(b"NBDMAGICIHAVEOPT"));
    assert!(session(Slowly { bytes, is_pause: false }, false) == at_once, "it matters how the bytes arrive");
    assert!(session(bytes, true) == at_once, "a device without a timing model is paced");
}
