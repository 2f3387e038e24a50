//! The traces of a sweep, each decoded once for all runs.

use crate::error::SweepError;
use flashpath::run::RunError;
use flashpath::workload::WorkloadError;
use flashpath::workload::trace::{DecodedTrace, TraceOptions};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Decoded traces, by file and device.
pub struct Traces {
    decoded: Vec<(PathBuf, Option<u32>, Arc<DecodedTrace>)>,
}

/// A file for records, which nobody else has.
fn temporary() -> Result<File, WorkloadError> {
    tempfile::tempfile()
        .map_err(|source| WorkloadError::Read { file: std::env::temp_dir().display().to_string(), source })
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
        let distinct: BTreeSet<Option<u32>> = devices.iter().copied().collect();
        let are_all_devices = distinct.len() > 1 && !distinct.contains(&None);
        for (file, name) in files.iter().copied() {
            if are_all_devices {
                // One pass, however many devices there are.
                let options = TraceOptions { name: name.map(str::to_string), ..reading.clone() };
                let of_devices = DecodedTrace::decode_devices(file, &options, temporary()?)?;
                let of_devices =
                    of_devices.into_iter().zip(0..).filter_map(|(trace, device)| Some((Some(device), trace?)));
                let wanted = of_devices.filter(|(device, _)| distinct.contains(device));
                decoded.extend(wanted.map(|(device, trace)| (file.to_path_buf(), device, Arc::new(trace))));
                // The error of a device without operations names those that there are.
                if let Some(missing) =
                    distinct.iter().find(|device| !decoded.iter().any(|(known, of, _)| known == file && of == *device))
                {
                    let options = TraceOptions { device: *missing, ..options };
                    DecodedTrace::decode(file, options, temporary()?)?;
                }
                continue;
            }
            for device in devices.iter().copied() {
                if decoded.iter().any(|(known, of, _)| known == file && *of == device) {
                    continue;
                }
                let name = name.map(str::to_string);
                let options = TraceOptions { device, name, ..reading.clone() };
                let trace = DecodedTrace::decode(file, options, temporary()?)?;
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
