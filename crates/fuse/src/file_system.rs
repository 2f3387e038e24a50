//! The requests to a mounted volume, and their answers.
//!
//! The volume has one writer, which is this mount: what the kernel was told stays true until the kernel itself asks for
//! a change, and it may keep it for as long as it likes, names that are not there too. Open files have no state here:
//! an inode is held from the first lookup until the kernel forgets it.

use crate::answers::Answers;
use crate::asked::{allocation, must_exist, new_time, renaming, seek};
use crate::attributes::{kind_of_mode, system_attributes, system_kind, timestamp};
use crate::caller::as_caller;
use flashpath::fs::Durable;
use flashpath::fs::posix::{Made, Posix, Wish};
use flashpath::fs::volume::{Attributes, Call, Caller, FileKind, Hold, InodeNumber, VolumeError};
use flashpath::run::shared::{CallError, SharedVolume};
use flashpath::time::Time;
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use nix::fcntl::OFlag;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The time for which the kernel may keep what it is told.
const LONG: Duration = Duration::from_secs(3600);
/// The longest write that the kernel may send, in bytes.
const LONGEST_WRITE: u32 = 1 << 20;
/// Requests that the kernel may send ahead.
const MOST_AHEAD: u16 = 64;
const BLOCK_BYTES: u32 = 4096;
const LONGEST_NAME: u32 = 255;

/// Optional abilities of the kernel, which the volume is right without.
///
/// `FUSE_ASYNC_DIO` is not among them: with it the kernel answers a program's asynchronous O_DIRECT write without
/// taking out of its page cache what others have read meanwhile, and everyone finds old bytes there from then on. To
/// invalidate these pages from here before each answer hangs: who reads them holds them locked and waits for a place
/// among the requests in the background, which the unanswered writes take.
const WISHES: [InitFlags; 11] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_EXPORT_SUPPORT,
    InitFlags::FUSE_POSIX_ACL,
    InitFlags::FUSE_DONT_MASK,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_NO_OPEN_SUPPORT,
    InitFlags::FUSE_NO_OPENDIR_SUPPORT,
];

thread_local! {
    /// The buffer of reads, so that no request begins with fresh memory.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The place where writes wait until they are sent here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Nowhere: each write is a request.
    #[default]
    WriteThrough,
    /// In the kernel's page cache.
    WriteBack,
}

/// A mounted volume, as the kernel sees it.
pub struct FileSystem {
    volume: Arc<SharedVolume>,
    answers: Answers,
    caching: Caching,
    /// Whether the kernel takes "there is nothing to do" for an answer to open, and asks no more.
    opens_without_asking: bool,
    opens_directories_without_asking: bool,
}

impl FileSystem {
    /// One on this volume. Fails if the system starts no thread.
    pub fn new(volume: Arc<SharedVolume>, caching: Caching) -> io::Result<FileSystem> {
        let answers = if volume.sharing().paced {
            let clock = Arc::clone(&volume);
            Answers::paced(move || clock.now())?
        } else {
            Answers::prompt()
        };
        let (opens_without_asking, opens_directories_without_asking) = (false, false);
        Ok(FileSystem { volume, answers, caching, opens_without_asking, opens_directories_without_asking })
    }

    /// Makes a call to the volume for whoever makes the request. Answers with the time at which it is done.
    fn call<T>(
        &self,
        request: &Request,
        act: impl FnOnce(&Posix, &Call) -> Result<T, VolumeError>,
    ) -> Result<(T, Time), Errno> {
        as_caller(request, 0, |caller| self.volume.call(caller, act)).map_err(errno)
    }

    fn empty(&self, request: &Request, reply: ReplyEmpty, act: impl FnOnce(&Posix, &Call) -> Result<(), VolumeError>) {
        match self.call(request, act) {
            Ok(((), done)) => self.answers.send(done, 0, move || reply.ok()),
            Err(errno) => reply.error(errno),
        }
    }

    fn entry(&self, reply: ReplyEntry, found: Result<(Option<Attributes>, Time), Errno>) {
        match found {
            Ok((Some(attributes), done)) => self.answers.send(done, 0, move || {
                reply.entry(&LONG, &system_attributes(&attributes), generation(&attributes));
            }),
            // An entry with the inode 0 is one that the kernel may believe is not there.
            Ok((None, done)) => self.answers.send(done, 0, move || reply.entry(&LONG, &NOTHING, Generation(0))),
            Err(errno) => reply.error(errno),
        }
    }

