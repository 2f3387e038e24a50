//! Model of the states that a volume may have after a power cut: the history since the last sync of each file.
//!
//! - Names, links, targets and attributes are those of one instant, no older than the last change to any file synced
//!   since.
//! - A file's size is one that it had since its last sync, and each block has a content that it had in this place
//!   since.
//! - A block is allocated wherever it was throughout that time, written or reserved, and nowhere where it never was.
//! - A file renamed over another has at least its content at the rename, if it has the new name.
//! - There are no other files, and no damage.

use super::calls::{Call, target, value, written};
use super::model::split;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{FileKind, InodeNumber, Sfs, SfsError};
use flashpath::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

const BLOCK: u64 = 4096;

type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// A version of a block of a file, from a step on.
#[derive(Clone)]
struct Version {
    step: u64,
    bytes: Rc<[u8]>,
    /// Bytes of it before the end of the file.
    valid: u64,
}

/// A file, directory or link, under any number of names.
#[derive(Clone)]
struct Node {
    kind: FileKind,
    inode: Option<InodeNumber>,
    target: Vec<u8>,
    sizes: Vec<(u64, u64)>,
    blocks: BTreeMap<u64, Vec<Version>>,
    /// Steps from which a block was allocated or not; before the first step it was not.
    stored: BTreeMap<u64, Vec<(u64, bool)>>,
    /// The step of the last sync of its data.
    durable: u64,
    /// The step of the last change of it, or of a name of it or in it.
    changed: u64,
}

/// The names at one instant.
#[derive(Clone, Default, PartialEq, Eq)]
struct Names {
    paths: BTreeMap<String, usize>,
    attributes: BTreeMap<usize, Attributes>,
}

/// A file as found on a volume.
pub struct Found {
    inode: InodeNumber,
    kind: FileKind,
    links: u32,
    /// The data of a file, or the target of a link.
    bytes: Vec<u8>,
    /// Indexes of a file's allocated blocks.
    stored: Vec<u64>,
    attributes: Attributes,
}

impl Found {
    /// Its extended attributes.
    pub fn attributes(&self) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.attributes
    }
}

/// The content of a volume.
pub struct Look {
    pub all: BTreeMap<String, Found>,
    /// Used blocks not accounted for by the files found.
    pub overhead: u64,
    /// Used inodes not accounted for by the files found.
    pub lost_inodes: u64,
}

/// Reads the whole content of a volume.
pub fn look(task: &Task<'_>, sfs: &mut Sfs) -> Result<Look, String> {
    let mut all = BTreeMap::new();
    let mut blocks = sfs.attributes(task, InodeNumber::ROOT).map_err(|error| format!("the root: {error}"))?.blocks;
    let mut inodes = BTreeMap::new();
    look_into(task, sfs, InodeNumber::ROOT, "", &mut all)?;
    for (path, found) in &all {
        let of_inode = sfs.attributes(task, found.inode).map_err(|error| format!("{path}: {error}"))?.blocks;
        if inodes.insert(found.inode, ()).is_none() {
            blocks += of_inode;
        }
    }
    let space = sfs.space();
    let used = space.blocks - space.free_blocks;
    let overhead = used.checked_sub(blocks).ok_or(format!("{used} blocks are used, and files have {blocks}"))?;
    let used = space.inodes - space.free_inodes;
    let found = inodes.len() as u64 + 1;
    let lost_inodes = used.checked_sub(found).ok_or(format!("{used} inodes are used, and {found} were found"))?;
    Ok(Look { all, overhead, lost_inodes })
}

fn look_into(
    task: &Task<'_>,
    sfs: &mut Sfs,
    directory: InodeNumber,
    path: &str,
    all: &mut BTreeMap<String, Found>,
) -> Result<(), String> {
    let mut entries = Vec::new();
    let listed = sfs.list(task, directory, 0, &mut |entry| {
        entries.push((entry.inode, entry.kind, entry.name.to_vec()));
        true
    });
    listed.map_err(|error| format!("directory '{path}': {error}"))?;
    let mut directories = 0;
    for (inode, kind, name) in entries.into_iter().filter(|(.., name)| name != b"." && name != b"..") {
        let path = format!("{path}/{}", String::from_utf8_lossy(&name));
        let found = look_at(task, sfs, directory, &name, inode, kind).map_err(|error| format!("{path}: {error}"))?;
        if all.insert(path.clone(), found).is_some() {
            return Err(format!("{path} exists twice"));
        }
        if kind == FileKind::Directory {
            directories += 1;
            look_into(task, sfs, inode, &path, all)?;
        }
    }
    let links = sfs.attributes(task, directory).map_err(|error| format!("directory '{path}': {error}"))?.links;
    match links == 2 + directories {
        true => Ok(()),
        false => Err(format!("directory '{path}' has {links} links, and {directories} directories in it")),
    }
}

