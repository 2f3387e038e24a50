//! A zoned block device of the kernel: a ZNS drive, an SMR disk, or one of null_blk.
//!
//! Zones are reported and managed by the ioctls of `linux/blkzoned.h`. Data bypasses the page cache (O_DIRECT): the
//! kernel requires it for sequential zones. Offsets are bytes from the start of the device.

use crate::{KernelError, failed};
use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The kernel's unit for a zone's start and length.
const SECTOR_BYTES: u64 = 512;
/// Zones in one report.
const ZONES_AT_ONCE: usize = 256;
/// The alignment of buffers for direct I/O.
const ALIGNMENT: usize = 4096;
/// The maximum number of bytes copied into such a buffer at once.
const PIECE: usize = 1 << 20;

/// The type of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockZoneKind {
    /// Writable at any offset.
    Conventional,
    /// Writable at its write pointer only.
    Sequential,
    /// Writable at any offset, faster in order (host-aware disks; not supported by the kernel since 6.9).
    SequentialPreferred,
}

/// The condition of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockZoneCondition {
    /// Without a write pointer: the zone is conventional.
    NoWritePointer,
    /// Nothing is written.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by a command.
    ExplicitlyOpen,
    /// Written in part, and not open.
    Closed,
    /// Only readable.
    ReadOnly,
    /// Fully written, or finished.
    Full,
    /// Neither readable nor writable.
    Offline,
}

/// A zone as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockZone {
    /// Its type.
    pub kind: BlockZoneKind,
    /// Its condition.
    pub condition: BlockZoneCondition,
    /// Its first byte.
    pub start: u64,
    /// Bytes from its start to the next zone's start.
    pub length: u64,
    /// Its writable bytes.
    pub capacity: u64,
    /// The write pointer, in bytes from the zone's start; undefined for conventional, full, read-only and offline
    /// zones.
    pub written: u64,
}

/// A command for a whole zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneRequest {
    /// Opens it explicitly.
    Open,
    /// Closes it.
    Close,
    /// Makes it full.
    Finish,
    /// Makes it empty.
    Reset,
}

/// A zoned block device of the kernel, opened exclusively.
#[derive(Debug)]
pub struct ZonedBlockDevice {
    file: File,
    name: String,
    zones: u32,
    zone_bytes: u64,
    max_open: u32,
    max_active: u32,
    /// Large enough for an aligned piece.
    buffer: Vec<u8>,
}

