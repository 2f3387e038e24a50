//! File workloads: their operations, compared with a model of a file system, and the state after a run.

#[path = "file_workloads/definitions.rs"]
mod definitions;
#[path = "file_workloads/model.rs"]
mod model;
#[path = "file_workloads/parts.rs"]
mod parts;
#[path = "file_workloads/runs.rs"]
mod runs;
#[path = "file_workloads/simulated.rs"]
mod simulated;
