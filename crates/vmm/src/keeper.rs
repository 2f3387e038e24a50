//! All volumes whose memory is kept, and the holder of each.

use crate::name::HeldName;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time that a session waits for a volume whose holder recovers or reads it, or is dead.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time that a session waits for a holder that has mounted the volume, and may be about to unmount it.
const PATIENCE_WITH_LIVING: Duration = Duration::from_secs(3);

/// A volume whose memory is kept.
pub(crate) struct Volume {
    pub name: [u8; 16],
    /// Bytes of a block.
    pub width: u32,
    pub table: Table,
    pub memory: Arc<Shared>,
    pub path: String,
    pub directory: String,
    /// It was read from the spill of an earlier monitor.
    pub is_of_spill: bool,
}

/// The holder of a volume.
#[derive(Clone, Debug)]
struct Holder {
    session: u64,
    peer: Arc<Peer>,
    /// It commits, and may do so for ever.
    has_begun: bool,
}

#[derive(Default)]
struct Slot {
    holder: Option<Holder>,
    volume: Option<Volume>,
    /// The name of its memory: nobody gives that up while it is kept here.
    name: Option<HeldName>,
    /// A thread sees to it that the kept memory is written home.
    is_recovered: bool,
}

/// The volumes by their UUIDs.
#[derive(Default)]
pub(crate) struct Keeper {
    slots: Mutex<BTreeMap<[u8; 16], Slot>>,
    released: Condvar,
}

impl Keeper {
    fn slots(&self) -> MutexGuard<'_, BTreeMap<[u8; 16], Slot>> {
        // Changes of a slot are whole, or are done again by the next one.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes hold of a volume, when nobody else has it.
    pub fn hold(&self, uuid: [u8; 16], session: u64, peer: &Arc<Peer>) -> Result<(), String> {
        let other = |slots: &BTreeMap<[u8; 16], Slot>| {
            let holder = slots.get(&uuid).and_then(|slot| slot.holder.clone());
            holder.filter(|holder| holder.session != session)
        };
        let wait = |slots, patience| {
            let waited = self.released.wait_timeout_while(slots, patience, |slots| other(slots).is_some());
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let mut slots = wait(self.slots(), PATIENCE_WITH_LIVING);
        if other(&slots).is_some_and(|other| !other.has_begun || !other.peer.lives()) {
            slots = wait(slots, PATIENCE);
        }
        if let Some(other) = other(&slots) {
            let (process, what) = (other.peer.process, if other.has_begun { "is mounted" } else { "is recovered" });
            return Err(format!("the volume {what} by process {process}"));
        }
        let slot = slots.entry(uuid).or_default();
        slot.holder.get_or_insert_with(|| Holder { session, peer: Arc::clone(peer), has_begun: false });
        Ok(())
    }

    /// The holder commits from now on.
    pub fn begun(&self, uuid: [u8; 16], volume: Volume, name: HeldName) {
        let mut slots = self.slots();
        let slot = slots.entry(uuid).or_default();
        (slot.volume, slot.name) = (Some(volume), Some(name));
        slot.holder.as_mut().expect("who begins holds the volume").has_begun = true;
    }

    /// Does something with the memory of a volume, if any is kept.
    pub fn with<T>(&self, uuid: [u8; 16], work: impl FnOnce(&mut Volume) -> T) -> Option<T> {
        self.slots().get_mut(&uuid).and_then(|slot| slot.volume.as_mut()).map(work)
    }

    /// Keeps a volume whose guest died with the monitor before. The caller has to see to its recovery.
    pub fn restore(&self, uuid: [u8; 16], volume: Volume, name: HeldName) {
        let slot = Slot { holder: None, volume: Some(volume), name: Some(name), is_recovered: true };
        self.slots().insert(uuid, slot);
    }

    /// Keeps nothing of a volume any more. It can be held again. True if it was the last one of a spill.
    pub fn forget(&self, uuid: [u8; 16]) -> bool {
        let mut slots = self.slots();
        let forgotten = slots.remove(&uuid).and_then(|slot| slot.volume);
        self.released.notify_all();
        let mut left = slots.values().filter_map(|slot| slot.volume.as_ref());
        forgotten.is_some_and(|volume| volume.is_of_spill) && !left.any(|volume| volume.is_of_spill)
    }

    /// All volumes. Nothing changes as long as the caller has them.
    pub fn frozen(&self) -> Frozen<'_> {
        Frozen(self.slots())
    }

