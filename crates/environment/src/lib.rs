//! The origin of results: the commit of the sources, the machine, and the file that was read; and the memory that a
//! program takes of the machine. The program and the Python package share it.

mod memory;

pub use memory::machine_share;

use flashpath::report::{Environment, InputFile, Machine, Program};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes that are hashed at once.
const PART: usize = 1 << 20;

/// The origin of the results of a workload that was read from `input`, if it has a file.
///
/// Fails if the file cannot be read.
pub fn environment(input: Option<&Path>) -> io::Result<Environment> {
    let program = Program {
        name: "flashpath".to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: option_env!("FLASHPATH_COMMIT").map(str::to_string),
    };
    Ok(Environment { program, machine: Some(machine()), input: input.map(input_file).transpose()? })
}

/// This program, its version, and the commit of its sources.
pub fn program() -> String {
    let commit = option_env!("FLASHPATH_COMMIT").map_or(String::new(), |commit| format!(" ({commit})"));
    format!("flashpath {}{commit}", env!("CARGO_PKG_VERSION"))
}

/// The length and the SHA-256 of a file.
pub fn input_file(path: &Path) -> io::Result<InputFile> {
    let mut file = File::open(path)?;
    let (mut hash, mut part, mut bytes) = (Sha256::new(), vec![0; PART], 0);
    loop {
        match file.read(&mut part) {
            Ok(0) => break,
            Ok(read) => {
                hash.update(&part[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(InputFile { bytes, sha256 })
}

fn machine() -> Machine {
    let first_line = |file: &str| std::fs::read_to_string(file).ok().map(|text| text.trim().to_string());
    let system = [first_line("/proc/sys/kernel/ostype"), first_line("/proc/sys/kernel/osrelease")];
    let system: Vec<String> = system.into_iter().flatten().collect();
    Machine {
        system: if system.is_empty() { std::env::consts::OS.to_string() } else { system.join(" ") },
        architecture: std::env::consts::ARCH.to_string(),
        processor: value_of("/proc/cpuinfo", "model name"),
        processors: std::thread::available_parallelism().map_or(1, usize::from) as u64,
        memory_bytes: value_of("/proc/meminfo", "MemTotal").as_deref().and_then(kibibytes),
    }
}

/// The first value of this name in a file of lines `name: value`.
fn value_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let values = text.lines().filter_map(|line| line.split_once(':'));
    values.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_string())
}

/// The bytes of `16384 kB`.
fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
