//! The counts of a device, for the ledger.

use super::Warnings;
use super::placement::PlacementAccount;
use super::unit_map::UnitMap;
use crate::expression::Kind;
use crate::label::Tally;
use crate::units::human_size;

/// The counts of a station since it was opened, and those of the stations below it. Blocks have 4 KiB; a drive that is
/// the whole path, and its flash, count in the flash's pages.
///
/// The blocks that a station sent equal the blocks that those below it received, for each cause, origin and content;
/// otherwise the run fails.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The station's name in the path.
    pub station: &'static str,
    /// Blocks written to it.
    pub received: Tally,
    /// Blocks that it wrote to the stations below; for media, blocks that it stored. Copies count for the station that
    /// makes them.
    pub sent: Tally,
    /// For a translation layer that writes whole pages: the blocks of the pages that the writes to it cover. Its own
    /// writes to the flash for its host are these.
    pub covered: Option<Tally>,
    /// The write buffer in front of a translation layer, if it has one.
    pub buffer: Option<Box<BufferAccount>>,
    /// Blocks read from it.
    pub read_blocks: u64,
    /// Other counters, by name: zones reclaimed, copies interrupted.
    pub events: Vec<(&'static str, u64)>,
    /// Those of them that are no counts, but states that rise and fall, or a maximum: they are told as they are now.
    pub states: &'static [&'static str],
    /// The station's kind, and options that the user did not write and whose values it found when it was opened, such as those
    /// that depend on the size of the device below.
    pub chosen: Option<(&'static Kind, Vec<(&'static str, String)>)>,
    /// Warnings for the user.
    pub warnings: Warnings,
    /// Its flash, if it has any.
    pub flash: Option<FlashAccount>,
    /// The writes to a drive, beside its pages.
    pub cover: Option<PageCover>,
    /// The write requests of a file system to it, if they were counted.
    pub write_requests: Option<WriteRequests>,
    /// The counts of a drive that is the whole path.
    pub drive: Option<DriveAccount>,
    /// The placement of a drive by the host's hints, if it has one.
    pub placement: Option<Box<PlacementAccount>>,
    /// The state of each of its erase blocks, zones or segments, if it has any.
    pub map: Option<UnitMap>,
    /// The stations below it.
    pub below: Vec<Account>,
}

impl Account {
    /// The warnings of this station and those below it, as lines that begin with the station's name.
    pub fn all_warnings(&self) -> Vec<String> {
        let own = self.warnings.iter().map(|warning| format!("{}: {}", self.station, warning.what));
        own.chain(self.below.iter().flat_map(Account::all_warnings)).collect()
    }

    /// The difference to `earlier`, an older account of the same station. Warnings are kept whatever their time.
    pub fn since(&self, earlier: &Account) -> Account {
        // An event may have been none before, and then have had no name.
        let then = |name: &str| earlier.events.iter().find(|(other, _)| *other == name).map_or(0, |(_, then)| *then);
        let events = self.events.iter().map(|(name, now)| {
            let is_state = self.states.contains(name);
            (*name, if is_state { *now } else { now - then(name) })
        });
        let flash = match (&self.flash, &earlier.flash) {
            (Some(now), Some(then)) => Some(FlashAccount {
                programmed_pages: now.programmed_pages - then.programmed_pages,
                programs: now.programs - then.programs,
                read_pages: now.read_pages - then.read_pages,
                erased_blocks: now.erased_blocks - then.erased_blocks,
                erased_unprogrammed_pages: now.erased_unprogrammed_pages - then.erased_unprogrammed_pages,
                programmed_before: then.programmed_now,
                energy: now.energy.as_ref().zip(then.energy.as_ref()).map(|(now, then)| Box::new(now.since(then))),
                ..now.clone()
            }),
            _ => None,
        };
        Account {
            station: self.station,
            received: self.received.since(&earlier.received),
            sent: self.sent.since(&earlier.sent),
            covered: self.covered.as_ref().zip(earlier.covered.as_ref()).map(|(now, then)| now.since(then)),
            buffer: self.buffer.as_ref().zip(earlier.buffer.as_ref()).map(|(now, then)| Box::new(now.since(then))),
            read_blocks: self.read_blocks - earlier.read_blocks,
            events: events.collect(),
            states: self.states,
            chosen: self.chosen.clone(),
            warnings: self.warnings.clone(),
            map: self.map.clone(),
            placement: match (&self.placement, &earlier.placement) {
                (Some(now), Some(then)) => Some(Box::new(now.since(then))),
                _ => None,
            },
            flash,
            cover: self.cover.zip(earlier.cover).map(|(now, then)| now.since(then)),
            write_requests: self.write_requests.zip(earlier.write_requests).map(|(now, then)| now.since(then)),
            drive: self.drive.as_ref().zip(earlier.drive.as_ref()).map(|(now, then)| DriveAccount {
                mapping_reads: now.mapping_reads - then.mapping_reads,
                ..now.clone()
            }),
            below: self.below.iter().zip(&earlier.below).map(|(now, then)| now.since(then)).collect(),
        }
    }
}

