//! Giving up blocks and attributes that are unknown behind lost parts of the log.
//!
//! Up to the last seal before the first lost partial segment, all is as it was. Behind it:
//!
//! - A block that the log holds is the newest that is known; one that it does not hold is as it was before. Each was
//!   written at this place of this file, as no number is given out twice between two checkpoints; where its bytes were
//!   overwritten since, its checksum says so. So an older version may be read, which is reported, and no other bytes.
//! - A file that grew was written where it grew, or the lost part would not be missed: what nothing maps there is given
//!   up, and so is each block in which it may have ended before, if it was not written since. Its zeros would be no
//!   version of it.
//! - A name of an unknown inode is left out: its number may be given out again.
//! - Attributes of which a part is lost are taken away: the parts that are left are no version of them.

use super::finding::{Finding, Structure};
use super::left_out::tolerate;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attribute_blocks::AttributeBlocks;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::{BLOCK, Kind};
use crate::fs::sfs::{FileKind, SfsError};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of a file that are given up one by one; a file of which more are unknown is cut off there.
const MOST_GIVEN_UP: u64 = 1 << 16;
const BLOCK_BYTES: u64 = BLOCK as u64;

/// Growth of a file behind a lost part of the log, in bytes.
#[derive(Clone, Copy)]
struct Growth {
    from: u64,
    to: u64,
    /// The last partial segment that holds a greater size.
    partial: u64,
}

/// State collected while a log with lost parts is applied.
#[derive(Default)]
pub(super) struct AfterGap {
    /// The numbers of the lost partial segments, ascending.
    lost: Vec<u64>,
    /// Growth of files, by inode.
    grown: BTreeMap<u64, Growth>,
    /// The last partial segment that holds each block, by inode and place.
    written: BTreeMap<(u64, u64), u64>,
    /// Names that were left out, with their inodes: by directory and name.
    left_out: BTreeMap<(u64, Vec<u8>), u64>,
    /// Attributes of which the log holds a part, by inode: up to which byte, and of how many.
    attributes: BTreeMap<u64, (u32, u32)>,
}

impl AfterGap {
    /// Nothing yet, of a log without these partial segments.
    pub fn without(lost: Vec<u64>) -> AfterGap {
        debug_assert!(lost.is_sorted(), "lost partial segments are found in order");
        AfterGap { lost, ..AfterGap::default() }
    }

    /// A block lies in a partial segment, in front of a gap or behind it.
    pub fn writes(&mut self, inode: u64, place: u64, partial: u64) {
        self.written.insert((inode, place), partial);
    }

    /// A partial segment holds an image of an inode with another size.
    pub fn resizes(&mut self, inode: u64, before: u64, size: u64, partial: u64) {
        if size <= before {
            return self.cuts(inode, size);
        }
        let growth = self.grown.entry(inode).or_insert(Growth { from: before, to: size, partial });
        *growth = Growth { from: growth.from.min(before), to: size, partial: growth.partial.max(partial) };
    }

    /// A file is cut off at a byte.
    pub fn cuts(&mut self, inode: u64, size: u64) {
        if let Some(growth) = self.grown.get_mut(&inode) {
            (growth.from, growth.to) = (growth.from.min(size), growth.to.min(size));
        }
    }

    /// True if no lost partial segment can hold a newer version of a block of a file that grew.
    fn is_newest(&self, inode: u64, place: u64, growth: &Growth) -> bool {
        let lost = self.lost.iter().rev().find(|lost| **lost < growth.partial).copied().unwrap_or(0);
        self.written.get(&(inode, place)).is_some_and(|written| *written > lost)
    }

    /// A name is left out, as its inode is unknown.
    pub fn leaves_out(&mut self, directory: u64, name: &[u8], inode: u64) {
        self.left_out.insert((directory, name.to_vec()), inode);
    }

    /// A name is taken away.
    pub fn takes_name(&mut self, directory: u64, name: &[u8]) {
        self.left_out.remove(&(directory, name.to_vec()));
    }

