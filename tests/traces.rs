//! Traces as a user has them: files on disk, valid and damaged, replayed and converted.

mod skipped;

use flashpath::label::Content;
use flashpath::workload::trace::{
    Addresses, Columns, Compression, FORMATS, Format, OutputFormat, Stage, TraceOptions, TraceReader, TraceWorkload,
    convert, scan,
};
use flashpath::workload::{Action, Operation, Workload, WorkloadError};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[allow(dead_code)]
#[path = "../src/workload/trace/samples.rs"]
mod samples;

fn written(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn operations(path: &Path, options: &TraceOptions) -> Result<Vec<Operation>, WorkloadError> {
    let mut reader = TraceReader::open(path, options)?;
    let mut operations = Vec::new();
    while reader.read_batch(&mut operations, 1000)? > 0 {}
    Ok(operations)
}

fn replayed(workload: &mut dyn Workload, limit: usize) -> Vec<Operation> {
    let mut all = Vec::new();
    loop {
        let before = all.len();
        let count = workload.next_batch(&mut all, limit).unwrap();
        assert!(count <= limit && all.len() == before + count);
        if count == 0 {
            return all;
        }
        assert!((0.0..=1.0).contains(&workload.progress().unwrap()));
    }
}

fn error_of(bytes: &[u8], options: &TraceOptions) -> String {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "bad.trace", bytes);
    let error = scan(&path, options).unwrap_err().to_string();
    assert!(error.contains("bad.trace"), "{error}");
    error
}

/// A trace in Alibaba's format with `lines` writes of 4 KiB, on four devices.
fn many_lines(lines: u64) -> Vec<u8> {
    let line = |number: u64| format!("{},W,{},4096,{}\n", number % 4, (number * 7919 % 5000) * 4096, 1000 + number);
    (0..lines).map(line).collect::<String>().into_bytes()
}

fn compressed(bytes: &[u8]) -> [(Compression, Vec<u8>); 2] {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    [(Compression::Gzip, gzip.finish().unwrap()), (Compression::Zstd, zstd::encode_all(bytes, 1).unwrap())]
}

#[test]
fn a_compressed_trace_reads_as_the_plain_one_whatever_its_name() {
    let folder = TempDir::new().unwrap();
    let options = TraceOptions::default();
    for (name, bytes) in
        samples::all().into_iter().filter(|(name, _)| !matches!(*name, "filebench" | "oracle-general" | "cachelib"))
    {
        let plain = operations(&written(&folder, "misleading.gz", &bytes), &options).unwrap();
        for (compression, bytes) in compressed(&bytes) {
            let path = written(&folder, "misleading.txt", &bytes);
            assert_eq!(operations(&path, &options).unwrap(), plain, "{name}");
            let summary = scan(&path, &options).unwrap();
            assert_eq!((summary.compression, summary.format.name()), (compression, name));
        }
    }
}

#[test]
fn damage_in_a_compressed_trace_is_named_with_its_place() {
    for (compression, bytes) in compressed(&many_lines(100_000)) {
        let error = error_of(&bytes[..bytes.len() * 3 / 4], &TraceOptions::default());
        let words: Vec<&str> = error.split_whitespace().collect();
        let operations: u64 = words[words.len() - 2].parse().unwrap();
        assert!((10_000..100_000).contains(&operations), "{compression}: {error}");
        assert!(error.contains("decompressed bytes"), "{error}");
    }
}

