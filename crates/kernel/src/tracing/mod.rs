//! Records the kernel's block events in a private instance of tracefs; other users' buffers and settings stay
//! untouched.
//!
//! | file | role |
//! |---|---|
//! | `tracefs` | finds or mounts tracefs |
//! | `format` | the layout of events, as the kernel describes it |
//! | `page` | decodes a page of the ring buffer |
//! | `recorder` | a thread that saves the buffers' pages |
//! | `recording` | the saved events in order of time, and counts of lost ones |

mod format;
mod page;
mod recorder;
mod recording;
mod tracefs;

pub use format::{BlockEvent, EventKind};
pub use recorder::Recorder;
pub use recording::{Events, Losses, Recording};

use crate::{KernelError, failed};
use format::Formats;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracefs::Tracefs;

/// The buffer of each processor: more than a second of 200,000 events of 64 bytes each.
const BUFFER_KIB: u64 = 16 << 10;
/// The limit for all processors' buffers together.
const ALL_BUFFERS_KIB: u64 = 512 << 10;
const PREFIX: &str = "flashpath-";

/// An instance of the kernel's tracing, filtered to some devices.
///
/// Dropping it removes the instance. The instance of a killed process is removed by the next run.
#[derive(Debug)]
pub struct Tracing {
    instance: PathBuf,
    formats: Formats,
    // Dropped after the instance, which needs it.
    _tracefs: Tracefs,
}

impl Tracing {
    /// Makes an instance for the block events of `devices` (major and minor numbers). `directory` is where tracefs is
    /// mounted if it is not mounted already. `buffer_bytes` is the size of each processor's buffer; by default 16 MiB,
    /// less with more than 32 processors.
    ///
    /// Fails without root, without tracefs, and if the kernel has no block events.
    pub fn new(devices: &[(u32, u32)], directory: &Path, buffer_bytes: Option<u64>) -> Result<Tracing, KernelError> {
        let tracefs = Tracefs::find(directory)?;
        let instances = tracefs.path().join("instances");
        remove_forgotten(&instances);
        let instance = instances.join(own_name());
        fs::create_dir(&instance).map_err(failed("make a tracing instance"))?;
        // From here on the guard removes the instance.
        let mut tracing = Tracing { instance, formats: Formats::default(), _tracefs: tracefs };
        tracing.set_up(devices, buffer_bytes)?;
        Ok(tracing)
    }

    fn set_up(&mut self, devices: &[(u32, u32)], buffer_bytes: Option<u64>) -> Result<(), KernelError> {
        self.set("tracing_on", "0")?;
        // The only clock in nanoseconds that is common to all processors.
        self.set("trace_clock", "mono")?;
        let processors = processors(&self.instance)?.len().max(1) as u64;
        let chosen = BUFFER_KIB.min(ALL_BUFFERS_KIB / processors).max(1024);
        let buffer_kib = buffer_bytes.map_or(chosen, |bytes| (bytes >> 10).max(1));
        self.set("buffer_size_kb", &buffer_kib.to_string())?;
        self.formats = Formats::read(&self.instance)?;
        let terms: Vec<String> =
            devices.iter().map(|(major, minor)| format!("dev == {}", format::device_word(*major, *minor))).collect();
        for name in self.formats.names() {
            self.set(&format!("events/block/{name}/filter"), &terms.join(" || "))?;
            self.set(&format!("events/block/{name}/enable"), "1")?;
        }
        Ok(())
    }

    /// Starts recording. `directory` holds the events until they are read.
    pub fn record(&self, directory: &Path) -> Result<Recorder, KernelError> {
        let recorder = Recorder::start(&self.instance, &self.formats, directory)?;
        self.set("tracing_on", "1")?;
        Ok(recorder)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), KernelError> {
        set(&self.instance.join(file), value)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // An instance that remains is switched off, and removed by the next run.
        let _ = set(&self.instance.join("tracing_on"), "0");
        let _ = set(&self.instance.join("events/enable"), "0");
        for _ in 0..100 {
            match fs::remove_dir(&self.instance) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => break,
            }
        }
    }
}

/// Writes a setting of tracefs in one piece.
fn set(file: &Path, value: &str) -> Result<(), KernelError> {
    let doing = || format!("write {value} to {}", file.display());
    let mut setting = fs::OpenOptions::new().write(true).open(file).map_err(failed(doing()))?;
    setting.write_all(value.as_bytes()).map_err(failed(doing()))
}

/// The directories of an instance's processors, in numeric order.
fn processors(instance: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let doing = "read the instance's processors";
    let mut numbered = Vec::new();
    for entry in fs::read_dir(instance.join("per_cpu")).map_err(failed(doing))? {
        let path = entry.map_err(failed(doing))?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix("cpu")?.parse::<u32>().ok());
        numbered.extend(number.map(|number| (number, path)));
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

/// The start time of a process; with its number, it identifies the process even if the number is reused.
fn started(process: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    status.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_string)
}

fn own_name() -> String {
    static MADE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let process = std::process::id();
    let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{PREFIX}{process}-{}-{number}", started(process).unwrap_or_default())
}

/// Removes the instances of dead processes. The kernel refuses to remove one that is in use.
fn remove_forgotten(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let parts = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).map(|rest| rest.split('-'));
        let Some([process, start, _]) = parts.and_then(|parts| <[&str; 3]>::try_from(parts.collect::<Vec<_>>()).ok())
        else {
            continue;
        };
        let Ok(process) = process.parse::<u32>() else { continue };
        if started(process).as_deref() != Some(start) {
            // A remaining instance does no harm.
            let _ = set(&entry.path().join("events/enable"), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}
