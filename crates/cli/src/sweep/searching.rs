//! A sweep with a goal: the search, and its answer above the table of all that was tried.

use super::output::{Outputs, Results, report_failures};
use super::progress::ProgressBar;
use super::{STOP, Sweep, catch_interrupts};
use crate::failure::Failure;
use flashpath::report::sweep::SweepRow;
use flashpath_environment::program;
use flashpath_sweep::{
    Goal, Plan, Request, SEED, SweepError, Traces, WorkloadRequest, check_memory, run_once, search, units,
};
use std::sync::atomic::Ordering;

impl Sweep {
    /// Searches the range of an option for the goal, prints the answer, and writes the tables of all that was tried.
    pub(super) fn search(self, request: &Request, goal: &Goal) -> Result<(), Failure> {
        if self.outputs.journal.is_some() || self.plan {
            let option = if self.plan { "--plan" } else { "--journal" };
            let message =
                format!("{option} is of runs that are known before, and those of a goal depend on each other");
            return Err(Failure::input(message, Some("leave it out".to_string())));
        }
        if self.outputs.x.is_some() || self.outputs.by.is_some() {
            let message = "the figure of a goal is its number over the option that is sought";
            return Err(Failure::input(message, Some("leave --x and --by out".to_string())));
        }
        let files = request.workloads.iter().filter_map(|workload| match workload {
            WorkloadRequest::Trace { file, .. } => Some(file.as_path()),
            WorkloadRequest::Expression(_) | WorkloadRequest::FioJob { .. } | WorkloadRequest::Recording { .. } => None,
        });
        self.outputs.check_files(&files.collect::<Vec<_>>())?;
        let (limits, units) = (self.limits(), units(request)?);
        let mut traces: Option<Traces> = None;
        let mut described = Vec::new();
        let mut run = |one: &Request| -> Result<Vec<SweepRow>, SweepError> {
            let plan = &Plan::read(one)?;
            check_memory(plan, &limits)?;
            if traces.is_none() {
                traces = Some(plan.decode_traces()?);
            }
            let decoded = traces.as_ref().expect("they were decoded");
            let mut bar = ProgressBar::new(self.quiet);
            let rows = run_once(plan, decoded, limits, &program(), &STOP, &mut |progress| bar.show(progress))?;
            bar.finish();
            described.extend((0..plan.runs()).map(|number| plan.point(number).described()));
            Ok(rows)
        };
        catch_interrupts()?;
        let found = match search(request, goal, &mut run) {
            // What was done is not kept, as the values depend on each other.
            Err(_) if STOP.load(Ordering::SeqCst) => return Err(Failure::Quiet(130)),
            found => found?,
        };
        let columns = [found.option.clone(), SEED.to_string()];
        let mut rows: Vec<(SweepRow, String)> = found.rows.iter().cloned().zip(described).collect();
        let value = |row: &SweepRow| row.get(&found.option).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
        rows.sort_by(|a, b| value(&a.0).total_cmp(&value(&b.0)));
        let (rows, described): (Vec<SweepRow>, Vec<String>) = rows.into_iter().unzip();
        let title = goal.to_string();
        let answer = found.sentences();
        let results = Results { title: &title, rows, columns: &columns, units: &units, answer };
        let outputs = Outputs { y: self.outputs.y.or(Some(goal.column.clone())), ..self.outputs };
        outputs.write(&results, self.quiet)?;
        report_failures(&results.rows, |number| described[number as usize].clone())
    }
}
