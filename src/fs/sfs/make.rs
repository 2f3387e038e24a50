//! mkfs: an empty volume.

use super::clock::Clock;
use super::error::{OpenSfsError, SfsError};
use super::failure::Faults;
use super::log::Log;
use super::media::Media;
use super::memory::{self, Shares};
use super::metadata::MetadataFiles;
use super::settings::{Rest, SfsSettings};
use super::space::FEWEST_SEGMENTS;
use super::write_back::{Discards, Schedule, Writer};
use super::{Events, Limits, Relief, Sfs, placement};
use crate::device::Medium;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber, Timestamp};
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::files::inodes::Inodes;
use crate::fs::sfs::files::{Files, Reads, dirty_blocks::DirtyBlocks};
use crate::fs::sfs::log::{records::Records, segments::Segments};
use crate::fs::sfs::media::format::{
    BLOCK, LOST, MAGIC, MOST_HEADS, Superblock, VERSION, blocks_that_fit, usage_pages,
};
use crate::fs::sfs::placement::VolumeShape;
use crate::label::Tally;
use crate::random::Random;
use crate::task::Task;
use crate::units::format_size;
use std::sync::Arc;
use zerocopy::FromZeros;

/// Minimum number of segments by default; the segment size is halved until a device has as many. Few large segments are
/// faster on drives whose translation merges blocks; more segments leave less space in reserve.
const SEGMENTS: u64 = 192;
/// A volume has an open segment of data for each of so many segments at most: small ones need their segments for
/// cleaning.
const SEGMENTS_OF_HEAD: u32 = 12;
/// Default segment sizes, in bytes.
const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = (256 << 10)..=(32 << 20);

/// The identity of a new volume.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Seed of the volume's identifier and of its random choices.
    pub seed: u64,
    /// Wall-clock time at [`Time::ZERO`](crate::time::Time::ZERO); 0 in a simulation.
    pub origin: Timestamp,
}

/// Makes an empty volume on a medium, discarding its content, and mounts it.
pub(super) fn create(
    task: &Task<'_>,
    mut medium: Medium,
    settings: &SfsSettings,
    identity: Identity,
) -> Result<Sfs, OpenSfsError> {
    let device_blocks = medium.blocks();
    let by_default = 1 << (device_blocks * BLOCK as u64 / SEGMENTS).max(1).ilog2();
    let by_default = by_default.clamp(*SEGMENT_BYTES.start(), *SEGMENT_BYTES.end());
    let asked = settings.segment_bytes.unwrap_or(by_default) / BLOCK as u64;
    let (segment_blocks, segments) = medium.cut(asked as u32);
    if medium.prescribes_segments()
        && let Some(asked) = settings.segment_bytes
        && asked != u64::from(segment_blocks) * BLOCK as u64
    {
        let found = u64::from(segment_blocks) * BLOCK as u64;
        return Err(OpenSfsError::Segment { found, asked });
    }
    let limits = check_shape(settings, segments, segment_blocks, medium.prescribes_segments())?;
    let mut random = Random::new(identity.seed, "sfs volume");
    let mut number = [0; 16];
    number[..8].copy_from_slice(&random.bits().to_le_bytes());
    number[8..].copy_from_slice(&random.bits().to_le_bytes());
    let superblock = Superblock {
        magic: MAGIC,
        version: VERSION.into(),
        identity: number,
        created: identity.origin.0.into(),
        device_blocks: device_blocks.into(),
        segment_blocks: segment_blocks.into(),
        segments: segments.into(),
        next_partial: 1.into(),
        ..Superblock::new_zeroed()
    };
    // Blocks of an earlier volume must not be taken for this one's.
    if let Medium::Blocks(device) = &mut medium
        && settings.discard
    {
        device.discard(crate::device::Lba(0), device_blocks, task.now())?;
    }
    let media = Media::new(medium, segment_blocks, segments);
    let emptying = &Task::at(task.now());
    media.clear_superblocks(emptying)?;
    media.clear_zones(emptying)?;
    let mut sfs = assemble(media, settings, limits, superblock, identity);
    make_root(task, &mut sfs.files, sfs.writer.superblock.generation())?;
    sfs.write_back(task).checkpoint(false)?;
    Ok(sfs)
}

fn make_root(task: &Task<'_>, files: &mut Files, generation: u32) -> Result<(), SfsError> {
    let number = files.metadata.inode_file.take(task)?;
    assert_eq!(InodeNumber(number), InodeNumber::ROOT, "the root is the first allocated inode");
    let mut root = Inode::new(number, generation, FileKind::Directory, files.clock.wall(task));
    root.permissions = 0o755;
    root.links = 2;
    root.parent = number;
    files.inodes.insert(root);
    Ok(())
}

