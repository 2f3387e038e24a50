//! The operations of each workload follow its definition.

use crate::model::{Model, SMALL, workload};
use flashpath::expression::parse_term;
use flashpath::workload::files::{FileOperation, file_workload};
use std::collections::{BTreeMap, BTreeSet};

fn is_write(operation: &FileOperation) -> bool {
    matches!(operation, FileOperation::Write { .. })
}

fn is_fsync(operation: &FileOperation) -> bool {
    matches!(operation, FileOperation::Fsync(_))
}

fn is_create(operation: &FileOperation) -> bool {
    matches!(operation, FileOperation::Create(_))
}

fn is_unlink(operation: &FileOperation) -> bool {
    matches!(operation, FileOperation::Unlink(_))
}

#[test]
fn no_workload_creates_an_existing_file_or_uses_a_missing_one() {
    for text in SMALL {
        for seed in 0..5 {
            let model = Model::of(workload(text, seed));
            let root = text.split(':').next().unwrap();
            let under = |path: &String| path == root || path.starts_with(&format!("{root}/"));
            assert!(model.directories.iter().chain(model.files.keys()).all(under), "{text}");
        }
    }
}

#[test]
fn the_seed_determines_the_operations() {
    for text in SMALL {
        let asked = |seed| Model::of(workload(text, seed)).asked;
        assert_eq!(asked(7), asked(7), "{text}");
        // Appending in order draws nothing at random.
        assert_eq!(asked(7) == asked(8), text.starts_with("seq_write"), "{text}");
    }
}

#[test]
fn seq_write_appends_until_the_file_has_its_size() {
    let model = Model::of(workload("seq_write:file=1M,append=8K,fsync-every=10", 1));
    assert_eq!(model.count(1, is_write), 128);
    assert_eq!(model.count(1, is_fsync), 12);
    assert_eq!(model.files["seq_write/file0"], 1 << 20);
    let defaults = Model::of(workload("seq_write", 1));
    assert_eq!((defaults.count(1, is_write), defaults.written(1)), (76_800, 600 << 20));
    assert_eq!(defaults.count(1, is_fsync), 0);
}

#[test]
fn rnd_write_writes_its_amount_at_uniformly_distributed_places() {
    let model = Model::of(workload("rnd_write:file=4M,writes=40M", 1));
    assert_eq!((model.written(1), model.written(2)), (4 << 20, 40 << 20));
    let mut places = BTreeMap::new();
    for (_, operation, _) in &model.asked[2] {
        if let FileOperation::Write { offset, length, .. } = operation {
            assert_eq!((offset % 4096, *length), (0, 4096));
            *places.entry(*offset).or_insert(0) += 1;
        }
    }
    // Ten writes per place on average: e^-10 of 1,024 places get none, and hardly one gets 30.
    assert!(places.len() > 1020 && places.values().all(|count| *count < 30), "{places:?}");
}

#[test]
fn rnd_write_fsyncs_at_its_interval() {
    let model = Model::of(workload("rnd_write:file=1M,writes=400K,fsync-every=7", 1));
    assert_eq!((model.count(2, is_write), model.count(2, is_fsync)), (100, 14));
}

#[test]
fn postmark_mixes_by_its_biases_and_deletes_all_files_at_the_end() {
    let model = Model::of(workload("postmark:files=5000,transactions=20000,read-bias=7,create-bias=5", 1));
    assert_eq!(model.count(1, is_create), 5000);
    assert!(model.files.is_empty(), "no file is left");
    let (created, deleted) = (model.count(2, is_create), model.count(2, is_unlink));
    assert_eq!(created + deleted, 20_000, "every transaction creates or deletes");
    assert!((9_700..10_300).contains(&created), "{created}");
    assert_eq!(model.count(3, is_unlink), 5000 + created - deleted);
    let opened = model.count(2, |operation| matches!(operation, FileOperation::Open(_)));
    let reads = model.count(2, |operation| matches!(operation, FileOperation::Read { offset: 0, .. }));
    assert!((13_600..14_400).contains(&reads), "{reads}");
    // Hardly any file has its maximum size and is not appended to.
    assert!((19_900..=20_000).contains(&opened), "{opened}");
}

