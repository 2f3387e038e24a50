//! mkfs: writes the two metadata sets of a new volume, and a super block on each zoned device to identify the volume.

use super::error::ZonedVolumeError;
use super::media::{Devices, Media, ZoneClass, ZoneId};
use super::metadata::{ENTRIES, Metadata, SetShape};
use super::superblock::{Identity, SuperBlock};
use super::{Sets, ZonedSettings};
use crate::label::{Cause, Content, Label};
use crate::random::Random;
use crate::time::Time;
use crate::units::BLOCK_BYTES;

const LABEL: Label = Label::first(Cause::Mapping, Content::Mapping);

/// The UUIDs of a volume and its devices (version 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uuids {
    /// The volume.
    pub volume: [u8; 16],
    /// The device with the metadata sets.
    pub first_device: [u8; 16],
    /// Each zoned device.
    pub zoned_devices: Vec<[u8; 16]>,
}

impl Uuids {
    /// UUIDs derived from a seed, for a volume of `zoned_devices`. Two volumes of one seed have the same UUIDs.
    pub fn from_seed(seed: u64, zoned_devices: usize) -> Uuids {
        let mut random = Random::new(seed, "uuid");
        let mut number = || {
            let mut bytes = [0; 16];
            for half in bytes.chunks_exact_mut(8) {
                half.copy_from_slice(&random.bits().to_le_bytes());
            }
            // Version and variant (RFC 9562, section 5.4).
            bytes[6] = bytes[6] & 0x0F | 0x40;
            bytes[8] = bytes[8] & 0x3F | 0x80;
            bytes
        };
        Uuids {
            volume: number(),
            first_device: number(),
            zoned_devices: (0..zoned_devices).map(|_| number()).collect(),
        }
    }
}

/// The first zone of each set, if a set takes `zones_per_set`; `None` if too few conventional zones are contiguous.
pub(super) fn set_zones(media: &Media, zones_per_set: u64) -> Option<[u32; 2]> {
    let first = media.classes.iter().position(|class| class.is_conventional())?;
    let row = media.classes[first..].iter().take_while(|class| class.is_conventional()).count() as u64;
    (row > 2 * zones_per_set).then(|| [first as u32, first as u32 + zones_per_set as u32])
}

/// The layout of the sets of a volume with `reserved` reserved zones: as many chunks as there are working zones,
/// without the sets and the reserve.
///
/// The super blocks of the zoned devices come out of the reserve, as in the kernel's tools. They may use up a small
/// reserve, and a volume with all its chunks mapped could then not free a zone: at least one zone is left over
/// ([`room`](super::room)).
fn set_shape(media: &Media, reserved: u32) -> Result<SetShape, ZonedVolumeError> {
    let usable = media.working_zones();
    let kept = reserved.max(media.first_zones_beside().len() as u32 + 1);
    let shape = |chunks: u32| SetShape {
        chunks,
        zones: media.zones(),
        zone_blocks: media.zone_blocks,
        map_blocks: chunks.div_ceil(ENTRIES),
    };
    // More chunks need a larger map, and so perhaps more zones for the sets: find the largest number that fits.
    let mut chunks = usable.saturating_sub(kept);
    loop {
        let sets = 2 * shape(chunks).set_zones();
        let left = u64::from(usable).saturating_sub(sets + u64::from(kept));
        if u64::from(chunks) <= left {
            break;
        }
        chunks = left as u32;
    }
    if chunks == 0 {
        return Err(ZonedVolumeError::Unsuitable(format!(
            "{usable} zones hold no chunk beside two metadata sets and {kept} zones for reclaim and super blocks: write a smaller reserved=, or take larger devices"
        )));
    }
    Ok(shape(chunks))
}

/// Makes a volume, and returns its devices. Their content is lost.
///
/// Fails if a device fails, or if the devices are too small for `settings`.
pub fn mkfs(devices: Devices, settings: &ZonedSettings, numbers: &Uuids) -> Result<Devices, ZonedVolumeError> {
    format(devices, settings, numbers).map(|(media, ..)| media.into_devices())
}

/// Makes a volume. The content of the devices is lost.
pub(super) fn format(
    devices: Devices,
    settings: &ZonedSettings,
    numbers: &Uuids,
) -> Result<(Media, Sets, Metadata), ZonedVolumeError> {
    let mut media = Media::new(devices)?;
    let count = |class: ZoneClass| media.classes.iter().filter(|of| **of == class).count() as u64;
    let shape = set_shape(&media, settings.reserved)?;
    let conventional = count(ZoneClass::Cache) + count(ZoneClass::Random);
    let Some(first_zones) = set_zones(&media, shape.set_zones()) else {
        return Err(ZonedVolumeError::Unsuitable(format!(
            "there are {conventional} conventional zones, and two metadata sets and a cache need at least {}: make the conventional device larger, or its zones smaller",
            2 * shape.set_zones() + 1
        )));
    };
    let beside = media.first_zones_beside().len() as u64;
    let sequential = count(ZoneClass::Sequential).saturating_sub(beside);
    if u64::from(settings.reserved) >= sequential {
        return Err(ZonedVolumeError::Unsuitable(format!(
            "{} zones would be reserved, and there are {sequential} sequential zones to take them from: write a smaller reserved=",
            settings.reserved
        )));
    }
    let mut label = [0; 32];
    label[..settings.label.len()].copy_from_slice(settings.label.as_bytes());
    let superblock = SuperBlock {
        generation: 1,
        place: 0,
        set_blocks: shape.set_blocks() as u32,
        reserved_zones: settings.reserved,
        chunks: shape.chunks,
        map_blocks: shape.map_blocks,
        bitmap_blocks: shape.bitmap_blocks() as u32,
        identity: Identity { label, volume: numbers.volume },
        device: numbers.first_device,
    };
    let sets = Sets { superblock, first_zones, primary: 0 };
    let metadata = Metadata::new(shape);
    let mut at = Time::ZERO;
    for zone in (0..media.zones()).map(ZoneId) {
        if media.class(zone) == ZoneClass::Sequential && media.write_pointer(zone) > 0 && !media.is_dead(zone) {
            at = media.reset(zone, at)?;
        }
    }
    for (device, zone) in media.first_zones_beside().to_vec().into_iter().enumerate() {
        let place = u64::from(zone) * u64::from(media.zone_blocks);
        let superblock = SuperBlock::of_member(&sets.superblock, place, numbers.zoned_devices[device]);
        let mut bytes = superblock.to_bytes();
        bytes.truncate(media.width);
        at = media.write(ZoneId(zone), 0, &bytes, LABEL, at)?;
    }
    let width = media.width;
    let mut bytes = vec![0; BLOCK_BYTES as usize];
    for set in [1, 0] {
        for block in 1..shape.set_blocks() as u32 {
            metadata.to_bytes(block, &mut bytes);
            let (zone, within) = sets.place(&media, set, block);
            at = media.write(zone, within, &bytes[..width], LABEL, at)?;
        }
    }
    at = media.flush(at)?;
    for set in [1, 0] {
        at = sets.write_super(&mut media, set, 1, at)?;
    }
    media.flush(at)?;
    Ok((media, sets, metadata))
}
