//! `flashpath man` and `flashpath completions`: manual pages and completions for shells, made of the command line itself.

use crate::failure::Failure;
use clap::Command;
use clap_complete::{Shell, generate};
use flashpath::report::WriteError;
use std::path::PathBuf;

/// Write the manual pages, one for each command
#[derive(clap::Args)]
pub struct Man {
    /// The directory, such as /usr/local/share/man/man1; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Print the completions for a shell
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Man {
    /// Writes `flashpath.1` and `flashpath-COMMAND.1`.
    pub fn run(self, command: Command) -> Result<(), Failure> {
        let written = std::fs::create_dir_all(&self.directory)
            .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), &self.directory));
        Ok(written.map_err(|error| WriteError::new(&self.directory, error))?)
    }
}

impl Completions {
    /// Prints the script that the shell reads.
    pub fn run(self, mut command: Command) -> Result<(), Failure> {
        let name = command.get_name().to_string();
        let mut script = Vec::new();
        generate(self.shell, &mut command, name, &mut script);
        crate::print(&String::from_utf8_lossy(&script))
    }
}
