//! A volume whose journal is in memory: a region of non-volatile memory, or that of the volume's own process.
//!
//! The journal is a choice of the mount: while a volume is mounted with it, the superblock names the memory's UUID as that of
//! an external journal, and no inode. The kernel and e2fsck then find no such journal, and do not touch the volume. After the
//! unmount it is an ordinary one again, with the empty log in inode 8 that it had before.

use super::replay::Replayed;
use crate::device::nvm::{self, NvmSettings};
use crate::device::{Monitor, Nvm, OwnMonitor};
use crate::expression::{Choice, parse_term};
use crate::fs::ext::Ext;
use crate::fs::ext::error::OpenExtError;
use crate::fs::ext::format::features::HAS_JOURNAL;
use crate::fs::ext::format::log::LogSuperblock;
use crate::fs::ext::format::shape::JOURNAL;
use crate::fs::ext::format::superblock::{LENGTH, PLACE, Superblock};
use crate::fs::ext::inspect::uuid;
use crate::fs::ext::journal::FoundRegion;
use crate::fs::ext::media::JournalMemory;
use crate::fs::ext::settings::{DataMode, ExtSettings, JournalKind};
use crate::fs::station::Access;
use crate::random::Random;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub fn refused(why: impl ToString) -> OpenExtError {
    OpenExtError::JournalDevice(why.to_string())
}

/// Memory of this process, for a journal of which the path names no memory: the station `nvm` as it is by itself, or a
/// monitor.
fn own_memory(kind: JournalKind) -> Result<JournalMemory, OpenExtError> {
    if kind == JournalKind::Vmm {
        return Ok(JournalMemory::Kept(Arc::new(OwnMonitor::new())));
    }
    let settings = parse_term(nvm::KIND.name).and_then(|term| NvmSettings::read(&term));
    let memory = settings.expect("the defaults are valid").open();
    Ok(JournalMemory::Region(Arc::new(memory.map_err(refused)?)))
}

/// The reason that a journal in non-volatile memory has no commit thread.
pub const COMMIT_THREAD_OF_LOGS: &str = "commit-thread=on is of a journal on a device: who syncs commits to non-volatile memory without a wait, so leave it out";

/// The memory that a volume with these settings takes for its journal; the second device may be one of blocks. `is_new`:
/// nothing of the volume was there before, and it may be memory of this process.
pub fn wanted_memory(
    settings: &ExtSettings,
    memory: Option<JournalMemory>,
    has_device: bool,
    is_new: bool,
) -> Result<Option<JournalMemory>, OpenExtError> {
    let wanted = settings.journal.filter(|kind| *kind != JournalKind::Inline);
    let kind = match (&memory, settings.journal) {
        (Some(_), Some(JournalKind::Inline)) => {
            return Err(refused("journal=inline, and memory for a journal: leave one of them out"));
        }
        (Some(JournalMemory::Region(_)), Some(JournalKind::Vmm)) => {
            return Err(refused("journal=vmm, and non-volatile memory: write journal=nvm, or leave the memory out"));
        }
        (Some(JournalMemory::Kept(_)), Some(JournalKind::Nvm)) => {
            return Err(refused("journal=nvm, and a monitor: write journal=vmm, or +nvm:image=FILE in its place"));
        }
        (Some(JournalMemory::Region(_)), _) => Some(JournalKind::Nvm),
        (Some(JournalMemory::Kept(_)), _) => Some(JournalKind::Vmm),
        (None, _) => wanted,
    };
    if let (Some(option), None | Some(JournalKind::Vmm)) = (settings.of_nvm, kind) {
        let what = "is of a journal in non-volatile memory: add its memory, such as +nvm:image=FILE";
        return Err(refused(format!("{option}= {what}")));
    }
    if settings.has_commit_thread && kind == Some(JournalKind::Nvm) {
        return Err(refused(COMMIT_THREAD_OF_LOGS));
    }
    if settings.kept_bytes.is_some() && kind != Some(JournalKind::Vmm) {
        let what = "is of a journal that a monitor keeps: add it, such as +monitor:socket=SOCKET";
        return Err(refused(format!("kept= {what}")));
    }
    match (memory, wanted) {
        (None, Some(JournalKind::Nvm)) if has_device => {
            Err(refused("journal=nvm, and a second device of blocks: write +nvm in its place"))
        }
        (None, Some(_)) if has_device => Err(refused("journal=vmm writes no journal: leave the second device out")),
        (None, Some(kind)) if is_new => own_memory(kind).map(Some),
        (None, Some(JournalKind::Nvm)) => {
            Err(refused("journal=nvm needs its memory as the second device, such as ext/conv+nvm:image=FILE"))
        }
        (None, Some(_)) => Err(refused(
            "journal=vmm needs a monitor that outlives this process as the second device, such as \
             ext/conv:image=v.img+monitor:socket=SOCKET, with 'flashpath monitor SOCKET'",
        )),
        (memory, _) => Ok(memory),
    }
}

