//! Any bytes as what an NVMe host sends, from the connection request on.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/nvme/tests/properties/sessions.rs"]
mod sessions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sessions::check_session(data));
