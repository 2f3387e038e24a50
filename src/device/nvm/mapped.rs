//! Memory that is mapped: a file, a device of memory, or memory of this process.

use super::counts::Counts;
use super::model::MemoryModel;
use super::{NAME, Nvm, Survival};
use crate::device::store::loop_device_of;
use crate::device::{Account, ImageError, Warnings};
use crate::time::Time;
use flashpath_nvm::{Persist, Region, RegionError};
use std::ops::Range;
use std::path::Path;

/// A mapped region with its method of persistence, its timing model and its counts.
#[derive(Debug)]
pub struct Mapped {
    region: Region,
    persist: Persist,
    model: Option<MemoryModel>,
    counts: Counts,
}

impl Mapped {
    /// New memory of this process, of zeros.
    ///
    /// # Errors
    ///
    /// If the system has no room for so many bytes.
    pub fn in_memory(bytes: u64, persist: Persist, model: Option<MemoryModel>) -> Result<Mapped, ImageError> {
        Ok(Mapped::of(Region::anonymous(bytes)?, persist, model))
    }

    /// Makes a file of zeros, allocated in full. An existing file is replaced only with `force`.
    ///
    /// # Errors
    ///
    /// If the file exists or is in use, or the file system has no room.
    pub fn create(
        path: &Path,
        bytes: u64,
        force: bool,
        persist: Persist,
        model: Option<MemoryModel>,
    ) -> Result<Mapped, ImageError> {
        check_unused(path)?;
        Ok(Mapped::of(Region::create(path, bytes, force)?, persist, model))
    }

    /// Maps an existing file. `model`: the timing model of so many bytes.
    ///
    /// # Errors
    ///
    /// If the file is in use, or is no memory.
    pub fn open(
        path: &Path,
        persist: Persist,
        model: impl FnOnce(u64) -> Option<MemoryModel>,
    ) -> Result<Mapped, ImageError> {
        check_unused(path)?;
        let region = Region::open(path, None)?;
        let model = model(region.bytes());
        Ok(Mapped::of(region, persist, model))
    }

    fn of(region: Region, persist: Persist, model: Option<MemoryModel>) -> Mapped {
        Mapped { region, persist, model, counts: Counts::default() }
    }
}

/// An error if the kernel has a file as a loop device: it does not ask for the lock.
fn check_unused(path: &Path) -> Result<(), ImageError> {
    let Ok(file) = std::fs::File::open(path) else { return Ok(()) };
    loop_device_of(&file).map_or(Ok(()), |device| {
        let user = format!("the kernel has it as {device}; unmount that, or 'losetup -d {device}'");
        Err(ImageError::InUse { image: path.display().to_string(), user })
    })
}

impl Nvm for Mapped {
    fn bytes(&self) -> u64 {
        self.region.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.counts.read(into.len());
        self.region.read(at, into);
    }

    fn store(&self, at: u64, from: &[u8]) {
        self.counts.stored(from.len());
        self.region.store(at, from, self.persist);
    }

    fn stand_for(&self, bytes: usize) {
        self.counts.stored(bytes);
    }

    fn fence(&self) {
        self.counts.fenced();
        self.region.fence();
    }

    fn stored_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        self.model.as_ref().map_or(at, |model| model.stored_by(at, bytes))
    }

    fn read_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        self.model.as_ref().map_or(at, |model| model.read_by(at, bytes))
    }

    fn survival(&self) -> Survival {
        match (self.region.file(), self.region.is_synchronous() && self.persist.reaches_memory()) {
            (None, _) => Survival::Nothing,
            (Some(_), true) => Survival::PowerLoss,
            (Some(_), false) => Survival::Process,
        }
    }

    fn is_timed(&self) -> bool {
        self.model.is_some()
    }

    fn account(&self) -> Account {
        let mut warnings = Warnings::default();
        if self.survival() == Survival::Process {
            warnings.add(
                "volatile-memory",
                "its stores survive the end of the process, and no loss of power: the file is not on non-volatile memory",
            );
        }
        let mut events = self.counts.events();
        if let Some(cache) = self.model.as_ref().and_then(MemoryModel::cache_counts) {
            events.extend([
                ("nvm_cache_hits", cache.hits),
                ("nvm_cache_misses", cache.misses),
                ("nvm_flash_read_bytes", cache.read_bytes),
                ("nvm_flash_written_bytes", cache.written_bytes),
            ]);
        }
        Account { station: NAME, events, warnings, ..Account::default() }
    }
}

impl From<RegionError> for ImageError {
    fn from(error: RegionError) -> ImageError {
        let field = |image, field: &str, found: String, expected: String| ImageError::Field {
            image,
            field: field.to_string(),
            found,
            expected,
        };
        match error {
            RegionError::Io { name, doing, source } => ImageError::Io { image: name, doing, source },
            RegionError::InUse { name } => {
                let user = "another program, or another station of this path, has it open".to_string();
                ImageError::InUse { image: name, user }
            }
            RegionError::Exists { name, bytes } => ImageError::Exists { image: name, bytes },
            RegionError::TooSmall { name, found, needed } => {
                field(name, "its length", format!("{found} bytes"), format!("at least {needed}"))
            }
            RegionError::Kind { name, kind } => {
                let expected = "a regular file, or a device of memory such as /dev/dax0.0".to_string();
                field(name, "its kind", kind.to_string(), expected)
            }
        }
    }
}
