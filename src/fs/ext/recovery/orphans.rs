//! Orphans that a mount finds: files without a name are freed, and those that were being cut off are. They are in the list
//! that begins in the superblock, or in the file of orphans.

use crate::fs::ext::Ext;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::files::placing::MAP_BLOCKS;
use crate::fs::ext::format::features::{ORPHAN_FILE, ORPHAN_PRESENT};
use crate::fs::ext::format::orphans;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;

impl Ext {
    /// Frees all orphans of a volume that is mounted now.
    pub fn free_orphans(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let listed = self.listed_orphans(task)?;
        self.head.enter(task).orphans = listed.iter().rev().copied().collect();
        for number in listed {
            self.free_orphan(task, number, true)?;
        }
        if self.metadata.shape.features.has(ORPHAN_FILE) && self.metadata.shape.orphan_file != 0 {
            self.free_filed_orphans(task)?;
        }
        Ok(())
    }

    /// The list of orphans, the newest first.
    pub fn listed_orphans(&self, task: &Task<'_>) -> Result<Vec<u32>, VolumeError> {
        let mut listed = Vec::new();
        let mut next = self.head.enter(task).superblock.first_orphan();
        while next != 0 {
            let is_one =
                next <= self.metadata.shape.inodes && !self.metadata.shape.is_reserved(next) && !listed.contains(&next);
            if !is_one {
                return Err(damaged("the list of orphans", format!("it names inode {next}")));
            }
            listed.push(next);
            next = self.metadata.read_inode(task, next)?.deleted();
        }
        Ok(listed)
    }

    fn free_orphan(&self, task: &Task<'_>, number: u32, is_listed: bool) -> Result<(), VolumeError> {
        let inode = self.metadata.read_inode(task, number)?;
        self.metadata.check_inode(number, &inode)?;
        let mut file = File::new(number, inode);
        file.is_orphan = is_listed;
        if file.inode.links() == 0 {
            return self.writes().free_file(task, &mut file);
        }
        let size = file.inode.size();
        self.writes().resize(task, &mut file, size)?;
        self.changes.within(task, MAP_BLOCKS, |handle| {
            self.changes.changing(|| {
                self.inodes().remove_orphan(handle, &mut file)?;
                self.inodes().store_inode(handle, &mut file, true)
            })
        })
    }

    /// Frees the orphans that the file of orphans names, and empties it.
    fn free_filed_orphans(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let own = self.metadata.shape.orphan_file;
        let file = File::new(own, self.metadata.read_inode(task, own)?);
        let seed = self.maps().seed_of(&file);
        for number in 0..file.inode.size() / self.metadata.shape.block_bytes as u64 {
            let what = || format!("block {number} of the file of orphans");
            let place =
                self.maps().run(task, &file, number)?.stored().ok_or_else(|| damaged(what(), "it is a hole"))?;
            let block = self.metadata.block(task, place, &what, &|_| Ok(()))?;
            let named = orphans::read(&block, place, seed).map_err(|why| damaged(what(), why))?;
            for orphan in &named {
                if *orphan > self.metadata.shape.inodes || self.metadata.shape.is_reserved(*orphan) {
                    return Err(damaged(what(), format!("it names inode {orphan}")));
                }
                self.free_orphan(task, *orphan, false)?;
            }
            if !named.is_empty() {
                let mut empty = vec![0; self.metadata.shape.block_bytes];
                orphans::clear(&mut empty, place, seed);
                self.changes.within(task, MAP_BLOCKS, |handle| {
                    handle.set(place, Content::Metadata, &empty);
                    Ok(())
                })?;
            }
        }
        let features = self.head.enter(task).superblock.features();
        if !features.has(ORPHAN_PRESENT) {
            return Ok(());
        }
        self.changes.within(task, MAP_BLOCKS, |handle| {
            let mut head = self.head.enter(task);
            head.superblock.set_features(features.without(ORPHAN_PRESENT));
            self.inodes().store_head(handle, &mut head)
        })
    }
}
