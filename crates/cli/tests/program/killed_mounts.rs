//! A mounted `ext` volume whose journal is in memory is killed while threads write and sync: after the next mount, or after the
//! recovery by its monitor, each file has the synced version or a later one, and e2fsck finds nothing. `SERVER_KILL_SECONDS`
//! sets the time for each way.

use super::campaign::Campaign;
use super::killed_files::{FILES, Versions, WRITERS, check, write_until_killed};
use super::serve::{Served, bench_to_mount_in, client, replay, succeeds, wait_until};
use flashpath::random::Random;
use std::sync::Mutex;

const NEW: &str = "ext/conv:image=v,size=64M+nvm:image=j,size=32M";

fn kill_again_and_again(name: &'static str, options: &str) {
    let Some(bench) = bench_to_mount_in() else { return };
    let Some(_) = client(&bench, "e2fsck") else { return };
    let made = bench.flashpath(&["mkfs", NEW]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let path = format!("ext{options}/conv:image=v+nvm:image=j");
    let mut campaign = Campaign::new(name, "SERVER_KILL_SECONDS");
    let mut random = Random::new(0, name);
    let known = |_| Versions::draw(&mut random);
    let mut files = Mutex::new((0..WRITERS * FILES).map(known).collect::<Vec<_>>());
    let (mut syncs, mut lost_later) = (0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let place = bench.path("m");
        let served = Served::mounted(&bench, &["mount", &path, "m"]);
        let most = random.below(200);
        syncs += write_until_killed((name, seed), &place, &files, most, || served.signal("-KILL"));
        drop(served);
        let again = Served::mounted(&bench, &["mount", &path, "m"]);
        lost_later += check(&place, files.get_mut().unwrap(), &format!("{name}, seed {seed}"));
        again.end();
        succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
    }
    campaign.end(&format!("{syncs} fsyncs, {lost_later} answered after a kill and not there"));
}

#[test]
fn synced_files_survive_a_kill_of_a_mount_with_its_journal_in_memory() {
    kill_again_and_again("kills with a journal in memory", "");
}

#[test]
fn synced_files_survive_a_kill_with_metadata_alone_in_memory() {
    kill_again_and_again("kills with ordered data and a journal in memory", ":data=ordered,scheme=paper");
}

/// The monitor recovers the volume by itself, and every other time a new mount may be there first. Several volumes have one
/// monitor, and only one is killed.
fn kill_under_a_monitor(name: &'static str, options: &str, protect: &str) {
    let Some(bench) = bench_to_mount_in() else { return };
    let Some(_) = client(&bench, "e2fsck") else { return };
    let monitor = Served::monitor(&bench);
    let path = |image: &str| format!("ext:journal=vmm{options}/conv:image={image}+monitor:socket=s,protect={protect}");
    for image in ["v", "w"] {
        let made = bench.flashpath(&["mkfs", &format!("ext/conv:image={image},size=64M")]);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    let beside = Served::start(&bench, &["mount", &path("w"), "n"], Some(bench.path("n")));
    let log = || std::fs::read_to_string(bench.path("monitor.log")).unwrap();
    let recoveries = || log().matches("is recovered: ").count();
    let mut campaign = Campaign::new(name, "SERVER_KILL_SECONDS");
    let mut random = Random::new(0, name);
    let known = |_| Versions::draw(&mut random);
    let mut files = Mutex::new((0..WRITERS * FILES).map(known).collect::<Vec<_>>());
    let (mut syncs, mut lost_later, mut by_monitor) = (0, 0, 0);
    while let Some((mut random, seed)) = campaign.round() {
        let place = bench.path("m");
        let served = Served::mounted(&bench, &["mount", &path("v"), "m"]);
        std::fs::write(bench.path(&format!("n/{seed}")), name).unwrap();
        let most = random.below(200);
        let before = recoveries();
        syncs += write_until_killed((name, seed), &place, &files, most, || served.signal("-KILL"));
        drop(served);
        if random.below(2) == 0 {
            wait_until("the monitor recovers the volume", || recoveries() > before);
            replay(&bench, "v");
            by_monitor += 1;
        }
        let again = Served::mounted(&bench, &["mount", &path("v"), "m"]);
        lost_later += check(&place, files.get_mut().unwrap(), &format!("{name}, seed {seed}"));
        again.end();
        succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
        assert_eq!(
            std::fs::read_to_string(bench.path(&format!("n/{seed}"))).unwrap(),
            name,
            "beside it nothing is lost"
        );
    }
    beside.end();
    succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "w"]));
    monitor.end();
    let log = log();
    // A mount that is begun at once may have the volume before the recovery, and recovers it.
    let is_left = |line: &str| line.contains("not recovered") && !line.contains("has it open");
    let is_wrong = |line: &str| line.contains("is cut off") || line.contains("wrote to") || is_left(line);
    assert!(!log.lines().any(is_wrong), "{log}");
    campaign.end(&format!(
        "{syncs} fsyncs, {lost_later} answered after a kill and not there, {by_monitor} recovered by the monitor"
    ));
}

#[test]
fn synced_files_survive_a_kill_of_a_mount_whose_memory_a_monitor_keeps() {
    kill_under_a_monitor("kills under a monitor", "", "required");
}

#[test]
fn synced_files_survive_a_kill_with_metadata_alone_at_a_monitor_and_mprotect() {
    kill_under_a_monitor("kills with ordered data and mprotect", ",data=ordered", "mprotect");
}