#[test]
fn an_empty_file_and_one_of_unknown_format_are_errors() {
    let options = TraceOptions::default();
    assert!(error_of(b"", &options).ends_with("the file is empty"));
    for (_, bytes) in compressed(b"") {
        assert!(error_of(&bytes, &options).ends_with("the file is empty"));
    }
    let binary: Vec<u8> = (0..100_000u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for bytes in [&b"To whom it may concern,\n"[..], &binary] {
        let error = error_of(bytes, &options);
        assert!(error.contains("unknown format") && error.contains("blkparse, ftrace"), "{error}");
    }
}

#[test]
fn a_trace_without_one_good_line_is_an_error_with_the_first_bad_one() {
    let options = TraceOptions { format: Format::named(FORMATS, "msr"), ..TraceOptions::default() };
    let error = error_of(b"one\ntwo\n", &options);
    assert!(error.contains("2 rejected, first line 1: there are not seven fields"), "{error}");
    let error = error_of(b"time_us,rwbs,sector,nsect,comm\n", &TraceOptions::default());
    assert!(error.contains("format is captured, but there is no operation"), "{error}");
}

#[test]
fn formats_that_cannot_drive_a_simulator_are_refused_with_the_reason() {
    let error = error_of(&samples::oracle_general(), &TraceOptions::default());
    assert!(error.contains("no field that tells reads from writes"), "{error}");
    let error = error_of(samples::FILEBENCH, &TraceOptions::default());
    assert!(error.contains("a program, not a trace"), "{error}");
    let error = error_of(samples::CACHELIB, &TraceOptions::default());
    assert!(error.contains("has no addresses on a drive"), "{error}");
    let error =
        error_of(b"TIME(ms)     DISK    COMM   PID    LAT(ms)\n611 sda bash 4179 10\n", &TraceOptions::default());
    assert!(error.contains("bcc's program"), "{error}");
}

#[test]
fn described_columns_are_read_compressed_and_exclude_another_format() {
    let folder = TempDir::new().unwrap();
    let columns = Columns::parse("time=1,op=3,offset=4,size=5,unit=sector,device=2").unwrap();
    let options = TraceOptions { columns: Some(columns), ..TraceOptions::default() };
    let plain = operations(&written(&folder, "plain", samples::COLUMNS), &options).unwrap();
    assert_eq!(plain.len(), 4);
    for (_, bytes) in compressed(samples::COLUMNS) {
        let path = written(&folder, "trace", &bytes);
        assert_eq!(operations(&path, &options).unwrap(), plain);
        let second = TraceOptions { device: Some(1), ..options.clone() };
        assert_eq!(operations(&path, &second).unwrap(), plain[1..2]);
    }
    let named = |name| TraceOptions { format: Format::named(FORMATS, name), ..options.clone() };
    assert_eq!(operations(&written(&folder, "trace", samples::COLUMNS), &named("columns")).unwrap(), plain);
    assert!(error_of(samples::MSR, &named("msr")).contains("the format msr has its own"));
    let alone = TraceOptions { columns: None, ..named("columns") };
    assert!(error_of(samples::COLUMNS, &alone).contains("needs their description: --columns time=1,op=3"));
    let with_stage = TraceOptions { stage: Some(Stage::Issue), ..options.clone() };
    assert!(error_of(samples::COLUMNS, &with_stage).contains("the format columns has no stages"));
    assert!(error_of(samples::COLUMNS, &TraceOptions::default()).contains("any text of lines is read by its columns"));
}

#[test]
fn a_stage_is_an_error_if_the_format_or_the_trace_has_none() {
    let options = TraceOptions { stage: Some(Stage::Complete), ..TraceOptions::default() };
    assert!(error_of(samples::SPC, &options).contains("only blktrace, blkparse, ftrace have"));
    let queued_only = b"8,0 1 1 0.5 7 Q W 8 + 8 [dd]\n";
    let error = error_of(queued_only, &options);
    assert!(error.contains("no request is at the stage C; there are 1 Q"), "{error}");
}

#[test]
fn a_device_can_be_selected_and_a_missing_one_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "trace", &many_lines(100));
    let options = TraceOptions { device: Some(2), ..TraceOptions::default() };
    let found = operations(&path, &options).unwrap();
    assert_eq!(found.len(), 25);
    assert!(found.iter().all(|operation| operation.device == 2));
    // Times count from the first record of the whole trace.
    assert_eq!(found[0].time_ns, 2000);
    let error = error_of(&many_lines(100), &TraceOptions { device: Some(4), ..TraceOptions::default() });
    assert!(error.contains("device 4 has no operation: the trace has the devices 0 to 3"), "{error}");
}

