//! Partition tables: MBR (with its chain of logical partitions) and GPT.
//!
//! ```text
//! MBR, 512 bytes:   446 four entries of 16 bytes   510 0x55 0xAA
//!   an entry:       0 boot flag   4 type   8 first sector   12 sectors
//! GPT, sector 1:    0 "EFI PART"   72 first sector of the entries   80 entries   84 bytes of an entry
//!   an entry:       0 type (16 bytes, zero: none)   32 first sector   40 last sector
//! ```
//!
//! (UEFI Specification 2.10, sections 5.2 and 5.3.) An MBR uses sectors of 512 bytes; a GPT those of 512 or 4096 bytes
//! after whose first one it lies. A table is rejected if an entry lies outside the device or overlaps another: it may
//! be the boot code of a file system.

use super::LayoutError;
use super::bytes::{Bytes, Device};
use std::ops::Range;

const SECTOR_BYTES: u64 = 512;
const GPT_SECTOR_BYTES: [u64; 2] = [512, 4096];
/// The maximum number of entries: tables have 128, chains a handful.
const MOST: usize = 256;

const PROTECTIVE: u8 = 0xEE;
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];

/// The byte range of each partition, in the order of the table; empty without a valid table.
pub(super) fn read(device: &mut Device) -> Result<Vec<Range<u64>>, LayoutError> {
    let Some(sector) = device.read_if_there(0, SECTOR_BYTES as usize)? else { return Ok(Vec::new()) };
    let Some(entries) = entries(&sector) else { return Ok(Vec::new()) };
    let mut partitions =
        if entries.iter().any(|entry| entry.kind == PROTECTIVE) { of_gpt(device)? } else { of_mbr(device, &entries)? };
    partitions.truncate(MOST);
    let mut in_order = partitions.clone();
    in_order.sort_by_key(|range| range.start);
    let is_inside = |range: &Range<u64>| SECTOR_BYTES <= range.start && range.end <= device.size_bytes;
    let is_apart = in_order.windows(2).all(|pair| pair[0].end <= pair[1].start);
    Ok(if is_apart && in_order.iter().all(is_inside) { partitions } else { Vec::new() })
}

/// An entry of an MBR.
struct Entry {
    kind: u8,
    first: u64,
    sectors: u64,
}

impl Entry {
    /// The partition's byte range; `first` counts from the byte `from`.
    fn bytes(&self, from: u64) -> Range<u64> {
        let start = from.saturating_add(self.first * SECTOR_BYTES);
        start..start.saturating_add(self.sectors * SECTOR_BYTES)
    }
}

/// The used entries of an MBR, or of a link in its chain.
fn entries(sector: &Bytes) -> Option<Vec<Entry>> {
    if sector.le16(510) != 0xAA55 {
        return None;
    }
    let at = |number: usize| 446 + 16 * number;
    if (0..4).any(|number| !matches!(sector.u8(at(number)), 0 | 0x80)) {
        return None;
    }
    let entry = |number: usize| Entry {
        kind: sector.u8(at(number) + 4),
        first: sector.le32(at(number) + 8).into(),
        sectors: sector.le32(at(number) + 12).into(),
    };
    Some((0..4).map(entry).filter(|entry| entry.kind != 0 && entry.sectors > 0).collect())
}

fn of_mbr(device: &mut Device, entries: &[Entry]) -> Result<Vec<Range<u64>>, LayoutError> {
    let mut partitions = Vec::new();
    for entry in entries {
        match EXTENDED.contains(&entry.kind) {
            false => partitions.push(entry.bytes(0)),
            true => of_chain(device, entry.bytes(0).start, &mut partitions)?,
        }
    }
    Ok(partitions)
}

