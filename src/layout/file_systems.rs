//! All file systems of a device: one on the whole device, or one in each partition.

use super::bytes::{Device, ReadAt};
use super::{Layout, LayoutError, Region, Regions, partitions};
use crate::label::Content;
use std::io;
use std::ops::Range;

/// The file systems of a device and their byte ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSystems {
    found: Vec<(Range<u64>, Layout)>,
    /// The regions of all file systems, by byte of the device.
    regions: Regions,
}

impl FileSystems {
    /// Reads the layouts of all file systems on a device of `size_bytes`. Space between partitions, and a partition
    /// with an unknown or damaged file system, has no layout.
    ///
    /// The result depends on nothing but the bytes that were read. Fails only if a read fails.
    pub fn read(source: &mut dyn ReadAt, size_bytes: u64) -> Result<FileSystems, LayoutError> {
        let mut places = partitions::read(&mut Device::new(source, size_bytes))?;
        if places.is_empty() {
            places.push(0..size_bytes);
        }
        let mut found = Vec::new();
        for place in places {
            let mut within =
                |offset: u64, buffer: &mut [u8]| -> io::Result<()> { source.read_at(place.start + offset, buffer) };
            match Layout::read(&mut within, place.end - place.start) {
                Ok(layout) => found.push((place, layout)),
                Err(error) if is_damage(&error, place.end - place.start) => {}
                Err(error) => return Err(error),
            }
        }
        let regions = found.iter().flat_map(|(place, layout)| {
            let start = place.start;
            layout.regions.iter().map(move |(range, region)| (start + range.start..start + range.end, region))
        });
        Ok(FileSystems { regions: Regions::new(regions), found })
    }

    /// The file systems and their byte ranges on the device.
    pub fn iter(&self) -> impl Iterator<Item = &(Range<u64>, Layout)> {
        self.found.iter()
    }

    /// The byte ranges of all journals, in order.
    pub fn journals(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.regions.of(Region::Journal)
    }

    /// The content of `block`, written to `offset_bytes`: by its region or, outside all regions, by its bytes.
    pub fn content_of(&self, offset_bytes: u64, block: &[u8]) -> Content {
        match self.regions.at(offset_bytes) {
            Some(Region::Journal) => Content::Journal,
            Some(Region::Metadata) => Content::Metadata,
            Some(Region::Data) => Content::Data,
            None => {
                let owner = self.found.iter().find(|(place, _)| place.contains(&offset_bytes));
                let is_metadata = owner.is_some_and(|(_, layout)| layout.reads_as_metadata(block));
                if is_metadata { Content::Metadata } else { Content::Data }
            }
        }
    }
}

/// True if the file system is at fault and not its device. A structure that points beyond the end of `size_bytes` is
/// damaged, too.
fn is_damage(error: &LayoutError, size_bytes: u64) -> bool {
    match error {
        LayoutError::Unknown | LayoutError::Damaged { .. } => true,
        LayoutError::Read { offset, length, .. } => {
            offset.checked_add(*length as u64).is_none_or(|end| end > size_bytes)
        }
    }
}
