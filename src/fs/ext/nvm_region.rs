//! A volume whose journal is in non-volatile memory.
//!
//! The journal is a choice of the mount: while a volume is mounted with a region, its superblock names the region's UUID as
//! that of an external journal, and no inode. The kernel and e2fsck then find no such journal, and do not touch the
//! volume. After the unmount it is an ordinary one again, with the empty log in inode 8 that it had before.
//!
//! | | volume's superblock | region's superblock |
//! |---|---|---|
//! | unmounted | journal inode 8, clean | not in use |
//! | a mount begins | | in use, new generation, the volume's UUID |
//! | mounted | journal inode 0, UUID of the region, needs recovery | |
//! | an unmount ends | journal inode 8, clean | |
//! | unmounted | | not in use |

use super::Ext;
use super::error::{OpenExtError, damaged};
use super::format::features::HAS_JOURNAL;
use super::format::shape::JOURNAL;
use super::format::superblock::{LENGTH, PLACE, Superblock};
use super::inspect::uuid;
use super::journal::{FoundRegion, NvmJournal, RegionSuperblock, TransactionId};
use super::recovery::Replayed;
use super::settings::{DataMode, JournalKind};
use crate::device::nvm::{self, Nvm, NvmSettings};
use crate::expression::parse_term;
use crate::fs::station::Access;
use crate::random::Random;
use crate::task::Task;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The places of the journal's inode and UUID in the superblock.
const JOURNAL_UUID: usize = 208;
const JOURNAL_INODE: usize = 224;

/// The memory below a volume, and what the mount has made of it.
pub struct RegionBelow {
    pub nvm: Arc<dyn Nvm>,
    /// The region's UUID, while it is the volume's journal.
    pub named: Option<[u8; 16]>,
}

/// Puts the name of a region into a volume's superblock, or takes it out.
pub fn name_region(superblock: &mut Superblock, region: Option<[u8; 16]>) {
    superblock.set32(JOURNAL_INODE, if region.is_some() { 0 } else { JOURNAL });
    superblock.set_bytes(JOURNAL_UUID, &region.unwrap_or_default());
}

/// Memory of this process, for a journal of which the path names no memory: the station `nvm` as it is by itself.
fn own_memory() -> Result<Box<dyn Nvm>, OpenExtError> {
    let settings = parse_term(nvm::KIND.name).and_then(|term| NvmSettings::read(&term));
    let memory = settings.expect("the defaults are valid").open();
    Ok(Box::new(memory.map_err(|error| refused(error.to_string()))?))
}

fn refused(why: String) -> OpenExtError {
    OpenExtError::JournalDevice(why)
}

impl Ext {
    /// Takes the memory below, if the journal is there. `is_new`: nothing of the volume was there before, and it may be
    /// memory of this process.
    pub fn take_memory(&mut self, nvm: Option<Box<dyn Nvm>>, is_new: bool) -> Result<(), OpenExtError> {
        let nvm = match (nvm, self.settings.journal) {
            (Some(_), Some(JournalKind::Inline)) => {
                return Err(refused("journal=inline, and memory for a journal: leave one of them out".to_string()));
            }
            (None, Some(JournalKind::Nvm)) if self.journal_media.is_some() => {
                return Err(refused("journal=nvm, and a second device of blocks: write +nvm in its place".to_string()));
            }
            (None, Some(JournalKind::Nvm)) if is_new => own_memory()?,
            (None, Some(JournalKind::Nvm)) => {
                let what = "journal=nvm needs its memory as the second device, such as ext/conv+nvm:image=FILE";
                return Err(refused(what.to_string()));
            }
            (None, _) => {
                return match self.settings.of_nvm {
                    Some(option) => {
                        let what = "is of a journal in non-volatile memory: add its memory, such as +nvm:image=FILE";
                        Err(refused(format!("{option}= {what}")))
                    }
                    None => Ok(()),
                };
            }
            (Some(nvm), _) => nvm,
        };
        if self.settings.is_data_open {
            self.settings.data = DataMode::Journal;
        }
        self.region = Some(RegionBelow { nvm: nvm.into(), named: None });
        Ok(())
    }

    /// True if the superblock says that the journal is in a region, or on a device.
    pub fn names_a_journal(&self) -> bool {
        self.shape.features.has(HAS_JOURNAL) && self.shape.journal_inode == 0 && self.journal_uuid != [0; 16]
    }

    /// The region in the memory below, which must be the one that the volume names.
    pub fn named_region(&self, nvm: &dyn Nvm) -> Result<FoundRegion, OpenExtError> {
        let wanted = uuid(self.journal_uuid);
        let found = FoundRegion::find(nvm).map_err(|why| refused(format!("the region: {why}")))?;
        let Some(found) = found else {
            let what = "the memory has no superblock of a region: it is empty, of something else, or damaged";
            return Err(refused(format!("the volume's journal is region {wanted}; {what}")));
        };
        let RegionSuperblock { region, volume, .. } = found.superblock;
        if uuid(region) != wanted {
            return Err(refused(format!("it is region {}, and the volume's journal is {wanted}", uuid(region))));
        }
        if volume != self.uuid {
            let (of, own) = (uuid(volume), uuid(self.uuid));
            return Err(refused(format!("region {wanted} is in use by volume {of}, and this one is {own}")));
        }
        Ok(found)
    }

