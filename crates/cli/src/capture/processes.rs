//! What runs in the guests, the setup or the command: started, waited for, stopped.

use super::guest::Guest;
use super::plan::Job;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often the user asked to stop.
pub static STOPS: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_millis(2);
/// How long a command may take to end once it is told to.
const PATIENCE: Duration = Duration::from_secs(5);

/// How one guest's command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It never ran.
    NotStarted,
}

/// The clock of the kernel's events.
pub fn monotonic_ns() -> u64 {
    // The clock is there on every Linux.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// A command in a process group of its own. What is left of the group when its leader ends, or when this is dropped, is
/// killed: it would keep the file system busy.
struct Running {
    child: Child,
    ended: Option<Ended>,
}

impl Running {
    fn start(job: &Job, guest: &Guest) -> io::Result<Running> {
        let mount = guest.mount().ok_or_else(|| io::Error::other("the file system is gone"))?;
        let mut command = Command::new(&job.program);
        command
            .arg0(&job.words[0])
            .args(&job.words[1..])
            .current_dir(mount)
            .env("FLASHPATH_MOUNT", mount)
            .env("FLASHPATH_GUEST", guest.number.to_string())
            .process_group(0)
            .stdout(io::stderr());
        // A process group in the background that reads the terminal is stopped for good.
        if !job.has_input || io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        let child = match &guest.memory {
            Some(memory) => memory.within(|| command.spawn()).map_err(io::Error::other)??,
            None => command.spawn()?,
        };
        Ok(Running { child, ended: None })
    }

    fn signal(&self, signal: Signal) {
        // The group is there until its leader is waited for; one that has just ended needs no signal.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Takes note if the command has ended.
    fn look(&mut self) -> io::Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        // The leader is left unburied until its group is killed, so that the group's number cannot be another's.
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        if waitid(Id::Pid(Pid::from_raw(self.child.id() as i32)), flags)? == WaitStatus::StillAlive {
            return Ok(());
        }
        self.signal(Signal::SIGKILL);
        let status = self.child.wait()?;
        self.ended = Some(match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Exited(code),
            (None, signal) => Ended::Killed(signal.unwrap_or_default()),
        });
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::SIGKILL);
            // There is nobody left to tell.
            let _ = self.child.wait();
        }
    }
}

/// Runs a job in all guests at once until each has ended, and says how. What is not success is a problem.
pub fn run(job: &Job, guests: &[Guest], problems: &mut Vec<String>) -> Vec<Ended> {
    let mut running = Vec::new();
    for guest in guests {
        match Running::start(job, guest) {
            Ok(started) => running.push(Some(started)),
            Err(error) => {
                problems.push(format!("cannot start {}{}: {error}", job.words[0], whose(guest, guests)));
                running.push(None);
            }
        }
    }
    if let Err(error) = wait(running.iter_mut().flatten()) {
        problems.push(format!("cannot wait for {}: {error}", job.words[0]));
    }
    let ended: Vec<Ended> = running
        .iter()
        .map(|running| running.as_ref().and_then(|running| running.ended).unwrap_or(Ended::NotStarted))
        .collect();
    drop(running);
    for (guest, ended) in guests.iter().zip(&ended) {
        let how = match ended {
            Ended::Exited(0) | Ended::NotStarted => continue,
            Ended::Exited(code) => format!("failed with exit code {code}"),
            Ended::Killed(signal) => format!("was killed by signal {signal}"),
        };
        let whose = whose(guest, guests);
        let full = if guest.is_full() { "; its file system is full: a larger --size would do" } else { "" };
        problems.push(format!("the {}{whose} {how}{full}", job.name));
    }
    ended
}

/// The guest, if there are others.
fn whose(guest: &Guest, guests: &[Guest]) -> String {
    if guests.len() > 1 { format!(" of guest {}", guest.number) } else { String::new() }
}

/// Waits for all. Whoever interrupts ends them: at first kindly, and at once the second time.
fn wait<'a>(running: impl Iterator<Item = &'a mut Running>) -> io::Result<()> {
    let mut running: Vec<&mut Running> = running.collect();
    let mut told: Option<Instant> = None;
    loop {
        for command in &mut running {
            command.look()?;
        }
        running.retain(|command| command.ended.is_none());
        if running.is_empty() {
            return Ok(());
        }
        match (STOPS.load(Ordering::SeqCst), told) {
            (0, _) => {}
            (_, None) => {
                running.iter().for_each(|command| command.signal(Signal::SIGTERM));
                told = Some(Instant::now());
            }
            (stops, Some(told)) if stops > 1 || told.elapsed() > PATIENCE => {
                running.iter().for_each(|command| command.signal(Signal::SIGKILL));
            }
            _ => {}
        }
        std::thread::sleep(PAUSE);
    }
}
