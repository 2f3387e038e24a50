//! Records of traces, read from memory.

use flashpath::workload::Operation;
use flashpath::workload::trace::{Columns, FORMATS, Format, OutputFormat, TraceOptions, TraceReader, TraceWriter};
use std::io::Cursor;

#[allow(dead_code, missing_docs, reason = "they are shared with tests, which use all of them")]
#[path = "../../../src/workload/trace/samples.rs"]
mod samples;

/// A trace that is ready to be read.
pub struct Ready {
    bytes: Vec<u8>,
    options: TraceOptions,
}

/// Records of one format: its sample, again and again.
pub fn of_format(name: &str) -> Ready {
    let units = crate::units("records");
    let format = Format::named(FORMATS, name).expect("a format");
    let sample = match name {
        "parquet" => parquet(units),
        "ssdsim" => samples::MQSIM.to_vec(),
        "blkparse" => before_summary(samples::BLKPARSE).to_vec(),
        "columns" => samples::COLUMNS.to_vec(),
        "nvme-4096" => samples::NVME.to_vec(),
        "lcs" | "lcs-bytes" => headed(&samples::lcs(2), 8192, units),
        "dm-log-writes" => {
            let mut log = headed(&samples::log_writes(512), 512, units);
            log[16..24].copy_from_slice(&(5 * units).to_le_bytes());
            log
        }
        _ => samples::all().into_iter().find(|(other, _)| *other == name).expect("every format has a sample").1,
    };
    let is_whole = matches!(name, "parquet" | "lcs" | "lcs-bytes" | "dm-log-writes");
    let times = if is_whole { 1 } else { units as usize };
    let described = "time=1,op=3,offset=4,size=5,unit=sector,device=2";
    let columns = (name == "columns").then(|| Columns::parse(described).expect("a description"));
    let options = TraceOptions { format: Some(format), columns, limit: Some(units), ..TraceOptions::default() };
    Ready { bytes: sample.repeat(times), options }
}

/// The records of a sample after its header, again and again.
fn headed(sample: &[u8], header_bytes: usize, times: u64) -> Vec<u8> {
    let (header, records) = sample.split_at(header_bytes);
    [header, &records.repeat(times as usize)].concat()
}

/// The events of blkparse, without the summary at the end.
fn before_summary(sample: &[u8]) -> &[u8] {
    let summary = sample.windows(4).position(|bytes| bytes == b"\nCPU").expect("the sample ends with a summary");
    &sample[..=summary]
}

fn parquet(units: u64) -> Vec<u8> {
    let file = std::env::temp_dir().join(format!("flashpath-instructions-{}.parquet", std::process::id()));
    let mut writer = TraceWriter::create(&file, OutputFormat::Parquet).expect("a file");
    let read = read(of_format("operations"));
    assert_eq!(read.len() as u64, units);
    writer.write(&read).and_then(|()| writer.finish()).expect("the trace is written");
    let bytes = std::fs::read(&file).expect("the trace was written");
    std::fs::remove_file(&file).expect("the trace was written");
    bytes
}

/// Reads it.
pub fn read(ready: Ready) -> Vec<Operation> {
    let Ready { bytes, options } = ready;
    let limit = options.limit;
    let mut reader = TraceReader::from_reader("sample", Box::new(Cursor::new(bytes)), &options).expect("a trace");
    let mut operations = Vec::new();
    while reader.read_batch(&mut operations, 1024).expect("the sample is whole") > 0 {}
    assert_eq!(Some(operations.len() as u64), limit, "a cell reads all of its records");
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_cell_that_reads_all_of_its_records() {
        let cells = include_str!("../benches/cells.rs");
        // These are told from others, and refused.
        let is_read =
            |format: &&Format| !["oracle-general", "filebench", "cachelib", "biosnoop-bt"].contains(&format.name());
        for format in FORMATS.iter().filter(is_read) {
            let cell =
                format!("#[bench::{}(traces::of_format(\"{}\"))]", format.name().replace('-', "_"), format.name());
            assert!(cells.contains(&cell), "benches/cells.rs has no cell {cell}");
            read(of_format(format.name()));
        }
    }
}
