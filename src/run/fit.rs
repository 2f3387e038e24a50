//! Checks that work and options fit their place, before anything is run.

use super::engine::Replay;
use super::error::{InputFault, RunError};
use super::files::Part;
use super::logging::Logging;
use super::path::Path;
use super::work::{Job, Place, RunOptions, Work};
use crate::device::nand::errors::Age;

/// The kinds of work, as bits of a set.
const BLOCKS: u8 = 1;
const FILES: u8 = 2;
const PROGRAM: u8 = 4;

/// The kinds of places, as bits of a set: a device, a simulated volume of this program, a file system of the kernel, a
/// directory, a volume of this program in real time.
const DEVICE: u8 = 1;
const VOLUME: u8 = 2;
const KERNEL: u8 = 4;
const DIRECTORY: u8 = 8;
const PROCESS: u8 = 16;

/// An option, and where it has a meaning.
struct Rule {
    option: &'static str,
    is_given: fn(&RunOptions) -> bool,
    /// The kinds of work.
    work: u8,
    /// The kinds of places.
    places: u8,
    /// What to do instead for a file workload.
    instead: &'static str,
}

const LEAVE_OUT: &str = "leave it out";

const RULES: [Rule; 17] = [
    rule("--size", |given| given.file.bytes.is_some(), BLOCKS, VOLUME | KERNEL | DIRECTORY)
        .instead("set the size by an option of the workload, such as files="),
    rule("--utilization", |given| given.file.utilization.is_some(), BLOCKS, VOLUME),
    rule("--fsync-every", |given| given.file.fsync_every.is_some(), BLOCKS, VOLUME | KERNEL | DIRECTORY)
        .instead("seq_write and rnd_write have an option fsync-every="),
    rule("--depth", |given| matches!(given.replay, Some(Replay::Closed { .. })), BLOCKS, DEVICE | VOLUME),
    rule("--timed", |given| matches!(given.replay, Some(Replay::Open { .. })), BLOCKS, DEVICE | VOLUME),
    rule("--fill", |given| given.fill.is_some(), BLOCKS, DEVICE | VOLUME | KERNEL | DIRECTORY)
        .instead("leave it out: a file workload creates its files itself"),
    rule("--precondition", |given| given.precondition.is_some(), BLOCKS | FILES, DEVICE | VOLUME),
    rule("--verify", |given| given.verify, BLOCKS, DEVICE | VOLUME),
    rule("--age", |given| given.age.is_some(), BLOCKS, DEVICE | VOLUME),
    rule("--limit", |given| given.limit.is_some(), BLOCKS | FILES, DEVICE | VOLUME | KERNEL | DIRECTORY | PROCESS),
    rule("--cpu", |given| given.cpu.is_some(), FILES, VOLUME),
    rule(
        "--max-request",
        |given| given.max_request_bytes.is_some(),
        BLOCKS | FILES | PROGRAM,
        VOLUME | KERNEL | PROCESS,
    ),
    rule("--log", |given| given.log.as_ref().is_some_and(Logging::has_rows), BLOCKS | FILES, DEVICE | VOLUME),
    rule("--waits", |given| given.log.as_ref().is_some_and(Logging::has_waits), BLOCKS | FILES, DEVICE | VOLUME),
    rule("--window", |given| given.window_ns.is_some(), BLOCKS, DEVICE | VOLUME),
    rule("--rate", |given| given.rate_per_day.is_some(), BLOCKS | FILES | PROGRAM, DEVICE | VOLUME | KERNEL),
    rule("--only", |given| given.part != Part::Whole, FILES, DIRECTORY),
];

const fn rule(option: &'static str, is_given: fn(&RunOptions) -> bool, work: u8, places: u8) -> Rule {
    Rule { option, is_given, work, places, instead: LEAVE_OUT }
}

impl Rule {
    const fn instead(self, instead: &'static str) -> Rule {
        Rule { instead, ..self }
    }
}

/// Checks that the work can be done in its place, and that every option has a meaning for both.
pub(super) fn check(job: &Job<'_>) -> Result<(), RunError> {
    check_work(job)?;
    for rule in RULES.iter().filter(|rule| (rule.is_given)(&job.options)) {
        if rule.work & kind_of_work(&job.work) == 0 {
            return Err(not_for_the_work(rule, job));
        }
        if rule.places & kind_of_place(job.place) == 0 {
            return Err(not_in_the_place(rule, job));
        }
    }
    if let (Some(age), Place::Path(path)) = (&job.options.age, job.place) {
        check_age(age, path, &job.options)?;
    }
    if job.options.part == Part::Setup && job.options.limit.is_some() {
        let what = "--limit has no meaning with --only setup: it limits the counted operations".to_string();
        return Err(refused(what, "leave --limit out, or use it with --only counted"));
    }
    if job.options.window_ns.is_some() && !matches!(job.options.replay, Some(Replay::Open { .. })) {
        let what =
            "--window divides recorded times, and without --timed a trace is replayed as fast as the path allows";
        return Err(refused(
            what.to_string(),
            "add --timed, or leave --window out: windows of equal writes are always there",
        ));
    }
    match (&job.work, job.options.replay) {
        (Work::Blocks(blocks), Some(Replay::Open { .. })) if !blocks.has_times => {
            let what = "--timed needs a trace: only traces have recorded times".to_string();
            Err(refused(what, "leave --timed out, or run a trace"))
        }
        _ => Ok(()),
    }
}

