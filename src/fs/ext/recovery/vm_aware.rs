//! A volume whose journal is the memory of its own process, which a monitor keeps.
//!
//! As with a journal in non-volatile memory, the superblock names it while the volume is mounted, so that the kernel and
//! e2fsck refuse the volume: they could not find the blocks that are not home.
//!
//! | | volume's superblock | monitor |
//! |---|---|---|
//! | unmounted | journal inode 8, clean | keeps nothing |
//! | a mount begins | | begins: the volume's UUID, a new name, no blocks |
//! | mounted | journal inode 0, UUID is the name, needs recovery | blocks that are not home |
//! | a recovery has written them home | | no blocks |
//! | a recovery ends | journal inode 8, empty log | ends |
//!
//! The superblock has the UUID in another place as well, where it stays after the end. So memory that comes back from a monitor's spill, after the journal has
//! moved into the volume, is known to be older than the volume.

use super::memory::refused;
use super::replay::Replayed;
use crate::device::{DeviceError, Frame, HeldName, ImageError, KeptBlocks, KeptVolume, Monitor, NameError};
use crate::fs::ext::Ext;
use crate::fs::ext::error::{GIVE_UP, OpenExtError, damaged};
use crate::fs::ext::format::features::HAS_JOURNAL;
use crate::fs::ext::format::superblock::{LENGTH, MAGIC, Superblock};
use crate::fs::ext::inspect::uuid;
use crate::fs::ext::journal::TransactionId;
use crate::fs::ext::settings::DataMode;
use crate::fs::station::Access;
use crate::task::Task;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The monitor's answer about blocks that are home: one that has ended keeps none of them.
pub fn unless_gone(monitor: &dyn Monitor, answered: Result<(), DeviceError>) -> Result<(), OpenExtError> {
    match answered {
        Err(_) if monitor.is_gone() => Ok(()),
        answered => answered.map_err(refused),
    }
}

/// Refuses a monitor that keeps memory which no volume has taken in.
pub fn refuse_kept(monitor: &dyn Monitor, volume: [u8; 16]) -> Result<(), OpenExtError> {
    match monitor.kept_of(volume).map_err(refused)?.filter(|kept| !kept.blocks.is_empty()) {
        Some(kept) => {
            let (name, volume) = (uuid(kept.name), uuid(kept.volume));
            Err(refused(format!(
                "the monitor keeps memory {name} of volume {volume}: mount that one first; if it is this one, restored from an \
                 older time, end the monitor and remove its spill"
            )))
        }
        None => Ok(()),
    }
}

/// The same as [`Ext::hold_memory_name`] for a caller that is about to replace the volume with this superblock; `None` if it names no memory.
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

impl Ext {
    /// Refuses while a monitor that lives keeps the memory that the superblock names, if that is none of this path: it may be about
    /// to write home the blocks that a dead process has left. As long as the caller has the name, no monitor takes that memory back.
    pub fn hold_memory_name(&self) -> Result<HeldName, OpenExtError> {
        hold_name(self.journal_uuid).map_err(OpenExtError::InUse)
    }

    /// The memory that the monitor keeps of this volume, which must be that which the superblock names.
    pub fn kept_memory(&self, monitor: &dyn Monitor) -> Result<KeptBlocks, OpenExtError> {
        let wanted = uuid(self.journal_uuid);
        let Some(kept) = monitor.kept_of(self.uuid).map_err(refused)? else {
            self.hold_memory_name()?;
            return Err(refused(format!(
                "memory {wanted} of the volume is not kept by this monitor; if it is lost, {GIVE_UP}"
            )));
        };
        if kept.name != self.journal_uuid || kept.volume != self.uuid {
            let (name, volume) = (uuid(kept.name), uuid(kept.volume));
            let what = format!("the monitor keeps memory {name} of volume {volume}, and the volume names {wanted}");
            return Err(refused(what));
        }
        Ok(kept)
    }

