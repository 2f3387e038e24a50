//! A drive: a translation layer on flash as a block device, so that what stands on blocks can stand on it.
//!
//! The flash keeps no bytes, so they lie beside it: a write goes to both, a read is answered from the bytes at the time
//! that the flash takes. What a power cut does to the layer's own map is the layer's to show
//! ([`Translation::after_power_cut`]); the drive adds nothing to it.

use super::{Flash, Requests, Translation};
use crate::device::{
    Account, BlockDevice, DeviceError, DriveAccount, Extent, FlashAccount, Lba, Memory, blocks_in, check_range,
};
use crate::label::{Cause, Content, Label, Tally};
use crate::time::Time;
use crate::units::BLOCK_BYTES;

/// A translation layer on flash, as a block device.
///
/// What it writes for the device above is a host write to the layer, for whatever cause; the content is passed on.
pub struct Drive<T> {
    layer: T,
    requests: Requests,
    bytes: Memory,
    blocks: u64,
    received: Tally,
    read_blocks: u64,
    /// When the last of all requests is done.
    last_done: Time,
    /// Up to when it is known that nothing was asked for.
    idle_until: Time,
    /// The name under which it counts, where it is one medium of a path.
    medium: Option<&'static str>,
}

impl<T: Translation> Drive<T> {
    /// Offers the first `blocks` blocks of what the layer exports, each with `block_width` bytes in a buffer.
    ///
    /// # Panics
    ///
    /// If the layer exports less: a bug of the caller.
    pub fn new(layer: T, blocks: u64, block_width: usize) -> Drive<T> {
        let page_bytes = layer.flash().geometry.page_bytes;
        assert!(blocks <= layer.exported_pages() * u64::from(page_bytes) / BLOCK_BYTES, "the layer exports as much");
        Drive {
            layer,
            requests: Requests::new(page_bytes),
            bytes: Memory::new(block_width),
            blocks,
            received: Tally::default(),
            read_blocks: 0,
            last_done: Time::ZERO,
            idle_until: Time::ZERO,
            medium: None,
        }
    }

    /// The same as one medium of a path: its account names no stations within it, and what it sent is what its flash
    /// programmed.
    pub fn as_medium(self, station: &'static str) -> Drive<T> {
        Drive { medium: Some(station), ..self }
    }

    fn bytes_of(first: Lba, blocks: u64) -> (u64, u64) {
        (first.0 * BLOCK_BYTES, blocks * BLOCK_BYTES)
    }

    fn error(&self, error: impl std::fmt::Display) -> DeviceError {
        DeviceError::Station { station: self.layer.name(), reason: error.to_string() }
    }

    fn done(&mut self, at: Time) -> Time {
        self.last_done = self.last_done.max(at);
        at
    }
}

impl<T: Translation + Send> BlockDevice for Drive<T> {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_width(&self) -> usize {
        self.bytes.width()
    }

