//! The log of a volume that was killed, in its blocks.

use crate::crashes::{BLOCK, Disks, mounting};
use crate::image::Image;
use crate::power_cut::{Disk, Power};
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::{Access, StoredVolumes};
use flashpath::fs::volume::Volume;
use flashpath::layout::{Layout, Region};
use std::fs;
use std::sync::Arc;

pub const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];
pub const DESCRIPTOR: u32 = 1;
pub const COMMIT: u32 = 2;
pub const REVOKES: u32 = 5;

pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// A record: its block on the device of the log, its kind, its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub block: u64,
    pub kind: u32,
    pub transaction: u32,
}

/// A log, on the device where it lies.
pub struct OnDisk {
    pub disk: Disk,
    /// Its blocks, of which the first is its superblock.
    pub blocks: Vec<u64>,
}

impl OnDisk {
    /// That of a volume with blocks of 4 KiB.
    pub fn of(disks: &Disks) -> OnDisk {
        if let Some(journal) = &disks.journal {
            return OnDisk { disk: journal.clone(), blocks: (1..crate::crashes::JOURNAL_BLOCKS).collect() };
        }
        let disk = disks.volume.clone();
        let mut read = |offset: u64, buffer: &mut [u8]| {
            let mut done = 0;
            while done < buffer.len() {
                let (block, at) = ((offset as usize + done) / BLOCK, (offset as usize + done) % BLOCK);
                let count = (BLOCK - at).min(buffer.len() - done);
                buffer[done..done + count].copy_from_slice(&disk.bytes(block as u64)[at..at + count]);
                done += count;
            }
            Ok(())
        };
        let layout = Layout::read(&mut read, crate::crashes::BLOCKS * BLOCK as u64).unwrap();
        // Blocks of a block map lie between those of the log.
        let of_log = layout.regions.iter().filter(|(_, region)| *region == Region::Journal);
        let blocks = of_log.flat_map(|(range, _)| range.start / BLOCK as u64..range.end / BLOCK as u64).collect();
        OnDisk { disk: disk.clone(), blocks }
    }

    /// The log's superblock: block 0 of it, and the first transaction and its block.
    pub fn begins(&self) -> (u32, u32) {
        let bytes = self.disk.bytes(self.blocks[0]);
        (be32(&bytes, 24), be32(&bytes, 28))
    }

    /// Records from the first transaction on, by number and then in their order.
    pub fn records(&self) -> Vec<Record> {
        let (sequence, _) = self.begins();
        let at = |block: u64| {
            let bytes = self.disk.bytes(block);
            let is_record = bytes[..4] == MAGIC && block > self.blocks[0];
            is_record.then(|| Record { block, kind: be32(&bytes, 4), transaction: be32(&bytes, 8) })
        };
        let mut records: Vec<Record> =
            self.blocks.iter().copied().filter_map(at).filter(|record| record.transaction >= sequence).collect();
        records.sort_by_key(|record| record.transaction);
        records
    }

    /// The last transaction with a commit, if all before it have one.
    pub fn last(&self) -> Option<u32> {
        let (mut last, commits) = (None, self.records());
        for next in self.begins().0.. {
            let is_committed = |record: &&Record| record.kind == COMMIT && record.transaction == next;
            match commits.iter().find(is_committed) {
                Some(_) => last = Some(next),
                None => break,
            }
        }
        last
    }

    /// Takes the feature of an optimistic log away, so that a replay takes it for one with a flush behind each transaction.
    pub fn takes_it_for_one_with_flushes(&self) {
        self.change(self.blocks[0], |block| {
            block[40] &= 0x7f;
            block[252..256].fill(0);
            let sum = !crc32c::crc32c(&block[..1024]);
            block[252..256].copy_from_slice(&sum.to_be_bytes());
        });
    }

    /// Changes a block.
    pub fn change(&self, block: u64, change: impl FnOnce(&mut [u8])) {
        let mut bytes = self.disk.bytes(block);
        change(&mut bytes);
        self.disk.put(block, &bytes);
    }
}

/// Puts an image on a disk.
pub fn put_image(disk: &Disk, image: &Image) {
    for (number, block) in (0..).zip(fs::read(image.path()).unwrap().chunks(BLOCK)) {
        if block.iter().any(|byte| *byte != 0) {
            disk.put(number, block);
        }
    }
}

pub fn open(disks: &Disks, settings: &ExtSettings, access: Access) -> Result<Arc<dyn Volume>, String> {
    settings.open(disks.media(), &mounting(), access).map_err(|fault| fault.source.to_string())
}

/// The disks again, without power lost, and options to open them.
pub fn copied(disks: &Disks) -> Disks {
    disks.copy(&Power::new())
}
