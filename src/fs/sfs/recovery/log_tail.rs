//! The log since a checkpoint: where it ends, and which parts of it are damaged.
//!
//! A crash takes what was not flushed, in any part: the last partial segments may be missing, or be there in part (a
//! torn tail). That is no loss, as nothing was answered for. But each one records how far the log was flushed when
//! it was written, and what seals the log is flushed before anything follows it. So if a partial segment is there,
//! those up to that number must be, too, and whole: what is not was damaged later.
//!
//! | a partial segment | up to the highest durable number | behind it |
//! |---|---|---|
//! | is missing, or its summary is damaged | lost, reported | the log ends: torn |
//! | has a summary with a right checksum that this program would not write | lost, reported | the log ends: torn |
//! | has damaged blocks | applied, reported; reading these blocks fails | the log ends: torn |
//! | is of a checkpoint, and was durable | the log ends at the last seal before it, reported: its superblocks are lost | the log ends: torn |
//! | is whole | applied, up to the last seal or the last lost one | applied, up to the last seal |

use super::finding::{Finding, Structure};
use super::log_order::durable_up_to;
use super::log_search::{self, FoundLog, LogStart};
use crate::device::DeviceError;
use crate::fs::sfs::log::segments::Segments;
use crate::fs::sfs::log::{LogReader, PartialSegment};
use crate::fs::sfs::media::format::Superblock;
use std::collections::BTreeSet;

/// A partial segment of the log, and its blocks that are damaged.
pub(super) struct Member {
    pub partial: PartialSegment,
    pub damaged_blocks: BTreeSet<u32>,
}

/// The log behind a checkpoint.
#[derive(Default)]
pub(super) struct LogTail {
    /// The partial segments that are applied, in order. Blocks of them may be damaged.
    pub partials: Vec<PartialSegment>,
    /// The numbers that were durable and are lost, ascending.
    pub lost: Vec<u64>,
    /// Damage of durable parts. If empty, the log ends where a crash has torn it.
    pub damage: Vec<Finding>,
    /// The highest number that was found anywhere.
    pub highest: u64,
}

/// Finds the log since a checkpoint that is loaded, by its superblock.
///
/// # Errors
///
/// If the device cannot read a segment that was open at the checkpoint.
pub(super) fn behind(
    superblock: &Superblock,
    reader: LogReader<'_>,
    segments: &Segments,
) -> Result<LogTail, DeviceError> {
    let start = LogStart::of(superblock, &segments.last_opened(), reader)?;
    Ok(find(reader, &start))
}

/// Finds the log since a checkpoint, and tells a torn tail from damage.
pub(super) fn find(reader: LogReader<'_>, start: &LogStart) -> LogTail {
    let found = log_search::find(reader, start);
    let log = found.partials.in_order();
    let durable = durable_up_to(&log);
    let (mut members, mut lost) = (Vec::new(), Vec::new());
    let (mut last_sealed, mut number, mut missing) = (start.first - 1, start.first, None);
    for partial in log {
        let member = at_its_blocks(reader, partial, &found);
        let partial = &member.partial;
        let is_whole = member.damaged_blocks.is_empty() && partial.is_well_formed();
        let is_behind_gap = partial.number() > number.max(durable + 1);
        lost.extend(number..partial.number().min(durable + 1));
        number = number.max(partial.number().min(durable + 1));
        if partial.number() > durable && (is_behind_gap || !is_whole) {
            // The torn tail.
            break;
        }
        if partial.is_of_checkpoint() && partial.number() <= durable {
            // Behind a checkpoint numbers of blocks and inodes are given out again, so that its log fits to no other.
            missing = Some(partial.number());
            break;
        }
        number = partial.number() + 1;
        if partial.seals() {
            last_sealed = partial.number();
        }
        match partial.is_well_formed() {
            true => members.push(member),
            false => lost.push(partial.number()),
        }
    }
    if missing.is_none() {
        lost.extend(number..=durable);
    }
    let end = lost.iter().copied().fold(last_sealed, u64::max);
    members.retain(|member| member.partial.number() <= end);
    LogTail {
        damage: missing.map(missing_checkpoint).into_iter().chain(findings(&members, &lost, &found)).collect(),
        partials: members.into_iter().map(|member| member.partial).collect(),
        highest: found.highest,
        lost,
    }
}

