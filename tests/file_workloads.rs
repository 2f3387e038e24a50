//! File workloads: their operations, compared with a model of a file system, and the state after a run.

#[path = "file_workloads/definitions.rs"]
mod definitions;
#[path = "failing_disk/mod.rs"]
mod failing_disk;
#[path = "file_workloads/failing_store.rs"]
mod failing_store;
#[path = "file_workloads/hooked.rs"]
mod hooked;
#[path = "file_workloads/model.rs"]
mod model;
#[path = "file_workloads/parts.rs"]
mod parts;
#[path = "file_workloads/runs.rs"]
mod runs;
#[path = "file_workloads/simulated.rs"]
mod simulated;
