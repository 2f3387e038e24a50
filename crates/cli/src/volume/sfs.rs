//! `fsck` and `inspect` of a volume of sfs.

use super::{CORRECTED, LEFT, OPERATIONAL, USAGE, ended};
use crate::failure::Failure;
use crate::image_lock::Patience;
use flashpath::fs::sfs::{Finding, OpenSfsError, SegmentMap};
use flashpath::report::figure::{GroupBar, SegmentCell, SegmentUse, segments};
use flashpath::run::{OpenError, Path, check_file_system, map_segments, repair_file_system};
use flashpath::units::{BLOCK_BYTES, format_size};
use std::fmt::Write;

/// Findings that are told one by one; of more it is told how many.
const MOST_TOLD: usize = 1000;

/// Checks, repairs unless `dry_run`, and answers by exit code.
pub fn fsck(path: &Path, dry_run: bool, patience: Patience) -> Result<(), Failure> {
    let failed = |error: OpenError| {
        let code = match &error {
            OpenError::NoVolume { .. } => USAGE,
            // The device works, and what is on it is no volume, or not a whole one.
            OpenError::FileSystem { source: OpenSfsError::Inside(_), .. } => OPERATIONAL,
            OpenError::FileSystem { source: OpenSfsError::Superblocks(_), .. } => LEFT,
            _ => OPERATIONAL,
        };
        ended(error.into(), code)
    };
    let mut text = String::new();
    if dry_run {
        let findings = patience.open(|| check_file_system(path)).map_err(failed)?;
        tell(&mut text, &findings, "can be repaired");
        if findings.is_empty() {
            let _ = writeln!(text, "{}: clean", path.text);
            return crate::print(&text);
        }
        crate::print(&text)?;
        return Err(Failure::Quiet(LEFT));
    }
    let repaired = patience.open(|| repair_file_system(path, crate::resident::wall_time_ns())).map_err(failed)?;
    tell(&mut text, &repaired.findings, "repaired");
    tell(&mut text, &repaired.left, "left");
    if repaired.findings.is_empty() && repaired.left.is_empty() {
        let _ = writeln!(text, "{}: clean", path.text);
        return crate::print(&text);
    }
    crate::print(&text)?;
    Err(Failure::Quiet(CORRECTED | if repaired.left.is_empty() { 0 } else { LEFT }))
}

fn tell(text: &mut String, findings: &[Finding], state: &str) {
    for finding in findings.iter().take(MOST_TOLD) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{state}: {finding} ({})", finding.repair);
    }
    if findings.len() > MOST_TOLD {
        let _ = writeln!(text, "{state}: {} more", findings.len() - MOST_TOLD);
    }
}

/// What the volume holds, as text. `all`: every segment is listed.
pub fn table(map: &SegmentMap, all: bool) -> String {
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
        let _ = writeln!(text, "{} blocks were damaged and given up: reading them fails", map.given_up_blocks);
    }
    if map.findings > 0 {
        let _ = writeln!(text, "{} things are wrong with it: 'flashpath fsck' says what", map.findings);
    }
    let _ = writeln!(text, "\n   group   hotness  segments   live blocks  utilization  hotness of what lives");
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
    if all {
        let _ =
            writeln!(text, "\n segment     state      kind    group  live blocks  utilization    hotness    written");
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
    }
    text
}

/// What the volume holds, as a picture.
pub fn picture(path: &Path, map: &SegmentMap) -> Result<String, Failure> {
    let cells: Vec<SegmentCell> = map
        .segments
        .iter()
        .map(|row| {
            let used_for = match (row.state, row.is_metadata) {
                ("free", _) => SegmentUse::Free,
                (_, true) => SegmentUse::Metadata,
                (_, false) => SegmentUse::Data(row.group),
            };
            SegmentCell { used_for, utilization: row.utilization }
        })
        .collect();
    let groups: Vec<GroupBar> = map
        .groups
        .iter()
        .map(|row| GroupBar {
            name: row.group.map_or("several".to_string(), |group| group.to_string()),
            hotness: row.live_hotness,
        })
        .collect();
    let title = format!(
        "{}: {} segments of {}, checkpoint {}",
        path.text,
        map.segments.len(),
        format_size(map.segment_bytes),
        map.checkpoint
    );
    segments(&title, &cells, &groups).map_err(Failure::failed)
}

/// Looks at a volume.
pub fn look(path: &Path) -> Result<SegmentMap, Failure> {
    Ok(map_segments(path)?)
}
