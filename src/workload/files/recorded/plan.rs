//! The calls of a recording as operations of lanes.
//!
//! Threads that did not live at the same time share a lane. A lane waits as long between two calls as its threads did. It
//! makes a call only when all calls of other lanes that it needs have ended:
//!
//! - a call that changes names: the change of names before it, and the calls to the file that it names; one that renames a
//!   directory: all calls that go by a path;
//! - any other call: the last change of names, and the last change of the length of its file;
//! - one that cuts a file: all calls to that file.
//!
//! The recording has calls in the order in which they ended, so that a lane never waits for one that waits for it.

use super::format::{Call, Record};
use super::restore::{Found, restore};
use super::tree::{Node, ROOT, Tree};
use crate::workload::files::{FileOperation, Name};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The most lanes. More threads than these at once share lanes.
const MOST_LANES: usize = 256;
/// The longest target of a symbolic link.
const LONGEST_TARGET: u64 = 4000;

/// A number of operations that a lane must have done: the lane, and the number.
pub type Needed = (u32, u32);

/// An operation of a lane.
#[derive(Debug)]
pub struct Planned {
    pub operation: FileOperation,
    /// Nanoseconds that the lane waits before it.
    pub idle_ns: u64,
    /// What other lanes must have done before.
    pub after: Vec<Needed>,
}

/// A recording as operations.
#[derive(Debug, Default)]
pub struct Plan {
    /// The operations that make what existed before.
    pub setup: Vec<FileOperation>,
    pub lanes: Vec<Vec<Planned>>,
    /// The operations after which the lanes can begin again; `None` if something lies too deep to be named.
    pub restore: Option<Vec<FileOperation>>,
    /// The paths of names.
    pub paths: Vec<String>,
    pub found_files: u64,
    pub found_bytes: u64,
    /// The most bytes of the blocks of all files at any time.
    pub most_bytes: u64,
    pub written_bytes: u64,
    /// Calls whose file or name the recording does not know.
    pub unknown: u64,
}

/// The state of a file in the lanes.
#[derive(Clone, Debug, Default)]
struct FileState {
    /// The lanes that have it open, and under which name.
    open: Vec<(u32, Name)>,
    /// The last call that changed its length or names.
    changed: Option<Needed>,
    /// The last call of each lane.
    last: Vec<Needed>,
    /// The lanes that use it, and their last calls to it.
    uses: Vec<(u32, usize)>,
}

/// The plan as it is made.
struct Maker {
    plan: Plan,
    tree: Tree,
    states: Vec<FileState>,
    names: FxHashMap<(Node, String), Name>,
    /// The file or directory of each inode number, now.
    known: FxHashMap<u64, Node>,
    /// The first paths of what existed before.
    found: FxHashMap<Node, String>,
    /// What the setup makes.
    made: BTreeMap<String, Found>,
    /// Paths that the setup makes, or that a call has made: nothing else existed there before.
    taken_paths: FxHashSet<String>,
    /// When each lane's last call ended.
    ended_ns: Vec<u64>,
    /// The last call that changed names.
    renamed: Option<Needed>,
    /// The last call of each lane that goes by a path.
    by_path: FxHashMap<u32, u32>,
    version: u32,
}

impl Plan {
    /// The plan of a recording.
    pub fn of(records: &[Record]) -> Plan {
        let (lanes, count) = lanes_of(records);
        let (nodes, made) = nodes_of(records);
        let mut states = vec![FileState::default(); made + 1];
        for (at, (node, lane)) in nodes.iter().zip(&lanes).enumerate() {
            let Some(node) = node else { continue };
            let uses = &mut states[*node as usize].uses;
            match uses.iter_mut().find(|(user, _)| user == lane) {
                Some((_, last)) => *last = at,
                None => uses.push((*lane, at)),
            }
        }
        let began_ns = records.iter().map(|record| record.begin_ns).min().unwrap_or(0);
        let mut maker = Maker {
            plan: Plan { lanes: (0..count).map(|_| Vec::new()).collect(), ..Plan::default() },
            tree: Tree::new(made),
            states,
            names: FxHashMap::default(),
            known: FxHashMap::from_iter([(1, ROOT)]),
            found: FxHashMap::default(),
            made: BTreeMap::new(),
            taken_paths: FxHashSet::default(),
            ended_ns: vec![began_ns; count],
            renamed: None,
            by_path: FxHashMap::default(),
            version: 0,
        };
        let root = maker.name(ROOT, super::DIRECTORY.to_string());
        maker.plan.setup.push(FileOperation::MakeDirectory(root));
        for (at, record) in records.iter().enumerate() {
            let (lane, node) = (lanes[at], nodes[at]);
            if maker.call(at, lane, node, record).is_none() {
                maker.plan.unknown += 1;
            }
            let ended = record.begin_ns + record.duration_ns;
            maker.ended_ns[lane as usize] = maker.ended_ns[lane as usize].max(ended);
            if let Some(node) = node {
                maker.close_after(lane, node, at);
            }
            maker.plan.most_bytes = maker.plan.most_bytes.max(maker.tree.live_bytes());
        }
        maker.end()
    }
}

