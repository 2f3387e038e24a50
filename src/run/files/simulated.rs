//! A stage in simulated threads, one for each lane. They share one thread of the system; a stage ends when the clock that
//! is furthest ahead has come to its end.

use super::floor::{Floor, Watch};
use super::lane::LaneRun;
use crate::fs::FileSystem;
use crate::run::engine::Progress;
use crate::run::threads::{Work, run_threads};
use crate::task::{Costs, Task};
use crate::time::Time;
use crate::workload::files::Stage;
use std::cell::RefCell;

impl<F: FileSystem> Floor<'_, F> {
    /// All lanes begin at the time that the run has reached. An interrupt lets each end the operation that it is at.
    pub(super) fn simulate_stage(
        &self,
        number: usize,
        stage: Stage,
        lanes: &mut [LaneRun<F>],
        watch: &mut Watch<'_>,
        costs: &Costs,
    ) {
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
        match run_threads(Time(self.now_ns()), costs, lanes.iter_mut().map(work).collect()) {
            Ok(end) => self.reach(end),
            Err(fault) => self.break_off(fault),
        }
    }
}
