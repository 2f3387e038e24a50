//! The markers: on the device before the first block is held.

use super::journals::{HoldId, marker};
use super::{HeldJournal, OWN, Places};
use crate::device::{BlockDevice, DeviceError, Lba};
use crate::time::Time;
use std::io::Read;

impl HeldJournal {
    /// True if a marker is on the device wherever a journal that is held begins.
    pub(super) fn is_marked(&self, places: &Places) -> bool {
        !self.is_stored || {
            let state = self.state();
            places.superblocks.iter().all(|place| state.owner.markers.contains(place))
        }
    }

    /// Holds the superblocks of the journals, and writes markers in their places.
    pub(super) fn mark(&self, at: Time) -> Result<Time, DeviceError> {
        let places = self.places_to_change();
        let mut state = self.state_to_change(at)?;
        let missing: Vec<Lba> =
            places.superblocks.iter().filter(|place| !state.owner.markers.contains(place)).copied().collect();
        if state.owner.id == [0; 16] {
            state.owner.id = new_id()?;
        }
        state.mark_running()?;
        let (mut done, mut marked) = (at, Vec::new());
        for place in missing {
            if !state.held.contains(place) {
                let mut block = vec![0; self.width()];
                done = self.device.read(place, &mut block, done)?;
                state.held.put(place, &block, OWN);
            }
            done = self.device.write(place, &marker(&state.owner.id, place), OWN, done)?;
            state.sent.add(OWN, 1);
            marked.push(place);
        }
        done = self.device.flush(done)?;
        state.owner.markers.extend(marked);
        Ok(done)
    }
}

/// A number that no other hold has.
fn new_id() -> Result<HoldId, DeviceError> {
    let mut id = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
    read.map_err(DeviceError::io("draw a number from /dev/urandom"))?;
    Ok(id)
}
