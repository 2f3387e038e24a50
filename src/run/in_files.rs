//! The outcome of a run in the files of a file system: its operations, and the counts of the stations.

use super::accounts::{row, rows};
use super::files::FilesRun;
use super::outcome::{Measured, Outcome, PathName, transferred_mib};
use super::path::Path;
use crate::device::Account;
use crate::label::{Content, Label};
use crate::report::{Latencies, LedgerRow};
use crate::task::CpuTable;
use crate::units::BLOCK_BYTES;

/// The place of a run in files.
pub(super) enum FilesPlace<'a> {
    /// The file system on top of a path.
    Path {
        /// The path.
        path: &'a Path,
        /// The accounts at the start of the count and after the write-back: those of the device below a file system of
        /// the kernel, or of the volume itself.
        accounts: (&'a Account, &'a Account),
        /// Bytes that the device, or the volume, has for files.
        exported_bytes: u64,
        /// The CPU time that counted as simulated time; `None` if nothing was simulated.
        cpu: Option<CpuTable>,
    },
    /// A directory of this machine, by its name. Nothing is known of what lies below.
    Directory(&'a str),
}

impl Outcome {
    /// The outcome of a run in files. In a file system of the kernel and in a directory nothing is simulated: latencies
    /// and throughput are those of the wall clock.
    pub(super) fn in_files(place: FilesPlace<'_>, seed: u64, done: FilesRun) -> Outcome {
        let seconds = Some(done.seconds).filter(|seconds| *seconds > 0.0);
        let written = done.workload.written_blocks as f64;
        let asked = (written > 0.0).then(|| row("workload", Label::host(Content::Data), written));
        let (has_latencies, moved_mib) = (done.files.is_some(), place.moved_mib(&done));
        let measured = Measured {
            seed,
            above: asked.into_iter().chain(place.sent_by_the_kernel()).collect(),
            written: None,
            exported_bytes: place.exported_bytes(),
            seconds_simulated: seconds.filter(|_| place.cpu().is_some()),
            throughput_mib_s: seconds.and_then(|seconds| Some(moved_mib? / seconds)),
            latency_ns: seconds.filter(|_| has_latencies).map(|_| Latencies::of_classes(done.latency_ns)),
            windows: done.windows,
            is_of_engine: false,
            steady: None,
            warnings: done.warnings,
            options: done.options,
            files: done.files,
            cpu: place.cpu().cloned(),
            interrupted: done.interrupted,
            failure: done.failure,
            cache: None,
            tenants: Vec::new(),
            workload: done.workload,
        };
        match place {
            FilesPlace::Directory(name) => Outcome::of(PathName { path: name, in_full: name }, measured, None),
            FilesPlace::Path { path, accounts, .. } => Outcome::of(path.named(), measured, Some(accounts)),
        }
    }
}

impl FilesPlace<'_> {
    /// MiB read and written; `None` if they are not known. The devices of a path move whole blocks.
    fn moved_mib(&self, done: &FilesRun) -> Option<f64> {
        match (self, &done.files) {
            (FilesPlace::Directory(_), Some(files)) => {
                Some((files.bytes.read + files.bytes.written) as f64 / (1 << 20) as f64)
            }
            _ => Some(transferred_mib(&done.workload)).filter(|mib| *mib > 0.0),
        }
    }

    /// The blocks that a file system of the kernel sent: those that the device below it received. Other file systems have
    /// accounts of their own.
    fn sent_by_the_kernel(&self) -> Vec<LedgerRow> {
        let FilesPlace::Path { path, accounts: (before, after), .. } = self else { return Vec::new() };
        let Some(settings) = path.kernel() else { return Vec::new() };
        rows(settings.file_system.station(), &after.received.since(&before.received), BLOCK_BYTES).collect()
    }

    fn exported_bytes(&self) -> u64 {
        match self {
            FilesPlace::Path { exported_bytes, .. } => *exported_bytes,
            FilesPlace::Directory(_) => 0,
        }
    }

    fn cpu(&self) -> Option<&CpuTable> {
        match self {
            FilesPlace::Path { cpu, .. } => cpu.as_ref(),
            FilesPlace::Directory(_) => None,
        }
    }
}
