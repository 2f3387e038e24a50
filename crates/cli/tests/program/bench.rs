//! A directory to run the program in, and the results of runs.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A small drive without timing, which exports 57 MiB.
pub const DRIVE: &str = "page/nand:size=64M,timing=off";
/// The same with timing.
pub const TIMED: &str = "page/nand:size=64M";
/// The first line of a trace in `convert`'s format.
pub const HEADER: &str = "time_ns,device,action,offset_bytes,length_bytes,content,stream\n";

/// A temporary directory for a test.
pub struct Bench {
    pub directory: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    /// Standard error on one line, without the frame around long messages.
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

    /// `requests` writes of 4 KiB over the first MiBs, a microsecond apart.
    pub fn write_trace(&self, name: &str, requests: u64) {
        let mut text = HEADER.to_string();
        for number in 0..requests {
            let place = number * 7919 % 2000;
            text.push_str(&format!("{},0,write,{},4096,data,0\n", number * 1000, place * 4096));
        }
        self.write(name, text);
    }

    /// The names of all files, sorted.
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

    /// Runs, and parses the JSON on standard output.
    pub fn json(&self, workload: &str, path: &str, more: &[&str]) -> Value {
        let arguments = [&["run", workload, "--on", path, "--json", "-"], more].concat();
        let answer = self.flashpath(&arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        serde_json::from_str(&answer.stdout).unwrap()
    }

    /// Asserts that the program refuses the arguments: exit code 2, a message with each of `expected`, and no panic.
    pub fn refuses(&self, arguments: &[&str], expected: &[&str]) -> Answer {
        let answer = self.flashpath(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        for words in expected {
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
