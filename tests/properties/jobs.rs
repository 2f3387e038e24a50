//! Properties of any text that is parsed as a fio job file.

use flashpath::workload::Action;
use flashpath::workload::fio_job::fio_job_text;

/// Parses `text` for a device of `device_bytes`: an error names the file, and requests lie on the device. Checks at
/// least `operations`, if there are that many.
pub fn check_job(text: &str, device_bytes: u64, seed: u64, operations: usize) {
    let mut workload = match fio_job_text("x.fio", text, device_bytes, seed) {
        Err(error) => {
            assert!(error.to_string().starts_with("x.fio:"), "{error}");
            return;
        }
        Ok(workload) => workload,
    };
    let mut batch = Vec::new();
    while batch.len() < operations && workload.next_batch(&mut batch, operations / 4).unwrap() > 0 {
        let progress = workload.progress().expect("a job file's progress is known");
        assert!((0.0..=1.0).contains(&progress), "{progress}");
    }
    assert!(!batch.is_empty());
    for operation in &batch {
        assert!(operation.action == Action::Flush || operation.length_bytes >= 512, "{operation:?}");
        let end = operation.offset_bytes.checked_add(operation.length_bytes);
        assert!(end.is_some_and(|end| end <= device_bytes), "{operation:?} leaves {device_bytes} bytes");
    }
    assert!(workload.queue_depth().is_none_or(|depth| depth > 0));
    workload.warnings();
}