/// The writes of a file system to a device, as requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRequests {
    /// The calls of the file system.
    pub calls: u64,
    /// The requests that a block layer makes of them: a write is merged into the one before it if it begins where that ends.
    pub merged: u64,
    /// The largest request, in bytes.
    pub max_bytes: u64,
}

impl WriteRequests {
    /// The counts since `earlier`.
    pub fn since(self, earlier: WriteRequests) -> WriteRequests {
        WriteRequests { calls: self.calls - earlier.calls, merged: self.merged - earlier.merged, ..self }
    }
}

/// The write buffer of a drive, in pages of its layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferAccount {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages written to it.
    pub received: Tally,
    /// Pages that the layer wrote for it.
    pub passed: Tally,
    /// Pages of which a newer version took the place: they were never written.
    pub joined: Tally,
    /// Pages that were discarded in it.
    pub dropped: Tally,
    /// Pages in it when the counts began.
    pub held_before: Tally,
    /// Pages in it now.
    pub held: Tally,
}

impl BufferAccount {
    /// The difference to `earlier`.
    fn since(&self, earlier: &BufferAccount) -> BufferAccount {
        BufferAccount {
            page_bytes: self.page_bytes,
            received: self.received.since(&earlier.received),
            passed: self.passed.since(&earlier.passed),
            joined: self.joined.since(&earlier.joined),
            dropped: self.dropped.since(&earlier.dropped),
            held_before: earlier.held.clone(),
            held: self.held.clone(),
        }
    }

    /// All that went in, and all that came of it: both are the same pages of each origin and content.
    pub fn sides(&self) -> [Tally; 2] {
        let sum = |tallies: &[&Tally]| tallies.iter().flat_map(|tally| tally.entries()).collect();
        [sum(&[&self.received, &self.held_before]), sum(&[&self.passed, &self.joined, &self.dropped, &self.held])]
    }
}

/// The requests to a drive of whole pages, beside the pages: what voids its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCover {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of the pages that the writes cover, in part or completely.
    pub covered_bytes: u64,
    /// Pages read.
    pub read_pages: u64,
    /// Pages read that were never written, or were discarded.
    pub unwritten_pages: u64,
}

impl PageCover {
    /// Counts a write of `bytes` to `pages`.
    #[inline]
    pub fn write(&mut self, bytes: u64, pages: u64) {
        self.written_bytes += bytes;
        self.covered_bytes += pages * self.page_bytes;
    }

    /// Counts a read of a page.
    #[inline]
    pub fn read(&mut self, is_written: bool) {
        self.read_pages += 1;
        self.unwritten_pages += u64::from(!is_written);
    }

    /// The counts since `earlier`.
    pub fn since(self, earlier: PageCover) -> PageCover {
        PageCover {
            page_bytes: self.page_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            covered_bytes: self.covered_bytes - earlier.covered_bytes,
            read_pages: self.read_pages - earlier.read_pages,
            unwritten_pages: self.unwritten_pages - earlier.unwritten_pages,
        }
    }

    /// Its warnings, if parts of pages cost more than a hundredth of the writes, or more than a hundredth of the reads cost
    /// nothing.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let page = human_size(self.page_bytes as f64);
        let in_part = (self.covered_bytes * 100 > self.written_bytes * 101).then(|| {
            let times = self.covered_bytes as f64 / self.written_bytes.max(1) as f64;
            format!(
                "writes cover its pages of {page}, the unit of its mapping, in part: the rest of each is read and programmed again, \
                 {} for {} written ({times:.2} times); write aligned multiples of {page}, or take a unit as small as the \
                 writes (behind nand: unit=, with a buffer= in front, or page=)",
                human_size(self.covered_bytes as f64),
                human_size(self.written_bytes as f64),
            )
        });
        let unwritten = (self.unwritten_pages * 100 > self.read_pages).then(|| {
            format!(
                "{} of {} page reads are of pages that were never written: they read no flash and take no time; write the pages \
                 before the run (--fill)",
                self.unwritten_pages, self.read_pages,
            )
        });
        in_part.into_iter().chain(unwritten)
    }
}

/// The counts of a drive that is the whole path: a translation layer on its flash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriveAccount {
    /// Bytes of a page, the unit of its counts.
    pub page_bytes: u64,
    /// Pages of flash read to look up the mapping.
    pub mapping_reads: u64,
    /// Spare pages over exported pages, as collection finds them.
    pub effective_overprovisioning: f64,
    /// The bytes of RAM that the mapping takes in a real drive.
    pub mapping_ram_bytes: u64,
}

