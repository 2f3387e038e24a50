//! Segments and their live blocks at an instant: those of files, as a run hands them out (what figures 4 and 10 of the
//! paper show); and all, with the groups they were written for, as inspect shows them.

use super::open::{Tolerance, open};
use super::survey::surveyor;
use crate::device::Medium;
use crate::fs::sfs::error::OpenSfsError;
use crate::fs::sfs::log::segments::State;
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::media::format::{BLOCK, NO_GROUP};
use crate::fs::sfs::placement::{SegmentView, Tick, hotness};
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::{Sfs, Timestamp};
use crate::task::Task;
use crate::time::Time;
use serde::Serialize;

/// The segments that hold live blocks of files, and the groups' centres.
#[derive(Clone, Debug, PartialEq)]
pub struct Census {
    /// When it was taken, on the clock of hotness.
    pub tick: Tick,
    /// Written segments with live blocks of files, by number.
    pub segments: Vec<SegmentView>,
    /// The groups' hotness in writes per tick, Hg of section 3.4, ascending; none where blocks are not grouped by
    /// hotness.
    pub centres: Vec<f64>,
}

/// The segments of a volume, and its groups. Blocks are of 4 KiB; hotness is writes per tick,
/// on the volume's own clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentMap {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Blocks of files that fill a segment, its summary taken off.
    pub segment_capacity: u32,
    /// Checkpoints that were ever written.
    pub checkpoint: u64,
    /// True if it was unmounted.
    pub is_clean: bool,
    /// The clock of hotness.
    pub tick: u64,
    /// Blocks that files and their metadata can have.
    pub blocks: u64,
    /// Of which so many are free.
    pub free_blocks: u64,
    /// Inodes in use.
    pub inodes: u64,
    /// Blocks that were damaged and that a repair gave up.
    pub given_up_blocks: u64,
    /// Findings of a check; `flashpath fsck` names them.
    pub findings: usize,
    /// The open segments, in which the log continues.
    pub heads: Vec<HeadRow>,
    /// The groups, the coldest first as far as that is known.
    pub groups: Vec<GroupRow>,
    /// The segments.
    pub segments: Vec<SegmentRow>,
}

/// An open segment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadRow {
    /// The group that is written there, or the first of those that share it.
    pub group: u8,
    /// The segment.
    pub segment: u32,
    /// The block of the segment at which the next write begins.
    pub block: u32,
}

/// A group of blocks of like hotness.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRow {
    /// Its number; `None` for segments with blocks of several groups.
    pub group: Option<u8>,
    /// Its hotness, as the grouping last remembered it.
    pub hotness: Option<f64>,
    /// Segments that were written for it.
    pub segments: u32,
    /// Live blocks in them.
    pub live_blocks: u64,
    /// Live blocks over what fits.
    pub utilization: f64,
    /// The hotness of the segments, weighted by their live blocks.
    pub live_hotness: f64,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentRow {
    /// Its number.
    pub segment: u32,
    /// `free`, `emptied`, `open` or `written`.
    pub state: &'static str,
    /// True if it holds metadata.
    pub is_metadata: bool,
    /// The group of its blocks; `None` if they are of several, or of none.
    pub group: Option<u8>,
    /// Live blocks.
    pub live_blocks: u32,
    /// Live blocks over what fits.
    pub utilization: f64,
    /// The hotness of its live blocks: the sum of their writes over the sum of their ages (section 3.3).
    pub hotness: f64,
    /// When it was written, on the clock of hotness.
    pub written: u64,
}

/// Looks at the volume on a medium, and writes nothing. Fails as [`check`](super::check()) does.
pub fn segment_map(medium: Medium, settings: &SfsSettings) -> Result<SegmentMap, OpenSfsError> {
    let task = &Task::at(Time::ZERO);
    let identity = Identity { seed: 0, origin: Timestamp(0) };
    let mut opened = open(task, medium, settings, identity, Tolerance::Lenient)?;
    let survey = surveyor(task, &mut opened.volume).survey(false, &opened.rebuilt)?;
    let given_up = survey.given_up;
    let findings = opened.findings.len() + survey.faults.len();
    let heads = open_ends(task, &opened.volume, opened.is_clean)?;
    Ok(map_of(&opened.volume, opened.is_clean, heads, given_up, findings))
}

