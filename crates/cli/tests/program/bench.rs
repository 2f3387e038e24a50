//! A directory to run the program in, and what it answered.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A small drive without timing: 57 MiB are exported.
pub const DRIVE: &str = "page/nand:size=64M,timing=off";
/// The same with timing.
pub const TIMED: &str = "page/nand:size=64M";
/// The first line of a trace in the format that `convert` writes.
pub const HEADER: &str = "time_ns,device,action,offset_bytes,length_bytes,content,stream\n";

/// A directory of its own for each test.
pub struct Bench {
    pub directory: TempDir,
}

/// What the program answered.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    /// On one line, without the frame around long messages.
    pub stderr: String,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { directory: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// `requests` writes of 4 KiB that wander over the first MiBs, a microsecond apart.
    pub fn write_trace(&self, name: &str, requests: u64) {
        let mut text = HEADER.to_string();
        for number in 0..requests {
            let place = number * 7919 % 2000;
            text.push_str(&format!("{},0,write,{},4096,data,0\n", number * 1000, place * 4096));
        }
        self.write(name, text);
    }

    /// The names of the files that are there, in order.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .directory
            .path()
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashpath"));
        command.args(arguments).current_dir(self.directory.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    pub fn flashpath(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.command(arguments).output().unwrap())
    }

    /// Runs, and takes the JSON from standard output.
    pub fn json(&self, workload: &str, path: &str, more: &[&str]) -> Value {
        let arguments = [&["run", workload, "--on", path, "--json", "-"], more].concat();
        let answer = self.flashpath(&arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        serde_json::from_str(&answer.stdout).unwrap()
    }

    /// Runs what must be refused with exit code 2, a message that says each of `said`, and no panic.
    pub fn refuses(&self, arguments: &[&str], said: &[&str]) -> Answer {
        let answer = self.flashpath(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        for words in said {
            assert!(answer.stderr.contains(words), "{arguments:?} does not say '{words}': {}", answer.stderr);
        }
        assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
        answer
    }
}

impl Answer {
    pub fn of(output: Output) -> Answer {
        let stderr = String::from_utf8(output.stderr).unwrap();
        let words = stderr.split_whitespace().filter(|word| *word != "│");
        let stderr = words.collect::<Vec<_>>().join(" ");
        Answer { code: output.status.code(), stdout: String::from_utf8(output.stdout).unwrap(), stderr }
    }
}
