//! The memory that a simulated run takes, estimated before it begins, so that several run beside each other.

use super::path::Path;
use super::work::RunOptions;
use crate::device::station::Payload;
use crate::units::BLOCK_BYTES;

/// Bytes for the engine: batches, windows, histograms, and the workload.
const ENGINE_BYTES: u64 = 8 << 20;
/// Bytes for a file system: its caches and threads.
const VOLUME_BYTES: u64 = 48 << 20;
/// Bytes for a file system without a device: its files are its memory, and the workload makes them.
const TREE_BYTES: u64 = 96 << 20;
/// Bytes of a file system's metadata for a block of the devices below it, about.
const VOLUME_BLOCK_BYTES: u64 = 24;
/// Bytes for the newest stamp of a block, if reads are verified.
const STAMP_BYTES: u64 = 8;

/// An estimate of the bytes of memory of a simulated run on this path with these options, when all of it is written.
pub fn memory_bytes(path: &Path, options: &RunOptions) -> u64 {
    let raw = |holds| path.devices.iter().fold(0, |sum: u64, device| sum.saturating_add(device.memory_bytes(holds)));
    let blocks =
        raw(Payload::Bytes).saturating_sub(raw(Payload::Stamps)) / (BLOCK_BYTES - Payload::Stamps.width() as u64);
    let devices = match (path.volume_settings(), path.drive()) {
        (None, Some(drive)) => drive.memory_bytes_of(options.verify),
        _ => raw(Payload::Stamps),
    };
    let volume = match path.volume_settings() {
        None => 0,
        Some(_) if path.devices.is_empty() => TREE_BYTES,
        Some(_) => VOLUME_BYTES + blocks * VOLUME_BLOCK_BYTES,
    };
    let verified = if options.verify { blocks * STAMP_BYTES } else { 0 };
    ENGINE_BYTES + devices + volume + verified
}