/// Assembles an empty volume in memory.
pub(super) fn assemble(
    media: Media,
    settings: &SfsSettings,
    limits: Limits,
    superblock: Superblock,
    identity: Identity,
) -> Sfs {
    let (segments, segment_blocks) = (media.segments(), media.segment_blocks());
    let (holds_stamps, media) = (media.holds_stamps(), Arc::new(media));
    let shares = if holds_stamps { Shares::NO_BOUND } else { limits.shares };
    let mut sfs = Sfs {
        files: Files {
            metadata: MetadataFiles::new(&media, shares.metadata_blocks),
            segments: Segments::new(segments, segment_blocks),
            inodes: Inodes::new(shares.inodes, shares.indexes),
            orphans: Default::default(),
            dirty_blocks: DirtyBlocks::new(media.block_width()),
            records: Records::default(),
            renamed: Default::default(),
            clock: Clock {
                origin: identity.origin,
                created: superblock.created.get(),
                counts_writes: settings.counts_writes || !media.is_timed() && identity.origin.0 == 0,
                tick: placement::Tick(superblock.tick.get()),
            },
            is_changed: true,
            reads: Reads::default(),
            media,
        },
        writer: Writer {
            log: Log::new(segments, holds_stamps, superblock.next_partial.get()),
            superblock,
            grouping: settings.grouping.start(VolumeShape { seed: identity.seed, segments, segment_blocks }),
            limits: Limits { shares, ..limits },
            counted_writes: settings.counted_writes,
            discards: Discards::new(settings.discard),
            faults: Faults { has_lost_before: superblock.clean.get() == LOST, ..Faults::default() },
            sent: Tally::default(),
            events: Events::default(),
        },
        schedule: Schedule::new(settings),
        wants_checkpoint: false,
        relief: Relief::AtOnce,
        damage: Vec::new(),
        received: Tally::default(),
        settings: settings.clone(),
    };
    // The segment of metadata is open, too.
    let by_device = sfs.files.media.most_open_segments().map_or(u32::MAX, |most| most.saturating_sub(1));
    sfs.writer.log.most_heads = (segments / SEGMENTS_OF_HEAD).min(by_device).clamp(1, MOST_HEADS as u32) as usize;
    sfs.writer.log.is_rest_mixed = settings.rest == Rest::Mixed;
    sfs.files.media.write_behind(shares.in_flight);
    sfs.files.metadata.bound(shares.dat_pages, shares.inode_pages);
    sfs
}

/// Fails unless the volume has this identifier.
pub(super) fn check_identity(superblock: &Superblock, number: [u8; 16]) -> Result<(), OpenSfsError> {
    if superblock.identity == number { Ok(()) } else { Err(OpenSfsError::Another) }
}

/// True if the usage file of so many segments, and what is written with it, fit into a partial segment of `capacity` blocks.
fn holds_usage(segments: u32, capacity: u32) -> bool {
    usage_pages(segments) + 8 <= capacity as usize
}

/// Refuses a volume with too few segments for the log and its cleaning, or with more than one of them describes.
pub(super) fn check_shape(
    settings: &SfsSettings,
    segments: u32,
    segment_blocks: u32,
    prescribed: bool,
) -> Result<Limits, OpenSfsError> {
    let bytes = u64::from(segment_blocks) * BLOCK as u64;
    let too_small = |needed: u32| {
        let advice = match prescribed {
            true => "use a device with more zones".to_string(),
            false if bytes > 64 << 10 => "use smaller segments (at least segment=64K) or a larger device".to_string(),
            false => "use a larger device".to_string(),
        };
        OpenSfsError::TooSmall { needed, found: segments, bytes, advice }
    };
    if segments < FEWEST_SEGMENTS || segment_blocks < 16 {
        return Err(too_small(FEWEST_SEGMENTS));
    }
    let (asked, least) = (settings.memory_bytes.unwrap_or(u64::MAX), memory::minimum_bytes(bytes));
    if asked < least {
        return Err(OpenSfsError::Memory { asked, least, segment: bytes });
    }
    let limits = Limits::of(settings, segments, segment_blocks);
    if limits.floor * 3 > segments {
        return Err(too_small(limits.floor * 3));
    }
    if !holds_usage(segments, limits.segment_capacity) {
        let advice = match prescribed {
            true => "use a device with fewer or larger zones".to_string(),
            false => {
                let volume = u64::from(segments) * bytes;
                let mut sizes = std::iter::successors(Some((2 * bytes).next_power_of_two()), |size| Some(2 * size));
                let larger = sizes.find(|size| {
                    let capacity = blocks_that_fit((size / BLOCK as u64) as u32, 0).unwrap_or(0);
                    holds_usage((volume / size) as u32, capacity)
                });
                let size = larger.expect("a segment as large as the volume describes itself");
                format!("use larger segments, such as segment={}", format_size(size))
            }
        };
        return Err(OpenSfsError::TooManySegments { found: segments, bytes, advice });
    }
    Ok(limits)
}
