//! fsck and inspect: checks, repairs and describes a volume.
//!
//! A check only reads. Most damage that it finds is repaired by opening the volume; [`repair`] does that, and also
//! restores the super blocks of the zoned devices.

use super::error::ZonedVolumeError;
use super::lost::SUPER_BLOCK;
use super::media::{Devices, Media, ZoneClass, ZoneId};
use super::metadata::{Entry, Metadata};
use super::open::{find_sets, open, open_sets, read_super};
use super::superblock::SuperBlock;
use super::zones::Use;
use super::{Uuids, Volume, ZonedSettings};
use crate::device::ZoneState;
use crate::label::{Cause, Content, Label};
use crate::time::Time;
use serde::Serialize;

/// An error or a note about a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The problem and its location.
    pub what: String,
    /// The possible remedy.
    pub remedy: Remedy,
}

/// The remedy for a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// [`repair`] fixes it.
    Repair,
    /// None, and the volume must not be repaired at all: these devices may not belong together.
    Refuse,
    /// None: blocks cannot be read any more. Other findings can be repaired.
    None,
    /// None needed: the volume is consistent, but its user should know.
    Note,
}

impl Finding {
    fn repairable(what: String) -> Finding {
        Finding { what, remedy: Remedy::Repair }
    }

    fn refused(what: impl ToString) -> Finding {
        Finding { what: what.to_string(), remedy: Remedy::Refuse }
    }
}

/// Checks a volume without changes, and returns its devices. Fails only if a device fails, or if the devices cannot
/// hold a volume.
pub fn check(devices: Devices) -> Result<(Vec<Finding>, Devices), ZonedVolumeError> {
    let mut media = Media::new(devices)?;
    let mut findings = Vec::new();
    let sets = find_sets(&mut media)?;
    let mut good = Vec::new();
    for (name, set) in ["first", "second"].into_iter().zip(&sets) {
        match &set.superblock {
            Ok(superblock) => good.push((set.first_zone, superblock.clone())),
            Err(error) => findings.push((name, error.to_string())),
        }
    }
    let is_any_good = !good.is_empty();
    let mut findings: Vec<Finding> = findings
        .into_iter()
        .map(|(name, error)| Finding {
            what: format!("the {name} metadata set: {error}"),
            remedy: if is_any_good { Remedy::Repair } else { Remedy::Refuse },
        })
        .collect();
    let Some((_, superblock)) = good.first().cloned() else { return Ok((findings, media.into_devices())) };
    findings.extend(check_members(&mut media, &superblock));
    if findings.iter().any(|finding| finding.remedy == Remedy::Refuse) {
        return Ok((findings, media.into_devices()));
    }
    match open_sets(media) {
        Ok(opened) => {
            for warning in opened.warnings.iter() {
                // A finding about a super block is not repeated as a warning.
                if warning.kind != SUPER_BLOCK || findings.is_empty() {
                    findings.push(Finding::repairable(warning.what.clone()));
                }
            }
            findings.extend(check_states(&opened.media, &opened.metadata, &opened.uses));
            findings.extend(check_bits(&opened.media, &opened.metadata, &opened.uses));
            Ok((findings, opened.media.into_devices()))
        }
        Err(ZonedVolumeError::Device(error)) => Err(error.into()),
        Err(error) => Err(error),
    }
}

fn check_members(media: &mut Media, superblock: &SuperBlock) -> Vec<Finding> {
    let zones = media.first_zones_beside().to_vec();
    let found = zones.into_iter().filter_map(|zone| match read_super(media, zone) {
        Ok(member) if member.identity == superblock.identity => None,
        Ok(member) => Some(Finding::refused(format!(
            "the device of zone {zone} is of volume '{}', and not of '{}': give the right one",
            member.identity.label_text(),
            superblock.identity.label_text()
        ))),
        Err(error) => {
            Some(Finding::repairable(format!("the zoned device does not say of which volume it is: {error}")))
        }
    });
    found.collect()
}

