//! The superblocks on a medium: where they are looked for, which are whole, and which of them belong together.
//!
//! A block that looks like a superblock need not be this volume's: an earlier one with other segments left some, and a
//! file may hold the image of a volume. So the second place counts only where the superblock in it says that it is, and
//! the first place says whose volume this is.

use crate::device::{DeviceError, Lba, Medium, ZoneState};
use crate::fs::sfs::error::OpenSfsError;
use crate::fs::sfs::media::format::{
    BlockBytes, MAGIC, OLDEST_VERSION, SUPERBLOCK_CRC, Superblock, VERSION, crc_without, zeroed,
};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::media::{first_sequential, superblock_places};
use crate::time::Time;
use zerocopy::FromBytes;

/// Blocks at which the second superblock is looked for if the first one is damaged: the middles of all segments of up
/// to 128 MiB, and, as powers of two, those of larger ones.
const SEARCHED: std::ops::Range<u64> = 8..16_384;
const LARGER: std::ops::RangeInclusive<u32> = 14..=17;

/// A block that may be a superblock, and where it was found.
struct Candidate {
    /// The place or zone, 0 or 1.
    turn: u32,
    /// The block of the device.
    place: u64,
    bytes: Box<BlockBytes>,
}

/// A superblock that is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub superblock: Superblock,
    /// The place or zone it was found in, 0 or 1.
    pub turn: u32,
    /// The block of the device.
    pub place: u64,
}

/// A superblock that is damaged.
#[derive(Clone, Debug)]
pub(super) struct Damaged {
    /// The block of the device.
    pub place: u64,
    /// The place or zone it was found in, 0 or 1.
    pub turn: u32,
    pub why: String,
}

/// All superblocks that were found.
pub(super) struct AllFound {
    /// Those that are whole, the newest first.
    pub whole: Vec<Found>,
    pub damaged: Vec<Damaged>,
    /// True for each of the two zones in which no two other superblocks have room.
    full: [bool; 2],
    /// The difference between the two newest, if they are of one checkpoint.
    pub disagree: Option<String>,
}

impl AllFound {
    /// Damaged superblocks in zones that are newer than the newest whole one.
    pub fn damaged_behind(&self, newest: &Found) -> Vec<&Damaged> {
        let mut behind = self.torn_zone(newest);
        // The other zone holds nothing older if the superblocks went on there.
        let is_left = self.full[newest.turn as usize & 1] || !behind.is_empty();
        if is_left && self.whole.iter().all(|found| found.turn == newest.turn) {
            behind.extend(self.damaged.iter().filter(|it| it.turn != newest.turn));
        }
        behind
    }

    /// Damaged superblocks behind the newest whole one in its zone. If there are any, the next one begins the other
    /// zone.
    pub fn torn_zone(&self, newest: &Found) -> Vec<&Damaged> {
        self.damaged.iter().filter(|it| it.turn == newest.turn && it.place > newest.place).collect()
    }

    /// True if more superblocks are damaged than crashes leave torn: one in each zone, as the mount after a crash goes
    /// on in the other zone, and the two of a checkpoint lie in one. Nothing was answered for a torn one.
    pub fn are_rotten_behind(&self, newest: &Found) -> bool {
        let behind = self.damaged_behind(newest);
        (0..2).any(|turn| behind.iter().filter(|it| it.turn == turn).count() > 1)
    }

    /// The newest that is whole.
    pub fn newest(&self) -> Result<Found, OpenSfsError> {
        match self.whole.first() {
            Some(found) => Ok(*found),
            None if self.damaged.is_empty() => Err(OpenSfsError::NoVolume),
            None => {
                let reasons: Vec<String> =
                    self.damaged.iter().map(|it| format!("block {}: {}", it.place, it.why)).collect();
                Err(OpenSfsError::Superblocks(reasons.join("; ")))
            }
        }
    }
}

/// A superblock, if its checksum is right and its fields can be. `turn`: in which of the two places it was found, on a
/// device of blocks. One of another version is only known by that.
fn read(bytes: &BlockBytes, turn: Option<u32>) -> Result<Superblock, String> {
    let superblock = Superblock::read_from_prefix(&bytes[..]).expect("a block is longer").0;
    if bytes[..MAGIC.len()] != MAGIC {
        return Err("there is none".to_string());
    }
    let crc = crc_without(&bytes[..], SUPERBLOCK_CRC);
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
    let mut all = AllFound { whole: Vec::new(), damaged: Vec::new(), full: medium.full_zones(), disagree: None };
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
            Err(why) => all.damaged.push(Damaged { place: candidate.place, turn: candidate.turn, why }),
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

impl Medium {
    /// True for each of the two zones of superblocks that has no room for two more.
    fn full_zones(&self) -> [bool; 2] {
        let Medium::Zones(device) = self else { return [false; 2] };
        let (first, zones) = (first_sequential(device.as_ref()), device.shape().zones);
        [first, first.saturating_add(1)].map(|zone| {
            zone < zones && {
                let report = device.zone(zone);
                report.write_pointer + 2 > report.capacity || report.state == ZoneState::Full
            }
        })
    }

    /// Whatever could be a superblock. On a device of blocks the first one tells where the second lies. If it is
    /// damaged, that is looked for from the front: blocks of files are behind it, and one may hold the image of another
    /// volume.
    fn superblocks(&mut self, at: Time) -> Result<(Vec<Candidate>, Time), DeviceError> {
        let mut found = Vec::new();
        let mut at = at;
        let blocks = self.blocks();
        match self {
            Medium::Memory(_) | Medium::Monitor(_) => {}
            Medium::Blocks(device) => {
                let mut look = |place: u64| {
                    let mut bytes = zeroed();
                    at = device.read(Lba(place), &mut bytes[..], at)?;
                    let whole = read(&bytes, Some(u32::from(place > 0)))
                        .ok()
                        .map(|superblock| superblock_places(superblock.segment_blocks.get())[1].0);
                    if bytes[..MAGIC.len()] == MAGIC {
                        found.push(Candidate { turn: u32::from(place > 0), place, bytes });
                    }
                    Ok::<_, DeviceError>(whole)
                };
                match if blocks > 0 { look(0)? } else { None } {
                    Some(second) if second > 0 && second < blocks => drop(look(second)?),
                    Some(_) => {}
                    None => {
                        for place in SEARCHED.chain(LARGER.map(|power| 1 << power)).take_while(|place| *place < blocks)
                        {
                            if look(place)? == Some(place) {
                                break;
                            }
                        }
                    }
                }
            }
            Medium::Zones(device) => {
                let first = first_sequential(device.as_ref());
                let shape = device.shape();
                for turn in 0..2.min(shape.zones.saturating_sub(first)) {
                    let zone = first + turn;
                    let written = device.zone(zone).write_pointer;
                    // The last ones: further back lie only older ones.
                    for block in (0..written).rev().take(4) {
                        let mut bytes = zeroed();
                        let place = u64::from(zone) * shape.zone_blocks + block;
                        at = device.read(Lba(place), &mut bytes[..], at)?;
                        found.push(Candidate { turn, place, bytes });
                    }
                }
                // These zones hold nothing but superblocks, unless they are not of a volume.
                if found.iter().all(|candidate| candidate.bytes[..MAGIC.len()] != MAGIC) {
                    found.clear();
                }
            }
        }
        Ok((found, at))
    }
}
