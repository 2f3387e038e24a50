//! Changes of a file's tree of extents. Every change is one of a leaf: its entries are replaced, neighbours joined, and what
//! does not fit any more goes on into a new node.

use crate::fs::ext::error::damaged;
use crate::fs::ext::files::map::Maps;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::extents::{Child, DEEPEST, Extent, MOST_UNWRITTEN, MOST_WRITTEN, Node, most_entries, sum};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;
use std::ops::Range;

/// A node on the way to a leaf, and the child that the way takes.
struct Step {
    /// `None` for the root, which lies in the inode.
    place: Option<u64>,
    node: Node,
    at: usize,
}

impl Maps<'_> {
    /// The way to the leaf in which block `at` of a file is, or would be.
    fn way_to_leaf(&self, task: &Task<'_>, file: &File, at: u32) -> Result<Vec<Step>, VolumeError> {
        let mut node = self.extent_root(file)?;
        let mut place = None;
        let mut way = Vec::new();
        loop {
            let next = match &node {
                Node::Leaf(_) => None,
                Node::Index(depth, children) => {
                    let child = children.partition_point(|child| child.first <= at).saturating_sub(1);
                    Some((child, children[child].block, depth - 1))
                }
            };
            match next {
                None => {
                    way.push(Step { place, node, at: 0 });
                    return Ok(way);
                }
                Some((child, block, depth)) => {
                    way.push(Step { place, node, at: child });
                    node = self.extent_block(task, file, block, depth)?;
                    place = Some(block);
                }
            }
        }
    }

    /// Adds an extent where there is a hole.
    pub fn add_extent(&self, handle: &Handle<'_>, file: &mut File, new: Extent) -> Result<(), VolumeError> {
        let mut way = self.way_to_leaf(handle.task, file, new.first)?;
        let extents = leaf(&mut way);
        let at = extents.partition_point(|extent| extent.first < new.first);
        let overlaps = at > 0 && extents[at - 1].end() > u64::from(new.first)
            || extents.get(at).is_some_and(|next| u64::from(next.first) < new.end());
        if overlaps {
            return Err(damaged(Maps::map_name(file.number), format!("{new:?} is there already")));
        }
        extents.insert(at, new);
        self.store_leaf(handle, file, way)
    }

    /// Marks blocks of a file that have a place as written.
    pub fn mark_written(&self, handle: &Handle<'_>, file: &mut File, blocks: Range<u64>) -> Result<(), VolumeError> {
        self.mark_blocks(handle, file, blocks, true)
    }

    /// Marks blocks of a file that have a place as unwritten: they read as zeros. They are no more than fit into an extent.
    pub fn mark_unwritten(&self, handle: &Handle<'_>, file: &mut File, blocks: Range<u64>) -> Result<(), VolumeError> {
        self.mark_blocks(handle, file, blocks, false)
    }

    fn mark_blocks(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        blocks: Range<u64>,
        is_written: bool,
    ) -> Result<(), VolumeError> {
        let mut at = blocks.start;
        while at < blocks.end {
            let run = self.run(handle.task, file, at)?;
            let end = (at + run.count).min(blocks.end);
            if run.place.is_some() && run.is_written != is_written {
                let mut way = self.way_to_leaf(handle.task, file, at as u32)?;
                let extents = leaf(&mut way);
                *extents = extents.iter().flat_map(|extent| split(extent, at..end, is_written)).collect();
                self.store_leaf(handle, file, way)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Takes at most `most` extents, or parts of them, out of a range of a file's blocks, the last first. Answers the runs
    /// of the volume that they had, and true if there are more.
    pub fn cut_extents(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        blocks: Range<u64>,
        most: usize,
    ) -> Result<(Vec<Range<u64>>, bool), VolumeError> {
        let mut freed = Vec::new();
        let mut end = blocks.end.min(u64::from(u32::MAX));
        while freed.len() < most {
            let mut way = self.way_to_leaf(handle.task, file, (end.max(1) - 1) as u32)?;
            // Blocks before the leaf belong to its neighbour.
            let begin = way.iter().rev().skip(1).find(|step| step.at > 0).map(|step| match &step.node {
                Node::Index(_, children) => u64::from(children[step.at].first),
                Node::Leaf(_) => 0,
            });
            let extents = leaf(&mut way);
            let mut kept = Vec::new();
            for extent in extents.drain(..).rev() {
                match extent.part(blocks.start, end) {
                    Some(part) if freed.len() < most => {
                        freed.push(part.place..part.place + u64::from(part.count));
                        kept.extend(extent.part(part.end(), u64::MAX));
                        kept.extend(extent.part(0, u64::from(part.first)));
                    }
                    _ => kept.push(extent),
                }
            }
            kept.reverse();
            *extents = kept;
            if freed.len() == most {
                // Those before may be left.
                self.store_leaf(handle, file, way)?;
                return Ok((freed, true));
            }
            self.store_leaf(handle, file, way)?;
            match begin.filter(|begin| *begin > blocks.start) {
                Some(begin) => end = begin.min(end),
                None => return Ok((freed, false)),
            }
        }
        Ok((freed, true))
    }

    /// Stores the leaf at the end of a way, whose entries were changed.
    fn store_leaf(&self, handle: &Handle<'_>, file: &mut File, mut way: Vec<Step>) -> Result<(), VolumeError> {
        let extents = leaf(&mut way);
        let mut joined: Vec<Extent> = Vec::with_capacity(extents.len());
        for extent in extents.drain(..) {
            match joined.last_mut() {
                Some(last) if last.joins(&extent) => last.count += extent.count,
                _ => joined.push(extent),
            }
        }
        *extents = joined;
        let mut is_changed = true;
        while is_changed && let Some(Step { place, node, .. }) = way.pop() {
            is_changed = false;
            let first = node.first();
            match place {
                None => self.store_root(handle, file, node)?,
                Some(place) if node.len() == 0 => {
                    self.free_map_block(handle, file, place)?;
                    drop_child(&mut way);
                    is_changed = true;
                }
                Some(place) => {
                    let more = self.store_node(handle, file, place, node)?;
                    let above = way.last_mut().expect("a node with a place has one above it");
                    if let Node::Index(_, children) = &mut above.node {
                        let first = first.expect("it has entries");
                        is_changed = more.is_some() || children[above.at].first != first;
                        children[above.at].first = first;
                        children.splice(above.at + 1..above.at + 1, more);
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores a node in its block; entries that do not fit go into a new one, which is answered.
    fn store_node(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        place: u64,
        mut node: Node,
    ) -> Result<Option<Child>, VolumeError> {
        let most = most_entries(self.metadata.shape.block_bytes, true);
        let mut more = None;
        if node.len() > most {
            // A file that grows at its end leaves full nodes behind.
            let behind = cut(&mut node, file, most);
            let block = self.take_map_block(handle, file, place)?;
            more = behind.first().map(|first| Child { first, block });
            self.write_node(handle, file, block, &behind);
        }
        self.write_node(handle, file, place, &node);
        Ok(more)
    }

    fn write_node(&self, handle: &Handle<'_>, file: &File, place: u64, node: &Node) {
        let mut bytes = vec![0; self.metadata.shape.block_bytes];
        node.write(&mut bytes, true);
        if let Some(seed) = self.seed_of(file) {
            sum(&mut bytes, seed);
        }
        handle.set(place, Content::Metadata, &bytes);
    }

    /// Stores the root in the inode; if it does not fit, in a block below it.
    fn store_root(&self, handle: &Handle<'_>, file: &mut File, node: Node) -> Result<(), VolumeError> {
        let most = most_entries(file.inode.map().len(), false);
        let root = match node {
            Node::Index(_, children) if children.is_empty() => Node::Leaf(Vec::new()),
            node if node.len() <= most => node,
            node if node.depth() == DEEPEST => {
                return Err(VolumeError::TooLarge);
            }
            node => {
                let goal = file.goal;
                let block = self.take_map_block(handle, file, goal)?;
                self.write_node(handle, file, block, &node);
                Node::Index(node.depth() + 1, vec![Child { first: node.first().unwrap_or(0), block }])
            }
        };
        root.write(file.inode.map_mut(), false);
        Ok(())
    }

    /// Takes a block for the map of a file.
    pub fn take_map_block(&self, handle: &Handle<'_>, file: &mut File, goal: u64) -> Result<u64, VolumeError> {
        let block = self.allocation.take_block(handle, goal)?;
        file.inode.add_blocks(1, self.metadata.shape.block_bytes);
        Ok(block)
    }

    /// Gives a block of a file's map back.
    pub fn free_map_block(&self, handle: &Handle<'_>, file: &mut File, block: u64) -> Result<(), VolumeError> {
        file.inode.add_blocks(-1, self.metadata.shape.block_bytes);
        self.allocation.free_blocks(handle, block..block + 1, true)
    }
}

/// The entries of the leaf at the end of a way.
fn leaf(way: &mut [Step]) -> &mut Vec<Extent> {
    match way.last_mut().map(|step| &mut step.node) {
        Some(Node::Leaf(extents)) => extents,
        _ => unreachable!("a way ends at a leaf"),
    }
}

/// The last node of a way has lost the child that the way took.
fn drop_child(way: &mut [Step]) {
    if let Some(Step { node: Node::Index(_, children), at, .. }) = way.last_mut() {
        children.remove(*at);
    }
}

/// Cuts the entries behind the middle off; of a leaf whose last entry is the file's newest, those behind the most.
fn cut(node: &mut Node, file: &File, most: usize) -> Node {
    let block_end = file.inode.size();
    match node {
        Node::Leaf(extents) => {
            let grows = extents.last().is_some_and(|last| last.end().saturating_mul(1024) >= block_end);
            let at = if grows { most } else { extents.len() / 2 };
            Node::Leaf(extents.split_off(at))
        }
        Node::Index(depth, children) => {
            let at = children.len() / 2;
            Node::Index(*depth, children.split_off(at))
        }
    }
}

/// An extent, of which these blocks are written or unwritten from now on.
fn split(extent: &Extent, written: Range<u64>, is_written: bool) -> Vec<Extent> {
    let Some(part) = extent.part(written.start, written.end) else { return vec![*extent] };
    let before = extent.part(0, u64::from(part.first));
    let behind = extent.part(part.end(), u64::MAX);
    before.into_iter().chain([Extent { is_written, ..part }]).chain(behind).collect()
}

/// A run as extents that are not too long.
pub fn in_extents(first: u64, run: Range<u64>, is_written: bool) -> impl Iterator<Item = Extent> {
    let most = u64::from(if is_written { MOST_WRITTEN } else { MOST_UNWRITTEN });
    let count = run.end - run.start;
    (0..count.div_ceil(most)).map(move |number| {
        let at = number * most;
        let count = (count - at).min(most) as u32;
        Extent { first: (first + at) as u32, count, place: run.start + at, is_written }
    })
}