fn look_at(
    task: &Task<'_>,
    sfs: &mut Sfs,
    directory: InodeNumber,
    name: &[u8],
    inode: InodeNumber,
    kind: FileKind,
) -> Result<Found, String> {
    let words = |error: SfsError| error.to_string();
    let seen = sfs.attributes(task, inode).map_err(words)?;
    if seen.kind != kind || sfs.lookup(task, directory, name).map_err(words)? != inode {
        return Err(format!("its entry says {kind:?} and inode {}, its inode {:?}", inode.0, seen.kind));
    }
    let mut attributes = Attributes::new();
    for name in sfs.extended_attributes(task, inode).map_err(words)? {
        let value = sfs.extended_attribute(task, inode, &name).map_err(words)?;
        attributes.insert(name, value);
    }
    let bytes = match kind {
        FileKind::Regular => {
            let mut bytes = vec![0xee; seen.size as usize];
            match sfs.read(task, inode, 0, &mut bytes).map_err(words)? {
                read if read == bytes.len() => bytes,
                read => return Err(format!("{read} of {} bytes were read", bytes.len())),
            }
        }
        FileKind::Symlink => sfs.target(task, inode).map_err(words)?,
        FileKind::Directory if sfs.lookup(task, inode, b"..").map_err(words)? != directory => {
            return Err("its '..' is another directory".to_string());
        }
        _ => Vec::new(),
    };
    let mut stored = Vec::new();
    while kind == FileKind::Regular
        && let Some(place) = sfs.next_block(task, inode, stored.last().map_or(0, |last| last + 1)).map_err(words)?
    {
        stored.push(place);
    }
    Ok(Found { inode, kind, links: seen.links, bytes, stored, attributes })
}

/// The states of a volume since its last sync.
#[derive(Clone)]
pub struct History {
    step: u64,
    nodes: Vec<Node>,
    names: Rc<Names>,
    /// The names since they were last durable, each with its first step.
    instants: Vec<(u64, Rc<Names>)>,
    /// Files renamed over others: the new name, the file, and the step.
    replaced: Vec<(u64, usize)>,
    /// Used blocks without a file at the beginning.
    overhead: u64,
}

impl Node {
    fn new(kind: FileKind, inode: Option<InodeNumber>, step: u64) -> Node {
        let sizes = vec![(step, 0)];
        let (blocks, stored) = (BTreeMap::new(), BTreeMap::new());
        Node { kind, inode, target: Vec::new(), sizes, blocks, stored, durable: step, changed: step }
    }

    /// Blocks of this range are allocated from now on, or not.
    fn store(&mut self, step: u64, places: Range<u64>, is_stored: bool) {
        let places: Vec<u64> = match is_stored {
            true => places.collect(),
            false => self.stored.range(places.start..places.end.max(places.start)).map(|(place, _)| *place).collect(),
        };
        for place in places {
            self.stored.entry(place).or_default().push((step, is_stored));
        }
    }

    fn size(&self) -> u64 {
        self.sizes.last().expect("a file has a size").1
    }

    /// Overwrites bytes of a block.
    fn put(&mut self, step: u64, block: u64, from: usize, bytes: &[u8], valid: u64) {
        let versions = self.blocks.entry(block).or_default();
        let mut new = match versions.last() {
            Some(last) if last.valid > 0 => last.bytes.to_vec(),
            _ => vec![0; BLOCK as usize],
        };
        new[from..from + bytes.len()].copy_from_slice(bytes);
        new[valid as usize..].fill(0);
        versions.push(Version { step, bytes: new.into(), valid });
    }

    /// Truncates or extends it; blocks reserved beyond the end are freed only by a truncation.
    fn truncate(&mut self, step: u64, size: u64) {
        if size <= self.size() {
            self.store(step, size.div_ceil(BLOCK)..u64::MAX, false);
        }
        self.resize(step, size);
    }

    fn resize(&mut self, step: u64, size: u64) {
        let before = self.size();
        self.sizes.push((step, size));
        let valid = |block: u64| size.saturating_sub(block * BLOCK).min(BLOCK);
        if size < before {
            for block in size / BLOCK..before.div_ceil(BLOCK) {
                self.put(step, block, 0, &[], valid(block));
            }
        } else if size > before {
            for block in before / BLOCK..size.div_ceil(BLOCK) {
                self.put(step, block, 0, &[], valid(block));
            }
        }
    }

