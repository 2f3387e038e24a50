//! Selects a metadata set, and validates it against the devices.
//!
//! 1. Read the super blocks. The second is where the first says or, if the first is damaged, at the start of any
//!    conventional zone after it. (The kernel searches for the second among the zones of the zoned device even if the
//!    sets are on the conventional one, finds none, and fails.)
//! 2. Take the set with the higher generation; of two equal ones the first, or the second if the first is damaged.
//! 3. Validate its map and bitmaps against the devices.
//! 4. Before any other write, copy all of it to the other set, unless the two are identical. (The kernel writes only
//!    later changes: a set left behind by a torn commit then reaches the same generation without the rest, and is taken
//!    at the next start.)

use super::error::{ZonedVolumeError, damaged};
use super::format::set_zones;
use super::lost::{METADATA, SUPER_BLOCK};
use super::media::{Media, ZoneClass, ZoneId};
use super::metadata::{Entry, Metadata, SetShape};
use super::superblock::SuperBlock;
use super::zones::{Use, Zones};
use super::{Sets, Volume};
use crate::device::Warnings;
use crate::time::Time;
use crate::units::BLOCK_BYTES;

/// A volume that was read and not written yet.
pub(super) struct Opened {
    pub media: Media,
    pub sets: Sets,
    pub metadata: Metadata,
    pub uses: Vec<Use>,
    /// True if both sets are identical to what a commit would write.
    pub are_equal: bool,
    pub warnings: Warnings,
}

/// A set as read from the media.
pub(super) struct FoundSet {
    pub first_zone: u32,
    pub superblock: Result<SuperBlock, ZonedVolumeError>,
}

/// Reads a block of a zone.
fn read_block(media: &mut Media, zone: u32, block: u32) -> Result<Vec<u8>, ZonedVolumeError> {
    let mut bytes = vec![0; BLOCK_BYTES as usize];
    media.read(ZoneId(zone + block / media.zone_blocks), block % media.zone_blocks, &mut bytes, Time::ZERO)?;
    Ok(bytes)
}

pub(super) fn read_super(media: &mut Media, zone: u32) -> Result<SuperBlock, ZonedVolumeError> {
    let place = u64::from(zone) * u64::from(media.zone_blocks);
    SuperBlock::read(&read_block(media, zone, 0)?, place)
}

/// The super blocks of both sets. If both are damaged, the second is unknown, and returned as not found.
pub(super) fn find_sets(media: &mut Media) -> Result<[FoundSet; 2], ZonedVolumeError> {
    if media.width as u64 != BLOCK_BYTES {
        return Err(ZonedVolumeError::Unsuitable("a volume of stamps has no bytes that could be read".to_string()));
    }
    let Some(first_zone) = media.classes.iter().position(|class| class.is_conventional()) else {
        return Err(ZonedVolumeError::Unsuitable("there is no conventional zone that could hold metadata".to_string()));
    };
    let first_zone = first_zone as u32;
    let first = read_super(media, first_zone).and_then(|superblock| {
        check_shape(media, &superblock)?;
        Ok(superblock)
    });
    let second_zone = match &first {
        Ok(superblock) => Some(first_zone + superblock.set_blocks.div_ceil(media.zone_blocks)),
        Err(_) => (first_zone + 1..media.zones())
            .take_while(|zone| media.classes[*zone as usize].is_conventional())
            .collect::<Vec<_>>()
            .into_iter()
            .find(|zone| read_block(media, *zone, 0).is_ok_and(|bytes| SuperBlock::has_magic(&bytes))),
    };
    let second = second_zone.map(|zone| {
        let superblock = read_super(media, zone).and_then(|superblock| {
            check_shape(media, &superblock)?;
            let expected = first_zone + superblock.set_blocks.div_ceil(media.zone_blocks);
            match zone == expected {
                true => Ok(superblock),
                false => Err(damaged(
                    name(zone),
                    "blocks of a set",
                    superblock.set_blocks,
                    format!("as many as lie before zone {zone}"),
                )),
            }
        });
        FoundSet { first_zone: zone, superblock }
    });
    let second = second.unwrap_or_else(|| FoundSet {
        first_zone,
        superblock: Err(ZonedVolumeError::Unsuitable("no second metadata set was found".to_string())),
    });
    Ok([FoundSet { first_zone, superblock: first }, second])
}

fn name(zone: u32) -> String {
    format!("the super block in zone {zone}")
}

