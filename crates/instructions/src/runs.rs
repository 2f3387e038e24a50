//! Block workloads on drives, and in files of volumes in memory.

use flashpath::run::{BlockWork, Fill, Job, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath::units::BLOCK_BYTES;
use flashpath::workload::Workload;
use flashpath::workload::trace::{TraceOptions, TraceWorkload};
use std::fmt::Write;
use std::path::PathBuf;

/// A run that is ready.
pub struct Ready {
    path: Path,
    /// The text of a generator, or the file of a trace.
    work: Source,
    options: RunOptions,
}

enum Source {
    Generator(&'static str),
    Trace(PathBuf),
}

/// A drive of 64 MiB: collection begins soon, and every layer has enough spare blocks on every plane.
fn drive(layer: &str, planes: u32, is_timed: bool) -> String {
    let (channels, dies) = if planes == 1 { (1, 1) } else { (2, planes / 2) };
    let timing = if is_timed { "on" } else { "off" };
    format!(
        "{layer}:export=80%/nand:size=64M,page=4K,pages-per-block=64,channels={channels},dies={dies},timing={timing}"
    )
}

/// A generator on a drive that is filled.
pub fn on_drive(layer: &str, planes: u32, is_timed: bool, work: &'static str) -> Ready {
    let options = RunOptions { fill: Fill::ALL, limit: Some(crate::units("host_writes")), ..RunOptions::default() };
    Ready { path: Path::read(&drive(layer, planes, is_timed)).expect("a path"), work: Source::Generator(work), options }
}

/// The first writes of a drive, which is not filled before.
pub fn of_new_drive(layer: &str, planes: u32, is_timed: bool) -> Ready {
    let filled = on_drive(layer, planes, is_timed, "sequential");
    let path = Path::read(&drive(layer, planes, is_timed).replace("size=64M", "size=256M")).expect("a path");
    Ready { path, options: RunOptions { fill: Fill::NONE, ..filled.options }, ..filled }
}

/// A trace of writes on a drive that is filled.
pub fn of_trace(layer: &str, planes: u32, is_timed: bool) -> Ready {
    let mut text = "time_ns,device,action,offset_bytes,length_bytes,content,stream\n".to_string();
    let mut page = 1u64;
    for number in 0..crate::units("host_writes") {
        page = page.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let offset = (page >> 33) % 6000 * BLOCK_BYTES;
        let content = if number % 8 == 0 { "metadata" } else { "data" };
        writeln!(text, "{},0,write,{offset},{BLOCK_BYTES},{content},0", number * 1000).expect("a string grows");
    }
    let file = std::env::temp_dir().join(format!("flashpath-instructions-{}.csv", std::process::id()));
    std::fs::write(&file, text).expect("the trace is written");
    Ready { work: Source::Trace(file), ..on_drive(layer, planes, is_timed, "uniform") }
}

/// Random writes in a file of a volume in memory, with an fsync after each `fsync_every`; `kind` is that of the units.
pub fn in_volume(path: &str, fsync_every: Option<u64>, kind: &str) -> Ready {
    let mut options = RunOptions { limit: Some(crate::units(kind)), ..RunOptions::default() };
    options.file.bytes = Some(16 << 20);
    options.file.fsync_every = fsync_every;
    Ready { path: Path::read(path).expect("a path"), work: Source::Generator("uniform:writes=100x"), options }
}

/// Runs it.
pub fn done(ready: Ready) {
    let Ready { path, work, options } = ready;
    let limit = options.limit;
    let (work, file) = match work {
        Source::Generator(text) => (BlockWork::generated(text, 1).expect("a generator"), None),
        Source::Trace(file) => {
            let trace = file.clone();
            let open = move |bytes| {
                let replay = TraceWorkload::open(&trace, TraceOptions::default(), bytes)?;
                Ok(Box::new(replay) as Box<dyn Workload>)
            };
            (BlockWork { name: "trace".to_string(), has_times: true, open: Box::new(open) }, Some(file))
        }
    };
    let job = Job { work: Work::Blocks(work), place: Place::Path(&path), seed: 1, options };
    let outcome = run(job, &NoMachine, &mut |_| true).expect("the job fits");
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(Some(outcome.result.workload.requests), limit, "a cell does all of its units");
    if let Some(file) = file {
        std::fs::remove_file(file).expect("the trace is there");
    }
}
