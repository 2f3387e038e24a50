//! The figures of real threads on this machine: `ext` in one process, the kernel's ext4, and tmpfs, one after the other.

use super::journals::Journal;
use super::kernel::KernelVolume;
use super::{Load, MOST, THREADS, claims, region_bytes};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Figure, Panel};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs of each measurement, of which the median counts.
const ROUNDS: usize = 3;
/// The size of a volume, sparse.
const VOLUME: u64 = 8 << 30;
/// A file system in RAM.
const RAM: &str = "/dev/shm";

/// The directories of real runs: for the drive and for what is in RAM.
pub struct Bench<'l, 's> {
    lab: &'l Lab<'s>,
    drive: PathBuf,
    ram: PathBuf,
    /// Why the kernel's ext4 is left out.
    no_kernel: Option<String>,
}

impl Drop for Bench<'_, '_> {
    fn drop(&mut self) {
        // Best effort: they are temporary directories.
        let _ = std::fs::remove_dir_all(&self.drive);
        let _ = std::fs::remove_dir_all(&self.ram);
    }
}

impl<'l, 's> Bench<'l, 's> {
    pub fn new(lab: &'l Lab<'s>) -> Result<Bench<'l, 's>, ReproduceError> {
        let name = format!("flashpath-nvm-{}", std::process::id());
        let bench = Bench {
            lab,
            drive: lab.devices().join(&name),
            ram: Path::new(RAM).join(&name),
            no_kernel: KernelVolume::missing(),
        };
        for directory in [&bench.drive, &bench.ram] {
            let cannot = |error| ReproduceError::failed(format!("cannot make {}: {error}", directory.display()));
            std::fs::create_dir_all(directory).map_err(cannot)?;
        }
        Ok(bench)
    }

