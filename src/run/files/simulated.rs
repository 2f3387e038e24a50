//! Runs a stage in simulated threads, one for each lane, on one thread of the system. The stage ends at the latest of their
//! clocks.

use super::lane::LaneRun;
use super::runner::{Runner, Watch};
use crate::fs::FileSystem;
use crate::run::engine::Progress;
use crate::run::threads::{GateWaits, Work, run_threads_told};
use crate::task::{Costs, Task};
use crate::time::Time;
use crate::workload::files::Stage;
use std::cell::RefCell;

impl<F: FileSystem> Runner<'_, F> {
    /// All lanes begin at the time that the run has reached. On an interrupt, each ends after its current operation. Returns
    /// the waits at gates.
    pub(super) fn simulate_stage(
        &self,
        number: usize,
        stage: Stage,
        lanes: &mut [LaneRun<F>],
        watch: &mut Watch<'_>,
        costs: &Costs,
    ) -> GateWaits {
        let done_before = self.operations();
        watch.begin();
        let watch = RefCell::new(watch);
        let ask = |share: Option<f64>| {
            let requests = self.operations() - done_before;
            self.ask(&mut watch.borrow_mut(), &Progress { phase: stage.name, requests, share });
        };
        let work = |lane| -> Work<'_> {
            Box::new(move |task: &Task<'_>| self.run_lane(task, number, stage, lane, &mut |share| ask(share)))
        };
        let turn = |number| {
            if let Some(log) = self.run.log {
                log.waits().turn(number);
            }
        };
        match run_threads_told(Time(self.now_ns()), costs, lanes.iter_mut().map(work).collect(), &turn) {
            Ok((end, waits)) => {
                self.reach(end);
                return waits;
            }
            Err(fault) => self.break_off(fault),
        }
        GateWaits::default()
    }
}
