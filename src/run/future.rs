//! The future of a file's blocks, for policies that are bounds: a first pass over the workload, which is opened again for
//! the run.

use super::blocks::{covered, touched};
use super::error::{InputFault, RunError};
use super::fill::Fill;
use crate::workload::{Action, Operation, Workload};

/// The number of operations taken from the workload at once.
const BATCH: usize = 1024;

/// For each block of a file the times at which it is overwritten or discarded, in blocks written since the file was made.
/// Before that, the share `fill` of the file is written once, in order.
///
/// Fails if the workload writes behind the file, writes nothing, or more blocks than 32 bits count.
pub(super) fn deaths(workload: &mut dyn Workload, blocks: u64, fill: Fill) -> Result<Vec<Vec<u32>>, RunError> {
    let mut deaths = vec![Vec::new(); blocks as usize];
    let mut written = fill.part_of(blocks);
    let before = written;
    let mut batch: Vec<Operation> = Vec::with_capacity(BATCH);
    while workload.next_batch(&mut batch, BATCH)? > 0 {
        for operation in batch.drain(..) {
            let range = (operation.offset_bytes, operation.length_bytes);
            let died = match operation.action {
                Action::Write => touched(range),
                Action::Discard => covered(range),
                Action::Read | Action::Flush => continue,
            };
            for block in died {
                written += u64::from(operation.action == Action::Write);
                // A discard ends a block between two writes.
                let when = written + u64::from(operation.action == Action::Discard);
                let when = u32::try_from(when).map_err(|_| unknown(workload.name(), "it writes too many blocks"))?;
                // A request behind the file is an error of the run, which says so.
                deaths.get_mut(block as usize).into_iter().for_each(|times| times.push(when));
            }
        }
    }
    if written == before { Err(unknown(workload.name(), "it writes nothing")) } else { Ok(deaths) }
}

fn unknown(workload: &str, why: &str) -> RunError {
    InputFault::Refused {
        what: format!("the future of {workload} cannot be known: {why}"),
        help: Some("run it with another grouping, such as grouping=lifetime".to_string()),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse_term;
    use crate::workload::generator::generator;

    #[test]
    fn a_block_dies_at_each_of_its_writes() {
        let term = parse_term("sequential:request=4K,writes=24K").unwrap();
        let deaths_of = |fill: bool| deaths(&mut *generator(&term, 16 << 10, 1).unwrap(), 4, fill.into()).unwrap();
        assert_eq!(deaths_of(false), [vec![1, 5], vec![2, 6], vec![3], vec![4]]);
        assert_eq!(deaths_of(true), [vec![5, 9], vec![6, 10], vec![7], vec![8]]);
    }
}
