//! Properties of any bytes that are read as a trace, of its format or not.

use flashpath::workload::trace::{TraceOptions, TraceReader};
use flashpath::workload::{Action, Operation};
use std::io::Cursor;

/// Reads `data` as a trace in batches of at most `batch_limit`; checks and returns all emitted operations.
pub fn check_trace(data: &[u8], options: &TraceOptions, batch_limit: usize) -> Vec<Operation> {
    let mut all: Vec<Operation> = Vec::new();
    let mut reader = match TraceReader::from_reader("fuzz", Box::new(Cursor::new(data.to_vec())), options) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(error.to_string().contains("fuzz"), "{error}");
            return all;
        }
    };
    let mut devices = 0;
    while let Ok(count) = reader.read_batch(&mut all, batch_limit) {
        assert!(count <= batch_limit);
        if count == 0 {
            break;
        }
    }
    for (number, operation) in all.iter().enumerate() {
        assert_eq!(operation.length_bytes == 0, operation.action == Action::Flush);
        assert!(operation.offset_bytes.checked_add(operation.length_bytes).is_some());
        assert!(operation.device <= devices, "device {} appears before {devices}", operation.device);
        devices = devices.max(operation.device + 1);
        assert!(number == 0 || all[number - 1].time_ns <= operation.time_ns);
    }
    assert!(reader.first_rejected().len() as u64 <= reader.rejected());
    assert!(reader.first_rejected().iter().all(|rejected| !rejected.to_string().is_empty()));
    reader.notes();
    all
}
