//! fio job files as workloads: their keys, the order of jobs, and errors with their lines.

use flashpath::report::RunResult;
use flashpath::run::{BlockWork, Fill, InputFault, Job, NoMachine, Path, Place, RunError, RunOptions, Work, run};
use flashpath::workload::fio_job::{fio_job, fio_job_text};
use flashpath::workload::{Action, Clock, Operation, Workload, WorkloadError};
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
            "x.fio:9: filename is ignored: requests go to the path",
            "fio:x.fio: runtime is ignored: the path has no times, and a job ends at its size",
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
        ("time_based", "x.fio:2: time_based=1: it needs the time after which the job ends: add runtime="),
        ("runtime=5y", "x.fio:2: runtime=5y: expected a duration such as 30"),
        ("bssplit=4k/60:8k/50", "x.fio:2: bssplit=4k/60:8k/50: the percentages must add up to 100"),
        ("bssplit=511/50:4k/", "x.fio:2: bssplit=511/50:4k/: expected sizes with percentages"),
        ("bsrange=8k-4k", "x.fio:2: bsrange=8k-4k: expected a range of sizes"),
        ("blockalign=100", "x.fio:2: blockalign=100: '100' is not a size from 512"),
        ("filesize=2m", "x.fio:2: filesize=2m: 2M exceeds the device of 1M; filesize=100%"),
        ("zonemode=zbd", "x.fio:2: zonemode=zbd: zonemode=zbd needs zonesize"),
        ("zonemode=striped", "x.fio:2: zonemode=striped: expected none, strided or zbd"),
        ("zonemode=zbd\nzonesize=64k\nzoneskip=4k", "x.fio:4: zoneskip=4k: zonemode=zbd has no gaps"),
        ("zonemode=zbd\nzonesize=64k\nzonecapacity=128k", "x.fio:4: zonecapacity=128k: a zone of 64K holds so much"),
        ("zonemode=zbd\nzonesize=64k\noffset=4k", "x.fio:3: zonesize=64k: a region of"),
        ("zonemode=zbd\nzonesize=64k\nrw=trimwrite", "x.fio:2: zonemode=zbd: a zone is reset before"),
        ("rate=1m", "x.fio:2: rate=1m: this key is not implemented: give the rate of requests in rate_iops"),
        ("rate_process=poisson", "x.fio:2: rate_process=poisson: it has no effect without rate_iops"),
        ("rate_iops=fast", "x.fio:2: rate_iops=fast: 'fast' is not requests a second"),
        ("sync=1", "x.fio:2: sync=1: this key is not implemented: use fsync=1"),
        ("filename=/dev/a:/dev/b", "x.fio:2: filename=/dev/a:/dev/b: there is one device"),
        ("random_distribution=zipf", "x.fio:2: random_distribution=zipf: theta is a number"),
        ("random_distribution=zipf:1.2,pareto:0.2", "x.fio:2: random_distribution="),
        ("random_distribution=zipf:1.2:0.1:3", "x.fio:2: random_distribution="),
        ("random_distribution=pareto:1", "x.fio:2: random_distribution=pareto:1: h is a number"),
        ("random_distribution=zoned:60/10:30/90", "x.fio:2: random_distribution=zoned:60/10:30/90: the zones"),
        (
            "random_distribution=zoned_abs:60/1m:30/1m",
            "x.fio:2: random_distribution=zoned_abs:60/1m:30/1m: the zones' requests",
        ),
        ("random_distribution=zoned_abs:60/:40/1m", "x.fio:2: random_distribution=zoned_abs:60/:40/1m: only the last"),
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

