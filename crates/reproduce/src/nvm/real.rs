//! Runs in real time with threads of the system: a volume in this process, ext4 of the kernel, and tmpfs.
//!
//! The volume's file is in the directory of the devices, the same for all; that of a journal in memory is in the memory of
//! the system. Every run begins with new files.

use super::journals::{Journal, Sizes, Stack};
use super::kernel::{KernelJournal, in_ext4};
use super::measured::Measured;
use super::scratch::{Scratch, file_system_of, memory};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::fs::kernel::KernelSettings;
use flashpath::run::{Machine, MountedPath, NoMachine, Path as StationPath, Place, RunError, make_volume};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Runs of which the median counts.
pub const RUNS: usize = 5;

/// A system below a workload.
#[derive(Clone, Copy, Debug)]
pub enum System<'a> {
    /// A volume of `ext` in this process.
    Ours(Stack<'a>),
    /// ext4 of the kernel.
    Kernel(KernelJournal),
    /// The memory of the system as a directory: what stores nothing durably.
    Tmpfs,
}

impl System<'_> {
    /// The paper's three journals, and what is beside them.
    pub const ALL: [System<'static>; 7] = [
        System::Ours(Stack::of(Journal::Jfs)),
        System::Ours(Stack::of(Journal::NJfs)),
        System::Ours(Stack::of(Journal::OJfs)),
        System::Ours(Stack::of(Journal::Ours)),
        System::Kernel(KernelJournal::Inline),
        System::Kernel(KernelJournal::Memory),
        System::Tmpfs,
    ];
    /// Their names, in this order.
    pub const NAMES: [&'static str; 7] =
        ["JFS", "N-JFS", "O-JFS", "O-JFS, our scheme", "ext4", "ext4, journal in RAM", "tmpfs"];
}

/// The clock of this machine.
struct Clock(Instant);

impl Machine for Clock {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn mount(
        &self,
        path: &StationPath,
        settings: &KernelSettings,
        seed: u64,
        max_request: u64,
    ) -> Result<Box<dyn MountedPath>, RunError> {
        NoMachine.mount(path, settings, seed, max_request)
    }
}

/// The place of real runs.
pub struct RealPlace<'l> {
    pub lab: &'l Lab<'l>,
    sizes: Sizes,
    drive: PathBuf,
    /// `None` if the system has no tmpfs where it is expected.
    memory: Option<&'static Path>,
    /// Systems that are not measured, with the reasons.
    missing: RefCell<Vec<String>>,
}

impl<'l> RealPlace<'l> {
    /// The drive is in the directory of the devices: with one in memory, a journal on it would cost no flushes.
    pub fn new(lab: &'l Lab<'l>) -> Result<RealPlace<'l>, ReproduceError> {
        let memory = memory();
        let drive = lab.devices().map_or_else(std::env::temp_dir, Path::to_path_buf);
        let missing = RefCell::default();
        Ok(RealPlace { lab, sizes: Sizes::in_real_time(lab), drive, memory, missing })
    }

    /// The conditions of the runs: what the files are on, and what is not measured.
    pub fn into_notes(self) -> Vec<(String, String)> {
        let in_memory = match self.memory {
            Some(_) => "tmpfs",
            None => "the same directory",
        };
        let drive = format!(
            "the file of every volume is on {}, and that of a journal in memory on {in_memory}; ext4 has both through loop \
             devices, and is mounted with data=journal,noatime",
            file_system_of(&self.drive)
        );
        let missing = self.missing.into_inner();
        let left_out = (!missing.is_empty()).then(|| ("not measured".to_string(), missing.join("; ")));
        std::iter::once(("real drive".to_string(), drive)).chain(left_out).collect()
    }

    /// Runs a workload in each system, [`RUNS`] times in turn, and returns the medians with their ranges. A system that cannot run here has
    /// none.
    pub fn measure(&self, systems: &[System<'_>], expression: &str) -> Result<Vec<Option<Measured>>, ReproduceError> {
        let mut runs: Vec<Vec<Measured>> = systems.iter().map(|_| Vec::new()).collect();
        // In turn, so that other work on the machine meets all of them.
        for _ in 0..RUNS {
            for (system, runs) in systems.iter().zip(&mut runs) {
                runs.extend(self.run(system, expression)?);
            }
        }
        Ok(runs.into_iter().map(Measured::median).collect())
    }

    fn run(&self, system: &System<'_>, expression: &str) -> Result<Option<Measured>, ReproduceError> {
        let drive = Scratch::new(&self.drive)?;
        let memory = Scratch::new(self.memory.unwrap_or(&self.drive))?;
        match system {
            System::Ours(stack) => {
                let text = stack.on_files(&self.sizes, &drive, &memory);
                let path = match StationPath::read(&text) {
                    Ok(path) => path,
                    // An instruction that this processor lacks.
                    Err(error) if stack.memory.starts_with("persist=") => {
                        self.leave_out(format!("{}: {error}", stack.memory));
                        return Ok(None);
                    }
                    Err(error) => return Err(error.into()),
                };
                make_volume(&path, false, self.lab.seed, 0, None)?;
                self.run_in(Place::InProcess(&path), expression)
            }
            System::Kernel(journal) => {
                let lab = self.lab;
                let work = |directory: &Path| measured_in(lab, Place::Directory(directory), expression);
                match in_ext4(*journal, &self.sizes, (drive.path(), memory.path()), work)? {
                    Ok(measured) => Ok(measured),
                    Err(why) => {
                        self.leave_out(format!("ext4 of the kernel: {why}"));
                        Ok(None)
                    }
                }
            }
            System::Tmpfs if self.memory.is_none() => {
                self.leave_out("tmpfs: /dev/shm is none".to_string());
                Ok(None)
            }
            System::Tmpfs => self.run_in(Place::Directory(memory.path()), expression),
        }
    }

    fn run_in(&self, place: Place<'_>, expression: &str) -> Result<Option<Measured>, ReproduceError> {
        measured_in(self.lab, place, expression)
    }

    fn leave_out(&self, what: String) {
        let mut missing = self.missing.borrow_mut();
        if !missing.contains(&what) {
            self.lab.progress(&format!("not measured: {what}"));
            missing.push(what);
        }
    }
}

fn measured_in(lab: &Lab, place: Place<'_>, expression: &str) -> Result<Option<Measured>, ReproduceError> {
    Ok(Measured::of(lab.run_files(place, expression, &Clock(Instant::now()))?))
}