/// Validates a super block against the devices.
fn check_shape(media: &Media, superblock: &SuperBlock) -> Result<SetShape, ZonedVolumeError> {
    let structure = || format!("the super block at block {}", superblock.place);
    let SuperBlock { set_blocks, reserved_zones, chunks, map_blocks, bitmap_blocks, .. } = *superblock;
    let shape = SetShape { chunks, zones: media.zones(), zone_blocks: media.zone_blocks, map_blocks };
    let sum = 1 + u64::from(map_blocks) + u64::from(bitmap_blocks);
    if u64::from(bitmap_blocks) != shape.bitmap_blocks() {
        let expected = format!("{} for {} zones of these devices", shape.bitmap_blocks(), media.zones());
        return Err(damaged(structure(), "bitmap blocks", bitmap_blocks, expected));
    }
    if u64::from(set_blocks) != sum {
        return Err(damaged(structure(), "blocks of a set", set_blocks, sum.to_string()));
    }
    let usable = u64::from(media.whole_zones());
    let taken = 2 * shape.set_zones() + u64::from(reserved_zones);
    if reserved_zones == 0 || taken >= usable {
        return Err(damaged(
            structure(),
            "reserved zones",
            reserved_zones,
            format!("from 1 to {}", usable.saturating_sub(2 * shape.set_zones() + 1)),
        ));
    }
    if chunks == 0 || u64::from(chunks) > usable - taken {
        return Err(damaged(structure(), "chunks", chunks, format!("from 1 to {}", usable - taken)));
    }
    // The map is bounded by the conventional zones that it must fit in.
    if u64::from(map_blocks) < u64::from(chunks).div_ceil(u64::from(super::metadata::ENTRIES)) {
        return Err(damaged(structure(), "map blocks", map_blocks, format!("enough for {chunks} chunks")));
    }
    if set_zones(media, shape.set_zones()).is_none() {
        return Err(damaged(
            structure(),
            "blocks of a set",
            set_blocks,
            "fewer than fill half of the conventional zones",
        ));
    }
    Ok(shape)
}

/// Reads the map and the bitmaps of a set.
fn read_metadata(media: &mut Media, first_zone: u32, superblock: &SuperBlock) -> Result<Metadata, ZonedVolumeError> {
    let mut metadata = Metadata::new(check_shape(media, superblock)?);
    for block in 1..superblock.set_blocks {
        metadata.read_bytes(block, &read_block(media, first_zone, block)?);
    }
    Ok(metadata)
}

/// True if a set is identical to what a commit would write.
fn is_identical(media: &mut Media, sets: &Sets, set: usize, metadata: &Metadata) -> bool {
    let place = u64::from(sets.first_zones[set]) * u64::from(media.zone_blocks);
    let superblock = SuperBlock { place, ..sets.superblock.clone() }.to_bytes();
    let mut expected = vec![0; BLOCK_BYTES as usize];
    (0..sets.superblock.set_blocks).all(|block| {
        match block {
            0 => expected.copy_from_slice(&superblock),
            block => metadata.to_bytes(block, &mut expected),
        }
        read_block(media, sets.first_zones[set], block).is_ok_and(|bytes| bytes == expected)
    })
}

/// The use of each zone by the map. Fails if the map is inconsistent.
pub(super) fn uses(media: &Media, sets: &Sets, metadata: &Metadata) -> Result<Vec<Use>, ZonedVolumeError> {
    let is_usable = |zone: ZoneId| media.class(zone) != ZoneClass::Unusable && !media.is_dead(zone);
    let first_use = |zone| if is_usable(ZoneId(zone)) { Use::Free } else { Use::Unusable };
    let mut uses: Vec<Use> = (0..media.zones()).map(first_use).collect();
    let per_set = metadata.shape.set_zones() as u32;
    for first in sets.first_zones {
        uses[first as usize..(first + per_set) as usize].fill(Use::Metadata);
    }
    for zone in media.first_zones_beside() {
        uses[*zone as usize] = Use::Metadata;
    }
    for chunk in 0..metadata.shape.chunks {
        let Entry { data, buffer } = metadata.entry(chunk);
        let structure = || format!("the map's entry of chunk {chunk}");
        if data.some().is_none() && buffer.some().is_some() {
            return Err(damaged(structure(), "data zone", "none", "a zone, as there is a buffer zone"));
        }
        for (field, zone, use_of) in
            [("data zone", data, Use::Data(chunk)), ("buffer zone", buffer, Use::Buffer(chunk))]
        {
            let Some(zone) = zone.some() else { continue };
            let wrong = |expected: String| Err(damaged(structure(), field, zone.0, expected));
            match uses.get(zone.index()) {
                None => return wrong(format!("one of the {} zones", media.zones())),
                Some(Use::Metadata) => return wrong("a zone that holds no metadata".to_string()),
                Some(Use::Unusable) if media.class(zone) == ZoneClass::Unusable => {
                    return wrong("a whole zone of the conventional device".to_string());
                }
                Some(Use::Data(other) | Use::Buffer(other)) => {
                    return wrong(format!("a zone that chunk {other} does not have"));
                }
                _ if field == "buffer zone" && media.class(zone) == ZoneClass::Sequential => {
                    return wrong("a conventional zone".to_string());
                }
                _ => uses[zone.index()] = use_of,
            }
        }
    }
    Ok(uses)
}

/// Reads a volume, and checks that all its devices belong to it. Writes nothing.
pub(super) fn open(media: Media) -> Result<Opened, ZonedVolumeError> {
    let mut opened = open_sets(media)?;
    check_members(&mut opened.media, &opened.sets.superblock)?;
    Ok(opened)
}

