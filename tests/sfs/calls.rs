//! A call as a value: made on the volume, and applied to the model.

use super::model::split;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{Change, FileKind, IfExists, InodeNumber, NewFile, Sfs, SfsError};
use flashpath::task::Task;

/// A call. Paths begin with '/'; the root is "".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Create(String),
    MakeDirectory(String),
    Symlink(String, usize),
    Write {
        path: String,
        offset: u64,
        length: u64,
    },
    Truncate(String, u64),
    Punch {
        path: String,
        offset: u64,
        length: u64,
    },
    Allocate {
        path: String,
        offset: u64,
        length: u64,
        keeps_size: bool,
    },
    /// fallocate's ZERO_RANGE, as a mounted volume implements it.
    ZeroRange {
        path: String,
        offset: u64,
        length: u64,
        keeps_size: bool,
    },
    Link(String, String),
    Unlink(String),
    RemoveDirectory(String),
    Rename(String, String),
    Exchange(String, String),
    /// A rename that leaves a whiteout under the old name.
    Whiteout(String, String),
    SetAttribute(String, &'static str, usize),
    SyncFile(String, Durable),
    Sync,
    /// Advances the clock by this many milliseconds, and does the background work that is due.
    Wait(u64),
}

/// The bytes that call number `step` writes at an offset of a file: different for each call and block.
pub fn written(step: u64, offset: u64, length: u64) -> Vec<u8> {
    // Every other call writes bytes that cannot be compressed.
    let factor = if step.is_multiple_of(2) { 0 } else { 0x9e37_79b9_7f4a_7c15 };
    (offset..offset + length)
        .map(|at| {
            let word = (step << 20) ^ (at / 4096) ^ 0xa5 << 56;
            let noise = (word ^ (at / 8)).wrapping_mul(factor);
            (word ^ noise ^ noise >> 29).to_le_bytes()[(at % 8) as usize]
        })
        .collect()
}

/// The target of a symbolic link made by call number `step`.
pub fn target(step: u64, length: usize) -> Vec<u8> {
    format!("{step}-").bytes().cycle().take(length).collect()
}

/// The value of an attribute set by call number `step`.
pub fn value(step: u64, length: usize) -> Vec<u8> {
    target(step, length)
}

fn new_file(kind: FileKind, target: &[u8]) -> NewFile<'_> {
    NewFile { kind, permissions: 0o644, user: 1, group: 2, device: 0, target, attributes: &[] }
}

/// The inode of a path.
pub fn find(task: &Task<'_>, sfs: &mut Sfs, path: &str) -> Result<InodeNumber, SfsError> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .try_fold(InodeNumber::ROOT, |directory, name| sfs.lookup(task, directory, name.as_bytes()))
}

fn place<'a>(task: &Task<'_>, sfs: &mut Sfs, path: &'a str) -> Result<(InodeNumber, &'a [u8]), SfsError> {
    let (directory, name) = split(path);
    Ok((find(task, sfs, directory)?, name.as_bytes()))
}

impl Call {
    /// Makes call number `step`. Returns the new inode, if it creates one.
    pub fn run(&self, task: &Task<'_>, sfs: &mut Sfs, step: u64) -> Result<Option<InodeNumber>, SfsError> {
        task.wait_until(task.now() + 1_000_000);
        let mut make = |path: &str, kind, target: &[u8]| {
            let (directory, name) = place(task, sfs, path)?;
            sfs.make(task, directory, name, &new_file(kind, target)).map(Some)
        };
        match self {
            Call::Create(path) => return make(path, FileKind::Regular, b""),
            Call::MakeDirectory(path) => return make(path, FileKind::Directory, b""),
            Call::Symlink(path, length) => return make(path, FileKind::Symlink, &target(step, *length)),
            Call::Write { path, offset, length } => {
                let inode = find(task, sfs, path)?;
                sfs.write(task, inode, *offset, &written(step, *offset, *length))?;
            }
            Call::Truncate(path, size) => {
                let inode = find(task, sfs, path)?;
                sfs.change(task, inode, &Change { size: Some(*size), ..Change::default() })?;
            }
            Call::Punch { path, offset, length } => {
                let inode = find(task, sfs, path)?;
                sfs.punch(task, inode, *offset, *length)?;
            }
            Call::Allocate { path, offset, length, keeps_size } => {
                let inode = find(task, sfs, path)?;
                sfs.allocate(task, inode, *offset, *length, *keeps_size)?;
            }
            Call::ZeroRange { path, offset, length, keeps_size } => {
                let inode = find(task, sfs, path)?;
                sfs.punch(task, inode, *offset, *length)?;
                sfs.allocate(task, inode, *offset, *length, *keeps_size)?;
            }
            Call::Link(from, to) => {
                let inode = find(task, sfs, from)?;
                let (directory, name) = place(task, sfs, to)?;
                sfs.link(task, inode, directory, name)?;
            }
            Call::Unlink(path) => {
                let (directory, name) = place(task, sfs, path)?;
                sfs.unlink(task, directory, name)?;
            }
            Call::RemoveDirectory(path) => {
                let (directory, name) = place(task, sfs, path)?;
                sfs.remove_directory(task, directory, name)?;
            }
            Call::Rename(from, to) | Call::Exchange(from, to) => {
                let taken = if matches!(self, Call::Rename(..)) { IfExists::Replace } else { IfExists::Exchange };
                let (from, to) = (place(task, sfs, from)?, place(task, sfs, to)?);
                sfs.rename(task, from, to, taken)?;
            }
            Call::Whiteout(from, to) => {
                let (from, to) = (place(task, sfs, from)?, place(task, sfs, to)?);
                sfs.rename_with_whiteout(task, from, to, IfExists::Replace, (1, 2))?;
            }
            Call::SetAttribute(path, name, length) => {
                let inode = find(task, sfs, path)?;
                sfs.set_extended_attribute(task, inode, name.as_bytes(), &value(step, *length), None)?;
            }
            Call::SyncFile(path, what) => {
                let inode = find(task, sfs, path)?;
                sfs.sync_file(task, inode, *what)?;
            }
            Call::Sync => sfs.sync(task)?,
            Call::Wait(milliseconds) => {
                task.wait_until(task.now() + milliseconds * 1_000_000);
                sfs.work(task)?;
            }
        }
        Ok(None)
    }
}
