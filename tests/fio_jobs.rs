//! fio job files as workloads: their keys, the order of jobs, and errors with their lines.

use flashpath::workload::fio_job::{fio_job, fio_job_text};
use flashpath::workload::{Action, Operation, Workload, WorkloadError};
use properties::check_job;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[path = "properties/jobs.rs"]
mod properties;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn job(text: &str, device_bytes: u64) -> Result<Box<dyn Workload>, WorkloadError> {
    fio_job_text("x.fio", text, device_bytes, 1)
}

fn drain(workload: &mut dyn Workload) -> Vec<Operation> {
    let mut all = Vec::new();
    while workload.next_batch(&mut all, 100).expect("a job does not fail") > 0 {}
    all
}

fn operations(text: &str, device_bytes: u64) -> Vec<Operation> {
    drain(job(text, device_bytes).expect("the job is right").as_mut())
}

/// Operations in short form: `w8` writes at 8 KiB; `r`, `d` and `f` read, discard and flush.
fn short(text: &str, device_bytes: u64) -> String {
    let name = |operation: &Operation| match operation.action {
        Action::Read => format!("r{}", operation.offset_bytes / KIB),
        Action::Write => format!("w{}", operation.offset_bytes / KIB),
        Action::Discard => format!("d{}", operation.offset_bytes / KIB),
        Action::Flush => "f".to_string(),
    };
    operations(text, device_bytes).iter().map(name).collect::<Vec<_>>().join(" ")
}

fn visits(operations: &[Operation]) -> BTreeMap<u64, usize> {
    let mut visits = BTreeMap::new();
    operations.iter().for_each(|operation| *visits.entry(operation.offset_bytes).or_default() += 1);
    visits
}

#[test]
fn sequential_jobs_go_through_their_region_and_round_again() {
    for (keys, due) in [
        ("rw=write\nsize=16k", "w0 w4 w8 w12"),
        ("rw=read\nbs=8k\nsize=16k\noffset=4k", "r4 r12"),
        ("rw=trim\nsize=50%\noffset=25%", "d16 d20 d24 d28 d32 d36 d40 d44"),
        ("rw=write\nsize=8k\nio_size=10k", "w0 w4 w0"),
        ("rw=write\nsize=16k\nio_size=50%", "w0 w4"),
        ("rw=write\nsize=8k\nloops=2", "w0 w4 w0 w4"),
        ("rw=write\nbs=3k\nsize=16k", "w0 w3 w6 w9 w12"),
        ("rw=write\noffset=56k", "w56 w60"),
        ("size=8k", "r0 r4"),
    ] {
        assert_eq!(short(&format!("[a]\n{keys}\n"), 64 * KIB), due, "{keys}");
    }
}

