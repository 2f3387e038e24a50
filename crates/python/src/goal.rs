//! The search for the value of an option with which a number reaches a goal.

use crate::fault;
use crate::plan::{Description, read};
use crate::table::Table;
use crate::watch::Watch;
use flashpath::report::sweep::SweepRow;
use flashpath_sweep::{
    Found, Goal, Limits, Plan, SEED, SweepError, Traces, Tried, check_memory, has_failed, run_once, search as seek,
};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// The end of a search: the table of all that was tried, its columns, the number of failed runs, and the answer as JSON.
type Ended = (Table, Vec<String>, usize, String);

/// Searches for a goal. `progress` is called as that of a sweep is, for the runs of each value.
#[pyfunction]
#[pyo3(signature = (description, goal, jobs, memory_bytes, progress=None))]
pub fn search(
    py: Python<'_>,
    description: &Description,
    goal: &str,
    jobs: usize,
    memory_bytes: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Ended> {
    let goal = Goal::parse(goal).map_err(|why| fault::input(format!("goal= is {goal}"), Some(why)))?;
    py.detach(|| {
        let limits = Limits { jobs: jobs.max(1), memory_bytes };
        let (stop, mut watch) = (AtomicBool::new(false), Watch::new(progress));
        let mut traces: Option<Traces> = None;
        let mut run = |request: &flashpath_sweep::Request| -> Result<Vec<SweepRow>, SweepError> {
            let plan = read(request, Plan::read)?;
            check_memory(&plan, &limits)?;
            if traces.is_none() {
                traces = Some(plan.decode_traces()?);
            }
            let decoded = traces.as_ref().expect("they were decoded");
            run_once(&plan, decoded, limits, &flashpath_environment::program(), &stop, &mut |told| {
                let told = *told;
                let goes_on =
                    watch.goes_on(|| (told.runs, told.done, told.failed, told.running, told.share, told.seconds_left));
                if !goes_on {
                    stop.store(true, Ordering::Relaxed);
                }
            })
        };
        let found = seek(&description.request, &goal, &mut run);
        watch.ended()?;
        let found = found.map_err(fault::sweep)?;
        let columns = vec![found.option.clone(), SEED.to_string()];
        let rows = found.ordered_rows();
        let failed = rows.iter().filter(|row| has_failed(row)).count();
        Ok((Table::of(rows, columns.clone())?, columns, failed, answer(&found).to_string()))
    })
}

/// The answer, with the names of the fields of `flashpath.GoalFound`.
fn answer(found: &Found) -> Value {
    let tried = |tried: &Tried| {
        json!({
            "value": tried.text, "mean": tried.mean.map(|mean| mean.mean),
            "ci95": tried.mean.and_then(|mean| mean.half_width),
            "is_met": tried.is_met, "is_sure": tried.is_sure, "is_warned": tried.is_warned,
        })
    };
    // Without a miss the range has no place from which the goal is met.
    let crosses = found.tried.iter().any(|tried| !tried.is_met);
    let (miss, hit) = found.sure();
    json!({
        "goal": found.goal.to_string(), "option": found.option,
        "found": found.hit().filter(|_| crosses).map(tried), "surely_missed": miss.map(tried), "surely_met": hit.map(tried),
        "tried": found.tried.iter().map(tried).collect::<Vec<_>>(), "sentences": found.sentences(),
    })
}
