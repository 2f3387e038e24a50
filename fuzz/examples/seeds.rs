//! Writes the samples of the tests to `corpus/TARGET/`, as the first inputs of every target.

use expressions::{GENERATORS, NO_PATHS, PATHS};
use flashpath::workload::trace::Format;
use std::{fs, io};

#[allow(dead_code)]
#[path = "../../tests/properties/expressions.rs"]
mod expressions;
#[allow(dead_code)]
#[path = "../../src/workload/trace/samples.rs"]
mod samples;

/// The device of the expressions and jobs: 1 GiB.
const DEVICE_BYTES: u64 = 1 << 30;
/// Between them they have every key that is honoured.
const JOBS: [&str; 6] = [
    "[a]\nrw=randwrite\nbs=4k\nsize=50%\nio_size=1m\n",
    "; a comment\n[global]\nbs=4k,8k\niodepth=4\nioengine=libaio\n[a]\nrw=randrw\nrwmixread=33.3\n[b]\nrw=read\nstonewall\n",
    "[a]\nrw=write\nsize=16k\nloops=2\nfsync=3\nend_fsync=1\nfdatasync=2\nwrite_hint=long\n",
    "[a]\nrw=randtrimwrite\nrandom_distribution=zipf:1.2\nnorandommap\nrandseed=7\nnumjobs=2\noffset_increment=1m\n",
    "[a]\nrw=randread\nrandom_distribution=zoned:60/10:30/20:8/30:2/40\npercentage_random=50\noffset=1%\n",
    "[a]\nrw=randwrite\nrandom_distribution=pareto:0.3\nruntime=0\n[b]\nrw=randwrite\nrandom_distribution=normal:20\nrwmixwrite=10\n",
];

fn write(target: &str, seeds: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = format!("corpus/{target}");
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.enumerate() {
        fs::write(format!("{folder}/seed-{number}"), seed)?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let sized = |text: &str| [&DEVICE_BYTES.to_le_bytes(), text.as_bytes()].concat();
    let texts = PATHS.iter().chain(&NO_PATHS).chain(&GENERATORS);
    write("path_expression", texts.map(|text| sized(text)))?;
    write("fio_job", JOBS.iter().map(|text| sized(text)))?;
    write("trace", samples::all().into_iter().map(|(_, bytes)| bytes))?;
    let with_format = samples::all().into_iter().map(|(name, bytes)| {
        let format = Format::ALL.iter().position(|format| format.name() == name).unwrap_or_default();
        [&[format as u8][..], &bytes].concat()
    });
    write("trace_format", with_format)
}
