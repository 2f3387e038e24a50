//! Journal zones: the writes that they take, their exclusion from reclaim, and their release.

use super::{Machine, read, settings, write};
use flashpath::device::{Abilities, BlockDevice, Lba};
use flashpath::label::{Cause, Content};
use flashpath::random::Random;
use flashpath::time::Time;
use flashpath::translation::zoned::{self, DmZoned};
use std::ops::Range;

const ZONE: u64 = 64;
const WITH: &str = "dm-zoned:journal-zone,idle=1s";
const WITHOUT: &str = "dm-zoned:idle=1s";

fn machine() -> Machine {
    let machine = Machine::new(ZONE, 12, 32);
    machine.mkfs("dm-zoned:reserved=6");
    machine
}

fn blocks(range: Range<u64>) -> Range<Lba> {
    Lba(range.start)..Lba(range.end)
}

fn rest(volume: &mut DmZoned, from: Time) -> Time {
    let until = from + 60_000_000_000;
    let mut now = from;
    while let Some(next) = volume.work(now).unwrap().filter(|next| *next <= until) {
        now = now.max(next);
    }
    until
}

fn copied(volume: &DmZoned, content: Content) -> u64 {
    volume.account().sent.get(Cause::Reclaim, content)
}

fn event(volume: &DmZoned, name: &str) -> u64 {
    volume.account().events.iter().find(|(event, _)| *event == name).unwrap().1
}

/// A journal written in a circle, and data everywhere else.
fn load(volume: &mut DmZoned, journal: Range<u64>, has_labels: bool) -> Vec<u32> {
    let mut random = Random::new(7, "journal load");
    let mut newest = vec![0; volume.blocks() as usize];
    let mut next = journal.start;
    let mut now = Time::ZERO;
    for stamp in 1..4000u32 {
        let block = match stamp % 2 {
            0 => {
                next = if next + 1 == journal.end { journal.start } else { next + 1 };
                next
            }
            _ => loop {
                let block = random.below(volume.blocks());
                if !journal.contains(&block) {
                    break block;
                }
            },
        };
        let content = if journal.contains(&block) && has_labels { Content::Journal } else { Content::Data };
        write(volume, block, &[stamp], content, now);
        newest[block as usize] = stamp;
        while volume.work(now).unwrap().is_some_and(|next| next <= now) {}
        now = now + 100_000;
    }
    newest
}

fn check(volume: &mut DmZoned, newest: &[u32]) {
    for (block, stamp) in newest.iter().enumerate() {
        assert_eq!(read(volume, block as u64), *stamp, "block {block}");
    }
}

#[test]
fn no_journal_block_is_copied_and_less_is_copied_in_all() {
    let journal = 2 * ZONE..3 * ZONE;
    let mut reclaimed = Vec::new();
    for text in [WITHOUT, WITH] {
        let machine = machine();
        let mut volume = machine.open(text);
        let newest = load(&mut volume, journal.clone(), true);
        check(&mut volume, &newest);
        reclaimed.push((copied(&volume, Content::Journal), volume.account().sent.of_cause(Cause::Reclaim)));
    }
    let [(journal_without, without), (journal_with, with)] = reclaimed[..] else { unreachable!() };
    assert!(journal_without > 0, "without the option, the journal is copied");
    assert_eq!(journal_with, 0);
    assert!(with < without, "{with} blocks were copied with a zone for the journal, {without} without");
}

#[test]
fn a_journal_of_any_place_and_size_has_zones_of_its_own() {
    // It fills a chunk; it begins and ends within a chunk; it is larger than a zone; both.
    for journal in [2 * ZONE..3 * ZONE, 2 * ZONE + 10..2 * ZONE + 50, 2 * ZONE..4 * ZONE, 2 * ZONE + 10..4 * ZONE + 20]
    {
        let machine = machine();
        let mut volume = machine.open(WITH);
        let newest = load(&mut volume, journal.clone(), true);
        check(&mut volume, &newest);
        assert_eq!(copied(&volume, Content::Journal), 0, "{journal:?}");
        assert_eq!(event(&volume, "journal_blocks_outside_their_zones"), 0, "{journal:?}");
        let chunks = journal.end.div_ceil(ZONE) - journal.start / ZONE;
        assert_eq!(event(&volume, "journal_zones_taken"), chunks, "{journal:?}");
        volume.close(Time::ZERO).unwrap();
        drop(volume);
        check(&mut machine.open(WITHOUT), &newest);
    }
}

#[test]
fn a_journal_larger_than_its_share_of_the_cache_is_data_beyond_it() {
    let machine = machine();
    let mut volume = machine.open(WITH);
    let journal = 0..8 * ZONE;
    let newest = load(&mut volume, journal, true);
    check(&mut volume, &newest);
    // Ten conventional zones besides the metadata; journals may take half of them.
    assert_eq!(event(&volume, "journal_zones_taken"), 5);
    assert!(event(&volume, "journal_blocks_outside_their_zones") > 0);
}

/// mkfs writes the journal before its location is known: its zone may even have been reclaimed by then.
#[test]
fn a_journal_that_is_found_later_moves_into_its_zone_without_being_copied() {
    for is_reclaimed_before in [false, true] {
        let machine = machine();
        let mut volume = machine.open(WITH);
        let journal = 2 * ZONE..3 * ZONE;
        write(&mut volume, journal.start, &[7; ZONE as usize], Content::Data, Time::ZERO);
        let now = if is_reclaimed_before { rest(&mut volume, Time::ZERO) } else { Time::ZERO };
        let copied_before = volume.account().sent.of_cause(Cause::Reclaim);
        volume.set_journal(&[blocks(journal.clone())]).unwrap();
        for (block, stamp) in journal.clone().zip(100..) {
            write(&mut volume, block, &[stamp], Content::Journal, now);
        }
        rest(&mut volume, now);
        assert_eq!(volume.account().sent.of_cause(Cause::Reclaim), copied_before);
        // Its old zone is free again, and the chunk has only the journal zone.
        assert!(volume.status().contains(" 9/10 cache"), "{}", volume.status());
        assert_eq!(read(&mut volume, journal.start + 5), 105);
        volume.flush(now).unwrap();
        drop(volume);
        assert_eq!(read(&mut machine.open(WITHOUT), journal.start + 5), 105);
    }
}

