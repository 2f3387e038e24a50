//! Assembles and runs paths: the only room that knows all kinds of stations.
//!
//! [`run()`] is the door to all runs: a [`Job`], which is work in a place, becomes an [`Outcome`]. Below it, [`prepare`] is a
//! path for a block workload of the caller's, and [`run_files`] runs a file workload in a file system of the caller's.
//! [`open_device`] opens a path as a block device, for servers and file systems; [`open_medium`] opens any.
//!
//! | file | role |
//! |---|---|
//! | `stations` | the table of stations |
//! | `drive` | a translation layer on flash in a path |
//! | `path` | parses a path |
//! | `open` | opens the devices of a path |
//! | `file_system` | opens and makes the file system on top of a path |
//! | `watched` | a device of a file system, whose counts the run looks at |
//! | `requests` | the write requests of a file system, merged as a block layer does |
//! | `volume` | makes volumes on images; checks, repairs and describes those of dm-zoned |
//! | `stored_volume` | checks, repairs and describes volumes of file systems on images |
//! | `labelling` | labels the writes of a file system by reading its metadata |
//! | `fill` | how much is written before a run counts |
//! | `tenants` | queues of several tenants of a device |
//! | `engine` | fill, precondition, and the counted run of a block workload |
//! | `backend` | the backends of the engine |
//! | `blocks` | splits ranges of bytes into blocks |
//! | `logging` | the log of requests: a row for each, with its waits |
//! | `latency_waits` | what the latencies at each percentile are made of |
//! | `pace`, `steady` | issue times; the steady state of a run |
//! | `windows`, `window_latency` | windows of a run, and their latencies |
//! | `outcome` | the outcome of a run: the only place that makes results |
//! | `accounts` | ledger, wear and sums, computed from the stations' accounts |
//! | `lifetime` | lifetimes in bytes of applications, and at a rate |
//! | `maps` | maps of erase blocks, zones and segments |
//! | `error` | errors of a run, by their fault |
//! | `work` | the work of a run, its place and its options |
//! | `job` | the door: runs work in a place |
//! | `fit` | checks that work and options fit their place |
//! | `memory` | the memory that a run takes, estimated |
//! | `machine` | what a run needs of this machine: a clock, and mounts |
//! | `in_directory`, `on_kernel` | a run in a directory; in a file system of the kernel |
//! | `plausible` | warnings of a path and a workload that do not go together |
//! | `in_files` | the outcome of a run in the files of a file system |
//! | `threads` | the threads of a simulated run: coroutines, and which goes next |
//! | `files`, `disk_file` | file workloads; a block workload in a file |
//! | `in_volume`, `dummy` | a file workload in a volume in this process; what takes space in it beside |

mod accounts;
mod backend;
mod blocks;
mod disk_file;
mod drive;
mod dummy;
mod energy;
mod engine;
mod error;
mod file_system;
mod files;
mod fill;
mod fit;
mod future;
mod in_directory;
mod in_files;
mod in_process;
mod in_volume;
mod job;
mod labelling;
mod latency_waits;
mod lifetime;
mod logging;
mod machine;
mod maps;
mod memory;
mod on_kernel;
mod open;
mod outcome;
mod pace;
mod path;
mod plausible;
mod requests;
pub mod shared;
mod stations;
mod steady;
mod stored_volume;
mod tenants;
mod threads;
mod volume;
mod watched;
mod window_latency;
mod windows;
mod work;

pub use crate::device::nand::errors::Age;
pub use crate::device::station::Payload;
pub use disk_file::{DISK_FILE, DiskFile};
pub use drive::DriveSettings;
pub use engine::{Options, Progress, Replay};
pub use error::{InputFault, OpenError, RunError, RunFault, SetupFault};
pub use file_system::{Owner, is_in_memory, open_file_system, set_owner, simulated_file_system, simulated_space};
pub use files::{FileRun, FilesRun, Part, Threads, WhatIsStored, run_files};
pub use fill::Fill;
pub use job::run;
pub use labelling::Labelling;
pub use logging::Logging;
pub use machine::{Machine, MountedPath, NoMachine};
pub use memory::memory_bytes;
use open::open_medium_recorded;
pub use open::{open_device, open_device_counted, open_medium};
pub use outcome::Outcome;
pub use path::Path;
pub use requests::MAX_REQUEST_BYTES;
pub use stations::{Below, FileSystemSettings, ReadDevice, ReadVolume, STATIONS, Station, names_offering};
pub use stored_volume::{
    check_file_system, inspect_file_system, mark_lost_changes, recover_file_system, repair_file_system,
};
pub use threads::ThreadsFault;
pub use volume::{check_volume, make_volume, repair_volume, survey_volume};
pub use windows::WindowsReport;
pub use work::{BlockWork, Job, OpenBlocks, Place, ProgramWork, RunOptions, Work};

use crate::device::wait_log::WaitLog;
use crate::device::{BlockDevice, Medium, ZonedDevice};
use crate::fs::sfs::{OpenSfsError, SfsSettings};
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use crate::workload::Workload;
pub use backend::FileShape;
use backend::{Backend, DeviceBackend, SfsBackend, VolumeBackend, ZonesBackend};
use file_system::{failed_call, simulated_and_watched, simulated_sfs};

/// A path that is ready to run.
pub struct Prepared<'a> {
    path: &'a Path,
    seed: u64,
    driven: Driven<'a>,
}

/// The part of a path that exists before the run.
enum Driven<'a> {
    /// None: a drive is made by its run.
    Drive(&'a DriveSettings),
    /// A device.
    Device(Box<dyn BlockDevice>),
    /// Zones.
    Zones(Box<dyn ZonedDevice>),
    /// A file in a volume of sfs.
    Sfs(Box<SfsBackend>),
    /// A file in another volume.
    Volume(Box<VolumeBackend>),
}

