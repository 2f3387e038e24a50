//! Runs what this crate adds beside what the library has, and prints one table for each question.
//!
//! `flashpath-plugin [SIZE]`: the raw size of each drive, by default 256M.

use flashpath::report::{RunResult, table};
use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath_plugin::stations;
use std::error::Error;

/// A question, the workload that answers it, and the paths; `SIZE` is that of the drive.
const COMPARISONS: [(&str, &str, &[&str]); 4] = [
    (
        "Sequential writes: does a map of blocks suffice?",
        "sequential:writes=2x",
        &["block-map/nand:size=SIZE", "page/nand:size=SIZE"],
    ),
    (
        "Random writes: what does it cost?",
        "uniform:writes=0.1x,request=16K",
        &["block-map/nand:size=SIZE", "fast/nand:size=SIZE", "page/nand:size=SIZE"],
    ),
    (
        "Hot and cold pages: which victims?",
        "hotcold:r=0.2,f=0.8,writes=4x",
        &[
            "page:victim=greedy/nand:size=SIZE",
            "page:victim=cost-benefit/nand:size=SIZE",
            "page:victim=cost-age-times/nand:size=SIZE",
        ],
    ),
    (
        "A file on sfs: which groups?",
        "zipf:theta=1,writes=4x",
        &[
            "sfs:segment=512K,grouping=none/conv:size=SIZE",
            "sfs:segment=512K,grouping=sfs/conv:size=SIZE",
            "sfs:segment=512K,grouping=interval/conv:size=SIZE",
        ],
    ),
];

fn run_one(path: &str, workload: &str) -> Result<RunResult, Box<dyn Error>> {
    let path = Path::read_with(path, &stations()).map_err(|error| error.to_string())?;
    let work = Work::Blocks(BlockWork::generated(workload, 1)?);
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let outcome = run(Job { work, place: Place::Path(&path), seed: 1, options }, &NoMachine, &mut |_| true)?;
    match outcome.failure {
        Some(failure) => Err(format!("{}: {failure}", path.text).into()),
        None => Ok(outcome.result),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let size = std::env::args().nth(1).unwrap_or_else(|| "256M".to_string());
    for (question, workload, paths) in COMPARISONS {
        println!("{question} ({workload})\n");
        let results: Result<Vec<RunResult>, _> =
            paths.iter().map(|path| run_one(&path.replace("SIZE", &size), workload)).collect();
        println!("{}", table(&results?, 100, false));
    }
    Ok(())
}
