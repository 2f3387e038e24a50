//! Where results are from: the program, the machine, and the input file.

use serde::Serialize;

/// The version of the results' format: incremented if a field changes its meaning, not if fields are added.
pub const SCHEMA: u32 = 1;

/// Where the results of one command are from.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Environment {
    /// The program.
    pub program: Program,
    /// The machine; `None` if it is not known.
    pub machine: Option<Machine>,
    /// The trace or the job that was read; `None` if the workload has no file.
    pub input: Option<InputFile>,
}

/// A program.
#[derive(Debug, Clone, Serialize)]
pub struct Program {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The commit of the sources, with `-dirty` if they differed from it; `None` if they are in no repository.
    pub commit: Option<String>,
}

impl Default for Program {
    /// This library without a commit.
    fn default() -> Program {
        let (name, version) = (env!("CARGO_PKG_NAME").to_string(), env!("CARGO_PKG_VERSION").to_string());
        Program { name, version, commit: None }
    }
}

/// A machine.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The system and its version: `Linux 6.12.0`.
    pub system: String,
    /// The instruction set: `x86_64`.
    pub architecture: String,
    /// The processor's model; `None` if the system does not name it.
    pub processor: Option<String>,
    /// The processors that this program may use.
    pub processors: u64,
    /// Bytes of memory; `None` if the system does not say it.
    pub memory_bytes: Option<u64>,
}

/// A file that a workload is read from.
#[derive(Debug, Clone, Serialize)]
pub struct InputFile {
    /// Its length, as stored: compressed, if it is.
    pub bytes: u64,
    /// The SHA-256 of these bytes, in hexadecimal digits.
    pub sha256: String,
}