/// Prepares a path: its devices are new, except for images. `seed` is that of their random choices.
///
/// Fails as [`open_device`] does, and if a file system of the kernel is on top.
pub fn prepare(path: &Path, seed: u64) -> Result<Prepared<'_>, OpenError> {
    check_future_is_not_needed(path)?;
    prepare_recorded(path, seed, None)
}

/// Refuses a file system that needs to know the future of its blocks: only [`run`] tells it.
fn check_future_is_not_needed(path: &Path) -> Result<(), OpenError> {
    match path.settings::<SfsSettings>() {
        Some(sfs) if sfs.grouping.needs_future() => Err(file_system::failed(path)(OpenSfsError::Future.into())),
        _ => Ok(()),
    }
}

/// The same; the devices record the waits of their operations, if there is a log.
fn prepare_recorded<'p>(path: &'p Path, seed: u64, waits: Option<&WaitLog>) -> Result<Prepared<'p>, OpenError> {
    if path.kernel().is_some() {
        return Err(OpenError::NeedsKernel(path.text.clone()));
    }
    let driven = match (path.volume_settings(), path.drive()) {
        (Some(_), _) => return prepare_file_recorded(path, seed, FileShape::default(), waits, MAX_REQUEST_BYTES),
        (None, Some(drive)) => Driven::Drive(drive),
        (None, None) => match open_medium_recorded(path, Payload::Stamps, seed, waits)? {
            Medium::Zones(zones) => Driven::Zones(zones),
            medium => Driven::Device(open::block_device(path, medium)?),
        },
    };
    Ok(Prepared { path, seed, driven })
}

/// Prepares a path with a file system on top for a block workload in a file of this shape. The devices record the waits
/// of their operations, if there is a log; its write requests are merged up to `max_request` bytes.
fn prepare_file_recorded<'p>(
    path: &'p Path,
    seed: u64,
    shape: FileShape,
    waits: Option<&WaitLog>,
    max_request: u64,
) -> Result<Prepared<'p>, OpenError> {
    let task = &Task::at(Time::ZERO);
    let driven = match simulated_sfs(task, path, seed, waits, max_request)? {
        Some(sfs) => SfsBackend::new(task, sfs, shape).map(|file| Driven::Sfs(Box::new(file))),
        None => VolumeBackend::new(task, simulated_and_watched(path, seed, waits, max_request)?.0, shape)
            .map(|file| Driven::Volume(Box::new(file))),
    };
    Ok(Prepared { path, seed, driven: driven.map_err(failed_call(path))? })
}

impl<'a> Prepared<'a> {
    /// Runs a path on a device of the caller, such as a wrapper around the path's own.
    pub fn with_device(path: &'a Path, device: Box<dyn BlockDevice>, seed: u64) -> Prepared<'a> {
        Prepared { path, seed, driven: Driven::Device(device) }
    }

    /// The exported bytes of the path.
    pub fn exported_bytes(&self) -> u64 {
        match &self.driven {
            Driven::Drive(drive) => drive.exported_bytes(),
            Driven::Device(device) => device.blocks() * BLOCK_BYTES,
            Driven::Zones(device) => {
                let shape = device.shape();
                u64::from(shape.zones) * shape.zone_blocks * BLOCK_BYTES
            }
            Driven::Sfs(file) => file.exported_bytes(),
            Driven::Volume(file) => file.exported_bytes(),
        }
    }

    /// True if the path places blocks by writes that are still to come.
    fn needs_future(&self) -> bool {
        matches!(&self.driven, Driven::Sfs(file) if file.needs_future())
    }

    /// Tells the path the future: all requests of a workload that was opened for its exported bytes, after a fill or not.
    fn foresee(&mut self, workload: &mut dyn Workload, fill: Fill) -> Result<(), RunError> {
        match &mut self.driven {
            Driven::Sfs(file) => file.foresee(workload, fill),
            _ => Ok(()),
        }
    }

    /// True if the path has a timing model.
    pub fn is_timed(&self) -> bool {
        match &self.driven {
            Driven::Drive(drive) => drive.nand.latencies.is_some(),
            Driven::Device(device) => device.is_timed(),
            Driven::Zones(device) => device.is_timed(),
            Driven::Sfs(file) => file.is_timed(),
            Driven::Volume(file) => file.is_timed(),
        }
    }

    /// Runs `workload`, which was opened for the exported bytes of the path. `watch` is called regularly, and returns
    /// false to end the run.
    pub fn run(
        self,
        workload: &mut dyn Workload,
        options: &Options,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Outcome {
        let Prepared { path, seed, driven } = self;
        let simulation = EngineRun { path, seed, workload, options, watch };
        match driven {
            Driven::Drive(drive) => drive.run(options.verify, simulation),
            Driven::Device(device) => simulation.run(DeviceBackend::new(device)),
            Driven::Zones(device) => simulation.run(ZonesBackend::new(device)),
            Driven::Sfs(file) => simulation.run(*file),
            Driven::Volume(file) => simulation.run(*file),
        }
    }
}

/// The parameters of an engine run besides its backend.
struct EngineRun<'a> {
    path: &'a Path,
    seed: u64,
    workload: &'a mut dyn Workload,
    options: &'a Options,
    watch: &'a mut dyn FnMut(&Progress) -> bool,
}

impl EngineRun<'_> {
    fn run<T: Backend>(self, backend: T) -> Outcome {
        let (run, ended) = engine::drive(backend, self.workload, self.options, self.watch);
        outcome::conclude(self.path.named(), run, self.workload, self.options, ended)
    }
}