    /// What a region has that is not home. Blocks that the volume does not have are damage.
    pub fn replayed_region(&self, nvm: &dyn Nvm, region: &FoundRegion) -> Replayed {
        let mut found = region.replayable(nvm);
        let superblock_block = self.shape.superblock_block(0);
        found.blocks.retain(|block, _| {
            let is_there = self.shape.holds(*block, 1) || *block == superblock_block;
            if !is_there {
                let why = format!("an image of block {block}: the volume has no such block");
                found.damaged.push(damaged("the journal in non-volatile memory", why));
            }
            is_there
        });
        let last = found.last.unwrap_or(TransactionId(region.superblock.next.wrapping_sub(1)));
        Replayed { blocks: found.blocks, next: last.next(), damaged: found.damaged }
    }

    /// If the volume's journal is in a region: takes in what it has that is not home. From then on the volume is one with
    /// a log in its own inode, which is empty.
    pub fn replay_region(&mut self, task: &Task<'_>, access: Access) -> Result<(), OpenExtError> {
        let Some(nvm) = self.region.as_ref().map(|region| Arc::clone(&region.nvm)) else { return Ok(()) };
        if !self.names_a_journal() {
            return Ok(());
        }
        let region = self.named_region(&*nvm)?;
        let mut replayed = self.replayed_region(&*nvm, &region);
        if let Some(error) = replayed.damaged.pop() {
            return Err(error.into());
        }
        if let Some(bytes) = replayed.blocks.get(&self.shape.superblock_block(0)) {
            let at = PLACE as usize % self.shape.block_bytes;
            let state = Superblock::new(&bytes[at..at + LENGTH]).state();
            self.read_only = self.read_only.take().or_else(|| self.refuses_errors(state, access));
        }
        self.keep_replayed(task, replayed)?;
        self.shape.journal_inode = JOURNAL;
        self.journal_uuid = [0; 16];
        name_region(&mut self.head.get_mut().superblock, None);
        if self.read_only.is_none() {
            self.has_logged_data = false.into();
            self.mark_superblock(task, true)?;
            region.emptied().write(&*nvm);
        }
        Ok(())
    }

    /// Begins the journal in the memory below, with transaction `next`.
    pub fn begin_region(&mut self, next: TransactionId) -> Result<Option<NvmJournal>, OpenExtError> {
        let Some(nvm) = self.region.as_ref().map(|region| Arc::clone(&region.nvm)) else { return Ok(None) };
        let options = self.settings.nvm;
        let found = match FoundRegion::find(&*nvm) {
            Ok(found) => found,
            Err(_) if options.renews => None,
            Err(why) => return Err(refused(format!("the region: {why}; renew=on formats it"))),
        };
        if let Some(found) = &found {
            self.refuse_unreplayed(&*nvm, found)?;
        } else if !options.renews && !FoundRegion::is_blank(&*nvm) {
            let why = "the memory holds something that is no region, or a damaged one: renew=on formats it";
            return Err(refused(why.to_string()));
        }
        let (block_bytes, width) = (self.shape.block_bytes, self.media.width());
        let shape = options.shape(nvm.bytes(), block_bytes, width, found.as_ref()).map_err(refused)?;
        let superblock = RegionSuperblock::in_use(found.as_ref(), shape, self.new_region_uuid(), self.uuid, next);
        superblock.write(&*nvm);
        if let Some(below) = &mut self.region {
            below.named = Some(superblock.region);
        }
        let below = (Arc::clone(&self.media), Arc::clone(&self.blocks));
        let journal = NvmJournal::new(nvm, superblock, &options, below, self.origin);
        let is_ordered = self.settings.data == DataMode::Ordered;
        Ok(Some(if is_ordered { journal.with_ordered_data() } else { journal }))
    }

    /// A UUID for a new region.
    fn new_region_uuid(&self) -> [u8; 16] {
        let seed = self.generations.load(Relaxed) ^ self.origin.0 as u64;
        let mut random = Random::new(seed, &uuid(self.uuid));
        std::array::from_fn(|_| random.below(256) as u8)
    }

    /// Refuses a region with transactions that are not home, which this volume has not taken in.
    fn refuse_unreplayed(&self, nvm: &dyn Nvm, found: &FoundRegion) -> Result<(), OpenExtError> {
        let is_home = || {
            let left = found.replayable(nvm);
            left.blocks.is_empty() && left.damaged.is_empty()
        };
        if self.settings.nvm.renews || !found.superblock.is_in_use || is_home() {
            return Ok(());
        }
        let (region, volume) = (uuid(found.superblock.region), uuid(found.superblock.volume));
        let whose = match found.superblock.volume == self.uuid {
            true => "this volume, which does not name it: it was restored, or its journal was removed".to_string(),
            false => format!("volume {volume}: mount that one with it first"),
        };
        Err(refused(format!("region {region} has transactions of {whose}; renew=on drops them")))
    }
}
