//! The shape of a NAND drive, and the addresses within it.

/// A page of the drive's user, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalPage(pub u32);

/// A page of flash: the erase block in the high bits, the page within it in the low [`Geometry::page_bits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalPage(pub u32);

/// What is erased at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EraseBlock(pub u32);

impl EraseBlock {
    /// The place of this block's values in an array with one entry per block.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The shape of a drive.
///
/// Blocks are dealt to the planes in turn: block 0 to channel 0, block 1 to channel 1, and so on through the channels,
/// then the dies, then the planes, so that neighbours never share a channel if there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a page, without its spare area; a power of two.
    pub page_bytes: u32,
    /// Pages of an erase block, programmed in order.
    pub pages_per_block: u32,
    /// Erase blocks of the whole drive.
    pub blocks: u32,
    /// Buses.
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes in each die.
    pub planes: u32,
    page_bits: u32,
}

impl Geometry {
    /// The most address bits a physical page may have; one value stays free to mean "nowhere".
    const ADDRESS_BITS: u32 = 32;
    /// Logical page numbers share 32 bits with the two bits of the content label in the spare area.
    pub const MAX_LOGICAL_PAGES: u64 = 1 << 30;

    /// A drive of `size_bytes`, rounded down to whole blocks, which may be none: how many a drive needs, its translation
    /// layer knows. Errors say which bound is broken and what would do.
    pub fn new(
        size_bytes: u64,
        page_bytes: u32,
        pages_per_block: u32,
        (channels, dies, planes): (u32, u32, u32),
    ) -> Result<Geometry, String> {
        assert!(page_bytes.is_power_of_two() && pages_per_block > 0 && channels * dies * planes > 0);
        let page_bits = pages_per_block.next_power_of_two().trailing_zeros();
        let block_bytes = u64::from(page_bytes) * u64::from(pages_per_block);
        let blocks = size_bytes / block_bytes;
        let most = 1u64 << (Self::ADDRESS_BITS - page_bits);
        // A logical page must fit 30 bits, and the spare space is not worth an exact bound here.
        let most = most.min(Self::MAX_LOGICAL_PAGES / u64::from(pages_per_block)) - 1;
        if blocks > most {
            return Err(format!(
                "a drive has at most {most} blocks of this shape ({}): take larger pages",
                crate::units::human_size((most * block_bytes) as f64)
            ));
        }
        Ok(Geometry { page_bytes, pages_per_block, blocks: blocks as u32, channels, dies, planes, page_bits })
    }

    /// Planes of the whole drive: how many operations it can do at once.
    pub fn units(&self) -> u32 {
        self.channels * self.dies * self.planes
    }

    /// The plane of a block, from 0 to [`Geometry::units`].
    #[inline]
    pub fn unit_of(&self, block: EraseBlock) -> u32 {
        block.0 % self.units()
    }

    /// The channel of a plane.
    #[inline]
    pub fn channel_of(&self, unit: u32) -> u32 {
        unit % self.channels
    }

    /// Pages of the whole drive.
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.pages_per_block)
    }

    /// Bytes of the whole drive.
    pub fn raw_bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// Low bits of a [`PhysicalPage`] that count pages within a block.
    #[inline]
    pub fn page_bits(&self) -> u32 {
        self.page_bits
    }

    /// The number of [`PhysicalPage`] values, used or not: the length of an array with one entry per page. It is larger
    /// than [`Geometry::pages`] where a block's pages are no power of two; the entries between are never touched.
    pub fn page_slots(&self) -> usize {
        (self.blocks as usize) << self.page_bits
    }

    /// The first page of a block.
    #[inline]
    pub fn first_page(&self, block: EraseBlock) -> PhysicalPage {
        PhysicalPage(block.0 << self.page_bits)
    }

    /// The block a page is in.
    #[inline]
    pub fn block_of(&self, page: PhysicalPage) -> EraseBlock {
        EraseBlock(page.0 >> self.page_bits)
    }

    /// A page's number within its block.
    #[inline]
    pub fn page_in_block(&self, page: PhysicalPage) -> u32 {
        page.0 & ((1 << self.page_bits) - 1)
    }
}