/// The lane of each record, and the number of lanes. A lane is free again when the last call of its thread has begun.
fn lanes_of(records: &[Record]) -> (Vec<u32>, usize) {
    let mut last = FxHashMap::default();
    records.iter().enumerate().for_each(|(at, record)| {
        last.insert(record.thread, at);
    });
    let (mut of_thread, mut free, mut count) = (FxHashMap::default(), Vec::new(), 0_usize);
    let mut lanes = Vec::with_capacity(records.len());
    for (at, record) in records.iter().enumerate() {
        let lane = *of_thread.entry(record.thread).or_insert_with(|| match free.pop() {
            Some(lane) => lane,
            None if count < MOST_LANES => {
                count += 1;
                count as u32 - 1
            }
            None => (record.thread % MOST_LANES as u64) as u32,
        });
        lanes.push(lane);
        if last[&record.thread] == at && !free.contains(&lane) {
            free.push(lane);
        }
    }
    (lanes, count.max(1))
}

/// The file or directory of each call that names an inode, and the number of those that are made or found.
fn nodes_of(records: &[Record]) -> (Vec<Option<Node>>, usize) {
    let (mut known, mut made) = (BTreeMap::from([(1, ROOT)]), 0);
    let nodes = records.iter().map(|record| match record.call {
        Call::FoundDirectory { inode, .. }
        | Call::FoundFile { inode, .. }
        | Call::MakeDirectory { inode, .. }
        | Call::Create { inode, .. }
        | Call::Symlink { inode, .. } => {
            made += 1;
            known.insert(inode, made);
            Some(made)
        }
        Call::Link { inode, .. }
        | Call::Read { inode, .. }
        | Call::Write { inode, .. }
        | Call::Truncate { inode, .. }
        | Call::Fsync { inode }
        | Call::Fdatasync { inode }
        | Call::Fbarrier { inode }
        | Call::Fdatabarrier { inode }
        | Call::Reserve { inode, .. }
        | Call::Punch { inode, .. } => known.get(&inode).copied(),
        Call::Unlink { .. } | Call::RemoveDirectory { .. } | Call::Rename { .. } => None,
    });
    let nodes = nodes.collect();
    (nodes, made as usize)
}

impl Maker {
    /// The name of a file or directory at a path.
    fn name(&mut self, node: Node, path: String) -> Name {
        let (names, paths) = (&mut self.names, &mut self.plan.paths);
        *names.entry((node, path)).or_insert_with_key(|(_, path)| {
            paths.push(path.clone());
            paths.len() as Name - 1
        })
    }

    /// Adds an operation to a lane, after what it needs of other lanes.
    fn push(&mut self, lane: u32, idle_ns: u64, operation: FileOperation, needs: &[Option<Needed>]) -> Needed {
        let mut after: Vec<Needed> = Vec::new();
        for (of, count) in needs.iter().flatten().filter(|(of, _)| *of != lane) {
            match after.iter_mut().find(|(known, _)| known == of) {
                Some((_, most)) => *most = (*most).max(*count),
                None => after.push((*of, *count)),
            }
        }
        let planned = &mut self.plan.lanes[lane as usize];
        planned.push(Planned { operation, idle_ns, after });
        (lane, planned.len() as u32)
    }