    /// Makes a file, which the kernel knows from now on.
    fn make(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        made: &Made,
        umask: u32,
    ) -> Result<(Attributes, Time), Errno> {
        let name = (inode(parent), name.as_bytes());
        let make = |posix: &Posix, call: &Call| posix.make(call, name, made, Hold::Yes);
        as_caller(request, umask, |caller| self.volume.call(caller, make)).map_err(errno)
    }

    fn made(&self, reply: ReplyEntry, made: Result<(Attributes, Time), Errno>) {
        self.entry(reply, made.map(|(attributes, done)| (Some(attributes), done)));
    }

    fn attributes(&self, reply: ReplyAttr, found: Result<(Attributes, Time), Errno>) {
        match found {
            Ok((attributes, done)) => {
                self.answers.send(done, 0, move || reply.attr(&LONG, &system_attributes(&attributes)));
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// Answers with bytes, or, if none fit, with their number.
    fn extended(&self, size: u32, reply: ReplyXattr, found: Result<(Vec<u8>, Time), Errno>) {
        match found {
            Err(errno) => reply.error(errno),
            Ok((bytes, done)) => self.answers.send(done, bytes.len(), move || match u32::try_from(bytes.len()) {
                Ok(length) if size == 0 => reply.size(length),
                Ok(length) if length <= size => reply.data(&bytes),
                _ => reply.error(Errno::ERANGE),
            }),
        }
    }

    fn opened(&self, without_asking: bool, more: FopenFlags, reply: ReplyOpen) {
        if without_asking {
            return reply.error(Errno::ENOSYS);
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE | more);
    }
}

const NOTHING: FileAttr = FileAttr {
    ino: INodeNo(0),
    size: 0,
    blocks: 0,
    atime: SystemTime::UNIX_EPOCH,
    mtime: SystemTime::UNIX_EPOCH,
    ctime: SystemTime::UNIX_EPOCH,
    crtime: SystemTime::UNIX_EPOCH,
    kind: fuser::FileType::RegularFile,
    perm: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    rdev: 0,
    blksize: BLOCK_BYTES,
    flags: 0,
};

fn inode(number: INodeNo) -> InodeNumber {
    InodeNumber(number.0)
}

/// The generation, as it is answered. The kernel takes no other root than one of generation 0.
fn generation(attributes: &Attributes) -> Generation {
    Generation(if attributes.inode == InodeNumber::ROOT { 0 } else { u64::from(attributes.generation) })
}

fn owner(request: &Request) -> (u32, u32) {
    (request.uid(), request.gid())
}

fn errno(error: CallError) -> Errno {
    Errno::from_i32(error.errno().raw_os_error())
}

fn durable(only_data: bool) -> Durable {
    if only_data { Durable::Data } else { Durable::All }
}

fn has(flags: OpenFlags, flag: OFlag) -> bool {
    OFlag::from_bits_retain(flags.0).contains(flag)
}

impl Filesystem for FileSystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What a kernel does not know it goes without: it is slower then, and no more.
        let _ = config.set_max_write(LONGEST_WRITE);
        let _ = config.set_max_background(MOST_AHEAD);
        for wish in WISHES {
            let _ = config.add_capabilities(wish);
        }
        let offered = config.capabilities();
        self.opens_without_asking = offered.contains(InitFlags::FUSE_NO_OPEN_SUPPORT);
        self.opens_directories_without_asking = offered.contains(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        if self.caching == Caching::WriteBack {
            let refused = |_| io::Error::from_raw_os_error(Errno::EOPNOTSUPP.code());
            config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE).map_err(refused)?;
        }
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = (inode(parent), name.as_bytes());
        self.entry(reply, self.call(request, |posix, call| posix.lookup(call, name, Hold::Yes)));
    }

    fn forget(&self, request: &Request, number: INodeNo, times: u64) {
        // There is no answer; what went wrong was told.
        let _ = self.call(request, |posix, call| posix.forget(call, inode(number), times));
    }

    fn getattr(&self, request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        self.attributes(reply, self.call(request, |posix, call| posix.attributes(call, inode(number))));
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _change_time: Option<SystemTime>,
        _backup_time: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let wish = Wish {
            mode,
            user,
            group,
            size,
            is_open: handle.is_some(),
            accessed: accessed.map(new_time),
            modified: modified.map(new_time),
            changed: changed.map(timestamp),
        };
        self.attributes(reply, self.call(request, |posix, call| posix.change(call, inode(number), &wish)));
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        match self.call(request, |posix, call| posix.target(call, inode(number))) {
            Ok((target, done)) => self.answers.send(done, target.len(), move || reply.data(&target)),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let Some(kind) = kind_of_mode(mode) else { return reply.error(Errno::EINVAL) };
        let device = if matches!(kind, FileKind::CharacterDevice | FileKind::BlockDevice) { device } else { 0 };
        let made = Made { kind, mode, device, target: &[] };
        self.made(reply, self.make(request, (parent, name), &made, umask));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = Made { kind: FileKind::Directory, mode, device: 0, target: &[] };
        self.made(reply, self.make(request, (parent, name), &made, umask));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        let made = Made { kind: FileKind::Symlink, mode: 0o777, device: 0, target };
        self.made(reply, self.make(request, (parent, name), &made, 0));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = Made { kind: FileKind::Regular, mode, device: 0, target: &[] };
        match self.make(request, (parent, name), &made, umask) {
            Ok((attributes, done)) => self.answers.send(done, 0, move || {
                let (system, generation) = (system_attributes(&attributes), generation(&attributes));
                reply.created(&LONG, &system, generation, FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(request, reply, |posix, call| posix.unlink(call, (inode(parent), name.as_bytes())));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(request, reply, |posix, call| posix.remove_directory(call, (inode(parent), name.as_bytes())));
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((inode(parent), name.as_bytes()), (inode(new_parent), new_name.as_bytes()));
        match renaming(flags, owner(request)) {
            Ok(how) => self.empty(request, reply, |posix, call| posix.rename(call, from, to, how)),
            Err(errno) => reply.error(errno),
        }
    }

    fn link(&self, request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = (inode(parent), name.as_bytes());
        self.made(reply, self.call(request, |posix, call| posix.link(call, inode(number), name, Hold::Yes)));
    }

    /// Nothing needs to be known of an open file. O_TRUNC comes as a setattr, O_APPEND is the kernel's to do, and
    /// O_DIRECT too: it goes past the page cache and keeps it right, which `FOPEN_DIRECT_IO` would not on every kernel.
    fn open(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.opened(self.opens_without_asking, FopenFlags::empty(), reply);
    }

    fn opendir(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.opened(self.opens_directories_without_asking, FopenFlags::FOPEN_CACHE_DIR, reply);
    }

    /// A close has nothing to do either, and the kernel stops asking: it would wait for an answer at each close, of a
    /// file that was only read, too.
    fn flush(&self, _request: &Request, _number: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    /// Nobody waits for this. It comes for files that were opened by making them: the kernel has asked for no other
    /// open.
    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.volume.closed();
        reply.ok();
    }

    fn read(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let is_silent = has(flags, OFlag::O_NOATIME);
        let read = |bytes: &mut [u8]| {
            let read = self.call(request, |posix, call| posix.read(call, inode(number), offset, bytes, is_silent));
            read.inspect(|(length, _)| self.volume.moved(*length as u64, 0))
        };
        if self.answers.are_late() {
            let mut bytes = vec![0; size as usize];
            return match read(&mut bytes) {
                Ok((length, done)) => self.answers.send(done, length, move || reply.data(&bytes[..length])),
                Err(errno) => reply.error(errno),
            };
        }
        READ_BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            match read(&mut buffer[..size as usize]) {
                Ok((length, _)) => reply.data(&buffer[..length]),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // Here the kernel says itself who may leave set-id bits where they are.
        let keeps_set_id = !write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let is_durable = has(flags, OFlag::O_DSYNC) && !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let length = data.len() as u32;
        let write = |posix: &Posix, call: &Call| posix.write(call, inode(number), offset, data, is_durable);
        let written = as_caller(request, 0, |caller| self.volume.call(Caller { keeps_set_id, ..caller }, write));
        match written.map_err(errno) {
            Ok(((), done)) => {
                self.volume.moved(0, u64::from(length));
                self.answers.send(done, 0, move || reply.written(length));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync(&self, request: &Request, number: INodeNo, _handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.empty(request, reply, |posix, call| posix.sync_file(call, inode(number), durable(only_data)));
    }

    fn fsyncdir(&self, request: &Request, number: INodeNo, _handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.empty(request, reply, |posix, call| posix.sync_file(call, inode(number), durable(only_data)));
    }

    fn fallocate(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match allocation(mode) {
            Ok(how) => {
                self.empty(request, reply, |posix, call| posix.allocate(call, inode(number), (offset, length), how))
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn lseek(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        if self.caching == Caching::WriteBack {
            // What waits in the page cache is not known here: the kernel takes the file for one without holes.
            return reply.error(Errno::ENOSYS);
        }
        let sought = seek(offset, whence)
            .and_then(|(offset, what)| self.call(request, |posix, call| posix.seek(call, inode(number), offset, what)));
        match sought {
            Ok((Some(offset), done)) => match i64::try_from(offset) {
                Ok(offset) => self.answers.send(done, 0, move || reply.offset(offset)),
                Err(_) => reply.error(Errno::EOVERFLOW),
            },
            Ok((None, _)) => reply.error(Errno::ENXIO),
            Err(errno) => reply.error(errno),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _from_handle: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _to_handle: FileHandle,
        to_offset: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let (from, to) = ((inode(from), from_offset), (inode(to), to_offset));
        match self.call(request, |posix, call| posix.copy(call, from, to, length)) {
            Ok((copied, done)) => {
                self.volume.moved(u64::from(copied), u64::from(copied));
                self.answers.send(done, 0, move || reply.written(copied));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, request: &Request, number: INodeNo, _handle: FileHandle, from: u64, mut reply: ReplyDirectory) {
        let mut bytes = 0;
        let listed = self.call(request, |posix, call| {
            posix.list(call, inode(number), from, &mut |entry| {
                bytes += entry.name.len();
                let number = INodeNo(entry.inode.0);
                !reply.add(number, entry.next, system_kind(entry.kind), OsStr::from_bytes(entry.name))
            })
        });
        match listed {
            Ok(((), done)) => self.answers.send(done, bytes, move || reply.ok()),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut bytes = 0;
        let listed = self.call(request, |posix, call| {
            posix.list_with_attributes(call, inode(number), from, &mut |full| {
                let (entry, attributes) = (&full.entry, &full.attributes);
                bytes += size_of::<FileAttr>() + entry.name.len();
                let (system, generation) = (system_attributes(attributes), generation(attributes));
                !reply.add(system.ino, entry.next, OsStr::from_bytes(entry.name), &LONG, &system, generation)
            })
        });
        match listed {
            Ok(((), done)) => self.answers.send(done, bytes, move || reply.ok()),
            Err(errno) => reply.error(errno),
        }
    }

    fn statfs(&self, request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        match self.call(request, Posix::space) {
            Ok((space, done)) => self.answers.send(done, 0, move || {
                let (free, available) = (space.free_blocks, space.available_blocks);
                let (inodes, free_inodes) = (space.inodes, space.free_inodes);
                reply.statfs(
                    space.blocks,
                    free,
                    available,
                    inodes,
                    free_inodes,
                    BLOCK_BYTES,
                    LONGEST_NAME,
                    BLOCK_BYTES,
                );
            }),
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        match must_exist(flags) {
            Ok(exists) => self.empty(request, reply, |posix, call| {
                posix.set_extended_attribute(call, inode(number), name.as_bytes(), value, exists)
            }),
            Err(errno) => reply.error(errno),
        }
    }

    fn getxattr(&self, request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let get = |posix: &Posix, call: &Call| posix.extended_attribute(call, inode(number), name.as_bytes());
        self.extended(size, reply, self.call(request, get));
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let list = |posix: &Posix, call: &Call| posix.extended_attributes(call, inode(number));
        self.extended(size, reply, self.call(request, list));
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes();
        self.empty(request, reply, |posix, call| posix.remove_extended_attribute(call, inode(number), name));
    }
}
