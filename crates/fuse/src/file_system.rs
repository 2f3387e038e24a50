//! Requests to a mounted volume.
//!
//! This mount is the volume's only writer. So an answer stays valid until the kernel itself asks for a change, and the
//! kernel may cache it without limit, missing names included. Open files have no state here: an inode is held from its
//! first lookup until the kernel forgets it.

use crate::answers::Answers;
use crate::asked::{allocation, must_exist, new_time, renaming, seek};
use crate::attributes::{kind_of_mode, system_attributes, system_kind, timestamp};
use crate::caller::{caller, more_groups};
use crate::recorder::{self, Recorder};
use flashpath::fs::Durable;
use flashpath::fs::posix::{CreateRequest, Posix, SetAttributes};
use flashpath::fs::volume::{Attributes, Call, Caller, FileKind, Hold, IfExists, InodeNumber, VolumeError};
use flashpath::run::shared::{CallError, SharedVolume};
use flashpath::time::Time;
use flashpath::workload::files::recorded::format::Call as RecordedCall;
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

/// The time for which the kernel may cache answers.
const LONG: Duration = Duration::from_secs(3600);
/// The longest read or write that the kernel may send, in bytes. Each thread has a buffer for either.
const LONGEST_WRITE: u32 = 512 << 10;
/// Requests that the kernel may send ahead.
const MOST_AHEAD: u16 = 64;
/// The number of names from which on a directory is large: its listing has no attributes.
const LARGE_DIRECTORY: usize = 512;
const BLOCK_BYTES: u32 = 4096;
const LONGEST_NAME: u32 = 255;

/// Optional abilities of the kernel; the volume is correct without them.
///
/// `FUSE_ASYNC_DIO` is not among them. With it the kernel completes an asynchronous O_DIRECT write without invalidating
/// pages that were read meanwhile, and stale bytes stay in the page cache. Invalidating these pages from here before
/// each answer deadlocks: a reader holds them locked and waits for a place among the background requests, all of which
/// the unanswered writes take.
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
    /// The buffer of reads: no request allocates memory.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The place where writes wait until they are sent to the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Nowhere: each write is a request.
    #[default]
    WriteThrough,
    /// In the kernel's page cache.
    WriteBack,
}

/// A mounted volume as a FUSE file system.
pub struct FileSystem {
    volume: Arc<SharedVolume>,
    answers: Answers,
    caching: Caching,
    recorder: Option<Arc<Recorder>>,
    /// True if the kernel takes ENOSYS as an answer to open, and sends no more of them.
    opens_without_asking: bool,
    opens_directories_without_asking: bool,
}

impl FileSystem {
    /// The file system of a volume. Fails if the system cannot start a thread.
    pub fn new(volume: Arc<SharedVolume>, caching: Caching, recorder: Option<Arc<Recorder>>) -> io::Result<FileSystem> {
        let answers = if volume.sharing().paced {
            let clock = Arc::clone(&volume);
            Answers::paced(move || clock.now())?
        } else {
            Answers::prompt()
        };
        let (opens_without_asking, opens_directories_without_asking) = (false, false);
        Ok(FileSystem { volume, answers, caching, recorder, opens_without_asking, opens_directories_without_asking })
    }

    /// Makes a call to the volume for the caller of a request. Returns the result and its completion time.
    fn call<T>(
        &self,
        request: &Request,
        act: impl FnOnce(&Posix, &Call) -> Result<T, VolumeError>,
    ) -> Result<(T, Time), Errno> {
        self.volume.call(caller(request, 0, &more_groups(request)), act).map_err(errno)
    }

    /// The begin of a request that may be recorded.
    fn begin(&self) -> Time {
        self.recorder.as_ref().map_or(Time::ZERO, |_| self.volume.now())
    }

    /// Records the calls of a request that has succeeded.
    fn record<T, C: IntoIterator<Item = RecordedCall>>(
        &self,
        request: &Request,
        began: Time,
        answer: &Result<(T, Time), Errno>,
        calls: impl FnOnce(&T) -> C,
    ) {
        if let (Some(recorder), Ok((value, done))) = (&self.recorder, answer) {
            recorder.add(request.pid(), (began, self.volume.now().max(*done)), calls(value));
        }
    }