/// Lists the worn-out zones and the blocks lost with them.
fn check_states(media: &Media, metadata: &Metadata, uses: &[Use]) -> Vec<Finding> {
    let worn_out = (0..media.zones()).map(ZoneId).filter_map(|zone| {
        let state = media.state(zone).filter(|_| media.is_dead(zone))?;
        let (number, state, weight) = (zone.0, state.name(), metadata.weight(zone));
        let is_lost = media.state(zone) == Some(ZoneState::Offline) && weight > 0;
        Some(match uses[zone.index()] {
            Use::Data(chunk) | Use::Buffer(chunk) if is_lost => Finding {
                what: format!("chunk {chunk}: zone {number} is {state}: {weight} blocks cannot be read"),
                remedy: Remedy::None,
            },
            Use::Data(chunk) | Use::Buffer(chunk) => Finding {
                what: format!("chunk {chunk}: zone {number} is {state}, and takes no more writes"),
                remedy: Remedy::Note,
            },
            _ => Finding { what: format!("zone {number} is {state}, and is out of use"), remedy: Remedy::Note },
        })
    });
    worn_out.collect()
}

/// Checks the bitmaps against the map and the write pointers.
fn check_bits(media: &Media, metadata: &Metadata, uses: &[Use]) -> Vec<Finding> {
    let blocks = media.zone_blocks;
    let mut findings = Vec::new();
    for zone in (0..media.zones()).map(ZoneId) {
        let (Use::Data(chunk) | Use::Buffer(chunk)) = uses[zone.index()] else {
            if metadata.weight(zone) > 0 {
                let weight = metadata.weight(zone);
                let what = format!("zone {} belongs to no chunk, and {weight} of its blocks are marked valid", zone.0);
                findings.push(Finding::repairable(what));
            }
            continue;
        };
        if media.class(zone) == ZoneClass::Sequential {
            let written = media.write_pointer(zone);
            let lost = (written..blocks).filter(|block| metadata.is_valid(zone, *block)).count();
            if lost > 0 {
                findings.push(Finding::repairable(format!(
                    "chunk {chunk}: {lost} blocks should lie beyond the write pointer {written} of zone {}: the device has lost them, and a repair gives them up",
                    zone.0
                )));
            }
        }
    }
    for chunk in 0..metadata.shape.chunks {
        let Entry { data, buffer } = metadata.entry(chunk);
        if buffer.some().is_none() {
            continue;
        }
        let twice = metadata.valid_in_both(data, buffer).count();
        if twice > 0 {
            findings.push(Finding::repairable(format!(
                "chunk {chunk}: {twice} blocks are marked valid in zones {} and {}: the data zone is used",
                data.0, buffer.0
            )));
        }
        if media.class(data).is_conventional() {
            findings.push(Finding::repairable(format!(
                "chunk {chunk} has the conventional zones {} and {}, one of them a journal zone: the stock kernel would not reclaim them correctly",
                data.0, buffer.0
            )));
        }
    }
    findings
}

/// Repairs all findings that [`check`] calls repairable, and returns the devices. Lost data stays lost.
pub fn repair(devices: Devices, settings: &ZonedSettings) -> Result<Devices, ZonedVolumeError> {
    let mut media = Media::new(devices)?;
    let [first, second] = find_sets(&mut media)?;
    let superblock = first.superblock.or(second.superblock)?;
    let zones = media.first_zones_beside().to_vec();
    let numbers =
        Uuids::from_seed(u64::from_le_bytes(superblock.identity.volume[..8].try_into().expect("eight")), zones.len());
    for (device, zone) in numbers.zoned_devices.into_iter().zip(zones) {
        if read_super(&mut media, zone).is_ok() {
            continue;
        }
        let place = u64::from(zone) * u64::from(media.zone_blocks);
        let member = SuperBlock::of_member(&superblock, place, device);
        let label = Label::first(Cause::Mapping, Content::Mapping);
        if media.class(ZoneId(zone)) == ZoneClass::Sequential {
            media.reset(ZoneId(zone), Time::ZERO)?;
        }
        media.write(ZoneId(zone), 0, &member.to_bytes(), label, Time::ZERO)?;
        media.flush(Time::ZERO)?;
    }
    let settings = ZonedSettings { journal_zone: false, ..settings.clone() };
    let mut volume = Volume::open(media.into_devices(), &settings)?;
    volume.discard_lost();
    volume.close(Time::ZERO)?;
    Ok(volume.media.into_devices())
}

