//! The rules of names, as POSIX and Linux have them: what make, link, unlink and rename refuse, in which order, and what they do.
//!
//! A file system answers what the rules ask, as a [`Store`], behind the gates of the call. A rule changes nothing: it returns
//! the entries that the call is about, and the links that the directories gain or lose. The file system makes these changes in
//! its own order: that of its log, or of its journal.
//!
//! Linux: link(2), unlink(2), rmdir(2), rename(2); `MAX_LINKS` of ext4 for [`MOST_LINKS`].

use crate::fs::volume::{
    FileKind, IfExists, InodeNumber, LONGEST_NAME, LONGEST_TARGET, MOST_LINKS, Name, NewFile, Renaming, VolumeError,
    check_name, check_removed_name,
};

/// An entry of a directory other than `.` and `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub inode: InodeNumber,
    pub kind: FileKind,
}

/// The tree of directories.
pub trait Parents {
    /// The parent of a directory; of the root, the root.
    fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, VolumeError>;

    /// The number of inodes that the volume has at the most. A way to the root is not longer.
    fn most_inodes(&self) -> u64;

    /// True if `directory` is `other`, or lies below it.
    ///
    /// # Errors
    ///
    /// [`VolumeError::Damaged`], if a directory lies below itself.
    fn is_within(&mut self, directory: InodeNumber, other: InodeNumber) -> Result<bool, VolumeError> {
        let mut at = directory;
        for _ in 0..self.most_inodes() {
            if at == other {
                return Ok(true);
            }
            let parent = self.parent(at)?;
            if parent == at {
                return Ok(false);
            }
            at = parent;
        }
        let what = format!("the directory with inode {}", directory.0);
        Err(VolumeError::Damaged { what, why: "it is its own ancestor".to_string() })
    }
}

/// The names and inodes of a file system, as the rules read them.
pub trait Store: Parents {
    /// The entry of a name in a directory.
    fn entry(&mut self, name: Name) -> Result<Option<Entry>, VolumeError>;

    /// True if a directory has this name.
    fn is_taken(&mut self, name: Name) -> Result<bool, VolumeError> {
        Ok(self.entry(name)?.is_some())
    }

    /// The kind of a file, and its links.
    fn file(&mut self, inode: InodeNumber) -> Result<(FileKind, u32), VolumeError>;

    /// True if a directory has no entries.
    fn is_empty(&mut self, directory: InodeNumber) -> Result<bool, VolumeError>;

    /// Links of a directory with which it gets no further subdirectory; `None` if they are not counted that far.
    fn most_directory_links(&self) -> Option<u32> {
        Some(u32::MAX - 1)
    }

    /// The longest target of a symbolic link, in bytes.
    fn longest_target(&self) -> usize {
        LONGEST_TARGET
    }
}

/// What unlink removes a name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// An empty directory.
    Directory,
    /// Any other file.
    File,
}

/// What a rename does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// Both names are of one file.
    Nothing,
    /// The file gets the new name, which another file loses, if there is one.
    Move { file: Entry, replaced: Option<Entry>, links: MovedLinks },
    /// The file of the old name gets the new one, and the other way round.
    Exchange { file: Entry, other: Entry, links: MovedLinks },
}

/// Links that the directories of a rename gain, those of the `..` of subdirectories. If both are one directory, it gains both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedLinks {
    pub from: i32,
    pub to: i32,
}

/// Links that a name of this kind of file is to its directory: a subdirectory has `..`.
pub fn subdirectories(kind: FileKind) -> i32 {
    i32::from(kind == FileKind::Directory)
}

/// The inode of a name, `.` and `..` among them.
pub fn lookup(store: &mut impl Store, (directory, name): Name) -> Result<Option<InodeNumber>, VolumeError> {
    check_directory(store, directory)?;
    match name {
        b"." => Ok(Some(directory)),
        b".." => store.parent(directory).map(Some),
        name if name.len() > LONGEST_NAME => Err(VolumeError::NameTooLong),
        name => Ok(store.entry((directory, name))?.map(|entry| entry.inode)),
    }
}

/// Refuses a file that is no directory. Returns its links.
pub fn check_directory(store: &mut impl Store, directory: InodeNumber) -> Result<u32, VolumeError> {
    match store.file(directory)? {
        (FileKind::Directory, links) => Ok(links),
        _ => Err(VolumeError::NotDirectory),
    }
}

/// Refuses a directory that names cannot be added to: a removed one. Returns its links.
pub fn check_open(store: &mut impl Store, directory: InodeNumber) -> Result<u32, VolumeError> {
    match check_directory(store, directory)? {
        0 => Err(VolumeError::NotFound),
        links => Ok(links),
    }
}

/// Refuses a further subdirectory of a directory with so many links that they could not be counted.
fn check_links(store: &impl Store, links: u32, kind: FileKind) -> Result<(), VolumeError> {
    let is_full = store.most_directory_links().is_some_and(|most| links >= most);
    if subdirectories(kind) > 0 && is_full { Err(VolumeError::TooManyLinks) } else { Ok(()) }
}

