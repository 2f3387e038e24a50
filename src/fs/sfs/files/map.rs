//! The map of a file: from block index to virtual block.
//!
//! An inode has eight roots. With 0 levels they are its first eight block numbers; each further level adds map blocks
//! of 512 numbers: 32 KiB, 16 MiB, 8 GiB, 4 TiB, and so on. A map block is itself a virtual block, so that cleaning it
//! does not change its parent.

use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::media::format::ROOTS;
use crate::fs::sfs::metadata::blocks::NO_PLACE;
use crate::task::Task;
use std::ops::Range;

/// Numbers per map block, as a power of two.
pub(in crate::fs::sfs) const FANOUT_BITS: u32 = 9;
pub(in crate::fs::sfs) const FANOUT: u64 = 1 << FANOUT_BITS;

/// The number at an index of a map block.
pub(in crate::fs::sfs) fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
}

/// Sets the number at an index of a map block.
pub(in crate::fs::sfs) fn set_number(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
}

/// Number of blocks covered by the roots with this many levels.
fn reach(levels: u8) -> u64 {
    (ROOTS as u64) << (FANOUT_BITS * u32::from(levels))
}

impl Files {
    /// The virtual block at a block index; 0 for a hole.
    pub(in crate::fs::sfs) fn mapped(&mut self, task: &Task<'_>, inode: u64, place: u64) -> Result<u64, SfsError> {
        let file = self.inode(task, inode)?;
        let levels = file.levels;
        if place >= reach(levels) {
            return Ok(0);
        }
        let mut number = file.roots[(place >> (FANOUT_BITS * u32::from(levels))) as usize];
        for level in (0..u32::from(levels)).rev() {
            if number == 0 {
                return Ok(0);
            }
            let at = (place >> (FANOUT_BITS * level)) % FANOUT;
            number = number_at(&self.metadata_block(task, number, inode, NO_PLACE)?[..], at as usize);
        }
        Ok(number)
    }

    /// Sets the virtual block at a block index.
    pub(in crate::fs::sfs) fn map(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
        virtual_block: u64,
    ) -> Result<(), SfsError> {
        while place >= reach(self.inode(task, inode)?.levels) {
            let roots = self.inode(task, inode)?.roots;
            let mut root = 0;
            if roots.iter().any(|root| *root != 0) {
                root = self.make_metadata_block(task, inode, NO_PLACE)?;
                let bytes = self.metadata_block_mut(task, root, inode, NO_PLACE)?;
                roots.iter().enumerate().for_each(|(at, number)| set_number(bytes, at, *number));
            }
            let file = self.inode_mut(task, inode)?;
            file.levels += 1;
            file.roots = [0; ROOTS];
            file.roots[0] = root;
        }
        let levels = u32::from(self.inode(task, inode)?.levels);
        let at = (place >> (FANOUT_BITS * levels)) as usize;
        if levels == 0 {
            self.inode_mut(task, inode)?.roots[at] = virtual_block;
            return Ok(());
        }
        let mut number = self.inode(task, inode)?.roots[at];
        if number == 0 {
            number = self.make_metadata_block(task, inode, NO_PLACE)?;
            self.inode_mut(task, inode)?.roots[at] = number;
        }
        for level in (0..levels).rev() {
            let at = ((place >> (FANOUT_BITS * level)) % FANOUT) as usize;
            if level == 0 {
                set_number(self.metadata_block_mut(task, number, inode, NO_PLACE)?, at, virtual_block);
                break;
            }
            let mut below = number_at(&self.metadata_block(task, number, inode, NO_PLACE)?[..], at);
            if below == 0 {
                below = self.make_metadata_block(task, inode, NO_PLACE)?;
                set_number(self.metadata_block_mut(task, number, inode, NO_PLACE)?, at, below);
            }
            number = below;
        }
        Ok(())
    }

