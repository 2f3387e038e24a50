//! `--background`: the same command in a process of its own, of which this one says whether it is ready.
//!
//! The child's standard output is a pipe to its parent until it is ready, and its standard error too: what goes wrong
//! until then reaches the user, with its exit code. Then both are closed, so that nobody waits for them; what is told
//! later goes to a log, if there is one.

use super::{cannot, log};
use crate::called;
use crate::failure::Failure;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// What the child says when it is ready.
const READY: &str = "ready";

/// Starts the child, and answers when it is ready, or has failed.
pub fn start() -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| cannot("find this program", error))?;
    let arguments = called::arguments().into_iter().skip(1).filter(|argument| argument != OsStr::new("--background"));
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot("start a process in the background", error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let telling = std::thread::spawn(move || {
        if let Some(mut stderr) = stderr {
            // Where nobody listens, there is nobody to tell.
            let _ = io::copy(&mut stderr, &mut io::stderr());
        }
    });
    let mut line = String::new();
    if let Some(stdout) = stdout {
        BufReader::new(stdout).read_line(&mut line).map_err(|error| cannot("hear from the process", error))?;
    }
    // What it said comes before what this process says.
    let _ = telling.join();
    if line.trim_end() == READY {
        if called::by_mount() {
            return Ok(());
        }
        let said = crate::print(&format!("{}\n", child.id()));
        if said.is_err() {
            // Nobody knows its number, so that nobody could end it.
            end(child);
        }
        return said;
    }
    let status = child.wait().map_err(|error| cannot("wait for the process", error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    match code {
        Some(code) if code != 0 => Err(Failure::Quiet(code)),
        _ => Err(Failure::failed(format!("the process in the background ended before it was ready: {status}"))),
    }
}

/// Ends a child that serves, in good order.
fn end(mut child: Child) {
    // It may have ended by itself.
    let _ = nix::sys::signal::kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    let _ = child.wait();
}

/// In the child: an interrupt at the terminal is not meant for it.
pub fn leave_the_terminal() -> Result<(), Failure> {
    nix::unistd::setsid().map(|_| ()).map_err(|error| cannot("leave the terminal", error))
}

/// In the child: it is ready, and has nothing more to say but to a log.
pub fn tell_that_it_is_ready(said: &str, to: Option<&File>) -> Result<(), Failure> {
    let failed = |error: io::Error| cannot("tell that it is ready", error);
    let nothing = OpenOptions::new().write(true).open("/dev/null").map_err(failed)?;
    if !called::by_mount() {
        crate::tell(said.trim_end());
    }
    match to {
        Some(to) => log::begin(to)?,
        None => nix::unistd::dup2_stderr(&nothing).map_err(|error| failed(error.into()))?,
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "{READY}").and_then(|()| stdout.flush()).map_err(failed)?;
    nix::unistd::dup2_stdout(&nothing).map_err(|error| failed(error.into()))
}
