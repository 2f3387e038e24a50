//! The program `flashpath`: its command line, its terminal, its files, its threads and its clock.
//!
//! Results go to standard output; progress, warnings and errors to standard error. Exit 0: done. 1: a run failed or a
//! sum did not hold. 2: the command line or an input is wrong. 130: interrupted, after what was measured is printed.

#![allow(clippy::disallowed_methods, reason = "the program has the clock and the threads that the library does not")]
// They panic where the stream is full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod called;
mod capture;
mod convert;
mod failure;
mod image_lock;
mod layers;
mod mount;
mod output;
mod progress;
mod reproduce;
mod resident;
mod run;
mod serve;
mod umount;
mod volume;
mod words;
mod workload;
mod zoned_device;

use clap::{Parser, Subcommand};
use failure::Failure;
use output::{print, report, tell};
use std::path::Path;
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
    flashpath run varmail:threads=2 --in DIR
    flashpath run trace.csv.zst --on page:victim=greedy/nand:preset=tlc --on page:victim=fifo/nand:preset=tlc
'flashpath layers' shows what can stand in a path.";

#[derive(Subcommand)]
enum Command {
    /// Run one workload on one path, side by side on several, or in a directory
    Run(run::Run),
    /// Show what can stand in a path, with every option and default
    Layers(layers::Layers),
    /// Make an empty volume on images
    Mkfs(volume::Mkfs),
    /// Check a volume on images, and repair it
    Fsck(volume::Fsck),
    /// Show what a volume on images holds
    Inspect(volume::Inspect),
    /// Mount a path with sfs on top, until a signal or an unmount
    Mount(mount::Mount),
    /// Unmount what mount or serve --file has mounted, and wait until all of it is stored
    Umount(umount::Umount),
    /// Serve a path as a disk that other programs use
    Serve(serve::Serve),
    /// Record what a kernel file system writes to its device while a command runs in it
    Capture(capture::Capture),
    /// Make the papers' figures again: their experiments, the paper's number beside ours
    Reproduce(reproduce::Reproduce),
    /// Convert a trace of any format to CSV or parquet
    Convert(convert::Convert),
}

fn main() -> ExitCode {
    keep_parquet_panics_silent();
    flashpath::device::zns::open_system_devices_with(zoned_device::open);
    let cli = match Cli::try_parse_from(called::arguments()) {
        Ok(cli) => cli,
        Err(told) => return tell_usage(&told),
    };
    let ended = match cli.command {
        Command::Run(command) => command.run(),
        Command::Layers(command) => command.run(),
        Command::Mkfs(command) => command.run(),
        Command::Fsck(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Mount(command) => command.run(),
        Command::Umount(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Capture(command) => command.run(),
        Command::Reproduce(command) => command.run(),
        Command::Convert(command) => command.run(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => end(report(failure)),
    }
}

/// Says what is wrong with the command line, or the help that was asked for.
fn tell_usage(told: &clap::Error) -> ExitCode {
    let code = match told.print() {
        Err(error) if !told.use_stderr() && error.kind() != std::io::ErrorKind::BrokenPipe => {
            report(Failure::write("standard output", error))
        }
        _ => u8::try_from(told.exit_code()).unwrap_or(2),
    };
    end(code)
}

/// The exit code, as whoever called expects it.
fn end(code: u8) -> ExitCode {
    ExitCode::from(if called::by_mount() { called::exit_code(code) } else { code })
}

/// Whether both names lead to one plain file that is there.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one.is_file() && matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The Parquet library asserts what a damaged file may break. Such a panic is caught where the file is read and becomes
/// an error, so nobody need see it; any other is a bug, and says so.
fn keep_parquet_panics_silent() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let in_parquet = |file: &str| file.split(['/', '\\']).any(|part| part.starts_with("parquet-"));
        if !panic.location().is_some_and(|location| in_parquet(location.file())) {
            report(panic);
        }
    }));
}
