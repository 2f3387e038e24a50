//! The program `flashpath`: command line, terminal, files, threads and clock.
//!
//! Results go to standard output; progress, warnings and errors to standard error. Exit 0: done. 1: a run failed or a
//! sum did not hold. 2: the command line or an input is wrong. 130: interrupted; the results so far are printed.

#![allow(clippy::disallowed_methods, reason = "the program owns the clock and the threads that the library lacks")]
// These macros panic if the stream is full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod calibrate;
mod capture;
mod convert;
mod failure;
mod image_lock;
mod invocation;
mod layers;
mod monitor;
mod mount;
mod output;
mod pages;
mod progress;
mod record;
mod reproduce;
mod resident;
mod run;
mod serve;
mod sweep;
mod trace_file;
mod umount;
mod volume;
mod words;
mod workload;
mod zoned_device;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use output::{print, print_message, report};
use std::path::Path;
use std::process::ExitCode;

/// Show, and shorten, the path of every write from file to flash.
#[derive(Parser)]
#[command(name = "flashpath", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
A path is written from top to bottom: stations joined by '/', options after ':', joined by ','.
    flashpath run uniform:writes=6x --on page:op=7%/nand:size=8G
    flashpath run varmail:threads=2 --in DIR
    flashpath run trace.csv.zst --on page:victim=greedy/nand:preset=tlc --on page:victim=fifo/nand:preset=tlc
Sizes are binary (4K, 1.5G, 64MiB); with a B alone they are decimal, as drives are sold (512GB).
'flashpath layers' shows all stations and options.";

#[derive(Subcommand)]
enum Command {
    /// Run a workload on one or several paths, or in a directory
    Run(Box<run::Run>),
    /// Run a workload on many paths, with many options and seeds, beside each other: a table with a row for each run
    Sweep(Box<sweep::Sweep>),
    /// Show all stations and workloads, with every option and default
    Layers(layers::Layers),
    /// Make an empty volume on images
    Mkfs(volume::Mkfs),
    /// Check a volume on images, and repair it
    Fsck(volume::Fsck),
    /// Show the content of a volume on images
    Inspect(volume::Inspect),
    /// Mount a path with a file system of this program on top, until a signal or an unmount
    Mount(mount::Mount),
    /// Unmount a mount of `mount` or `serve --file`, and wait until all data is stored
    Umount(umount::Umount),
    /// Serve a path as a disk for other programs
    Serve(serve::Serve),
    /// Keep the committed memory of mounts with ext:journal=vmm, and write it home when one dies
    Monitor(monitor::Monitor),
    /// Record the writes of a kernel file system to its device while a command runs in it
    Capture(capture::Capture),
    /// Record the requests that reach block devices of this machine, until Ctrl-C
    Record(record::Record),
    /// Reproduce the papers' figures: their experiments, with the paper's numbers beside ours
    Reproduce(reproduce::Reproduce),
    /// Measure the CPU time of each kind of file system step on this machine, for run --cpu
    Calibrate(calibrate::Calibrate),
    /// Convert a trace of any format to CSV or Parquet
    Convert(convert::Convert),
    /// Write the manual pages, one for each command
    Man(pages::Man),
    /// Print the completions for a shell
    Completions(pages::Completions),
}

fn main() -> ExitCode {
    keep_parquet_panics_silent();
    flashpath::device::zns::open_system_devices_with(zoned_device::open);
    let cli = match Cli::try_parse_from(invocation::arguments()) {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => return end(report(not_text())),
        Err(error) => return print_usage(&error),
    };
    let ended = match cli.command {
        Command::Run(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Layers(command) => command.run(),
        Command::Mkfs(command) => command.run(),
        Command::Fsck(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Mount(command) => command.run(),
        Command::Umount(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Monitor(command) => command.run(),
        Command::Capture(command) => command.run(),
        Command::Record(command) => command.run(),
        Command::Reproduce(command) => command.run(),
        Command::Calibrate(command) => command.run(),
        Command::Convert(command) => command.run(),
        Command::Man(command) => command.run(Cli::command()),
        Command::Completions(command) => command.run(Cli::command()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => end(report(failure)),
    }
}

/// The error of an argument that must be text and is not.
fn not_text() -> Failure {
    let argument = invocation::arguments().into_iter().find(|argument| argument.to_str().is_none()).unwrap_or_default();
    let message =
        format!("{} is not text (UTF-8), as paths of stations and words of options must be", argument.display());
    Failure::input(message, Some("give the file that it names another name, or a link of another name".to_string()))
}

/// Prints a usage error, or the requested help.
fn print_usage(usage: &clap::Error) -> ExitCode {
    let code = match usage.print() {
        Err(error) if !usage.use_stderr() && error.kind() != std::io::ErrorKind::BrokenPipe => {
            report(Failure::write("standard output", error))
        }
        _ => u8::try_from(usage.exit_code()).unwrap_or(2),
    };
    end(code)
}

/// The exit code, translated if mount(8) has called.
fn end(code: u8) -> ExitCode {
    ExitCode::from(if invocation::by_mount() { invocation::exit_code(code) } else { code })
}

/// True if both names are one existing regular file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one.is_file() && matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Silences panics of the Parquet library, which damaged files can cause: the trace reader turns them into errors. Any
/// other panic is a bug, and is printed.
fn keep_parquet_panics_silent() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let in_parquet = |file: &str| file.split(['/', '\\']).any(|part| part.starts_with("parquet-"));
        if !panic.location().is_some_and(|location| in_parquet(location.file())) {
            report(panic);
        }
    }));
}
