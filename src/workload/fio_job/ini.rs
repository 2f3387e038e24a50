//! The syntax of a fio job file: sections of `key=value` lines, comments after `;` or `#`.

use crate::workload::WorkloadError;

/// An error at a line: `job.fio:12: ...`.
pub(super) fn error_at(file: &str, line: usize, reason: impl Into<String>) -> WorkloadError {
    WorkloadError::Unusable { file: format!("{file}:{line}"), reason: reason.into() }
}

/// One `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub key: String,
    /// The text after the `=`; a key alone means 1, as in fio.
    pub value: String,
    /// The line of the file, from 1.
    pub line: usize,
}

/// One job: its name and its keys, preceded by those of the [global] sections above it. The last of equal keys counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub name: String,
    pub line: usize,
    pub entries: Vec<Entry>,
}

const GLOBAL: &str = "global";
const COMMENT_MARKS: [char; 2] = [';', '#'];

/// The jobs of the file called `file`, in order.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Section>, WorkloadError> {
    let mut global: Vec<Entry> = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut in_global = None;
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let content = raw.split(COMMENT_MARKS).next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| error_at(file, line, "a section is written [name]"))?;
            in_global = Some(name == GLOBAL);
            if name != GLOBAL {
                jobs.push(Section { name: name.to_string(), line, entries: global.clone() });
            }
            continue;
        }
        let entry = parse_entry(file, line, content)?;
        match (in_global, jobs.last_mut()) {
            (Some(true), _) => global.push(entry),
            (Some(false), Some(job)) => job.entries.push(entry),
            _ => return Err(error_at(file, line, format!("'{}' is before the first [section]", entry.key))),
        }
    }
    if jobs.is_empty() {
        let reason = "no job found: a job is a section such as [write], other than [global]";
        return Err(WorkloadError::Unusable { file: file.to_string(), reason: reason.to_string() });
    }
    Ok(jobs)
}

fn parse_entry(file: &str, line: usize, content: &str) -> Result<Entry, WorkloadError> {
    if content == "include" || content.starts_with("include ") {
        return Err(error_at(file, line, "include is not supported: put the sections into one file"));
    }
    let (key, value) = content.split_once('=').unwrap_or((content, "1"));
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() {
        return Err(error_at(file, line, "a key is missing before the ="));
    }
    Ok(Entry { key: key.to_string(), value: value.to_string(), line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_the_keys_of_the_globals_above_it_and_then_its_own() {
        let text =
            "; head\n[global]\nbs = 4k ; four\n[a]\nrw=read\nnorandommap\n[global]\nrw=write # now\n[b]\nbs=8k\n";
        let jobs = parse("x.fio", text).unwrap();
        let seen: Vec<(&str, Vec<String>)> = jobs
            .iter()
            .map(|job| {
                (job.name.as_str(), job.entries.iter().map(|e| format!("{}={}@{}", e.key, e.value, e.line)).collect())
            })
            .collect();
        assert_eq!(seen[0].0, "a");
        assert_eq!(seen[0].1, ["bs=4k@3", "rw=read@5", "norandommap=1@6"]);
        assert_eq!(seen[1].1, ["bs=4k@3", "rw=write@8", "bs=8k@10"]);
    }

    #[test]
    fn a_malformed_job_file_is_an_error_with_its_line() {
        for (text, expected) in [
            ("", "x.fio: no job found"),
            ("[global]\nrw=read\n", "x.fio: no job found"),
            ("rw=read\n[a]\n", "x.fio:1: 'rw' is before"),
            ("[a]\n[b\n", "x.fio:2: a section is written [name]"),
            ("[]\n", "x.fio:1: a section"),
            ("[a]\n\n=4k\n", "x.fio:3: a key is missing"),
            ("[a]\ninclude other.fio\n", "x.fio:2: include is not supported"),
        ] {
            let error = parse("x.fio", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
