//! Findings: faults of a volume, as values.

use serde::Serialize;
use std::fmt;

/// The structure that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// One of the two superblocks, or the checkpoint that it names.
    Superblock,
    /// A page or a tree block of the DAT.
    Dat,
    /// A page or a tree block of the inode file.
    InodeFile,
    /// A page or a tree block of the usage file.
    UsageFile,
    /// The log since the last checkpoint.
    Log,
    /// An inode.
    Inode,
    /// The map from a file's blocks to virtual blocks, or an entry of the DAT that it names.
    Map,
    /// A block of a file.
    Data,
    /// A block of a directory, or a name in it.
    Directory,
    /// The target of a symbolic link.
    Target,
    /// Extended attributes.
    Attributes,
    /// The count of live blocks in a segment.
    Usage,
    /// A number of blocks or inodes, or the chain of free ones.
    Count,
}

/// One thing that is wrong with a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The structure.
    pub structure: Structure,
    /// The place, in the volume's own numbers.
    pub place: String,
    /// The inode concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// A path of that inode from the root, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The offset in the file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The state that was found.
    pub found: String,
    /// The state that would be right.
    pub expected: String,
    /// The action of [`repair`](super::repair()).
    pub repair: String,
}

impl Finding {
    pub(super) fn new(
        structure: Structure,
        place: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        repair: impl Into<String>,
    ) -> Finding {
        Finding {
            structure,
            place: place.into(),
            inode: None,
            path: None,
            offset: None,
            found: found.into(),
            expected: expected.into(),
            repair: repair.into(),
        }
    }

    pub(super) fn of(self, inode: u64) -> Finding {
        Finding { inode: Some(inode), ..self }
    }

    pub(super) fn at(self, offset: u64) -> Finding {
        Finding { offset: Some(offset), ..self }
    }
}

impl fmt::Display for Finding {
    /// One line: the place, the state that was found, and the right one.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.place)?;
        if let Some(path) = &self.path {
            write!(to, " ({path})")?;
        }
        if let Some(offset) = self.offset {
            write!(to, " at byte {offset}")?;
        }
        write!(to, ": {}; right would be: {}", self.found, self.expected)
    }
}
