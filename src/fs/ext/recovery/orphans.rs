//! Orphans that a mount finds: files without a name are freed, and those that were being cut off are. They are in the list
//! that begins in the superblock, or in the file of orphans.

use crate::fs::ext::error::damaged;
use crate::fs::ext::files::inodes::Inodes;
use crate::fs::ext::files::node::File;
use crate::fs::ext::files::placing::MAP_BLOCKS;
use crate::fs::ext::files::writing::Writes;
use crate::fs::ext::format::features::{ORPHAN_FILE, ORPHAN_PRESENT};
use crate::fs::ext::format::orphans;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;

/// The orphans of a volume whose journal has begun.
pub struct FoundOrphans<'o> {
    pub task: &'o Task<'o>,
    pub writes: Writes<'o>,
}

impl FoundOrphans<'_> {
    /// Frees all of them.
    pub fn free(&self) -> Result<(), VolumeError> {
        let Inodes { metadata, head, .. } = self.writes.write_back.inodes;
        let listed = self.writes.write_back.inodes.listed_orphans(self.task)?;
        head.enter(self.task).orphans = listed.iter().rev().copied().collect();
        for number in listed {
            self.free_one(number, true)?;
        }
        if metadata.shape.features.has(ORPHAN_FILE) && metadata.shape.orphan_file != 0 {
            self.free_filed()?;
        }
        Ok(())
    }

    fn free_one(&self, number: u32, is_listed: bool) -> Result<(), VolumeError> {
        let (task, inodes) = (self.task, self.writes.write_back.inodes);
        let Inodes { metadata, changes, .. } = inodes;
        let inode = metadata.read_inode(task, number)?;
        metadata.check_inode(number, &inode)?;
        let mut file = File::new(number, inode);
        file.is_orphan = is_listed;
        if file.inode.links() == 0 {
            return self.writes.free_file(task, &mut file);
        }
        let size = file.inode.size();
        self.writes.resize(task, &mut file, size)?;
        changes.within(task, MAP_BLOCKS, |handle| {
            changes.changing(|| {
                inodes.remove_orphan(handle, &mut file)?;
                inodes.store_inode(handle, &mut file, true)
            })
        })
    }

    /// Frees the orphans that the file of orphans names, and empties it.
    fn free_filed(&self) -> Result<(), VolumeError> {
        let (task, inodes) = (self.task, self.writes.write_back.inodes);
        let Inodes { metadata, changes, maps, head, .. } = inodes;
        let own = metadata.shape.orphan_file;
        let file = File::new(own, metadata.read_inode(task, own)?);
        let seed = maps.seed_of(&file);
        for number in 0..file.inode.size() / metadata.shape.block_bytes as u64 {
            let what = || format!("block {number} of the file of orphans");
            let place = maps.run(task, &file, number)?.stored().ok_or_else(|| damaged(what(), "it is a hole"))?;
            let block = metadata.block(task, place, &what, &|_| Ok(()))?;
            let named = orphans::read(&block, place, seed).map_err(|why| damaged(what(), why))?;
            for orphan in &named {
                if *orphan > metadata.shape.inodes || metadata.shape.is_reserved(*orphan) {
                    return Err(damaged(what(), format!("it names inode {orphan}")));
                }
                self.free_one(*orphan, false)?;
            }
            if !named.is_empty() {
                let mut empty = vec![0; metadata.shape.block_bytes];
                orphans::clear(&mut empty, place, seed);
                changes.within(task, MAP_BLOCKS, |handle| {
                    handle.set(place, Content::Metadata, &empty);
                    Ok(())
                })?;
            }
        }
        let features = head.enter(task).superblock.features();
        if !features.has(ORPHAN_PRESENT) {
            return Ok(());
        }
        changes.within(task, MAP_BLOCKS, |handle| {
            let mut head = head.enter(task);
            head.superblock.set_features(features.without(ORPHAN_PRESENT));
            inodes.store_head(handle, &mut head)
        })
    }
}
