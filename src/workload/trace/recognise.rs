//! Recognises the format of a trace by its content, never by its name.
//!
//! Binary formats are recognised by magic numbers or by fields with few valid values. For text, the first lines are
//! given to the strict parser of every format; the one that accepts the most wins.

use super::format::{Format, Records};
use super::lines::Lines;
use super::stage::Stage;
use super::{columnar, keys, vscsi};

/// The examined part of a file, in bytes.
pub(super) const HEAD_BYTES: usize = 64 << 10;
const MOST_LINES: usize = 500;
const EXCERPT_BYTES: usize = 60;

const ORACLE_BYTES: usize = 24;
const FILEBENCH_WORDS: [&[u8]; 4] = [b"define fileset", b"define process", b"define posset", b"define randvar"];

/// The format and notes for the user about the choice; or the reason why there is none.
pub(super) fn recognise(
    formats: &'static [Format],
    head: &[u8],
    is_whole: bool,
    stage: Stage,
) -> Result<(&'static Format, Vec<String>), String> {
    let begins_as = |format: &&Format| match &format.records {
        Records::Parquet => head.starts_with(columnar::MAGIC),
        Records::Binary { begins, .. } => begins(head),
        Records::Lines(_) | Records::Described | Records::Refused { .. } => false,
    };
    if let Some(format) = formats.iter().find(begins_as) {
        return Ok((format, Vec::new()));
    }
    if vscsi::recognises_version_2(head) {
        return Err("it looks like a vscsi trace of version 2; only version 1 can be read".to_string());
    }
    let is_refused = |format: &&Format| match &format.records {
        Records::Refused { begins, .. } => begins(head),
        Records::Lines(_) | Records::Described | Records::Binary { .. } | Records::Parquet => false,
    };
    if let Some(format) = formats.iter().find(is_refused) {
        return Ok((format, Vec::new()));
    }
    recognise_text(formats, &first_lines(head, is_whole), stage).ok_or_else(|| why_unknown(formats, head))
}

/// The earliest stage of the requests at the beginning of a trace; `None` if there is none.
pub(super) fn earliest_stage(format: &Format, head: &[u8], is_whole: bool) -> Option<Stage> {
    match &format.records {
        Records::Lines(open) => {
            let mut lines = open(Stage::default());
            let is_line = |line: &&[u8]| !line.trim_ascii_start().is_empty();
            for line in whole_lines(head, is_whole).into_iter().filter(is_line) {
                lines.fits(line);
            }
            lines.earliest_stage()
        }
        Records::Binary { earliest_stage, .. } => earliest_stage(head),
        Records::Described | Records::Parquet | Records::Refused { .. } => None,
    }
}

/// True for a filebench workload model.
pub(super) fn is_filebench(head: &[u8]) -> bool {
    first_lines(head, true).iter().any(|line| FILEBENCH_WORDS.iter().any(|word| line.starts_with(word)))
}

/// True for a trace of a cache's keys: keys and sizes of objects.
pub(super) fn is_of_keys(head: &[u8]) -> bool {
    keys::begins_trace(head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii())
}

/// True for the output of bpftrace's program of the same name, which has no addresses.
pub(super) fn is_of_bpftrace(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').take(4).any(|line| line.starts_with(b"TIME(ms)") && line.ends_with(b"LAT(ms)"))
}

fn whole_lines(head: &[u8], is_whole: bool) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    if !is_whole {
        // The last line may be incomplete.
        lines.pop();
    }
    lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

fn first_lines(head: &[u8], is_whole: bool) -> Vec<&[u8]> {
    let is_line = |line: &&[u8]| !line.trim_ascii_start().is_empty();
    whole_lines(head, is_whole).into_iter().filter(is_line).take(MOST_LINES).collect()
}

fn recognise_text(formats: &'static [Format], lines: &[&[u8]], stage: Stage) -> Option<(&'static Format, Vec<String>)> {
    let scores = formats.iter().filter(|format| !format.by_name_alone).filter_map(|format| match &format.records {
        Records::Lines(open) => Some((format, score(&mut *open(stage), lines))),
        Records::Described | Records::Binary { .. } | Records::Parquet | Records::Refused { .. } => None,
    });
    let scores: Vec<(&Format, usize)> = scores.collect();
    let best = scores.iter().map(|(_, score)| *score).max().filter(|best| *best > 0 && 2 * best >= lines.len())?;
    let (format, _) = *scores.iter().find(|(_, score)| *score == best)?;
    let mut notes: Vec<String> = format.note.iter().map(ToString::to_string).collect();
    if best < lines.len() {
        notes
            .push(format!("it was read as the format {format}, which {best} of its first {} lines match", lines.len()));
    }
    Some((format, notes))
}

/// The number of lines that the parser accepts.
fn score(parser: &mut dyn Lines, lines: &[&[u8]]) -> usize {
    lines.iter().filter(|line| parser.fits(line)).count()
}

