//! The traces of a sweep, each decoded once for all runs.

use crate::error::SweepError;
use flashpath::run::RunError;
use flashpath::workload::WorkloadError;
use flashpath::workload::trace::{DecodedTrace, TraceOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Decoded traces, by file and device.
pub struct Traces {
    decoded: Vec<(PathBuf, Option<u32>, Arc<DecodedTrace>)>,
}

impl Traces {
    /// Decodes the traces in these files, each with its name in messages if it has one, for each of these devices, into
    /// temporary files. `reading` has the other options.
    ///
    /// Fails if one has no operation, or the temporary directory has no room.
    pub(crate) fn decode(
        files: &[(&Path, Option<&str>)],
        devices: &[Option<u32>],
        reading: &TraceOptions,
    ) -> Result<Traces, SweepError> {
        let mut decoded: Vec<(PathBuf, Option<u32>, Arc<DecodedTrace>)> = Vec::new();
        for (file, name) in files.iter().copied() {
            for device in devices.iter().copied() {
                if decoded.iter().any(|(known, of, _)| known == file && *of == device) {
                    continue;
                }
                let name = name.map(str::to_string);
                let options = TraceOptions { device, name, ..reading.clone() };
                let records = tempfile::tempfile().map_err(|source| WorkloadError::Read {
                    file: std::env::temp_dir().display().to_string(),
                    source,
                })?;
                let trace = DecodedTrace::decode(file, options, records)?;
                decoded.push((file.to_path_buf(), device, Arc::new(trace)));
            }
        }
        Ok(Traces { decoded })
    }

    /// The trace of this file and device.
    pub(crate) fn decoded(&self, file: &Path, device: Option<u32>) -> Result<&Arc<DecodedTrace>, RunError> {
        let found = self.decoded.iter().find(|(known, of, _)| known == file && *of == device);
        Ok(&found.expect("all traces of the plan were decoded").2)
    }
}
