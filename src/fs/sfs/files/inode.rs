//! An inode in memory, and its image in the inode file.

use crate::fs::sfs::files::attributes::{Attributes, FileKind, InodeNumber, Timestamp};
use crate::fs::sfs::files::directory::Index;
use crate::fs::sfs::media::format::{InodeImage, ROOTS};
use crate::fs::sfs::placement::{Hint, History, Tick};
use crate::fs::volume::Times;
use zerocopy::FromZeros;
use zerocopy::little_endian::U64;

/// An inode in memory.
#[derive(Debug)]
pub(in crate::fs::sfs) struct Inode {
    pub number: u64,
    pub generation: u32,
    pub kind: FileKind,
    pub permissions: u16,
    pub links: u32,
    pub user: u32,
    pub group: u32,
    pub device: u64,
    pub size: u64,
    pub blocks: u64,
    pub times: Times,
    /// W_f and T^m_f.
    pub history: History,
    /// The lifetime that the file's name states. It is that of the name under which the file was made, or renamed last.
    pub hint: Hint,
    /// The virtual block of extended attributes; 0 if none.
    pub attributes: u64,
    /// The parent of a directory.
    pub parent: u64,
    /// Levels of map blocks below the roots.
    pub levels: u8,
    pub roots: [u64; ROOTS],
    /// The size at the last time that all data was durable: a crash must not leave holes below it.
    pub safe_size: u64,
    /// True if it differs from the inode file.
    pub is_dirty: bool,
    /// True if it was used since the last eviction.
    pub is_used: bool,
    /// True if more than its access time changed since the last log record or checkpoint.
    pub is_unlogged: bool,
    /// The index of a directory, once built.
    pub index: Option<Box<Index>>,
}

impl Inode {
    /// A new inode.
    pub fn new(number: u64, generation: u32, kind: FileKind, now: Timestamp) -> Inode {
        Inode {
            number,
            generation,
            kind,
            permissions: 0,
            links: 0,
            user: 0,
            group: 0,
            device: 0,
            size: 0,
            blocks: 0,
            times: Times::made(now),
            history: History::default(),
            hint: Hint::None,
            attributes: 0,
            parent: 0,
            levels: 0,
            roots: [0; ROOTS],
            safe_size: 0,
            is_dirty: true,
            is_used: true,
            is_unlogged: true,
            index: None,
        }
    }

    /// Decodes an image; `None` if the inode is free or its kind is invalid.
    pub fn of_image(image: &InodeImage) -> Option<Inode> {
        if image.number.get() == 0 {
            return None;
        }
        Some(Inode {
            number: image.number.get(),
            generation: image.generation.get(),
            kind: FileKind::of_number(image.kind)?,
            permissions: image.permissions.get() & 0o7777,
            links: image.links.get(),
            user: image.user.get(),
            group: image.group.get(),
            device: image.device.get(),
            size: image.size.get(),
            blocks: image.blocks.get(),
            times: times_of(image),
            history: History { writes: image.writes.get(), modified: Tick(image.written.get()) },
            hint: Hint::of_number(image.hint),
            attributes: image.attributes.get(),
            parent: image.parent.get(),
            levels: image.levels,
            roots: image.roots.map(|root| root.get()),
            safe_size: image.size.get(),
            is_dirty: false,
            is_used: true,
            is_unlogged: false,
            index: None,
        })
    }

    /// The image for the inode file.
    pub fn image(&self, next: u64) -> InodeImage {
        InodeImage {
            number: self.number.into(),
            generation: self.generation.into(),
            kind: self.kind as u8,
            levels: self.levels,
            permissions: self.permissions.into(),
            links: self.links.into(),
            user: self.user.into(),
            group: self.group.into(),
            device: self.device.into(),
            size: self.size.into(),
            blocks: self.blocks.into(),
            accessed: self.times.accessed.0.into(),
            modified: self.times.modified.0.into(),
            changed: self.times.changed.0.into(),
            created: self.times.created.0.into(),
            writes: self.history.writes.into(),
            written: self.history.modified.0.into(),
            hint: self.hint as u8,
            attributes: self.attributes.into(),
            parent: self.parent.into(),
            next: next.into(),
            roots: self.roots.map(U64::new),
            ..InodeImage::new_zeroed()
        }
    }

    /// Applies an image from the log: all fields except the block pointers.
    pub fn take(&mut self, image: &InodeImage) {
        self.permissions = image.permissions.get() & 0o7777;
        self.links = image.links.get();
        self.user = image.user.get();
        self.group = image.group.get();
        self.device = image.device.get();
        self.times = times_of(image);
        self.parent = image.parent.get();
        self.hint = Hint::of_number(image.hint);
        if self.kind != FileKind::Directory {
            self.size = image.size.get();
        }
    }

    /// The attributes that callers see.
    pub fn attributes(&self) -> Attributes {
        Attributes {
            inode: InodeNumber(self.number),
            generation: self.generation,
            kind: self.kind,
            permissions: self.permissions,
            links: self.links,
            user: self.user,
            group: self.group,
            device: self.device,
            size: self.size,
            blocks: self.blocks,
            times: self.times,
        }
    }

    /// True if its blocks hold metadata.
    pub fn holds_metadata(&self) -> bool {
        self.kind != FileKind::Regular
    }
}

fn times_of(image: &InodeImage) -> Times {
    Times {
        accessed: Timestamp(image.accessed.get()),
        modified: Timestamp(image.modified.get()),
        changed: Timestamp(image.changed.get()),
        created: Timestamp(image.created.get()),
    }
}
