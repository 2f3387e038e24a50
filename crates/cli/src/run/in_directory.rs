//! `flashpath run --in DIR`: a workload in a real directory.

use crate::failure::Failure;
use crate::progress::Bars;
use crate::run::Run;
use crate::workload::Source;
use flashpath::fs::directory::Directory;
use flashpath::run::{DiskFile, FileRun, FilesPlace, FilesRun, Outcome, Part, Threads, run_files};
use flashpath::workload::files::{FileWorkload, file_workload};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs the workload in the directory.
pub fn run(command: &Run, place: &Path, source: &Source, stop: &AtomicBool) -> Result<Outcome, Failure> {
    let opened = open(command, source, command.size)?;
    let directory = Directory::open(place).map_err(|error| {
        Failure::input(error.to_string(), Some("make the directory, or mount the file system, first".to_string()))
    })?;
    let (name, began) = (place.display().to_string(), Instant::now());
    let done = run_opened(command, &directory, opened, &name, stop);
    let mut outcome = Outcome::in_files(FilesPlace::Directory(&name), command.seed, done);
    outcome.result.seconds_wall = began.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Runs an opened workload in a directory, with a progress bar of this title.
pub fn run_opened(command: &Run, directory: &Directory, opened: Opened, title: &str, stop: &AtomicBool) -> FilesRun {
    let began = Instant::now();
    let clock = || began.elapsed().as_nanos() as u64;
    let run = FileRun {
        limit: command.limit,
        part: command.only.unwrap_or_default(),
        begin_counting: &|_| {},
        threads: Threads::System(&clock),
    };
    let mut bar = Bars::new(command.quiet).add(title);
    let mut done = run_files(directory, opened.workload, &run, &mut |progress| {
        bar.show(progress);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish();
    done.options.extend(opened.arguments);
    done.warnings.extend(opened.warning);
    done
}

/// An opened workload.
pub struct Opened {
    pub workload: FileWorkload,
    /// The command-line options to repeat it.
    pub arguments: Vec<String>,
    pub warning: Option<String>,
}

/// Opens the workload; a block workload on a disk of `disk_bytes`.
pub fn open(command: &Run, source: &Source, disk_bytes: Option<u64>) -> Result<Opened, Failure> {
    if let Source::Shell(_) = source {
        let help = "use --on kernel-ext4/PATH".to_string();
        return Err(Failure::input("a command needs a path with a kernel file system", Some(help)));
    }
    if let Source::Files(term) = source {
        for (given, option, instead) in [
            (command.size.is_some(), "--size", "set the size by an option of the workload, such as files="),
            (command.fsync_every.is_some(), "--fsync-every", "seq_write and rnd_write have an option fsync-every="),
            (command.fill, "--fill", "leave it out: a file workload creates its files itself"),
        ] {
            if given {
                let message = format!("{option} is for block workloads, and {} is a file workload", term.name.text);
                return Err(Failure::input(message, Some(instead.to_string())));
            }
        }
        if command.only == Some(Part::Setup) && command.limit.is_some() {
            let help = "leave --limit out, or use it with --only counted".to_string();
            return Err(Failure::input(
                "--limit has no meaning with --only setup: it limits the counted operations",
                Some(help),
            ));
        }
        let workload = file_workload(term, command.seed)?;
        return Ok(Opened { workload, arguments: Vec::new(), warning: None });
    }
    if command.only.is_some() {
        let message = format!("--only is for file workloads, and {} is a block workload", command.workload);
        let help = "leave it out: a block workload and its disk are one run".to_string();
        return Err(Failure::input(message, Some(help)));
    }
    let Some(size_bytes) = disk_bytes else {
        let message = format!("{} is a block workload: --in needs the size of its disk", command.workload);
        return Err(Failure::input(message, Some("add --size, such as --size 1G".to_string())));
    };
    let workload = source.open(&command.replaying, size_bytes, command.seed)?;
    let depth = workload.queue_depth().filter(|depth| *depth > 1);
    let warning =
        depth.map(|depth| format!("the job's queue depth is {depth}; in a directory requests are served one by one"));
    let disk = DiskFile { size_bytes, fill: command.fill, fsync_every: command.fsync_every };
    let mut arguments = vec![format!("--size {}", flashpath::units::format_size(size_bytes))];
    arguments.extend(command.fill.then(|| "--fill".to_string()));
    arguments.extend(command.fsync_every.map(|every| format!("--fsync-every {every}")));
    arguments.extend(command.replaying.arguments());
    Ok(Opened { workload: disk.workload(workload, command.seed), arguments, warning })
}
