//! NAND flash: pages are programmed once and in order, blocks are erased whole and wear out.
//!
//! Fault model: programming a page out of order or twice, and reading a page that was never programmed, is a bug of the
//! layer above and is rejected ([`NandError`]). A block is worn out after `endurance` erases: the erase that reaches
//! the limit reports it, and later ones are rejected. Nothing else fails here unless it is asked to ([`errors`]); power cuts
//! are added by wrappers.
//!
//! A page here is the unit of the mapping; one or several are a page of flash ([`Geometry::pages_per_program`]), which is
//! programmed when all of them are there. The counts are in pages, but for [`NandCounts::programs`].
//!
//! The bytes of a page are not stored. Its [`Spare`] area is, and, on request, the data that only a reader of the flash
//! needs: a stamp that stands for the bytes, and the [sequence number](Found::sequence) that orders versions for a
//! layer that has lost its RAM.

mod calendar;
mod cells;
mod die_commands;
mod energy;
pub mod errors;
mod geometry;
mod modes;
mod operations;
mod preset;
mod reserved_commands;
mod reserving;
mod scheduled;
mod settings;
mod spare;
mod suspension;
mod timing;
mod word_lines;

pub use cells::{Cells, PageKind, PageTimes, WordLinePrograms, cell_name};
pub use die_commands::{DieCommands, PlaneCommands};
pub use energy::EnergySettings;
pub use geometry::{EraseBlock, Geometry, LogicalPage, PhysicalPage};
pub use modes::ModesView;
pub use preset::Preset;
pub use reserving::Reserving;
pub use scheduled::{Moment, Scheduled};
pub use settings::{KIND, NandSettings, PageBytes};
pub use spare::{Spare, SpareWord};
pub use suspension::Suspension;
pub use timing::{CommandTimes, Latencies, Telling, Timing, Untimed};

use super::EnergyAccount;
use super::wait_log::Purpose;
use crate::label::{Cause, Content, Label, Provenance, Tally};
use crate::time::Time;
use energy::OperationCounts;
use errors::{Age, ErrorCounts, ErrorSettings, Errors, Reading};
use modes::Modes;
use operations::{LastRead, Operations};
use spare::{Classes, CopiedPages, SpareAreas};

/// An operation that flash rejects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NandError {
    /// The pages of a block are programmed in ascending order, once between erases.
    #[error(
        "page {page} of block {block} was programmed when page {expected} was next: flash is programmed in order, once"
    )]
    OutOfOrderProgram {
        /// The erase block.
        block: u32,
        /// The page in the block that was requested.
        page: u32,
        /// The next page to program; the number of pages if the block is full.
        expected: u32,
    },
    /// The page was not programmed since the last erase.
    #[error("page {page} of block {block} was read, but only {programmed} pages are programmed there")]
    ReadOfErasedPage {
        /// The erase block.
        block: u32,
        /// The page in the block.
        page: u32,
        /// The number of its programmed pages.
        programmed: u32,
    },
    /// The block has reached its endurance.
    #[error("block {block} is worn out: it has been erased {erases} times")]
    WornOut {
        /// The erase block.
        block: u32,
        /// Its erase count.
        erases: u32,
    },
    /// No step of the correction helps: what the page held is lost.
    #[error("page {page} of block {block} has more wrong bits than can be corrected, after {retries} retries")]
    Uncorrectable {
        /// The erase block.
        block: u32,
        /// The page in the block.
        page: u32,
        /// The retries that were made.
        retries: u32,
    },
}

/// The state of a block after an erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erased {
    /// The block can be programmed again.
    Usable,
    /// The block has reached its endurance and must be retired.
    WornOut,
    /// The erase has failed: the block is bad and must be retired.
    Failed,
}

/// Counts of operations since the flash was new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NandCounts {
    /// Pages programmed.
    pub programmed: Tally,
    /// Programs of pages of flash, each of [`Geometry::pages_per_program`] pages.
    pub programs: u64,
    /// Pages whose page of flash was not programmed before a cut of power, and that were lost with the controller's RAM.
    pub lost: u64,
    /// Pages read.
    pub read: Tally,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Pages of those blocks that were not programmed.
    pub erased_unprogrammed: u64,
}

/// Copies that are not in the counts yet: a layer counts those of a victim at once.
struct Uncounted {
    cause: Cause,
    copies: Classes,
}

impl Uncounted {
    fn add_to(&self, counts: &mut NandCounts) {
        self.copies.each(|provenance, pages| {
            let label = Label::again(self.cause, provenance);
            counts.read.add(label, pages);
            counts.programmed.add(label, pages);
        });
    }
}

/// The copies of one call. Dropped, they are done: also if a timing model cuts the flash's power.
struct Copies<'a> {
    spare: &'a mut SpareAreas,
    /// The next page of the block that takes the copies.
    next_page: &'a mut u32,
    copied: CopiedPages,
    uncounted: &'a mut Classes,
}

impl Drop for Copies<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.next_page += self.copied.pages();
        self.copied.count(|page| self.spare.get(page), self.uncounted);
    }
}

/// A stored version of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    sequence: u64,
    stamp: u32,
    copies: u32,
}

/// What flash keeps beyond spare areas, on request: a version of each page, and errors.
struct Kept {
    /// Empty without versions.
    versions: Vec<Version>,
    /// The last sequence number.
    sequence: u64,
    errors: Option<Box<Errors>>,
}

impl Kept {
    fn new(pages: usize) -> Kept {
        let versions = vec![Version { sequence: 0, stamp: 0, copies: 0 }; pages];
        Kept { versions, sequence: 0, errors: None }
    }

