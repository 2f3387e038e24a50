//! Extended attributes of a file.

use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::inodes::Inodes;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::access_list;
use crate::fs::ext::format::attributes::{
    LISTS, Stored, fits_block, fits_inode, is_sound, read_block, read_inode, set_sharers, sharers, sum, write_block,
    write_inode,
};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::{ExtendedChange, LONGEST_VALUE, VolumeError};
use crate::label::Content;
use crate::task::Task;

impl Inodes<'_> {
    /// The block of a file's attributes.
    pub fn attribute_block(&self, task: &Task<'_>, file: &File) -> Result<Option<(u64, Bytes)>, VolumeError> {
        let place = file.inode.attribute_block();
        if place == 0 {
            return Ok(None);
        }
        let what = || format!("block {place}, the attributes of inode {}", file.number);
        if !self.metadata.can_be_a_files(place, 1) {
            return Err(damaged(what(), "the volume has no such block, or it is its own"));
        }
        let seed = self.metadata.shape.checksums.seed();
        let check = |bytes: &[u8]| match seed {
            Some(seed) if !is_sound(bytes, place, seed) => Err("its checksum is wrong".to_string()),
            _ => read_block(bytes).map(drop),
        };
        Ok(Some((place, self.metadata.block(task, place, &what, &check)?)))
    }

    /// All attributes of a file, where they are stored.
    pub fn stored_attributes(&self, task: &Task<'_>, file: &File) -> Result<Division, VolumeError> {
        let what = || format!("the attributes of inode {}", file.number);
        let inode = match file.inode.attribute_room() {
            Some(room) => read_inode(&file.inode.bytes()[room]).map_err(|why| damaged(what(), why))?,
            None => Vec::new(),
        };
        let block = match self.attribute_block(task, file)? {
            Some((_, block)) => read_block(&block).map_err(|why| damaged(what(), why))?,
            None => Vec::new(),
        };
        Ok(Division { inode, block })
    }

    /// The value of an attribute, as programs see it; `None` if there is none of this name.
    pub fn attribute_of(&self, task: &Task<'_>, file: &File, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        let Some((prefix, rest)) = Stored::split(name) else { return Ok(None) };
        let all = self.stored_attributes(task, file)?;
        let Some(found) = all.into_iter().find(|stored| stored.is_named(prefix, rest)) else {
            return Ok(None);
        };
        if !LISTS.contains(&prefix) {
            return Ok(Some(found.value));
        }
        let what = || format!("the access control list of inode {}", file.number);
        access_list::seen(&found.value).map(Some).ok_or_else(|| damaged(what(), "its entries make no list"))
    }

    /// The names of all attributes of a file, sorted.
    pub fn attribute_names(&self, task: &Task<'_>, file: &File) -> Result<Vec<Vec<u8>>, VolumeError> {
        let mut names: Vec<_> =
            self.stored_attributes(task, file)?.into_iter().filter_map(|stored| stored.full_name()).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// The attributes of a file: those in its inode, and those in its block.
pub struct Division {
    inode: Vec<Stored>,
    block: Vec<Stored>,
}

impl Division {
    fn into_iter(self) -> impl Iterator<Item = Stored> {
        self.inode.into_iter().chain(self.block)
    }

    fn remove(&mut self, prefix: u8, name: &[u8]) {
        for part in [&mut self.inode, &mut self.block] {
            part.retain(|stored| !stored.is_named(prefix, name));
        }
    }

    /// Sets an attribute: in the inode if it fits there, else in the block. Others stay where they are, even if they
    /// would fit otherwise: the kernel's ext4 does the same, so that both have room for the same attributes. False if it
    /// fits nowhere.
    fn set(&mut self, new: Stored, inode_room: usize, block_bytes: usize) -> bool {
        if self.inode.contains(&new) || self.block.contains(&new) {
            return true;
        }
        self.remove(new.prefix, &new.name);
        self.inode.push(new);
        if !fits_inode(inode_room, &self.inode) {
            self.block.extend(self.inode.pop());
        }
        fits_block(block_bytes, &self.block)
    }
}

impl Inodes<'_> {
    /// Plans changes of a file's attributes. Nothing is changed if they do not fit.
    pub fn plan_attributes(
        &self,
        task: &Task<'_>,
        file: &File,
        changes: &[ExtendedChange<'_>],
    ) -> Result<Division, VolumeError> {
        let mut plan = self.stored_attributes(task, file)?;
        let room = file.inode.attribute_room().map_or(0, |room| room.len());
        for change in changes {
            let unknown = VolumeError::Unsupported("ext has no attributes with such a prefix");
            let (prefix, name) = Stored::split(change.name).ok_or(unknown)?;
            let Some(value) = &change.value else {
                plan.remove(prefix, name);
                continue;
            };
            if value.len() > LONGEST_VALUE {
                return Err(VolumeError::LongValue);
            }
            let value = match LISTS.contains(&prefix) {
                true => access_list::stored(value).ok_or(VolumeError::Invalid("no access control list"))?,
                false => value.to_vec(),
            };
            if !plan.set(Stored { prefix, name: name.to_vec(), value }, room, self.metadata.shape.block_bytes) {
                return Err(VolumeError::ManyAttributes { most: (self.metadata.shape.block_bytes + room) as u64 });
            }
        }
        Ok(plan)
    }

    /// Stores attributes as planned. Blocks for them were promised; the inode is stored by the caller.
    pub fn store_attributes(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        mut plan: Division,
    ) -> Result<(), VolumeError> {
        if let Some(room) = file.inode.attribute_room() {
            write_inode(&mut file.inode.bytes_mut()[room], &plan.inode);
        }
        let mut place = None;
        if let Some((block, bytes)) = self.attribute_block(handle.task, file)? {
            if sharers(&bytes) <= 1 && !plan.block.is_empty() {
                place = Some(block);
            } else {
                self.leave_attribute_block(handle, file)?;
            }
        }
        if plan.block.is_empty() {
            return Ok(());
        }
        let place = match place {
            Some(place) => place,
            None => {
                let goal = self.maps.goal(handle.task, file, 0)?;
                let place = self.maps.take_map_block(handle, file, goal.near)?;
                file.inode.set_attribute_block(place);
                place
            }
        };
        let mut bytes = vec![0; self.metadata.shape.block_bytes];
        write_block(&mut bytes, &mut plan.block);
        self.set_attribute_block(handle, place, bytes);
        Ok(())
    }

    fn set_attribute_block(&self, handle: &Handle<'_>, place: u64, mut bytes: Vec<u8>) {
        if let Some(seed) = self.metadata.shape.checksums.seed() {
            sum(&mut bytes, place, seed);
        }
        handle.set(place, Content::Metadata, &bytes);
    }

    /// A file has its block of attributes no more; the last file that shares it frees it.
    pub fn leave_attribute_block(&self, handle: &Handle<'_>, file: &mut File) -> Result<(), VolumeError> {
        let Some((place, _)) = self.attribute_block(handle.task, file)? else { return Ok(()) };
        // Files that share it may leave it at the same time.
        let _alone = self.shared_attributes.enter(handle.task);
        let Some((_, bytes)) = self.attribute_block(handle.task, file)? else { return Ok(()) };
        file.inode.set_attribute_block(0);
        if sharers(&bytes) <= 1 {
            return self.maps.free_map_block(handle, file, place);
        }
        let mut bytes = bytes.to_vec();
        let left = sharers(&bytes) - 1;
        set_sharers(&mut bytes, left);
        self.set_attribute_block(handle, place, bytes);
        file.inode.add_blocks(-1, self.metadata.shape.block_bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE_ROOM: usize = 96;

    /// Sets attributes of these names and lengths, one after the other. The names in the inode and in the block, or `None`
    /// if one did not fit.
    fn divided(division: &mut Division, set: &[(&str, usize)]) -> Option<[String; 2]> {
        for (name, length) in set {
            let stored = Stored { prefix: 1, name: name.as_bytes().to_vec(), value: vec![7; *length] };
            if !division.set(stored, INODE_ROOM, 1024) {
                return None;
            }
        }
        let names = |part: &[Stored]| part.iter().map(|stored| char::from(stored.name[0])).collect();
        Some([names(&division.inode), names(&division.block)])
    }

    #[test]
    fn an_attribute_that_is_set_leaves_the_others_where_they_are() {
        let division = &mut Division { inode: Vec::new(), block: Vec::new() };
        let mut expect = |set: &[(&str, usize)], inode: &str, block: &str| {
            assert_eq!(divided(division, set), Some([inode.to_string(), block.to_string()]), "{set:?}");
        };
        expect(&[("a", 60), ("b", 40), ("c", 700)], "a", "bc");
        // It outgrows the inode, which then has room for b; that one is not set.
        expect(&[("a", 80)], "", "bca");
        // As long as it keeps its value it keeps its place.
        expect(&[("b", 40)], "", "bca");
        expect(&[("b", 44)], "b", "ca");
        assert_eq!(divided(division, &[("d", 200)]), None, "neither has room");
    }
}