#[test]
fn a_directory_and_a_missing_file_are_errors() {
    let folder = TempDir::new().unwrap();
    assert!(scan(folder.path(), &TraceOptions::default()).is_err());
    assert!(scan(&folder.path().join("missing"), &TraceOptions::default()).is_err());
    let error = TraceWorkload::open(folder.path(), TraceOptions::default(), 1 << 30).err().unwrap().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn a_replay_repeats_with_times_that_go_on() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "trace.csv", &many_lines(5000));
    let options = TraceOptions { repeat: 3, limit: Some(3000), ..TraceOptions::default() };
    let mut workload = TraceWorkload::open(&path, options, 1 << 30).unwrap();
    assert_eq!(workload.name(), "trace.csv");
    assert_eq!(workload.next_batch(&mut Vec::new(), 0).unwrap(), 0);
    let all = replayed(&mut workload, 700);
    assert_eq!(workload.progress(), Some(1.0));
    assert_eq!(all.len(), 9000);
    assert!(all.is_sorted_by_key(|operation| operation.time_ns));
    for number in 0..6000 {
        assert_eq!(all[number].offset_bytes, all[number + 3000].offset_bytes);
        assert_eq!(all[number].time_ns + 2_999_000, all[number + 3000].time_ns);
    }
    for nothing in [
        TraceOptions { repeat: 0, ..TraceOptions::default() },
        TraceOptions { limit: Some(0), ..TraceOptions::default() },
    ] {
        assert!(TraceWorkload::open(&path, nothing, 1 << 30).is_err());
    }
}

#[test]
fn every_request_of_a_replay_lies_on_the_device_and_no_byte_is_lost_by_wrapping() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "trace", &many_lines(5000));
    let device_bytes = (3 << 20) + 2048;
    let refused = TraceWorkload::open(&path, TraceOptions::default(), device_bytes).err().unwrap().to_string();
    assert!(refused.contains("4 devices concatenated") && refused.contains("a path that exports 80M"), "{refused}");
    for addresses in [Addresses::Wrap, Addresses::Scale] {
        let options = TraceOptions { addresses, ..TraceOptions::default() };
        let mut workload = TraceWorkload::open(&path, options.clone(), device_bytes).unwrap();
        let one_by_one = replayed(&mut workload, 1);
        assert!(workload.warnings().iter().any(|warning| warning.contains("its span of")));
        assert_eq!(one_by_one, replayed(&mut TraceWorkload::open(&path, options, device_bytes).unwrap(), 1000));
        assert!(one_by_one.iter().all(|request| request.end_bytes() <= device_bytes && request.length_bytes > 0));
        let bytes: u64 = one_by_one.iter().map(|request| request.length_bytes).sum();
        assert_eq!(bytes, 5000 * 4096);
    }
}

#[test]
fn a_trace_that_changes_between_scan_and_replay_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "trace", &many_lines(5000));
    let open = || TraceWorkload::open(&path, TraceOptions::default(), 1 << 30).unwrap();
    let all = |mut workload: TraceWorkload| {
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch, 512)? > 0 {}
        Ok::<_, WorkloadError>(batch.len())
    };
    let (shorter, larger) = (open(), open());
    fs::write(&path, many_lines(4000)).unwrap();
    assert!(all(shorter).unwrap_err().to_string().contains("has changed"));
    fs::write(&path, b"1,W,999999999999,4096,1\n").unwrap();
    assert!(all(larger).unwrap_err().to_string().contains("has changed"));
}

#[test]
fn a_converted_trace_holds_the_same_operations() {
    let folder = TempDir::new().unwrap();
    let options = TraceOptions::default();
    let mut traces = samples::all();
    traces.retain(|(name, _)| !matches!(*name, "filebench" | "oracle-general" | "cachelib"));
    traces.push(("alibaba", many_lines(300_000)));
    for (name, bytes) in traces {
        let input = written(&folder, "input", &bytes);
        let expected = operations(&input, &options).unwrap();
        for output in ["out.csv", "out.csv.gz", "out.csv.zst", "out.parquet"] {
            let output = folder.path().join(output);
            let format = OutputFormat::of_path(&output).unwrap();
            let summary = convert(&input, &options, &output, format).unwrap();
            assert_eq!(summary.input.operations, expected.len() as u64);
            assert_eq!(summary.output_bytes, fs::metadata(&output).unwrap().len());
            assert!(operations(&output, &options).unwrap() == expected, "{name} as {}", output.display());
        }
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "{left:?}");
}