    #[inline]
    fn program(&mut self, page: PhysicalPage, stamp: u32, (block, within): (EraseBlock, u32), now: Time) {
        self.sequence += 1;
        if let Some(version) = self.versions.get_mut(page.0 as usize) {
            *version = Version { sequence: self.sequence, stamp, copies: 0 };
        }
        if let Some(errors) = &mut self.errors {
            errors.program(block, within, now);
        }
    }

    /// The stamp of a page, 0 without versions.
    #[inline]
    fn stamp(&self, page: PhysicalPage) -> u32 {
        self.versions.get(page.0 as usize).map_or(0, |version| version.stamp)
    }

    /// Copies a page of a block that was erased so many times to `to`, the page with that number in its block. Returns the
    /// retries of its read.
    #[inline]
    fn copy(
        &mut self,
        (from, erases): (PhysicalPage, u32),
        (to, target, within): (PhysicalPage, EraseBlock, u32),
        cause: Cause,
        now: Time,
    ) -> u32 {
        if !self.versions.is_empty() {
            let version = self.versions[from.0 as usize];
            self.versions[to.0 as usize] = Version { copies: version.copies + 1, ..version };
        }
        let Some(errors) = &mut self.errors else { return 0 };
        let reading = errors.read(from, erases, cause, now);
        errors.program(target, within, now);
        errors.copy_to(to, reading);
        reading.retries
    }
}

/// A page found in a scan of the flash after the loss of RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The page.
    pub page: PhysicalPage,
    /// Its spare area.
    pub spare: Spare,
    /// Its age. First: a number that grows with each program; a copy keeps the number of its source. Second: the number
    /// of copies. A layer would write both to the spare area; the flash keeps them for all layers.
    pub sequence: (u64, u32),
}

/// A drive's flash.
pub struct Nand<T: Timing> {
    geometry: Geometry,
    spare: SpareAreas,
    kept: Option<Kept>,
    /// The next page to program in each block.
    next_page: Vec<u32>,
    erase_counts: Vec<u32>,
    endurance: u32,
    /// The modes of blocks, if cells have several bits.
    modes: Option<Box<Modes>>,
    counts: NandCounts,
    uncounted: Uncounted,
    /// A number of the layer's in the spare areas of each block's pages; empty if it has none.
    marks: Vec<u16>,
    /// Pages that were erased, or lost, before their page of flash was programmed.
    never_programmed: u64,
    operations: Operations<T>,
    /// The end of the last read of a host that could not be corrected.
    failed_read: Option<T::Moment>,
    /// The powers of operations, if energy is asked for.
    energy: Option<Box<EnergySettings>>,
}

impl<T: Timing> Nand<T> {
    /// New, erased flash. `versions` keeps a stamp and a sequence number for each page; without them reads return 0,
    /// and [`Nand::found`] finds nothing.
    pub fn new(geometry: Geometry, endurance: u32, versions: bool, timing: T) -> Nand<T> {
        let blocks = geometry.blocks as usize;
        assert!(blocks > 0 && endurance > 0, "flash has blocks, and each can be erased");
        Nand {
            geometry,
            spare: SpareAreas::new(geometry.page_slots()),
            kept: versions.then(|| Kept::new(geometry.page_slots())),
            next_page: vec![0; blocks],
            erase_counts: vec![0; blocks],
            endurance,
            modes: None,
            counts: NandCounts::default(),
            uncounted: Uncounted { cause: Cause::GarbageCollection, copies: Classes::default() },
            marks: Vec::new(),
            never_programmed: 0,
            operations: Operations::new(&geometry, timing),
            failed_read: None,
            energy: None,
        }
    }

    /// The same new flash with errors, drawn by `seed`, and of this age.
    pub fn with_errors(mut self, settings: &ErrorSettings, age: Option<&Age>, seed: u64) -> Nand<T> {
        assert_eq!(self.counts.programmed.total() + self.counts.erased_blocks, 0, "errors begin with new flash");
        let worn = age.map_or(0, |age| (age.cycles * f64::from(self.endurance)) as u32).min(self.endurance - 1);
        let errors = Errors::new(settings, &self.geometry, (self.endurance, worn), seed);
        self.kept.get_or_insert_with(|| Kept::new(0)).errors = Some(Box::new(errors));
        self
    }

    fn errors(&self) -> Option<&Errors> {
        self.kept.as_ref()?.errors.as_deref()
    }

    fn errors_mut(&mut self) -> Option<&mut Errors> {
        self.kept.as_mut()?.errors.as_deref_mut()
    }

    /// True if it has errors.
    pub fn has_errors(&self) -> bool {
        self.errors().is_some()
    }

    /// The counts of errors, if it has errors.
    pub fn error_counts(&self) -> Option<ErrorCounts> {
        self.errors().map(Errors::counts)
    }

    /// Erases of each block before the flash was made.
    pub fn worn(&self) -> u32 {
        self.errors().map_or(0, Errors::worn)
    }

    /// True if a block is out of use: it is bad, or has reached its endurance.
    pub fn is_out_of_use(&self, block: EraseBlock) -> bool {
        self.is_bad(block) || self.is_worn_out(block)
    }

    /// True if a program or an erase of a block has failed. What it holds can still be read.
    pub fn is_bad(&self, block: EraseBlock) -> bool {
        self.errors().is_some_and(|errors| errors.is_bad(block))
    }

    /// The pages of a block that can be programmed until its next erase: the program behind them fails.
    pub fn usable_pages(&self, block: EraseBlock) -> u32 {
        let pages = self.pages_of(block);
        self.errors().map_or(pages, |errors| errors.usable_pages(block).min(pages))
    }

    /// The program behind the usable pages of a block fails: the block is bad from now on. Counted apart from programs.
    pub fn fail_program(&mut self, block: EraseBlock) {
        self.errors_mut().expect("flash without errors fails no program").fail_program(block);
    }