#[test]
fn reads_and_writes_of_a_sequential_mix_each_have_their_own_position() {
    let all = operations("[a]\nrw=rw\nrwmixread=25\nsize=1m\n", MIB);
    assert_eq!(all.len(), 256);
    for (action, share) in [(Action::Read, 0.25), (Action::Write, 0.75)] {
        let own: Vec<u64> = all.iter().filter(|o| o.action == action).map(|o| o.offset_bytes / 4096).collect();
        assert!((own.len() as f64 / 256.0 - share).abs() < 0.1);
        assert_eq!(own, (0..own.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn the_later_of_rwmixread_and_rwmixwrite_counts() {
    let writes = |mix: &str| {
        let all = operations(&format!("[a]\nrw=randrw\nsize=16m\n{mix}\n"), 16 * MIB);
        all.iter().filter(|operation| operation.action == Action::Write).count() as f64 / all.len() as f64
    };
    assert!((writes("rwmixread=90\nrwmixwrite=20") - 0.2).abs() < 0.03);
    assert!((writes("rwmixwrite=20\nrwmixread=10") - 0.9).abs() < 0.03);
    assert!((writes("") - 0.5).abs() < 0.03);
}

#[test]
fn a_random_job_visits_each_block_once_before_any_again() {
    for rw in ["randwrite", "randread", "randtrim", "randrw"] {
        let all = operations(&format!("[a]\nrw={rw}\nsize=1000k\noffset=12k\nloops=2\n"), MIB + 1234);
        assert_eq!(all.len(), 500);
        for round in all.chunks(250) {
            let offsets: Vec<u64> = visits(round).into_keys().collect();
            assert_eq!(offsets, (0..250).map(|block| 12 * KIB + block * 4096).collect::<Vec<_>>(), "{rw}");
        }
        assert!(all.windows(2).filter(|pair| pair[1].offset_bytes == pair[0].end_bytes()).count() < 20, "{rw}");
    }
}

#[test]
fn without_the_map_blocks_are_visited_more_than_once_or_never() {
    for keys in ["norandommap", "percentage_random=99", "random_distribution=zipf:0.5"] {
        let all = operations(&format!("[a]\nrw=randwrite\nsize=1m\n{keys}\n"), MIB);
        assert_eq!(all.len(), 256);
        assert!(visits(&all).len() < 256, "{keys}");
    }
}

#[test]
fn a_partly_random_job_has_its_share_of_sequential_requests() {
    let all = operations("[a]\nrw=randwrite\nsize=64m\npercentage_random=30\n", 64 * MIB);
    let follows = all.windows(2).filter(|pair| pair[1].offset_bytes == pair[0].end_bytes()).count();
    assert!((follows as f64 / all.len() as f64 - 0.7).abs() < 0.02);
}

#[test]
fn a_trim_write_discards_each_block_and_then_writes_it() {
    assert_eq!(short("[a]\nrw=trimwrite\nsize=12k\n", MIB), "d0 w0 d4 w4 d8 w8");
    let all = operations("[a]\nrw=randtrimwrite\nsize=1m\n", MIB);
    assert_eq!(all.len(), 512);
    for pair in all.chunks(2) {
        assert_eq!((pair[0].action, pair[1].action), (Action::Discard, Action::Write));
        assert_eq!(pair[0].offset_bytes, pair[1].offset_bytes);
    }
}

#[test]
fn a_flush_follows_every_nth_write() {
    for (keys, due) in [
        ("fsync=2", "w0 w4 f w8 w12"),
        ("fdatasync=3", "w0 w4 w8 f w12"),
        ("fsync=3\nend_fsync=1", "w0 w4 w8 f w12 f"),
        ("fsync=0", "w0 w4 w8 w12"),
    ] {
        assert_eq!(short(&format!("[a]\nrw=write\nsize=16k\n{keys}\n"), MIB), due, "{keys}");
    }
    assert_eq!(short("[a]\nrw=trimwrite\nsize=8k\nfsync=1\n", MIB), "d0 w0 f d4 w4");
    assert_eq!(short("[a]\nrw=read\nsize=8k\nfsync=1\n", MIB), "r0 r4");
}

#[test]
fn block_sizes_may_differ_between_reads_and_writes() {
    let all = operations("[a]\nrw=randrw\nbs=4k,16k\nsize=1m\nnorandommap\n", MIB);
    for operation in all {
        let size = if operation.action == Action::Read { 4 * KIB } else { 16 * KIB };
        assert_eq!((operation.length_bytes, operation.offset_bytes % size), (size, 0));
    }
}

#[test]
fn jobs_take_turns_and_clones_have_their_own_regions() {
    let text = "[global]\nrw=write\nsize=8k\n[a]\nnumjobs=2\noffset_increment=16k\n[b]\noffset=32k\nsize=12k\n";
    assert_eq!(short(text, MIB), "w0 w16 w32 w4 w20 w36 w40");
}

#[test]
fn a_stonewall_waits_for_the_jobs_above_it() {
    let text =
        "[a]\nrw=write\nsize=8k\n[b]\nrw=read\nsize=8k\n[c]\nstonewall\nrw=trim\nsize=8k\n[d]\nrw=write\nsize=4k\n";
    assert_eq!(short(text, MIB), "w0 r0 w4 r4 d0 w0 d4");
}

#[test]
fn the_queue_depth_is_that_of_the_jobs_in_flight_and_no_batch_spans_two_groups() {
    let text = "[a]\nrw=write\nsize=8k\niodepth=8\nnumjobs=2\n[b]\nstonewall\nrw=read\nsize=8k\niodepth=32\n";
    let mut workload = job(text, MIB).unwrap();
    let mut batch = Vec::new();
    assert_eq!(workload.queue_depth(), Some(16));
    assert_eq!(workload.next_batch(&mut batch, 100).unwrap(), 4);
    assert_eq!(workload.progress(), Some(4.0 / 6.0));
    assert_eq!(workload.queue_depth(), Some(32));
    assert_eq!(workload.next_batch(&mut batch, 100).unwrap(), 2);
    assert_eq!(workload.next_batch(&mut batch, 100).unwrap(), 0);
    assert_eq!((workload.progress(), workload.queue_depth()), (Some(1.0), None));
}

#[test]
fn a_synchronous_engine_has_one_request_in_flight() {
    let workload = job("[a]\nioengine=psync\niodepth=32\n", MIB).unwrap();
    assert_eq!(workload.queue_depth(), Some(1));
    assert!(workload.warnings()[0].starts_with("x.fio:2: ioengine=psync"));
    assert_eq!(job("[a]\nioengine=libaio\niodepth=32\n", MIB).unwrap().queue_depth(), Some(32));
}

#[test]
fn a_write_hint_is_the_stream_of_the_writes() {
    for operation in operations("[a]\nrw=randrw\nsize=1m\nwrite_hint=long\n", MIB) {
        assert_eq!(operation.stream, if operation.action == Action::Write { 3 } else { 0 });
    }
}

#[test]
fn zones_get_their_shares() {
    let all = operations("[a]\nrw=randwrite\nsize=64m\nrandom_distribution=zoned:60/10:30/20:10/70\n", 64 * MIB);
    for (end, due) in [(0.1, 0.6), (0.3, 0.9), (1.0, 1.0)] {
        let below = all.iter().filter(|o| (o.offset_bytes as f64) < end * (64 * MIB) as f64).count();
        assert!((below as f64 / all.len() as f64 - due).abs() < 0.01, "the first {end}");
    }
}

#[test]
fn a_centre_moves_the_most_popular_block_there() {
    for (distribution, centre) in [("zipf:1.2", 0.25), ("pareto:0.1", 0.0), ("zipf:1", 1.0)] {
        let keys = format!("rw=randwrite\nsize=4m\nio_size=64m\nrandom_distribution={distribution}:{centre}");
        let visits = visits(&operations(&format!("[a]\n{keys}\n"), 4 * MIB));
        let (most, _) = visits.iter().max_by_key(|(_, count)| **count).unwrap();
        assert_eq!(*most / 4096, ((1024.0 * centre) as u64).min(1023), "{distribution}");
    }
}

#[test]
fn randseed_overrides_the_seed_of_the_run() {
    let run = |text: &str, seed: u64| drain(fio_job_text("x.fio", text, MIB, seed).unwrap().as_mut());
    let (free, pinned) = ("[a]\nrw=randwrite\n", "[a]\nrw=randwrite\nrandseed=5\n");
    assert_eq!(run(free, 1), run(free, 1));
    assert_ne!(run(free, 1), run(free, 2));
    assert_eq!(run(pinned, 1), run(pinned, 2));
    assert_ne!(run(pinned, 1), run("[a]\nrw=randwrite\nrandseed=6\n", 1));
}

#[test]
fn clones_draw_their_own_offsets() {
    let all = operations("[a]\nrw=randwrite\nnumjobs=2\n", MIB);
    let (first, second): (Vec<_>, Vec<_>) = all.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    assert_ne!(first, second);
}

#[test]
fn keys_of_the_engine_are_ignored_and_other_unsupported_keys_warn_once() {
    let text = "[global]\nioengine=libaio\ndirect=1\nthread\ngroup_reporting\ninvalidate=1\nverify=crc32c\nname=x\n\
                filename=/dev/nvme0n1\nruntime=60\nsome_engines_key=7\n[a]\nsize=4k\n[b]\nsize=4k\n";
    let mut workload = job(text, MIB).unwrap();
    assert_eq!(drain(workload.as_mut()).len(), 2);
    assert_eq!(
        workload.warnings(),
        [
            "x.fio:11: unknown key 'some_engines_key' is ignored",
            "x.fio:10: runtime is ignored: the job ends at its size",
            "x.fio:9: filename is ignored: requests go to the path",
        ]
    );
}

#[test]
fn unsupported_keys_are_refused_with_their_line() {
    for (keys, expected) in [
        ("bs=4x", "x.fio:2: bs=4x: '4x' is not a size"),
        ("bs=0", "x.fio:2: bs=0: '0' is not a size from 512"),
        ("rw=sideways", "x.fio:2: rw=sideways: expected read, write,"),
        ("rw=randwrite:8", "x.fio:2: rw=randwrite:8: offset modifiers"),
        ("rw=write\nsize=2g", "x.fio:3: size=2g: 2G exceeds the device of 1M"),
        ("rw=write\noffset=1m", "x.fio:3: offset=1m: no block of 4K fits"),
        ("offset_increment=1m\nnumjobs=2", "x.fio:2: offset_increment=1m: no block"),
        ("numjobs=0", "x.fio:2: numjobs=0: the range is 1 to"),
        ("iodepth=-1", "x.fio:2: iodepth=-1: not a whole number"),
        ("io_size=0", "x.fio:2: io_size=0: it moves no bytes"),
        ("time_based", "x.fio:2: time_based=1: this key is not implemented: it depends on the clock"),
        ("bssplit=4k/50:8k/50", "x.fio:2: bssplit=4k/50:8k/50: this key is not implemented"),
        ("rate_iops=100", "x.fio:2: rate_iops=100: this key is not implemented: it depends on the clock"),
        ("sync=1", "x.fio:2: sync=1: this key is not implemented: use fsync=1"),
        ("filename=/dev/a:/dev/b", "x.fio:2: filename=/dev/a:/dev/b: there is one device"),
        ("random_distribution=zipf", "x.fio:2: random_distribution=zipf: theta is a number"),
        ("random_distribution=zipf:1.2,pareto:0.2", "x.fio:2: random_distribution="),
        ("random_distribution=zipf:1.2:0.1:3", "x.fio:2: random_distribution="),
        ("random_distribution=pareto:1", "x.fio:2: random_distribution=pareto:1: h is a number"),
        ("random_distribution=zoned:60/10:30/90", "x.fio:2: random_distribution=zoned:60/10:30/90: the zones"),
        ("random_distribution=zoned_abs:60/1m:40/1m", "x.fio:2: random_distribution=zoned_abs:60/1m:40/1m: zoned_abs"),
        ("rw=randrw\nbs=4k,8k", "x.fio:3: bs=4k,8k: reads and writes of different sizes"),
        ("rw=trimwrite\nbs=4k,4k,8k", "x.fio:3: bs=4k,4k,8k: trimwrite writes what it trims"),
        ("norandommap=2", "x.fio:2: norandommap=2: expected 0 or 1"),
        ("rwmixread=101", "x.fio:2: rwmixread=101: expected a percentage"),
        ("write_hint=warm", "x.fio:2: write_hint=warm: expected none, short"),
    ] {
        let error = job(&format!("[a]\n{keys}\n"), MIB).err().expect(keys).to_string();
        assert!(error.starts_with(expected), "{keys}: {error}");
    }
    let error = job("[a]\n", 100).err().unwrap().to_string();
    assert!(error.starts_with("x.fio:1: [a]: no block of 4K fits"), "{error}");
}

#[test]
fn a_refused_key_that_is_switched_off_is_let_through() {
    for keys in ["time_based=0", "zonemode=none", "sync=none", "thinktime=0", "nrfiles=1"] {
        assert_eq!(operations(&format!("[a]\nsize=4k\n{keys}\n"), MIB).len(), 1, "{keys}");
    }
}

#[test]
fn a_file_that_is_missing_or_no_text_is_an_error_that_names_it() {
    let missing = fio_job(std::path::Path::new("no/such/job.fio"), MIB, 1).err().unwrap();
    assert!(missing.to_string().starts_with("cannot read no/such/job.fio"), "{missing}");
    let path = std::env::temp_dir().join(format!("flashpath-fio-job-{}.fio", std::process::id()));
    std::fs::write(&path, [b'[', 0xff, b']']).unwrap();
    let binary = fio_job(&path, MIB, 1).err().unwrap();
    std::fs::write(&path, "[a]\nrw=write\nsize=8k\n").unwrap();
    let mut good = fio_job(&path, MIB, 1).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(binary.to_string().contains("not UTF-8 text"), "{binary}");
    assert_eq!(drain(good.as_mut()).len(), 2);
    assert_eq!(good.name(), format!("fio:{}", path.display()));
}

/// A line of a job file: mostly a valid key and value, sometimes an invalid value, or noise.
fn any_line() -> impl Strategy<Value = String> {
    const LINES: [(&str, &[&str]); 16] = [
        ("rw", &["read", "write", "randwrite", "randrw", "rw", "trimwrite", "randtrimwrite", "randtrim"]),
        ("bs", &["512", "513", "4k", "4k,8k", ",,16k", "0x200", "1m"]),
        ("size", &["50%", "100%", "0.1%", "1m", "4k", "4097"]),
        ("offset", &["0", "512", "1%", "50%", "513"]),
        ("io_size", &["1", "1m", "200%", "50%", "18446744073709551615"]),
        ("offset_increment", &["0", "512", "1%", "18446744073709551615"]),
        (
            "random_distribution",
            &["zipf:1", "zipf:10:1", "pareto:0.999", "normal:100", "zoned:1/99:99/1", "zoned:100/100"],
        ),
        ("numjobs", &["1", "3", "100"]),
        ("loops", &["0", "2", "18446744073709551615"]),
        ("rwmixread", &["0", "100", "33.3"]),
        ("percentage_random", &["0", "50", "100,0", ",1,"]),
        ("fsync", &["0", "1", "7"]),
        ("norandommap", &["0", "1"]),
        ("stonewall", &["0", "1"]),
        ("randseed", &["0", "18446744073709551615"]),
        ("write_hint", &["none", "extreme"]),
    ];
    const WRONG: [&str; 12] =
        ["", "-1", ",,", "16e", "99999999999999999999", "zipf:", "zoned:", "101%", "é", "NaN", "inf", "4k,4k,4k,4k"];
    let right = prop::sample::select(LINES.to_vec())
        .prop_flat_map(|(key, values)| (Just(key), prop::sample::select(values)))
        .prop_map(|(key, value)| format!("{key}={value}"));
    let wrong = (prop::sample::select(LINES.to_vec()), prop::sample::select(WRONG.to_vec()))
        .prop_map(|((key, _), value)| format!("{key} = {value}"));
    let section = prop::sample::select(vec!["[b]", "[global]", "[", "; x"]).prop_map(str::to_string);
    prop_oneof![40 => right, 1 => wrong, 1 => ".{0,20}", 2 => section]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_job_file_panics_and_no_operation_leaves_the_device(
        lines in prop::collection::vec(any_line(), 0..12),
        device_bytes in prop_oneof![0u64..10_000, 0u64..4_000_000, Just(u64::MAX)],
        seed: u64,
    ) {
        let text = format!("[first]\n{}", lines.join("\n"));
        check_job(&text, device_bytes, seed, 2000);
    }
}