/// The flash of a drive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlashAccount {
    /// Bytes of a page: of flash or, if that is smaller, of the unit of its mapping.
    pub page_bytes: u64,
    /// Pages in an erase block.
    pub pages_per_block: u64,
    /// Pages programmed.
    pub programmed_pages: u64,
    /// Programs of pages of flash, of `program_bytes` each.
    pub programs: u64,
    /// Bytes that a program writes at once: of one page, or of several.
    pub program_bytes: u64,
    /// Pages read.
    pub read_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Pages of those blocks that were not programmed.
    pub erased_unprogrammed_pages: u64,
    /// Pages in programmed state when the counts began.
    pub programmed_before: u64,
    /// Pages in programmed state now.
    pub programmed_now: u64,
    /// Erase blocks that are erased and that no layer has begun to write.
    pub free_blocks: u64,
    /// Erase counts since the drive was new: of each erase block or, if zones are erased whole, of each zone.
    pub erase_counts: Vec<u32>,
    /// The maximum number of erases of a block.
    pub endurance: u32,
    /// Erases of each block before the drive was made.
    pub worn_before: u32,
    /// Blocks in which a program or an erase has failed; `None` if none fails.
    pub bad_blocks: Option<u64>,
    /// The blocks that the drive can still lose.
    pub spare_blocks_left: Option<u64>,
    /// Bytes of all pages.
    pub raw_bytes: u64,
    /// The wear of its blocks by mode, if some have been in SLC mode.
    pub by_mode: Option<Box<ModesAccount>>,
    /// The energy of its operations, if that is asked for.
    pub energy: Option<Box<EnergyAccount>>,
}

/// The energy of a drive's flash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyAccount {
    /// Its operations, the same in the same order at all times.
    pub operations: Vec<OperationEnergy>,
    /// The power of all dies beside their operations, in watts.
    pub idle_watts: f64,
}

/// The operations of one kind, and the energy of one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationEnergy {
    /// `read`, `program`, `erase` or `transfer`.
    pub operation: &'static str,
    /// The kind of page, or what else it is done with.
    pub of: String,
    /// The number of operations.
    pub count: u64,
    /// Joules of one.
    pub joules_each: f64,
}

impl EnergyAccount {
    fn since(&self, earlier: &EnergyAccount) -> EnergyAccount {
        let both = self.operations.iter().zip(&earlier.operations);
        let less = |(now, then): (&OperationEnergy, &OperationEnergy)| {
            assert_eq!((now.operation, &now.of), (then.operation, &then.of), "the operations of a drive stay in order");
            OperationEnergy { count: now.count - then.count, ..now.clone() }
        };
        EnergyAccount { operations: both.map(less).collect(), idle_watts: self.idle_watts }
    }
}

/// The wear of a drive's erase blocks in SLC mode and in that of all bits, since it was new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModesAccount {
    /// The name of the cells: `tlc`.
    pub cells: &'static str,
    /// Blocks that may be in SLC mode, and in the other.
    pub blocks: [u64; 2],
    /// Erases that ended a use in SLC mode, and in the other.
    pub erases: [u64; 2],
    /// Erases before a block is worn out that is used in SLC mode alone, and in the other alone.
    pub endurance: [u32; 2],
    /// True if any block may be in SLC mode: then a block's life is used in both.
    pub is_dynamic: bool,
    /// The largest share of its life that a block has used, in both modes together.
    pub most_used: f64,
    /// Blocks that are worn out.
    pub worn_out: u64,
}

impl ModesAccount {
    /// The mean share of the lives of its blocks that was used in SLC mode, and in the other.
    pub fn used(&self) -> [f64; 2] {
        [0, 1].map(|mode| {
            let lives = self.blocks[mode] as f64 * f64::from(self.endurance[mode]);
            if lives > 0.0 { self.erases[mode] as f64 / lives } else { 0.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasons of full commits are told once there are some: the counts behind a new one were taken from those of others.
    #[test]
    fn an_event_that_was_none_before_is_no_other_ones() {
        let of = |events: &[(&'static str, u64)]| Account { events: events.to_vec(), ..Account::default() };
        let since = of(&[("a", 3), ("new", 2), ("b", 9)]).since(&of(&[("a", 1), ("b", 8)]));
        assert_eq!(since.events, [("a", 2), ("new", 2), ("b", 1)]);
    }

    /// A monitor may keep fewer blocks than it did when counting began: the difference was subtracted below zero.
    #[test]
    fn a_state_that_has_fallen_is_told_as_it_is_now() {
        let of =
            |kept| Account { events: vec![("commits", 7), ("kept", kept)], states: &["kept"], ..Account::default() };
        assert_eq!(of(3).since(&of(10)).events, [("commits", 0), ("kept", 3)]);
    }
}