    /// The time that the failed program of a bad block takes. Returns its end.
    pub fn pass_failed_program(&mut self, block: EraseBlock, at: T::Moment) -> T::Moment {
        self.operations.timing().program(block, Purpose::Host, at)
    }

    /// The next block that the layer should write anew, and why. A layer that cannot do it now leaves it.
    pub fn next_due(&mut self) -> Option<(EraseBlock, Cause)> {
        self.errors_mut()?.next_due()
    }

    /// The time in which all valid pages are to be read in the background, in nanoseconds, if they are.
    pub fn scrub_ns(&self) -> Option<u64> {
        self.errors()?.scrub_ns()
    }

    /// The end of the last read of a host that could not be corrected.
    pub fn failed_read(&self) -> Option<T::Moment> {
        self.failed_read
    }

    /// An instant near `moment`: [`Timing::about`].
    pub fn about(&mut self, moment: T::Moment) -> Time {
        self.operations.timing().about(moment)
    }

    /// The drive lies without power for so long. Only errors are changed by it.
    pub fn rest(&mut self, rest_ns: u64) {
        if let Some(errors) = self.errors_mut() {
            errors.rest(rest_ns);
        }
    }

    /// The same flash, erased and new, with these cells, if they are known.
    pub fn with_cells(self, cells: Option<&Cells>) -> Nand<T> {
        let Some(cells) = cells else { return self };
        assert_eq!(self.geometry.cell_bits, cells.bits, "the geometry is that of the cells");
        let modes = Modes::new(cells.bits, self.next_page.len(), cells.slc_endurance);
        let operations = self.operations.with_cells(cells, &self.geometry);
        Nand { modes: Some(Box::new(modes)), operations, ..self }
    }

    /// The same flash with these powers of operations, if they are known.
    pub fn with_energy(self, energy: Option<&EnergySettings>) -> Nand<T> {
        Nand { energy: energy.cloned().map(Box::new), ..self }
    }

    /// The energy of the operations since the flash was new; `None` if it is not asked for.
    pub fn energy(&self) -> Option<EnergyAccount> {
        let energy = self.energy.as_ref()?;
        Some(energy.account(&self.geometry, &self.operation_counts(), self.counts.erased_blocks))
    }

    /// The operations by kind: counted, where a page of flash has several pages or a kind, and otherwise those of the pages.
    fn operation_counts(&self) -> OperationCounts {
        let counts = self.counts();
        let errors = self.error_counts().unwrap_or_default();
        let mut operations = self.operations.counts().unwrap_or_else(|| {
            let reads = counts.read.total() + errors.retries;
            let mut all = OperationCounts { units_read: reads, ..OperationCounts::default() };
            all.reads[PageKind::ALIKE.index()] = reads;
            all
        });
        if self.modes.is_none() {
            operations.programs[PageKind::ALIKE.index()] = counts.programs + errors.program_failures;
        }
        operations
    }

    /// The first `blocks` blocks are in SLC mode from now on. They are erased, or have been in this mode before.
    pub fn fix_slc(&mut self, blocks: u32) {
        let modes = self.modes.as_mut().expect("cells of several bits");
        modes.fix(blocks);
        (0..blocks).for_each(|block| self.operations.set_slc(EraseBlock(block), true));
    }

    /// Sets the mode of an erased block.
    pub fn set_slc(&mut self, block: EraseBlock, is_slc: bool) {
        assert_eq!(self.next_page[block.index()], 0, "block {} changes its mode when it is erased", block.0);
        let modes = self.modes.as_mut().expect("cells of several bits");
        modes.set_slc(block, is_slc);
        self.operations.set_slc(block, is_slc);
    }

    /// True if a block is in SLC mode.
    pub fn is_slc(&self, block: EraseBlock) -> bool {
        self.modes.as_ref().is_some_and(|modes| modes.is_slc(block))
    }

