//! Properties of any bytes that a host sends. The fuzzer in `fuzz/` checks the same.

#[path = "properties/sessions.rs"]
mod sessions;

use proptest::prelude::*;
use sessions::{check_session, connected, script};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_a_session(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        check_session(&bytes);
    }

    #[test]
    fn any_bytes_after_the_connect_are_a_session(
        digests in 0..4u8,
        is_zoned in any::<bool>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        check_session(&[connected(digests, is_zoned), bytes].concat());
    }

    #[test]
    fn commands_with_any_fields_are_answered_or_end_the_session(
        steps in proptest::collection::vec((any::<[u8; 12]>(), 0..9000usize), 0..12),
    ) {
        let steps: Vec<_> = steps.iter().map(|(fields, data)| (*fields, *data)).collect();
        check_session(&script(&steps));
    }
}
