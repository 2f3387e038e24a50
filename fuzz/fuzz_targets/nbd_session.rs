//! Any bytes as what an NBD client sends, from the handshake on.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/nbd/tests/properties/sessions.rs"]
mod sessions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sessions::check_session(data));