/// The endurance workload of JEDEC was refused: its sizes, its alignment, and its last zone without a share.
#[test]
fn the_endurance_job_has_its_sizes_its_alignment_and_its_zones() {
    let text = "[global]\nrw=randwrite\nnorandommap\nblockalign=4k\nrandom_distribution=zoned:50/5:30/15:20/\n\
                bssplit=512/4:1024/1:1536/1:2048/1:2560/1:3072/1:3584/1:4k/67:8k/10:16k/7:32k/3:64k/3\n[a]\nsize=100%\nio_size=512m\n";
    let all = operations(text, 1 << 30);
    let share = |of: &dyn Fn(&Operation) -> bool| all.iter().filter(|one| of(one)).count() as f64 / all.len() as f64;
    for (bytes, expected) in [(512, 0.04), (1024, 0.01), (4096, 0.67), (8192, 0.1), (16384, 0.07), (65536, 0.03)] {
        let found = share(&|one| one.length_bytes == bytes);
        assert!((found - expected).abs() < 0.005, "{bytes}: {found:.3}, {expected} expected");
    }
    assert!(all.iter().all(|one| one.offset_bytes % 4096 == 0 && one.end_bytes() <= 1 << 30));
    for (to, expected) in [(0.05, 0.5), (0.2, 0.8)] {
        let found = share(&|one| one.offset_bytes < ((1u64 << 30) as f64 * to) as u64);
        assert!((found - expected).abs() < 0.01, "below {to}: {found:.3}, {expected} expected");
    }
}

#[test]
fn shares_that_are_left_out_are_equal_parts_of_the_rest() {
    let all = operations("[a]\nrw=write\nbssplit=4k/50:1k/:32k/,8k/100\nio_size=8m\n", MIB);
    assert!(all.iter().all(|one| one.length_bytes == 8192), "the second list is that of the writes");
    let all = operations("[a]\nrw=randread\nnorandommap\nbssplit=4k/50:1k/:32k/\nio_size=32m\n", MIB);
    for (bytes, expected) in [(4096, 0.5), (1024, 0.25), (32768, 0.25)] {
        let found = all.iter().filter(|one| one.length_bytes == bytes).count() as f64 / all.len() as f64;
        assert!((found - expected).abs() < 0.03, "{bytes}: {found:.3}");
    }
}

#[test]
fn sequential_requests_of_several_sizes_follow_each_other() {
    let all = operations("[a]\nrw=write\nbsrange=1k-4k\nio_size=4m\n", MIB);
    let mut next = 0;
    let mut sizes = BTreeMap::new();
    for one in &all {
        if one.offset_bytes != next {
            assert!(one.offset_bytes == 0 && next + 1024 > MIB, "{one:?} after {next}");
        }
        next = one.end_bytes();
        *sizes.entry(one.length_bytes).or_insert(0) += 1;
    }
    assert_eq!(sizes.keys().copied().collect::<Vec<u64>>(), [1024, 2048, 3072, 4096]);
    let most = sizes.values().max().unwrap() * 10 / sizes.values().min().unwrap();
    assert!(most < 14, "all sizes are equally likely: {sizes:?}");
    let odd = operations("[a]\nrw=randwrite\nnorandommap\nbsrange=512-4k\nbs_unaligned\nio_size=1m\n", MIB);
    assert!(odd.iter().any(|one| one.length_bytes % 512 != 0));
}

#[test]
fn the_random_map_of_several_sizes_visits_each_byte_once_before_any_again() {
    for text in ["[a]\nrw=randwrite\nbssplit=4k/60:16k/30:64k/10\nloops=3\n", "[a]\nrw=randrw\nbs=4k,12k\nloops=3\n"] {
        let mut visits = vec![0; 256];
        for one in operations(text, MIB) {
            let least = *visits.iter().min().unwrap();
            for block in one.offset_bytes / 4096..one.end_bytes() / 4096 {
                assert_eq!(visits[block as usize], least, "{text}: {one:?}");
                visits[block as usize] += 1;
            }
        }
        assert_eq!(visits, [3; 256], "{text}");
    }
}

#[test]
fn the_size_of_a_file_is_the_region_and_that_of_the_job_what_it_moves() {
    let all = operations("[a]\nrw=write\nfilesize=64k\nsize=256k\n", MIB);
    assert_eq!((all.len(), all.iter().map(Operation::end_bytes).max()), (64, Some(65536)));
    assert_eq!(operations("[a]\nrw=write\nfilesize=64k\n", MIB).len(), 16);
    assert_eq!(operations("[a]\nrw=write\nnumber_ios=7\n", MIB).len(), 7);
}