/// True for oracleGeneral. It has no magic number: its times never go back, its sizes are small, and the next access to
/// an object is in the future or never (-1).
pub(super) fn is_oracle_general(head: &[u8]) -> bool {
    let mut earlier = 0;
    let mut records = head.chunks_exact(ORACLE_BYTES).take(64).peekable();
    records.peek().is_some()
        && records.all(|record| {
            let time = u32::from_le_bytes(vscsi::bytes_at(record, 0));
            let size = u32::from_le_bytes(vscsi::bytes_at(record, 12));
            let next = i64::from_le_bytes(vscsi::bytes_at(record, 16));
            let in_order = time >= earlier;
            earlier = time;
            in_order && (1..1 << 30).contains(&size) && (next == -1 || (1..1 << 40).contains(&next))
        })
}

fn why_unknown(formats: &[Format], head: &[u8]) -> String {
    let is_tried = |format: &&Format| !matches!(format.records, Records::Described);
    let names: Vec<&str> = formats.iter().filter(is_tried).map(Format::name).collect();
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or(head);
    let excerpt = line[..line.len().min(EXCERPT_BYTES)].escape_ascii();
    format!(
        "unknown format. Tried: {}. It begins with `{excerpt}`; if it is one of these, name the format; any text of \
         lines is read by its columns: --columns time=1,op=3,offset=4,size=5",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::{FORMATS, samples};
    use super::*;

    fn format_of(bytes: &[u8]) -> Result<&'static Format, String> {
        recognise(FORMATS, bytes, true, Stage::default()).map(|(format, _)| format)
    }

    #[test]
    fn every_sample_is_recognised_by_its_content() {
        for (name, bytes) in samples::all() {
            assert_eq!(format_of(&bytes).map(Format::name), Ok(name));
        }
    }

    #[test]
    fn a_sample_is_recognised_by_its_first_line_with_an_operation() {
        for (name, sample) in [
            ("captured", &b"0,RAM,4104,8,ext4lazyinit"[..]),
            ("msr", b"128166372011600556,mds,0,Write,3201662976,20480,45361"),
            ("systor17", b"1456095145.133076000,0.000806000,R,0,899056122368,131072"),
            ("tencent", b"1538323200,6338688,8,1,1627"),
            ("vscsi-csv", b"1,5633898,2a,512,42932745"),
            ("disksim", b"7961.833 0 20228336 8 0"),
            ("disksim", b"7961 0 20228336 8 2"),
            ("mqsim", b"26214000 0 303574 7 0"),
        ] {
            assert_eq!(format_of(sample).map(Format::name), Ok(name));
        }
    }

    #[test]
    fn a_choice_between_formats_of_the_same_layout_is_noted() {
        let (format, notes) = recognise(FORMATS, samples::MQSIM, true, Stage::default()).unwrap();
        assert_eq!(format.name(), "mqsim");
        assert!(notes[0].contains("disksim"), "{notes:?}");
        assert_eq!(recognise(FORMATS, samples::DISKSIM, true, Stage::default()).unwrap().1, [] as [String; 0]);
    }

    #[test]
    fn traces_of_keys_are_told_by_either_header() {
        assert!(is_of_keys(samples::CACHELIB));
        assert!(is_of_keys(b"op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase\r\n"));
        assert!(!is_of_keys(samples::THESIOS));
    }

    #[test]
    fn the_program_of_bpftrace_is_told_by_its_header() {
        let output = b"Attached 4 probes\nTIME(ms)     DISK    COMM   PID    LAT(ms)\n611 nvme0n1 bash 4179 10\n";
        assert!(is_of_bpftrace(output) && !is_of_bpftrace(samples::BIOSNOOP));
    }

    #[test]
    fn noise_is_of_no_format() {
        let noise: Vec<u8> = (0..HEAD_BYTES).map(|at| (at * at % 251) as u8).collect();
        for bytes in [&b"hello\nworld\n"[..], &noise, &[0; 4096], b"1 2 3", b"\n\n\n", b"a,b,c,d,e"] {
            let error = format_of(bytes).unwrap_err();
            assert!(error.contains("Tried: operations, parquet"), "{error}");
        }
    }

    #[test]
    fn a_few_bad_lines_do_not_hide_the_format_and_are_reported() {
        let lines = [b"garbage\n", samples::ALIBABA, b"\n1,2\n"].concat();
        let (format, notes) = recognise(FORMATS, &lines, true, Stage::default()).unwrap();
        assert_eq!(format.name(), "alibaba");
        assert!(notes[0].contains("2 of its first 4 lines"), "{notes:?}");
    }

    #[test]
    fn a_vscsi_trace_of_version_2_is_named() {
        let mut record = [0u8; 40];
        record[..4].copy_from_slice(&[0x2a, 0, 0, 2]);
        assert!(format_of(&record.repeat(3)).unwrap_err().contains("version 2"));
    }
}
