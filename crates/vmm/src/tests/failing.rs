//! Threads of the monitor that fail. The thread that accepted guests ended at its first error without a word, since no test had
//! made a thread of the monitor fail: the crossing of shortage with a server that outlives its clients.

use super::{Bench, PATIENCE, Writer, child, kills, volume, write_home};
use crate::error::VmmError;
use crate::event::Event;
use crate::guest::Guest;
use crate::wire::{Answer, Protection, Wire};
use rustix::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn failed(event: &Event) -> Option<String> {
    match event {
        Event::Failed { thread, why } => Some(format!("{thread}: {why}")),
        _ => None,
    }
}

#[test]
fn what_a_dead_guest_left_is_written_home_after_the_thread_of_its_recovery_has_failed() {
    static HAS_FAILED: AtomicBool = AtomicBool::new(false);
    let bench = Bench::with(|socket| {
        Box::new(move |recovery| {
            assert!(HAS_FAILED.swap(true, Ordering::SeqCst), "the first one fails");
            write_home(&socket, Path::new(&recovery.path), recovery.volume).map_err(|error| error.to_string())
        })
    });
    let image = bench.image(1);
    let last = kills::killed_guest(&bench, &image, 1);
    let why = bench.wait("a failure", failed);
    assert_eq!(why, "the thread of a recovery: it has panicked: the first one fails");
    // As the program does before it ends.
    bench.monitor.drain(PATIENCE);
    bench.wait_for_recovery(1);
    kills::assert_whole(&image, 1, last);
    assert_eq!(bench.monitor.frozen().totals().0, 0, "nothing is kept any more");
}

#[test]
fn a_guest_whose_thread_has_failed_is_told_and_does_not_wait() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    let bench = Bench::hearing(|event| {
        assert!(!(matches!(event, Event::Ended { .. }) && FAILS.swap(false, Ordering::SeqCst)), "as it was asked to");
    });
    for (seed, protection) in [(2, Protection::Nothing), (6, Protection::Guest), (7, Protection::Monitor)] {
        FAILS.store(true, Ordering::SeqCst);
        let image = bench.image(seed);
        let mut writer = Writer::begin(&bench.socket(), &image, seed, protection);
        writer.commit().unwrap();
        writer.checkpoint().unwrap();
        let ended = writer.guest.end();
        assert!(
            matches!(&ended, Err(VmmError::Ends(why)) if why == "it has panicked: as it was asked to"),
            "{ended:?}"
        );
        assert!(writer.guest.is_gone() && writer.guest.last_word().is_some());
        assert!(bench.wait("a failure", failed).starts_with("the thread of a guest: "));
        // Others are served.
        assert!(Guest::connect(&bench.socket()).unwrap().kept(volume(3, Path::new("")).uuid).unwrap().is_none());
    }
}

/// The monitor that ends in good order tells it to all, also to one that asks nothing.
#[test]
fn guests_hear_why_a_monitor_ends() {
    let bench = Bench::new();
    let image = bench.image(4);
    let mut writer = Writer::begin(&bench.socket(), &image, 4, Protection::Nothing);
    writer.commit().unwrap();
    bench.monitor.stop();
    let kept = bench.monitor.frozen();
    bench.monitor.tell(&kept, "it is told to");
    let ended = writer.commit();
    assert!(matches!(&ended, Err(VmmError::Ends(why)) if why == "it is told to"), "{ended:?}");
    drop(kept);
    // It goes in good order, or its process would be killed.
    writer.cache.clear();
    writer.guest.let_go(u32::MAX / 2).unwrap();
    writer.guest.end().unwrap();
}

/// Connections that say nothing took all descriptors, and the thread that accepts ended.
#[test]
fn connections_that_say_nothing_are_cut_off_for_others() {
    let bench = Bench::new();
    let image = bench.image(5);
    let mut guest = child("writer", &[bench.socket().to_str().unwrap(), image.to_str().unwrap(), "5"]);
    bench.wait("a guest", |event| matches!(event, Event::Began { .. }).then_some(()));
    let silent: Vec<_> = (0..300)
        .map(|_| {
            let socket = crate::socket::socket().unwrap();
            let connected = || rustix::net::connect(&socket, &crate::socket::address(&bench.socket()).unwrap());
            while connected().is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
            socket
        })
        .collect();
    let is_cut_off = |socket: OwnedFd| {
        let wire = Wire::of(socket);
        wire.set_patience(Some(Duration::from_millis(20)), None).unwrap();
        matches!(wire.receive(), Ok(Some((Answer::Refused(why), _))) if why.contains("the oldest"))
    };
    let cut_off = silent.into_iter().map(is_cut_off).filter(|is_cut_off| *is_cut_off);
    assert!(cut_off.count() >= 200);
    guest.kill().unwrap();
    let (last, _) = super::read_to_end(&mut guest, |_, _| ());
    guest.wait().unwrap();
    bench.wait_for_recovery(5);
    kills::assert_whole(&image, 5, last);
}
