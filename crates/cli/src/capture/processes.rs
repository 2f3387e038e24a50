//! Starts, awaits and stops the processes in the guests: the setup or the command.

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

/// The number of interrupts.
pub static INTERRUPTS: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_millis(2);
/// The time that a command has to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// The end of one guest's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// An exit code.
    Code(i32),
    /// A signal.
    Signal(i32),
    /// It never ran.
    NotStarted,
}

/// The clock of the kernel's events.
pub fn monotonic_ns() -> u64 {
    // Every Linux has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// A command in a process group of its own. The group is killed when its leader ends and when this is dropped:
/// processes left over would keep the file system busy.
struct Running {
    child: Child,
    ended: Option<Exit>,
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
        // A background process group that reads the terminal would be stopped for ever.
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
        // The group exists until its leader is reaped; one that has just ended needs no signal.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Checks if the command has ended.
    fn poll(&mut self) -> io::Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        // The leader is not reaped until its group is killed, so that the group's number is not reused.
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        if waitid(Id::Pid(Pid::from_raw(self.child.id() as i32)), flags)? == WaitStatus::StillAlive {
            return Ok(());
        }
        self.signal(Signal::SIGKILL);
        let status = self.child.wait()?;
        self.ended = Some(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        });
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::SIGKILL);
            // The result is not needed.
            let _ = self.child.wait();
        }
    }
}

/// Runs a job in all guests at once, and returns the end of each. Failures are added to `problems`.
pub fn run(job: &Job, guests: &[Guest], problems: &mut Vec<String>) -> Vec<Exit> {
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
    let ended: Vec<Exit> = running
        .iter()
        .map(|running| running.as_ref().and_then(|running| running.ended).unwrap_or(Exit::NotStarted))
        .collect();
    drop(running);
    for (guest, ended) in guests.iter().zip(&ended) {
        let how = match ended {
            Exit::Code(0) | Exit::NotStarted => continue,
            Exit::Code(code) => format!("failed with exit code {code}"),
            Exit::Signal(signal) => format!("was killed by signal {signal}"),
        };
        let whose = whose(guest, guests);
        let full = if guest.is_full() { "; its file system is full: choose a larger --size" } else { "" };
        problems.push(format!("the {}{whose} {how}{full}", job.name));
    }
    ended
}

/// The guest's name in messages, if there are several.
fn whose(guest: &Guest, guests: &[Guest]) -> String {
    if guests.len() > 1 { format!(" of guest {}", guest.number) } else { String::new() }
}

/// Waits for all. An interrupt sends SIGTERM, a second one SIGKILL.
fn wait<'a>(running: impl Iterator<Item = &'a mut Running>) -> io::Result<()> {
    let mut running: Vec<&mut Running> = running.collect();
    let mut terminated: Option<Instant> = None;
    loop {
        for command in &mut running {
            command.poll()?;
        }
        running.retain(|command| command.ended.is_none());
        if running.is_empty() {
            return Ok(());
        }
        match (INTERRUPTS.load(Ordering::SeqCst), terminated) {
            (0, _) => {}
            (_, None) => {
                running.iter().for_each(|command| command.signal(Signal::SIGTERM));
                terminated = Some(Instant::now());
            }
            (interrupts, Some(since)) if interrupts > 1 || since.elapsed() > PATIENCE => {
                running.iter().for_each(|command| command.signal(Signal::SIGKILL));
            }
            _ => {}
        }
        std::thread::sleep(PAUSE);
    }
}