    /// Frees the virtual blocks of a range.
    pub(in crate::fs::sfs) fn unmap(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        places: Range<u64>,
    ) -> Result<(), SfsError> {
        let levels = self.inode(task, inode)?.levels;
        let span = 1 << (FANOUT_BITS * u32::from(levels));
        for at in 0..ROOTS {
            let first = at as u64 * span;
            let root = self.inode(task, inode)?.roots[at];
            if root == 0 || first >= places.end || first + span <= places.start {
                continue;
            }
            if self.unmap_below(task, inode, root, levels, first, &places)? {
                self.inode_mut(task, inode)?.roots[at] = 0;
            }
        }
        let file = self.inode_mut(task, inode)?;
        if file.roots.iter().all(|root| *root == 0) {
            file.levels = 0;
        }
        self.remove_levels(task, inode)
    }

    /// Removes levels that the map no longer needs.
    fn remove_levels(&mut self, task: &Task<'_>, inode: u64) -> Result<(), SfsError> {
        loop {
            let file = self.inode(task, inode)?;
            let (levels, root) = (file.levels, file.roots[0]);
            if levels == 0 || root == 0 || file.roots[1..].iter().any(|root| *root != 0) {
                return Ok(());
            }
            // A damaged level stays: readers of the map get an error.
            let Ok(block) = self.metadata_block(task, root, inode, NO_PLACE) else { return Ok(()) };
            if (ROOTS..FANOUT as usize).any(|at| number_at(&block[..], at) != 0) {
                return Ok(());
            }
            let roots = std::array::from_fn(|at| number_at(&block[..], at));
            self.free_block(task, inode, root)?;
            let file = self.inode_mut(task, inode)?;
            (file.levels, file.roots) = (levels - 1, roots);
        }
    }

    /// Frees the range below one number of a map. Returns true if that block was freed, too.
    fn unmap_below(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        number: u64,
        level: u8,
        first: u64,
        places: &Range<u64>,
    ) -> Result<bool, SfsError> {
        if level == 0 {
            self.free_block(task, inode, number)?;
            return Ok(true);
        }
        let span = 1 << (FANOUT_BITS * u32::from(level - 1));
        let reaches = first..first.saturating_add(span << FANOUT_BITS);
        if places.start <= reaches.start
            && places.end >= reaches.end
            && self.metadata.dat.get(task, number)?.is_given_up()
        {
            // A repair lost the blocks below it, too.
            self.free_block(task, inode, number)?;
            return Ok(true);
        }
        let mut is_empty = true;
        for at in 0..FANOUT {
            let below = number_at(&self.metadata_block(task, number, inode, NO_PLACE)?[..], at as usize);
            if below == 0 {
                continue;
            }
            let from = first + at * span;
            if from >= places.end
                || from + span <= places.start
                || !self.unmap_below(task, inode, below, level - 1, from, places)?
            {
                is_empty = false;
                continue;
            }
            set_number(self.metadata_block_mut(task, number, inode, NO_PLACE)?, at as usize, 0);
        }
        if is_empty {
            self.free_block(task, inode, number)?;
        }
        Ok(is_empty)
    }

    /// The next allocated block index from `place`, below `end`, and its virtual block.
    pub(in crate::fs::sfs) fn next_mapped(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
        end: u64,
    ) -> Result<Option<(u64, u64)>, SfsError> {
        let levels = self.inode(task, inode)?.levels;
        let end = end.min(reach(levels));
        let span = 1 << (FANOUT_BITS * u32::from(levels));
        let mut at = place;
        while at < end {
            let root = self.inode(task, inode)?.roots[(at / span) as usize];
            if root != 0
                && let Some(found) = self.next_below(task, inode, root, levels, at / span * span, &(at..end))?
            {
                return Ok(Some(found));
            }
            at = (at / span + 1) * span;
        }
        Ok(None)
    }

    fn next_below(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        number: u64,
        level: u8,
        first: u64,
        places: &Range<u64>,
    ) -> Result<Option<(u64, u64)>, SfsError> {
        if level == 0 {
            return Ok(places.contains(&first).then_some((first, number)));
        }
        let span = 1 << (FANOUT_BITS * u32::from(level - 1));
        let from = places.start.saturating_sub(first) / span;
        for at in from..FANOUT {
            let its_first = first + at * span;
            if its_first >= places.end {
                break;
            }
            let below = number_at(&self.metadata_block(task, number, inode, NO_PLACE)?[..], at as usize);
            if below != 0
                && let Some(found) = self.next_below(task, inode, below, level - 1, its_first, places)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
