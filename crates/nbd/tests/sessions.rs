//! Whole sessions without a socket: replies equal a model's, and garbage does no harm.

#[path = "properties/script.rs"]
mod script;
#[path = "properties/sessions.rs"]
mod sessions;

use proptest::prelude::*;
use script::{Step, handshake, option, request};
use sessions::{SIZE, check_session, session};

const SIMPLE: u32 = 0x6744_6698;
const STRUCTURED: u32 = 0x668e_33ef;

/// Any request, mostly a valid one: some reach beyond the end, some have invalid flags.
fn step() -> impl Strategy<Value = Step> {
    let lengths = prop_oneof![0..20_000u32, Just(4096), Just(0)];
    let offsets = prop_oneof![0..SIZE + 5000, (0..SIZE / 4096).prop_map(|block| block * 4096)];
    let flags = prop_oneof![6 => Just(0u16), 2 => Just(1), 1 => 0..64u16];
    (flags, 0..9u16, offsets, lengths, any::<u8>()).prop_map(|(flags, command, offset, length, fill)| {
        let command = if command == 2 { 0 } else { command };
        Step { flags, command, offset, length, fill }
    })
}

/// The server's output.
struct Output<'b>(&'b [u8]);

impl Output<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Skips the greeting and the replies to options.
    fn skip_handshake(&mut self) {
        self.take(18);
        while self.0.starts_with(&0x0003_e889_0455_65a9u64.to_be_bytes()) {
            self.take(8);
            let (_option, kind) = (self.number(4), self.number(4));
            assert!(kind < 0x8000_0000, "an option was refused: {kind:x}");
            let length = self.number(4) as usize;
            self.take(length);
        }
    }

    /// Reads the reply to a request: its error, and its data if it is a read.
    fn reply(&mut self, number: u64, step: &Step) -> (u32, Vec<u8>) {
        if self.0.starts_with(&SIMPLE.to_be_bytes()) {
            self.take(4);
            let error = self.number(4) as u32;
            assert_eq!(self.number(8), number);
            let length = if error == 0 && step.command == 0 { step.length as usize } else { 0 };
            return (error, self.take(length));
        }
        let mut data = vec![0xEE; step.length as usize];
        let mut covered = 0;
        loop {
            assert_eq!(self.number(4) as u32, STRUCTURED);
            let (flags, kind) = (self.number(2), self.number(2));
            assert_eq!(self.number(8), number);
            let length = self.number(4) as usize;
            let payload = self.take(length);
            let mut payload = Output(&payload);
            match kind {
                0 => assert_eq!(length, 0),
                1 => {
                    let from = (payload.number(8) - step.offset) as usize;
                    data[from..from + length - 8].copy_from_slice(payload.0);
                    covered += length - 8;
                }
                2 => {
                    let (from, hole) = ((payload.number(8) - step.offset) as usize, payload.number(4) as usize);
                    data[from..from + hole].fill(0);
                    covered += hole;
                }
                5 => return (0, payload.0.to_vec()),
                0x8001 => {
                    let error = payload.number(4) as u32;
                    let text = payload.number(2) as usize;
                    assert!(payload.0.len() == text && std::str::from_utf8(payload.0).is_ok());
                    return (error, Vec::new());
                }
                kind => panic!("an unknown chunk {kind}"),
            }
            if flags & 1 != 0 {
                assert_eq!(covered, step.length as usize, "chunks cover the range once");
                return (0, data);
            }
        }
    }
}

/// The flags that the protocol allows for a command; `None` if the command must fail.
fn allowed_flags(command: u16, structured: bool) -> Option<u16> {
    match command {
        0 => Some(if structured { 5 } else { 1 }),
        1 | 3 | 4 => Some(1),
        6 => Some(1 | 2 | 16),
        7 if structured => Some(1 | 8),
        _ => None,
    }
}

/// Runs the steps against a flat disk.
fn check_script(steps: &[Step], structured: bool) {
    let mut bytes = handshake(structured);
    for (number, step) in steps.iter().enumerate() {
        bytes.extend(request(step, number as u64));
    }
    let (output, is_well, content) = session(&bytes[..], false);
    assert!(is_well);
    let mut output = Output(&output);
    output.skip_handshake();
    let mut disk = vec![0u8; SIZE as usize];
    for (number, step) in steps.iter().enumerate() {
        let (error, data) = output.reply(number as u64, step);
        let end = step.offset + u64::from(step.length);
        let fits = step.command == 3 || end <= SIZE;
        let flags = allowed_flags(step.command, structured);
        let is_right = flags.is_some_and(|flags| step.flags & !flags == 0)
            && fits
            && !(step.command == 7 && step.length == 0)
            && !(step.command == 6 && step.flags & 18 == 18);
        assert_eq!(error == 0, is_right, "{step:?}: error {error}");
        if !is_right {
            continue;
        }
        let (from, to) = (step.offset as usize, end as usize);
        match step.command {
            0 => assert!(data == disk[from..to], "{step:?}"),
            1 => disk[from..to].fill(step.fill),
            4 => {
                let (first, last) = (step.offset.next_multiple_of(4096) as usize, to / 4096 * 4096);
                if first < last {
                    disk[first..last].fill(0);
                }
            }
            6 => disk[from..to].fill(0),
            7 => check_extents(step, &data, &disk),
            _ => {}
        }
    }
    assert!(output.0.is_empty(), "nothing more is output");
    assert!(content == disk);
}

