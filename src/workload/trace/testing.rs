//! Shared by the tests of the formats.

use super::{FORMATS, Format, TraceOptions, TraceReader};
use crate::label::Content;
use crate::workload::{Action, Operation};
use std::io::Cursor;

/// An operation on data of device 0.
pub(super) fn operation(time_ns: u64, action: Action, offset_bytes: u64, length_bytes: u64) -> Operation {
    Operation { time_ns, offset_bytes, length_bytes, action, content: Content::Data, stream: 0, device: 0 }
}

pub(super) fn reader_of(bytes: &[u8], options: TraceOptions) -> TraceReader {
    TraceReader::from_reader("sample", Box::new(Cursor::new(bytes.to_vec())), &options).unwrap()
}

/// The operations of a valid sample, read as the format of this name.
pub(super) fn read_sample(bytes: &[u8], format: &str) -> Vec<Operation> {
    read_sample_with(bytes, format, TraceOptions::default())
}

/// As [`read_sample`], with options. Asserts that batches of one and of many give the same.
pub(super) fn read_sample_with(bytes: &[u8], format: &str, options: TraceOptions) -> Vec<Operation> {
    let options = TraceOptions { format: Format::named(FORMATS, format), ..options };
    let [single, many] = [1, 1000].map(|limit| {
        let mut reader = reader_of(bytes, options.clone());
        let mut operations = Vec::new();
        loop {
            let before = operations.len();
            let count = reader.read_batch(&mut operations, limit).unwrap();
            assert!(count <= limit && operations.len() - before == count);
            if count == 0 {
                break;
            }
        }
        assert_eq!(reader.first_rejected(), []);
        operations
    });
    assert_eq!(single, many);
    many
}
