//! `flashpath mount`: a path with a file system of this program on top, as a directory of this machine.
//!
//! | file | role |
//! |---|---|
//! | `mod` | the command line, start and shutdown |
//! | `options` | the options of `-o` |
//! | `watch` | warnings of the stations, and the figures of `--stats` |

mod options;
mod remount;
mod watch;

use crate::failure::Failure;
use crate::image_lock::Patience;
use crate::print_message;
use crate::resident::exit_notifier::ExitNotifier;
use crate::resident::process::Process;
use crate::resident::signals::Signals;
use crate::resident::unmount::unmount;
use crate::resident::warnings::PrintedWarnings;
use crate::resident::watch::Watch;
use crate::resident::worker;
use crate::resident::{cannot, clock, seconds, wall_time_ns};
use crate::volume::owner;
use flashpath::fs::posix::{AccessTimes, Checks, Posix, Usage};
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, State, Volume};
use flashpath::run::shared::{CallError, SharedVolume, Sharing};
use flashpath::run::{Path, is_in_memory, mark_lost_changes, open_file_system, set_owner};
use flashpath::task::Task;
use flashpath::time::Time;
use flashpath_environment::machine_share;
use flashpath_fuse::{Caching, Mounted, Recorder, Wishes, check_mount_point};
use options::MountOptions;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use watch::WatchedVolume;

/// Mount a path with a file system of this program on top, until an interrupt, SIGTERM, SIGHUP, or an unmount
#[derive(clap::Args)]
#[command(mut_arg("background", |option| option.help(BACKGROUND)))]
pub struct Mount {
    /// The path, from top to bottom
    #[arg(value_name = "PATH")]
    path: String,
    /// The mount point: an empty directory, created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Mount options as in fstab: ro, remount, nosuid, nodev, noexec, noatime, strictatime, allow_other, ...
    #[arg(short = 'o', value_name = "OPTIONS")]
    options: Vec<String>,
    /// Delay each answer until the device's timing model would be done
    #[arg(long)]
    pace: bool,
    /// Let other users use it, within its permissions; always on if root mounts
    #[arg(long)]
    allow_other: bool,
    /// Refuse all changes of the volume
    #[arg(long)]
    read_only: bool,
    /// Mount it writable although parts of its log are damaged; the changes recorded there are lost
    #[arg(long, conflicts_with = "read_only")]
    despite_damage: bool,
    /// Never set the time of access
    #[arg(long)]
    noatime: bool,
    /// Buffer writes in the kernel's page cache, and send them in larger pieces
    #[arg(long)]
    writeback: bool,
    /// Print requests and free space on standard error every SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "background")]
    stats: Option<Duration>,
    /// Write the requests to the volume, without their data, to a new file that 'flashpath run' replays
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    patience: Patience,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    process: Process,
    /// Called by mount(8)
    #[arg(long, hide = true)]
    by_mount: bool,
    /// Ignore unknown mount options
    #[arg(long, hide = true)]
    sloppy: bool,
    /// Do everything but the mount itself
    #[arg(long, hide = true)]
    fake: bool,
}

/// The help of `--background`.
const BACKGROUND: &str = "Return as soon as it is mounted; the number of the process that serves it is printed";

impl Mount {
    /// Mounts, and serves until a signal or an unmount.
    pub fn run(mut self) -> Result<(), Failure> {
        let options = self.settle()?;
        if self.fake {
            return Ok(());
        }
        if options.remount {
            return remount::remount(&self.directory, &options);
        }
        let Some(signals) = self.process.begin()? else { return Ok(()) };
        let path = Path::read(&self.path)?;
        // Before the volume is opened, which may change it: what is refused leaves it as it is.
        check_mount_point(&self.directory)?;
        let recorder = self.record.as_deref().map(begin_recording).transpose()?;
        let (clock, memory_bytes) = (clock(), Some(machine_share()));
        let mounting = Mounting { memory_bytes, ..Mounting::at(self.seed, wall_time_ns()) };
        let access = match (self.despite_damage, options.read_only) {
            (true, _) => Access::DespiteDamage,
            (false, true) => Access::ReadOnly,
            (false, false) => Access::IfWhole,
        };
        let volume = self.patience.open(|| open_file_system(&path, &mounting, access))?;
        let state = look(&*volume, &path, options.read_only)?;
        let (read_only, number) = (options.read_only || state.read_only.is_some(), volume.number());
        // What was found on the way is told before it is mounted: in the background nobody listens later.
        let warnings = Arc::new(PrintedWarnings::default());
        let usage = Usage {
            checks: Checks::Kernel,
            read_only,
            access_times: options.access_times,
            ignores_directory_reads: options.ignores_directory_reads,
        };
        let sharing = Sharing { read_only, paced: options.pace };
        let volume = Arc::new(SharedVolume::new(Posix::new(volume, usage), sharing, clock, Box::new(print_message)));
        warnings.print_new(&volume.account().map_err(|error| cannot("read the state of the volume", error))?);
        // Who only reads does not want segments to be cleaned, either.
        let worker_target = (!read_only).then(|| Arc::clone(&volume));
        let mut exit_notifier = ExitNotifier::default();
        let kind = path.volume_settings().map_or("flashpath", |settings| settings.mounted_as());
        let served = worker::run_with_workers(worker_target, || {
            self.serve(&volume, &warnings, (&options, kind, recorder.clone()), &signals, &mut exit_notifier)
        });
        let recorded = recorder.map_or(Ok(()), |recorder| recorder.finish());
        let served = served.and(recorded.map_err(|error| cannot("write the recording", error)));
        // Also where nothing was mounted in the end: what opening it has repaired is kept.
        let unmounted = volume.unmount();
        // It may hold its image until it is dropped, and the mark of a loss needs the image.
        drop(volume);
        let unmounted = unmounted.map_err(|error| self.lost(&path, number, &error));
        let ended = match (served, unmounted) {
            (Err(failure), Err(lost)) => {
                crate::output::report(failure);
                Err(lost)
            }
            (served, unmounted) => served.and(unmounted),
        };
        exit_notifier.notify(&ended);
        ended
    }

