//! Runs in simulated time: each thread has a core of its own, and the same seed gives the same result.

use super::journals::{Sizes, Stack};
use super::measured::Measured;
use crate::ReproduceError;
use crate::at_once::at_once;
use crate::lab::Lab;
use flashpath::task::CpuTable;

/// The drive of the figures: a conventional device with its default times.
pub const DRIVE: &str = "conv:";
/// The same without times worth counting. Not timing=off: a volume without any time has no throughput.
pub const FAST_DRIVE: &str = "conv:read=1ns,write=1ns,";

/// A run to make.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The path.
    pub path: String,
    /// The workload.
    pub expression: String,
    /// The CPU time that counts.
    pub cpu: CpuTable,
}

impl Wanted {
    /// A workload on a stack with the drive of the figures, and the program's table of CPU time.
    pub fn new(lab: &Lab, stack: &Stack<'_>, expression: String) -> Wanted {
        Wanted { path: stack.simulated(&Sizes::of(lab), DRIVE), expression, cpu: CpuTable::DEFAULT }
    }
}

/// Makes several runs, as many at once as there are processors. The results are in their order.
pub fn simulate(lab: &Lab, wanted: &[Wanted]) -> Result<Vec<Measured>, ReproduceError> {
    at_once(wanted, |wanted| one(lab, wanted))
}

fn one(lab: &Lab, wanted: &Wanted) -> Result<Measured, ReproduceError> {
    lab.progress(&format!("simulating {} on {}", wanted.expression, wanted.path));
    let result = lab.simulate_files(&wanted.path, &wanted.expression, wanted.cpu.clone())?;
    Measured::of(result).ok_or_else(|| ReproduceError::failed(format!("{} has no times", wanted.path)))
}
