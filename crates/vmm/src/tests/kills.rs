//! Guests that are killed at any time, and recoveries that are: all that was committed is there after it, and nothing that
//! was not.

use super::{Bench, Random, Writer, child, damaged, read_to_end, rounds};
use crate::event::Event;
use crate::wire::Protection;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub fn write_without_end(socket: &Path, image: &Path, seed: u64) {
    let mut writer = Writer::begin(socket, image, seed, Protection::Monitor);
    loop {
        writer.commit().unwrap();
    }
}

/// Lets a guest commit, and kills it.
pub fn killed_guest(bench: &Bench, image: &Path, seed: u64) -> u32 {
    let mut random = Random(seed);
    let after = random.below(60) as u32;
    let (socket, image) = (bench.socket(), image.display().to_string());
    let mut guest = child("writer", &[socket.to_str().unwrap(), &image, &seed.to_string()]);
    let mut is_killed = false;
    let (last, _) = read_to_end(&mut guest, |number, guest| {
        if number > after && !is_killed {
            std::thread::sleep(Duration::from_micros(random.below(2000)));
            guest.kill().unwrap();
            is_killed = true;
        }
    });
    guest.wait().unwrap();
    assert!(is_killed, "the guest of seed {seed} has ended by itself");
    last
}

/// One more transaction may have been committed than was said.
pub fn assert_whole(image: &Path, seed: u64, last: u32) {
    let wrong = damaged(image, seed, last);
    assert!(
        wrong.is_empty() || damaged(image, seed, last + 1).is_empty(),
        "seed {seed}: blocks {wrong:?} are not as they were after transaction {last}"
    );
}

#[test]
fn what_killed_guests_have_committed_is_written_home() {
    let bench = Bench::new();
    let (rounds, mut commits) = (rounds(20), 0);
    for seed in 1..=rounds {
        let image = bench.image(seed);
        let last = killed_guest(&bench, &image, seed);
        bench.wait_for_recovery(seed);
        assert_whole(&image, seed, last);
        commits += u64::from(last);
        std::fs::remove_file(image).unwrap();
    }
    assert_eq!(bench.monitor.frozen().totals().0, 0, "nothing is kept any more");
    println!("campaign: killed guests: {rounds} kills from seed 1, {commits} commits answered, 0 lost");
}

#[test]
fn recoveries_that_are_killed_are_done_again() {
    static KILLED: AtomicU64 = AtomicU64::new(0);
    let bench = Bench::with(|socket| {
        let tries = AtomicU64::new(0);
        Box::new(move |recovery| {
            let seed = (u128::from_le_bytes(recovery.volume) >> 64) as u64;
            let mut random = Random(seed ^ tries.fetch_add(1, Ordering::SeqCst) << 32);
            let seed = seed.to_string();
            let mut child = child("recovery", &[socket.to_str().unwrap(), &recovery.path, &seed]);
            // The last of three tries is left alone.
            if !tries.load(Ordering::SeqCst).is_multiple_of(3) {
                std::thread::sleep(Duration::from_micros(random.below(20_000)));
                child.kill().unwrap();
            }
            match child.wait().unwrap() {
                status if status.success() => {
                    tries.store(0, Ordering::SeqCst);
                    Ok(())
                }
                status => {
                    KILLED.fetch_add(1, Ordering::SeqCst);
                    Err(status.to_string())
                }
            }
        })
    });
    let rounds = rounds(16).div_ceil(8);
    for seed in 1..=rounds {
        let image = bench.image(seed);
        let last = killed_guest(&bench, &image, seed);
        bench.wait_for_recovery(seed);
        assert_whole(&image, seed, last);
        std::fs::remove_file(image).unwrap();
    }
    let failed = bench.heard(|event| matches!(event, Event::NotRecovered { .. }));
    assert_eq!(bench.monitor.frozen().totals().0, 0, "nothing is kept any more");
    let killed = KILLED.load(Ordering::SeqCst);
    println!(
        "campaign: killed recoveries: {rounds} kills of guests from seed 1, {killed} of recoveries, {failed} failed"
    );
}
