//! Sweeps: many simulated runs from one description, beside each other, resumed after an interruption.
//!
//! A [`Request`] becomes a [`Plan`], in which every run was read and checked. [`run_all`] runs what a [`Journal`] lacks;
//! the table of results is made of the journal's rows, and so is the same after any interruption.
//!
//! | file | role |
//! |---|---|
//! | `values` | lists and ranges of values |
//! | `template` | a path, a workload or an option with several values |
//! | `options` | the options of the command that can be varied |
//! | `cells` | the columns and cells of varied options |
//! | `plan`, `work` | the runs, and their workloads |
//! | `traces` | traces, decoded once |
//! | `journal` | the rows of runs that are done |
//! | `runner` | threads, the budget of memory, progress |
//! | `goal` | the search for the value of an option with which a number reaches a goal |
//! | `error` | errors of a sweep |

#![allow(clippy::disallowed_methods, reason = "a sweep has the clock of its progress")]

mod cells;
mod cpu;
mod error;
mod goal;
mod journal;
mod options;
mod plan;
mod runner;
mod template;
mod traces;
mod values;
mod work;

pub use cpu::{cpu_argument, cpu_steps, cpu_table};
pub use error::{JournalFault, SweepError};
pub use goal::{Found, Goal, Tried, run_once, search};
pub use journal::{DoneRun, Identity, Journal};
pub use options::{COMMAND, SEED, rate};
pub use plan::{Plan, Point, Request, units};
pub use runner::{Abandoned, ERROR, Limits, SweepProgress, check_memory, failed_point, has_failed, run_all, run_point};
pub use template::Template;
pub use traces::Traces;
pub use work::WorkloadRequest;
