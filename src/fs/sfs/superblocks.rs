//! The superblocks on a medium: which are whole, and which of them belong together.
//!
//! A block that looks like a superblock need not be this volume's: an earlier one with other segments left some, and a
//! file may hold the image of a volume. So the second place counts only where the superblock in it says that it is, and
//! the first place says whose volume this is.

use super::checkpoint::CRC_FIELD;
use super::error::OpenSfsError;
use super::format::{BlockBytes, OLDEST_VERSION, Superblock, VERSION, crc_without};
use super::invariants;
use super::media::superblock_places;
use crate::device::Medium;
use crate::time::Time;
use zerocopy::FromBytes;

/// A superblock that is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub superblock: Superblock,
    /// Which of the two places or zones it was found in.
    pub turn: u32,
    /// The block of the device.
    pub place: u64,
}

/// All that were found.
pub(super) struct AllFound {
    /// Those that are whole, the newest first.
    pub whole: Vec<Found>,
    /// Those that are not: the block of the device, the place or zone, and what is wrong.
    pub damaged: Vec<(u64, u32, String)>,
    /// Where the two newest disagree about one checkpoint.
    pub disagree: Option<String>,
}

impl AllFound {
    /// The newest that is whole.
    pub fn newest(&self) -> Result<Found, OpenSfsError> {
        match self.whole.first() {
            Some(found) => Ok(*found),
            None if self.damaged.is_empty() => Err(OpenSfsError::NoVolume),
            None => {
                let reasons: Vec<String> =
                    self.damaged.iter().map(|(place, _, why)| format!("block {place}: {why}")).collect();
                Err(OpenSfsError::Superblocks(reasons.join("; ")))
            }
        }
    }
}

/// A superblock, if its checksum is right and its fields can be. `turn`: in which of the two places it was found, on a
/// device of blocks. One of another version is only known by that.
pub(super) fn read(bytes: &BlockBytes, turn: Option<u32>) -> Result<Superblock, String> {
    let superblock = Superblock::read_from_prefix(&bytes[..]).expect("a block is longer").0;
    let crc = crc_without(&bytes[..], CRC_FIELD);
    if crc != superblock.crc.get() {
        return Err(format!("its checksum is {crc:08x}, and should be {:08x}", superblock.crc.get()));
    }
    if (OLDEST_VERSION..=VERSION).contains(&superblock.version.get()) {
        invariants::superblock(&superblock, turn)?;
    }
    Ok(superblock)
}

/// Looks for superblocks. Fails if the volume is of another version of the format.
pub(super) fn find(medium: &mut Medium, at: Time) -> Result<(AllFound, Time), OpenSfsError> {
    let is_zoned = medium.prescribes_segments();
    let (candidates, now) = medium.superblocks(at)?;
    let mut all = AllFound { whole: Vec::new(), damaged: Vec::new(), disagree: None };
    for candidate in candidates {
        match read(&candidate.bytes, (!is_zoned).then_some(candidate.turn)) {
            Ok(superblock) if !(OLDEST_VERSION..=VERSION).contains(&superblock.version.get()) => {
                return Err(OpenSfsError::Version { found: superblock.version.get(), known: VERSION });
            }
            Ok(superblock) => {
                let second = superblock_places(superblock.segment_blocks.get())[1];
                if is_zoned || candidate.turn == 0 || second.0 == candidate.place {
                    all.whole.push(Found { superblock, turn: candidate.turn, place: candidate.place });
                }
            }
            Err(why) => all.damaged.push((candidate.place, candidate.turn, why)),
        }
    }
    let first = all.whole.iter().find(|found| !is_zoned && found.turn == 0).copied();
    if let Some(first) = first {
        let shape = |superblock: &Superblock| (superblock.identity, superblock.segment_blocks, superblock.segments);
        all.whole.retain(|found| shape(&found.superblock) == shape(&first.superblock));
    }
    all.whole.sort_by_key(|found| std::cmp::Reverse(found.superblock.sequence.get()));
    // A zone's log may hold an earlier volume's only until its zone is reset; the newest says whose the others must be.
    if let Some(newest) = all.whole.first().copied() {
        all.whole.retain(|found| found.superblock.identity == newest.superblock.identity);
    }
    if let [newest, before, ..] = &all.whole[..] {
        all.disagree = invariants::copies(&newest.superblock, &before.superblock).err();
    }
    Ok((all, now))
}