/// The ends of the log in the open segments of data: after an unmount as the superblock names them, and after a crash
/// where the log ends.
fn open_ends(task: &Task<'_>, volume: &Sfs, is_clean: bool) -> Result<Vec<HeadRow>, OpenSfsError> {
    if is_clean {
        let ends = volume.writer.superblock.open_ends();
        return Ok(ends.map(|(group, segment, block)| HeadRow { group, segment, block }).collect());
    }
    let (reader, next) = (volume.writer.reader(task, &volume.files.media), volume.writer.superblock.next_partial.get());
    let mut heads = Vec::new();
    for (group, segment) in volume.files.segments.last_opened().into_iter().filter(|(group, _)| *group != NO_GROUP) {
        let block = reader.end_before(segment, next)?;
        if block + 1 < reader.segment_blocks() {
            heads.push(HeadRow { group, segment, block });
        }
    }
    Ok(heads)
}

fn map_of(volume: &Sfs, is_clean: bool, heads: Vec<HeadRow>, given_up_blocks: u64, findings: usize) -> SegmentMap {
    let census = volume.census();
    let capacity = volume.writer.limits.segment_capacity;
    let utilization = |live: u64, segments: u32| live as f64 / (f64::from(segments.max(1)) * f64::from(capacity));
    let segments: Vec<SegmentRow> = (0..volume.files.segments.count())
        .map(|number| {
            let segment = volume.files.segments.get(number);
            SegmentRow {
                segment: number,
                state: match heads.iter().any(|head| head.segment == number) {
                    true => "open",
                    false => segment.state.name(),
                },
                is_metadata: segment.is_metadata,
                group: (segment.group != NO_GROUP && segment.state != State::Free).then_some(segment.group),
                live_blocks: segment.live,
                utilization: utilization(segment.live.into(), 1),
                hotness: hotness::of_segment(&volume.files.segments.view(number, segment), census.tick),
                written: segment.written.0,
            }
        })
        .collect();
    let space = volume.space();
    SegmentMap {
        segment_bytes: u64::from(volume.files.media.segment_blocks()) * BLOCK as u64,
        segment_capacity: capacity,
        checkpoint: volume.writer.superblock.sequence.get(),
        is_clean,
        tick: census.tick.0,
        blocks: space.blocks,
        free_blocks: space.free_blocks,
        inodes: volume.files.metadata.inode_file.used(),
        given_up_blocks,
        findings,
        heads,
        groups: group_rows(capacity, &segments, &census.centres),
        segments,
    }
}

fn group_rows(capacity: u32, segments: &[SegmentRow], centres: &[f64]) -> Vec<GroupRow> {
    let data = |row: &&SegmentRow| !row.is_metadata && row.live_blocks > 0;
    let mut numbers: Vec<Option<u8>> = segments.iter().filter(data).map(|row| row.group).collect();
    numbers.sort_unstable_by_key(|group| group.unwrap_or(NO_GROUP));
    numbers.dedup();
    let row = |group: Option<u8>| {
        let its = || segments.iter().filter(data).filter(|row| row.group == group);
        let live: u64 = its().map(|row| u64::from(row.live_blocks)).sum();
        let count = its().count() as u32;
        let mean: f64 = its().map(|row| row.hotness * f64::from(row.live_blocks)).sum::<f64>() / live.max(1) as f64;
        GroupRow {
            group,
            hotness: group.and_then(|group| centres.get(usize::from(group)).copied()),
            segments: count,
            live_blocks: live,
            utilization: live as f64 / (f64::from(count.max(1)) * f64::from(capacity)),
            live_hotness: mean,
        }
    };
    numbers.into_iter().map(row).collect()
}