    /// A session holds the volume no longer. True if memory of it is kept, and the caller is the one that has to see to its
    /// recovery.
    pub fn release(&self, uuid: [u8; 16], session: u64) -> bool {
        let mut slots = self.slots();
        let mut is_to_recover = false;
        if let Some(slot) = slots.get_mut(&uuid)
            && slot.holder.as_ref().is_some_and(|holder| holder.session == session)
        {
            slot.holder = None;
            if slot.volume.is_some() {
                is_to_recover = !std::mem::replace(&mut slot.is_recovered, true);
            } else {
                slots.remove(&uuid);
            }
        }
        drop(slots);
        self.released.notify_all();
        is_to_recover
    }

    /// Waits until nobody holds the volume. `None` if somebody does for longer than a dying process, and recovers it then, or
    /// if nothing is kept of it any more.
    pub fn left<T>(&self, uuid: [u8; 16], look: impl FnOnce(&Volume) -> T) -> Option<T> {
        let is_held = |slots: &mut BTreeMap<[u8; 16], Slot>| slots.get(&uuid).is_some_and(|slot| slot.holder.is_some());
        let waited = self.released.wait_timeout_while(self.slots(), PATIENCE_WITH_LIVING, is_held);
        let (mut slots, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get_mut(&uuid)?;
        match &slot.holder {
            Some(_) => {
                slot.is_recovered = false;
                None
            }
            None => slot.volume.as_ref().map(look),
        }
    }

    /// The volumes that dead guests have left, of which nothing is seen to: the caller has to see to their recovery from then on.
    /// `without`: those that it leaves as they are.
    pub fn take_left(&self, without: &BTreeSet<[u8; 16]>) -> Vec<[u8; 16]> {
        let mut slots = self.slots();
        let is_left = |slot: &Slot| {
            let is_held = slot.holder.as_ref().is_some_and(|holder| !holder.has_begun || holder.peer.lives());
            slot.volume.is_some() && !slot.is_recovered && !is_held
        };
        let left =
            slots.iter_mut().filter(|(uuid, slot)| !without.contains(*uuid) && is_left(slot)).map(|(uuid, slot)| {
                (slot.holder, slot.is_recovered) = (None, true);
                *uuid
            });
        left.collect()
    }

    /// True while a thread sees to it that something is written home.
    pub fn recovers(&self) -> bool {
        self.slots().values().any(|slot| slot.volume.is_some() && slot.is_recovered)
    }

    /// Nobody sees to the recovery of the volume any more.
    pub fn give_up(&self, uuid: [u8; 16]) {
        if let Some(slot) = self.slots().get_mut(&uuid) {
            slot.is_recovered = false;
        }
    }
}

/// All that is kept, while nothing of it changes: requests wait.
pub struct Frozen<'k>(MutexGuard<'k, BTreeMap<[u8; 16], Slot>>);

impl Frozen<'_> {
    /// All volumes.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = ([u8; 16], &Volume)> {
        self.0.iter().filter_map(|(uuid, slot)| Some((*uuid, slot.volume.as_ref()?)))
    }

    /// The number of volumes, of the blocks that are kept of them, and the bytes of memory that the tables take.
    pub fn totals(&self) -> (usize, usize, usize) {
        self.volumes().fold((0, 0, 0), |(count, blocks, bytes), (_, volume)| {
            (count + 1, blocks + volume.table.len(), bytes + volume.table.memory_bytes())
        })
    }
}