    /// The blocks that a monitor kept. Blocks that the volume does not have are damage.
    pub fn replayed_memory(&self, kept: &KeptBlocks) -> Replayed {
        let mut damage = Vec::new();
        let mut blocks = BTreeMap::new();
        for (block, frame) in &kept.blocks {
            if frame.len() != self.metadata.media.width() {
                let why =
                    format!("block {block} has {} bytes, and should have {}", frame.len(), self.metadata.media.width());
                damage.push(damaged("the memory that the monitor kept", why));
            } else if self.metadata.shape.holds(*block, 1) || *block == self.metadata.shape.superblock_block(0) {
                blocks.insert(*block, frame.clone());
            } else {
                let why = format!("it has block {block}, which the volume has not");
                damage.push(damaged("the memory that the monitor kept", why));
            }
        }
        Replayed { blocks, next: TransactionId(kept.last).next(), damaged: damage }
    }

    /// If a monitor keeps memory of the volume: writes its blocks home. From then on the volume is one with a log in its
    /// own inode, which is empty.
    pub fn recover_memory(&mut self, task: &Task<'_>, access: Access) -> Result<(), OpenExtError> {
        let Some(monitor) = self.monitor().map(Arc::clone) else { return Ok(()) };
        if !self.names_a_journal() {
            return self.forget_older_memory(task, &*monitor);
        }
        let kept = self.kept_memory(&*monitor)?;
        let mut replayed = self.replayed_memory(&kept);
        if let Some(error) = replayed.damaged.pop() {
            return Err(error.into());
        }
        self.notice_errors(&replayed, access);
        let next = replayed.next;
        self.keep_replayed(task, replayed)?;
        self.names_own_log();
        if self.changes.read_only.is_none() {
            self.has_logged_data = false.into();
            self.adopt(kept.blocks);
            // A crash on the way leaves a volume that names memory without blocks, or does not name it.
            unless_gone(monitor.as_ref(), task.ask(|at| monitor.let_go(at, next.0)).map(drop))?;
            self.mark_superblock(task, true)?;
            unless_gone(monitor.as_ref(), monitor.end())?;
        }
        Ok(())
    }

    /// Takes memory that was kept, and is home now, as the first content of the cache of blocks. It may be bytes of files, of which
    /// that cache is only asked if they go through the journal.
    fn adopt(&mut self, kept: BTreeMap<u64, Frame>) {
        if self.settings.data != DataMode::Journal {
            return;
        }
        self.has_logged_data = true.into();
        for (block, bytes) in kept {
            if let Err(before) = self.metadata.blocks.get(block) {
                self.metadata.blocks.insert(block, bytes, before);
            }
        }
    }

    /// Lets a monitor forget memory that was the last one of the volume: since it was spilled, the volume's journal has moved into
    /// the volume.
    fn forget_older_memory(&mut self, task: &Task<'_>, monitor: &dyn Monitor) -> Result<(), OpenExtError> {
        let kept = monitor.kept_of(self.uuid).map_err(refused)?;
        let last = self.head.get_mut().superblock.last_memory();
        match kept.filter(|kept| kept.volume == self.uuid && kept.name == last && self.changes.read_only.is_none()) {
            Some(kept) => {
                task.ask(|at| monitor.let_go(at, kept.last.wrapping_add(1))).map_err(refused)?;
                monitor.end().map_err(refused)
            }
            None => refuse_kept(monitor, self.uuid),
        }
    }

    /// Lets the monitor begin, with transaction `next`. It keeps `most_kept` blocks at the most.
    pub fn begin_memory(
        &mut self,
        next: TransactionId,
        most_kept: u32,
    ) -> Result<Option<Arc<dyn Monitor>>, OpenExtError> {
        let Some(monitor) = self.monitor().map(Arc::clone) else { return Ok(None) };
        let name = self.new_memory_name();
        let (blocks, width) = (self.metadata.shape.blocks, self.metadata.media.width());
        let most_in_memory = self.shares.blocks / self.metadata.shape.block_bytes as u64 + 4 * u64::from(most_kept);
        let volume = KeptVolume { uuid: self.uuid, name, blocks, width, most_in_memory };
        monitor.begin(volume, next.0).map_err(refused)?;
        if let Some(arena) = monitor.arena() {
            self.metadata.blocks.keep_in(arena);
        }
        self.head.get_mut().memory_name = Some(name);
        Ok(Some(monitor))
    }
}
