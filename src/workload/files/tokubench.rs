//! `tokubench`: creates many small files in a tree of directories, as the benchmark of that name in BetrFS's suite does
//! (`benchmark-fs-threaded.c`), and O-JFS's evaluation after it.
//!
//! A tree for n files has one directory if n is at most `children`; else `children` subdirectories, each for n /
//! `children` files, but `children` at least. All leaves are equally deep. They are shuffled and divided among the
//! threads; each thread creates its files in its leaves in rotation. A file gets a name of 64 random bits, `count`
//! writes of `iosize`, and no fsync.

use super::contents::mix;
use super::{FileOperation, Lane, Name, Parts, Stage, part, push_writes, share_of};
use crate::expression::Settings;
use crate::random::Random;
use crate::workload::WorkloadError;
use crate::workload::draw::permutation::Permutation;
use std::fmt::Write;
use std::ops::Range;

const STAGES: &[Stage] = &[Stage { name: "directories", counted: false }, Stage { name: "files", counted: true }];

pub(super) fn lanes(settings: &Settings, seed: u64) -> Parts {
    let threads = settings.count("threads");
    let files = settings.count("files");
    let tree = Tree::new(files, settings.count("children"));
    let shuffled = Permutation::new(tree.leaves, &mut Random::new(seed, "tokubench leaves"));
    let lane = |lane| {
        let files = share_of(files, lane, threads);
        let own = share_of(tree.leaves, lane, threads);
        Box::new(Tokubench {
            directories: if lane == 0 { 0..tree.directories } else { 0..0 },
            next: files.start,
            files,
            // With fewer leaves than threads, threads share leaves, but never files.
            leaves: if own.is_empty() { own.start..own.start + 1 } else { own },
            tree,
            shuffled: shuffled.clone(),
            name_key: Random::new(seed, "tokubench names").bits(),
            io_bytes: settings.size("iosize"),
            file_bytes: settings.size("iosize") * settings.count("count"),
        }) as _
    };
    (STAGES, (0..threads).map(lane).collect())
}

/// The directories, numbered level by level from the root: the subdirectories of k begin at `children` k + 1. The last
/// level are the leaves.
#[derive(Clone, Copy, Debug)]
struct Tree {
    children: u64,
    directories: u64,
    leaves: u64,
}

impl Tree {
    fn new(files: u64, children: u64) -> Tree {
        let mut tree = Tree { children, directories: 1, leaves: 1 };
        let mut files = files;
        while files > children {
            tree.leaves *= children;
            tree.directories += tree.leaves;
            files = (files / children).max(children);
        }
        tree
    }

    fn write_path(&self, directory: u64, path: &mut String) {
        if directory == 0 {
            path.push_str("tokubench");
        } else {
            self.write_path((directory - 1) / self.children, path);
            // Writing to a String cannot fail.
            let _ = write!(path, "/benchdir.{}", (directory - 1) % self.children);
        }
    }
}

/// A thread of tokubench. Names are the directories, then the files.
struct Tokubench {
    tree: Tree,
    shuffled: Permutation,
    name_key: u64,
    /// The directories still to be created.
    directories: Range<u64>,
    files: Range<u64>,
    next: u64,
    /// This lane's places in the shuffled leaves.
    leaves: Range<u64>,
    io_bytes: u64,
    file_bytes: u64,
}

impl Lane for Tokubench {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        if stage == 0 {
            let directory = self.directories.next();
            operations.extend(directory.map(FileOperation::MakeDirectory));
            return Ok(directory.is_some());
        }
        if self.next == self.files.end {
            return Ok(false);
        }
        let file = self.tree.directories + self.next;
        self.next += 1;
        operations.push(FileOperation::Create(file));
        push_writes(operations, file, 0..self.file_bytes, self.io_bytes, 0);
        operations.push(FileOperation::Close(file));
        Ok(true)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        let Some(file) = name.checked_sub(self.tree.directories) else { return self.tree.write_path(name, path) };
        let turn = (file - self.files.start) % (self.leaves.end - self.leaves.start);
        let first_leaf = self.tree.directories - self.tree.leaves;
        self.tree.write_path(first_leaf + self.shuffled.apply(self.leaves.start + turn), path);
        // Different files have different names: `mix` is a bijection.
        let _ = write!(path, "/benchfile.{}", mix(self.name_key ^ file));
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage {
            0 => part(self.directories.start, self.directories.end),
            _ => part(self.next - self.files.start, self.files.end - self.files.start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_leaves_that_the_recursion_gives_it() {
        // The counts by the recursive definition.
        fn count(files: u64, children: u64) -> (u64, u64) {
            if files <= children {
                return (1, 1);
            }
            let (directories, leaves) = count((files / children).max(children), children);
            (1 + children * directories, children * leaves)
        }
        for (files, children) in [(1, 2), (2, 2), (3, 2), (100, 100), (101, 100), (10_000, 7), (3_000_000, 128)] {
            let tree = Tree::new(files, children);
            assert_eq!((tree.directories, tree.leaves), count(files, children), "{files} {children}");
        }
    }
}