#[test]
fn strided_requests_skip_to_the_next_range() {
    let text = "[a]\nrw=write\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=48k\nio_size=64k\n";
    let offsets: Vec<u64> = operations(text, 256 << 10).iter().map(|one| one.offset_bytes / 1024).collect();
    assert_eq!(offsets, [0, 4, 64, 68, 128, 132, 192, 196, 0, 4, 64, 68, 128, 132, 192, 196]);
    let random = operations(&text.replace("rw=write", "rw=randwrite"), 256 << 10);
    assert!(random.iter().all(|one| one.offset_bytes % 65536 < 16384), "in the range of each stride");
}

/// Zones are written in order, a few at a time, and reset before they are written again; reads stay below the write pointers.
#[test]
fn zones_are_written_in_order_and_reset_before_they_are_written_again() {
    let zone = 64 << 10;
    for rw in ["randwrite", "write", "randrw", "rw", "randtrim"] {
        let text = format!(
            "[global]\nrw={rw}\nzonemode=zbd\nzonesize=64k\nzonecapacity=48k\nmax_open_zones=3\nbssplit=4k/50:8k/:20k/\nio_size=2m\n[a]\n[b]\n"
        );
        let mut written: BTreeMap<u64, u64> = BTreeMap::new();
        let mut moved = 0;
        for one in operations(&text, MIB) {
            let (number, within) = (one.offset_bytes / zone, one.offset_bytes % zone);
            assert!(
                within + one.length_bytes <= zone
                    && (one.action == Action::Discard || within + one.length_bytes <= 48 << 10)
            );
            match one.action {
                Action::Discard => {
                    assert_eq!((within, one.length_bytes), (0, zone), "{rw}: a whole zone");
                    written.insert(number, 0);
                }
                Action::Write => {
                    let pointer = written.get_mut(&number).expect("a zone is reset before its first write");
                    assert_eq!(within, *pointer, "{rw}: at the write pointer of zone {number}");
                    *pointer += one.length_bytes;
                    moved += one.length_bytes;
                }
                Action::Read if written.values().any(|bytes| *bytes > 0) => {
                    let most = written.get(&number).copied().unwrap_or(0).max(20 << 10);
                    assert!(within + one.length_bytes <= most, "{rw}: {one:?}, {most} written");
                }
                Action::Read | Action::Flush => {}
            }
            let open = written.values().filter(|bytes| (1..48 << 10).contains(*bytes)).count();
            assert!(open <= 3, "{rw}: {open} zones are open");
        }
        assert!(rw == "randtrim" || moved >= 1 << 20, "{rw}: {moved} bytes");
    }
}

/// Each job has its own time, from its first request on.
#[test]
fn a_time_based_job_ends_by_its_time_whatever_its_size() {
    let text = "[a]\nrw=write\nsize=8k\ntime_based\nruntime=10ms\n[b]\nstonewall\nrw=read\nsize=8k\ntime_based\nruntime=20ms\n";
    let mut workload = job(text, MIB).unwrap();
    assert_eq!(workload.clock(), Clock::Needed);
    let (mut now, mut batch) = (0, Vec::new());
    loop {
        workload.tell_time(now);
        if workload.next_batch(&mut batch, 1).unwrap() == 0 {
            break;
        }
        now += 1_000_000;
    }
    let count = |action| batch.iter().filter(|one| one.action == action).count();
    assert_eq!((count(Action::Write), count(Action::Read)), (10, 20));
    assert_eq!(job("[a]\nruntime=5\n", MIB).unwrap().clock(), Clock::Heard);
    assert_eq!(job("[a]\nruntime=0\n", MIB).unwrap().clock(), Clock::Unheard);
}

