//! The description of a volume: its numbers, and a line for each group.

use super::Ext;
use super::error::OpenExtError;
use super::format::bytes::uuid;
use super::format::group::flag;
use super::found_log::find_log;
use crate::fs::station::{DrawnPart, Inspection, PartUse, Picture};
use crate::task::Task;
use crate::time::Time;
use serde::Serialize;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// The numbers of a volume, as JSON has them.
#[derive(Serialize)]
struct Numbers {
    label: String,
    uuid: String,
    features: Vec<String>,
    block_bytes: usize,
    blocks: u64,
    free_blocks: u64,
    inodes: u32,
    free_inodes: u64,
    inode_bytes: usize,
    groups: u32,
    journal: Option<JournalNumbers>,
    first_orphan: u32,
    group_rows: Vec<GroupRow>,
}

#[derive(Serialize)]
struct JournalNumbers {
    /// The file that it lies in; 0 if it has a device of its own.
    inode: u32,
    /// The UUID of that device.
    device: Option<String>,
    blocks: u32,
    runs: Vec<(u64, u64)>,
    sequence: u32,
    /// The block of the log at which records begin that may not be home; 0 if there are none.
    start: u32,
}

/// A group, as its descriptor says it.
#[derive(Serialize)]
struct GroupRow {
    group: u32,
    first_block: u64,
    blocks: u64,
    free_blocks: u32,
    free_inodes: u32,
    directories: u32,
    never_used_inodes: u32,
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    has_block_bitmap: bool,
    has_inode_bitmap: bool,
}

impl Ext {
    /// Looks at a volume that was opened to be read.
    pub fn inspection(&mut self) -> Result<Inspection, OpenExtError> {
        let task = Task::at(Time::ZERO);
        let mut group_rows = Vec::new();
        for group in 0..self.parts.metadata.shape.groups {
            let descriptor = self.parts.metadata.descriptor(&task, group)?;
            let covers = self.parts.metadata.shape.checksums.cover_groups();
            group_rows.push(GroupRow {
                group,
                first_block: self.parts.metadata.shape.group_start(group),
                blocks: self.parts.metadata.shape.blocks_of_group(group),
                free_blocks: descriptor.free_blocks,
                free_inodes: descriptor.free_inodes,
                directories: descriptor.directories,
                never_used_inodes: descriptor.never_used,
                block_bitmap: descriptor.block_bitmap,
                inode_bitmap: descriptor.inode_bitmap,
                inode_table: descriptor.inode_table,
                has_block_bitmap: !(covers && descriptor.has(flag::NO_BLOCKS)),
                has_inode_bitmap: !(covers && descriptor.has(flag::NO_INODES)),
            });
        }
        let journal = find_log(&task, &self.parts, &self.below)?.map(|log| JournalNumbers {
            inode: self.parts.metadata.shape.journal_inode,
            device: self.below.media.is_some().then(|| uuid(log.superblock.uuid())),
            blocks: log.superblock.blocks(),
            runs: log.place.runs.iter().map(|run| (run.start, run.end - run.start)).collect(),
            sequence: log.superblock.sequence(),
            start: log.superblock.start(),
        });
        let superblock = &self.parts.head.get_mut().superblock;
        let numbers = Numbers {
            label: String::from_utf8_lossy(superblock.label()).into_owned(),
            uuid: uuid(self.below.volume),
            first_orphan: superblock.first_orphan(),
            features: self.parts.metadata.shape.features.names(),
            block_bytes: self.parts.metadata.shape.block_bytes,
            blocks: self.parts.metadata.shape.blocks,
            free_blocks: self.parts.space.free.blocks.load(Ordering::SeqCst),
            inodes: self.parts.metadata.shape.inodes,
            free_inodes: self.parts.space.free.inodes.load(Ordering::SeqCst),
            inode_bytes: self.parts.metadata.shape.inode_bytes,
            groups: self.parts.metadata.shape.groups,
            journal,
            group_rows,
        };
        Ok(Inspection {
            summary: summary(&numbers),
            parts: parts(&numbers.group_rows),
            json: serde_json::to_string_pretty(&numbers).expect("numbers and text are JSON"),
            picture: picture(&numbers),
        })
    }
}

fn summary(numbers: &Numbers) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {value}");
    };
    line("uuid", numbers.uuid.clone());
    if !numbers.label.is_empty() {
        line("label", numbers.label.clone());
    }
    line("features", numbers.features.join(" "));
    line("blocks", format!("{} of {} bytes, {} free", numbers.blocks, numbers.block_bytes, numbers.free_blocks));
    line("inodes", format!("{} of {} bytes, {} free", numbers.inodes, numbers.inode_bytes, numbers.free_inodes));
    line("groups", numbers.groups.to_string());
    match &numbers.journal {
        Some(journal) => {
            let state = match journal.start {
                0 => "empty".to_string(),
                start => format!("from block {start} of it, transaction {}", journal.sequence),
            };
            let place = match &journal.device {
                Some(uuid) => format!("on a device of its own, {uuid}"),
                None => format!("in {} runs", journal.runs.len()),
            };
            line("journal", format!("{} blocks {place}, {state}", journal.blocks));
        }
        None => line("journal", "none".to_string()),
    }
    if numbers.first_orphan != 0 {
        line("orphans", format!("from inode {} on", numbers.first_orphan));
    }
    text
}

fn parts(rows: &[GroupRow]) -> String {
    let mut text =
        String::from("group  first block   blocks     free  free inodes  directories  block bitmap  inode table\n");
    for row in rows {
        let _ = writeln!(
            text,
            "{:>5}  {:>11}  {:>7}  {:>7}  {:>11}  {:>11}  {:>12}  {:>11}",
            row.group,
            row.first_block,
            row.blocks,
            row.free_blocks,
            row.free_inodes,
            row.directories,
            row.block_bitmap,
            row.inode_table
        );
    }
    text
}

fn picture(numbers: &Numbers) -> Picture {
    let drawn = |row: &GroupRow| {
        let utilization = 1.0 - f64::from(row.free_blocks) / row.blocks as f64;
        let used_for = match (row.has_block_bitmap, row.directories) {
            (false, _) => PartUse::Free,
            (true, 0) => PartUse::Data(None),
            (true, _) => PartUse::Metadata,
        };
        DrawnPart { used_for, utilization }
    };
    let title = format!("ext: {} groups, {} of {} blocks free", numbers.groups, numbers.free_blocks, numbers.blocks);
    Picture { title, parts: numbers.group_rows.iter().map(drawn).collect(), groups: Vec::new() }
}