    /// The plan, with what is between two replays.
    fn end(self) -> Plan {
        let Maker { mut plan, tree, made, .. } = self;
        let paths = &mut plan.paths;
        plan.restore = restore(&tree, &made, |path| {
            paths.push(path.to_string());
            paths.len() as Name - 1
        });
        plan
    }

    fn state(&mut self, node: Node) -> &mut FileState {
        &mut self.states[node as usize]
    }

    fn note(&mut self, node: Node, (lane, count): Needed) {
        let last = &mut self.state(node).last;
        match last.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, known)) => *known = count,
            None => last.push((lane, count)),
        }
    }

    /// Opens a file in a lane, unless it is open there. `None` if it has no path.
    fn open(&mut self, lane: u32, node: Node, idle_ns: &mut u64) -> Option<Name> {
        if let Some((_, name)) = self.state(node).open.iter().find(|(of, _)| *of == lane) {
            return Some(*name);
        }
        let path = self.tree.path(node)?;
        let (name, changed) = (self.name(node, path), self.state(node).changed);
        let needs = [self.renamed, changed];
        let done = self.push(lane, std::mem::take(idle_ns), FileOperation::Open(name), &needs);
        self.by_path.insert(lane, done.1);
        self.note(node, done);
        self.state(node).open.push((lane, name));
        Some(name)
    }

    /// Closes a file in a lane after its last call there.
    fn close_after(&mut self, lane: u32, node: Node, at: usize) {
        let state = self.state(node);
        let is_last = state.uses.iter().any(|(of, last)| *of == lane && *last == at);
        let open = state.open.iter().position(|(of, _)| *of == lane);
        if let (true, Some(open)) = (is_last, open) {
            let (_, name) = self.state(node).open.swap_remove(open);
            let done = self.push(lane, 0, FileOperation::Close(name), &[]);
            self.note(node, done);
        }
    }

    /// A call to an open file. `changes` its length or not.
    fn on_file(
        &mut self,
        lane: u32,
        node: Node,
        mut idle_ns: u64,
        changes: bool,
        operation: impl FnOnce(Name) -> FileOperation,
    ) -> Option<()> {
        if self.tree.is_directory(node) {
            return None;
        }
        let name = self.open(lane, node, &mut idle_ns)?;
        let state = self.state(node);
        let mut needs: Vec<Option<Needed>> = vec![state.changed];
        if changes {
            needs.extend(state.last.iter().copied().map(Some));
        }
        let done = self.push(lane, idle_ns, operation(name), &needs);
        self.note(node, done);
        if changes {
            self.state(node).changed = Some(done);
        }
        Some(())
    }

    /// A call that changes names, those of `nodes` among them.
    fn on_names(&mut self, lane: u32, idle_ns: u64, nodes: &[Node], operation: FileOperation) {
        let mut needs = vec![self.renamed];
        if matches!(operation, FileOperation::Rename { .. }) && nodes.iter().any(|node| self.tree.is_directory(*node)) {
            needs.extend(self.by_path.iter().map(|(lane, count)| Some((*lane, *count))));
        }
        for node in nodes {
            needs.extend(self.state(*node).last.iter().copied().map(Some));
        }
        let done = self.push(lane, idle_ns, operation, &needs);
        self.renamed = Some(done);
        for node in nodes {
            self.note(*node, done);
            self.state(*node).changed = Some(done);
        }
    }

    /// Removes a name, after call number `at`. A file that loses its last one is open before in each lane that uses it later.
    fn remove(&mut self, parent: Node, name: &[u8], at: usize) -> Option<Node> {
        let node = self.tree.find(parent, name)?;
        if !self.tree.is_directory(node) && self.tree.names_of(node) == 1 {
            for (lane, last) in self.state(node).uses.clone() {
                if last > at {
                    self.open(lane, node, &mut 0);
                }
            }
        }
        self.tree.remove(parent, name)
    }

    /// Makes a file or directory under a new name. `None` if the name cannot be given.
    fn make(
        &mut self,
        (lane, idle_ns): (u32, u64),
        (parent, name): (u64, &[u8]),
        (node, inode): (Node, u64),
        kind: Kind,
    ) -> Option<()> {
        let parent = self.known.get(&parent).copied()?;
        let path = self.tree.path_in(parent, name)?;
        self.known.insert(inode, node);
        if !self.tree.make(parent, name, node, kind == Kind::Directory) {
            return None;
        }
        self.taken_paths.insert(path.clone());
        let name = self.name(node, path);
        match kind {
            Kind::Directory => self.on_names(lane, idle_ns, &[node], FileOperation::MakeDirectory(name)),
            Kind::File => {
                self.on_names(lane, idle_ns, &[node], FileOperation::Create(name));
                self.state(node).open.push((lane, name));
            }
            Kind::Symlink { length } => self.on_names(lane, idle_ns, &[node], FileOperation::Symlink { name, length }),
        }
        Some(())
    }

    /// Notes what existed before the recording: the setup makes it. `None` if its directory was made later.
    fn find(&mut self, (parent, name): (u64, &[u8]), (node, inode): (Node, u64), length: Option<u64>) -> Option<()> {
        let parent = self.known.get(&parent).copied()?;
        self.known.insert(inode, node);
        let first = match parent {
            ROOT => super::DIRECTORY.to_string(),
            parent => self.found.get(&parent).cloned()?,
        };
        let path = self.tree.path_in(parent, name)?;
        // A directory may have been renamed since.
        let first = path.rsplit_once('/').map(|(_, name)| format!("{first}/{name}"))?;
        if !self.taken_paths.insert(first.clone()) || !self.tree.make(parent, name, node, length.is_none()) {
            return None;
        }
        let name = self.name(node, first.clone());
        self.found.insert(node, first.clone());
        let Some(length) = length else {
            self.made.insert(first, Found::Directory);
            self.plan.setup.push(FileOperation::MakeDirectory(name));
            return Some(());
        };
        self.made.insert(first, Found::File { node, length });
        self.tree.set_length(node, length);
        self.plan.setup.push(FileOperation::Create(name));
        if length > 0 {
            self.plan.setup.push(FileOperation::Write { file: name, offset: 0, length, version: 0 });
        }
        self.plan.setup.push(FileOperation::Close(name));
        (self.plan.found_files, self.plan.found_bytes) =
            (self.plan.found_files + 1, self.plan.found_bytes.saturating_add(length));
        Some(())
    }

    /// Adds a call. `None` if its file or name is not known.
    fn call(&mut self, at: usize, lane: u32, node: Option<Node>, record: &Record) -> Option<()> {
        let idle_ns = record.begin_ns.saturating_sub(self.ended_ns[lane as usize]);
        let by = (lane, idle_ns);
        match &record.call {
            Call::FoundDirectory { parent, inode, name } => self.find((*parent, name), (node?, *inode), None),
            Call::FoundFile { parent, inode, length, name } => {
                self.find((*parent, name), (node?, *inode), Some(*length))
            }
            Call::MakeDirectory { parent, inode, name } => {
                self.make(by, (*parent, name), (node?, *inode), Kind::Directory)
            }
            Call::Create { parent, inode, name } => self.make(by, (*parent, name), (node?, *inode), Kind::File),
            Call::Symlink { parent, inode, length, name } => {
                let length = (*length).clamp(1, LONGEST_TARGET);
                self.make(by, (*parent, name), (node?, *inode), Kind::Symlink { length })
            }
            Call::Link { parent, name, .. } => {
                let (node, parent) = (node?, self.known.get(parent).copied()?);
                let (from, to) = (self.tree.path(node)?, self.tree.path_in(parent, name)?);
                if self.tree.is_directory(node) || !self.tree.add(parent, name, node) {
                    return None;
                }
                self.taken_paths.insert(to.clone());
                let (from, to) = (self.name(node, from), self.name(node, to));
                self.on_names(lane, idle_ns, &[node], FileOperation::Link { from, to });
                Some(())
            }
            Call::Unlink { parent, name } | Call::RemoveDirectory { parent, name } => {
                let parent = self.known.get(parent).copied()?;
                let path = self.tree.path_in(parent, name)?;
                let node = self.tree.find(parent, name)?;
                let is_directory = matches!(record.call, Call::RemoveDirectory { .. });
                if self.tree.is_directory(node) != is_directory || self.tree.has_names_in(node) {
                    return None;
                }
                self.remove(parent, name, at)?;
                let gone = self.name(node, path);
                let operation =
                    if is_directory { FileOperation::RemoveDirectory(gone) } else { FileOperation::Unlink(gone) };
                self.on_names(lane, idle_ns, &[node], operation);
                Some(())
            }
            Call::Rename { parent, name, new_parent, new_name } => {
                let parents = (self.known.get(parent).copied()?, self.known.get(new_parent).copied()?);
                self.rename(at, by, (parents.0, name), (parents.1, new_name))
            }
            Call::Read { offset, length, .. } => {
                let node = node?;
                let length = (*length).min(self.tree.length(node).saturating_sub(*offset));
                if length == 0 {
                    return Some(());
                }
                let offset = *offset;
                self.on_file(lane, node, idle_ns, false, |file| FileOperation::Read { file, offset, length })
            }
            Call::Write { length: 0, .. } => Some(()),
            Call::Write { offset, length, .. } => {
                let (node, offset, length) = (node?, *offset, *length);
                self.version = self.version.wrapping_add(1);
                let (version, extends) = (self.version, offset + length > self.tree.length(node));
                let write = |file| FileOperation::Write { file, offset, length, version };
                self.on_file(lane, node, idle_ns, extends, write)?;
                self.plan.written_bytes = self.plan.written_bytes.saturating_add(length);
                self.tree.set_length(node, self.tree.length(node).max(offset + length));
                Some(())
            }
            Call::Truncate { length, .. } => {
                let (node, length) = (node?, *length);
                self.on_file(lane, node, idle_ns, true, |file| FileOperation::Truncate { file, length })?;
                self.tree.set_length(node, length);
                Some(())
            }
            // A directory is made durable, which promises more than order.
            Call::Fsync { .. } | Call::Fbarrier { .. } if self.tree.is_directory(node?) => {
                let node = node?;
                let path = self.tree.path(node)?;
                let name = self.name(node, path);
                let done = self.push(lane, idle_ns, FileOperation::SyncDirectory(name), &[self.renamed]);
                self.by_path.insert(lane, done.1);
                self.note(node, done);
                Some(())
            }
            Call::Fsync { .. } => self.on_file(lane, node?, idle_ns, false, FileOperation::Fsync),
            Call::Fdatasync { .. } => self.on_file(lane, node?, idle_ns, false, FileOperation::Fdatasync),
            Call::Fbarrier { .. } => self.on_file(lane, node?, idle_ns, false, FileOperation::Fbarrier),
            Call::Fdatabarrier { .. } => self.on_file(lane, node?, idle_ns, false, FileOperation::Fdatabarrier),
            Call::Reserve { offset, length, .. } => {
                let (node, length) = (node?, offset + length);
                self.on_file(lane, node, idle_ns, true, |file| FileOperation::Preallocate { file, length })?;
                self.tree.set_length(node, self.tree.length(node).max(length));
                Some(())
            }
            Call::Punch { length: 0, .. } => Some(()),
            Call::Punch { offset, length, .. } => {
                let (offset, length) = (*offset, *length);
                self.on_file(lane, node?, idle_ns, true, |file| FileOperation::Discard { file, offset, length })
            }
        }
    }

    fn rename(
        &mut self,
        at: usize,
        (lane, idle_ns): (u32, u64),
        (parent, name): (Node, &[u8]),
        (new_parent, new_name): (Node, &[u8]),
    ) -> Option<()> {
        let node = self.tree.find(parent, name)?;
        let (from, to) = (self.tree.path_in(parent, name)?, self.tree.path_in(new_parent, new_name)?);
        let replaced = self.tree.find(new_parent, new_name);
        let is_directory = self.tree.is_directory(node);
        let fits = replaced.is_none_or(|other| {
            other != node && self.tree.is_directory(other) == is_directory && !self.tree.has_names_in(other)
        });
        if !fits || is_directory && self.tree.is_within(new_parent, node) {
            return None;
        }
        let mut nodes = vec![node];
        if let Some(replaced) = replaced {
            self.remove(new_parent, new_name, at)?;
            nodes.push(replaced);
        }
        self.tree.remove(parent, name)?;
        assert!(self.tree.add(new_parent, new_name, node), "the name is free, in a directory that has a path");
        self.taken_paths.insert(to.clone());
        let (from, to) = (self.name(node, from), self.name(node, to));
        self.on_names(lane, idle_ns, &nodes, FileOperation::Rename { from, to });
        Some(())
    }
}