/// Reads a volume without the check of its zoned devices.
pub(super) fn open_sets(mut media: Media) -> Result<Opened, ZonedVolumeError> {
    let found = find_sets(&mut media)?;
    let mut warnings = Warnings::default();
    let [first, second] = found;
    let first_zone = first.first_zone;
    let (primary, superblock) = match (first.superblock, second.superblock) {
        (Ok(first), Ok(second)) => {
            if first.identity != second.identity {
                return Err(damaged(
                    name(second_zone(&first, &media, first_zone)),
                    "volume uuid or label",
                    second.identity.label_text(),
                    "that of the other set",
                ));
            }
            match second.generation > first.generation {
                true => (1, second),
                false => (0, first),
            }
        }
        (Ok(first), Err(error)) => {
            warnings.add(
                SUPER_BLOCK,
                format!("the second metadata set is damaged, and is restored from the first: {error}"),
            );
            (0, first)
        }
        (Err(error), Ok(second)) => {
            warnings.add(
                SUPER_BLOCK,
                format!("the first metadata set is damaged, and is restored from the second: {error}"),
            );
            (1, second)
        }
        (Err(error), Err(_)) => return Err(error),
    };
    let first_zones = [first_zone, second_zone(&superblock, &media, first_zone)];
    let mut sets = Sets { superblock, first_zones, primary };
    let mut metadata = read_metadata(&mut media, first_zones[primary], &sets.superblock)?;
    let uses = match uses(&media, &sets, &metadata) {
        Ok(uses) => uses,
        Err(error) => {
            // Sets of one generation are equal except for damage: the other one may be undamaged.
            let other = 1 - primary;
            let again = read_super(&mut media, first_zones[other])
                .ok()
                .filter(|other| other.generation == sets.superblock.generation);
            let Some(superblock) = again else { return Err(error) };
            let Ok(other_metadata) = read_metadata(&mut media, first_zones[other], &superblock) else {
                return Err(error);
            };
            let Ok(uses) = self::uses(&media, &sets, &other_metadata) else { return Err(error) };
            warnings.add(METADATA, format!("one metadata set is damaged, and is restored from the other: {error}"));
            (sets.primary, metadata) = (other, other_metadata);
            uses
        }
    };
    sets.superblock.place = u64::from(first_zone) * u64::from(media.zone_blocks);
    let are_equal = (0..2).all(|set| is_identical(&mut media, &sets, set, &metadata));
    if !are_equal && warnings.iter().count() == 0 {
        warnings.add(METADATA, "the metadata sets differed, as after a cut of power: the newer one counts".to_string());
    }
    Ok(Opened { media, sets, metadata, uses, are_equal, warnings })
}

fn second_zone(superblock: &SuperBlock, media: &Media, first_zone: u32) -> u32 {
    first_zone + superblock.set_blocks.div_ceil(media.zone_blocks)
}

/// Checks that every zoned device beside a conventional one belongs to this volume.
fn check_members(media: &mut Media, superblock: &SuperBlock) -> Result<(), ZonedVolumeError> {
    for zone in media.first_zones_beside().to_vec() {
        let member = read_super(media, zone)?;
        if member.identity != superblock.identity {
            let expected = format!("that of volume '{}'", superblock.identity.label_text());
            let found = format!("that of '{}'", member.identity.label_text());
            return Err(damaged(name(zone), "volume uuid or label", found, expected));
        }
    }
    Ok(())
}

impl Opened {
    /// The status line that the kernel's device mapper prints.
    pub fn status(&self) -> String {
        let zones = Zones::new(&self.media, self.uses.clone(), self.sets.superblock.reserved_zones);
        zones.status(self.metadata.shape.chunks, self.metadata.shape.zone_blocks)
    }
}

impl Volume {
    /// Repairs the opened volume: makes both sets equal, invalidates blocks that are valid twice, and merges pairs of
    /// conventional zones unless `journal-zone` is on.
    pub(super) fn recover(&mut self, are_equal: bool) -> Result<(), ZonedVolumeError> {
        if !are_equal {
            self.make_sets_equal(Time::ZERO)?;
        }
        self.sets.primary = 0;
        let blocks = self.media.zone_blocks;
        for zone in (0..self.media.zones()).map(ZoneId) {
            if !matches!(self.zones.use_of(zone), Use::Data(_) | Use::Buffer(_)) && self.metadata.weight(zone) > 0 {
                self.metadata.invalidate(zone, 0, blocks);
            }
        }
        for chunk in 0..self.metadata.shape.chunks {
            let Entry { data, buffer } = self.metadata.entry(chunk);
            if buffer.some().is_some() {
                let twice: Vec<u32> = self.metadata.valid_in_both(data, buffer).collect();
                for block in twice {
                    let is_there = self.zones.class(data).is_conventional() || block < self.zones.write_pointer(data);
                    self.metadata.invalidate(if is_there { buffer } else { data }, block, block + 1);
                }
                self.drop_empty(chunk);
            }
        }
        self.find_lost();
        self.recover_journals()?;
        self.commit(Time::ZERO)?;
        Ok(())
    }
}