    /// Writes bytes, extending the file.
    fn write(&mut self, step: u64, offset: u64, bytes: &[u8]) {
        let size = self.size();
        let mut at = offset;
        while at < offset + bytes.len() as u64 {
            let (block, from) = (at / BLOCK, (at % BLOCK) as usize);
            let end = (offset + bytes.len() as u64).min((block + 1) * BLOCK);
            let part = &bytes[(at - offset) as usize..(end - offset) as usize];
            self.put(step, block, from, part, (size - block * BLOCK).min(BLOCK));
            at = end;
        }
    }

    /// Zeroes a range of bytes.
    fn clear(&mut self, step: u64, offset: u64, length: u64) {
        let end = self.size().min(offset + length);
        if offset < end {
            self.write(step, offset, &vec![0; (end - offset) as usize]);
        }
        self.store(step, offset.div_ceil(BLOCK)..(offset + length) / BLOCK, false);
    }

    /// Reserves the blocks of a range.
    fn allocate(&mut self, step: u64, offset: u64, length: u64, keeps_size: bool) {
        self.store(step, offset / BLOCK..(offset + length).div_ceil(BLOCK), true);
        if !keeps_size {
            self.resize(step, self.size().max(offset + length));
        }
    }

    /// Checks the allocated blocks against those since step `floor`.
    fn check_stored(&self, floor: u64, found: &[u64]) -> Result<(), String> {
        let places: BTreeSet<u64> = self.stored.keys().chain(found).copied().collect();
        for place in places {
            let versions = self.stored.get(&place).map_or(&[][..], |versions| versions);
            let known = versions.iter().rposition(|(step, _)| *step <= floor);
            let is_stored = found.binary_search(&place).is_ok();
            let was_none = known.is_none() && !is_stored;
            if !was_none && !versions[known.unwrap_or(0)..].iter().any(|(_, was)| *was == is_stored) {
                let what = if is_stored { "a block is allocated" } else { "no block is allocated" };
                return Err(format!(
                    "{what} at place {place}, and it was otherwise since step {floor}: {:?} (by step)",
                    &versions[known.unwrap_or(0)..]
                ));
            }
        }
        Ok(())
    }

    /// Checks the data against the versions since step `floor`.
    fn check(&self, floor: u64, bytes: &[u8]) -> Result<(), String> {
        let size = bytes.len() as u64;
        let known = self.sizes.iter().rposition(|(step, _)| *step <= floor).unwrap_or(0);
        if !self.sizes[known..].iter().any(|(_, known)| *known == size) {
            return Err(format!(
                "it has {size} bytes, and had {:?} (by step) since step {floor}",
                &self.sizes[known..]
            ));
        }
        for (block, bytes) in (0..).zip(bytes.chunks(BLOCK as usize)) {
            let versions = self.blocks.get(&block).map_or(&[][..], |versions| versions);
            let known = versions.iter().rposition(|version| version.step <= floor).unwrap_or(0);
            let is_one = versions[known..]
                .iter()
                .any(|version| version.valid >= bytes.len() as u64 && version.bytes[..bytes.len()] == *bytes);
            if !is_one {
                let steps: Vec<u64> = versions[known..].iter().map(|version| version.step).collect();
                return Err(format!(
                    "block {block} begins {:02x?}, not as in any of steps {steps:?} since step {floor}",
                    &bytes[..bytes.len().min(8)]
                ));
            }
        }
        Ok(())
    }
}

impl History {
    /// The history of a volume with this durable content.
    pub fn of(look: &Look, step: u64) -> History {
        let mut history = History {
            step,
            nodes: vec![Node::new(FileKind::Directory, Some(InodeNumber::ROOT), step)],
            names: Rc::default(),
            instants: Vec::new(),
            replaced: Vec::new(),
            overhead: look.overhead,
        };
        let mut names = Names::default();
        let mut known: BTreeMap<InodeNumber, usize> = BTreeMap::new();
        names.paths.insert(String::new(), 0);
        for (path, found) in &look.all {
            let id = *known.entry(found.inode).or_insert_with(|| {
                let mut node = Node::new(found.kind, Some(found.inode), step);
                match found.kind {
                    FileKind::Symlink => node.target = found.bytes.clone(),
                    _ => {
                        node.resize(step, found.bytes.len() as u64);
                        node.write(step, 0, &found.bytes);
                        found.stored.iter().for_each(|place| node.store(step, *place..place + 1, true));
                    }
                }
                history.nodes.push(node);
                history.nodes.len() - 1
            });
            names.paths.insert(path.clone(), id);
            if !found.attributes.is_empty() {
                names.attributes.insert(id, found.attributes.clone());
            }
        }
        history.names = Rc::new(names);
        history.instants = vec![(step, history.names.clone())];
        history
    }

