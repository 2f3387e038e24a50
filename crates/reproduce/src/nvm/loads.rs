//! The paper's workloads.

use crate::lab::Lab;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A mail server: an fsync after each append.
    Varmail,
    /// Many small files, without an fsync.
    Tokubench,
}

impl Load {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Load::Varmail => "Varmail",
            Load::Tokubench => "Tokubench",
        }
    }

    /// Its expression. The work does not depend on the number of threads, which share it.
    pub fn expression(self, lab: &Lab, threads: u64) -> String {
        match self {
            Load::Varmail => {
                let files = lab.scaled_count(100_000);
                format!("varmail:files={files},size=16K,threads={threads},loops={files}")
            }
            // A quarter: each run makes all of them, and there are many.
            Load::Tokubench => {
                format!("tokubench:files={},iosize=4K,threads={threads}", lab.scaled_count(3_000_000 / 4))
            }
        }
    }
}