/// The outcome of a job on a path.
fn run_on(path: &str, text: &str, options: RunOptions) -> Result<RunResult, RunError> {
    let path = Path::read_drive(path).unwrap();
    let text = text.to_string();
    let open = move |bytes| Ok(job(&text, bytes)?);
    let work = Work::Blocks(BlockWork { name: "x.fio".to_string(), has_times: false, open: Box::new(open) });
    let outcome = run(Job { work, place: Place::Path(&path), seed: 1, options }, &NoMachine, &mut |_| true)?;
    outcome.failure.map_or(Ok(outcome.result), Err)
}

/// Zones are tested with fio, and only a layer on top of them could be run: `zonemode=zbd` was not implemented.
#[test]
fn a_job_with_zones_runs_on_a_zoned_drive_with_every_read_checked() {
    let drive = "zns:size=64M,zone=4M,capacity=3M,max-open=4,max-active=4";
    let zones = "zonemode=zbd\nzonesize=4m\nzonecapacity=3m\nmax_open_zones=4\n";
    for (rw, fill) in [("randwrite", false), ("randrw", false), ("write", false), ("rw", true), ("randread", true)] {
        let text = format!("[global]\n{zones}rw={rw}\nbs=16k\nio_size=64m\nnorandommap\n[a]\n[b]\n");
        let options = RunOptions { verify: true, fill: fill.into(), ..RunOptions::default() };
        let result = run_on(drive, &text, options).unwrap_or_else(|error| panic!("{rw}: {error}"));
        assert!(result.sums.iter().all(|sum| sum.holds), "{rw}");
        let written = result.workload.written_blocks;
        assert_eq!(written > 0, rw != "randread", "{rw}");
        assert!(!rw.ends_with("write") || result.flash.erased_blocks > 0, "{rw}: zones are written again");
    }
    let error = run_on(drive, "[a]\nrw=randwrite\n", RunOptions::default()).expect_err("no order");
    let help = match &error {
        RunError::Input(InputFault::Refused { help, .. }) => help.clone().unwrap_or_default(),
        other => panic!("{other}"),
    };
    assert!(help.contains("zonemode=zbd, zonesize=4M, zonecapacity=3M"), "{error}: {help}");
}

/// `time_based` was refused, since a simulation has no clock; it has one of its own.
#[test]
fn a_time_based_job_runs_for_its_simulated_time() {
    let text = "[a]\nrw=randread\nsize=1m\niodepth=8\ntime_based\nruntime=50ms\n";
    let drive = "page/nand:size=64M,page=4K";
    let result = run_on(drive, text, RunOptions { fill: Fill::ALL, ..RunOptions::default() }).unwrap();
    let seconds = result.seconds_simulated.unwrap();
    assert!((0.0499..0.055).contains(&seconds), "{seconds}");
    assert!(result.workload.requests > 256, "more than its size");
    let limit = "[a]\nrw=write\nio_size=1g\nloops=9\nsize=32m\nruntime=10ms\n";
    let limited = run_on(drive, limit, RunOptions::default()).unwrap();
    assert!(limited.seconds_simulated.unwrap() < 0.02 && limited.workload.requests < 1 << 18);
    let untimed = run_on("page/nand:size=64M,page=4K,timing=off", text, RunOptions::default());
    assert!(untimed.unwrap_err().to_string().contains("the path has no times"));
}

/// A line of a job file: mostly a valid key and value, sometimes an invalid value, or noise.
fn any_line() -> impl Strategy<Value = String> {
    const LINES: [(&str, &[&str]); 27] = [
        ("bssplit", &["4k/100", "512/50:8k/", "4k/:12k/,64k/100", "1m/1:512/99"]),
        ("bsrange", &["512-4k", "4k-64k,8k-8k", "513:1025"]),
        ("bs_unaligned", &["0", "1"]),
        ("blockalign", &["512", "4k,64k", "1m"]),
        ("filesize", &["64k", "50%", "1m"]),
        ("number_ios", &["0", "1", "1000"]),
        ("runtime", &["0", "1ms", "5"]),
        ("zonemode", &["none", "strided", "zbd"]),
        ("zonesize", &["512", "64k", "100k", "1m"]),
        ("zonerange", &["512", "64k", "4097"]),
        ("zonecapacity", &["512", "48k"]),
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
