//! What brings the names and lengths of the found files back after a replay, so that it can be repeated.

use super::tree::{Node, Tree};
use crate::workload::files::{FileOperation, Name};
use std::collections::BTreeMap;

/// The prefix of the names that files have while the others are brought back.
const ASIDE: &str = "kept-by-the-replay-";

/// What was at a path before the recording.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    Directory,
    File { node: Node, length: u64 },
}

/// An operation on paths.
enum Step<'a> {
    Unlink(&'a str),
    RemoveDirectory(&'a str),
    MakeDirectory(&'a str),
    Rename(&'a str, &'a str),
    Length { path: &'a str, from: Option<u64>, to: u64 },
}

/// The operations that turn `tree`, where a replay has ended with all files closed, into `found` again. Files that are
/// there under any name keep their bytes; what was removed, or cut, is written again. `name` numbers a path.
///
/// `None` if something has no path, as it lies too deep.
pub fn restore(
    tree: &Tree,
    found: &BTreeMap<String, Found>,
    mut name: impl FnMut(&str) -> Name,
) -> Option<Vec<FileOperation>> {
    let left: BTreeMap<String, Node> = tree
        .all_names()
        .map(|(parent, text, node)| Some((tree.path_in(parent, text)?, node)))
        .collect::<Option<_>>()?;
    let is_left_directory = |path: &str| left.get(path).is_some_and(|node| tree.is_directory(*node));
    // A file at its first path stays there; any other goes aside under the first of its names.
    let mut aside: BTreeMap<Node, String> = BTreeMap::new();
    let stays = |path: &str, node: Node| matches!(found.get(path), Some(Found::File { node: at, .. }) if *at == node);
    let first_path: BTreeMap<Node, &str> = found
        .iter()
        .filter_map(|(path, found)| match found {
            Found::File { node, .. } => Some((*node, &path[..])),
            Found::Directory => None,
        })
        .collect();
    let moves = |node: &Node| first_path.get(node).is_some_and(|path| left.get(*path) != Some(node));
    for node in left.values().filter(|node| moves(node)) {
        aside.entry(*node).or_insert_with(|| format!("{}/{ASIDE}{node}", super::DIRECTORY));
    }
    let mut steps = Vec::new();
    let mut is_aside = BTreeMap::new();
    for (path, node) in left.iter().filter(|(path, node)| !tree.is_directory(**node) && !stays(path, **node)) {
        steps.push(match aside.get(node).filter(|_| is_aside.insert(*node, ()).is_none()) {
            Some(aside) => Step::Rename(path, aside),
            None => Step::Unlink(path),
        });
    }
    // A path sorts behind those of the directories that it is in.
    for (path, _) in left.iter().rev().filter(|(_, node)| tree.is_directory(**node)) {
        if !matches!(found.get(path), Some(Found::Directory)) {
            steps.push(Step::RemoveDirectory(path));
        }
    }
    for (path, what) in found {
        match what {
            Found::Directory if is_left_directory(path) => {}
            Found::Directory => steps.push(Step::MakeDirectory(path)),
            Found::File { node, length } => {
                let is_there = stays(path, *node) && left.get(path) == Some(node);
                if let Some(aside) = aside.get(node) {
                    steps.push(Step::Rename(aside, path));
                }
                let from = (is_there || aside.contains_key(node)).then(|| tree.length(*node));
                if from != Some(*length) {
                    steps.push(Step::Length { path, from, to: *length });
                }
            }
        }
    }
    let mut operations = Vec::new();
    for step in steps {
        match step {
            Step::Unlink(path) => operations.push(FileOperation::Unlink(name(path))),
            Step::RemoveDirectory(path) => operations.push(FileOperation::RemoveDirectory(name(path))),
            Step::MakeDirectory(path) => operations.push(FileOperation::MakeDirectory(name(path))),
            Step::Rename(from, to) => operations.push(FileOperation::Rename { from: name(from), to: name(to) }),
            Step::Length { path, from, to } => {
                let file = name(path);
                operations.push(from.map_or(FileOperation::Create(file), |_| FileOperation::Open(file)));
                let from = from.unwrap_or(0);
                operations.extend((from > to).then_some(FileOperation::Truncate { file, length: to }));
                let write = FileOperation::Write { file, offset: from, length: to.saturating_sub(from), version: 0 };
                operations.extend((from < to).then_some(write));
                operations.push(FileOperation::Close(file));
            }
        }
    }
    Some(operations)
}

#[cfg(test)]
mod tests {
    use super::super::format::{Call, Record};
    use super::super::plan::Plan;
    use super::*;

    fn restored(calls: Vec<Call>) -> Vec<String> {
        let records: Vec<Record> = calls
            .into_iter()
            .zip(0..)
            .map(|(call, at)| Record { thread: 1, begin_ns: at, duration_ns: 1, call })
            .collect();
        let plan = Plan::of(&records);
        assert_eq!(plan.unknown, 0);
        let path = |name: &Name| plan.paths[*name as usize].trim_start_matches("recorded/").to_string();
        let show = |operation: &FileOperation| match operation {
            FileOperation::Unlink(name) => format!("unlink {}", path(name)),
            FileOperation::RemoveDirectory(name) => format!("rmdir {}", path(name)),
            FileOperation::MakeDirectory(name) => format!("mkdir {}", path(name)),
            FileOperation::Rename { from, to } => format!("rename {} {}", path(from), path(to)),
            FileOperation::Create(name) => format!("create {}", path(name)),
            FileOperation::Open(name) => format!("open {}", path(name)),
            FileOperation::Write { file, offset, length, .. } => format!("write {} {offset} {length}", path(file)),
            FileOperation::Truncate { file, length } => format!("cut {} {length}", path(file)),
            FileOperation::Close(name) => format!("close {}", path(name)),
            other => panic!("{other:?}"),
        };
        plan.restore.unwrap().iter().map(show).collect()
    }

    fn name(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn what_is_as_it_was_is_left_alone() {
        let found = Call::FoundFile { parent: 1, inode: 2, length: 9, name: name("f") };
        assert!(restored(vec![found, Call::Write { inode: 2, offset: 0, length: 9 }]).is_empty());
    }

    #[test]
    fn names_and_lengths_are_brought_back() {
        let calls = vec![
            Call::FoundDirectory { parent: 1, inode: 2, name: name("d") },
            Call::FoundFile { parent: 2, inode: 3, length: 100, name: name("long") },
            Call::FoundFile { parent: 2, inode: 4, length: 100, name: name("short") },
            Call::FoundFile { parent: 1, inode: 5, length: 7, name: name("gone") },
            Call::FoundFile { parent: 1, inode: 6, length: 8, name: name("a") },
            Call::FoundFile { parent: 1, inode: 7, length: 8, name: name("b") },
            Call::Write { inode: 3, offset: 100, length: 1 },
            Call::Truncate { inode: 4, length: 60 },
            Call::Unlink { parent: 1, name: name("gone") },
            Call::MakeDirectory { parent: 1, inode: 8, name: name("new") },
            Call::Create { parent: 8, inode: 9, name: name("g") },
            Call::Rename { parent: 1, name: name("d"), new_parent: 8, new_name: name("d") },
            // Two found files change their names with each other.
            Call::Rename { parent: 1, name: name("a"), new_parent: 1, new_name: name("c") },
            Call::Rename { parent: 1, name: name("b"), new_parent: 1, new_name: name("a") },
            Call::Rename { parent: 1, name: name("c"), new_parent: 1, new_name: name("b") },
        ];
        assert_eq!(
            restored(calls),
            [
                "rename a kept-by-the-replay-6",
                "rename b kept-by-the-replay-5",
                "rename new/d/long kept-by-the-replay-2",
                "rename new/d/short kept-by-the-replay-3",
                "unlink new/g",
                "rmdir new/d",
                "rmdir new",
                "rename kept-by-the-replay-5 a",
                "rename kept-by-the-replay-6 b",
                "mkdir d",
                "rename kept-by-the-replay-2 d/long",
                "open d/long",
                "cut d/long 100",
                "close d/long",
                "rename kept-by-the-replay-3 d/short",
                "open d/short",
                "write d/short 60 40",
                "close d/short",
                "create gone",
                "write gone 0 7",
                "close gone",
            ]
        );
    }
}
