//! The end of a hold: held blocks go to the spill file, or home to the device.

use super::{DeviceError, HeldJournal, Lba, Places, State};
use crate::device::BlockDevice;
use crate::time::Time;

/// The maximum number of blocks in a write home.
const PIECE_BLOCKS: u64 = 256;

impl HeldJournal {
    /// Ends the hold: to the spill file if there is one, otherwise home. A spill that fails goes home, with a warning.
    pub(super) fn end(&self, at: Time) -> Result<Time, DeviceError> {
        let mut state = self.state();
        if state.is_spilled {
            return Ok(at);
        }
        if let Some(spill) = state.spill.as_ref().filter(|_| !state.owner.markers.is_empty()) {
            match spill.spill(&state.owner, &state.held) {
                Ok(()) => {
                    state.is_spilled = true;
                    state.events.spilled += state.held.count();
                    return Ok(at);
                }
                Err(error) => {
                    let name = spill.name().to_string();
                    let what =
                        format!("cannot spill to {name}: {error}; the journal was written to the device instead");
                    state.warnings.add("spill-failed", what);
                }
            }
        }
        let all: Vec<Lba> = state.held.iter().map(|(place, _)| place).collect();
        self.write_home(&mut state, &all, at)
    }

    /// Writes a spilled journal home, and then voids the spill file. A crash before its end leaves the spill file valid.
    pub(super) fn drain_all(&self, at: Time) -> Result<Time, DeviceError> {
        let mut state = self.state();
        if !state.is_spilled {
            return Ok(at);
        }
        let all: Vec<Lba> = state.held.iter().map(|(place, _)| place).collect();
        let done = self.write_home(&mut state, &all, at)?;
        state.mark_running()?;
        Ok(done)
    }

    /// Writes the held blocks home that are outside of `places`.
    pub(super) fn release_outside(&self, places: &Places) -> Result<(), DeviceError> {
        let mut state = self.state();
        let outside: Vec<Lba> = state
            .held
            .iter()
            .filter(|(place, block)| !places.holds(*place, block.label))
            .map(|(place, _)| place)
            .collect();
        if outside.is_empty() {
            return Ok(());
        }
        if state.is_spilled {
            state.mark_running()?;
        }
        let now = state.now;
        self.write_home(&mut state, &outside, now).map(|_| ())
    }

    /// Writes held blocks home, durably: superblocks in the places of markers last. After an error, all stay held.
    fn write_home(&self, state: &mut State, places: &[Lba], at: Time) -> Result<Time, DeviceError> {
        if places.is_empty() {
            return Ok(at);
        }
        let (marked, other): (Vec<Lba>, Vec<Lba>) =
            places.iter().partition(|place| state.owner.markers.contains(place));
        let mut done = at;
        for part in [other, marked] {
            for (run, label) in state.held.runs(part, PIECE_BLOCKS) {
                let bytes = state.held.bytes_of(run.clone());
                done = done.max(self.device.write(run.start, &bytes, label, at)?);
                state.sent.add(label, run.end.0 - run.start.0);
            }
            done = self.device.flush(done)?;
        }
        for place in places {
            state.forget(*place..*place + 1);
        }
        state.events.drained += places.len() as u64;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spill::SpillFile;
    use super::super::{HeldJournal, HoldJournalSettings, KIND};
    use crate::device::conv::Conventional;
    use crate::device::{Abilities, BlockDevice, Lba};
    use crate::expression::parse_term;
    use crate::label::{Content, Label};
    use crate::time::Time;
    use crate::units::BLOCK_BYTES;

    const BLOCK: usize = BLOCK_BYTES as usize;
    const JOURNAL: Label = Label::host(Content::Journal);

    #[test]
    fn a_spill_that_fails_goes_home() {
        let directory = tempfile::TempDir::new().unwrap();
        let settings = HoldJournalSettings::read(&parse_term(KIND.name).unwrap(), &[]).unwrap();
        let device = HeldJournal::open(&settings, Box::new(Conventional::in_memory(64, BLOCK)), false).unwrap();
        let mut superblock = vec![0; BLOCK];
        for (at, word) in [(0, 0xC03B_3998), (4, 4), (12, BLOCK as u32), (16, 8)] {
            superblock[at..at + 4].copy_from_slice(&u32::to_be_bytes(word));
        }
        device.write(Lba(20), &superblock, JOURNAL, Time::ZERO).unwrap();
        device.set_journal(&[Lba(20)..Lba(28)]).unwrap();
        device.write(Lba(21), &[7; BLOCK], JOURNAL, Time::ZERO).unwrap();
        device.state().spill = Some(SpillFile::failing(directory.path()));
        device.close(Time::ZERO).unwrap();
        let account = device.account();
        assert!(account.all_warnings().iter().any(|line| line.contains("was written to the device instead")));
        assert_eq!((account.sent.total(), account.below[0].received.total()), (4, 4));
        for (place, expected) in [(20, &superblock), (21, &vec![7; BLOCK])] {
            assert!(device.read_below(Lba(place)).unwrap() == *expected, "block {place}");
        }
    }
}
