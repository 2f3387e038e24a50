//! The Python package `flashpath`: its native part. The package itself is in `python/flashpath/`; it has the functions that
//! users call, and their documentation.
//!
//! | file | role |
//! |---|---|
//! | `plan` | a description of runs, and the runs |
//! | `goal` | the search for a goal |
//! | `journal` | the rows of a sweep that are done |
//! | `table` | rows as an Arrow table |
//! | `trace` | a trace: its summary, and its requests as Arrow batches |
//! | `policies` | policies that are written in Python |
//! | `layers` | all that can stand in a path |
//! | `watch` | interrupts and progress during a run |
//! | `fault` | exceptions |
//!
//! Runs go on without the interpreter's lock. It is taken for progress and interrupts a few times a second, and for each
//! batch of a policy in Python.

#![allow(clippy::disallowed_methods, reason = "the package has the clock of its progress and of its policies")]

mod fault;
mod goal;
mod journal;
mod layers;
mod plan;
mod policies;
mod table;
mod trace;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::goal::search;
    #[pymodule_export]
    use crate::journal::Journal;
    #[pymodule_export]
    use crate::layers::{layers, read_path};
    #[pymodule_export]
    use crate::plan::{Description, Plan, cpu_steps, machine_memory, program};
    #[pymodule_export]
    use crate::policies::{add_cleaner, add_grouping, add_victim, policies, policy_costs};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trace::Trace;
}