/// The file system is made again without a journal, or with one in another place.
#[test]
fn the_zones_of_a_removed_journal_are_reclaimed() {
    let machine = machine();
    let mut volume = machine.open(WITH);
    let (old, new) = (2 * ZONE..3 * ZONE, 5 * ZONE + 8..5 * ZONE + 40);
    volume.set_journal(&[blocks(old.clone())]).unwrap();
    write(&mut volume, old.start, &[1; ZONE as usize], Content::Journal, Time::ZERO);
    write(&mut volume, new.start - 1, &[2], Content::Data, Time::ZERO);
    let now = rest(&mut volume, Time::ZERO);
    assert!(volume.status().contains(" 9/10 cache"), "all but the journal is reclaimed: {}", volume.status());
    volume.set_journal(&[blocks(new.clone())]).unwrap();
    write(&mut volume, new.start, &[3], Content::Journal, now);
    let now = rest(&mut volume, now);
    assert!(volume.status().contains(" 9/10 cache"), "the old one is, too: {}", volume.status());
    volume.set_journal(&[]).unwrap();
    rest(&mut volume, now);
    assert!(volume.status().contains(" 10/10 cache"), "and the new one: {}", volume.status());
    let stamps = [old.start, new.start - 1, new.start].map(|block| read(&mut volume, block));
    assert_eq!(stamps, [1, 2, 3]);
}

#[test]
fn a_full_volume_releases_a_journals_zone_and_loses_no_data() {
    let machine = Machine::new(ZONE, 6, 12);
    machine.mkfs("dm-zoned:reserved=2");
    let mut volume = machine.open("dm-zoned:journal-zone,journal-share=90%");
    let mut newest = vec![0; volume.blocks() as usize];
    let mut stamp = 0;
    let mut random = Random::new(3, "crowd");
    let all: Vec<u64> = (0..volume.blocks()).collect();
    let some: Vec<u64> = (0..3000).map(|_| random.below(volume.blocks())).collect();
    for block in all.into_iter().chain(some) {
        stamp += 1;
        // Every chunk has journal and data.
        let content = if block % ZONE < 4 { Content::Journal } else { Content::Data };
        write(&mut volume, block, &[stamp], content, Time::ZERO);
        newest[block as usize] = stamp;
    }
    check(&mut volume, &newest);
    volume.flush(Time::ZERO).unwrap();
    drop(volume);
    check(&mut machine.open(WITHOUT), &newest);
}

/// A conventional zone beside a conventional zone is the only state that the stock kernel would not reclaim correctly.
#[test]
fn a_closed_volume_has_no_state_that_the_stock_kernel_does_not_know() {
    let machine = machine();
    let mut volume = machine.open(WITH);
    write(&mut volume, 70, &[1], Content::Data, Time::ZERO);
    write(&mut volume, 80, &[2], Content::Journal, Time::ZERO);
    volume.flush(Time::ZERO).unwrap();
    assert!(volume.status().contains(" 8/10 cache"), "two zones: {}", volume.status());
    drop(volume);
    // After a crash both are there, and are recognised.
    let volume = machine.open(WITH);
    assert!(volume.status().contains(" 8/10 cache"), "{}", volume.status());
    volume.close(Time::ZERO).unwrap();
    assert!(volume.status().contains(" 9/10 cache"), "joined: {}", volume.status());
    drop(volume);
    let mut volume = machine.open(WITHOUT);
    assert_eq!((read(&mut volume, 70), read(&mut volume, 80)), (1, 2));
}

/// Linux 6.1 warned in `dmz_unmap_zone` and dereferenced a null pointer with such a volume (scripts/zoned-guest).
#[test]
fn fsck_after_a_crash_merges_a_journals_zone_with_its_chunks_conventional_zone() {
    let machine = machine();
    let mut volume = machine.open(WITH);
    write(&mut volume, 70, &[1, 2], Content::Data, Time::ZERO);
    write(&mut volume, 71, &[3, 4], Content::Journal, Time::ZERO);
    volume.flush(Time::ZERO).unwrap();
    drop(volume);
    machine.lose_power(&mut Random::new(3, "fsck of a journal's zone"));

    let (findings, _) = zoned::check(machine.devices()).unwrap();
    let message: Vec<&str> = findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(message.len() == 1 && message[0].starts_with("chunk 1 has the conventional zones "), "{message:?}");
    assert!(findings[0].remedy == zoned::Remedy::Repair);

    zoned::repair(machine.devices(), &settings(WITH)).unwrap();
    assert_eq!(zoned::check(machine.devices()).unwrap().0, []);
    let survey = zoned::survey(machine.devices()).unwrap();
    let chunk = &survey.chunks[0];
    assert_eq!((chunk.chunk, &chunk.data_blocks[..], chunk.buffer_zone), (1, &[(6, 8)][..], None));
    let mut volume = machine.open(WITHOUT);
    assert_eq!([70, 71, 72].map(|block| read(&mut volume, block)), [1, 3, 4]);
}