    fn empty<C: IntoIterator<Item = RecordedCall>>(
        &self,
        request: &Request,
        reply: ReplyEmpty,
        act: impl FnOnce(&Posix, &Call) -> Result<(), VolumeError>,
        calls: impl FnOnce() -> C,
    ) {
        let began = self.begin();
        let answer = self.call(request, act);
        self.record(request, began, &answer, |()| calls());
        match answer {
            Ok(((), done)) => self.answers.send(done, 0, move || reply.ok()),
            Err(errno) => reply.error(errno),
        }
    }

    fn entry(&self, reply: ReplyEntry, found: Result<(Option<Attributes>, Time), Errno>) {
        match found {
            Ok((Some(attributes), done)) => self.answers.send(done, 0, move || {
                reply.entry(&LONG, &system_attributes(&attributes), generation(&attributes));
            }),
            // The kernel caches an entry with inode 0 as a missing name.
            Ok((None, done)) => self.answers.send(done, 0, move || reply.entry(&LONG, &NOTHING, Generation(0))),
            Err(errno) => reply.error(errno),
        }
    }

    /// Makes a file, which is held for the kernel.
    fn make(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        made: &CreateRequest,
        umask: u32,
    ) -> Result<(Attributes, Time), Errno> {
        let began = self.begin();
        let make = |posix: &Posix, call: &Call| posix.make(call, (inode(parent), name.as_bytes()), made, Hold::Yes);
        let answer = self.volume.call(caller(request, umask, &more_groups(request)), make).map_err(errno);
        self.record(request, began, &answer, |attributes| {
            [recorder::making(made.kind, (parent.0, name.as_bytes()), attributes.inode.0, made.target)]
        });
        answer
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

    /// Answers with the bytes, or, for a size of 0, with their number.
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

    /// Makes a file or directory durable.
    fn sync(&self, request: &Request, number: INodeNo, only_data: bool, reply: ReplyEmpty) {
        let inode_number = number.0;
        let sync = || match durable(only_data) {
            Durable::Data => [RecordedCall::Fdatasync { inode: inode_number }],
            Durable::All => [RecordedCall::Fsync { inode: inode_number }],
        };
        self.empty(request, reply, |posix, call| posix.sync_file(call, inode(number), durable(only_data)), sync);
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

/// The generation in an answer. The kernel accepts only a root of generation 0.
fn generation(attributes: &Attributes) -> Generation {
    Generation(if attributes.inode == InodeNumber::ROOT { 0 } else { u64::from(attributes.generation) })
}

/// True if a directory has at least [`LARGE_DIRECTORY`] names.
fn is_large(posix: &Posix, call: &Call, directory: InodeNumber) -> Result<bool, VolumeError> {
    let mut names = 0;
    posix.list(call, directory, 0, &mut |entry| {
        names += usize::from(!entry.is_dot());
        names < LARGE_DIRECTORY
    })?;
    Ok(names >= LARGE_DIRECTORY)
}

fn owner(request: &Request) -> (u32, u32) {
    (request.uid(), request.gid())
}

fn errno(error: CallError) -> Errno {
    Errno::from_i32(error.errno().raw_os_error())
}

/// The calls of a request that recordings leave out.
fn not_recorded() -> Option<RecordedCall> {
    None
}

fn durable(only_data: bool) -> Durable {
    if only_data { Durable::Data } else { Durable::All }
}

fn has(flags: OpenFlags, flag: OFlag) -> bool {
    OFlag::from_bits_retain(flags.0).contains(flag)
}

impl Filesystem for FileSystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // An older kernel lacks some of them, and is only slower.
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
        let named = (inode(parent), name.as_bytes());
        let found = self.call(request, |posix, call| posix.lookup(call, named, Hold::Yes));
        if let (Some(recorder), Ok((Some(attributes), _))) = (&self.recorder, &found) {
            recorder.found(request.pid(), self.volume.now(), (parent.0, name.as_bytes()), attributes);
        }
        self.entry(reply, found);
    }

    fn forget(&self, request: &Request, number: INodeNo, times: u64) {
        // A forget has no answer; an error was reported.
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
        let wish = SetAttributes {
            mode,
            user,
            group,
            size,
            is_open: handle.is_some(),
            accessed: accessed.map(new_time),
            modified: modified.map(new_time),
            changed: changed.map(timestamp),
        };
        let began = self.begin();
        let changed = self.call(request, |posix, call| posix.change(call, inode(number), &wish));
        self.record(request, began, &changed, |_| {
            size.map(|length| RecordedCall::Truncate { inode: number.0, length })
        });
        self.attributes(reply, changed);
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
        let made = CreateRequest { kind, mode, device, target: &[] };
        self.made(reply, self.make(request, (parent, name), &made, umask));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = CreateRequest { kind: FileKind::Directory, mode, device: 0, target: &[] };
        self.made(reply, self.make(request, (parent, name), &made, umask));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        let made = CreateRequest { kind: FileKind::Symlink, mode: 0o777, device: 0, target };
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
        let made = CreateRequest { kind: FileKind::Regular, mode, device: 0, target: &[] };
        match self.make(request, (parent, name), &made, umask) {
            Ok((attributes, done)) => self.answers.send(done, 0, move || {
                let (system, generation) = (system_attributes(&attributes), generation(&attributes));
                reply.created(&LONG, &system, generation, FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let unlink = || [RecordedCall::Unlink { parent: parent.0, name: name.as_bytes().to_vec() }];
        self.empty(request, reply, |posix, call| posix.unlink(call, (inode(parent), name.as_bytes())), unlink);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = || [RecordedCall::RemoveDirectory { parent: parent.0, name: name.as_bytes().to_vec() }];
        let named = (inode(parent), name.as_bytes());
        self.empty(request, reply, |posix, call| posix.remove_directory(call, named), remove);
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
            Ok(how) => self.empty(
                request,
                reply,
                |posix, call| posix.rename(call, from, to, how),
                || {
                    let is_exchange = how.if_exists == IfExists::Exchange;
                    recorder::renaming((parent.0, name.as_bytes()), (new_parent.0, new_name.as_bytes()), is_exchange)
                },
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn link(&self, request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let began = self.begin();
        let named = (inode(parent), name.as_bytes());
        let linked = self.call(request, |posix, call| posix.link(call, inode(number), named, Hold::Yes));
        self.record(request, began, &linked, |_| {
            [RecordedCall::Link { inode: number.0, parent: parent.0, name: name.as_bytes().to_vec() }]
        });
        self.made(reply, linked);
    }

    /// An open file has no state. The kernel sends O_TRUNC as a setattr, and does O_APPEND and O_DIRECT itself: it bypasses
    /// the page cache and keeps it coherent, which `FOPEN_DIRECT_IO` would not on every kernel.
    fn open(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.opened(self.opens_without_asking, FopenFlags::empty(), reply);
    }

    fn opendir(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.opened(self.opens_directories_without_asking, FopenFlags::FOPEN_CACHE_DIR, reply);
    }

    /// A close needs no work. After ENOSYS the kernel sends no more of them: it would wait for an answer at each close,
    /// even of a file that was only read.
    fn flush(&self, _request: &Request, _number: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    /// No caller waits for it. The kernel sends it for files that were opened by create, since it sends no open.
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
            let began = self.begin();
            let read = self.call(request, |posix, call| posix.read(call, inode(number), offset, bytes, is_silent));
            self.record(request, began, &read, |length| {
                let length = *length as u64;
                (length > 0).then_some(RecordedCall::Read { inode: number.0, offset, length })
            });
            read.inspect(|(length, _)| self.volume.moved(*length as u64, 0))
        };
        if self.answers.are_paced() {
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
        // In a write the kernel says whether set-id bits are kept.
        let keeps_set_id = !write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let is_durable = has(flags, OFlag::O_DSYNC) && !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let length = data.len() as u32;
        let write = |posix: &Posix, call: &Call| posix.write(call, inode(number), offset, data, is_durable);
        let began = self.begin();
        let groups = more_groups(request);
        let caller = Caller { keeps_set_id, ..caller(request, 0, &groups) };
        let written = self.volume.call(caller, write).map_err(errno);
        self.record(request, began, &written, |()| {
            let sync = is_durable.then_some(RecordedCall::Fdatasync { inode: number.0 });
            [Some(RecordedCall::Write { inode: number.0, offset, length: length.into() }), sync].into_iter().flatten()
        });
        match written {
            Ok(((), done)) => {
                self.volume.moved(0, u64::from(length));
                self.answers.send(done, 0, move || reply.written(length));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync(&self, request: &Request, number: INodeNo, _handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.sync(request, number, only_data, reply);
    }

    fn fsyncdir(&self, request: &Request, number: INodeNo, _handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.sync(request, number, only_data, reply);
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
            Ok(how) => self.empty(
                request,
                reply,
                |posix, call| posix.allocate(call, inode(number), (offset, length), how),
                || recorder::allocating(number.0, (offset, length), how),
            ),
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
            // Data in the page cache is unknown here: after ENOSYS the kernel takes the file as one without holes.
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
        let began = self.begin();
        let copied = self.call(request, |posix, call| posix.copy(call, from, to, length));
        self.record(request, began, &copied, |copied| {
            let length = u64::from(*copied);
            let read = RecordedCall::Read { inode: from.0.0, offset: from_offset, length };
            let write = RecordedCall::Write { inode: to.0.0, offset: to_offset, length };
            [read, write].into_iter().filter(move |_| length > 0)
        });
        match copied {
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

    /// The kernel begins each listing with this request, and makes an inode of each file in the answer. That saves a
    /// lookup for each file whose attributes are then asked for, but takes longer than the rest of the listing of a
    /// large directory. So the first answer for a large one has only `.` and `..`, which are made no inodes of: the
    /// kernel then goes on without attributes.
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
            let is_bare = from == 0 && is_large(posix, call, inode(number))?;
            posix.list_with_attributes(call, inode(number), from, &mut |full| {
                let (entry, attributes) = (&full.entry, &full.attributes);
                if is_bare && !entry.is_dot() {
                    return false;
                }
                if let Some(recorder) = self.recorder.as_ref().filter(|_| !entry.is_dot()) {
                    recorder.found(request.pid(), call.task.now(), (number.0, entry.name), attributes);
                }
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
            Ok(exists) => self.empty(
                request,
                reply,
                |posix, call| posix.set_extended_attribute(call, inode(number), name.as_bytes(), value, exists),
                not_recorded,
            ),
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
        let remove = |posix: &Posix, call: &Call| posix.remove_extended_attribute(call, inode(number), name);
        self.empty(request, reply, remove, not_recorded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::fs::posix::Usage;
    use flashpath::fs::station::{Mounting, VolumeSettings};
    use flashpath::run;
    use flashpath::task::Task;

    /// A listing of 6,250 names took a quarter longer than the names themselves: the kernel made inodes of the first 178.
    #[test]
    fn a_directory_is_large_from_512_names_on() {
        let path = run::Path::read("tree").unwrap();
        let settings: &dyn VolumeSettings = path.volume_settings().unwrap();
        let posix = Posix::new(settings.create(Vec::new(), &Mounting::at(1, 0)).unwrap(), Usage::default());
        let task = Task::at(Time(1));
        let call = Call::by_root(&task);
        let made = CreateRequest { kind: FileKind::Regular, mode: 0o644, device: 0, target: &[] };
        for number in 1..=LARGE_DIRECTORY + 1 {
            let name = format!("file {number}");
            posix.make(&call, (InodeNumber::ROOT, name.as_bytes()), &made, Hold::No).unwrap();
            let is_large = is_large(&posix, &call, InodeNumber::ROOT).unwrap();
            assert_eq!(is_large, number >= LARGE_DIRECTORY, "{number} names");
        }
    }
}