/// Checks that a new file can have this name.
pub fn make(store: &mut impl Store, name: Name, new: &NewFile) -> Result<(), VolumeError> {
    check_name(name.1)?;
    let links = check_open(store, name.0)?;
    if store.is_taken(name)? {
        return Err(VolumeError::Exists);
    }
    check_links(store, links, new.kind)?;
    if new.target.len() > store.longest_target() {
        return Err(VolumeError::NameTooLong);
    }
    Ok(())
}

/// Checks that a file can have one more name, and returns its entry.
pub fn link(store: &mut impl Store, inode: InodeNumber, name: Name) -> Result<Entry, VolumeError> {
    check_name(name.1)?;
    let (kind, links) = store.file(inode)?;
    if kind == FileKind::Directory {
        return Err(VolumeError::NotPermitted("a directory cannot have a second name"));
    }
    if links >= MOST_LINKS {
        return Err(VolumeError::TooManyLinks);
    }
    if links == 0 {
        return Err(VolumeError::NotFound);
    }
    check_open(store, name.0)?;
    if store.is_taken(name)? {
        return Err(VolumeError::Exists);
    }
    Ok(Entry { inode, kind })
}

/// Refuses a name that no file can be removed by.
pub fn check_removal(name: &[u8], what: Removal) -> Result<(), VolumeError> {
    match what {
        Removal::Directory => check_removed_name(name),
        Removal::File => check_name(name),
    }
}

/// The entry that is removed.
pub fn unlink(store: &mut impl Store, name: Name, what: Removal) -> Result<Entry, VolumeError> {
    check_removal(name.1, what)?;
    check_directory(store, name.0)?;
    let entry = store.entry(name)?.ok_or(VolumeError::NotFound)?;
    match (what, entry.kind) {
        (Removal::Directory, FileKind::Directory) if !store.is_empty(entry.inode)? => Err(VolumeError::NotEmpty),
        (Removal::Directory, FileKind::Directory) => Ok(entry),
        (Removal::Directory, _) => Err(VolumeError::NotDirectory),
        (Removal::File, FileKind::Directory) => Err(VolumeError::IsDirectory),
        (Removal::File, _) => Ok(entry),
    }
}

/// Refuses options of a rename that contradict each other.
pub fn check_renaming(how: &Renaming) -> Result<(), VolumeError> {
    match (how.whiteout, how.if_exists) {
        (Some(_), IfExists::Exchange) => Err(VolumeError::Invalid("an exchange leaves no name for a whiteout")),
        _ => Ok(()),
    }
}

/// Decides what a rename does.
pub fn rename(store: &mut impl Store, from: Name, to: Name, how: &Renaming) -> Result<Rename, VolumeError> {
    check_renaming(how)?;
    check_name(from.1)?;
    check_name(to.1)?;
    check_directory(store, from.0)?;
    let to_links = check_open(store, to.0)?;
    let file = store.entry(from)?.ok_or(VolumeError::NotFound)?;
    let there = store.entry(to)?;
    if lies_above(store, file, to.0)? {
        return Err(INTO_ITSELF);
    }
    let is_across = from.0 != to.0;
    match (there, how.if_exists) {
        (None, IfExists::Exchange) => Err(VolumeError::NotFound),
        (Some(_), IfExists::Refuse) => Err(VolumeError::Exists),
        (Some(other), _) if other.inode == file.inode => Ok(Rename::Nothing),
        (Some(other), IfExists::Exchange) if lies_above(store, other, from.0)? => Err(INTO_ITSELF),
        (Some(other), IfExists::Exchange) => {
            let more = if is_across { subdirectories(other.kind) - subdirectories(file.kind) } else { 0 };
            Ok(Rename::Exchange { file, other, links: MovedLinks { from: more, to: -more } })
        }
        (replaced, _) => {
            if let Some(other) = replaced {
                check_replaced(store, file, other)?;
            }
            if is_across {
                check_links(store, to_links, file.kind)?;
            }
            let moved = if is_across { subdirectories(file.kind) } else { 0 };
            let lost = replaced.map_or(0, |other| subdirectories(other.kind));
            Ok(Rename::Move { file, replaced, links: MovedLinks { from: -moved, to: moved - lost } })
        }
    }
}

const INTO_ITSELF: VolumeError = VolumeError::Invalid("a directory cannot be moved into itself");

/// True if the entry is a directory that is `directory`, or above it.
fn lies_above(store: &mut impl Store, entry: Entry, directory: InodeNumber) -> Result<bool, VolumeError> {
    Ok(entry.kind == FileKind::Directory && store.is_within(directory, entry.inode)?)
}