/// Checks that something in the path ages.
fn check_age(age: &Age, path: &Path, options: &RunOptions) -> Result<(), RunError> {
    let is_alone = path.volume_settings().is_none() && path.kernel().is_none();
    let Some(drive) = path.drive().filter(|_| is_alone) else {
        let what = format!("--age is of a translation layer on flash, and {} is none", path.text);
        return Err(refused(what, "run on page/nand:errors=on alone, or leave it out"));
    };
    if drive.nand.errors.is_none() {
        let what = format!("--age has no effect on {}: its flash has no errors", path.text);
        return Err(refused(what, "add errors=on to nand, or leave it out"));
    }
    if age.years > 0.0 && !options.fill.is_some() && options.precondition.is_none() {
        let what = format!("--age {} lets nothing grow old: nothing is written before the count", age.text);
        return Err(refused(what, "add --fill or --precondition, or leave years out"));
    }
    Ok(())
}

fn kind_of_work(work: &Work<'_>) -> u8 {
    match work {
        Work::Blocks(_) => BLOCKS,
        Work::Files(_) => FILES,
        Work::Program(_) => PROGRAM,
    }
}

fn kind_of_place(place: Place<'_>) -> u8 {
    match place {
        Place::Directory(_) => DIRECTORY,
        Place::InProcess(_) => PROCESS,
        Place::Path(path) if path.kernel().is_some() => KERNEL,
        Place::Path(path) if path.volume_settings().is_some() => VOLUME,
        Place::Path(_) => DEVICE,
    }
}

/// Checks that the place has what the work needs, whatever the options.
fn check_work(job: &Job<'_>) -> Result<(), RunError> {
    let (name, place) = (job.work.name(), job.place.name());
    if let Place::InProcess(path) = job.place
        && path.volume_settings().is_none()
    {
        let what = format!("--in-process needs a file system of this program, and {place} has none on top");
        return Err(refused(what, "put ext/, sfs/ or tree before the path, or leave --in-process out"));
    }
    match (kind_of_work(&job.work), kind_of_place(job.place)) {
        (FILES | PROGRAM, DEVICE) => Err(refused(
            format!("{name} needs files, and {place} has no file system on top"),
            "use --in DIR instead of --on, or put sfs/ or kernel-ext4/ before the path",
        )),
        (BLOCKS, PROCESS) => Err(refused(
            format!("{name} asks for blocks, and {place} runs in this process in real time"),
            "leave --in-process out, or run it in a directory of a mounted volume with --in DIR",
        )),
        (PROGRAM, VOLUME | PROCESS) => Err(refused(
            format!("{name} needs a mounted file system, and {place} runs inside this process"),
            "mount it with 'flashpath mount', or use kernel-ext4/ instead of sfs/",
        )),
        (PROGRAM, DIRECTORY) => {
            Err(refused(format!("{name} needs a path with a kernel file system"), "use --on kernel-ext4/PATH"))
        }
        (BLOCKS, DIRECTORY) if job.options.file.bytes.is_none() => Err(refused(
            format!("{name} is a block workload: --in needs the size of its disk"),
            "add --size, such as --size 1G",
        )),
        _ => Ok(()),
    }
}

fn not_for_the_work(rule: &Rule, job: &Job<'_>) -> RunError {
    let (option, name) = (rule.option, job.work.name());
    match (kind_of_work(&job.work), option) {
        (FILES, _) => refused(format!("{option} is for block workloads, and {name} is a file workload"), rule.instead),
        (BLOCKS, "--cpu") => refused(
            format!("{option} is for file workloads, and {name} on {} asks for blocks", job.place.name()),
            "leave it out: blocks cost no CPU time",
        ),
        (BLOCKS, _) => refused(
            format!("{option} is for file workloads, and {name} is a block workload"),
            "leave it out: a block workload and its disk are one run",
        ),
        _ => refused(format!("{option} is for workloads of this program, and {name} is another program"), LEAVE_OUT),
    }
}

fn not_in_the_place(rule: &Rule, job: &Job<'_>) -> RunError {
    let (option, place) = (rule.option, job.place.name());
    match kind_of_place(job.place) {
        KERNEL if rule.places & VOLUME != 0 => {
            refused(format!("{option} is for simulated runs, and {place} runs on this machine's kernel"), LEAVE_OUT)
        }
        DIRECTORY | PROCESS => {
            refused(format!("{option} is for simulated runs, and a run in {place} is none"), LEAVE_OUT)
        }
        DEVICE => refused(
            format!("{option} is for files, and {place} has no file system on top"),
            "leave it out, use --in DIR, or put sfs/ or kernel-ext4/ before the path",
        ),
        _ => refused(
            format!("{option} is for a directory that keeps its files, and {place} is new in each run"),
            "leave it out, or use --in DIR",
        ),
    }
}

fn refused(what: String, help: &str) -> RunError {
    InputFault::Refused { what, help: Some(help.to_string()) }.into()
}

impl Work<'_> {
    /// Its name in messages.
    fn name(&self) -> &str {
        match self {
            Work::Blocks(blocks) => &blocks.name,
            Work::Files(workload) => &workload.name,
            Work::Program(program) => &program.name,
        }
    }
}

impl Place<'_> {
    /// Its name in results and messages.
    fn name(&self) -> String {
        match self {
            Place::Path(path) | Place::InProcess(path) => path.text.clone(),
            Place::Directory(directory) => directory.display().to_string(),
        }
    }
}
