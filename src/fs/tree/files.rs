//! The files of a tree, and the operations on them by inode.

use super::bytes::{BLOCK, Bytes};
use super::entries::Names;
use crate::fs::volume::{
    Allocation, Attributes, Change, FileKind, Hold, InodeNumber, LONGEST_FILE, LONGEST_LIST, LONGEST_NAME,
    LONGEST_VALUE, NewFile, Space, Times, Timestamp, VolumeError,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum size of all extended attributes of a file, in bytes.
const MOST_ATTRIBUTE_BYTES: usize = 2 << 20;

/// The content of a file, by its kind.
#[derive(Debug)]
pub enum Content {
    Bytes(Bytes),
    Names(Names),
    Target(Vec<u8>),
    Nothing,
}

/// A file.
#[derive(Debug)]
pub struct File {
    pub kind: FileKind,
    permissions: u16,
    pub links: u32,
    user: u32,
    group: u32,
    device: u64,
    pub size: u64,
    pub times: Times,
    /// The parent directory of a directory.
    pub parent: u64,
    pub content: Content,
    extended: BTreeMap<Vec<u8>, Vec<u8>>,
    /// References to the file. Atomic, since readers of the shared lock change it.
    held: AtomicU64,
}

/// All files of a tree.
#[derive(Debug)]
pub struct Files {
    all: FxHashMap<u64, File>,
    /// The next inode number. Numbers are never reused.
    next: u64,
    /// Total blocks.
    blocks: u64,
    /// Used blocks.
    used: u64,
}

/// Blocks of the attributes of a file, in addition to the one block of its inode.
fn attribute_blocks(extended: &BTreeMap<Vec<u8>, Vec<u8>>) -> u64 {
    extended.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>().div_ceil(BLOCK as usize) as u64
}

impl File {
    pub fn names(&self) -> Result<&Names, VolumeError> {
        match &self.content {
            Content::Names(names) => Ok(names),
            _ => Err(VolumeError::NotDirectory),
        }
    }

    pub fn bytes(&self) -> Result<&Bytes, VolumeError> {
        match &self.content {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Names(_) => Err(VolumeError::IsDirectory),
            _ => Err(VolumeError::Invalid("only a regular file has data")),
        }
    }

    fn bytes_mut(&mut self) -> Result<&mut Bytes, VolumeError> {
        self.bytes()?;
        match &mut self.content {
            Content::Bytes(bytes) => Ok(bytes),
            _ => unreachable!("it has bytes"),
        }
    }

    /// The value of an extended attribute.
    pub fn extended(&self, name: &[u8]) -> Option<&Vec<u8>> {
        self.extended.get(name)
    }

    pub fn extended_names(&self) -> Vec<Vec<u8>> {
        self.extended.keys().cloned().collect()
    }

    pub fn attributes(&self, number: u64) -> Attributes {
        let blocks = match &self.content {
            Content::Bytes(bytes) => bytes.count(),
            _ => 1,
        };
        Attributes {
            inode: InodeNumber(number),
            generation: 0,
            kind: self.kind,
            permissions: self.permissions,
            links: self.links,
            user: self.user,
            group: self.group,
            device: self.device,
            size: self.size,
            blocks: blocks + attribute_blocks(&self.extended),
            times: self.times,
        }
    }

    /// Takes a reference if `hold` says so, and returns the attributes.
    pub fn held(&self, number: u64, hold: Hold) -> Attributes {
        if hold == Hold::Yes && number != InodeNumber::ROOT.0 {
            self.held.fetch_add(1, Ordering::Relaxed);
        }
        self.attributes(number)
    }

    /// Drops `times` references. True if the file has no name and no references.
    pub fn drop_references(&self, times: u64) -> bool {
        let before =
            self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(held.saturating_sub(times)));
        self.links == 0 && before.is_ok_and(|before| before <= times)
    }
}

impl Files {
    /// An empty root directory on a volume of `blocks` blocks.
    pub fn new(blocks: u64, now: Timestamp) -> Files {
        let mut files = Files { all: FxHashMap::default(), next: InodeNumber::ROOT.0, blocks, used: 0 };
        let (kind, permissions, target, attributes) = (FileKind::Directory, 0o755, &b""[..], &[][..]);
        let root = NewFile { kind, permissions, user: 0, group: 0, device: 0, target, attributes };
        files.add(InodeNumber::ROOT.0, &root, now).expect("a tree has space for its root");
        files
    }

