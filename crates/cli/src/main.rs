//! The program `flashpath`: its command line, its terminal, its files, its threads and its clock.
//!
//! Results go to standard output; progress, warnings and errors to standard error. Exit 0: done. 1: a run failed or a
//! sum did not hold. 2: the command line or an input is wrong. 130: interrupted, after what was measured is printed.

#![allow(clippy::disallowed_methods, reason = "the program has the clock and the threads that the library does not")]

mod convert;
mod failure;
mod layers;
mod progress;
mod run;
mod workload;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

/// Shows, and shortens, the path of every write from file to flash.
#[derive(Parser)]
#[command(name = "flashpath", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
A path is written from top to bottom: stations joined by '/', options behind ':', joined by ','.
    flashpath run uniform:writes=6x --on page:op=7%/nand:size=8G
    flashpath run trace.csv.zst --on page:victim=greedy/nand:preset=tlc --on page:victim=fifo/nand:preset=tlc
'flashpath layers' shows what can stand in a path.";

#[derive(Subcommand)]
enum Command {
    /// Run one workload on one path, or side by side on several
    Run(run::Run),
    /// Show what can stand in a path, with every option and default
    Layers(layers::Layers),
    /// Convert a trace of any format to CSV or parquet
    Convert(convert::Convert),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Run(command) => command.run(),
        Command::Layers(command) => command.run(),
        Command::Convert(command) => command.run(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Writes results to standard output. A reader that has gone away, such as `head`, is no error.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::write("standard output", error)),
        _ => Ok(()),
    }
}

/// Writes a file whole: beside its place first, so that a failure leaves the old one.
fn write_file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    let name = path.display().to_string();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(|error| Failure::write(&name, error))
}