    /// A record holds bytes of attributes, from byte `at` of `length`. What follows a gap does not close it.
    pub fn adds_attributes(&mut self, inode: u64, length: u32, at: u32, bytes: u32) {
        let known = self.attributes.entry(inode).or_default();
        let follows = at == 0 || *known == (at, length);
        *known = (if follows { at + bytes } else { 0 }, length);
    }

    /// An inode is freed.
    pub fn frees(&mut self, inode: u64) {
        self.grown.remove(&inode);
        self.attributes.remove(&inode);
        self.left_out.retain(|_, of| *of != inode);
    }

    /// Notes what a record behind a lost part leaves unknown. Returns false if the record cannot be applied.
    pub fn note(
        &mut self,
        task: &Task<'_>,
        files: &mut Files,
        record: &Record,
        partial: u64,
    ) -> Result<bool, SfsError> {
        match record {
            Record::Name { directory, inode, name, .. } => {
                self.takes_name(*directory, name);
                if !files.is_inode(task, *inode)? {
                    self.leaves_out(*directory, name, *inode);
                    return Ok(false);
                }
            }
            Record::NoName { directory, name } => self.takes_name(*directory, name),
            Record::Unmap { inode, places } if places.end == u64::MAX => {
                self.cuts(*inode, places.start.saturating_mul(BLOCK_BYTES));
            }
            Record::Inode(image) => {
                let number = image.number.get();
                if files.is_inode(task, number)? && files.inode(task, number)?.kind != FileKind::Directory {
                    self.resizes(number, files.inode(task, number)?.size, image.size.get(), partial);
                }
            }
            Record::Freed { inode } => self.frees(*inode),
            Record::Attributes { inode, length, at, bytes } => {
                self.adds_attributes(*inode, *length, *at, bytes.len() as u32);
            }
            // What was reserved may have been written in a lost part: it does not count as written.
            Record::Unmap { .. } | Record::Reserve { .. } | Record::Target { .. } | Record::Holes { .. } => {}
            // They are noted if they can be applied.
            Record::Bytes { .. } => {}
        }
        Ok(true)
    }

    /// Gives up the unknown blocks and attributes, and reports them.
    pub fn give_up_unknown(
        &self,
        task: &Task<'_>,
        files: &mut Files,
        damage: &mut Vec<Finding>,
    ) -> Result<(), SfsError> {
        for ((directory, name), inode) in &self.left_out {
            let place = format!("the name '{}' in directory {directory}", String::from_utf8_lossy(name));
            let found = format!("it names inode {inode}, which was in a lost part of the log");
            let finding = Finding::new(Structure::Log, place, found, "the file", "it is left out");
            damage.push(finding.of(*directory));
        }
        for (inode, _) in self.attributes.iter().filter(|(_, (known, length))| known < length) {
            let taken_away = self.take_away_attributes(task, files, *inode, damage);
            tolerate(taken_away, damage)?;
        }
        for (inode, growth) in &self.grown {
            let given_up = self.give_up_growth(task, files, *inode, growth, damage);
            tolerate(given_up, damage)?;
        }
        Ok(())
    }

    /// Takes away the attributes of an inode of which a part is lost.
    fn take_away_attributes(
        &self,
        task: &Task<'_>,
        files: &mut Files,
        inode: u64,
        damage: &mut Vec<Finding>,
    ) -> Result<(), SfsError> {
        if files.is_inode(task, inode)? {
            AttributeBlocks::of(task, files, inode).free()?;
            let place = format!("the extended attributes of inode {inode}");
            let found = "a part of them was in a lost part of the log";
            let finding = Finding::new(Structure::Log, place, found, "all of them", "they are taken away");
            damage.push(finding.of(inode));
        }
        Ok(())
    }

