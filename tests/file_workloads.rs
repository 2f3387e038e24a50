//! File workloads: what each promises to ask, held against a model of a file system, and what a run leaves.

#[path = "file_workloads/definitions.rs"]
mod definitions;
#[path = "file_workloads/model.rs"]
mod model;
#[path = "file_workloads/parts.rs"]
mod parts;
#[path = "file_workloads/runs.rs"]
mod runs;
