//! A directory to run the program in, and the results of runs.

use jsonschema::Validator;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
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

    /// The result in a file of JSON.
    pub fn result(&self, name: &str) -> Value {
        only_result(&std::fs::read_to_string(self.path(name)).unwrap())
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

    /// Runs on one path, or several with `more`, and parses the JSON on standard output: that of one path is its object.
    pub fn json(&self, workload: &str, path: &str, more: &[&str]) -> Value {
        let arguments = [&["run", workload, "--on", path, "--json", "-"], more].concat();
        let answer = self.flashpath(&arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        match results(&answer.stdout) {
            mut one if one.len() == 1 => one.remove(0),
            several => Value::Array(several),
        }
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

/// The results in the JSON of a run, after a validation against the schema of docs/.
pub fn results(json: &str) -> Vec<Value> {
    static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
        let schema = include_str!("../../../../docs/results.schema.json");
        jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
    });
    let results: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let errors: Vec<String> =
        SCHEMA.iter_errors(&results).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "docs/results.schema.json refuses it: {errors:#?}");
    let Value::Array(results) = results else { unreachable!("the schema takes an array only") };
    results
}

/// The same of a run on one path.
pub fn only_result(json: &str) -> Value {
    let [only] = <[Value; 1]>::try_from(results(json)).expect("one path was run");
    only
}

impl Answer {
    pub fn of(output: Output) -> Answer {
        let stderr = String::from_utf8(output.stderr).unwrap();
        let words = stderr.split_whitespace().filter(|word| *word != "│");
        let stderr = words.collect::<Vec<_>>().join(" ");
        Answer { code: output.status.code(), stdout: String::from_utf8(output.stdout).unwrap(), stderr }
    }
}