    /// The number of the next call.
    pub fn step(&self) -> u64 {
        self.step + 1
    }

    /// Used blocks without a file at the beginning.
    pub fn overhead(&self) -> u64 {
        self.overhead
    }

    /// Paths of this kind.
    pub fn paths(&self, kind: FileKind) -> Vec<&String> {
        self.names.paths.iter().filter(|(_, id)| self.nodes[**id].kind == kind).map(|(path, _)| path).collect()
    }

    /// The size of a file.
    pub fn size(&self, path: &str) -> u64 {
        self.nodes[self.names.paths[path]].size()
    }

    /// True if a directory holds no names.
    pub fn is_empty(&self, path: &str) -> bool {
        !self.names.paths.keys().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }

    pub fn has(&self, path: &str) -> bool {
        self.names.paths.contains_key(path)
    }

    fn changed(&mut self, path: &str) {
        let (directory, _) = split(path);
        let ids = [self.names.paths.get(directory), self.names.paths.get(path)];
        for id in ids.into_iter().flatten().copied().collect::<Vec<_>>() {
            self.nodes[id].changed = self.step;
        }
    }

    /// Applies a call that was made, or in progress at the power cut. `made`: the new inode, if known.
    pub fn apply(&mut self, call: &Call, made: Option<InodeNumber>) {
        self.step += 1;
        let step = self.step;
        let mut names = Names::clone(&self.names);
        let id = |path: &str| self.names.paths[path];
        match call {
            Call::Create(path) | Call::MakeDirectory(path) | Call::Symlink(path, _) => {
                let kind = match call {
                    Call::Create(_) => FileKind::Regular,
                    Call::MakeDirectory(_) => FileKind::Directory,
                    _ => FileKind::Symlink,
                };
                let mut node = Node::new(kind, made, step);
                if let Call::Symlink(_, length) = call {
                    node.target = target(step, *length);
                }
                self.nodes.push(node);
                names.paths.insert(path.clone(), self.nodes.len() - 1);
            }
            Call::Write { path, offset, length } => {
                let node = &mut self.nodes[self.names.paths[path]];
                node.changed = step;
                if offset + length > node.size() {
                    node.resize(step, offset + length);
                }
                node.write(step, *offset, &written(step, *offset, *length));
                node.store(step, offset / BLOCK..(offset + length).div_ceil(BLOCK), true);
            }
            Call::Truncate(path, size) => {
                let node = &mut self.nodes[self.names.paths[path]];
                node.changed = step;
                node.truncate(step, *size);
            }
            Call::Punch { path, offset, length } => {
                let node = &mut self.nodes[self.names.paths[path]];
                node.changed = step;
                node.clear(step, *offset, *length);
            }
            Call::Allocate { path, offset, length, keeps_size }
            | Call::ZeroRange { path, offset, length, keeps_size } => {
                let node = &mut self.nodes[self.names.paths[path]];
                node.changed = step;
                if matches!(call, Call::ZeroRange { .. }) {
                    node.clear(step, *offset, *length);
                }
                node.allocate(step, *offset, *length, *keeps_size);
            }
            Call::Link(from, to) => {
                names.paths.insert(to.clone(), id(from));
            }
            Call::Unlink(path) | Call::RemoveDirectory(path) => {
                self.changed(path);
                names.paths.remove(path);
            }
            Call::Rename(from, to) | Call::Whiteout(from, to) => {
                let moved = self.names.paths[from];
                if names.paths.get(to) == Some(&moved) {
                    // Both are names of one file: the rename does nothing.
                    return;
                }
                self.changed(from);
                self.changed(to);
                if names.paths.contains_key(to) {
                    self.replaced.push((step, moved));
                }
                names.paths.remove(to);
                names.paths = move_paths(names.paths, &[(from, to)]);
                if matches!(call, Call::Whiteout(..)) {
                    self.nodes.push(Node::new(FileKind::CharacterDevice, None, step));
                    names.paths.insert(from.clone(), self.nodes.len() - 1);
                }
            }
            Call::Exchange(one, other) => {
                self.changed(one);
                self.changed(other);
                names.paths = move_paths(names.paths, &[(one, other), (other, one)]);
            }
            Call::SetAttribute(path, name, length) => {
                let id = id(path);
                self.nodes[id].changed = step;
                names.attributes.entry(id).or_default().insert(name.as_bytes().to_vec(), value(step, *length));
            }
            Call::SyncFile(..) | Call::Sync | Call::Wait(_) => {}
        }
        if names != *self.names {
            self.names = Rc::new(names);
            self.instants.push((step, self.names.clone()));
        }
        if let Call::Create(path) | Call::MakeDirectory(path) | Call::Symlink(path, _) | Call::Link(_, path) = call {
            self.changed(path);
        }
        if let Call::Rename(from, to) | Call::Whiteout(from, to) = call {
            self.changed(from);
            self.changed(to);
        }
    }