    pub fn conditions(&self) -> Vec<(String, String)> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let kernel =
            self.no_kernel.as_ref().map(|why| format!("; the kernel's ext4 is left out: {why}")).unwrap_or_default();
        vec![(
            "real threads".to_string(),
            format!(
                "on {cores} processors; medians of {ROUNDS} runs. `ext` runs in one process (`run --in-process`), its drive is an image \
                 in a directory, and its journal in RAM a file in {RAM}, which is mapped for O-JFS. The kernel's ext4 is on a loop \
                 device of an image beside it, with data=journal, its journal inside or on a loop device of a file in {RAM}{kernel}"
            ),
        )]
    }

    /// MiB a second of one of our journals, with further options of `ext` and of the second device.
    pub fn ours(
        &self,
        journal: Journal,
        load: &Load,
        threads: u32,
        options: &str,
        second: &str,
    ) -> Result<Option<f64>, ReproduceError> {
        let (volume, other) = (self.drive.join("volume"), self.ram.join("journal"));
        let bytes = region_bytes(self.lab);
        let path = |sizes: [String; 2]| {
            let drive = format!("conv:timing=off,image={}{}", volume.display(), sizes[0]);
            let options = format!("data=journal{options}");
            match journal {
                Journal::Jfs => format!("ext:{options}/{drive}"),
                Journal::NJfs => format!("ext:{options}/{drive}+conv:timing=off,image={}{}", other.display(), sizes[1]),
                Journal::OJfs => format!("ext:{options}/{drive}+nvm:image={}{}{second}", other.display(), sizes[1]),
            }
        };
        let new = path([format!(",size={VOLUME}"), format!(",size={bytes}")]);
        let new =
            if journal == Journal::Jfs { new.replacen("ext:", &format!("ext:journal-size={bytes},"), 1) } else { new };
        self.median(&format!("{} on {}", load.name, journal.name()), || {
            for file in [&volume, &other] {
                let _ = std::fs::remove_file(file);
            }
            self.lab.call(&["mkfs".to_string(), new.clone()])?;
            let place = ["--in-process".to_string(), "--on".to_string(), path([String::new(), String::new()])];
            self.run(load, threads, &place)
        })
    }

    /// MiB a second in a directory of the system.
    fn in_directory(&self, load: &Load, threads: u32, name: &str, place: &Path) -> Result<f64, ReproduceError> {
        self.lab.progress(&format!("{} on {name}, {threads} threads", load.name));
        self.run(load, threads, &["--in".to_string(), place.display().to_string()])
    }

    fn run(&self, load: &Load, threads: u32, place: &[String]) -> Result<f64, ReproduceError> {
        let expression = format!("{},threads={threads}", (load.expression)(self.lab));
        let arguments = ["run", &expression, "--quiet", "--json", "-", "--seed", &self.lab.seed.to_string()];
        let results = self.lab.call(&[arguments.map(String::from).to_vec(), place.to_vec()].concat())?;
        let results: Value = serde_json::from_str(&results)
            .map_err(|error| ReproduceError::failed(format!("the results of a run are damaged: {error}")))?;
        let throughput = results.pointer("/0/throughput_mib_s").or_else(|| results.pointer("/throughput_mib_s"));
        throughput.and_then(Value::as_f64).ok_or_else(|| ReproduceError::failed("a run has no throughput"))
    }

    fn median(
        &self,
        what: &str,
        measure: impl Fn() -> Result<f64, ReproduceError>,
    ) -> Result<Option<f64>, ReproduceError> {
        self.lab.progress(&format!("{what}, real threads"));
        let mut values = (0..ROUNDS).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
        values.sort_by(f64::total_cmp);
        Ok(Some(values[ROUNDS / 2]))
    }

    /// The kernel's ext4, with its journal in RAM or not.
    fn kernel(&self, load: &Load, threads: u32, is_in_ram: bool) -> Result<Option<f64>, ReproduceError> {
        if self.no_kernel.is_some() {
            return Ok(None);
        }
        self.median(&format!("{} on the kernel's ext4", load.name), || {
            let journal = is_in_ram.then(|| self.ram.join("journal"));
            let volume = KernelVolume::mount(&self.drive, VOLUME, journal.as_deref(), region_bytes(self.lab))?;
            self.run(load, threads, &["--in".to_string(), volume.directory().display().to_string()])
        })
    }

    /// MiB a second by the number of threads.
    pub fn throughput(&self, name: &str, load: &Load) -> Result<Figure, ReproduceError> {
        let mut groups = Vec::new();
        for threads in THREADS {
            let mut values = Vec::new();
            for journal in Journal::ALL {
                values.push(self.ours(journal, load, threads, "", "")?);
            }
            values.push(self.kernel(load, threads, false)?);
            values.push(self.kernel(load, threads, true)?);
            values.push(self.median(&format!("{} on tmpfs", load.name), || {
                let place = self.ram.join("files");
                let _ = std::fs::remove_dir_all(&place);
                std::fs::create_dir(&place)
                    .map_err(|error| ReproduceError::failed(format!("{}: {error}", place.display())))?;
                let measured = self.in_directory(load, threads, "tmpfs", &place);
                let _ = std::fs::remove_dir_all(&place);
                measured
            })?);
            groups.push((threads.to_string(), values));
        }
        let last = groups.last().expect("there are threads").1.clone();
        let because = "two processors: threads of N-JFS that wait for a commit cost nothing, those of O-JFS compute all the time, and \
                       so do its checkpoint threads";
        let mut claims = claims(load, "real threads", [last[0], last[1], last[2]], because);
        if load.place.contains("Figure 4") {
            claims.push(Claim {
                says: format!("{}, real threads, {MOST} threads: O-JFS in MiB/s", load.name),
                place: "not of the paper: 1,400, or 40 % of tmpfs in the same run if that is less".to_string(),
                low: last[5].map(|tmpfs| (0.4 * tmpfs).min(1400.0)),
                high: None,
                ours: last[2],
                because: because.to_string(),
            });
        }
        let names = Journal::ALL.map(|journal| journal.name().to_string()).to_vec();
        let names = [names, ["ext4", "ext4, RAM journal", "tmpfs"].map(String::from).to_vec()].concat();
        let figure = Figure {
            name: name.to_string(),
            title: format!("{}, real threads", load.name),
            unit: "MiB/s".to_string(),
            about: "Bytes that files' calls read and wrote a second of the wall clock.".to_string(),
            panels: vec![Panel::new("", names, groups)],
            claims,
        };
        Ok(figure.over("threads"))
    }
}
