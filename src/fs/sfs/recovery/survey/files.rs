//! Surveying a file: its map, its blocks, its attributes, the target of a link. Blocks of directories are surveyed with
//! their names (`names`).

use super::super::finding::{Finding, Structure};
use super::faults::{Mend, Stage, Via};
use super::{Seen, Survey, Surveyor};
use crate::crc;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attribute_blocks;
use crate::fs::sfs::files::attributes::FileKind;
use crate::fs::sfs::files::extended;
use crate::fs::sfs::files::map::{FANOUT, FANOUT_BITS, number_at};
use crate::fs::sfs::media::format::MOST_BLOCKS;
use crate::fs::sfs::media::format::{BLOCK, DIRTY, DatEntry, Kind, ROOTS};
use crate::fs::sfs::metadata::blocks::NO_PLACE;

/// Blocks that are read at once.
const RUN: usize = 64;

/// A block of a file, as it was seen: its place, its virtual block, the entry of that.
type BlockSeen = (u64, u64, DatEntry);

impl Surveyor<'_> {
    /// All blocks of one inode.
    pub(super) fn survey_file(&mut self, survey: &mut Survey, number: u64, seen: &mut Seen) -> Result<(), SfsError> {
        let mut blocks: Vec<BlockSeen> = Vec::new();
        let span_bits = FANOUT_BITS * u32::from(seen.levels);
        for at in 0..ROOTS {
            let (root, levels, first) = (seen.roots[at], seen.levels, (at as u64) << span_bits);
            if root != 0 {
                self.survey_map(survey, (number, seen), (Via::Root(at), root, levels, first), &mut blocks);
            }
        }
        seen.counted += blocks.len() as u64;
        if seen.attributes != 0 {
            self.survey_attributes(survey, number, seen);
        }
        match seen.kind {
            FileKind::Regular => self.survey_data(survey, number, blocks),
            FileKind::Directory => self.survey_directory(survey, number, seen, blocks),
            _ => {
                self.survey_target(survey, number, seen, &blocks);
            }
        }
        if seen.blocks != seen.counted && !seen.is_partial {
            let found = format!("it is said to have {} blocks", seen.blocks);
            let place = format!("inode {number}");
            let finding =
                Finding::new(Structure::Inode, place, found, format!("{}", seen.counted), "the number is put right");
            survey.fault(Stage::Inode, finding.of(number), Mend::SetBlocks { inode: number, blocks: seen.counted });
        }
        Ok(())
    }

    /// Surveys a number of a map, and all below it.
    fn survey_map(
        &mut self,
        survey: &mut Survey,
        of: (u64, &mut Seen),
        (via, number, level, first): (Via, u64, u8, u64),
        blocks: &mut Vec<BlockSeen>,
    ) {
        let (inode, seen) = of;
        let offset = first.saturating_mul(BLOCK as u64);
        let kind = if level == 0 && seen.kind == FileKind::Regular { Kind::Data } else { Kind::Metadata };
        let its_place = if level == 0 { first } else { NO_PLACE };
        let claimed = match first < MOST_BLOCKS {
            true => self.claim(survey, (inode, its_place), number, kind),
            false => Err("it is beyond what a file can have".to_string()),
        };
        let entry = match claimed {
            Ok(entry) => entry,
            Err(why) => {
                let place = format!("the map of inode {inode}");
                let repair = "the block is given up: reading it fails until it is written anew";
                let found = format!("it names virtual block {number}: {why}");
                let finding = Finding::new(Structure::Map, place, found, "a virtual block of its own", repair);
                survey.fault(Stage::Blocks, finding.of(inode).at(offset), Mend::Replace { inode, number, via });
                return;
            }
        };
        if level == 0 {
            blocks.push((first, number, entry));
            return;
        }
        seen.counted += 1;
        if entry.is_given_up() && seen.kind != FileKind::Directory {
            survey.given_up += 1;
            return;
        }
        let bytes = match self.files.peek(self.task, number, inode, &entry) {
            Ok(bytes) => bytes,
            Err(why) => {
                let place = format!("a map block of inode {inode}, virtual block {number}");
                let repair =
                    "it is rebuilt from the log; if parts of it are not there, it is given up, and reading there fails";
                let finding = Finding::new(Structure::Map, place, why, "what was written", repair);
                seen.is_partial = true;
                let mend = Mend::MapBlock { inode, number };
                survey.fault(Stage::Blocks, finding.of(inode).at(offset), mend);
                return;
            }
        };
        let span = 1u64 << (FANOUT_BITS * u32::from(level - 1));
        for at in 0..FANOUT as usize {
            let below = number_at(&bytes[..], at);
            if below != 0 {
                let its_first = first.saturating_add((at as u64).saturating_mul(span));
                self.survey_map(survey, (inode, seen), (Via::Block(number, at), below, level - 1, its_first), blocks);
            }
        }
    }

    /// Surveys extended attributes.
    fn survey_attributes(&mut self, survey: &mut Survey, inode: u64, seen: &mut Seen) {
        let number = seen.attributes;
        let why = match self.peek_attributes(survey, inode, seen) {
            Ok(bytes) if extended::decode(&bytes).is_some() => return,
            Ok(_) => "their lengths do not add up".to_string(),
            Err(why) => why,
        };
        let place = format!("the extended attributes of inode {inode}, virtual block {number}");
        let finding = Finding::new(Structure::Attributes, place, why, "attributes", "they are taken away");
        survey.fault(Stage::Blocks, finding.of(inode), Mend::DropAttributes(inode));
    }

    /// All bytes of its attributes. `Err`: why they cannot be read.
    fn peek_attributes(&mut self, survey: &mut Survey, inode: u64, seen: &mut Seen) -> Result<Vec<u8>, String> {
        let number = seen.attributes;
        let mut look = |it: &mut Surveyor<'_>, number: u64| {
            let entry = it.claim(survey, (inode, NO_PLACE), number, Kind::Metadata)?;
            seen.counted += 1;
            it.files.peek(it.task, number, inode, &entry)
        };
        let first = look(self, number)?;
        let list = attribute_blocks::listed_blocks(&first).ok_or("they are longer than they can be")?;
        if list.is_empty() {
            return Ok(first.to_vec());
        }
        let mut bytes = Vec::with_capacity(list.len() * BLOCK);
        for number in list {
            bytes.extend_from_slice(&look(self, number)?[..]);
        }
        Ok(bytes)
    }

    /// Surveys the target of a link.
    fn survey_target(&mut self, survey: &mut Survey, inode: u64, seen: &Seen, blocks: &[BlockSeen]) {
        if seen.kind != FileKind::Symlink {
            return;
        }
        let repair = "it is given up: reading it fails";
        let why = match blocks.iter().find(|(place, ..)| *place == 0) {
            Some((.., entry)) if entry.is_given_up() => {
                survey.given_up += 1;
                return;
            }
            Some((_, number, entry)) => match self.files.peek(self.task, *number, inode, entry) {
                Ok(_) => return,
                Err(why) => {
                    let place = format!("the target of inode {inode}, virtual block {number}");
                    let finding = Finding::new(Structure::Target, place, why, "what was written", repair);
                    survey.fault(Stage::Blocks, finding.of(inode), Mend::GiveUp(*number));
                    return;
                }
            },
            None => "it has no target",
        };
        // Its map may be damaged, and then that is a fault of its own.
        if seen.roots[0] == 0 {
            let place = format!("inode {inode}");
            let finding = Finding::new(Structure::Target, place, why, "a path", repair);
            survey.fault(Stage::Blocks, finding.of(inode), Mend::Replace { inode, number: 0, via: Via::Root(0) });
        }
    }

    /// Surveys the blocks of a regular file against their checksums.
    fn survey_data(&mut self, survey: &mut Survey, inode: u64, mut blocks: Vec<BlockSeen>) {
        survey.given_up += blocks.iter().filter(|(.., entry)| entry.is_given_up()).count() as u64;
        if !survey.reads_data {
            return;
        }
        blocks.retain(|(.., entry)| entry.address.get() != 0 && entry.address.get() & DIRTY == 0);
        blocks.sort_unstable_by_key(|(.., entry)| entry.address.get());
        let segment_blocks = u64::from(self.files.media.segment_blocks());
        let follows = |one: &BlockSeen, next: &BlockSeen| {
            let address = next.2.address.get();
            one.2.address.get() + 1 == address && !address.is_multiple_of(segment_blocks)
        };
        let mut damaged = Vec::new();
        for run in blocks.chunk_by(follows).flat_map(|run| run.chunks(RUN)) {
            self.check_run(run, &mut damaged);
        }
        damaged.sort_unstable_by_key(|((place, ..), _)| *place);
        for ((place, number, entry), why) in damaged {
            let where_ =
                format!("a block of inode {inode}, virtual block {number}, block {} of the log", entry.address);
            let repair = "it is given up: reading it fails until it is written anew";
            let finding = Finding::new(Structure::Data, where_, why, "what was written", repair);
            survey.fault(Stage::Blocks, finding.of(inode).at(place * BLOCK as u64), Mend::GiveUp(number));
        }
    }

    /// Reads blocks that lie one behind the other, and checks them against their checksums.
    fn check_run(&mut self, run: &[BlockSeen], damaged: &mut Vec<(BlockSeen, String)>) {
        let width = self.files.media.block_width();
        let mut bytes = vec![0; run.len() * width];
        match self.files.media.read(self.task, run[0].2.address.get(), &mut bytes) {
            Ok(()) => {}
            Err(_) if run.len() > 1 => {
                // Which of them cannot be read shows one by one.
                return run.chunks(1).for_each(|one| self.check_run(one, damaged));
            }
            Err(error) => return damaged.push((run[0], error.to_string())),
        }
        for (block, bytes) in run.iter().zip(bytes.chunks_exact(width)) {
            let (found, written) = (crc::crc32c(bytes), block.2.crc.get());
            if found != written {
                damaged.push((*block, format!("its checksum is {found:08x}, and should be {written:08x}")));
            }
        }
    }
}