#[test]
fn postmark_files_have_sizes_between_the_smallest_and_the_largest() {
    let model = Model::of(workload("postmark:files=4000,transactions=0", 1));
    let mut sizes = BTreeMap::new();
    for (_, operation, path) in &model.asked[1] {
        if let FileOperation::Write { offset, length, .. } = operation {
            sizes.insert(path.clone(), offset + length);
        }
    }
    assert_eq!(sizes.len(), 4000);
    assert!(sizes.values().all(|size| (500..=10_000).contains(size)));
    let mean = sizes.values().sum::<u64>() as f64 / 4000.0;
    assert!((mean / 5250.0 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn unbuffered_postmark_calls_the_system_for_every_block() {
    let largest = |text: &str| {
        let model = Model::of(workload(text, 1));
        let lengths = model.asked[2].iter().map(|(_, operation, _)| match operation {
            FileOperation::Read { length, .. } | FileOperation::Write { length, .. } => *length,
            _ => 0,
        });
        lengths.max().unwrap()
    };
    assert_eq!(largest("postmark"), 4096);
    assert_eq!(largest("postmark:buffered=off"), 512);
}

#[test]
fn untar_makes_a_tree_of_the_size_of_linux_2_6_11() {
    let model = Model::of(workload("untar", 1));
    assert_eq!(model.files.len(), 17_000);
    assert!((900..1_100).contains(&model.directories.len()), "{}", model.directories.len());
    let bytes = model.files.values().sum::<u64>();
    assert!((180e6..225e6).contains(&(bytes as f64)), "{bytes}");
    let mut sizes: Vec<u64> = model.files.values().copied().collect();
    sizes.sort_unstable();
    assert!((3_900..4_300).contains(&sizes[8_500]), "{}", sizes[8_500]);
    let deepest = model.directories.iter().map(|path| path.matches('/').count()).max().unwrap();
    assert_eq!(deepest, 4, "1 + 6 + 36 + 216 + 1296 directories have four levels below the root");
}

#[test]
fn untar_writes_each_files_part_of_each_record() {
    let model = Model::of(workload("untar:files=500", 1));
    // The position in the archive: a header before every directory and file, and data padded to 512 bytes.
    let mut at = 0u64;
    for (_, operation, _) in &model.asked[0] {
        match operation {
            FileOperation::MakeDirectory(_) | FileOperation::Create(_) => at = at.next_multiple_of(512) + 512,
            FileOperation::Write { length, .. } => {
                assert!(at / 10_240 == (at + length - 1) / 10_240, "a write lies in one record");
                at += length;
            }
            _ => {}
        }
    }
    assert!(model.count(0, |operation| matches!(operation, FileOperation::Write { length: 10_240, .. })) > 100);
}

#[test]
fn compile_creates_an_object_for_every_built_source_and_deletes_the_assembly() {
    let model = Model::of(workload("compile:files=2000,built=100%,threads=2", 1));
    let with = |extension: &str| model.files.keys().filter(|path| path.ends_with(extension)).count();
    let sources = with(".c");
    assert!((930..1_070).contains(&sources), "{sources}");
    assert_eq!((with(".o"), with(".d"), with(".s")), (sources, sources, 0));
    assert_eq!(model.count(1, is_unlink), sources, "one assembly each");
    let archives: u64 = ends(&model, "/built-in.a").sum();
    let objects: u64 = ends(&model, ".o").sum();
    assert_eq!((archives, model.files["compile/image"]), (objects, objects));
    assert_eq!(with(".part"), 0);
}

fn ends<'a>(model: &'a Model, extension: &'a str) -> impl Iterator<Item = &'a u64> {
    model.files.iter().filter(move |(path, _)| path.ends_with(extension)).map(|(_, bytes)| bytes)
}

#[test]
fn some_headers_are_read_for_nearly_every_source_and_none_twice() {
    let model = Model::of(workload("compile:files=3000,built=100%,headers-read=100", 1));
    let mut readers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut of_source = BTreeSet::new();
    let (mut sources, mut headers) = (0, 0);
    for (_, operation, path) in &model.asked[1] {
        match operation {
            FileOperation::Stat(_) if path.ends_with(".c") => {
                of_source.clear();
                sources += 1;
            }
            FileOperation::Open(_) if path.ends_with(".h") => {
                assert!(of_source.insert(path), "{path} is read twice for a source");
                *readers.entry(path).or_insert(0) += 1;
                headers += 1;
            }
            _ => {}
        }
    }
    let mean = f64::from(headers) / f64::from(sources);
    assert!((95.0..105.0).contains(&mean), "{mean}");
    let mut counts: Vec<f64> = readers.values().map(|count| *count as f64 / f64::from(sources)).collect();
    counts.sort_by(|one, other| other.total_cmp(one));
    assert!(counts[0] > 0.98, "the most wanted: {}", counts[0]);
    assert!(counts[counts.len() / 2] < 0.15, "the median: {}", counts[counts.len() / 2]);
}

#[test]
fn varmail_runs_the_13_flowops_in_order() {
    let model = Model::of(workload("varmail:files=1000,threads=1,loops=200", 1));
    let mut asked = model.asked[2].iter().map(|(_, operation, _)| *operation).peekable();
    let mut loops = 0;
    while asked.peek().is_some() {
        loops += 1;
        assert!(matches!(asked.next(), Some(FileOperation::Unlink(_))));
        let Some(FileOperation::Create(created)) = asked.next() else { panic!("a file is created") };
        append_and_sync(&mut asked, created);
        let grown = open_and_read(&mut asked);
        append_and_sync(&mut asked, grown);
        let read = open_and_read(&mut asked);
        assert_eq!(asked.next(), Some(FileOperation::Close(read)));
    }
    assert_eq!(loops, 200);
}

fn append_and_sync(asked: &mut std::iter::Peekable<impl Iterator<Item = FileOperation>>, expected: u64) {
    // An append of nothing is omitted.
    if let Some(FileOperation::Write { file, length, .. }) = asked.next_if(is_write) {
        assert!(file == expected && length < 16_384);
    }
    assert_eq!(asked.next(), Some(FileOperation::Fsync(expected)));
    assert_eq!(asked.next(), Some(FileOperation::Close(expected)));
}

fn open_and_read(asked: &mut std::iter::Peekable<impl Iterator<Item = FileOperation>>) -> u64 {
    let Some(FileOperation::Open(opened)) = asked.next() else { panic!("a file is opened") };
    while let Some(operation) = asked.next_if(|operation| matches!(operation, FileOperation::Read { .. })) {
        assert!(matches!(operation, FileOperation::Read { file, .. } if file == opened));
    }
    opened
}

#[test]
fn varmail_keeps_its_number_of_files() {
    let model = Model::of(workload("varmail:files=5000,threads=4,loops=20000", 1));
    let began = model.count(1, is_create);
    assert!((3_900..4_100).contains(&began), "80% of 5000, not {began}");
    assert_eq!(model.files.len(), began);
    assert_eq!(model.written(1), began as u64 * 16_384);
    let mean = model.written(2) as f64 / 40_000.0;
    assert!((mean / 8192.0 - 1.0).abs() < 0.03, "appends are half of 16K on average: {mean}");
}

/// Files were once picked in rotation. A lane whose number of files was divisible by three then always appended to the
/// same files, and sixteen threads moved three times the bytes of one.
#[test]
fn varmail_files_do_not_grow_with_the_length_of_the_run() {
    for threads in [1, 16] {
        let model = Model::of(workload(&format!("varmail:threads={threads},loops=40000"), 1));
        let mean = model.files.values().sum::<u64>() as f64 / model.files.len() as f64;
        assert!((mean / 16_384.0 - 1.0).abs() < 0.15, "{threads} threads: {mean}");
    }
}

#[test]
fn tokubench_fills_all_leaves_evenly_and_syncs_nothing() {
    let model = Model::of(workload("tokubench:files=4000,children=10,threads=4", 1));
    assert_eq!((model.files.len(), model.directories.len()), (4000, 1 + 10 + 100 + 1000));
    assert!(model.files.values().all(|size| *size == 4096));
    let mut leaves = BTreeMap::new();
    for path in model.files.keys() {
        *leaves.entry(path.rsplit_once('/').unwrap().0).or_insert(0) += 1;
    }
    assert!(leaves.len() == 1000 && leaves.values().all(|count| *count == 4));
    assert_eq!(model.count(1, is_fsync), 0);
    assert_eq!(model.count(1, |operation| matches!(operation, FileOperation::Sync)), 0);
}

#[test]
fn options_that_contradict_each_other_are_refused_at_their_place() {
    for (text, expected) in [
        ("varmail:files=3,threads=4", "cannot share"),
        ("postmark:files=3,threads=4", "cannot share"),
        ("postmark:smallest=2K,largest=1K", "exceeds largest"),
        ("rnd_write:file=1K", "does not fit"),
        ("rnd_write:writes=0", "requests nothing"),
        ("varmale", "did you mean varmail?"),
        ("untar:file=3", "did you mean files?"),
    ] {
        let Err(error) = file_workload(&parse_term(text).unwrap(), 1) else { panic!("{text} is refused") };
        assert!(error.to_string().contains(expected), "{error}");
    }
}