/// The description of a volume, as read from its devices.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// The volume's name.
    pub label: String,
    /// The number of metadata commits, for each set; `None` if the set is damaged.
    pub generations: [Option<u64>; 2],
    /// Blocks of a zone.
    pub zone_blocks: u32,
    /// Sequential zones reserved for reclaim.
    pub reserved_zones: u32,
    /// The kernel's status line of the volume.
    pub status: String,
    /// Warnings for the user: lost blocks, worn-out zones.
    pub warnings: Vec<String>,
    /// The mapped chunks.
    pub chunks: Vec<ChunkSurvey>,
    /// All zones.
    pub zones: Vec<ZoneSurvey>,
}

/// A mapped chunk.
#[derive(Clone, Debug, Serialize)]
pub struct ChunkSurvey {
    /// Its number.
    pub chunk: u32,
    /// Its data zone.
    pub data_zone: u32,
    /// The valid blocks of the data zone, as ranges with an inclusive end.
    pub data_blocks: Vec<(u32, u32)>,
    /// Its buffer zone, if it has one.
    pub buffer_zone: Option<u32>,
    /// The valid blocks of the buffer zone.
    pub buffer_blocks: Vec<(u32, u32)>,
}

/// A zone.
#[derive(Clone, Debug, Serialize)]
pub struct ZoneSurvey {
    /// Its number over all devices.
    pub zone: u32,
    /// Its class: cache, random, sequential, unusable.
    pub class: &'static str,
    /// Its use: metadata, free, data, buffer, unusable.
    pub used_as: &'static str,
    /// Its chunk.
    pub chunk: Option<u32>,
    /// Its valid blocks.
    pub valid_blocks: u32,
    /// Its write pointer; `None` if it is conventional.
    pub write_pointer: Option<u32>,
}

/// Describes a volume without changes. Fails as opening it would.
pub fn survey(devices: Devices) -> Result<Survey, ZonedVolumeError> {
    let mut media = Media::new(devices)?;
    let generations = find_sets(&mut media)?.map(|set| set.superblock.ok().map(|superblock| superblock.generation));
    let opened = open(media)?;
    let metadata = &opened.metadata;
    let blocks = metadata.shape.zone_blocks;
    let ranges = |zone: ZoneId| {
        let mut ranges = Vec::new();
        let mut block = 0;
        while block < blocks {
            let (is_valid, end) = metadata.run(zone, block, blocks);
            ranges.extend(is_valid.then_some((block, end - 1)));
            block = end;
        }
        ranges
    };
    let chunks = (0..metadata.shape.chunks).filter_map(|chunk| {
        let Entry { data, buffer } = metadata.entry(chunk);
        data.some().map(|data| ChunkSurvey {
            chunk,
            data_zone: data.0,
            data_blocks: ranges(data),
            buffer_zone: buffer.some().map(|zone| zone.0),
            buffer_blocks: buffer.some().map(ranges).unwrap_or_default(),
        })
    });
    let zones = (0..opened.media.zones()).map(ZoneId).map(|zone| {
        let (used_as, chunk) = match opened.uses[zone.index()] {
            Use::Unusable => ("unusable", None),
            Use::Metadata => ("metadata", None),
            Use::Data(chunk) => ("data", Some(chunk)),
            Use::Buffer(chunk) => ("buffer", Some(chunk)),
            Use::Free | Use::Target | Use::Released => ("free", None),
        };
        let class = opened.media.class(zone);
        ZoneSurvey {
            zone: zone.0,
            class: class.name(),
            used_as,
            chunk,
            valid_blocks: metadata.weight(zone),
            write_pointer: (class == ZoneClass::Sequential).then(|| opened.media.write_pointer(zone)),
        }
    });
    let (chunks, zones) = (chunks.collect(), zones.collect());
    let superblock = &opened.sets.superblock;
    let (label, reserved_zones) = (superblock.identity.label_text(), superblock.reserved_zones);
    let bits = check_bits(&opened.media, metadata, &opened.uses);
    let states = check_states(&opened.media, metadata, &opened.uses);
    let from_open = opened.warnings.iter().map(|warning| warning.what.clone());
    let warnings = from_open.chain(bits.into_iter().chain(states).map(|finding| finding.what)).collect();
    let status = opened.status();
    Ok(Survey { label, generations, zone_blocks: blocks, reserved_zones, status, warnings, chunks, zones })
}
