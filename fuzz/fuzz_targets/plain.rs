//! Which inputs reach our own parsers.

/// Whether `data` is neither compressed nor Parquet. What unpacks those is not ours; and on damaged pages the parquet
/// crate panics, which the reader catches and libFuzzer does not allow. `tests/fuzz_traces.rs` damages both.
pub fn is_ours(data: &[u8]) -> bool {
    !matches!(
        data,
        [0x1f, 0x8b, ..]
            | [0x28, 0xb5, 0x2f, 0xfd, ..]
            | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
            | [b'P', b'A', b'R', b'1', ..]
    ) && !data.starts_with(b"\xef\xbb\xbfPAR1")
}