/// A partial segment with its damaged blocks. One whose summary lies in more than one place is where its blocks are.
fn at_its_blocks(reader: LogReader<'_>, partial: PartialSegment, found: &FoundLog) -> Member {
    let damaged_blocks = reader.damaged_blocks(&partial);
    let mut best = Member { partial, damaged_blocks };
    if best.damaged_blocks.is_empty() {
        return best;
    }
    for other in found.partials.with_number(best.partial.number()) {
        if other.header.crc == best.partial.header.crc {
            let damaged_blocks = reader.damaged_blocks(other);
            if damaged_blocks.len() < best.damaged_blocks.len() {
                best = Member { partial: other.clone(), damaged_blocks };
            }
        }
    }
    best
}

/// The finding for a checkpoint whose superblocks are lost, by a partial segment of it.
fn missing_checkpoint(partial: u64) -> Finding {
    let place = format!("the superblock of the checkpoint in partial segment {partial} of the log");
    let found = "none is whole, and the log goes on behind that checkpoint";
    Finding::new(Structure::Superblock, place, found, "a superblock", "what changed since the one before it is lost")
}

/// One finding for each run of lost partial segments, each one with damaged blocks, and each block that cannot be read.
fn findings(members: &[Member], lost: &[u64], found: &FoundLog) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |place: String, found: &str, expected: &str, repair: &str| {
        findings.push(Finding::new(Structure::Log, place, found, expected, repair));
    };
    for run in lost.chunk_by(|one, next| one + 1 == *next) {
        let place = match run {
            [number] => format!("partial segment {number} of the log"),
            run => format!("partial segments {} to {} of the log", run[0], run[run.len() - 1]),
        };
        let why = "a later one shows that it was durable, and it cannot be found or read";
        add(place, why, "what was synced", "the rest of the log is applied; what this one held is lost");
    }
    for Member { partial, damaged_blocks } in members.iter().filter(|member| !member.damaged_blocks.is_empty()) {
        let (number, segment, block) = (partial.number(), partial.segment, partial.block);
        let place = format!("partial segment {number} of the log, in segment {segment} from block {block}");
        let why = format!("{} of its {} blocks are damaged", damaged_blocks.len(), partial.header.blocks);
        add(place, &why, "what was synced", "reading these blocks fails, unless a later version is in the log");
    }
    for ((segment, block), error) in &found.unreadable {
        let place = format!("block {block} of segment {segment}");
        add(place, error, "a readable block", "nothing is known to be lost by it");
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sfs::log::test_log::{TestLog, TestPartialSegment};
    use crate::fs::sfs::media::format::{Kind, NO_GROUP};
    use std::collections::BTreeMap;

    /// The first number of the log, and the checksum of the one before it.
    const FIRST: u64 = 50;
    const CHAIN: u32 = 4711;
    /// A segment that was written before the checkpoint, the open one, and two that were free.
    const OLD: u32 = 0;
    const OPEN: u32 = 3;
    const NEXT: u32 = 8;
    const OTHER: u32 = 9;

    fn start() -> LogStart {
        LogStart { first: FIRST, chain: CHAIN, open: BTreeMap::from([(NO_GROUP, (OPEN, 6))]), next_segment: Some(NEXT) }
    }

    /// A partial segment, and its place.
    type Placed = (u32, u32, TestPartialSegment);

    /// A log of five: two in the open segment, three from the head of the next one. Each says that all before it was
    /// durable.
    fn five() -> (TestLog, Vec<Placed>) {
        let log = TestLog::empty();
        log.write_chain(OLD, 1..5, 0);
        log.write_chain(OPEN, 40..42, 0);
        let (mut placed, mut chain) = (Vec::new(), CHAIN);
        for (number, (segment, block)) in (FIRST..).zip([(OPEN, 6), (OPEN, 9), (NEXT, 0), (NEXT, 3), (NEXT, 6)]) {
            let made = TestPartialSegment { next_segment: Some(NEXT), ..TestPartialSegment::numbered(number, chain) };
            chain = log.write(segment, block, &made);
            placed.push((segment, block, made));
        }
        (log, placed)
    }

    fn found(log: &TestLog) -> LogTail {
        find(log.reader(), &start())
    }

    fn numbers(tail: &LogTail) -> Vec<u64> {
        tail.partials.iter().map(PartialSegment::number).collect()
    }

    fn texts(tail: &LogTail) -> Vec<String> {
        tail.damage.iter().map(|finding| finding.place.clone()).collect()
    }

    #[test]
    fn a_whole_log_is_found_in_order_wherever_it_lies_and_nothing_older() {
        let (log, _) = five();
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost, tail.highest), ((50..55).collect(), vec![], 54));
        assert!(tail.damage.is_empty());
    }

    #[test]
    fn what_a_crash_leaves_of_the_last_one_ends_the_log_without_a_word() {
        for block in [6, 7, 8] {
            let (log, _) = five();
            log.flip(NEXT, block, 200);
            let tail = found(&log);
            assert_eq!((numbers(&tail), tail.lost.clone()), ((50..54).collect(), vec![]), "block {block}");
            assert!(tail.damage.is_empty());
        }
    }

    #[test]
    fn what_follows_the_last_seal_is_not_applied() {
        let (log, placed) = five();
        let (segment, block, last) = placed[4].clone();
        log.write(segment, block, &TestPartialSegment { seals: false, ..last });
        assert_eq!(numbers(&found(&log)), [50, 51, 52, 53]);
    }

    #[test]
    fn a_lost_summary_in_the_middle_is_reported_and_what_lies_behind_it_is_found() {
        for (at, (segment, block)) in [(OPEN, 6), (OPEN, 9), (NEXT, 0), (NEXT, 3)].into_iter().enumerate() {
            let (log, _) = five();
            log.flip(segment, block, 200);
            let tail = found(&log);
            let lost = FIRST + at as u64;
            let rest: Vec<u64> = (50..55).filter(|number| *number != lost).collect();
            assert_eq!((numbers(&tail), tail.lost.clone()), (rest, vec![lost]));
            assert_eq!(texts(&tail), [format!("partial segment {lost} of the log")]);
        }
    }

    #[test]
    fn several_in_a_row_that_are_lost_are_one_finding() {
        let (log, _) = five();
        log.flip(OPEN, 9, 200);
        log.flip(NEXT, 0, 200);
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50, 53, 54], vec![51, 52]));
        assert_eq!(texts(&tail), ["partial segments 51 to 52 of the log"]);
    }

    #[test]
    fn a_lost_one_in_front_of_a_torn_tail_is_lost_once() {
        let log = TestLog::empty();
        log.write(OPEN, 6, &TestPartialSegment { next_segment: Some(NEXT), ..TestPartialSegment::numbered(50, CHAIN) });
        // 53 shows that 51 was durable, and not that 52 was, behind which it lies.
        log.write(NEXT, 0, &TestPartialSegment { flushed_back: 2, ..TestPartialSegment::numbered(53, 1) });
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50], vec![51]));
        assert_eq!(texts(&tail), ["partial segment 51 of the log"]);
    }

    #[test]
    fn the_log_ends_before_a_checkpoint_behind_which_it_goes_on_and_that_is_reported() {
        let (log, mut chain, mut block) = (TestLog::empty(), CHAIN, 6);
        for number in FIRST..FIRST + 3 {
            let kind = if number == FIRST + 1 { Kind::UsageFile } else { Kind::Data };
            let made =
                TestPartialSegment { kind, seals: kind == Kind::Data, ..TestPartialSegment::numbered(number, chain) };
            chain = log.write(OPEN, block, &made);
            block += made.summary_blocks() + made.blocks;
        }
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![FIRST], vec![]));
        assert_eq!(
            texts(&tail),
            [format!("the superblock of the checkpoint in partial segment {} of the log", FIRST + 1)]
        );
        // One that a crash has cut off has no log behind it.
        let log = TestLog::empty();
        let chain = log.write(OPEN, 6, &TestPartialSegment::numbered(FIRST, CHAIN));
        log.write(
            OPEN,
            9,
            &TestPartialSegment {
                kind: Kind::UsageFile,
                seals: false,
                ..TestPartialSegment::numbered(FIRST + 1, chain)
            },
        );
        let tail = found(&log);
        assert_eq!((numbers(&tail), texts(&tail)), (vec![FIRST], vec![]));
    }

    #[test]
    fn a_damaged_block_of_what_was_durable_is_reported_and_the_rest_applied() {
        let (log, _) = five();
        log.flip(OPEN, 11, 200);
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), ((50..55).collect(), vec![]));
        assert_eq!(texts(&tail), ["partial segment 51 of the log, in segment 3 from block 9"]);
        assert!(tail.damage[0].found.starts_with("1 of its 2 blocks"), "{}", tail.damage[0]);
    }

    #[test]
    fn a_block_that_cannot_be_read_is_reported_by_its_place() {
        let (log, _) = five();
        log.scratch(OPEN, 9);
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50, 52, 53, 54], vec![51]));
        assert_eq!(texts(&tail), ["partial segment 51 of the log", "block 9 of segment 3"]);
    }

    #[test]
    fn a_summary_that_also_lies_elsewhere_counts_where_its_blocks_are() {
        let (log, placed) = five();
        // It went to the place of 51, which it hides, and to the head of a segment that was free.
        let (bytes, _) = placed[3].2.bytes();
        for (segment, block) in [(OPEN, 9), (OTHER, 0)] {
            log.put(segment, block, &bytes[..4096]);
        }
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50, 52, 53, 54], vec![51]));
        assert_eq!(tail.partials[2].place(), (NEXT, 3));
    }

    #[test]
    fn a_summary_that_was_changed_with_its_checksum_is_left_out() {
        let (log, placed) = five();
        let (segment, block, forged) = placed[1].clone();
        // The next one names the checksum that was written.
        log.write(segment, block, &TestPartialSegment { next_segment: Some(OTHER), ..forged.clone() });
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50, 52, 53, 54], vec![51]));
        // One whose number alone was changed names the checksum of another than the one before it.
        log.write(segment, block, &TestPartialSegment { number: 53, ..forged });
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50, 52, 53, 54], vec![51]));
        assert_eq!(tail.partials[2].place(), (NEXT, 3));
    }

    #[test]
    fn one_of_another_log_does_not_follow_and_its_number_is_not_given_out_again() {
        let (log, placed) = five();
        let (_, _, last) = placed[4].clone();
        // An older crash left one with the next number, and one with a number far behind.
        log.write(OTHER, 0, &TestPartialSegment { flushed_back: 0, ..TestPartialSegment::numbered(55, 1) });
        log.write(OTHER + 1, 0, &TestPartialSegment { flushed_back: 0, ..TestPartialSegment::numbered(5000, 1) });
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.highest), ((50..55).collect(), 5000), "behind {last:?}");
    }

    #[test]
    fn a_log_that_does_not_tell_how_far_it_was_flushed_is_durable_up_to_the_last_seal_but_one() {
        let (log, mut chain) = (TestLog::empty(), CHAIN);
        for (number, block) in [(50, 6), (51, 9), (52, 12)] {
            chain = log.write(
                OPEN,
                block,
                &TestPartialSegment { flushed_back: 0, ..TestPartialSegment::numbered(number, chain) },
            );
        }
        log.flip(OPEN, 9, 200);
        let tail = found(&log);
        assert_eq!((numbers(&tail), tail.lost.clone()), (vec![50], vec![]), "52 is not found to follow 50");
    }
}
