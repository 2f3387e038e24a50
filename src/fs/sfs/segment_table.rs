//! The segment map as text, JSON and a picture.

use super::{SegmentMap, SegmentRow};
use crate::fs::station::{DrawnPart, Inspection, PartUse, Picture};
use crate::units::{BLOCK_BYTES, format_size};
use std::fmt::Write;

/// The description of a volume for `flashpath inspect`.
pub(super) fn inspection(map: &SegmentMap) -> Inspection {
    // Numbers and strings always serialize to JSON.
    let json = serde_json::to_string_pretty(map).unwrap_or_default();
    Inspection { summary: summary(map), parts: segments(map), json, picture: picture(map) }
}

fn summary(map: &SegmentMap) -> String {
    let mut text = String::new();
    let in_use = map.segments.iter().filter(|row| row.state != "free").count();
    let state = if map.is_clean { "unmounted" } else { "not unmounted" };
    let size = |blocks: u64| format_size(blocks * BLOCK_BYTES);
    let _ = writeln!(
        text,
        "volume of {} segments of {}, {in_use} in use; checkpoint {}, {state}\n{} of {} free, {} inodes",
        map.segments.len(),
        format_size(map.segment_bytes),
        map.checkpoint,
        size(map.free_blocks),
        size(map.blocks),
        map.inodes,
    );
    if map.given_up_blocks > 0 {
        let _ = writeln!(text, "{} blocks are lost to damage: reading them fails", map.given_up_blocks);
    }
    if map.findings > 0 {
        let _ = writeln!(text, "{} faults were found: 'flashpath fsck' lists them", map.findings);
    }
    for head in &map.heads {
        let (group, segment, block) = (head.group, head.segment, head.block);
        let _ = writeln!(text, "group {group} continues in segment {segment} at block {block}");
    }
    let _ = writeln!(text, "\n   group   hotness  segments   live blocks  utilization  hotness of live blocks");
    for row in &map.groups {
        let group = row.group.map_or("several".to_string(), |group| group.to_string());
        let hotness = row.hotness.map_or("-".to_string(), |hotness| format!("{hotness:.3e}"));
        let _ = writeln!(
            text,
            "{group:>8} {hotness:>9} {:>9} {:>13} {:>11.1}% {:>12.3e}",
            row.segments,
            row.live_blocks,
            row.utilization * 100.0,
            row.live_hotness
        );
    }
    text
}

fn segments(map: &SegmentMap) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "\n segment     state      kind    group  live blocks  utilization    hotness    written");
    for row in &map.segments {
        let kind = match (row.is_metadata, row.live_blocks) {
            (true, _) => "metadata",
            (false, 0) => "-",
            (false, _) => "data",
        };
        let group = row.group.map_or("-".to_string(), |group| group.to_string());
        let _ = writeln!(
            text,
            "{:>8} {:>9} {kind:>9} {group:>8} {:>12} {:>11.1}% {:>10.3e} {:>10}",
            row.segment,
            row.state,
            row.live_blocks,
            row.utilization * 100.0,
            row.hotness,
            row.written
        );
    }
    text
}

fn picture(map: &SegmentMap) -> Picture {
    let part = |row: &SegmentRow| {
        let used_for = match (row.state, row.is_metadata) {
            ("free", _) => PartUse::Free,
            (_, true) => PartUse::Metadata,
            (_, false) => PartUse::Data(row.group),
        };
        DrawnPart { used_for, utilization: row.utilization }
    };
    let (segments, size) = (map.segments.len(), format_size(map.segment_bytes));
    let groups = map.groups.iter().map(|row| {
        let name = row.group.map_or("several".to_string(), |group| group.to_string());
        (name, row.live_hotness)
    });
    Picture {
        title: format!("{segments} segments of {size}, checkpoint {}", map.checkpoint),
        parts: map.segments.iter().map(part).collect(),
        groups: groups.collect(),
    }
}
