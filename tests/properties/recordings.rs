//! Properties of any bytes that are read as a recording of calls.

use flashpath::workload::files::FileOperation;
use flashpath::workload::files::recorded::{RecordedCalls, Replays};

/// The most steps of one lane that are looked at.
const MOST_STEPS: usize = 100_000;

/// Reads `data` as a recording. One that is accepted ends: whatever the lanes wait for comes, and each operation has a path. Returns the
/// number of operations; `None` if it is refused, with the place if it has a header.
pub fn check_recording(data: &[u8]) -> Option<usize> {
    let calls = match RecordedCalls::read(data, "fuzz".to_string()) {
        Ok(calls) => calls,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let repeated = calls.workload(1, Replays { uncounted: 1, counted: 1 });
    let mut workload = repeated.or_else(|_| calls.workload(1, Replays::ONCE)).expect("one replay needs no more");
    let mut made = 0;
    for stage in 0..workload.stages.len() {
        let mut going: Vec<bool> = vec![true; workload.lanes.len()];
        let mut idle = 0;
        while going.contains(&true) {
            for (lane, goes) in workload.lanes.iter_mut().zip(&mut going).filter(|(_, goes)| **goes) {
                let mut operations = Vec::new();
                *goes = lane.step(stage, &mut operations).expect("a recording is read before");
                for operation in operations {
                    if let FileOperation::Idle { .. } = operation {
                        idle += 1;
                        continue;
                    }
                    (made, idle) = (made + 1, 0);
                    if let FileOperation::Create(name) | FileOperation::Open(name) | FileOperation::Unlink(name) =
                        operation
                    {
                        let mut path = String::new();
                        lane.write_path(name, &mut path);
                        assert!(path.starts_with("recorded/") && path.len() < 4096, "{path}");
                    }
                }
            }
            assert!(idle < MOST_STEPS, "lanes wait for each other");
        }
    }
    Some(made)
}
