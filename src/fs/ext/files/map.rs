//! Where a block of a file lies: by its tree of extents, or by its map of block numbers.

use crate::fs::ext::allocation::Allocation;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::block_map::Way;
use crate::fs::ext::format::bytes::le32;
use crate::fs::ext::format::extents::{Node, is_sound};
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::metadata::Metadata;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stretch of a file that lies in one run, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first block on the volume; `None` for a hole.
    pub place: Option<u64>,
    /// Blocks of it.
    pub count: u64,
    /// False if it reads as zeros although it has a place.
    pub is_written: bool,
}

impl Run {
    /// The place of the stored blocks.
    pub fn stored(&self) -> Option<u64> {
        self.place.filter(|_| self.is_written)
    }
}

/// Blocks that a hole may have at the most: none is longer than a file.
const HOLE: u64 = u32::MAX as u64 + 1;

/// The maps of files: read and changed.
#[derive(Clone, Copy)]
pub struct Maps<'e> {
    pub metadata: &'e Metadata,
    pub allocation: Allocation<'e>,
    /// Bytes of files may be in the journal.
    pub has_logged_data: &'e AtomicBool,
}

impl Maps<'_> {
    /// True if bytes of files may be in memory and in the journal, newer than on the device.
    pub fn has_logged_data(&self) -> bool {
        self.has_logged_data.load(Ordering::Relaxed)
    }

    /// The seed of the checksums of a file's blocks, if the volume has any.
    pub fn seed_of(&self, file: &File) -> Option<u32> {
        self.metadata.shape.checksums.inode_seed(file.number, file.inode.generation())
    }

    /// The name of a file's map in errors.
    pub fn map_name(number: u32) -> String {
        format!("the map of inode {number}")
    }

    /// The stretch of a file from block `at` on.
    pub fn run(&self, task: &Task<'_>, file: &File, at: u64) -> Result<Run, VolumeError> {
        if file.inode.has(flag::EXTENTS) {
            self.run_of_extents(task, file, at)
        } else {
            self.run_of_map(task, file, at)
        }
    }

    /// Reads a node of a file's extents.
    pub fn extent_block(&self, task: &Task<'_>, file: &File, block: u64, depth: u16) -> Result<Node, VolumeError> {
        let seed = self.metadata.shape.checksums.inode_seed(file.number, file.inode.generation());
        let what = || format!("block {block}, a node of {}", Maps::map_name(file.number));
        self.check_places(file, block, 1)?;
        let bytes = self.metadata.block(task, block, &what, &|bytes| match seed {
            Some(seed) if !is_sound(bytes, seed) => Err("its checksum is wrong".to_string()),
            _ => Ok(()),
        })?;
        Node::read(&bytes, Some(depth), |first, count| self.metadata.shape.holds(first, count))
            .map_err(|why| damaged(what(), why))
    }

    /// The root of a file's extents.
    pub fn extent_root(&self, file: &File) -> Result<Node, VolumeError> {
        Node::read(file.inode.map(), None, |first, count| self.metadata.shape.holds(first, count))
            .map_err(|why| damaged(Maps::map_name(file.number), why))
    }

    fn run_of_extents(&self, task: &Task<'_>, file: &File, at: u64) -> Result<Run, VolumeError> {
        let hole = |count: u64| Run { place: None, count: count.max(1), is_written: false };
        let mut node = self.extent_root(file)?;
        // The blocks behind the node begin here.
        let mut end = HOLE;
        loop {
            match node {
                Node::Leaf(extents) => {
                    let next = extents.partition_point(|extent| u64::from(extent.first) <= at);
                    if let Some(part) = next.checked_sub(1).and_then(|last| extents[last].part(at, u64::MAX)) {
                        self.check_places(file, part.place, part.count.into())?;
                        let (place, is_written) = (Some(part.place), part.is_written);
                        return Ok(Run { place, count: u64::from(part.count), is_written });
                    }
                    let next = extents.get(next).map_or(end, |extent| u64::from(extent.first));
                    return Ok(hole(next.saturating_sub(at)));
                }
                Node::Index(depth, children) => {
                    let next = children.partition_point(|child| u64::from(child.first) <= at);
                    end = children.get(next).map_or(end, |child| u64::from(child.first));
                    match next.checked_sub(1) {
                        Some(within) => node = self.extent_block(task, file, children[within].block, depth - 1)?,
                        None => return Ok(hole(end.saturating_sub(at))),
                    }
                }
            }
        }
    }

    /// Reads a block of numbers of a file's map.
    pub fn pointer_block(&self, task: &Task<'_>, file: &File, block: u64) -> Result<Bytes, VolumeError> {
        let what = || format!("block {block}, a part of {}", Maps::map_name(file.number));
        self.metadata.block(task, block, &what, &|_| Ok(()))
    }

    /// A number of a map, which names a block of a file or 0.
    pub fn pointer(&self, file: &File, numbers: &[u8], place: u32) -> Result<u64, VolumeError> {
        match u64::from(le32(numbers, 4 * place as usize)) {
            0 => Ok(0),
            block if self.metadata.shape.holds(block, 1) => self.check_places(file, block, 1).map(|()| block),
            block => {
                let why = format!("it names block {block} of a volume of {}", self.metadata.shape.blocks);
                Err(damaged(Maps::map_name(file.number), why))
            }
        }
    }

    /// Refuses blocks that are the volume's own in the map of a file.
    fn check_places(&self, file: &File, first: u64, count: u64) -> Result<(), VolumeError> {
        if self.metadata.can_be_a_files(first, count) || file.number == self.metadata.shape.journal_inode {
            return Ok(());
        }
        let last = first + count - 1;
        let why = format!("it names blocks {first} to {last}, and some of them are the volume's own");
        Err(damaged(Maps::map_name(file.number), why))
    }

    fn run_of_map(&self, task: &Task<'_>, file: &File, at: u64) -> Result<Run, VolumeError> {
        let pointers = self.metadata.shape.block_bytes as u64 / 4;
        let Some(way) = Way::to(at, pointers) else {
            return Ok(Run { place: None, count: HOLE, is_written: false });
        };
        let mut numbers: Bytes = file.inode.map().into();
        let mut span = pointers.pow(way.levels as u32);
        for (level, place) in way.places().iter().enumerate() {
            let block = self.pointer(file, &numbers, *place)?;
            if level == way.levels {
                return Ok(self.run_in(&numbers, *place, way.levels, block));
            }
            if block == 0 {
                // All that the block would name is a hole.
                let within = way.places()[level + 1..].iter().fold(0, |at, place| at * pointers + u64::from(*place));
                return Ok(Run { place: None, count: span - within, is_written: false });
            }
            numbers = self.pointer_block(task, file, block)?;
            span /= pointers;
        }
        unreachable!("the way ends at its last level")
    }

    /// The run that begins at a number among its neighbours.
    fn run_in(&self, numbers: &[u8], place: u32, levels: usize, block: u64) -> Run {
        let end = if levels == 0 { 12 } else { numbers.len() as u32 / 4 };
        let follows = |count: u32| {
            let next = u64::from(le32(numbers, 4 * (place + count) as usize));
            if block == 0 {
                next == 0
            } else {
                next == block + u64::from(count) && self.metadata.can_be_a_files(next, 1)
            }
        };
        let count = (1..end - place).take_while(|count| follows(*count)).count() as u64 + 1;
        Run { place: (block != 0).then_some(block), count, is_written: block != 0 }
    }
}
