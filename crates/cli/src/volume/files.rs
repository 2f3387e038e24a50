//! `fsck` and `inspect` of the volume of a file system.

use super::{CORRECTED, LEFT, OPERATIONAL, USAGE, ended};
use crate::failure::Failure;
use crate::image_lock::Patience;
use flashpath::fs::station::{DrawnPart, PartUse, Picture};
use flashpath::fs::volume::Damage;
use flashpath::report::figure::{GroupBar, SegmentCell, SegmentUse, segments};
use flashpath::run::{OpenError, Path, check_file_system, repair_file_system};
use std::fmt::Write;

/// Findings that are told one by one; of more it is told how many.
const MOST_TOLD: usize = 1000;

/// Checks, repairs unless `dry_run`, and answers by exit code.
pub fn fsck(path: &Path, dry_run: bool, patience: Patience) -> Result<(), Failure> {
    let failed = |error: OpenError| {
        let code = match &error {
            OpenError::NoVolume { .. } => USAGE,
            // The device works, and there was a volume on it.
            OpenError::FileSystem { fault, .. } if fault.is_lost => LEFT,
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
    let mended = patience.open(|| repair_file_system(path, crate::resident::wall_time_ns())).map_err(failed)?;
    tell(&mut text, &mended.repaired, "repaired");
    tell(&mut text, &mended.left, "left");
    if mended.repaired.is_empty() && mended.left.is_empty() {
        let _ = writeln!(text, "{}: clean", path.text);
        return crate::print(&text);
    }
    crate::print(&text)?;
    Err(Failure::Quiet(CORRECTED | if mended.left.is_empty() { 0 } else { LEFT }))
}

fn tell(text: &mut String, findings: &[Damage], state: &str) {
    for finding in findings.iter().take(MOST_TOLD) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{state}: {} ({})", finding.what, finding.repair);
    }
    if findings.len() > MOST_TOLD {
        let _ = writeln!(text, "{state}: {} more", findings.len() - MOST_TOLD);
    }
}

/// Draws what a volume holds.
pub fn picture(path: &Path, picture: &Picture) -> Result<String, Failure> {
    let cell = |part: &DrawnPart| {
        let used_for = match part.used_for {
            PartUse::Free => SegmentUse::Free,
            PartUse::Metadata => SegmentUse::Metadata,
            PartUse::Data(group) => SegmentUse::Data(group),
        };
        SegmentCell { used_for, utilization: part.utilization }
    };
    let bar = |(name, hotness): &(String, f64)| GroupBar { name: name.clone(), hotness: *hotness };
    let cells: Vec<SegmentCell> = picture.parts.iter().map(cell).collect();
    let groups: Vec<GroupBar> = picture.groups.iter().map(bar).collect();
    Ok(segments(&format!("{}: {}", path.text, picture.title), &cells, &groups))
}
