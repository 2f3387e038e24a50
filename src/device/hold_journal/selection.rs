//! The journals to hold among those that the file system above has, and the refusal of lost ones.

use super::journals::{marker_id, superblocks};
use super::spill::{MOST_MARKERS, Spilled};
use super::{HeldJournal, KIND, Places};
use crate::device::station::StationError;
use crate::device::{BlockDevice, DeviceError, Lba};
use crate::time::Time;
use crate::units::{BLOCK_BYTES, human_size};
use std::ops::Range;

impl HeldJournal {
    /// Selects the journals to hold among those that the file system above has. An error refuses them; a journal that is
    /// no journal of ext is left to the device, with a warning.
    pub(super) fn select(&self, journals: &[Range<Lba>]) -> Result<Places, DeviceError> {
        let holds_bytes = self.width() as u64 == BLOCK_BYTES;
        if holds_bytes {
            for place in journals.iter().flat_map(|range| [range.start, range.start + 1]) {
                let is_below = place.0 < self.device.blocks() && !self.state().held.contains(place);
                if is_below && marker_id(&self.read_below(place)?, place).is_some() {
                    return self.refuse("journal-lost", self.loss(place));
                }
            }
        }
        if self.drains || journals.is_empty() {
            return Ok(Places::default());
        }
        let blocks: u64 = journals.iter().map(|range| range.end.0 - range.start.0).sum();
        if blocks > self.most {
            let [needed, given] = [blocks, self.most].map(|blocks| human_size((blocks * BLOCK_BYTES) as f64));
            let reason = format!("the journal has {needed}, and memory= allows {given}: give it {needed} at least");
            return self.refuse("journal-not-held", reason);
        }
        let mut places = Places { journals: journals.to_vec(), ..Places::default() };
        if holds_bytes {
            let read = |place: Lba| {
                let held = self.state().held.get(place).map(|block| block.bytes.to_vec());
                held.map_or_else(|| self.read_below(place), Ok)
            };
            match superblocks(journals, read)? {
                Ok(found) if found.len() <= MOST_MARKERS => places.superblocks = found,
                Ok(found) => return self.refuse("journal-not-held", format!("there are {} journals", found.len())),
                Err(reason) => {
                    self.state().warnings.add("journal-not-held", format!("a journal is not held: {reason}"));
                    return Ok(Places::default());
                }
            }
        }
        let reserved = self.state().spill.as_ref().map_or(Ok(()), |spill| spill.reserve(blocks));
        reserved.map_or_else(|error| self.refuse("journal-not-held", error.to_string()), |()| Ok(places))
    }

    /// Refuses to open. Once clients have written, their journal goes to the device instead, with a warning.
    fn refuse(&self, kind: &'static str, reason: String) -> Result<Places, DeviceError> {
        let mut state = self.state();
        if state.received.total() == 0 || self.width() as u64 != BLOCK_BYTES {
            return Err(DeviceError::Station { station: KIND.name, reason });
        }
        state.warnings.add(kind, format!("a journal is not held: {reason}"));
        Ok(Places::default())
    }

    /// The error of a journal whose marker is on the device, and whose blocks are nowhere.
    fn loss(&self, place: Lba) -> String {
        let spill = match &self.state().spill {
            Some(spill) => format!("{} does not hold it", spill.name()),
            None => "if that server had a spill=, give the same".to_string(),
        };
        format!(
            "the journal at block {} was in the memory of a server that did not end in order, and is lost ({spill}); \
             the file system on it can be inconsistent: leave hold-journal out of the path, and repair the file system with \
             'e2fsck -f -y', which makes a new journal",
            place.0
        )
    }
}

/// Checks that a spilled journal is that of this device: its markers are there. A crash while it was written home may have
/// replaced some of them by the blocks of the file, but not all.
pub(super) fn check_owner(device: &dyn BlockDevice, spilled: &Spilled, name: &str) -> Result<(), StationError> {
    let owner = &spilled.owner;
    let (mut markers, mut at_home) = (0, 0);
    if device.blocks() == owner.device_blocks {
        let mut block = vec![0; device.block_width()];
        for place in &owner.markers {
            device.read(*place, &mut block, Time::ZERO)?;
            let is_marker = marker_id(&block, *place) == Some(owner.id);
            markers += usize::from(is_marker);
            at_home += usize::from(!is_marker && spilled.held.get(*place).is_some_and(|held| *held.bytes == block));
        }
    }
    if markers > 0 && markers + at_home == owner.markers.len() {
        return Ok(());
    }
    let reason = format!(
        "{name} holds the journal of another device, or of this one before it was changed without hold-journal; give \
         spill= another name, or remove the file if its device is no longer needed"
    );
    Err(StationError::Device(DeviceError::Station { station: KIND.name, reason }))
}
