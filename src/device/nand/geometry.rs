//! The geometry of a NAND drive, and the addresses in it.

/// The number of a page of the exported space, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalPage(pub u32);

/// The place of a page on flash: the erase block in the high bits, the page in the block in the low
/// [`Geometry::page_bits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalPage(pub u32);

/// The unit of an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EraseBlock(pub u32);

impl EraseBlock {
    /// The index of this block in an array with one entry per block.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The geometry of a drive.
///
/// A page is the unit of the mapping, with a place and a spare area of its own. It is a page of flash or, if
/// [`Geometry::pages_per_program`] is larger than one, a part of it: flash then programs so many neighbouring pages at
/// once, and reads the one that is asked for, or several together.
///
/// Blocks are distributed over the planes in turn: block 0 on channel 0, block 1 on channel 1, and so on through the
/// channels, then the dies, then the planes, so that neighbours are on different channels if there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a page, without its spare area; a power of two.
    pub page_bytes: u32,
    /// Pages of an erase block, programmed in order.
    pub pages_per_block: u32,
    /// Pages that one program writes, those of a page of flash; a power of two.
    pub pages_per_program: u32,
    /// Erase blocks of the whole drive.
    pub blocks: u32,
    /// The number of channels (buses).
    pub channels: u32,
    /// Dies on each channel.
    pub dies: u32,
    /// Planes in each die.
    pub planes: u32,
    /// The bits of a cell, if they are known, or else 0: a block in SLC mode holds so many times fewer pages.
    pub cell_bits: u32,
    /// True if pages wait in the controller for their word line, which is programmed as a whole.
    pub waits_for_word_lines: bool,
    page_bits: u32,
}

impl Geometry {
    /// The maximum number of address bits of a physical page; one value stays free for "unmapped".
    const ADDRESS_BITS: u32 = 32;
    /// Logical page numbers share 32 bits with the two bits of the content in the spare area.
    pub const MAX_LOGICAL_PAGES: u64 = 1 << 30;

    /// A drive of `size_bytes`, rounded down to whole blocks, which may be none: the minimum depends on the translation
    /// layer. Errors name the broken bound and a valid value.
    pub fn new(
        size_bytes: u64,
        page_bytes: u32,
        pages_per_block: u32,
        planes: (u32, u32, u32),
    ) -> Result<Geometry, String> {
        Geometry::in_units(size_bytes, page_bytes, page_bytes, pages_per_block, planes)
    }

    /// The same with a mapping in units of `unit_bytes`, a power of two, of which one or several are a page of flash, of
    /// `program_bytes`. A block has `programs_per_block` of these.
    pub fn in_units(
        size_bytes: u64,
        unit_bytes: u32,
        program_bytes: u32,
        programs_per_block: u32,
        (channels, dies, planes): (u32, u32, u32),
    ) -> Result<Geometry, String> {
        assert!(unit_bytes.is_power_of_two() && programs_per_block > 0 && channels * dies * planes > 0);
        assert!(program_bytes.is_power_of_two() && unit_bytes <= program_bytes, "whole units are a page of flash");
        let pages_per_program = program_bytes / unit_bytes;
        let pages_per_block = programs_per_block * pages_per_program;
        let page_bits = pages_per_block.next_power_of_two().trailing_zeros();
        let block_bytes = u64::from(unit_bytes) * u64::from(pages_per_block);
        let blocks = size_bytes / block_bytes;
        let most = 1u64 << (Self::ADDRESS_BITS - page_bits);
        // A logical page must fit in 30 bits; the bound ignores the spare space.
        let most = most.min(Self::MAX_LOGICAL_PAGES / u64::from(pages_per_block)) - 1;
        if blocks > most {
            let what = if pages_per_program == 1 { "pages" } else { "units" };
            return Err(format!(
                "a drive has at most {most} blocks of this shape ({}): take larger {what}",
                crate::units::human_size((most * block_bytes) as f64)
            ));
        }
        Ok(Geometry {
            page_bytes: unit_bytes,
            pages_per_block,
            pages_per_program,
            blocks: blocks as u32,
            channels,
            dies,
            planes,
            cell_bits: 0,
            waits_for_word_lines: false,
            page_bits,
        })
    }

    /// The same drive with cells of so many bits. `waits_for_word_lines`: these are programmed as a whole.
    pub fn with_cells(self, bits: u32, waits_for_word_lines: bool) -> Geometry {
        assert!(
            bits > 0 && (self.pages_per_block / self.pages_per_program).is_multiple_of(bits),
            "a block has whole word lines"
        );
        Geometry { cell_bits: bits, waits_for_word_lines, ..self }
    }

    /// Pages of an erase block in SLC mode.
    ///
    /// # Panics
    ///
    /// If the bits of a cell are not known: a bug of the caller.
    pub fn slc_pages_per_block(&self) -> u32 {
        assert!(self.cell_bits > 0, "the bits of a cell are known");
        self.pages_per_block / self.cell_bits
    }

    /// Bytes of a page of flash, which is programmed at once.
    pub fn program_bytes(&self) -> u32 {
        self.page_bytes * self.pages_per_program
    }

    /// The number of a page in its page of flash, of a page in a block or of a physical page.
    #[inline]
    pub fn page_in_program(&self, page: u32) -> u32 {
        page & (self.pages_per_program - 1)
    }

    /// The number of planes of the drive: the operations that it can do in parallel.
    pub fn units(&self) -> u32 {
        self.channels * self.dies * self.planes
    }

    /// The plane of a block, less than [`Geometry::units`].
    #[inline]
    pub fn unit_of(&self, block: EraseBlock) -> u32 {
        block.0 % self.units()
    }

    /// The channel of a plane.
    #[inline]
    pub fn channel_of(&self, unit: u32) -> u32 {
        unit % self.channels
    }

    /// The number of pages of the drive.
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.pages_per_block)
    }

    /// Bytes of the whole drive.
    pub fn raw_bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// The low bits of a [`PhysicalPage`] that number the pages in a block.
    #[inline]
    pub fn page_bits(&self) -> u32 {
        self.page_bits
    }

    /// The number of [`PhysicalPage`] values, used or not: the length of an array with one entry per page. It exceeds
    /// [`Geometry::pages`] if the pages of a block are not a power of two; the entries between are unused.
    pub fn page_slots(&self) -> usize {
        (self.blocks as usize) << self.page_bits
    }

    /// The first page of a block.
    #[inline]
    pub fn first_page(&self, block: EraseBlock) -> PhysicalPage {
        PhysicalPage(block.0 << self.page_bits)
    }

    /// The block of a page.
    #[inline]
    pub fn block_of(&self, page: PhysicalPage) -> EraseBlock {
        EraseBlock(page.0 >> self.page_bits)
    }

    /// The number of a page in its block.
    #[inline]
    pub fn page_in_block(&self, page: PhysicalPage) -> u32 {
        page.0 & ((1 << self.page_bits) - 1)
    }
}
