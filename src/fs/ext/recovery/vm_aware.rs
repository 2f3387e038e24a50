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
use super::opening::Opening;
use super::replay::Replayed;
use crate::device::{DeviceError, Frame, KeptBlocks, KeptVolume, Monitor};
use crate::fs::ext::error::{GIVE_UP, OpenExtError, damaged};
use crate::fs::ext::format::bytes::uuid;
use crate::fs::ext::journal::TransactionId;
use crate::fs::ext::journal_below::JournalBelow;
use crate::fs::ext::marking::mark_superblock;
use crate::fs::ext::metadata::Metadata;
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

impl JournalBelow {
    /// The memory that the monitor keeps of this volume, which must be that which the superblock names.
    pub fn kept_memory(&self, monitor: &dyn Monitor) -> Result<KeptBlocks, OpenExtError> {
        let wanted = uuid(self.journal);
        let Some(kept) = monitor.kept_of(self.volume).map_err(refused)? else {
            self.hold_memory_name()?;
            return Err(refused(format!(
                "memory {wanted} of the volume is not kept by this monitor; if it is lost, {GIVE_UP}"
            )));
        };
        if kept.name != self.journal || kept.volume != self.volume {
            let (name, volume) = (uuid(kept.name), uuid(kept.volume));
            let what = format!("the monitor keeps memory {name} of volume {volume}, and the volume names {wanted}");
            return Err(refused(what));
        }
        Ok(kept)
    }
}

/// The blocks that a monitor kept. Blocks that the volume does not have are damage.
pub fn replayed_memory(metadata: &Metadata, kept: &KeptBlocks) -> Replayed {
    let mut damage = Vec::new();
    let mut blocks = BTreeMap::new();
    for (block, frame) in &kept.blocks {
        if frame.len() != metadata.media.width() {
            let why = format!("block {block} has {} bytes, and should have {}", frame.len(), metadata.media.width());
            damage.push(damaged("the memory that the monitor kept", why));
        } else if metadata.shape.holds(*block, 1) || *block == metadata.shape.superblock_block(0) {
            blocks.insert(*block, frame.clone());
        } else {
            let why = format!("it has block {block}, which the volume has not");
            damage.push(damaged("the memory that the monitor kept", why));
        }
    }
    Replayed { blocks, next: TransactionId(kept.last).next(), damaged: damage }
}

impl Opening {
    /// If a monitor keeps memory of the volume: writes its blocks home. From then on the volume is one with a log in its
    /// own inode, which is empty.
    pub fn recover_memory(&mut self, task: &Task<'_>, access: Access) -> Result<(), OpenExtError> {
        let Some(monitor) = self.below.monitor().map(Arc::clone) else { return Ok(()) };
        if !self.below.is_named(&self.parts.metadata.shape) {
            return self.forget_older_memory(task, &*monitor);
        }
        let kept = self.below.kept_memory(&*monitor)?;
        let mut replayed = replayed_memory(&self.parts.metadata, &kept);
        if let Some(error) = replayed.damaged.pop() {
            return Err(error.into());
        }
        self.notice_errors(&replayed.blocks, access);
        let next = replayed.next;
        self.keep_replayed(task, replayed)?;
        self.names_own_log();
        if self.parts.changes.read_only.is_none() {
            self.parts.has_logged_data = false.into();
            self.adopt(kept.blocks);
            // A crash on the way leaves a volume that names memory without blocks, or does not name it.
            unless_gone(monitor.as_ref(), task.ask(|at| monitor.let_go(at, next.0)).map(drop))?;
            mark_superblock(task, &self.parts, &self.below, true)?;
            unless_gone(monitor.as_ref(), monitor.end())?;
        }
        Ok(())
    }

    /// Takes memory that was kept, and is home now, as the first content of the cache of blocks. It may be bytes of files, of which
    /// that cache is only asked if they go through the journal.
    fn adopt(&mut self, kept: BTreeMap<u64, Frame>) {
        if self.parts.settings.data != DataMode::Journal {
            return;
        }
        self.parts.has_logged_data = true.into();
        for (block, bytes) in kept {
            if let Err(before) = self.parts.metadata.blocks.get(block) {
                self.parts.metadata.blocks.insert(block, bytes, before);
            }
        }
    }

    /// Lets a monitor forget memory that was the last one of the volume: since it was spilled, the volume's journal has moved into
    /// the volume.
    fn forget_older_memory(&mut self, task: &Task<'_>, monitor: &dyn Monitor) -> Result<(), OpenExtError> {
        let kept = monitor.kept_of(self.below.volume).map_err(refused)?;
        let last = self.parts.head.get_mut().superblock.last_memory();
        match kept.filter(|kept| {
            kept.volume == self.below.volume && kept.name == last && self.parts.changes.read_only.is_none()
        }) {
            Some(kept) => {
                task.ask(|at| monitor.let_go(at, kept.last.wrapping_add(1))).map_err(refused)?;
                monitor.end().map_err(refused)
            }
            None => refuse_kept(monitor, self.below.volume),
        }
    }

    /// Lets the monitor begin, with transaction `next`. It keeps `most_kept` blocks at the most.
    pub fn begin_memory(
        &mut self,
        next: TransactionId,
        most_kept: u32,
    ) -> Result<Option<Arc<dyn Monitor>>, OpenExtError> {
        let Some(monitor) = self.below.monitor().map(Arc::clone) else { return Ok(None) };
        let name = self.new_memory_name();
        let (blocks, width) = (self.parts.metadata.shape.blocks, self.parts.metadata.media.width());
        let most_in_memory =
            self.parts.shares.blocks / self.parts.metadata.shape.block_bytes as u64 + 4 * u64::from(most_kept);
        let volume = KeptVolume { uuid: self.below.volume, name, blocks, width, most_in_memory };
        monitor.begin(volume, next.0).map_err(refused)?;
        if let Some(arena) = monitor.arena() {
            self.parts.metadata.blocks.keep_in(arena);
        }
        self.parts.head.get_mut().memory_name = Some(name);
        Ok(Some(monitor))
    }
}
