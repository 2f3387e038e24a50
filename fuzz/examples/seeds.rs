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

#[allow(dead_code)]
#[path = "../../crates/nvme/tests/properties/sessions.rs"]
mod nvme_sessions;
#[allow(dead_code)]
#[path = "../../crates/nbd/tests/properties/script.rs"]
mod script;

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

/// A drive of every layer, so small that it collects at once, and its work.
const DRIVES: [&str; 7] = [
    "page:victim=cost-benefit,wear=static,wear-gap=2/nand:size=512K,pages-per-block=8,channels=2\nuniform:discards=10%",
    "page:pace=2,export=50%/nand:size=2M,pages-per-block=8,channels=2,dies=2,suspend=both,suspend-reads=3\nuniform:reads=50%",
    "page:streams=hint,hints=3,spare-shares=20%+30%+50%,export=50%/nand:size=1M,pages-per-block=4\nzipf:reads=10%",
    "dftl:table=3,export=60%,protected=0%/nand:size=1M,page=2K,pages-per-block=16\nhotcold:r=0.1,f=0.9",
    "dftl:table=9,frontiers=shared,streams=content,export=40%/nand:size=1M,pages-per-block=5\nuniform:request=512",
    "fast:random-logs=2,export=70%/nand:size=512K,pages-per-block=8,endurance=9\nsequential:discards=20%",
    "superblock:blocks=3,updates=2,cache=1,export=70%/nand:size=512K,pages-per-block=8\nzipf:theta=1.1",
];

fn write(target: &str, seeds: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = format!("corpus/{target}");
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.enumerate() {
        fs::write(format!("{folder}/seed-{number}"), seed)?;
    }
    Ok(())
}

/// A handshake, and one request of every kind.
fn nbd_session(structured: bool) -> Vec<u8> {
    let mut bytes = script::handshake(structured);
    for (number, command) in [1, 0, 6, 4, 7, 3, 2].into_iter().enumerate() {
        let step = script::Step { flags: 0, command, offset: 4000, length: 200, fill: 7 };
        bytes.extend(script::request(&step, number as u64));
    }
    bytes
}

fn main() -> io::Result<()> {
    let sized = |text: &str| [&DEVICE_BYTES.to_le_bytes(), text.as_bytes()].concat();
    let texts = PATHS.iter().chain(&NO_PATHS).chain(&GENERATORS);
    write("path_expression", texts.map(|text| sized(text)))?;
    write("fio_job", JOBS.iter().map(|text| sized(text)))?;
    let drives = DRIVES.iter().enumerate().map(|(seed, text)| [&seed.to_le_bytes(), text.as_bytes()].concat());
    write("drive", drives)?;
    write("nbd_session", [true, false].into_iter().map(nbd_session))?;
    // Every command of administration, each with a few fields.
    let steps: Vec<_> = (0..24).map(|number: u8| ([number, 1, number, 1, 0, 0, 0, number, 0, 127, 0, 0], 64)).collect();
    let sessions = [nvme_sessions::connected(0, true), nvme_sessions::connected(3, false), nvme_sessions::script(&steps)];
    write("nvme_session", sessions.into_iter())?;
    write("trace", samples::all().into_iter().map(|(_, bytes)| bytes))?;
    let with_format = samples::all().into_iter().map(|(name, bytes)| {
        let format = Format::ALL.iter().position(|format| format.name() == name).unwrap_or_default();
        [&[format as u8][..], &bytes].concat()
    });
    write("trace_format", with_format)
}