    /// The number of files.
    pub fn count(&self) -> u64 {
        self.all.len() as u64
    }

    /// An existing file.
    pub fn get(&self, number: u64) -> Result<&File, VolumeError> {
        self.all.get(&number).ok_or(VolumeError::NotFound)
    }

    pub fn get_mut(&mut self, number: u64) -> Result<&mut File, VolumeError> {
        self.all.get_mut(&number).ok_or(VolumeError::NotFound)
    }

    /// The names in an existing directory.
    pub fn names_mut(&mut self, directory: u64) -> &mut Names {
        match self.all.get_mut(&directory).map(|file| &mut file.content) {
            Some(Content::Names(names)) => names,
            _ => unreachable!("{directory} was checked to be a directory"),
        }
    }

    /// Adds a file in directory `parent`, without a name yet.
    pub fn add(&mut self, parent: u64, new: &NewFile, now: Timestamp) -> Result<u64, VolumeError> {
        let extended: BTreeMap<Vec<u8>, Vec<u8>> =
            new.attributes.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        check_extended(&extended)?;
        self.take(1 + attribute_blocks(&extended))?;
        let number = self.next;
        self.next += 1;
        let (content, links) = match new.kind {
            FileKind::Regular => (Content::Bytes(Bytes::default()), 1),
            FileKind::Directory => (Content::Names(Names::default()), 2),
            FileKind::Symlink => (Content::Target(new.target.to_vec()), 1),
            _ => (Content::Nothing, 1),
        };
        let size = if new.kind == FileKind::Directory { BLOCK } else { new.target.len() as u64 };
        let file = File {
            kind: new.kind,
            permissions: new.permissions & 0o7777,
            links,
            user: new.user,
            group: new.group,
            device: new.device,
            size,
            times: Times::made(now),
            parent,
            content,
            extended,
            held: AtomicU64::new(0),
        };
        self.all.insert(number, file);
        Ok(number)
    }

    /// Frees a file without names and references.
    pub fn free_if_gone(&mut self, number: u64) {
        if let Some(file) = self.all.get(&number)
            && file.links == 0
            && file.held.load(Ordering::Relaxed) == 0
        {
            let bytes = file.bytes().map_or(0, Bytes::count);
            self.used -= 1 + bytes + attribute_blocks(&file.extended);
            self.all.remove(&number);
        }
    }

    fn take(&mut self, blocks: u64) -> Result<(), VolumeError> {
        let free = self.blocks - self.used;
        if blocks > free {
            return Err(VolumeError::NoSpace { free, blocks: self.blocks });
        }
        self.used += blocks;
        Ok(())
    }

    /// Updates the count of used blocks after a change of a file that had `before` blocks.
    fn recount(&mut self, number: u64, before: u64) -> Result<(), VolumeError> {
        let now = self.get(number)?.bytes()?.count();
        self.used = self.used + now - before;
        Ok(())
    }

    pub fn space(&self) -> Space {
        let free = self.blocks - self.used;
        Space {
            blocks: self.blocks,
            free_blocks: free,
            available_blocks: free,
            inodes: self.all.len() as u64 + free,
            free_inodes: free,
        }
    }

    /// Writes all of `bytes`, and returns the number of blocks written.
    pub fn write(&mut self, number: u64, offset: u64, bytes: &[u8], now: Timestamp) -> Result<u64, VolumeError> {
        let before = self.get(number)?.bytes()?.count();
        if bytes.is_empty() {
            return Ok(0);
        }
        let end = end_of(offset, bytes.len() as u64)?;
        let range = offset / BLOCK..end.div_ceil(BLOCK);
        let missing = self.get(number)?.bytes()?.missing(range.clone());
        self.check_room(missing)?;
        let file = self.get_mut(number)?;
        file.bytes_mut()?.write(offset, bytes);
        file.size = file.size.max(end);
        file.times.written(now);
        self.recount(number, before)?;
        Ok(range.end - range.start)
    }

