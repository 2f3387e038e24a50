//! The options of a capture, checked before it begins.

use super::Capture;
use crate::failure::Failure;
use flashpath::units::{format_size, human_size};
use flashpath::workload::trace::OutputFormat;
use flashpath_kernel::{DataMode, FileSystem, Mkfs, ScratchFile};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A process to run in every guest.
pub struct Job {
    /// `command` or `setup`.
    pub name: &'static str,
    /// The path of the program.
    pub program: PathBuf,
    /// The program's name as the user wrote it, and its arguments.
    pub words: Vec<String>,
    /// True if it inherits standard input.
    pub has_input: bool,
}

/// A checked capture.
pub struct Plan {
    pub make: Mkfs,
    pub data: Option<DataMode>,
    /// The mount options of the file system.
    pub options: String,
    pub size_bytes: u64,
    pub guests: u32,
    pub memory_bytes: Option<u64>,
    pub reads: bool,
    pub from_setup: bool,
    pub buffer_bytes: Option<u64>,
    pub directory: PathBuf,
    /// The setup's shell command.
    pub setup: Option<String>,
    /// The command, the program's name first.
    pub command: Vec<String>,
    /// The setup's process.
    pub setup_job: Option<Job>,
    pub command_job: Job,
    pub output: PathBuf,
    pub format: OutputFormat,
    pub json: Option<PathBuf>,
    pub quiet: bool,
}

fn wrong<T>(message: impl Into<String>, help: &str) -> Result<T, Failure> {
    Err(Failure::input(message, Some(help.to_string())))
}

impl Plan {
    pub fn new(args: &Capture) -> Result<Plan, Failure> {
        let file_system = args.fs;
        if args.data.is_some() && !file_system.is_ext() {
            return wrong(format!("--data is for ext3 and ext4, not for {}", file_system.name()), "leave it out");
        }
        if args.nodatacow && file_system != FileSystem::Btrfs {
            return wrong(
                format!("--nodatacow is for btrfs, not for {}", file_system.name()),
                "leave it out, or add --fs btrfs",
            );
        }
        let data = file_system.is_ext().then_some(args.data.unwrap_or(DataMode::Ordered));
        let extra_arguments =
            args.mkfs_options.iter().flat_map(|text| text.split_whitespace()).map(str::to_string).collect();
        let make = Mkfs { file_system, journal_bytes: args.journal_size, extra_arguments };
        make.check()?;
        let Some(format) = OutputFormat::of_path(&args.output) else {
            return wrong(
                format!("the name {} has no known extension", args.output.display()),
                "name it NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet",
            );
        };
        if args.output.exists() && !args.force {
            let message = format!("{} exists already: the capture would replace it", args.output.display());
            return wrong(message, "choose another name (-o NAME.csv.zst), or add --force to replace it");
        }
        let json = args.json.clone();
        for file in json.iter().filter(|file| *file != Path::new("-")).chain([&args.output]) {
            flashpath::report::check_writable(file)?;
        }
        if json.as_deref() == Some(args.output.as_path()) {
            return wrong(
                format!("the trace and the summary have the same name {}", args.output.display()),
                "choose a name for each",
            );
        }
        let plan = Plan {
            make,
            data,
            options: options(args, file_system, data),
            size_bytes: args.size,
            guests: args.guests,
            memory_bytes: args.memory,
            reads: args.reads,
            from_setup: args.from_setup,
            buffer_bytes: args.buffer,
            directory: directory(args)?,
            setup: args.setup.clone(),
            command: args.command.clone(),
            setup_job: args.setup.as_deref().map(setup_job).transpose()?,
            command_job: Job {
                name: "command",
                program: program(&args.command[0])?,
                words: args.command.clone(),
                has_input: args.guests == 1,
            },
            output: args.output.clone(),
            format,
            json,
            quiet: args.quiet,
        };
        plan.check_room()?;
        Ok(plan)
    }

    /// Checks the free space: the files grow as they are written, and a device without space would spoil the capture.
    fn check_room(&self) -> Result<(), Failure> {
        let room = ScratchFile::room_bytes(&self.directory)?;
        match self.size_bytes.checked_mul(u64::from(self.guests)) {
            Some(needed) if needed <= room => Ok(()),
            needed => wrong(
                format!(
                    "{} has {} of free space, but the devices' files may grow to {}",
                    self.directory.display(),
                    human_size(room as f64),
                    needed.map_or("more than 16 EiB".to_string(), |needed| human_size(needed as f64)),
                ),
                "choose a directory with more space (--dir), or a smaller --size",
            ),
        }
    }

    /// The name of a partial trace: NAME.partial.csv.zst.
    pub fn partial_output(&self) -> PathBuf {
        let name = self.output.file_name().unwrap_or_default().to_string_lossy();
        let endings = [".csv.zst", ".csv.gz", ".csv", ".parquet"];
        let ending = endings.into_iter().find(|ending| name.ends_with(ending)).unwrap_or_default();
        let stem = name.strip_suffix(ending).unwrap_or(&name);
        self.output.with_file_name(format!("{stem}.partial{ending}"))
    }

    /// A short description.
    pub fn describe(&self) -> String {
        let guests = if self.guests == 1 { "1 guest".to_string() } else { format!("{} guests", self.guests) };
        let file_system = self.make.file_system.name();
        let command = self.command.join(" ");
        let made = if self.make.extra_arguments.is_empty() {
            String::new()
        } else {
            format!("mkfs {}, ", self.make.extra_arguments.join(" "))
        };
        let setup = self.setup.as_ref().map(|setup| format!("after {setup}\n")).unwrap_or_default();
        format!(
            "{command}\n{setup}on {file_system} ({made}{}), {guests} of {}",
            self.options,
            format_size(self.size_bytes)
        )
    }
}

/// The mount options. Kernel defaults are given explicitly, so that captures are comparable.
fn options(args: &Capture, file_system: FileSystem, data: Option<DataMode>) -> String {
    let mut options = Vec::new();
    options.extend(data.map(|mode| format!("data={}", mode.name())));
    if args.nodatacow {
        options.push("nodatacow".to_string());
    }
    options.push(
        match (args.discard, file_system) {
            (false, _) => "nodiscard",
            (true, FileSystem::Btrfs) => "discard=sync",
            (true, _) => "discard",
        }
        .to_string(),
    );
    options.extend(args.mount_options.clone());
    options.join(",")
}

/// The input is the command's.
fn setup_job(text: &str) -> Result<Job, Failure> {
    let words = ["sh", "-c", text].map(str::to_string).to_vec();
    Ok(Job { name: "setup", program: program("sh")?, words, has_input: false })
}

fn directory(args: &Capture) -> Result<PathBuf, Failure> {
    let directory = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    match std::fs::canonicalize(&directory) {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => {
            wrong(format!("{} is not a directory", directory.display()), "choose a directory for the devices' files")
        }
        Err(error) => wrong(format!("cannot use {}: {error}", directory.display()), "choose an existing directory"),
    }
}

/// Resolves a program's name in the current directory, as the command starts in another one.
fn program(name: &str) -> Result<PathBuf, Failure> {
    let runs =
        |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let found = if name.contains('/') {
        std::path::absolute(name).ok().filter(runs)
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(runs)
    };
    let found = found.and_then(|path| std::path::absolute(path).ok());
    found.map_or_else(|| wrong(format!("command {name} not found"), "name an existing executable program"), Ok)
}