    /// Gives up the unknown blocks of an inode that grew, if it is a file.
    fn give_up_growth(
        &self,
        task: &Task<'_>,
        files: &mut Files,
        inode: u64,
        growth: &Growth,
        damage: &mut Vec<Finding>,
    ) -> Result<(), SfsError> {
        if !files.is_inode(task, inode)? || files.inode(task, inode)?.kind == FileKind::Directory {
            return Ok(());
        }
        let growth = Growth { to: growth.to.min(files.inode(task, inode)?.size), ..*growth };
        if let Some((place, blocks)) = self.give_up_grown(task, files, inode, &growth, damage)? {
            let where_ = format!("{blocks} blocks of inode {inode}");
            let found = "they were in a lost part of the log, or may have ended the file before it grew";
            let repair = "they are given up: reading them fails until they are written anew";
            let finding = Finding::new(Structure::Data, where_, found, "what was synced", repair);
            damage.push(finding.of(inode).at(place * BLOCK_BYTES));
        }
        Ok(())
    }

    /// Places of a file from one on whose stored blocks were written when the file reached beyond them: a block behind
    /// them was written no later. Any other may have ended the file when it was written, so that the zeros behind its
    /// bytes are no version of them.
    fn places_within(
        &self,
        task: &Task<'_>,
        files: &mut Files,
        inode: u64,
        first: u64,
    ) -> Result<BTreeSet<u64>, SfsError> {
        let (mut within, mut oldest_behind) = (BTreeSet::new(), u64::MAX);
        for ((_, place), partial) in self.written.range((inode, first)..=(inode, u64::MAX)).rev() {
            // Under a damaged map nothing is known to be stored.
            let number = match files.mapped(task, inode, *place) {
                Err(SfsError::Damaged { .. }) => continue,
                number => number?,
            };
            if number == 0 || files.metadata.dat.get(task, number)?.address.get() == 0 {
                continue;
            }
            if oldest_behind <= *partial {
                within.insert(*place);
            }
            oldest_behind = oldest_behind.min(*partial);
        }
        Ok(within)
    }

    /// Gives up the unknown blocks of a file that grew. Returns the first place, and how many blocks. Places under a
    /// damaged map block cannot be read as they are: the others are given up all the same.
    fn give_up_grown(
        &self,
        task: &Task<'_>,
        files: &mut Files,
        inode: u64,
        growth: &Growth,
        damage: &mut Vec<Finding>,
    ) -> Result<Option<(u64, u64)>, SfsError> {
        let places = growth.from / BLOCK_BYTES..growth.to.div_ceil(BLOCK_BYTES);
        let within = self.places_within(task, files, inode, places.start)?;
        let (mut given_up, mut unreached, mut failed): (Option<(u64, u64)>, u64, _) = (None, 0, Ok(()));
        for place in places {
            if self.is_newest(inode, place, growth) || within.contains(&place) {
                continue;
            }
            let (first, count) = given_up.unwrap_or((place, 0));
            if count + unreached == MOST_GIVEN_UP {
                let unmapped = files.unmap(task, inode, place..u64::MAX);
                files.inode_mut(task, inode)?.size = place * BLOCK_BYTES;
                failed = failed.and(unmapped);
                break;
            }
            match self.give_up_at(task, files, inode, place) {
                Ok(()) => given_up = Some((first, count + 1)),
                Err(error @ SfsError::Damaged { .. }) => {
                    unreached += 1;
                    failed = failed.and(Err(error));
                }
                Err(error) => return Err(error),
            }
        }
        if unreached > 0 {
            files.miss_a_block(task, inode)?;
        }
        tolerate(failed, damage)?;
        Ok(given_up)
    }

    /// Gives up the block at a place of a file, whether there is one or not.
    fn give_up_at(&self, task: &Task<'_>, files: &mut Files, inode: u64, place: u64) -> Result<(), SfsError> {
        let mut number = files.mapped(task, inode, place)?;
        if number == 0 {
            number = files.metadata.dat.take(task)?;
            files.map(task, inode, place, number)?;
            files.inode_mut(task, inode)?.blocks += 1;
        }
        let mut entry = files.metadata.dat.get(task, number)?;
        files.drop_dirty(&mut entry);
        files.metadata.dat.set(task, number, &entry)?;
        if entry.address.get() != 0 {
            let segment = (entry.address.get() / u64::from(files.media.segment_blocks())) as u32;
            files.segments.lose(segment, Kind::Data, entry.writes.get(), entry.modified.get());
        }
        files.give_up(task, number)
    }
}