    fn check_room(&self, blocks: u64) -> Result<(), VolumeError> {
        let free = self.blocks - self.used;
        if blocks <= free { Ok(()) } else { Err(VolumeError::NoSpace { free, blocks: self.blocks }) }
    }

    pub fn allocate(
        &mut self,
        number: u64,
        (offset, length): (u64, u64),
        how: Allocation,
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        let before = self.get(number)?.bytes()?.count();
        if length == 0 {
            return Err(VolumeError::Invalid("a range has at least one byte"));
        }
        let reserves = match how {
            Allocation::Reserve { keep_size } | Allocation::Zero { keep_size } => Some(keep_size),
            Allocation::Punch => None,
        };
        if reserves.is_some() {
            let end = end_of(offset, length)?;
            self.check_room(self.get(number)?.bytes()?.missing(offset / BLOCK..end.div_ceil(BLOCK)))?;
        }
        let end = offset.saturating_add(length).min(LONGEST_FILE);
        let file = self.get_mut(number)?;
        if !matches!(how, Allocation::Reserve { .. }) && offset < end {
            file.bytes_mut()?.punch(offset, end);
        }
        if let Some(keep_size) = reserves {
            file.bytes_mut()?.reserve(offset / BLOCK..end.div_ceil(BLOCK));
            file.size = if keep_size { file.size } else { file.size.max(end) };
        }
        file.times.written(now);
        self.recount(number, before)
    }

    pub fn change(&mut self, number: u64, change: &Change, now: Timestamp) -> Result<Attributes, VolumeError> {
        self.change_extended(number, change)?;
        if let Some(size) = change.size {
            let before = self.get(number)?.bytes()?.count();
            if size > LONGEST_FILE {
                return Err(VolumeError::TooLarge);
            }
            let file = self.get_mut(number)?;
            file.bytes_mut()?.cut(size);
            file.size = size;
            file.times.written(now);
            self.recount(number, before)?;
        }
        let file = self.get_mut(number)?;
        file.permissions = change.permissions.map_or(file.permissions, |permissions| permissions & 0o7777);
        file.user = change.user.unwrap_or(file.user);
        file.group = change.group.unwrap_or(file.group);
        file.times.accessed = change.accessed.unwrap_or(file.times.accessed);
        file.times.modified = change.modified.unwrap_or(file.times.modified);
        file.times.changed(change.changed.unwrap_or(now));
        Ok(file.attributes(number))
    }

    fn change_extended(&mut self, number: u64, change: &Change) -> Result<(), VolumeError> {
        if change.extended.is_empty() {
            return Ok(());
        }
        let file = self.get(number)?;
        let before = attribute_blocks(&file.extended);
        let mut extended = file.extended.clone();
        for one in &change.extended {
            match &one.value {
                Some(value) => drop(extended.insert(one.name.to_vec(), value.to_vec())),
                None => drop(extended.remove(one.name)),
            }
        }
        check_extended(&extended)?;
        let now = attribute_blocks(&extended);
        self.check_room(now.saturating_sub(before))?;
        self.used = self.used + now - before;
        self.get_mut(number)?.extended = extended;
        Ok(())
    }
}

/// The end of a range of a file. Fails if it exceeds the maximum file size.
fn end_of(offset: u64, length: u64) -> Result<u64, VolumeError> {
    offset.checked_add(length).filter(|end| *end <= LONGEST_FILE).ok_or(VolumeError::TooLarge)
}

fn check_extended(extended: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), VolumeError> {
    if extended.keys().any(|name| name.is_empty() || name.len() > LONGEST_NAME) {
        return Err(VolumeError::Invalid("an attribute's name has 1 to 255 bytes"));
    }
    if extended.values().any(|value| value.len() > LONGEST_VALUE) {
        return Err(VolumeError::LongValue);
    }
    let list: usize = extended.keys().map(|name| name.len() + 1).sum();
    let bytes: usize = extended.iter().map(|(name, value)| name.len() + value.len()).sum();
    match list > LONGEST_LIST || bytes > MOST_ATTRIBUTE_BYTES {
        true => Err(VolumeError::ManyAttributes { most: MOST_ATTRIBUTE_BYTES as u64 }),
        false => Ok(()),
    }
}