impl ZonedBlockDevice {
    /// Opens the device. Fails if `path` is not a block device, has no zones, or is in use.
    pub fn open(path: &Path) -> Result<ZonedBlockDevice, KernelError> {
        let name = path.display().to_string();
        let unfit = |what: &str| KernelError::Invalid {
            what: format!("{name} {what}"),
            help: "name a zoned block device: lsblk -o NAME,ZONED shows host-managed for them".to_string(),
        };
        let metadata = std::fs::metadata(path).map_err(failed(format!("look at {name}")))?;
        if !metadata.file_type().is_block_device() {
            return Err(unfit("is not a block device"));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags((OFlag::O_DIRECT | OFlag::O_EXCL).bits());
        let file = options.open(path).map_err(failed(format!("open {name}")))?;
        let number = metadata.rdev();
        let limit = |file: &str| {
            let place = format!("/sys/dev/block/{}:{}/queue/{file}", major(number), minor(number));
            std::fs::read_to_string(place).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        // A kernel without zoned block devices rejects the ioctl; others return 0 for a device without zones.
        let zone_sectors = ioctls::zone_sectors(&file).unwrap_or(0);
        if zone_sectors == 0 {
            return Err(unfit("has no zones, or the kernel knows of none (CONFIG_BLK_DEV_ZONED)"));
        }
        let zones = ioctls::zones(&file).map_err(failed(format!("count the zones of {name}")))?;
        Ok(ZonedBlockDevice {
            file,
            zones,
            zone_bytes: u64::from(zone_sectors) * SECTOR_BYTES,
            max_open: limit("max_open_zones"),
            max_active: limit("max_active_zones"),
            buffer: vec![0; PIECE + ALIGNMENT],
            name,
        })
    }

    /// Its name, such as /dev/nvme0n2.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of zones.
    pub fn zones(&self) -> u32 {
        self.zones
    }

    /// Bytes from a zone's start to the next zone's start. The last zone may be shorter.
    pub fn zone_bytes(&self) -> u64 {
        self.zone_bytes
    }

    /// The maximum number of open zones; 0 for no limit.
    pub fn max_open(&self) -> u32 {
        self.max_open
    }

    /// The maximum number of open and closed zones; 0 for no limit.
    pub fn max_active(&self) -> u32 {
        self.max_active
    }

    /// Reports `count` zones from `first`, or all up to the last.
    pub fn report(&self, first: u32, count: u32) -> io::Result<Vec<BlockZone>> {
        let end = first.saturating_add(count).min(self.zones);
        let mut report = Vec::new();
        while first + (report.len() as u32) < end {
            let next = first + report.len() as u32;
            let bytes = ioctls::report(&self.file, u64::from(next) * self.zone_bytes / SECTOR_BYTES)?;
            let zones = parse_report(&bytes)?;
            if zones.is_empty() {
                break;
            }
            let missing = (end - next) as usize;
            report.extend(zones.into_iter().take(missing));
        }
        Ok(report)
    }

    /// Applies `request` to a whole zone.
    pub fn manage(&self, zone: u32, request: ZoneRequest) -> io::Result<()> {
        let sectors = self.zone_bytes / SECTOR_BYTES;
        ioctls::manage(&self.file, u64::from(zone) * sectors, sectors, request)
    }

    /// Reads at `offset`; offset and length are multiples of the device's block size.
    pub fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut at = offset;
        for part in bytes.chunks_mut(PIECE) {
            let from = self.buffer.as_ptr().align_offset(ALIGNMENT);
            let aligned = &mut self.buffer[from..from + part.len()];
            self.file.read_exact_at(aligned, at)?;
            part.copy_from_slice(aligned);
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Writes at `offset`; offset and length are multiples of the device's block size. After an error a part may be
    /// written: the zone's write pointer tells.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut at = offset;
        for part in bytes.chunks(PIECE) {
            let from = self.buffer.as_ptr().align_offset(ALIGNMENT);
            let aligned = &mut self.buffer[from..from + part.len()];
            aligned.copy_from_slice(part);
            self.file.write_all_at(aligned, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Makes all written data durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Parses the output of BLKREPORTZONE, in the machine's byte order: a header of 16 bytes (sector, number of zones,
/// flags) and 64 bytes for each zone.
pub fn parse_report(bytes: &[u8]) -> io::Result<Vec<BlockZone>> {
    const HEADER: usize = 16;
    const ZONE: usize = 64;
    const FLAG_CAPACITY: u32 = 1;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let header = bytes.get(..HEADER).ok_or_else(|| invalid("a zone report without a header".to_string()))?;
    let (count, flags) = (number(header, 8, 4) as usize, number(header, 12, 4) as u32);
    let zones = bytes[HEADER..].chunks_exact(ZONE).take(count);
    if zones.len() < count {
        return Err(invalid(format!("a zone report of {count} zones in {} bytes", bytes.len())));
    }
    zones
        .map(|zone| {
            let kind = match zone[24] {
                1 => BlockZoneKind::Conventional,
                2 => BlockZoneKind::Sequential,
                3 => BlockZoneKind::SequentialPreferred,
                other => return Err(invalid(format!("a zone of type {other:#x}"))),
            };
            let condition = match zone[25] {
                0x0 => BlockZoneCondition::NoWritePointer,
                0x1 => BlockZoneCondition::Empty,
                0x2 => BlockZoneCondition::ImplicitlyOpen,
                0x3 => BlockZoneCondition::ExplicitlyOpen,
                0x4 => BlockZoneCondition::Closed,
                0xd => BlockZoneCondition::ReadOnly,
                0xe => BlockZoneCondition::Full,
                0xf => BlockZoneCondition::Offline,
                other => return Err(invalid(format!("a zone in condition {other:#x}"))),
            };
            let bytes = |offset| number(zone, offset, 8).saturating_mul(SECTOR_BYTES);
            let (start, length) = (bytes(0), bytes(8));
            // Kernels before 5.9 report no capacity.
            let capacity = if flags & FLAG_CAPACITY != 0 { bytes(32) } else { length };
            Ok(BlockZone { kind, condition, start, length, capacity, written: bytes(16).saturating_sub(start) })
        })
        .collect()
}

/// A number of `length` bytes, in the machine's byte order.
fn number(bytes: &[u8], offset: usize, length: usize) -> u64 {
    let digits = bytes[offset..offset + length].iter();
    let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if cfg!(target_endian = "big") { digits.fold(0, join) } else { digits.rev().fold(0, join) }
}

/// The ioctls of `linux/blkzoned.h`, which have no safe form.
mod ioctls {
    use super::{File, SECTOR_BYTES, ZONES_AT_ONCE, ZoneRequest, io};
    use std::os::fd::AsRawFd;

    const REPORT_BYTES: usize = 16 + 64 * ZONES_AT_ONCE;

    /// `struct blk_zone_report` with space for zones, as whole words so that it is aligned.
    #[repr(C)]
    pub struct Report([u64; REPORT_BYTES / 8]);

    /// `struct blk_zone_range`.
    #[repr(C)]
    pub struct Range {
        sector: u64,
        sectors: u64,
    }

    const _: () = assert!(size_of::<Report>() == REPORT_BYTES && size_of::<Range>() == 16);
    const _: () = assert!(SECTOR_BYTES == 512);

    // The ioctl's number encodes the size of the header alone.
    nix::ioctl_readwrite_bad!(block_report_zones, nix::request_code_readwrite!(0x12, 130, 16), Report);
    nix::ioctl_write_ptr!(block_reset_zone, 0x12, 131, Range);
    nix::ioctl_read!(block_zone_size, 0x12, 132, u32);
    nix::ioctl_read!(block_zone_number, 0x12, 133, u32);
    nix::ioctl_write_ptr!(block_open_zone, 0x12, 134, Range);
    nix::ioctl_write_ptr!(block_close_zone, 0x12, 135, Range);
    nix::ioctl_write_ptr!(block_finish_zone, 0x12, 136, Range);

    #[allow(unsafe_code, reason = "an ioctl")]
    pub fn zone_sectors(file: &File) -> io::Result<u32> {
        let mut sectors = 0;
        // SAFETY: the request writes one u32, which lives until it returns; the descriptor is open.
        unsafe { block_zone_size(file.as_raw_fd(), &mut sectors) }?;
        Ok(sectors)
    }

    #[allow(unsafe_code, reason = "an ioctl")]
    pub fn zones(file: &File) -> io::Result<u32> {
        let mut zones = 0;
        // SAFETY: as above.
        unsafe { block_zone_number(file.as_raw_fd(), &mut zones) }?;
        Ok(zones)
    }

    /// The raw report of the zones from a sector on.
    #[allow(unsafe_code, reason = "an ioctl")]
    pub fn report(file: &File, sector: u64) -> io::Result<Vec<u8>> {
        let mut report = Box::new(Report([0; REPORT_BYTES / 8]));
        report.0[0] = sector;
        let mut asked = [0; 8];
        asked[..4].copy_from_slice(&(ZONES_AT_ONCE as u32).to_ne_bytes());
        report.0[1] = u64::from_ne_bytes(asked);
        // SAFETY: the request writes the header and at most as many zones as the header asks for, which the structure
        // holds; it lives until the request returns; the descriptor is open.
        unsafe { block_report_zones(file.as_raw_fd(), &mut *report) }?;
        Ok(report.0.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    #[allow(unsafe_code, reason = "an ioctl")]
    pub fn manage(file: &File, sector: u64, sectors: u64, request: ZoneRequest) -> io::Result<()> {
        let range = Range { sector, sectors };
        let request = match request {
            ZoneRequest::Open => block_open_zone,
            ZoneRequest::Close => block_close_zone,
            ZoneRequest::Finish => block_finish_zone,
            ZoneRequest::Reset => block_reset_zone,
        };
        // SAFETY: the request reads one structure, which lives until it returns; the descriptor is open.
        unsafe { request(file.as_raw_fd(), &range) }?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(start: u64, pointer: u64, kind: u8, condition: u8, capacity: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        for (offset, value) in [(0, start), (8, 2048), (16, pointer), (32, capacity)] {
            bytes[offset..offset + 8].copy_from_slice(&u64::to_ne_bytes(value));
        }
        (bytes[24], bytes[25]) = (kind, condition);
        bytes
    }

    fn report(flags: u32, zones: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes.extend((zones.len() as u32).to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(zones.concat());
        // The rest of the buffer is not filled.
        bytes.extend([0; 128]);
        bytes
    }

    #[test]
    fn a_report_is_read_as_the_kernel_lays_it_out() {
        let bytes = report(1, &[zone(0, 0, 1, 0, 2048), zone(2048, 2056, 2, 4, 1024), zone(4096, 4096, 2, 0xf, 1024)]);
        let zones = parse_report(&bytes).unwrap();
        assert_eq!(zones.len(), 3);
        assert_eq!(
            (zones[0].kind, zones[0].condition),
            (BlockZoneKind::Conventional, BlockZoneCondition::NoWritePointer)
        );
        let second = BlockZone {
            kind: BlockZoneKind::Sequential,
            condition: BlockZoneCondition::Closed,
            start: 1 << 20,
            length: 1 << 20,
            capacity: 1 << 19,
            written: 4096,
        };
        assert_eq!(zones[1], second);
        assert_eq!(zones[2].condition, BlockZoneCondition::Offline);
    }

    #[test]
    fn without_a_capacity_a_zone_is_as_large_as_it_is_long() {
        assert_eq!(parse_report(&report(0, &[zone(0, 0, 2, 1, 0)])).unwrap()[0].capacity, 1 << 20);
    }

    #[test]
    fn a_report_that_cannot_be_is_refused() {
        for (bytes, message) in [
            (vec![0; 15], "without a header"),
            (report(1, &[zone(0, 0, 9, 1, 8)]), "of type 0x9"),
            (report(1, &[zone(0, 0, 2, 5, 8)]), "in condition 0x5"),
            (report(1, &vec![zone(0, 0, 2, 1, 8); 3])[..16 + 2 * 64].to_vec(), "of 3 zones in 144 bytes"),
        ] {
            let error = parse_report(&bytes).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_device_without_zones_is_rejected_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = ZonedBlockDevice::open(file.path()).unwrap_err().to_string();
        assert!(error.ends_with("is not a block device"), "{error}");
        file.as_file().set_len(1 << 20).unwrap();
        match crate::LoopDevice::attach(file.as_file()) {
            Ok(device) => {
                let error = ZonedBlockDevice::open(device.path()).unwrap_err().to_string();
                assert!(error.contains("has no zones"), "{error}");
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}