impl Ext {
    /// Takes the memory below, if the journal is there.
    pub fn take_memory(&mut self, memory: Option<JournalMemory>) {
        if memory.is_some() && self.settings.is_data_open {
            self.settings.data = DataMode::Journal;
        }
        self.memory = memory;
    }

    /// Options that depend on the devices below, with their values.
    pub fn chosen(&self) -> Vec<(&'static str, String)> {
        let journal = match &self.memory {
            Some(JournalMemory::Region(_)) => Some(JournalKind::Nvm),
            Some(JournalMemory::Kept(_)) => Some(JournalKind::Vmm),
            // A journal on a device has no word: the path has its device.
            None => self.journal_media.is_none().then_some(JournalKind::Inline),
        };
        let scheme = (journal == Some(JournalKind::Nvm)).then_some(self.settings.nvm.scheme);
        let words = [
            Some(("data", self.settings.data.word())),
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

    /// True if the superblock says that the journal is in memory, or on a device.
    pub fn names_a_journal(&self) -> bool {
        self.metadata.shape.features.has(HAS_JOURNAL)
            && self.metadata.shape.journal_inode == 0
            && self.journal_uuid != [0; 16]
    }

    /// The volume can only be read if the newest superblock, which may be in the memory, says that errors were found.
    pub fn notice_errors(&mut self, replayed: &Replayed, access: Access) {
        if let Some(bytes) = replayed.blocks.get(&self.metadata.shape.superblock_block(0)) {
            let at = PLACE as usize % self.metadata.shape.block_bytes;
            let state = Superblock::new(&bytes[at..at + LENGTH]).state();
            self.changes.read_only = self.changes.read_only.take().or_else(|| self.refuses_errors(state, access));
        }
    }

    /// The volume is one with a log in its own inode from now on: in memory, not yet on the device.
    pub fn names_own_log(&mut self) {
        self.metadata.shape.journal_inode = JOURNAL;
        self.head.get_mut().superblock.name_memory(None);
    }

    /// If the journal is not in the volume: gives this mount its number, and the log on a device, whose superblock this is.
    pub fn count_mount(&mut self, log: &mut LogSuperblock) {
        if self.memory.is_none() && self.journal_media.is_none() {
            return;
        }
        let mut before = self.mount_number.later(log.mount_number());
        if let Some(nvm) = self.nvm() {
            let region = FoundRegion::find(&**nvm).ok().flatten();
            let own = region.filter(|region| region.superblock.volume == self.uuid);
            before = own.map_or(before, |region| before.later(region.superblock.mount));
        }
        let [a, b, c, d, ..] = self.new_memory_name();
        self.mount_number = before.next(u32::from_le_bytes([a, b, c, d]));
        if self.journal_media.is_some() {
            log.set_mount_number(self.mount_number);
        }
    }

    /// A UUID for new memory.
    pub fn new_memory_name(&self) -> [u8; 16] {
        let seed = self.generations.load(Relaxed) ^ self.origin.0 as u64;
        let mut random = Random::new(seed, &uuid(self.uuid));
        std::array::from_fn(|_| random.below(256) as u8)
    }
}
