//! The journal outside of a volume, on a device or in memory, and the names by which the two know each other.

use super::error::OpenExtError;
use super::format::bytes::uuid;
use super::format::features::HAS_JOURNAL;
use super::format::log::LogSuperblock;
use super::format::mount_number::MountNumber;
use super::format::shape::Shape;
use super::format::superblock::{LENGTH, MAGIC, Superblock};
use super::journal::FoundRegion;
use super::media::{JournalMemory, Media};
use super::settings::{ExtSettings, JournalKind};
use crate::device::{HeldName, ImageError, Monitor, NameError, Nvm};
use crate::expression::Choice;
use std::sync::Arc;

/// What is below for the journal, and the names of volume and journal.
pub struct JournalBelow {
    /// The device that the journal has for itself.
    pub media: Option<Arc<Media>>,
    /// The memory in which the journal is.
    pub memory: Option<JournalMemory>,
    /// The UUID of the volume.
    pub volume: [u8; 16],
    /// The UUID of the journal's own device or memory; zeros if it has none.
    pub journal: [u8; 16],
    /// The number of the mount that the superblock says when the volume is opened; from the beginning of a journal outside of
    /// the volume on, that of this mount.
    pub mount_number: MountNumber,
}

impl JournalBelow {
    /// Options that depend on the devices below, with their values.
    pub fn chosen(&self, settings: &ExtSettings) -> Vec<(&'static str, String)> {
        let journal = match &self.memory {
            Some(JournalMemory::Region(_)) => Some(JournalKind::Nvm),
            Some(JournalMemory::Kept(_)) => Some(JournalKind::Vmm),
            // A journal on a device has no word: the path has its device.
            None => self.media.is_none().then_some(JournalKind::Inline),
        };
        let scheme = (journal == Some(JournalKind::Nvm)).then_some(settings.nvm.scheme);
        let words = [
            Some(("data", settings.data.word())),
            journal.map(|journal| ("journal", journal.word())),
            scheme.map(|scheme| ("scheme", scheme.word())),
        ];
        words.into_iter().flatten().map(|(option, word)| (option, word.to_string())).collect()
    }

    /// The non-volatile memory below.
    pub fn nvm(&self) -> Option<&Arc<dyn Nvm>> {
        match &self.memory {
            Some(JournalMemory::Region(nvm)) => Some(nvm),
            _ => None,
        }
    }

    /// The monitor that keeps the volume's memory.
    pub fn monitor(&self) -> Option<&Arc<dyn Monitor>> {
        match &self.memory {
            Some(JournalMemory::Kept(monitor)) => Some(monitor),
            _ => None,
        }
    }

    /// True if the superblock, from which this shape is, says that the journal is in memory, or on a device.
    pub fn is_named(&self, shape: &Shape) -> bool {
        shape.features.has(HAS_JOURNAL) && shape.journal_inode == 0 && self.journal != [0; 16]
    }

    /// If the journal is not in the volume: gives this mount its number, which no other mount has thanks to `random`, and the
    /// log on a device, whose superblock this is.
    pub fn count_mount(&mut self, log: &mut LogSuperblock, random: u32) {
        if self.memory.is_none() && self.media.is_none() {
            return;
        }
        let mut before = self.mount_number.later(log.mount_number());
        if let Some(nvm) = self.nvm() {
            let region = FoundRegion::find(&**nvm).ok().flatten();
            let own = region.filter(|region| region.superblock.volume == self.volume);
            before = own.map_or(before, |region| before.later(region.superblock.mount));
        }
        self.mount_number = before.next(random);
        if self.media.is_some() {
            log.set_mount_number(self.mount_number);
        }
    }

    /// The name and the number of memory below that has something of this volume which is not home: where the superblock
    /// and its copies do not tell, the memory does.
    pub fn naming_of_memory(&self) -> Option<([u8; 16], MountNumber)> {
        if let Some(nvm) = self.nvm() {
            let region = FoundRegion::find(&**nvm).ok().flatten()?;
            let is_needed = region.superblock.is_in_use && region.superblock.volume == self.volume && {
                let left = region.replayable(&**nvm);
                !left.blocks.is_empty() || !left.damaged.is_empty()
            };
            return is_needed.then_some((region.superblock.region, region.superblock.mount));
        }
        let kept = self.monitor().and_then(|monitor| monitor.kept_of(self.volume).ok());
        let kept = kept.flatten().filter(|kept| kept.volume == self.volume && !kept.blocks.is_empty())?;
        Some((kept.name, self.mount_number))
    }

    /// Refuses while a monitor that lives keeps the memory that the superblock names, if that is none of this path: it may be about
    /// to write home the blocks that a dead process has left. As long as the caller has the name, no monitor takes that memory back.
    pub fn hold_memory_name(&self) -> Result<HeldName, OpenExtError> {
        hold_name(self.journal).map_err(OpenExtError::InUse)
    }
}

/// Holds the name of the memory that this superblock names, for a caller that is about to replace its volume: no monitor takes that memory back
/// meanwhile. `None` if it names no memory.
///
/// # Errors
///
/// A monitor that lives keeps the memory.
pub fn hold_memory_of(superblock: &[u8; LENGTH]) -> Result<Option<HeldName>, ImageError> {
    let superblock = Superblock::new(superblock);
    let name = superblock.journal_uuid();
    let names_memory =
        superblock.u16(56) == MAGIC && superblock.features().has(HAS_JOURNAL) && superblock.u32(224) == 0;
    if names_memory && name != [0; 16] { hold_name(name).map(Some) } else { Ok(None) }
}

fn hold_name(name: [u8; 16]) -> Result<HeldName, ImageError> {
    HeldName::hold(name).map_err(|error| {
        let name = uuid(name);
        let user = match error {
            NameError::Taken { .. } => format!(
                "the volume uses journal {name}, memory that {error} keeps, which lives: wait until it has written home what is \
                 left, mount the volume with that monitor, or end it"
            ),
            NameError::System(error) => format!("whether a monitor keeps memory {name} cannot be told: {error}"),
        };
        ImageError::InUse { image: "the volume's journal".to_string(), user }
    })
}