    /// The power failed in a call, whose own effect is unknown.
    ///
    /// If a sync still succeeds, no data is dirty, and all earlier calls are durable.
    pub fn cut_in(&mut self, task: &Task<'_>, call: &Call, sfs: &mut Sfs) {
        if sfs.sync(task).is_ok() || sfs.sync_file(task, InodeNumber::ROOT, Durable::All).is_ok() {
            self.answered(&Call::Sync);
        }
        self.apply(call, None);
    }

    /// Marks the last call as completed: it is durable if it is a sync.
    pub fn answered(&mut self, call: &Call) {
        let since = match call {
            Call::SyncFile(path, _) => {
                let node = &mut self.nodes[self.names.paths[path]];
                node.durable = self.step;
                node.changed
            }
            Call::Sync => {
                self.nodes.iter_mut().for_each(|node| node.durable = self.step);
                self.step
            }
            _ => return,
        };
        let first = self.instants.iter().rposition(|(step, _)| *step <= since).unwrap_or(0);
        self.instants.drain(..first);
    }

    /// Checks the content of a volume after a power cut. Returns the age of its names, in instants before the last.
    pub fn check(&self, look: &Look) -> Result<usize, String> {
        if look.lost_inodes != 0 {
            return Err(format!("{} inodes in use have no name", look.lost_inodes));
        }
        let mut why = Vec::new();
        for (ago, (step, names)) in self.instants.iter().rev().enumerate() {
            match self.check_names(names, look).and_then(|()| self.check_files(*step, names, look)) {
                Ok(()) => return Ok(ago),
                Err(error) => why.push(format!("if as after step {step}: {error}")),
            }
        }
        Err(why.join("\n    "))
    }

    fn check_names(&self, names: &Names, look: &Look) -> Result<(), String> {
        if let Some(path) = look.all.keys().find(|path| !names.paths.contains_key(*path)) {
            return Err(format!("{path} should not exist"));
        }
        let mut inodes: BTreeMap<usize, InodeNumber> = BTreeMap::new();
        for (path, id) in names.paths.iter().filter(|(path, _)| !path.is_empty()) {
            let (node, found) = (&self.nodes[*id], look.all.get(path).ok_or(format!("{path} is missing"))?);
            let inode = *inodes.entry(*id).or_insert(node.inode.unwrap_or(found.inode));
            if node.kind != found.kind || inode != found.inode {
                return Err(format!("{path} is {:?} {:?}", found.kind, found.inode));
            }
            let links = names.paths.values().filter(|other| *other == id).count() as u32;
            if node.kind != FileKind::Directory && found.links != links {
                return Err(format!("{path} has {links} names, and a link count of {}", found.links));
            }
            if node.kind == FileKind::Symlink && node.target != found.bytes {
                return Err(format!("{path} has a wrong target"));
            }
            if names.attributes.get(id).cloned().unwrap_or_default() != found.attributes {
                return Err(format!("{path} has wrong attributes"));
            }
        }
        Ok(())
    }

    fn check_files(&self, instant: u64, names: &Names, look: &Look) -> Result<(), String> {
        for (path, id) in &names.paths {
            let node = &self.nodes[*id];
            if node.kind == FileKind::Regular {
                let taken = self.replaced.iter().filter(|(step, taker)| taker == id && *step <= instant);
                let floor = taken.map(|(step, _)| *step).fold(node.durable, u64::max);
                let found = &look.all[path];
                let checked = node.check(floor, &found.bytes).and_then(|()| node.check_stored(floor, &found.stored));
                checked.map_err(|why| format!("{path}: {why}"))?;
            }
        }
        Ok(())
    }
}

/// All paths after directories or files were renamed.
fn move_paths(paths: BTreeMap<String, usize>, moves: &[(&String, &String)]) -> BTreeMap<String, usize> {
    let moved = |path: String| {
        for (from, to) in moves {
            if let Some(rest) = path.strip_prefix(from.as_str())
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return format!("{to}{rest}");
            }
        }
        path
    };
    paths.into_iter().map(|(path, id)| (moved(path), id)).collect()
}