/// Extents of `base:allocation` begin at the request, end near its end, and are zero where they say so.
fn check_extents(step: &Step, data: &[u8], disk: &[u8]) {
    let mut output = Output(data);
    assert_eq!(output.number(4), 1);
    let mut offset = step.offset as usize;
    let mut before = None;
    while !output.0.is_empty() {
        let (length, state) = (output.number(4) as usize, output.number(4));
        assert!(length > 0 && (state == 0 || state == 3) && before != Some(state));
        assert!(state == 0 || disk[offset..offset + length].iter().all(|byte| *byte == 0), "a hole holds nothing");
        offset += length;
        before = Some(state);
    }
    let end = step.offset as usize + step.length as usize;
    assert!(offset <= end && (offset == end || step.flags & 8 != 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_answered_as_a_flat_disk_would(
        steps in prop::collection::vec(step(), 1..40),
        structured in any::<bool>(),
    ) {
        check_script(&steps, structured);
    }

    #[test]
    fn garbage_in_a_session_harms_nothing_but_that_session(
        steps in prop::collection::vec(step(), 0..6),
        structured in any::<bool>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..4),
    ) {
        let mut bytes = handshake(structured);
        for (number, step) in steps.iter().enumerate() {
            bytes.extend(request(step, number as u64));
        }
        for (place, byte, how) in cuts {
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => bytes.truncate(place.max(1)),
            }
        }
        check_session(&bytes);
    }

    #[test]
    fn random_bytes_end_a_session_cleanly(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_session(&bytes);
    }
}

#[test]
fn an_option_that_says_it_has_4_gib_ends_the_connection_at_once() {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend(b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff");
    let (output, is_well, _) = session(&bytes[..], false);
    assert!(!is_well);
    assert!(output.ends_with(b"no option is that long"));
    check_session(&bytes);
}

#[test]
fn a_payload_over_the_maximum_is_taken_and_refused_and_the_next_request_is_served() {
    let mut bytes = handshake(false);
    let long = Step { flags: 0, command: 1, offset: 0, length: (32 << 20) + 1, fill: 7 };
    bytes.extend(request(&long, 1));
    let read = Step { flags: 0, command: 0, offset: 0, length: 4, fill: 0 };
    bytes.extend(request(&read, 2));
    let (output, is_well, _) = session(&bytes[..], false);
    assert!(is_well);
    let mut output = Output(&output);
    output.skip_handshake();
    assert_eq!(output.reply(1, &long).0, 22);
    assert_eq!(output.reply(2, &read), (0, vec![0; 4]));
}

#[test]
fn an_export_by_its_old_option_has_its_size_and_flags_and_124_zeros_unless_refused() {
    for (client_flags, zeros) in [(1u32, 124), (3, 0)] {
        let bytes = [&client_flags.to_be_bytes()[..], &option(1, b"")].concat();
        let (output, is_well, _) = session(&bytes[..], false);
        assert!(is_well);
        assert_eq!(output.len(), 18 + 8 + 2 + zeros);
        assert_eq!(output[18..26], SIZE.to_be_bytes());
    }
    let bytes = [&3u32.to_be_bytes()[..], &option(1, b"other")].concat();
    assert!(!session(&bytes[..], false).1, "there is no other export, and no way to say so");
}

#[test]
fn tls_contexts_before_chunks_and_unknown_options_are_refused_and_the_session_goes_on() {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    for number in [5, 10, 99] {
        bytes.extend(option(number, &[]));
    }
    bytes.extend(option(7, b"\0\0\0\x05other\0\0"));
    bytes.extend(option(2, &[]));
    let (output, is_well, _) = session(&bytes[..], false);
    assert!(is_well);
    let mut output = Output(&output[18..]);
    let mut kinds = Vec::new();
    while !output.0.is_empty() {
        output.take(12);
        kinds.push(output.number(4) as u32);
        let length = output.number(4) as usize;
        output.take(length);
    }
    assert_eq!(kinds, [0x8000_0002, 0x8000_0003, 0x8000_0001, 0x8000_0006, 1]);
}
