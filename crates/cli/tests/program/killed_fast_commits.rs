//! A mounted `ext` volume that writes fast commits is killed while threads write and sync. What it leaves is replayed by this program, by
//! the kernel and by e2fsck in turn: each file has the synced version or a later one, and e2fsck finds nothing.
//!
//! `SERVER_KILL_SECONDS` sets the time, or `FAST_KILLS` the number of kills.

use super::campaign::Campaign;
use super::killed_files::{FILES, Versions, WRITERS, check, write_until_killed};
use super::serve::{Served, bench_to_mount_in, client, succeeds};
use super::skipped::skipped;
use flashpath::random::Random;
use flashpath_kernel::{LoopDevice, Mount};
use std::fs::File;
use std::sync::Mutex;

const PATH: &str = "ext/conv:image=v";

#[test]
fn synced_files_survive_a_kill_of_a_mount_with_fast_commits_whoever_replays_them() {
    const NAME: &str = "kills with fast commits";
    let Some(bench) = bench_to_mount_in() else { return };
    let Some(_) = client(&bench, "e2fsck") else { return };
    let made = bench.flashpath(&["mkfs", "ext:fast-commit=on/conv:image=v,size=64M"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let wanted: Option<u64> = std::env::var("FAST_KILLS").ok().map(|count| count.parse().expect("it is a number"));
    let mut campaign = Campaign::new(NAME, "SERVER_KILL_SECONDS");
    let mut random = Random::new(0, NAME);
    let known = |_| Versions::draw(&mut random);
    let mut files = Mutex::new((0..WRITERS * FILES).map(known).collect::<Vec<_>>());
    let (mut syncs, mut lost_later, mut kills) = (0, 0, 0);
    let mut round = |kills| match wanted {
        // By number: the time does not count.
        Some(wanted) => (kills < wanted).then(|| (Random::new(kills, NAME), kills)),
        None => campaign.round(),
    };
    while let Some((mut random, seed)) = round(kills) {
        let served = Served::mounted(&bench, &["mount", PATH, "m"]);
        let most = random.below(100);
        syncs += write_until_killed((NAME, seed), &bench.path("m"), &files, most, || served.signal("-KILL"));
        drop(served);
        let context = format!("{NAME}, seed {seed}");
        let found = files.get_mut().unwrap();
        match kills % 3 {
            1 => {
                let image = File::options().read(true).write(true).open(bench.path("v")).unwrap();
                let device = match LoopDevice::attach(&image) {
                    Ok(device) => device,
                    Err(error) => return skipped(&error.to_string()),
                };
                let mount = Mount::new(device.path(), "ext4", "", bench.directory.path()).unwrap();
                lost_later += check(mount.path(), found, &format!("{context}, by the kernel"));
                drop((mount, device));
            }
            2 => {
                let status = client(&bench, "e2fsck").unwrap().args(["-fy", "v"]).output().unwrap();
                // 1: something was corrected, as the log was replayed.
                assert!(matches!(status.status.code(), Some(0 | 1)), "{context}: {status:?}");
            }
            _ => {}
        }
        let again = Served::mounted(&bench, &["mount", PATH, "m"]);
        lost_later += check(&bench.path("m"), found, &context);
        again.end();
        succeeds(client(&bench, "e2fsck").unwrap().args(["-fn", "v"]));
        kills += 1;
    }
    campaign.end(&format!("{kills} kills, {syncs} fsyncs, {lost_later} answered after a kill and not there"));
}
