//! A file, or a block device of the system, as a disk.

use super::behind::Behind;
use super::hole::punch;
use super::{Disk, ImageError};
use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::OnceLock;

/// Where Linux says which boot of the machine this is: its page cache lives as long.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// From so many bytes on, what is written is written on at once.
const LARGE: usize = 1 << 20;
/// A file or a block device. It is locked (flock) as long as it is open, so that two programs never write one image.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    name: String,
    length: u64,
    is_block_device: bool,
    /// True if it had a name in some folder when it was opened.
    has_name: bool,
    /// Where large writes go, if whoever writes bears that.
    behind: OnceLock<Option<Behind>>,
}

impl FileDisk {
    /// Opens what is there.
    pub fn open(path: &Path) -> Result<FileDisk, ImageError> {
        let name = path.display().to_string();
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(ImageError::io(&name, "open"))?;
        FileDisk::of(file, name)
    }

    /// Makes a file of `length` bytes, all zeros, which take no room. What is there already is only replaced if it is
    /// empty or with `force`; a block device keeps its length, which must not be smaller.
    pub fn create(path: &Path, length: u64, force: bool) -> Result<FileDisk, ImageError> {
        let name = path.display().to_string();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut disk = FileDisk::of(options.open(path).map_err(ImageError::io(&name, "make"))?, name)?;
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
            // The file's own entry in its folder.
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
            Err(TryLockError::WouldBlock) => return Err(ImageError::InUse { image: name }),
            Err(TryLockError::Error(source)) => return Err(ImageError::Io { image: name, doing: "lock", source }),
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
        Ok(FileDisk { file, name, length, is_block_device, has_name, behind: OnceLock::new() })
    }

    fn behind(&self) -> Option<&Behind> {
        self.behind.get().and_then(Option::as_ref)
    }

    /// Whether it is a block device of the system.
    pub fn is_block_device(&self) -> bool {
        self.is_block_device
    }

    /// Refuses to call durable what went into a file that nobody can open again, or that lost its end.
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
        if self.behind().is_some_and(|behind| behind.read(offset, buffer)) {
            return Ok(());
        }
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(behind) = self.behind()
            && behind.write(offset, bytes)?
        {
            return Ok(());
        }
        self.file.write_all_at(bytes, offset)?;
        if bytes.len() >= LARGE {
            // The system begins to write it now, so that the next sync need not wait for all at once. It is advice: a
            // disk that takes none is as good.
            let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(bytes.len() as u64), Advice::DontNeed);
        }
        Ok(())
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        match self.behind() {
            Some(behind) => behind.punch(offset, length),
            None => punch(&self.file, offset, length),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if let Some(behind) = self.behind() {
            behind.finish()?;
        }
        self.check_still_there()?;
        self.file.sync_data()
    }

    fn write_behind(&self, bytes: u64) -> bool {
        // Where the system does not do it so, it is slower, and no more.
        self.behind.get_or_init(|| Behind::start(&self.file, bytes).ok()).is_some()
    }

    fn extent(&self, offset: u64, length: u64) -> io::Result<(u64, bool)> {
        if let Some(behind) = self.behind() {
            behind.wait_for(offset, length);
        }
        let data = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => data,
            // No data from here to the end.
            Err(Errno::NXIO) => return Ok((length, false)),
            // A block device, or a file system that does not tell.
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
    /// Gives the lock back at once: a program that was just forked elsewhere holds a copy of the descriptor until it
    /// becomes another, and with it the lock.
    fn drop(&mut self) {
        // What waits is written while nobody else may write.
        drop(self.behind.take());
        let _ = self.file.unlock();
    }
}
