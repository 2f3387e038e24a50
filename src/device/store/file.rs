//! A file, or a block device of the system, as a disk.

use super::direct_writer::DirectWriter;
use super::hole::punch;
use super::kernel_use::{exclusive, loop_device_of};
use super::{Disk, ImageError};
use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::OnceLock;

/// The file in which Linux identifies the current boot of the machine: its page cache lives as long.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The minimum length of a write, in bytes, whose writeback starts at once.
const LARGE: usize = 1 << 20;

/// A file or a block device. It is locked (flock) while it is open, so that two programs never write one image. One that
/// the kernel has mounted, or as a loop device, is refused.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    name: String,
    length: u64,
    is_block_device: bool,
    /// True if it was linked in a directory when it was opened.
    has_name: bool,
    /// The queue of large writes, if the caller allowed writes in flight.
    direct_writer: OnceLock<Option<DirectWriter>>,
}

/// The error of a failed open. A block device that the kernel uses is busy.
fn failed_open(name: &str, doing: &'static str, source: io::Error) -> ImageError {
    let image = name.to_string();
    match source.kind() {
        io::ErrorKind::ResourceBusy => {
            let user = "the kernel has it mounted, or another device is on it; unmount it first".to_string();
            ImageError::InUse { image, user }
        }
        _ => ImageError::Io { image, doing, source },
    }
}

impl FileDisk {
    /// Opens an existing file or block device.
    pub fn open(path: &Path) -> Result<FileDisk, ImageError> {
        let name = path.display().to_string();
        let file = exclusive(path).open(path).map_err(|source| failed_open(&name, "open", source))?;
        FileDisk::of(file, name)
    }

    /// Creates a sparse file of `length` bytes. An existing file is replaced only if it is empty or with `force`; a
    /// block device keeps its length, which must not be smaller.
    pub fn create(path: &Path, length: u64, force: bool) -> Result<FileDisk, ImageError> {
        let name = path.display().to_string();
        let mut options = exclusive(path);
        options.create(!path.exists()).truncate(false);
        let file = options.open(path).map_err(|source| failed_open(&name, "make", source))?;
        let mut disk = FileDisk::of(file, name)?;
        if disk.length > 0 && !force {
            return Err(ImageError::Exists { image: disk.name.clone(), bytes: disk.length });
        }
        if disk.is_block_device {
            if disk.length < length {
                return Err(ImageError::Field {
                    image: disk.name.clone(),
                    field: "its length".to_string(),
                    found: format!("{} bytes", disk.length),
                    expected: format!("at least {length}"),
                });
            }
            disk.punch(0, disk.length).map_err(ImageError::io(&disk.name, "clear"))?;
        } else {
            disk.file.set_len(0).map_err(ImageError::io(&disk.name, "empty"))?;
            disk.file.set_len(length).map_err(ImageError::io(&disk.name, "set the length of"))?;
            disk.length = length;
            // Syncs the directory with the file's entry.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .and_then(|()| disk.file.sync_all())
                .map_err(ImageError::io(&disk.name, "make durable"))?;
        }
        Ok(disk)
    }

    fn of(file: File, name: String) -> Result<FileDisk, ImageError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let user = "another program, or another station of this path, has it open".to_string();
                return Err(ImageError::InUse { image: name, user });
            }
            Err(TryLockError::Error(source)) => return Err(ImageError::Io { image: name, doing: "lock", source }),
        }
        if let Some(device) = loop_device_of(&file) {
            let user = format!("the kernel has it as {device}; unmount that, or 'losetup -d {device}'");
            return Err(ImageError::InUse { image: name, user });
        }
        let metadata = file.metadata().map_err(ImageError::io(&name, "look at"))?;
        let is_block_device = metadata.file_type().is_block_device();
        if !is_block_device && !metadata.is_file() {
            return Err(ImageError::Field {
                image: name,
                field: "its kind".to_string(),
                found: "no file".to_string(),
                expected: "a regular file or a block device".to_string(),
            });
        }
        let length = if is_block_device {
            rustix::fs::seek(&file, SeekFrom::End(0))
                .map_err(|error| error.into())
                .map_err(ImageError::io(&name, "measure"))?
        } else {
            metadata.len()
        };
        let has_name = metadata.nlink() > 0;
        Ok(FileDisk { file, name, length, is_block_device, has_name, direct_writer: OnceLock::new() })
    }

    fn direct_writer(&self) -> Option<&DirectWriter> {
        self.direct_writer.get().and_then(Option::as_ref)
    }

    /// True for a block device of the system.
    pub fn is_block_device(&self) -> bool {
        self.is_block_device
    }

    /// Fails a sync of a file that was removed or truncated while it was open.
    fn check_still_there(&self) -> io::Result<()> {
        if self.is_block_device {
            return Ok(());
        }
        let metadata = self.file.metadata()?;
        if self.has_name && metadata.nlink() == 0 {
            return Err(io::Error::other("the image was removed while it was open"));
        }
        if metadata.len() < self.length {
            let (found, had) = (metadata.len(), self.length);
            return Err(io::Error::other(format!(
                "the image was cut off while it was open: it has {found} bytes, and had {had}"
            )));
        }
        Ok(())
    }
}

impl Disk for FileDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if self.direct_writer().is_some_and(|writer| writer.read(offset, buffer)) {
            return Ok(());
        }
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(writer) = self.direct_writer()
            && writer.write(offset, bytes)?
        {
            return Ok(());
        }
        self.file.write_all_at(bytes, offset)?;
        if bytes.len() >= LARGE {
            // Starts the writeback now, so that the next sync need not wait for all of it. It is advice: an error does
            // no harm.
            let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(bytes.len() as u64), Advice::DontNeed);
        }
        Ok(())
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        match self.direct_writer() {
            Some(writer) => writer.punch(offset, length),
            None => punch(&self.file, offset, length),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if let Some(writer) = self.direct_writer() {
            writer.finish()?;
        }
        self.check_still_there()?;
        self.file.sync_data()
    }

    fn write_behind(&self, bytes: u64) -> bool {
        // Without support of the system, writes are only slower.
        self.direct_writer.get_or_init(|| DirectWriter::start(&self.file, bytes).ok()).is_some()
    }

    fn extent(&self, offset: u64, length: u64) -> io::Result<(u64, bool)> {
        if let Some(writer) = self.direct_writer() {
            writer.wait_for(offset, length);
        }
        let data = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => data,
            // No data up to the end.
            Err(Errno::NXIO) => return Ok((length, false)),
            // A block device, or a file system that cannot report holes.
            Err(_) => return Ok((length, true)),
        };
        if data > offset {
            return Ok(((data - offset).min(length), false));
        }
        let hole = rustix::fs::seek(&self.file, SeekFrom::Hole(offset))?;
        Ok((hole.saturating_sub(offset).clamp(1, length.max(1)), true))
    }

    fn epoch(&self) -> Option<[u8; 16]> {
        let text = std::fs::read_to_string(BOOT_ID).ok()?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32).map(u128::to_be_bytes)
    }
}

impl Drop for FileDisk {
    /// Releases the lock at once: a process that was just forked elsewhere holds a copy of the descriptor until it
    /// executes another program, and with it the lock.
    fn drop(&mut self) {
        // Queued writes are done while nobody else may write.
        drop(self.direct_writer.take());
        let _ = self.file.unlock();
    }
}
