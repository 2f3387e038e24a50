//! A file system with one file: the device.

use crate::answers::Answers;
use flashpath::run::shared::{Fault, ServeError, SharedDevice};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::fcntl::{FallocateFlags, OFlag};
use nix::unistd::{Gid, Uid};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const FILE: INodeNo = INodeNo(2);
/// The time for which the kernel may cache answers: attributes and names never change.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// The longest write that the kernel may send, in bytes.
const LONGEST_WRITE: u32 = 1 << 20;
/// Requests that the kernel may send ahead.
const MOST_AHEAD: u16 = 128;
/// A unit of `st_blocks`.
const SECTOR_BYTES: u64 = 512;
const BLOCK_BYTES: u32 = 4096;
/// Bytes that are filled with zeros in one turn at the device.
const ZEROS_AT_ONCE: u64 = 4 << 20;
/// The values of `whence` (`linux/fs.h`).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

thread_local! {
    /// The buffer of reads: no request allocates memory.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file system with one file.
pub struct OneFile {
    device: Arc<SharedDevice>,
    name: OsString,
    answers: Answers,
    mounted_at: SystemTime,
    owner: (u32, u32),
}

fn errno(error: &ServeError) -> Errno {
    match error.fault() {
        Fault::Invalid => Errno::EINVAL,
        Fault::BeyondEnd | Fault::NoSpace => Errno::ENOSPC,
        Fault::ReadOnly => Errno::EROFS,
        Fault::Unreadable | Fault::Failed => Errno::EIO,
    }
}

impl OneFile {
    /// The file system whose file is called `name`. Fails if the system cannot start a thread.
    pub fn new(device: Arc<SharedDevice>, name: &OsStr) -> io::Result<OneFile> {
        let answers = if device.sharing().paced {
            let clock = Arc::clone(&device);
            Answers::paced(move || clock.now())?
        } else {
            Answers::prompt()
        };
        let owner = (Uid::effective().as_raw(), Gid::effective().as_raw());
        Ok(OneFile { device, name: name.to_os_string(), answers, mounted_at: SystemTime::now(), owner })
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let size = self.device.size_bytes();
        let writable = if self.device.sharing().read_only { 0 } else { 0o200 };
        let (kind, perm, size, nlink) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o500, 0, 2),
            FILE => (FileType::RegularFile, 0o400 | writable, size, 1),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / SECTOR_BYTES,
            atime: self.mounted_at,
            mtime: self.mounted_at,
            ctime: self.mounted_at,
            crtime: self.mounted_at,
            kind,
            perm,
            nlink,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }

    /// The length of the part of a range that lies within the file.
    fn clipped(&self, offset: u64, length: u64) -> u64 {
        length.min(self.device.size_bytes().saturating_sub(offset))
    }

    fn allocate(&self, offset: u64, length: u64, mode: i32) -> Result<flashpath::time::Time, Errno> {
        let mode = FallocateFlags::from_bits(mode).ok_or(Errno::EOPNOTSUPP)?;
        let keeps_size = mode.contains(FallocateFlags::FALLOC_FL_KEEP_SIZE);
        let what = mode - FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let size = self.device.size_bytes();
        let end = offset.checked_add(length).ok_or(Errno::EINVAL)?;
        if end > size && !keeps_size {
            return Err(Errno::ENOSPC);
        }
        let length = self.clipped(offset, length);
        let fail = |error| errno(&error);
        if what == FallocateFlags::FALLOC_FL_PUNCH_HOLE {
            self.device.write_zeroes(offset, length, false, false).map_err(fail)
        } else if what == FallocateFlags::FALLOC_FL_ZERO_RANGE {
            self.write_zeros(offset, length).map_err(fail)
        } else if what.is_empty() && end <= size {
            // Every block of a device is reserved already.
            Ok(self.device.now())
        } else {
            Err(Errno::EOPNOTSUPP)
        }
    }

    /// Writes zeros in pieces, so that other requests are served in between.
    fn write_zeros(&self, mut offset: u64, mut length: u64) -> Result<flashpath::time::Time, ServeError> {
        let mut done = self.device.now();
        while length > 0 {
            let piece = length.min(ZEROS_AT_ONCE);
            done = done.max(self.device.write_zeroes(offset, piece, true, false)?);
            (offset, length) = (offset + piece, length - piece);
        }
        Ok(done)
    }

    /// The next place from `offset` on that is stored, or is not; the end of the file counts as not stored.
    fn seek(&self, offset: i64, stored: bool) -> Result<i64, Errno> {
        let size = self.device.size_bytes();
        let mut offset = u64::try_from(offset).ok().filter(|offset| *offset < size).ok_or(Errno::ENXIO)?;
        while offset < size {
            let extent = self.device.extent(offset, size - offset).map_err(|error| errno(&error))?;
            if extent.is_stored == stored {
                return i64::try_from(offset).map_err(|_| Errno::EINVAL);
            }
            offset += extent.length;
        }
        if stored { Err(Errno::ENXIO) } else { i64::try_from(size).map_err(|_| Errno::EINVAL) }
    }

    /// Why names and attributes stay as they are: a file system of the kernel whose entries are fixed says the same.
    fn refusal(&self) -> Errno {
        if self.device.sharing().read_only { Errno::EROFS } else { Errno::EPERM }
    }

    fn empty(&self, result: Result<flashpath::time::Time, Errno>, reply: ReplyEmpty) {
        match result {
            Ok(done) => self.answers.send(done, 0, move || reply.ok()),
            Err(error) => reply.error(error),
        }
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What a kernel does not know it goes without: it is slower then, and no more. Who writes a disk asynchronously
        // past the page cache has it for himself: that others read it through the cache meanwhile is not provided for.
        let _ = config.set_max_write(LONGEST_WRITE);
        let _ = config.set_max_background(MOST_AHEAD);
        for wish in [InitFlags::FUSE_ASYNC_READ, InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_PARALLEL_DIROPS] {
            let _ = config.add_capabilities(wish);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attributes) if parent == INodeNo::ROOT && name == self.name => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// As on a block device, the size cannot be changed, and opening with O_TRUNC (which has no handle) changes
    /// nothing.
    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let is_truncating_open = size == Some(0) && handle.is_none();
        match self.attributes(inode) {
            None => reply.error(Errno::ENOENT),
            Some(_) if mode.is_some() || uid.is_some() || gid.is_some() => reply.error(self.refusal()),
            Some(attributes) if size.is_none_or(|size| size == attributes.size) || is_truncating_open => {
                reply.attr(&FOREVER, &attributes);
            }
            Some(_) => reply.error(Errno::EINVAL),
        }
    }

    fn open(&self, _request: &Request, _inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let writes = flags.acc_mode() != fuser::OpenAccMode::O_RDONLY;
        if writes && self.device.sharing().read_only {
            return reply.error(Errno::EROFS);
        }
        // Only this file system changes the file, so that what the kernel has cached stays right.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = self.clipped(offset, u64::from(size)) as usize;
        if self.answers.are_paced() {
            let mut data = vec![0; length];
            return match self.device.read(offset, &mut data) {
                Ok(done) => self.answers.send(done, length, move || reply.data(&data)),
                Err(error) => reply.error(errno(&error)),
            };
        }
        READ_BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            match self.device.read(offset, &mut buffer[..length]) {
                Ok(_) => reply.data(&buffer[..length]),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = self.clipped(offset, data.len() as u64) as usize;
        if length == 0 && !data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let durable = OFlag::from_bits_retain(flags.0).contains(OFlag::O_DSYNC);
        match self.device.write(offset, &data[..length], durable) {
            Ok(done) => self.answers.send(done, 0, move || reply.written(length as u32)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fsync(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.empty(self.device.flush().map_err(|error| errno(&error)), reply);
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.empty(self.allocate(offset, length, mode), reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let found = match whence {
            SEEK_DATA => self.seek(offset, true),
            SEEK_HOLE => self.seek(offset, false),
            _ => Err(Errno::EINVAL),
        };
        match found {
            Ok(offset) => reply.offset(offset),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, OsStr::new(".")),
            (INodeNo::ROOT, FileType::Directory, OsStr::new("..")),
            (FILE, FileType::RegularFile, &self.name),
        ];
        for (index, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(inode, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let blocks = self.device.size_bytes() / u64::from(BLOCK_BYTES);
        reply.statfs(blocks, 0, 0, 2, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn create(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(self.refusal());
    }

    fn mkdir(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, _mode: u32, _umask: u32, reply: ReplyEntry) {
        reply.error(self.refusal());
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(self.refusal());
    }
    fn rmdir(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(self.refusal());
    }

    fn mknod(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(self.refusal());
    }

    fn symlink(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, _target: &Path, reply: ReplyEntry) {
        reply.error(self.refusal());
    }

    fn link(&self, _request: &Request, _inode: INodeNo, _parent: INodeNo, _name: &OsStr, reply: ReplyEntry) {
        reply.error(self.refusal());
    }

    fn rename(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(self.refusal());
    }
}
