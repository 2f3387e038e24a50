//! A lane of a run: its open files and its counts.

use super::tally::Tally;
use crate::fs::FileSystem;
use crate::workload::files::{FileOperation, Lane, Name};

/// A lane, its open files and its counts.
pub(super) struct LaneRun<F: FileSystem> {
    /// The number of its thread, from 1.
    pub(super) number: u32,
    pub(super) lane: Box<dyn Lane>,
    /// A lane has a few files open at most.
    pub(super) open: Vec<(Name, F::File)>,
    pub(super) operations: Vec<FileOperation>,
    pub(super) buffer: Vec<u8>,
    pub(super) path: String,
    pub(super) other_path: String,
    /// The operations of the counted stages left until its limit.
    pub(super) left: Option<u64>,
    pub(super) requests: u64,
    pub(super) tally: Tally,
}

impl<F: FileSystem> LaneRun<F> {
    pub(super) fn new(number: u32, lane: Box<dyn Lane>, left: Option<u64>) -> LaneRun<F> {
        LaneRun {
            number,
            lane,
            open: Vec::new(),
            operations: Vec::new(),
            buffer: Vec::new(),
            path: String::new(),
            other_path: String::new(),
            left,
            requests: 0,
            tally: Tally::default(),
        }
    }

    pub(super) fn write_path(&mut self, name: Name) {
        self.path.clear();
        self.lane.write_path(name, &mut self.path);
    }
}

pub(super) fn opened<File>(open: &[(Name, File)], name: Name) -> &File {
    &open.iter().find(|(open, _)| *open == name).expect("a lane asks only for files that it has open").1
}