    /// The modes of blocks, if cells have several bits.
    pub fn modes(&self) -> Option<ModesView<'_>> {
        self.modes.as_ref().map(|modes| modes.view())
    }

    /// The erases of a block, with those before the flash was made.
    fn erases(&self, block: EraseBlock) -> u32 {
        self.erase_counts[block.index()] + self.worn()
    }

    /// True if a block has reached its endurance.
    pub fn is_worn_out(&self, block: EraseBlock) -> bool {
        let erases = self.erases(block);
        match &self.modes {
            None => erases >= self.endurance,
            Some(modes) => modes.is_worn_out(block, erases, self.endurance),
        }
    }

    /// The pages of a block in its mode.
    pub fn pages_of(&self, block: EraseBlock) -> u32 {
        let pages = self.geometry.pages_per_block;
        self.modes.as_ref().map_or(pages, |modes| modes.pages_of(block, pages))
    }

    /// The timing model.
    #[inline]
    pub fn timing(&mut self) -> &mut T {
        self.operations.timing()
    }

    /// The counts of the timing model, by the names of results: suspensions, and operations that joined a command.
    pub fn timing_events(&self) -> Vec<(&'static str, u64)> {
        self.operations.events()
    }

    /// The geometry.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Counts since the flash was new.
    pub fn counts(&self) -> NandCounts {
        let mut counts = self.counts.clone();
        self.uncounted.add_to(&mut counts);
        let complete = counts.programmed.total() - self.never_programmed - self.waiting();
        debug_assert!(complete.is_multiple_of(self.geometry.pages_per_program.into()), "pages of flash are whole");
        counts.programs = complete / u64::from(self.geometry.pages_per_program);
        counts
    }

    /// The pages programmed since it was new, by label.
    pub fn programmed(&self) -> Tally {
        let mut programmed = self.counts.programmed.clone();
        self.uncounted.copies.each(|provenance, pages| {
            programmed.add(Label::again(self.uncounted.cause, provenance), pages);
        });
        programmed
    }

    /// The pages whose pages of flash are not complete.
    fn waiting(&self) -> u64 {
        match self.geometry.pages_per_program {
            1 => 0,
            _ => self.next_page.iter().map(|&next| u64::from(self.geometry.page_in_program(next))).sum(),
        }
    }

    /// The number of erases of each block.
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// The maximum number of erases of a block.
    pub fn endurance(&self) -> u32 {
        self.endurance
    }

    /// The number of programmed pages of each block.
    pub fn programmed_pages(&self) -> &[u32] {
        &self.next_page
    }

    /// The logical page in the spare area of `page` as the simulator stores it, in any state: a hint for prefetching,
    /// not a read.
    #[inline]
    pub fn peek_logical_page(&self, page: PhysicalPage) -> LogicalPage {
        self.peek_spare(page).logical_page()
    }

    /// The spare area of `page` as the simulator stores it, in any state: not a read.
    #[inline]
    pub fn peek_spare(&self, page: PhysicalPage) -> Spare {
        self.spare.get(page)
    }

    /// The words of the spare areas of a block as the simulator stores them, in any state: not a read.
    #[inline]
    pub fn peek_words(&self, block: EraseBlock) -> &[SpareWord] {
        let first = self.geometry.first_page(block);
        self.spare.words(first..PhysicalPage(first.0 + self.geometry.pages_per_block))
    }

    /// Prefetches the spare areas of a block into the processor's cache. Changes nothing.
    pub fn prefetch_spare_areas(&self, block: EraseBlock) {
        self.spare.prefetch(self.geometry.first_page(block), self.geometry.pages_per_block);
    }

    /// The spare areas of the pages that are programmed in `block`, which is erased, have this number of the layer's.
    pub fn mark(&mut self, block: EraseBlock, mark: u16) {
        assert_eq!(self.next_page[block.index()], 0, "block {} has pages with another mark", block.0);
        self.marks.resize(self.geometry.blocks as usize, 0);
        self.marks[block.index()] = mark;
    }

    /// The layer's number in the spare areas of `block`, of which a page is programmed; 0 if it has given none.
    pub fn mark_of(&self, block: EraseBlock) -> u16 {
        assert!(self.next_page[block.index()] > 0, "block {} has no page that says it", block.0);
        self.marks.get(block.index()).copied().unwrap_or(0)
    }

    /// Programs `page` with a logical page; returns the completion time.
    ///
    /// Always inlined: most callers know much of the provenance, and a call costs a tenth of a host write.
    #[inline(always)]
    pub fn program(
        &mut self,
        page: PhysicalPage,
        (logical, provenance): (LogicalPage, Provenance),
        stamp: u32,
        cause: Cause,
        at: T::Moment,
    ) -> Result<T::Moment, NandError> {
        self.program_spare(page, (Spare::new(logical, provenance), provenance), stamp, cause, at)
    }

    /// The next place to program in `block`, if pages are missing there for the program of a page of flash.
    #[inline]
    pub fn open_place(&self, block: EraseBlock) -> Option<PhysicalPage> {
        let next = self.next_page[block.index()];
        (self.geometry.page_in_program(next) != 0).then(|| PhysicalPage(self.geometry.first_page(block).0 + next))
    }

    /// What the controller knows of errors beside the flash is lost with its RAM.
    pub fn lose_due_blocks(&mut self) {
        if let Some(errors) = self.errors_mut() {
            errors.lose_ram();
        }
    }

    /// The pages of flash that wait for more pages are lost with the controller's RAM.
    pub fn lose_open_pages(&mut self) {
        for next in &mut self.next_page {
            let waiting = self.geometry.page_in_program(*next);
            *next -= waiting;
            self.counts.lost += u64::from(waiting);
            self.never_programmed += u64::from(waiting);
        }
        self.operations.lose_open();
    }

    /// Programs `page` with nothing, so that its page of flash is complete.
    pub fn program_padding(&mut self, page: PhysicalPage, at: T::Moment) -> Result<T::Moment, NandError> {
        self.program_spare(page, (Spare::filler(), Spare::OF_PADDING), 0, Cause::Padding, at)
    }

    /// Programs `page` with nothing, as the next page is needed and flash is programmed in order.
    pub fn program_filler(&mut self, page: PhysicalPage, cause: Cause, at: T::Moment) -> Result<T::Moment, NandError> {
        self.program_spare(page, (Spare::filler(), Spare::OF_FILLER), 0, cause, at)
    }

    #[inline(always)]
    fn program_spare(
        &mut self,
        page: PhysicalPage,
        (spare, provenance): (Spare, Provenance),
        stamp: u32,
        cause: Cause,
        at: T::Moment,
    ) -> Result<T::Moment, NandError> {
        debug_assert!(
            spare.provenance() == provenance || spare.is_filler(),
            "the spare area of page {} says what is counted",
            page.0
        );
        let block = self.geometry.block_of(page);
        let within = self.geometry.page_in_block(page);
        let next = &mut self.next_page[block.index()];
        if *next != within || within >= self.geometry.pages_per_block {
            return Err(NandError::OutOfOrderProgram { block: block.0, page: within, expected: *next });
        }
        *next = within + 1;
        self.spare.set(page, spare);
        if let Some(kept) = &mut self.kept {
            let now = self.operations.timing().about(at);
            kept.program(page, stamp, (block, within), now);
        }
        self.counts.programmed.add(Label::again(cause, provenance), 1);
        Ok(self.operations.program(block, within, Purpose::of(Label::again(cause, provenance)), at))
    }

    /// Reads `page`; returns its spare area, its stamp (0 without versions), and the completion time.
    #[inline]
    pub fn read(
        &mut self,
        page: PhysicalPage,
        cause: Cause,
        at: T::Moment,
    ) -> Result<(Spare, u32, T::Moment), NandError> {
        self.read_by(page, cause, |operations, block, place| {
            operations.read(block, place, Purpose::of_cause(cause), at)
        })
    }

    /// Reads `page` for the host, together with its neighbours in a page of flash that are read before or after it.
    /// Returns the same, with the completion time of reads that are whole; [`Nand::end_reads`] follows the last page of a
    /// request.
    #[inline]
    pub fn read_joined(&mut self, page: PhysicalPage, at: T::Moment) -> Result<(Spare, u32, T::Moment), NandError> {
        self.read_by(page, Cause::HostWrite, |operations, block, (within, programmed)| {
            operations.read_joined(page, (block, within, programmed), Purpose::Host, at)
        })
    }

    #[inline]
    fn read_by(
        &mut self,
        page: PhysicalPage,
        cause: Cause,
        place: impl FnOnce(&mut Operations<T>, EraseBlock, (u32, u32)) -> T::Moment,
    ) -> Result<(Spare, u32, T::Moment), NandError> {
        let block = self.geometry.block_of(page);
        let within = self.geometry.page_in_block(page);
        let programmed = self.next_page[block.index()];
        if within >= programmed {
            return Err(NandError::ReadOfErasedPage { block: block.0, page: within, programmed });
        }
        let spare = self.spare.get(page);
        self.counts.read.add(Label::again(cause, spare.provenance()), 1);
        let done = place(&mut self.operations, block, (within, programmed));
        let Some(kept) = &self.kept else { return Ok((spare, 0, done)) };
        let stamp = kept.stamp(page);
        if kept.errors.is_none() {
            return Ok((spare, stamp, done));
        }
        let is_on_flash = !self.operations.is_gathered(block, within, programmed);
        Ok((spare, stamp, self.correct(page, is_on_flash, cause, done)?))
    }

    /// Corrects a page that was read until `done`, of flash or, if it is not there yet, of the controller. Returns the end of
    /// its retries.
    #[cold]
    #[inline(never)]
    fn correct(
        &mut self,
        page: PhysicalPage,
        is_on_flash: bool,
        cause: Cause,
        done: T::Moment,
    ) -> Result<T::Moment, NandError> {
        let block = self.geometry.block_of(page);
        let (erases, now) = (self.erase_counts[block.index()], self.about(done));
        let errors = self.errors_mut().expect("flash without errors corrects nothing");
        let Reading { retries, is_corrected } = match is_on_flash {
            true => errors.read(page, erases, cause, now),
            false => errors.read_from_controller(page, cause),
        };
        let within = self.geometry.page_in_block(page);
        let done = self.operations.retry((block, within), retries, Purpose::of_cause(cause), done);
        if is_corrected {
            return Ok(done);
        }
        if cause == Cause::HostWrite {
            self.failed_read = Some(done);
        }
        Err(NandError::Uncorrectable { block: block.0, page: within, retries })
    }

    /// Issues the read that [`Nand::read_joined`] has left, if there is one. Returns its end, or else `at`.
    #[inline]
    pub fn end_reads(&mut self, at: T::Moment) -> T::Moment {
        self.operations.end_reads(at)
    }

    /// Reads the spare area of `page` for a map lookup; returns the completion time. It takes as long as a page, and
    /// counts as a read of mapping.
    #[inline]
    pub fn read_spare(&mut self, page: PhysicalPage, at: T::Moment) -> Result<T::Moment, NandError> {
        let block = self.geometry.block_of(page);
        let within = self.geometry.page_in_block(page);
        let programmed = self.next_page[block.index()];
        if within >= programmed {
            return Err(NandError::ReadOfErasedPage { block: block.0, page: within, programmed });
        }
        self.counts.read.add(Label::first(Cause::Mapping, Content::Mapping), 1);
        Ok(self.operations.read(block, (within, programmed), Purpose::Mapping, at))
    }

    /// The programmed pages of `block`, in order, for a layer that has lost its RAM. Neither timed nor counted: it
    /// happens before the drive serves. Empty unless the flash keeps versions.
    pub fn found(&self, block: EraseBlock) -> impl Iterator<Item = Found> + '_ {
        let first = self.geometry.first_page(block).0;
        let versions = self.kept.as_ref().map_or(&[][..], |kept| &kept.versions);
        let programmed = if versions.is_empty() { 0 } else { self.next_page[block.index()] };
        (first..first + programmed).map(move |page| Found {
            page: PhysicalPage(page),
            spare: self.spare.get(PhysicalPage(page)),
            sequence: (versions[page as usize].sequence, versions[page as usize].copies),
        })
    }

    /// Copies pages of one block: those of the bits set in `pages`, counted from `from`, in order, to consecutive pages
    /// from `to` on. Each is read and programmed as by [`Nand::read`] and [`Nand::program`]; `moved` gets the logical
    /// page and the destination of each. Returns the completion time of the last. One call for all saves repeated
    /// checks; [`Nand::count_copies`] follows the last call for a victim.
    #[inline]
    pub fn copy(
        &mut self,
        (from, pages): (PhysicalPage, u64),
        to: PhysicalPage,
        cause: Cause,
        at: T::Moment,
        moved: impl FnMut(LogicalPage, PhysicalPage),
    ) -> Result<T::Moment, NandError> {
        self.check_copy((from, pages), to, cause)?;
        // Most drives need neither, and two checks a page cost a tenth of a copy.
        Ok(if self.kept.is_none() && self.spare.all_origins_follow() {
            self.copy_checked::<true>((from, pages), to, cause, at, moved)
        } else {
            self.copy_checked::<false>((from, pages), to, cause, at, moved)
        })
    }

    /// Checks the places of a copy, and counts what was copied for another cause before.
    #[inline]
    fn check_copy(
        &mut self,
        (from, pages): (PhysicalPage, u64),
        to: PhysicalPage,
        cause: Cause,
    ) -> Result<(), NandError> {
        self.check_source((from, pages), cause)?;
        let target = self.geometry.block_of(to);
        debug_assert_ne!(self.geometry.block_of(from), target, "a block that is collected takes no copies");
        let within = self.geometry.page_in_block(to);
        let next = self.next_page[target.index()];
        if next != within || within + pages.count_ones() > self.geometry.pages_per_block {
            return Err(NandError::OutOfOrderProgram { block: target.0, page: within, expected: next });
        }
        Ok(())
    }

    /// Checks the pages that are copied, and counts what was copied for another cause before.
    #[inline]
    fn check_source(&mut self, (from, pages): (PhysicalPage, u64), cause: Cause) -> Result<(), NandError> {
        debug_assert!(pages != 0, "a copy has at least one page");
        let last = self.geometry.page_in_block(from) + pages.checked_ilog2().unwrap_or(0);
        self.check_programmed(self.geometry.block_of(from), last + 1, cause)
    }

    /// Checks that a block whose pages are copied has so many, and counts what was copied for another cause before.
    #[inline]
    fn check_programmed(&mut self, source: EraseBlock, pages: u32, cause: Cause) -> Result<(), NandError> {
        let programmed = self.next_page[source.index()];
        if pages > programmed {
            return Err(NandError::ReadOfErasedPage { block: source.0, page: pages - 1, programmed });
        }
        if self.uncounted.cause != cause {
            self.count_uncounted();
            self.uncounted.cause = cause;
        }
        Ok(())
    }

    /// [`Nand::copy`] to places of several blocks, which `take` returns one by one. Ends early when it returns none.
    /// Returns the bits of the pages that are left, and the completion time of the last copy.
    #[inline]
    pub fn copy_scattered(
        &mut self,
        (from, pages): (PhysicalPage, u64),
        take: impl FnMut() -> Option<PhysicalPage>,
        cause: Cause,
        at: T::Moment,
        moved: impl FnMut(LogicalPage, PhysicalPage),
    ) -> Result<(u64, T::Moment), NandError> {
        self.check_source((from, pages), cause)?;
        if self.kept.is_none() && self.spare.all_origins_follow() {
            self.scatter_checked::<true>((from, pages), take, cause, at, moved)
        } else {
            self.scatter_checked::<false>((from, pages), take, cause, at, moved)
        }
    }

    /// [`Nand::copy_scattered`] after the check of the source. `PLAIN`: without versions, errors and origins of pages' own.
    #[inline]
    fn scatter_checked<const PLAIN: bool>(
        &mut self,
        (from, pages): (PhysicalPage, u64),
        mut take: impl FnMut() -> Option<PhysicalPage>,
        cause: Cause,
        at: T::Moment,
        mut moved: impl FnMut(LogicalPage, PhysicalPage),
    ) -> Result<(u64, T::Moment), NandError> {
        let (source, purpose) = (self.geometry.block_of(from), Purpose::of_cause(cause));
        let (mut rest, mut done, mut read) = (pages, at, LastRead::none());
        while rest != 0 {
            let Some(to) = take() else { break };
            let (target, within) = (self.geometry.block_of(to), self.geometry.page_in_block(to));
            debug_assert_ne!(source, target, "a block that is collected takes no copies");
            let next = &mut self.next_page[target.index()];
            if *next != within || within >= self.geometry.pages_per_block {
                return Err(NandError::OutOfOrderProgram { block: target.0, page: within, expected: *next });
            }
            *next = within + 1;
            let step = rest.trailing_zeros();
            let (from, left) = (PhysicalPage(from.0 + step), rest >> step);
            rest &= rest - 1;
            let spare = self.spare.copy::<PLAIN>(from, to);
            let mut retries = 0;
            if let Some(kept) = self.kept.as_mut().filter(|_| !PLAIN) {
                let (erases, now) = (self.erase_counts[source.index()], self.operations.timing().about(at));
                retries = kept.copy((from, erases), (to, target, within), cause, now);
            }
            debug_assert!(!spare.is_filler(), "nobody copies a filler, whose class is another's");
            self.uncounted.copies.add(spare, 1);
            moved(spare.logical_page(), to);
            let times = (at, done);
            done = match retries {
                0 => self.operations.copy((source, from, left), (target, within), purpose, &mut read, times),
                _ => {
                    let (of_page, how) = ((source, from, left), (retries, purpose));
                    self.operations.copy_retried(of_page, (target, within), how, &mut read, times)
                }
            };
        }
        Ok((rest, done))
    }

    /// True if [`Nand::copy_spread`] can copy: a page of flash is one page, and nothing is kept of it but a word.
    #[inline]
    pub fn can_spread(&self) -> bool {
        self.kept.is_none() && self.spare.all_origins_follow() && self.operations.pages_are_alike()
    }

    /// Copies pages of `source` whose spare areas are `words`, in their order, to `places`, one after the other and from the
    /// first again: each place but the first of its pages follows the one before. `source` has `programmed` pages or more. The
    /// rest is that of [`Nand::copy`], but that the caller knows itself which page is moved where.
    ///
    /// What a place costs is done once for all of its pages.
    ///
    /// # Panics
    ///
    /// If the flash [cannot](Nand::can_spread): a bug of the caller.
    #[inline]
    pub fn copy_spread(
        &mut self,
        (source, programmed): (EraseBlock, u32),
        words: &[SpareWord],
        places: &[PhysicalPage],
        cause: Cause,
        at: T::Moment,
    ) -> Result<T::Moment, NandError> {
        assert!(self.can_spread(), "pages of block {} are words", source.0);
        self.check_programmed(source, programmed, cause)?;
        for (number, &first) in places.iter().enumerate().take(words.len()) {
            let (target, within) = (self.geometry.block_of(first), self.geometry.page_in_block(first));
            debug_assert_ne!(source, target, "a block that is collected takes no copies");
            let next = &mut self.next_page[target.index()];
            let of_place = &words[number..];
            let end = within + of_place.len().div_ceil(places.len()) as u32;
            if *next != within || end > self.geometry.pages_per_block {
                return Err(NandError::OutOfOrderProgram { block: target.0, page: within, expected: *next });
            }
            *next = end;
            self.spare.set_words(first, of_place, places.len());
        }
        self.uncounted.copies.add_all(words);
        if !T::TIMED {
            return Ok(at);
        }
        let purpose = Purpose::of_cause(cause);
        let targets = places.iter().cycle().take(words.len());
        Ok(targets.fold(at, |done, &place| {
            let target = self.geometry.block_of(place);
            self.operations.timing().copy_into(source, target, purpose, at, done)
        }))
    }

    /// [`Nand::copy`] after its checks. `PLAIN`: without versions, errors and origins of pages' own.
    #[inline]
    fn copy_checked<const PLAIN: bool>(
        &mut self,
        (from, pages): (PhysicalPage, u64),
        to: PhysicalPage,
        cause: Cause,
        at: T::Moment,
        mut moved: impl FnMut(LogicalPage, PhysicalPage),
    ) -> T::Moment {
        let (source, target) = (self.geometry.block_of(from), self.geometry.block_of(to));
        let purpose = Purpose::of_cause(cause);
        let (mut rest, mut done, mut read) = (pages, at, LastRead::none());
        let first = self.geometry.page_in_block(to);
        let mut copies = Copies {
            spare: &mut self.spare,
            next_page: &mut self.next_page[target.index()],
            copied: CopiedPages::new(to),
            uncounted: &mut self.uncounted.copies,
        };
        while rest != 0 {
            let step = rest.trailing_zeros();
            let (from, left) = (PhysicalPage(from.0 + step), rest >> step);
            rest &= rest - 1;
            let within = first + copies.copied.pages();
            let to = copies.copied.next();
            let spare = copies.spare.copy::<PLAIN>(from, to);
            let mut retries = 0;
            if let Some(kept) = self.kept.as_mut().filter(|_| !PLAIN) {
                let (erases, now) = (self.erase_counts[source.index()], self.operations.timing().about(at));
                retries = kept.copy((from, erases), (to, target, within), cause, now);
            }
            copies.copied.add(spare);
            moved(spare.logical_page(), to);
            let times = (at, done);
            done = match retries {
                0 => self.operations.copy((source, from, left), (target, within), purpose, &mut read, times),
                _ => {
                    let (of_page, how) = ((source, from, left), (retries, purpose));
                    self.operations.copy_retried(of_page, (target, within), how, &mut read, times)
                }
            };
        }
        done
    }

    /// Counts the copies since the last call, with the provenances that the flash found, also in `sent`. A layer says
    /// how many `pages` it has sent, and for which cause.
    pub fn count_copies(&mut self, pages: u64, cause: Cause, sent: &mut Tally) {
        let Uncounted { cause: found, copies } = &self.uncounted;
        assert!(copies.pages() == pages && (pages == 0 || *found == cause), "the flash copies what the layer sends");
        copies.each(|provenance, pages| sent.add(Label::again(cause, provenance), pages));
        self.count_uncounted();
    }

    /// Counts the copies of a layer that has lost its RAM before it counted them. Returns the counts.
    pub fn counts_after_power_cut(&mut self) -> &NandCounts {
        self.count_uncounted();
        &self.counts
    }

    #[cold]
    fn count_uncounted(&mut self) {
        self.uncounted.add_to(&mut self.counts);
        self.uncounted.copies.clear();
    }

    /// Erases `block`; returns its state and the completion time.
    pub fn erase(&mut self, block: EraseBlock, at: T::Moment) -> Result<(Erased, T::Moment), NandError> {
        if self.is_worn_out(block) {
            return Err(NandError::WornOut { block: block.0, erases: self.erases(block) });
        }
        let most = self.pages_of(block);
        let programmed = std::mem::take(&mut self.next_page[block.index()]);
        assert!(programmed <= most, "block {} holds {most} pages in its mode, not {programmed}", block.0);
        self.erase_counts[block.index()] += 1;
        if let Some(modes) = &mut self.modes {
            modes.erase(block);
        }
        let mut erased = if self.is_worn_out(block) { Erased::WornOut } else { Erased::Usable };
        if let Some(errors) = self.errors_mut() {
            assert!(!errors.is_bad(block), "block {} is bad: nobody erases it", block.0);
            if errors.erase(block) {
                erased = Erased::Failed;
            }
        }
        self.counts.erased_blocks += 1;
        self.counts.erased_unprogrammed += u64::from(self.geometry.pages_per_block - programmed);
        self.never_programmed += u64::from(self.geometry.page_in_program(programmed));
        self.operations.forget_open(block);
        Ok((erased, self.operations.timing().erase(block, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flash() -> Nand<Untimed> {
        let geometry = Geometry::new(64 << 10, 4096, 4, (1, 1, 1)).unwrap();
        Nand::new(geometry, 2, true, Untimed)
    }

    fn program(flash: &mut Nand<Untimed>, page: u32) -> Result<(), NandError> {
        let journal = Provenance { origin: Cause::JournalCommit, content: Content::Journal };
        flash.program(PhysicalPage(page), (LogicalPage(page + 100), journal), page, Cause::HostWrite, ())
    }

    #[test]
    fn pages_are_programmed_in_order_and_once() {
        let mut flash = flash();
        assert_eq!(program(&mut flash, 1), Err(NandError::OutOfOrderProgram { block: 0, page: 1, expected: 0 }));
        program(&mut flash, 0).unwrap();
        assert_eq!(program(&mut flash, 0), Err(NandError::OutOfOrderProgram { block: 0, page: 0, expected: 1 }));
        for page in 1..4 {
            program(&mut flash, page).unwrap();
        }
        assert_eq!(program(&mut flash, 3), Err(NandError::OutOfOrderProgram { block: 0, page: 3, expected: 4 }));
        flash.erase(EraseBlock(0), ()).unwrap();
        program(&mut flash, 0).unwrap();
    }

    #[test]
    fn a_read_returns_what_was_programmed_and_refuses_what_was_not() {
        let mut flash = flash();
        program(&mut flash, 0).unwrap();
        let (spare, stamp, _) = flash.read(PhysicalPage(0), Cause::HostWrite, ()).unwrap();
        assert_eq!((spare.logical_page(), spare.content(), stamp), (LogicalPage(100), Content::Journal, 0));
        let error = flash.read(PhysicalPage(1), Cause::HostWrite, ()).unwrap_err();
        assert_eq!(error, NandError::ReadOfErasedPage { block: 0, page: 1, programmed: 1 });
    }

    /// Each set of the provenances of four neighbours, most of which are mixed, is counted once as copied.
    #[test]
    fn copies_are_counted_by_the_provenance_of_each_page() {
        let host = |content| Provenance { origin: Cause::HostWrite, content };
        let cleaned = Provenance { origin: Cause::SegmentCleaning, content: Content::Data };
        let kinds = [host(Content::Data), host(Content::Journal), cleaned];
        for set in 0..3usize.pow(4) {
            let mut flash = flash();
            let of = |page: u32| kinds[set / 3usize.pow(page) % 3];
            for page in 0..4 {
                let content = (LogicalPage(page), of(page));
                flash.program(PhysicalPage(page), content, 0, Cause::HostWrite, ()).unwrap();
            }
            let (before, mut sent) = (flash.counts(), Tally::default());
            let (cause, mut expected) = (Cause::GarbageCollection, Tally::default());
            let pages = (PhysicalPage(0), 0b1101);
            flash.copy(pages, PhysicalPage(4), cause, (), |_, _| {}).unwrap();
            let uncounted = flash.counts();
            flash.count_copies(3, cause, &mut sent);
            assert_eq!(flash.counts(), uncounted, "whoever asks before the copies are counted sees them too");
            [0, 2, 3].into_iter().for_each(|page| expected.add(Label::again(cause, of(page)), 1));
            assert_eq!(sent, expected);
            assert_eq!(flash.counts().programmed.since(&before.programmed), expected);
            assert_eq!(flash.counts().read.since(&before.read), expected);
        }
    }

    /// Pages of a block go to two others in turn: the flash is that of copies one by one.
    #[test]
    fn copies_that_are_spread_are_those_made_one_by_one() {
        let cause = Cause::GarbageCollection;
        let new = || {
            let geometry = Geometry::new(96 << 10, 4096, 8, (1, 1, 1)).unwrap();
            let mut flash = Nand::new(geometry, 2, false, Untimed);
            for page in 0..8 {
                let content = [Content::Data, Content::Journal][page as usize % 3 / 2];
                let provenance = Provenance { origin: Cause::HostWrite, content };
                flash
                    .program(PhysicalPage(page), (LogicalPage(page + 100), provenance), 0, Cause::HostWrite, ())
                    .unwrap();
            }
            flash
        };
        let (mut spread, mut single) = (new(), new());
        let sources = [0, 2, 3, 5, 7].map(PhysicalPage);
        let places = [8, 16, 9, 17, 10].map(PhysicalPage);
        let words = sources.map(|page| spread.peek_words(EraseBlock(0))[page.0 as usize]);
        let both = [PhysicalPage(8), PhysicalPage(16)];
        spread.copy_spread((EraseBlock(0), 8), &words, &both, cause, ()).unwrap();
        for (&from, &to) in sources.iter().zip(&places) {
            single.copy((from, 1), to, cause, (), |_, _| {}).unwrap();
        }
        assert_eq!(spread.counts(), single.counts());
        assert_eq!(spread.programmed_pages(), single.programmed_pages());
        places.iter().for_each(|&page| assert_eq!(spread.peek_spare(page), single.peek_spare(page)));
        let error = spread.copy_spread((EraseBlock(0), 8), &words, &both, cause, ()).unwrap_err();
        assert_eq!(error, NandError::OutOfOrderProgram { block: 1, page: 0, expected: 3 });
        let error = spread.copy_spread((EraseBlock(1), 4), &words, &both, cause, ()).unwrap_err();
        assert_eq!(error, NandError::ReadOfErasedPage { block: 1, page: 3, programmed: 3 });
    }

    #[test]
    fn a_block_wears_out_at_its_endurance() {
        let mut flash = flash();
        assert_eq!(flash.erase(EraseBlock(3), ()).unwrap().0, Erased::Usable);
        assert_eq!(flash.erase(EraseBlock(3), ()).unwrap().0, Erased::WornOut);
        assert_eq!(flash.erase(EraseBlock(3), ()), Err(NandError::WornOut { block: 3, erases: 2 }));
    }
}
