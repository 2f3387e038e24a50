//! The summary of a capture, as text and JSON.

use super::labelling::{Counts, PLACES, Requests};
use super::plan::Plan;
use super::processes::Exit;
use crate::failure::Failure;
use flashpath::label::Content;
use flashpath::units::human_size;
use flashpath_kernel::tracing::Losses;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The result of a capture.
pub struct Summary {
    pub counts: Counts,
    /// Bytes at the trace's beginning that were on the device before the recording.
    pub bytes_before: u64,
    pub losses: Losses,
    /// The reasons why the trace is partial; empty if it is complete.
    pub problems: Vec<String>,
    pub output: PathBuf,
    pub output_bytes: u64,
    /// The sum of the guests' journals.
    pub journal_bytes: u64,
    /// The run time of the commands.
    pub seconds: f64,
    pub ended: Vec<Exit>,
}

/// The contents of a file system's writes.
const CONTENTS: [Content; 3] = [Content::Data, Content::Metadata, Content::Journal];

impl Summary {
    /// Prints the summary, writes the JSON if requested, and prints on standard error why the trace is partial.
    pub fn print(&self, plan: &Plan) -> Result<(), Failure> {
        let mut json = serde_json::to_string_pretty(&self.json(plan)).unwrap_or_default();
        json.push('\n');
        match plan.json.as_deref() {
            Some(file) if file == Path::new("-") => crate::print(&json)?,
            file => {
                crate::print(&self.text(plan))?;
                file.map_or(Ok(()), |file| flashpath::report::write_file(file, &json))?;
            }
        }
        for problem in &self.problems {
            crate::print_message(&format!("error: {problem}"));
        }
        if !self.problems.is_empty() {
            crate::print_message(&format!("error: the partial trace is kept as {}", self.output.display()));
        } else if self.counts.sent.writes == 0 && !plan.quiet {
            crate::print_message("warning: nothing was written");
        }
        Ok(())
    }

    fn share(&self, content: Content) -> f64 {
        self.counts.by_content[content as usize] as f64 / (self.counts.sent.written_bytes as f64).max(1.0)
    }

    fn text(&self, plan: &Plan) -> String {
        let counts = &self.counts;
        let mut text = format!("{}\n", plan.describe());
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<18}{value}");
        };
        line("seconds", format!("{:.2}", self.seconds));
        line("requests", requests(&counts.sent, plan.reads));
        line("  after merging", requests(&counts.issued, plan.reads));
        line("written", human_size(counts.sent.written_bytes as f64));
        for content in CONTENTS {
            let bytes = human_size(counts.by_content[content as usize] as f64);
            line(&format!("  {}", content.name()), format!("{bytes:<12}{:>5.1} %", 100.0 * self.share(content)));
        }
        if counts.sent.zeroed_bytes > 0 {
            line("  zeroes alone", human_size(counts.sent.zeroed_bytes as f64));
        }
        if self.bytes_before > 0 {
            line("written before", human_size(self.bytes_before as f64));
        }
        if counts.sent.discards > 0 {
            line("discarded", human_size(counts.sent.discarded_bytes as f64));
        }
        line("lost events", self.losses.total().to_string());
        let partial = if self.problems.is_empty() { "" } else { ", partial" };
        line("trace", format!("{}, {}{partial}", self.output.display(), human_size(self.output_bytes as f64)));
        text
    }

    fn json(&self, plan: &Plan) -> Value {
        let counts = &self.counts;
        let written: Map<String, Value> = CONTENTS
            .into_iter()
            .map(|content| (content.name().to_string(), counts.by_content[content as usize].into()))
            .collect();
        let flagged: Map<String, Value> = PLACES
            .into_iter()
            .zip(&counts.flagged)
            .map(|(place, flagged)| (place.to_string(), json!({ "with": flagged.with, "without": flagged.without })))
            .collect();
        let ended: Vec<Value> = self
            .ended
            .iter()
            .map(|ended| match ended {
                Exit::Code(code) => json!({ "exit_code": code }),
                Exit::Signal(signal) => json!({ "signal": signal }),
                Exit::NotStarted => json!({ "not_started": true }),
            })
            .collect();
        json!({
            "setup": plan.setup,
            "command": plan.command,
            "file_system": plan.make.file_system.name(),
            "data": plan.data.map(|mode| mode.name()),
            "mkfs_options": plan.make.extra_arguments,
            "mount_options": plan.options,
            "guests": plan.guests,
            "size_bytes": plan.size_bytes,
            "memory_bytes": plan.memory_bytes,
            "journal_bytes": self.journal_bytes,
            "bytes_before_recording": self.bytes_before,
            "seconds": self.seconds,
            "ended": ended,
            "trace": { "file": self.output.display().to_string(), "bytes": self.output_bytes },
            "partial": !self.problems.is_empty(),
            "problems": self.problems,
            "requests": requests_json(&counts.sent),
            "requests_after_merging": requests_json(&counts.issued),
            "written_bytes_by_content": written,
            "journal_share": self.share(Content::Journal),
            "writes_by_place_and_metadata_flag": flagged,
            "straddling_writes": counts.straddling,
            "failed_requests": counts.failed,
            "lost_events": {
                "overrun": self.losses.overrun,
                "commit_overrun": self.losses.commit_overrun,
                "dropped": self.losses.dropped,
                "unread": self.losses.unread,
            },
        })
    }
}

fn requests(requests: &Requests, reads: bool) -> String {
    let read = if reads { format!("{} reads, ", requests.reads) } else { String::new() };
    format!("{read}{} writes, {} discards, {} flushes", requests.writes, requests.discards, requests.flushes)
}

fn requests_json(requests: &Requests) -> Value {
    json!({
        "reads": requests.reads,
        "writes": requests.writes,
        "discards": requests.discards,
        "flushes": requests.flushes,
        "read_bytes": requests.read_bytes,
        "written_bytes": requests.written_bytes,
        "zeroed_bytes": requests.zeroed_bytes,
        "discarded_bytes": requests.discarded_bytes,
    })
}
