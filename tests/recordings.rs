//! Recordings of calls: damaged ones are refused or replayed to their end, and a replay does in a volume what the calls did.

use flashpath::random::Random;
use flashpath::report::RunResult;
use flashpath::run::{Job, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath::workload::files::recorded::format::{Call, Record, RecordingWriter};
use flashpath::workload::files::recorded::{RecordedCalls, Replays};
use properties::check_recording;

#[path = "properties/recordings.rs"]
mod properties;

fn written(records: &[Record]) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    records.iter().for_each(|record| writer.add(record).unwrap());
    writer.finish().unwrap()
}

/// Random calls of some threads on a few names and inodes, most of which fit together.
fn random_records(random: &mut Random, count: u64) -> Vec<Record> {
    let mut at = 0;
    let mut next_inode = 10;
    let mut made = vec![1_u64];
    let records = (0..count).map(|_| {
        at += random.below(2_000_000);
        let name = |random: &mut Random| format!("n{}", random.below(6)).into_bytes();
        let some = |random: &mut Random| made[random.below(made.len() as u64) as usize];
        let (parent, inode) = (some(random), some(random));
        let (offset, length) = (random.below(50_000), 1 + random.below(30_000));
        next_inode += 1;
        let call = match random.below(18) {
            0 => Call::MakeDirectory { parent, inode: next_inode, name: name(random) },
            1 | 2 => Call::Create { parent, inode: next_inode, name: name(random) },
            3 => Call::FoundFile { parent: 1, inode: next_inode, length, name: name(random) },
            4 => Call::Unlink { parent, name: name(random) },
            5 => Call::Rename { parent, name: name(random), new_parent: some(random), new_name: name(random) },
            6 => Call::RemoveDirectory { parent, name: name(random) },
            7 => Call::Link { inode, parent, name: name(random) },
            8 => Call::Truncate { inode, length: offset },
            9 => Call::Fsync { inode },
            10 => Call::Fdatasync { inode },
            14 => Call::Fbarrier { inode },
            15 => Call::Fdatabarrier { inode },
            11 => Call::Punch { inode, offset, length },
            12 => Call::Read { inode, offset, length },
            13 => Call::Symlink { parent, inode: next_inode, length: 20, name: name(random) },
            _ => Call::Write { inode, offset, length },
        };
        if let Call::MakeDirectory { inode, .. } | Call::Create { inode, .. } | Call::FoundFile { inode, .. } = &call {
            made.push(*inode);
        }
        Record { thread: random.below(5), begin_ns: at, duration_ns: random.below(1_000_000), call }
    });
    records.collect()
}

fn replayed(bytes: &[u8], path: &str) -> RunResult {
    repeated(bytes, path, Replays::ONCE)
}

fn repeated(bytes: &[u8], path: &str, replays: Replays) -> RunResult {
    let workload = RecordedCalls::read(bytes, "test".to_string()).unwrap().workload(1, replays).unwrap();
    let read = Path::read(path).unwrap();
    let job = Job { work: Work::Files(workload), place: Place::Path(&read), seed: 1, options: RunOptions::default() };
    let outcome = run(job, &NoMachine, &mut |_| true).unwrap();
    assert!(outcome.failure.is_none(), "{path}: {:?}", outcome.failure);
    outcome.result
}

#[test]
fn any_calls_are_replayed_to_their_end_on_every_file_system() {
    let mut random = Random::new(3, "recordings");
    for round in 0..60 {
        let records = random_records(&mut random, 40 + round * 4);
        let bytes = written(&records);
        assert!(check_recording(&bytes).is_some());
        let results =
            ["tree", "sfs:segment=256K/conv:size=64M", "ext/conv:size=64M"].map(|path| replayed(&bytes, path));
        for result in &results {
            assert_eq!(result.workload.requests, results[0].workload.requests, "round {round}");
            assert_eq!(result.workload.written_blocks, results[0].workload.written_blocks, "round {round}");
        }
    }
}

#[test]
fn a_recording_is_repeated_from_the_same_beginning() {
    let mut random = Random::new(5, "repeated recordings");
    for round in 0..30 {
        let bytes = written(&random_records(&mut random, 40 + round * 8));
        for path in ["tree", "sfs:segment=256K/conv:size=64M"] {
            let once = replayed(&bytes, path);
            let twice = repeated(&bytes, path, Replays { uncounted: 1, counted: 2 });
            let read = |result: &RunResult| result.files.as_ref().unwrap().bytes.read;
            assert_eq!(read(&twice), 2 * read(&once), "round {round}: each replay reads what the first one did");
            let stages: Vec<&str> = twice.files.as_ref().unwrap().stages.iter().map(|stage| stage.name).collect();
            assert_eq!(stages, ["setup", "replay", "restore", "replay", "restore", "replay"]);
        }
    }
}

#[test]
fn damaged_recordings_are_refused_or_end() {
    let mut random = Random::new(4, "damaged recordings");
    let mut taken = 0;
    for _ in 0..40 {
        let records = random_records(&mut random, 60);
        let bytes = written(&records);
        // Within the frame of zstd, nearly all damage is found there: the calls themselves are damaged, too.
        let calls = zstd::decode_all(&bytes[12..]).unwrap();
        for _ in 0..50 {
            let mut wrong = calls.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(wrong.len() as u64) as usize;
                match random.below(3) {
                    0 => wrong[at] = random.bits() as u8,
                    1 => drop(wrong.remove(at)),
                    _ => wrong.insert(at, random.bits() as u8),
                }
            }
            let packed = [&bytes[..12], &zstd::encode_all(&wrong[..], 1).unwrap()].concat();
            taken += u64::from(check_recording(&packed).is_some());
        }
    }
    assert!((20..1980).contains(&taken), "{taken} of 2000 are read");
}

#[test]
fn idle_times_pass_and_syncs_are_made() {
    let record = |thread, begin_ns, call| Record { thread, begin_ns, duration_ns: 1000, call };
    let second = 1_000_000_000;
    let mut records = vec![record(1, 0, Call::Create { parent: 1, inode: 2, name: b"f".to_vec() })];
    for at in 1..=20 {
        records.push(record(1, at * second, Call::Write { inode: 2, offset: at * 4096, length: 4096 }));
        records.push(record(2, at * second + 5000, Call::Fsync { inode: 2 }));
    }
    let result = replayed(&written(&records), "sfs/conv:size=64M");
    let seconds = result.files.as_ref().unwrap().seconds_counted.unwrap();
    assert!((20.0..20.1).contains(&seconds), "{seconds} s");
    assert_eq!(result.files.unwrap().threads, 2);
    assert_eq!(result.workload.written_blocks, 20);
    assert_eq!(result.translation.events["syncs"], 21, "each fsync, and the end");
}
