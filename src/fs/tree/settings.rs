//! The options of `tree`.

use super::Tree;
use crate::device::Medium;
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Term, Values};
use crate::fs::station::{Mounting, VolumeFault, VolumeSettings};
use crate::fs::volume::Volume;
use std::sync::Arc;

/// The station.
pub static KIND: Kind = Kind {
    name: "tree",
    about: "a file system in memory, without a device below; its files are lost after a run or an unmount",
    options: &[OptionKind {
        name: "size",
        values: Values::Size(1 << 20, 1 << 40),
        default: "1G",
        about: "space for files: 4K for each file, each data block, and each 4K of extended attributes",
    }],
};

/// The options of a tree.
#[derive(Clone, Debug)]
pub struct TreeSettings {
    /// Space for files, in bytes.
    pub size_bytes: u64,
    written_out: String,
}

impl TreeSettings {
    /// Reads a term of the station.
    pub fn read(term: &Term) -> Result<TreeSettings, ExpressionError> {
        let settings: Settings = term.settle(&KIND)?;
        Ok(TreeSettings { size_bytes: settings.size("size"), written_out: settings.written_out(&[]) })
    }
}

impl VolumeSettings for TreeSettings {
    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn create(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault> {
        debug_assert!(below.is_empty(), "in the table of stations, a tree has nothing below");
        Ok(Arc::new(Tree::new(self.size_bytes, mounting)))
    }
}