/// A kind of file that a call makes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Directory,
    File,
    Symlink { length: u64 },
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::all_calls;
    use super::*;

    fn record(thread: u64, begin_ns: u64, duration_ns: u64, call: Call) -> Record {
        Record { thread, begin_ns, duration_ns, call }
    }

    fn name(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    /// The operations of a lane, with paths, idle times and needs.
    fn shown(plan: &Plan, lane: usize) -> Vec<String> {
        let show = |planned: &Planned| {
            let mut text = format!("{:?}", planned.operation);
            for (at, path) in plan.paths.iter().enumerate().rev() {
                for before in ["(", "file: ", "from: ", "to: ", "name: "] {
                    for after in [")", ",", " "] {
                        text = text.replace(&format!("{before}{at}{after}"), &format!("{before}{path}{after}"));
                    }
                }
            }
            match (planned.idle_ns, &planned.after[..]) {
                (0, []) => text,
                (idle, after) => format!("{text} idle {idle} after {after:?}"),
            }
        };
        plan.lanes[lane].iter().map(show).collect()
    }

    #[test]
    fn calls_of_one_thread_are_operations_with_opens_and_closes() {
        let records: Vec<Record> =
            all_calls().into_iter().zip(0..).map(|(call, at)| record(9, at * 100, 60, call)).collect();
        let plan = Plan::of(&records);
        assert_eq!((plan.lanes.len(), plan.unknown, plan.found_files, plan.found_bytes), (1, 0, 1, 9000));
        assert_eq!(plan.setup.len(), 5, "two directories, and a file that is created, written and closed");
        let operations = shown(&plan, 0);
        let expected = [
            "MakeDirectory(recorded/new) idle 40 after []",
            "Create(recorded/new/g) idle 40 after []",
            "Symlink { name: recorded/new/s, length: 20 } idle 40 after []",
            "Write { file: recorded/new/g, offset: 0, length: 5000, version: 1 } idle 40 after []",
            "Open(recorded/old/f) idle 40 after []",
            "Read { file: recorded/old/f, offset: 4096, length: 4096 }",
            "Link { from: recorded/new/g, to: recorded/h } idle 40 after []",
            "Fsync(recorded/new/g) idle 40 after []",
            "Fdatasync(recorded/old/f) idle 40 after []",
            "Fbarrier(recorded/new/g) idle 40 after []",
            "Fdatabarrier(recorded/old/f) idle 40 after []",
            "Close(recorded/old/f)",
            "Preallocate { file: recorded/new/g, length: 65536 } idle 40 after []",
            "Discard { file: recorded/new/g, offset: 4096, length: 4096 } idle 40 after []",
            "Truncate { file: recorded/new/g, length: 100 } idle 40 after []",
            "Close(recorded/new/g)",
            "Rename { from: recorded/new/g, to: recorded/i } idle 40 after []",
            "Unlink(recorded/new/s) idle 40 after []",
            "RemoveDirectory(recorded/new) idle 40 after []",
        ];
        assert_eq!(operations, expected);
    }

    #[test]
    fn a_lane_needs_what_others_did_to_its_file() {
        let records = [
            record(1, 0, 10, Call::Create { parent: 1, inode: 5, name: name("f") }),
            record(1, 20, 10, Call::Write { inode: 5, offset: 0, length: 100 }),
            record(2, 40, 10, Call::Write { inode: 5, offset: 0, length: 50 }),
            record(1, 45, 10, Call::Fsync { inode: 5 }),
            record(2, 60, 10, Call::Unlink { parent: 1, name: name("f") }),
            record(1, 80, 10, Call::Read { inode: 5, offset: 0, length: 500 }),
        ];
        let plan = Plan::of(&records);
        assert_eq!(plan.unknown, 0);
        assert_eq!(
            shown(&plan, 0),
            [
                "Create(recorded/f)",
                "Write { file: recorded/f, offset: 0, length: 100, version: 1 } idle 10 after []",
                "Fsync(recorded/f) idle 15 after []",
                "Read { file: recorded/f, offset: 0, length: 100 } idle 25 after [(1, 4)]",
                "Close(recorded/f)",
            ]
        );
        assert_eq!(
            shown(&plan, 1),
            [
                "Open(recorded/f) idle 40 after [(0, 2)]",
                "Write { file: recorded/f, offset: 0, length: 50, version: 2 } idle 0 after [(0, 2)]",
                "Close(recorded/f)",
                "Unlink(recorded/f) idle 10 after [(0, 3)]",
            ]
        );
    }

    #[test]
    fn a_file_without_a_name_is_open_where_it_is_used_later() {
        let records = [
            record(1, 0, 1, Call::Create { parent: 1, inode: 5, name: name("f") }),
            record(1, 2, 1, Call::Unlink { parent: 1, name: name("f") }),
            record(2, 4, 1, Call::Write { inode: 5, offset: 0, length: 9 }),
            // The number is of another file by now.
            record(1, 6, 1, Call::Create { parent: 1, inode: 5, name: name("f") }),
            record(1, 8, 1, Call::Write { inode: 5, offset: 0, length: 7 }),
        ];
        let plan = Plan::of(&records);
        assert_eq!(plan.unknown, 0);
        assert!(shown(&plan, 1)[0].starts_with("Open(recorded/f) idle 0 after [(0, "), "{:?}", shown(&plan, 1));
        assert!(shown(&plan, 1)[1].contains("length: 9"));
        let unlink = plan.lanes[0].iter().find(|it| matches!(it.operation, FileOperation::Unlink(_))).unwrap();
        assert_eq!(unlink.after, [(1, 1)], "the other lane opens it before");
    }

    #[test]
    fn a_directory_is_renamed_after_all_that_go_by_a_path_through_it() {
        let records = [
            record(1, 0, 1, Call::MakeDirectory { parent: 1, inode: 5, name: name("d") }),
            record(1, 2, 1, Call::Create { parent: 5, inode: 6, name: name("f") }),
            record(2, 4, 1, Call::Write { inode: 6, offset: 0, length: 9 }),
            record(3, 6, 1, Call::Fsync { inode: 5 }),
            record(1, 8, 1, Call::Rename { parent: 1, name: name("d"), new_parent: 1, new_name: name("e") }),
        ];
        let plan = Plan::of(&records);
        let renamed = plan.lanes[0].last().unwrap();
        assert!(matches!(renamed.operation, FileOperation::Rename { .. }));
        assert_eq!(renamed.after, [(1, 4)], "the sync of d, behind the open of f in the same lane");
    }

    #[test]
    fn threads_that_lived_one_after_the_other_share_a_lane() {
        let fsync = |thread, at| record(thread, at, 1, Call::Fsync { inode: 1 });
        let (lanes, count) = lanes_of(&[fsync(1, 0), fsync(2, 2), fsync(2, 3), fsync(1, 4), fsync(3, 5), fsync(4, 6)]);
        assert_eq!((lanes, count), (vec![0, 1, 1, 0, 0, 0], 2));
        let many: Vec<Record> = (0..1000).chain(0..1000).map(|thread| fsync(thread, thread)).collect();
        assert_eq!(lanes_of(&many).1, MOST_LANES);
    }

    #[test]
    fn calls_on_what_is_not_known_are_counted_and_left_out() {
        let records = [
            Call::Read { inode: 7, offset: 0, length: 1 },
            Call::Unlink { parent: 1, name: name("f") },
            Call::Rename { parent: 3, name: name("f"), new_parent: 1, new_name: name("g") },
            Call::Create { parent: 9, inode: 5, name: name("f") },
            Call::Write { inode: 5, offset: 0, length: 1 },
            Call::MakeDirectory { parent: 1, inode: 6, name: name("d") },
            Call::MakeDirectory { parent: 6, inode: 7, name: name("e") },
            Call::Rename { parent: 1, name: name("d"), new_parent: 7, new_name: name("d") },
            Call::Unlink { parent: 1, name: name("d") },
            Call::RemoveDirectory { parent: 1, name: name("d") },
            Call::Write { inode: 6, offset: 0, length: 1 },
        ];
        let records: Vec<Record> = records.into_iter().zip(0..).map(|(call, at)| record(1, at, 1, call)).collect();
        let plan = Plan::of(&records);
        assert_eq!((plan.unknown, plan.lanes[0].len()), (9, 2));
    }
}