/// Follows the chain: a link's partition counts from the link itself, the next link from the first.
fn of_chain(device: &mut Device, first: u64, partitions: &mut Vec<Range<u64>>) -> Result<(), LayoutError> {
    let mut link = first;
    for _ in 0..MOST {
        let Some(sector) = device.read_if_there(link, SECTOR_BYTES as usize)? else { return Ok(()) };
        let Some(entries) = entries(&sector) else { return Ok(()) };
        let mut next = None;
        for entry in &entries {
            match EXTENDED.contains(&entry.kind) {
                false => partitions.push(entry.bytes(link)),
                true => next = Some(entry.bytes(first).start),
            }
        }
        match next.filter(|next| *next > link) {
            Some(next) => link = next,
            None => return Ok(()),
        }
    }
    Ok(())
}

fn of_gpt(device: &mut Device) -> Result<Vec<Range<u64>>, LayoutError> {
    for sector_bytes in GPT_SECTOR_BYTES {
        let Some(header) = device.read_if_there(sector_bytes, 92)? else { continue };
        if header.part(0, 8) != Some(b"EFI PART") {
            continue;
        }
        let (count, entry_bytes) = (header.le32(80) as usize, header.le32(84) as usize);
        if !(128..=4096).contains(&entry_bytes) {
            continue;
        }
        let table = header.le64(72).saturating_mul(sector_bytes);
        let length = count.min(MOST) * entry_bytes;
        let Some(table) = device.read_if_there(table, length)? else { continue };
        return Ok(table
            .0
            .chunks_exact(entry_bytes)
            .map(|entry| Bytes(entry.to_vec()))
            .filter(|entry| entry.part(0, 16) != Some(&[0; 16]))
            .map(|entry| {
                let sector = |number: u64| number.saturating_mul(sector_bytes);
                sector(entry.le64(32))..sector(entry.le64(40).saturating_add(1))
            })
            .filter(|range| !range.is_empty())
            .collect());
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A device of 64 MiB with these entries: place of the sector, number, type, first sector, sectors.
    fn read_mbr(links: &[(u64, usize, u8, u32, u32)]) -> Vec<Range<u64>> {
        let mut bytes = vec![0; 64 << 20];
        for &(sector, number, kind, first, sectors) in links {
            let at = sector as usize * 512;
            bytes[at + 510..at + 512].copy_from_slice(&[0x55, 0xAA]);
            let entry = at + 446 + 16 * number;
            bytes[entry + 4] = kind;
            bytes[entry + 8..entry + 12].copy_from_slice(&first.to_le_bytes());
            bytes[entry + 12..entry + 16].copy_from_slice(&sectors.to_le_bytes());
        }
        let size_bytes = bytes.len() as u64;
        let mut source = |offset: u64, buffer: &mut [u8]| -> std::io::Result<()> {
            buffer.copy_from_slice(&bytes[offset as usize..][..buffer.len()]);
            Ok(())
        };
        read(&mut Device::new(&mut source, size_bytes)).unwrap()
    }

    #[test]
    fn logical_partitions_are_counted_from_their_link_and_links_from_the_first() {
        let found = read_mbr(&[
            (0, 0, 0x83, 2048, 2048),
            (0, 1, 0x05, 8192, 65536),
            (8192, 0, 0x83, 2048, 4096),
            (8192, 1, 0x05, 10240, 8192),
            (18432, 0, 0x83, 2048, 2048),
        ]);
        assert_eq!(found, [MIB..2 * MIB, 5 * MIB..7 * MIB, 10 * MIB..11 * MIB]);
    }

    #[test]
    fn a_table_that_cannot_be_is_none() {
        assert_eq!(read_mbr(&[(0, 0, 0x83, 0, 2048)]), [], "a partition over its own table");
        assert_eq!(read_mbr(&[(0, 0, 0x83, 2048, 1 << 20)]), [], "one beyond the end");
        assert_eq!(read_mbr(&[(0, 0, 0x83, 2048, 4096), (0, 1, 0x83, 4096, 4096)]), [], "two over each other");
        let links = [(0, 0, 0x05, 2048, 4096), (2048, 0, 0x83, 8, 8), (2048, 1, 0x05, 0, 8)];
        assert_eq!(read_mbr(&links).len(), 1, "a chain that goes round");
    }
}
