//! `flashpath monitor`: keeps the committed memory of mounted file systems, which then write no journal.

use crate::failure::Failure;
use crate::image_lock::Patience;
use crate::resident::faults::Faults;
use crate::resident::process::Process;
use crate::resident::{cannot, wall_time_ns};
use flashpath::run::{Path, recover_file_system};
use flashpath::units::human_size;
use flashpath_vmm::{Event, Monitor as Listener, Protection, Recovery, Settings, VmmError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The time for which a recovery waits for an image that another program has open.
const IMAGE_PATIENCE: Duration = Duration::from_secs(30);
/// The time for what dead guests have left to be written home: before a monitor ends that is told to, and one that has failed.
const END_PATIENCE: Duration = Duration::from_secs(10);
const DRAIN_PATIENCE: Duration = Duration::from_secs(60);

/// Keep the committed memory of mounts with ext:journal=vmm, and write it home when one dies
#[derive(clap::Args)]
pub struct Monitor {
    /// The socket at which the mounts find it, as in ext:journal=vmm/conv:image=v.img+monitor:socket=SOCKET
    #[arg(value_name = "SOCKET", required_unless_present = "recover")]
    socket: Option<PathBuf>,
    /// The most blocks that are kept of a volume: one that is near to it writes the oldest home
    #[arg(long, value_name = "BLOCKS", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1024..))]
    most_blocks: u32,
    /// At the end (SIGTERM, SIGPWR), write what is kept to FILE; take what the monitor before has written there
    #[arg(long, value_name = "FILE")]
    spill: Option<PathBuf>,
    #[command(flatten)]
    process: Process,
    /// Write home what the monitor of this path keeps: begun by the monitor
    #[arg(long, hide = true, value_name = "PATH")]
    recover: Option<String>,
}

impl Monitor {
    /// Serves until a signal.
    pub fn run(self) -> Result<(), Failure> {
        if let Some(path) = &self.recover {
            let path = Path::read(path)?;
            // A check may just look at it.
            return Ok(Patience { most: IMAGE_PATIENCE }.open(|| recover_file_system(&path, wall_time_ns()))?);
        }
        let Some(signals) = self.process.begin()? else { return Ok(()) };
        let Some(socket) = self.socket else { return Err(Failure::input("name the socket", None)) };
        let settings = Settings { socket, most_blocks: self.most_blocks, spill: self.spill };
        let faults = Arc::new(Faults::new(signals.stopper()));
        let heard = Arc::clone(&faults);
        let hear = move |event: Event| {
            if let Event::Failed { thread, why } = &event {
                heard.note(format!("{thread}: {why}"));
            }
            report(event);
        };
        let monitor = Arc::new(Listener::listen(&settings, hear, recover)?);
        let (serving, ended) = (Arc::clone(&monitor), Arc::clone(&faults));
        let server = std::thread::Builder::new().name("accept".to_string()).spawn(move || {
            let served = catch_unwind(AssertUnwindSafe(|| serving.serve()));
            ended.note(format!(
                "the thread that accepts guests has ended{}",
                if served.is_err() { " by a panic" } else { "" }
            ));
        });
        let server = server.map_err(|error| cannot("start a thread", error))?;
        let ready = format!("keeping memory at {}\n", settings.socket.display());
        let waited = self.process.wait(&ready, &signals);
        let failure = faults.failure().err().and_then(|failure| failure.message());
        // What dead guests have left is not lost by this end; a spill keeps it, too.
        match (&failure, &settings.spill) {
            (Some(_), _) => monitor.drain(DRAIN_PATIENCE),
            (None, None) => monitor.drain(END_PATIENCE),
            (None, Some(_)) => {}
        }
        monitor.stop();
        let kept = monitor.frozen();
        let spilled = monitor.spill(&kept);
        monitor.tell(&kept, failure.as_deref().unwrap_or("it was told to"));
        let (volumes, blocks, bytes) = kept.totals();
        // A commit that comes now waits until this process has ended, and is then made in the volume.
        std::mem::forget(kept);
        if volumes > 0 {
            let others = match (&spilled, &settings.spill) {
                (Ok(()), Some(file)) => format!("what is kept of all is in {}", file.display()),
                _ => "what was kept of others is lost".to_string(),
            };
            let bytes = human_size(bytes as f64);
            crate::print_message(&format!(
                "{blocks} blocks of {volumes} volumes are kept ({bytes} beside their memory): mounts that live go on with the \
                 logs in their volumes; {others}"
            ));
        }
        // Its end has no other meaning now.
        let _ = server.join();
        let ended = failure.map_or(Ok(()), |why| Err(Failure::failed(format!("the monitor has failed: {why}"))));
        ended.and(waited).and(spilled.map_err(Failure::from))
    }
}

impl From<VmmError> for Failure {
    fn from(error: VmmError) -> Failure {
        Failure::failed(error.to_string())
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn report(event: Event) {
    crate::print_message(&match event {
        Event::Began { process, volume, path, protection } => {
            let how = match protection {
                Protection::Monitor => "protected by the monitor",
                Protection::Guest => "protected by the process itself",
                Protection::Nothing => "not protected",
            };
            format!("process {process} has mounted {path}, volume {}: its committed memory is {how}", uuid(volume))
        }
        Event::WildWrite { process, thread, volume, block } => {
            let block = block.map_or_else(|| "memory".to_string(), |block| format!("block {block}"));
            let volume = uuid(volume);
            format!(
                "thread {thread} of process {process} wrote to {block} of volume {volume}, which is committed: killed"
            )
        }
        Event::SecondMapping { process, volume } => {
            format!("process {process} has mapped the memory of volume {} a second time: killed", uuid(volume))
        }
        Event::Crowded { why } => {
            format!(
                "warning: no guest can be accepted: {why}; the monitor goes on, and those that wait are told if it can"
            )
        }
        Event::Open { refused } => format!("guests are accepted again; {refused} were refused meanwhile"),
        Event::Failed { thread, why } => {
            format!("error: {thread} has failed: {why}: the monitor writes home what dead guests have left, and ends")
        }
        Event::Refused { process: 0, why } => format!("a guest is cut off: {why}"),
        Event::Refused { process, why } => format!("process {process} is cut off: {why}"),
        Event::Died { process, volume, blocks } => {
            format!("process {process} is dead: {blocks} blocks of volume {} are to be written home", uuid(volume))
        }
        Event::SpillLeft { why } => format!("all that was spilled is home, and its file is left: {why}"),
        Event::Ended { process, volume } => format!("process {process} has unmounted volume {}", uuid(volume)),
        Event::Recovered { volume, blocks } => {
            format!("volume {} is recovered: {blocks} blocks are home", uuid(volume))
        }
        Event::NotRecovered { volume, why } => {
            format!("volume {} is not recovered, and its memory is kept: {why}", uuid(volume))
        }
    });
}

/// Writes home what is kept of a volume, in a process of its own: if that dies, another can do it again.
fn recover(recovery: &Recovery) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let done = Command::new(program)
        .args(["monitor", "--recover", &recovery.path])
        .current_dir(&recovery.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("cannot begin a process: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&done.stderr);
            let said: Vec<&str> = said.split_whitespace().collect();
            Err(format!("{}: {}", done.status, said.join(" ")))
        }
    }
}