#[test]
fn a_failed_conversion_leaves_the_output_unchanged() {
    let folder = TempDir::new().unwrap();
    let (_, mut bytes) = compressed(&many_lines(100_000)).into_iter().next_back().unwrap();
    bytes.truncate(bytes.len() / 2);
    let input = written(&folder, "input", &bytes);
    let output = written(&folder, "out.csv", b"what was there before");
    assert!(convert(&input, &TraceOptions::default(), &output, OutputFormat::Csv).is_err());
    assert_eq!(fs::read(&output).unwrap(), b"what was there before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let nowhere = folder.path().join("missing/out.csv");
    let good = written(&folder, "good", samples::SPC);
    let error = convert(&good, &TraceOptions::default(), &nowhere, OutputFormat::Csv).unwrap_err().to_string();
    assert!(error.contains("cannot write it"), "{error}");
}

#[test]
fn a_parquet_file_is_damaged_foreign_or_named_as_another_format_only_with_an_error() {
    let folder = TempDir::new().unwrap();
    let input = written(&folder, "input", &many_lines(50_000));
    let output = folder.path().join("out.parquet");
    convert(&input, &TraceOptions::default(), &output, OutputFormat::Parquet).unwrap();
    let bytes = fs::read(&output).unwrap();
    assert!(error_of(&bytes[..bytes.len() - 9], &TraceOptions::default()).contains("Parquet index is damaged"));
    let named = TraceOptions { format: Format::named(FORMATS, "msr"), ..TraceOptions::default() };
    assert!(error_of(&bytes, &named).contains("not of the format msr"));
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3..bytes.len() / 2].fill(0x55);
    error_of(&damaged, &TraceOptions::default());
    // Compressed again, it is read through memory.
    let path = written(&folder, "again.zst", &zstd::encode_all(&bytes[..], 1).unwrap());
    assert_eq!(
        operations(&path, &TraceOptions::default()).unwrap(),
        operations(&input, &TraceOptions::default()).unwrap()
    );
}

#[test]
fn a_file_without_line_ends_and_an_endless_line_are_rejected() {
    let mut bytes = b"0,W,8,8,a\n".to_vec();
    bytes.resize(3 << 20, b'7');
    bytes.extend(b"\n9,W,8,8,a\n");
    let folder = TempDir::new().unwrap();
    let summary = scan(&written(&folder, "trace", &bytes), &TraceOptions::default()).unwrap();
    assert_eq!((summary.operations, summary.rejected), (2, 1));
    assert_eq!(summary.first_rejected[0].to_string(), "line 2: longer than 64 KiB");
    assert!(error_of(&vec![b'7'; 3 << 20], &TraceOptions::default()).contains("unknown format"));
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    let folder = TempDir::new().unwrap();
    let text = String::from_utf8(samples::SYSTOR.to_vec()).unwrap().replace('\n', "\r\n");
    let path = written(&folder, "trace", format!("\u{feff}{text}").as_bytes());
    let summary = scan(&path, &TraceOptions::default()).unwrap();
    assert_eq!((summary.operations, summary.rejected, summary.without_operation), (2, 0, 1));
}

/// The properties of a trace in `shared/traces/README.md`.
struct Known {
    file: &'static str,
    format: &'static str,
    writes: u64,
    reads: u64,
    written_gib: f64,
    /// Distinct 4 KiB blocks that are written.
    written_set_gib: f64,
    /// True if that number treats the trace's devices as one.
    one_address_space: bool,
    span_gib: Option<f64>,
}