    /// Combines the options of `-o` with those of the command line.
    fn settle(&mut self) -> Result<MountOptions, Failure> {
        let mut options = MountOptions {
            read_only: self.read_only,
            allow_other: self.allow_other,
            pace: self.pace,
            caching: if self.writeback { Caching::WriteBack } else { Caching::WriteThrough },
            access_times: if self.noatime { AccessTimes::Never } else { AccessTimes::Relative },
            ..MountOptions::default()
        };
        for words in &self.options {
            options.add(words, self.sloppy)?;
        }
        self.seed = options.seed.unwrap_or(self.seed);
        self.process.log = options.log.take().or(self.process.log.take());
        self.patience.most = options.wait.unwrap_or(self.patience.most);
        Ok(options)
    }

    fn serve(
        &self,
        volume: &Arc<SharedVolume>,
        warnings: &Arc<PrintedWarnings>,
        (options, kind, recorder): (&MountOptions, &str, Option<Arc<Recorder>>),
        signals: &Signals,
        exit_notifier: &mut ExitNotifier,
    ) -> Result<(), Failure> {
        let wishes = Wishes {
            name: self.path.clone(),
            kind: kind.to_string(),
            allow_other: options.allow_other,
            caching: options.caching,
            recorder,
            forbidden: options.forbidden,
        };
        let mounted = Mounted::volume(Arc::clone(volume), &self.directory, &wishes, signals.stopper())?;
        exit_notifier.listen(mounted.directory());
        let said = format!("mounted {} at {}\n", self.path, self.directory.display());
        let watched = WatchedVolume::new(Arc::clone(volume), Arc::clone(warnings));
        let watch = Watch::start(watched, volume.news(), self.stats)?;
        let waited = self.process.wait(&said, signals);
        let left = unmount(mounted, signals);
        exit_notifier.close();
        watch.stop();
        waited.and(left)
    }

    /// The failure of a mount that could not store all changes. Marks the volume in its image, which is released by now, if
    /// possible.
    fn lost(&self, path: &Path, number: [u8; 16], error: &CallError) -> Failure {
        if !is_in_memory(path)
            && let Err(why) = mark_lost_changes(path, number)
        {
            print_message(&format!(
                "warning: the volume cannot be marked, so the next fsck will not report this loss: {why}"
            ));
        }
        cannot(&format!("store all of {}", self.path), error)
    }
}

/// Begins a recording in a new file.
fn begin_recording(file: &FilePath) -> Result<Arc<Recorder>, Failure> {
    let failed = |error: std::io::Error| {
        let help =
            (error.kind() == std::io::ErrorKind::AlreadyExists).then(|| "remove it, or name another".to_string());
        Failure::input(format!("cannot begin the recording {}: {error}", file.display()), help)
    };
    Recorder::create(file).map(Arc::new).map_err(failed)
}

/// Reports the state of an opened volume before its first use, and gives a new volume to the user of this program.
fn look(volume: &dyn Volume, path: &Path, is_asked: bool) -> Result<State, Failure> {
    let task = Task::at(Time::ZERO);
    let call = Call::by_root(&task);
    let state = volume.state(&call).map_err(|error| cannot("read the state of the volume", error))?;
    tell_damage(path, &state, is_asked);
    if state.has_lost_before {
        print_message(
            "warning: a write or a flush failed during its last mount: changes that were not synced before are lost",
        );
    }
    if is_in_memory(path) {
        set_owner(volume, &call, owner::myself()).map_err(|error| cannot("make the root directory", error))?;
    }
    Ok(state)
}

/// The maximum number of findings printed one by one.
const MOST_TOLD: usize = 10;

/// Prints the damage that the mount has found, and the remedies; or why the volume can only be read, if nobody asked for that.
fn tell_damage(path: &Path, state: &State, is_asked: bool) {
    if state.damage.is_empty() {
        if let Some(why) = state.read_only.as_ref().filter(|_| !is_asked) {
            print_message(&format!("warning: {} is mounted read-only: {why}", path.text));
        }
        return;
    }
    for damage in state.damage.iter().take(MOST_TOLD) {
        print_message(&format!("warning: {} ({})", damage.what, damage.repair));
    }
    let path = &path.text;
    print_message(&match state.read_only {
        Some(_) => format!(
            "warning: parts of the log of {path} are damaged, so it is mounted read-only: 'flashpath fsck {path}' repairs \
             it, and --despite-damage mounts it writable as it is"
        ),
        None => format!("warning: parts of the log of {path} are damaged, and the changes recorded there are lost"),
    });
}