    fn is_timed(&self) -> bool {
        T::TIMED
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.bytes.width());
        check_range(first, count, self.blocks)?;
        let range = Self::bytes_of(first, count);
        let read = self.requests.read(&mut self.layer, range, at, |_, _| {});
        let there = read.map_err(|error| self.error(error))?;
        self.bytes.read(first, buffer);
        self.read_blocks += count;
        Ok(self.done(there))
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.bytes.width());
        check_range(first, count, self.blocks)?;
        let (range, page) = (Self::bytes_of(first, count), (label.content, 0, 0));
        let written = self.requests.write(&mut self.layer, range, page, at);
        let there = written.map_err(|error| self.error(error))?;
        self.bytes.write(first, buffer);
        self.received.add(label.cause, label.content, count);
        Ok(self.done(there))
    }

    /// Only pages that are covered whole are dropped by the layer; all blocks read as zeros.
    fn discard(&mut self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        let (offset, length) = Self::bytes_of(first, blocks);
        let mut done = at;
        for page in self.requests.covered(offset, length) {
            let noted = self.layer.discard(crate::device::nand::LogicalPage(page), at);
            done = done.max(noted.map_err(|error| self.error(error))?);
        }
        self.bytes.clear(first, blocks);
        Ok(self.done(done))
    }

    /// Writes are on flash when they are done: a flush waits for those in flight, and costs nothing itself.
    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        Ok(self.last_done.max(at))
    }

    fn extent(&mut self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        Ok(self.bytes.extent(first, blocks))
    }

    /// Lets the layer have the time in which nothing was in flight.
    fn work(&mut self, now: Time) -> Result<Option<Time>, DeviceError> {
        let from = self.last_done.max(self.idle_until);
        if now > from {
            self.layer.idle(from, now).map_err(|error| self.error(error))?;
            self.idle_until = now;
        }
        Ok(None)
    }

    fn account(&self) -> Account {
        let mut account = account_in_pages(&self.layer);
        let drive = account.drive.take().unwrap_or_default();
        let mut nand = account.below.pop().unwrap_or_default();
        let in_blocks = |pages: &Tally| in_blocks(pages, drive.page_bytes);
        if let Some(station) = self.medium {
            account = Account { station, sent: in_blocks(&nand.sent), flash: nand.flash, ..account };
        } else {
            let read_blocks = nand.read_blocks * drive.page_bytes / BLOCK_BYTES;
            nand = Account { received: in_blocks(&nand.received), sent: in_blocks(&nand.sent), read_blocks, ..nand };
            account = Account { sent: in_blocks(&account.sent), below: vec![nand], ..account };
        }
        Account { received: self.received.clone(), read_blocks: self.read_blocks, ..account }
    }
}

/// What a layer that is all of a path, and its flash, have counted since they were new, in the flash's pages.
pub fn account_in_pages<T: Translation>(layer: &T) -> Account {
    let Flash { geometry, counts, erase_counts, endurance, programmed_pages } = layer.flash();
    let page_bytes = u64::from(geometry.page_bytes);
    let mut received = Tally::default();
    for content in Content::ALL {
        received.add(Cause::HostWrite, content, layer.sent().get(Cause::HostWrite, content));
    }
    let of_mapping = counts.read.entries().filter(|(_, content, _)| *content == Content::Mapping);
    let nand = Account {
        station: "nand",
        received: layer.sent().clone(),
        sent: counts.programmed.clone(),
        read_blocks: counts.read.total(),
        flash: Some(FlashAccount {
            page_bytes,
            pages_per_block: u64::from(geometry.pages_per_block),
            programmed_pages: counts.programmed.total(),
            read_pages: counts.read.total(),
            erased_blocks: counts.erased_blocks,
            erase_counts: erase_counts.to_vec(),
            endurance,
            raw_bytes: geometry.raw_bytes(),
        }),
        ..Account::default()
    };
    Account {
        station: layer.name(),
        received,
        sent: layer.sent().clone(),
        events: layer.events(),
        drive: Some(DriveAccount {
            page_bytes,
            mapping_reads: of_mapping.map(|(.., count)| count).sum(),
            effective_overprovisioning: layer.effective_overprovisioning(),
            mapping_ram_bytes: layer.mapping_ram_bytes(),
            erased_unprogrammed: counts.erased_unprogrammed,
            programmed_now: programmed_pages.iter().map(|&pages| u64::from(pages)).sum(),
        }),
        below: vec![nand],
        ..Account::default()
    }
}

/// A tally of pages as one of blocks; what is less than a block is left out, which only pages of 2 KiB can cause.
fn in_blocks(pages: &Tally, page_bytes: u64) -> Tally {
    let mut blocks = Tally::default();
    for (cause, content, count) in pages.entries() {
        blocks.add(cause, content, count * page_bytes / BLOCK_BYTES);
    }
    blocks
}
