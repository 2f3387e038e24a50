//! A guest whose file system is `ext` of this program: a workload runs in it in simulated time, and what reaches its device
//! is recorded, as `flashpath capture` does with the kernel's.
//!
//! | file | what it is |
//! |---|---|
//! | `recorded` | a device whose writes are recorded |
//! | `pulsed` | files that are synced behind every so many calls |

mod pulsed;
mod recorded;

use crate::ReproduceError;
use flashpath::device::{Medium, OwnMonitor};
use flashpath::expression::parse_term;
use flashpath::fs::FileSystem;
use flashpath::fs::in_process::InProcess;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, Volume};
use flashpath::run::{FileRun, Part, Path, Payload, Threads, open_device, run_files};
use flashpath::task::{CpuTable, Task};
use flashpath::time::Time;
use flashpath::workload::Operation;
use flashpath::workload::files::file_workload;
use pulsed::Pulsed;
use recorded::Recorded;
use std::sync::Arc;

/// A guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The file system, such as `ext:data=journal,journal-size=32M`.
    pub file_system: String,
    /// The size of its device.
    pub size_bytes: u64,
    /// The workload.
    pub expression: String,
    /// The setup of the workload is done before the recording, in a mount of its own.
    pub has_setup: bool,
    /// A monitor keeps the memory of its file system.
    pub has_monitor: bool,
    /// The seed of the workload.
    pub seed: u64,
}

/// The recording of a guest.
pub struct Recording {
    /// In the order of their times.
    pub operations: Vec<Operation>,
    /// The calls of the workload.
    pub calls: u64,
    /// Simulated seconds of the workload and the sync at its end.
    pub seconds: f64,
}

impl Guest {
    /// Makes the volume, runs the workload in it, and unmounts it. Its files are synced behind every `every` calls.
    /// `watch` is called regularly, and returns false to end the run.
    pub fn record(&self, every: Option<u64>, watch: &dyn Fn() -> bool) -> Result<Recording, ReproduceError> {
        let device = format!("conv:size={}", self.size_bytes);
        let path = Path::read(&format!("{}/{device}", self.file_system))?;
        let on = Recorded::new(open_device(&Path::read(&device)?, Payload::Bytes, self.seed)?);
        let settings = path.volume_settings().expect("a guest has a file system");
        let failed = |error: String| ReproduceError::failed(format!("{}: {error}", path.text));
        let mounting = Mounting::at(self.seed, 0);
        let monitor = self.has_monitor.then(OwnMonitor::new);
        let media = || {
            let monitor = monitor.iter().map(|monitor| Medium::Monitor(Arc::new(monitor.clone())));
            [Medium::Blocks(Box::new(on.clone()))].into_iter().chain(monitor).collect()
        };
        let mut volume = settings.create(media(), &mounting).map_err(|fault| failed(fault.to_string()))?;
        let mut begin = Time::ZERO;
        if self.has_setup {
            begin = self.run(volume, Part::Setup, None, begin, watch)?.0;
            let stored = settings.stored().expect("ext stores its volumes");
            volume = stored.open(media(), &mounting, Access::IfWhole).map_err(|fault| failed(fault.to_string()))?;
        }
        // What mkfs and mount write is not recorded.
        on.begin();
        let part = if self.has_setup { Part::Counted } else { Part::Whole };
        let (end, calls) = self.run(volume, part, every, begin, watch)?;
        let mut operations = on.end();
        operations.sort_by_key(|operation| operation.time_ns);
        Ok(Recording { operations, calls, seconds: end.since_ns(begin) as f64 / 1e9 })
    }

    /// Runs a part of the workload from `begin` on, and unmounts the volume. Returns when that has ended, and the calls.
    fn run(
        &self,
        volume: Arc<dyn Volume>,
        part: Part,
        every: Option<u64>,
        begin: Time,
        watch: &dyn Fn() -> bool,
    ) -> Result<(Time, u64), ReproduceError> {
        let failed =
            |error: String| ReproduceError::failed(format!("{} in {}: {error}", self.expression, self.file_system));
        let workload = file_workload(&parse_term(&self.expression)?, self.seed)?;
        let in_process = InProcess::new(Arc::clone(&volume));
        let begin = begin.max(in_process.now());
        let files = Pulsed::new(in_process, every);
        let cpu = CpuTable::default();
        let run = FileRun {
            stored: None,
            limit: None,
            log: None,
            part,
            threads: Threads::Simulated { begin, costs: &cpu.costs },
            begin_counting: &|_| {},
        };
        let done = run_files(&files, workload, &run, &mut |_| watch());
        if let Some(error) = done.failure {
            return Err(failed(error.to_string()));
        }
        if done.interrupted {
            return Err(ReproduceError::Stopped);
        }
        let task = Task::at(files.now());
        files.sync(&task).map_err(|error| failed(error.to_string()))?;
        let calls = files.calls();
        drop(files);
        volume.unmount(&Call::by_root(&task)).map_err(|error| failed(error.to_string()))?;
        Ok((task.now(), calls))
    }
}