const KNOWN: [Known; 8] = [
    Known {
        file: "mariadb_tpcc_ext4.csv.zst",
        format: "captured",
        writes: 685_984,
        reads: 1_458_352,
        written_gib: 19.561,
        written_set_gib: 0.657,
        one_address_space: false,
        span_gib: Some(4.13),
    },
    Known {
        file: "fb_varmail_ext4.csv.zst",
        format: "captured",
        writes: 484_111,
        reads: 490,
        written_gib: 2.504,
        written_set_gib: 1.100,
        one_address_space: false,
        span_gib: Some(3.17),
    },
    Known {
        file: "rocksdb_ycsba_ext4.csv.zst",
        format: "captured",
        writes: 11_094,
        reads: 394_380,
        written_gib: 4.797,
        written_set_gib: 3.556,
        one_address_space: false,
        span_gib: Some(4.00),
    },
    Known {
        file: "cloudphysics_w106.vscsi.zst",
        format: "vscsi",
        writes: 66_898,
        reads: 46_974,
        written_gib: 2.243,
        written_set_gib: 0.796,
        one_address_space: false,
        span_gib: None,
    },
    Known {
        file: "disksim_ssd_iozone_aligned2_100K.trace.zst",
        format: "disksim",
        writes: 100_000,
        reads: 0,
        written_gib: 34.325,
        written_set_gib: 1.035,
        one_address_space: false,
        span_gib: None,
    },
    Known {
        file: "mqsim_tpcc_small.trace.zst",
        format: "mqsim",
        writes: 2618,
        reads: 4381,
        written_gib: 0.022,
        written_set_gib: 0.030,
        one_address_space: false,
        span_gib: None,
    },
    Known {
        file: "ssdsim_financial1_first10k.ascii.zst",
        format: "mqsim",
        writes: 5923,
        reads: 4077,
        written_gib: 0.028,
        written_set_gib: 0.014,
        one_address_space: false,
        span_gib: None,
    },
    Known {
        file: "disksim_ascii_100k.trace.zst",
        format: "disksim",
        writes: 20_366,
        reads: 79_634,
        written_gib: 0.100,
        written_set_gib: 0.137,
        one_address_space: true,
        span_gib: None,
    },
];

/// The directory of the traces that are too large, or not free, to be in the repository.
fn shared_traces() -> Option<PathBuf> {
    let named = std::env::var_os("FLASHPATH_TRACES").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces"));
    if !folder.is_dir() {
        let place = folder.display();
        skipped::skipped(&format!("there are no traces in {place} (FLASHPATH_TRACES names another place)"));
        return None;
    }
    Some(folder)
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

fn written_set_bytes(operations: &[Operation], one_address_space: bool) -> u64 {
    let writes = operations.iter().filter(|operation| operation.action == Action::Write);
    let mut blocks: Vec<(u32, u64)> = writes
        .flat_map(|write| {
            let blocks = write.offset_bytes / 4096..write.end_bytes().div_ceil(4096);
            let device = if one_address_space { 0 } else { write.device };
            blocks.map(move |block| (device, block))
        })
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks.len() as u64 * 4096
}

#[test]
fn real_traces_have_their_known_properties() {
    let Some(folder) = shared_traces() else { return };
    let options = TraceOptions::default();
    for known in KNOWN {
        let path = folder.join(known.file);
        let summary = scan(&path, &options).unwrap();
        assert_eq!(
            (summary.format.name(), summary.compression, summary.rejected),
            (known.format, Compression::Zstd, 0)
        );
        assert_eq!((summary.writes, summary.reads), (known.writes, known.reads), "{}", known.file);
        assert!((gib(summary.written_bytes) - known.written_gib).abs() < 0.001, "{}", known.file);
        if let Some(span) = known.span_gib {
            assert!((gib(summary.span_bytes()) - span).abs() < 0.01, "{}", known.file);
        }
        let set = gib(written_set_bytes(&operations(&path, &options).unwrap(), known.one_address_space));
        assert!((set - known.written_set_gib).abs() < 0.001, "{}: {set}", known.file);
    }
}

#[test]
fn the_journal_of_a_real_trace_is_distinguished_from_its_data() {
    let Some(folder) = shared_traces() else { return };
    let operations = operations(&folder.join("fb_varmail_ext4.csv.zst"), &TraceOptions::default()).unwrap();
    let journal = operations.iter().filter(|operation| operation.content == Content::Journal);
    let bytes: u64 = journal.map(|operation| operation.length_bytes).sum();
    assert!((gib(bytes) - 1.254).abs() < 0.001, "{}", gib(bytes));
}

#[test]
fn a_real_trace_survives_conversion() {
    let Some(folder) = shared_traces() else { return };
    let input = folder.join("cloudphysics_w106.vscsi.zst");
    let expected = operations(&input, &TraceOptions::default()).unwrap();
    let outputs = TempDir::new().unwrap();
    for name in ["out.csv.zst", "out.parquet"] {
        let output = outputs.path().join(name);
        convert(&input, &TraceOptions::default(), &output, OutputFormat::of_path(&output).unwrap()).unwrap();
        assert!(operations(&output, &TraceOptions::default()).unwrap() == expected);
    }
}
