//! `--background`: runs the same command in a child process, and returns when it is ready.
//!
//! Until the child is ready, its standard output and standard error are pipes to the parent: errors reach the user,
//! with the exit code. Then both are closed, so that no reader waits for them; later messages go to a log, if there is
//! one.

use super::{cannot, log};
use crate::failure::Failure;
use crate::invocation;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// The child's line when it is ready.
const READY: &str = "ready";

/// Starts the child, and returns when it is ready or has failed.
pub fn start() -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(|error| cannot("find this program", error))?;
    let arguments =
        invocation::arguments().into_iter().skip(1).filter(|argument| argument != OsStr::new("--background"));
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot("start a process in the background", error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let forwarding = std::thread::spawn(move || {
        if let Some(mut stderr) = stderr {
            // A closed standard error is ignored.
            let _ = io::copy(&mut stderr, &mut io::stderr());
        }
    });
    let mut line = String::new();
    if let Some(stdout) = stdout {
        BufReader::new(stdout).read_line(&mut line).map_err(|error| cannot("read from the process", error))?;
    }
    // The child's messages come before this process's own.
    let _ = forwarding.join();
    if line.trim_end() == READY {
        if invocation::by_mount() {
            return Ok(());
        }
        let printed = crate::print(&format!("{}\n", child.id()));
        if printed.is_err() {
            // Without its number, the user could not end it.
            end(child);
        }
        return printed;
    }
    let status = child.wait().map_err(|error| cannot("wait for the process", error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    match code {
        Some(code) if code != 0 => Err(Failure::Quiet(code)),
        _ => Err(Failure::failed(format!("the process in the background ended before it was ready: {status}"))),
    }
}

/// Ends the child cleanly.
fn end(mut child: Child) {
    // It may have ended by itself.
    let _ = nix::sys::signal::kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    let _ = child.wait();
}

/// In the child: leaves the terminal's session, so that interrupts there do not reach it.
pub fn detach() -> Result<(), Failure> {
    nix::unistd::setsid().map(|_| ()).map_err(|error| cannot("leave the terminal", error))
}

/// In the child: reports that it is ready, and redirects further messages to the log, if any.
pub fn report_ready(message: &str, to: Option<&File>) -> Result<(), Failure> {
    let failed = |error: io::Error| cannot("report that it is ready", error);
    let nothing = OpenOptions::new().write(true).open("/dev/null").map_err(failed)?;
    if !invocation::by_mount() {
        crate::print_message(message.trim_end());
    }
    match to {
        Some(to) => log::begin(to)?,
        None => nix::unistd::dup2_stderr(&nothing).map_err(|error| failed(error.into()))?,
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "{READY}").and_then(|()| stdout.flush()).map_err(failed)?;
    nix::unistd::dup2_stdout(&nothing).map_err(|error| failed(error.into()))
}