/// Refuses to replace a directory by another file, a file by a directory, and a directory that has entries.
fn check_replaced(store: &mut impl Store, file: Entry, other: Entry) -> Result<(), VolumeError> {
    match (file.kind == FileKind::Directory, other.kind == FileKind::Directory) {
        (true, false) => Err(VolumeError::NotDirectory),
        (false, true) => Err(VolumeError::IsDirectory),
        (true, true) if !store.is_empty(other.inode)? => Err(VolumeError::NotEmpty),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Entries = BTreeMap<&'static [u8], Entry>;

    /// Directories by inode: parent, links, and entries. All other inodes are regular files with one link.
    struct Model(BTreeMap<u64, (u64, u32, Entries)>);

    impl Parents for Model {
        fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, VolumeError> {
            self.0.get(&directory.0).map(|found| InodeNumber(found.0)).ok_or(VolumeError::NotDirectory)
        }

        fn most_inodes(&self) -> u64 {
            20
        }
    }

    impl Store for Model {
        fn entry(&mut self, (directory, name): Name) -> Result<Option<Entry>, VolumeError> {
            let found = self.0.get(&directory.0).ok_or(VolumeError::NotDirectory)?;
            Ok(found.2.get(name).copied())
        }

        fn file(&mut self, inode: InodeNumber) -> Result<(FileKind, u32), VolumeError> {
            Ok(self.0.get(&inode.0).map_or((FileKind::Regular, 1), |found| (FileKind::Directory, found.1)))
        }

        fn is_empty(&mut self, directory: InodeNumber) -> Result<bool, VolumeError> {
            Ok(self.0[&directory.0].2.is_empty())
        }
    }

    const ROOT: InodeNumber = InodeNumber(1);

    fn entry(inode: u64, kind: FileKind) -> Entry {
        Entry { inode: InodeNumber(inode), kind }
    }

    /// `/a/b`, `/a/file`, `/empty`, `/file`.
    fn model() -> Model {
        let directory = FileKind::Directory;
        let names = |names: &[(&'static [u8], Entry)]| -> Entries { names.iter().copied().collect() };
        let root = names(&[
            (b"a", entry(2, directory)),
            (b"empty", entry(4, directory)),
            (b"file", entry(10, FileKind::Regular)),
        ]);
        let a = names(&[(b"b", entry(3, directory)), (b"file", entry(11, FileKind::Regular))]);
        Model([(1, (1, 4, root)), (2, (1, 3, a)), (3, (2, 2, names(&[]))), (4, (1, 2, names(&[])))].into())
    }

    fn how(if_exists: IfExists) -> Renaming {
        Renaming { if_exists, whiteout: None }
    }

    fn renamed(from: Name, to: Name, if_exists: IfExists) -> Result<Rename, String> {
        rename(&mut model(), from, to, &how(if_exists)).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn the_links_of_directories_follow_the_subdirectories_that_move() {
        let (a, b) = (InodeNumber(2), InodeNumber(3));
        let links = |from: Name, to: Name, if_exists| match renamed(from, to, if_exists).unwrap() {
            Rename::Move { links, .. } | Rename::Exchange { links, .. } => (links.from, links.to),
            Rename::Nothing => panic!("two files"),
        };
        let replace = IfExists::Replace;
        assert_eq!(links((a, b"b"), (ROOT, b"new"), replace), (-1, 1));
        assert_eq!(links((a, b"b"), (ROOT, b"empty"), replace), (-1, 0), "one comes, and one goes");
        assert_eq!(links((ROOT, b"a"), (ROOT, b"empty"), replace), (0, -1));
        assert_eq!(links((a, b"file"), (b, b"file"), replace), (0, 0));
        assert_eq!(links((ROOT, b"empty"), (a, b"file"), IfExists::Exchange), (-1, 1));
        assert_eq!(links((ROOT, b"empty"), (ROOT, b"file"), IfExists::Exchange), (0, 0));
    }

    #[test]
    fn a_rename_is_refused_with_the_first_of_its_faults() {
        let (a, b) = (InodeNumber(2), InodeNumber(3));
        let cases: [(Name, Name, IfExists, &str); 8] = [
            ((ROOT, b"a"), (b, b"new"), IfExists::Replace, "into itself"),
            ((ROOT, b"file"), (ROOT, b"new"), IfExists::Exchange, "NotFound"),
            ((ROOT, b"file"), (a, b"file"), IfExists::Refuse, "Exists"),
            ((a, b"b"), (ROOT, b"a"), IfExists::Exchange, "into itself"),
            ((a, b"b"), (ROOT, b"a"), IfExists::Replace, "NotEmpty"),
            ((a, b"b"), (ROOT, b"file"), IfExists::Replace, "NotDirectory"),
            ((a, b"file"), (ROOT, b"empty"), IfExists::Replace, "IsDirectory"),
            ((ROOT, b"absent"), (InodeNumber(10), b"x"), IfExists::Replace, "NotDirectory"),
        ];
        for (from, to, if_exists, wanted) in cases {
            let error = renamed(from, to, if_exists).unwrap_err();
            assert!(error.contains(wanted), "{from:?} to {to:?}: {error}, not {wanted}");
        }
        assert_eq!(renamed((ROOT, b"file"), (ROOT, b"file"), IfExists::Replace), Ok(Rename::Nothing));
    }

    #[test]
    fn a_directory_that_is_its_own_ancestor_is_damage() {
        let mut model = model();
        model.0.get_mut(&2).unwrap().0 = 3;
        let found = model.is_within(InodeNumber(3), InodeNumber(4));
        assert!(matches!(found, Err(VolumeError::Damaged { .. })), "{found:?}");
    }
}
