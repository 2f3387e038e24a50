//! Extended attributes of a file.

use crate::fs::ext::Ext;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::access_list;
use crate::fs::ext::format::attributes::{LISTS, Stored, is_sound, read_block, read_inode};
use crate::fs::volume::VolumeError;
use crate::task::Task;

impl Ext {
    /// The block of a file's attributes.
    pub fn attribute_block(&self, task: &Task<'_>, file: &File) -> Result<Option<(u64, Bytes)>, VolumeError> {
        let place = file.inode.attribute_block();
        if place == 0 {
            return Ok(None);
        }
        let what = || format!("block {place}, the attributes of inode {}", file.number);
        let seed = self.shape.checksums.seed();
        let check = |bytes: &[u8]| match seed {
            Some(seed) if !is_sound(bytes, place, seed) => Err("its checksum is wrong".to_string()),
            _ => read_block(bytes).map(drop),
        };
        Ok(Some((place, self.block(task, place, &what, &check)?)))
    }

    /// All attributes of a file, as they are stored: those in its inode, then those in its block.
    pub fn stored_attributes(&self, task: &Task<'_>, file: &File) -> Result<Vec<Stored>, VolumeError> {
        let what = || format!("the attributes of inode {}", file.number);
        let mut all = match file.inode.attribute_room() {
            Some(room) => read_inode(&file.inode.bytes()[room]).map_err(|why| damaged(what(), why))?,
            None => Vec::new(),
        };
        if let Some((_, block)) = self.attribute_block(task, file)? {
            all.extend(read_block(&block).map_err(|why| damaged(what(), why))?);
        }
        Ok(all)
    }

    /// The value of an attribute, as programs see it; `None` if there is none of this name.
    pub fn attribute_of(&self, task: &Task<'_>, file: &File, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        let Some((prefix, rest)) = Stored::split(name) else { return Ok(None) };
        let all = self.stored_attributes(task, file)?;
        let Some(found) = all.into_iter().find(|stored| stored.prefix == prefix && stored.name == rest) else {
            return Ok(None);
        };
        if !LISTS.contains(&prefix) {
            return Ok(Some(found.value));
        }
        let what = || format!("the access control list of inode {}", file.number);
        access_list::seen(&found.value).map(Some).ok_or_else(|| damaged(what(), "its entries make no list"))
    }

    /// The names of all attributes of a file.
    pub fn attribute_names(&self, task: &Task<'_>, file: &File) -> Result<Vec<Vec<u8>>, VolumeError> {
        Ok(self.stored_attributes(task, file)?.iter().filter_map(Stored::full_name).collect())
    }
}
