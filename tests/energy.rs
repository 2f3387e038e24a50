//! The energy of flash against the clock: on one plane operations follow each other, so that at one watt each the joules of all
//! are the seconds that the plane was busy.

use flashpath::report::RunResult;
use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, Replay, RunOptions, Work, run};

/// Operations at one watt, idle dies at none.
const ONE_WATT: &str = "energy=on,read-power=1000,program-power=1000,erase-power=1000,transfer-power=1000,idle-power=0";

fn result(workload: &str, path: &str, fill: bool) -> RunResult {
    let path = Path::read(path).unwrap();
    let work = Work::Blocks(BlockWork::generated(workload, 1).unwrap());
    let options = RunOptions { fill: fill.into(), replay: Some(Replay::Closed { depth: 1 }), ..RunOptions::default() };
    let outcome = run(Job { work, place: Place::Path(&path), seed: 1, options }, &NoMachine, &mut |_| true).unwrap();
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.result
}

/// Operations that are missing or counted twice, or have the time of another kind, break this. With a write buffer some are still
/// to be done at the end, and some before the count were not.
#[test]
fn at_one_watt_the_joules_of_a_plane_are_its_busy_seconds() {
    let plain = "page=4K,pages-per-block=64";
    let units = "page=16K,unit=4K,pages-per-block=48";
    let cells = "page=16K,unit=4K,pages-per-block=48,cells=tlc,read=50us+60us+70us";
    let times = "program=400us+600us+900us";
    for (layer, flash, tolerance) in [
        ("page:op=20%", plain.to_string(), 1e-9),
        ("dftl:op=20%,table=200", plain.to_string(), 1e-9),
        ("fast:op=20%", plain.to_string(), 1e-9),
        ("page:op=20%,buffer=256K", units.to_string(), 0.01),
        ("page:op=20%,buffer=256K", format!("{cells},{times}"), 0.01),
        ("page:op=20%,buffer=1M", format!("{cells},program-passes=1,program=1400us"), 0.02),
        ("page:op=20%,buffer=1M", format!("{cells},program-passes=2,program=600us+900us"), 0.02),
        ("page:op=20%,buffer=1M,slc-cache=dynamic,slc-full=fold", format!("{cells},{times}"), 0.02),
        ("page:op=30%,victim=fifo", format!("{plain},errors=on,rber=5e-3"), 1e-9),
    ] {
        let path = format!("{layer}/nand:size=48M,{flash},{ONE_WATT}");
        let result = result("uniform:request=4K,reads=40%,writes=64M", &path, true);
        let (energy, seconds) = (result.energy.unwrap(), result.seconds_simulated.unwrap());
        assert!(result.flash.erased_blocks > 0 && energy.erases_j > 0.0, "{path}: collection takes part");
        let off = (energy.total_j / seconds - 1.0).abs();
        assert!(off <= tolerance, "{path}: {} J in {seconds} s: {:?}", energy.total_j, energy.operations);
    }
}

/// The parts, and the idle power of all dies over the whole time.
#[test]
fn the_parts_add_up_and_idle_dies_take_their_power_at_all_times() {
    let path = "page:op=20%/nand:size=128M,channels=2,dies=3,energy=on,idle-power=2";
    let result = result("uniform:reads=50%,writes=32M", path, true);
    let (energy, seconds) = (result.energy.unwrap(), result.seconds_simulated.unwrap());
    assert!((energy.idle_j.unwrap() - 6.0 * 0.002 * seconds).abs() < 1e-12, "{energy:?}");
    let parts = energy.reads_j + energy.programs_j + energy.erases_j + energy.transfers_j + energy.idle_j.unwrap();
    assert!((energy.total_j - parts).abs() < 1e-12, "{energy:?}");
    let each = energy.operations.iter().map(|of| of.count as f64 * of.joules_each).sum::<f64>();
    assert!((energy.total_j - energy.idle_j.unwrap() - each).abs() < 1e-12, "{energy:?}");
    let count = |name: &str, of: &str| {
        let found = energy.operations.iter().find(|one| (one.operation.as_str(), one.of.as_str()) == (name, of));
        found.unwrap_or_else(|| panic!("{name} {of}: {energy:?}")).count
    };
    let flash = &result.flash;
    assert_eq!((count("read", "page"), count("program", "page")), (flash.read_pages, flash.programmed_pages));
    assert_eq!((count("erase", "block"), count("transfer", "unit read")), (flash.erased_blocks, flash.read_pages));
    assert_eq!(energy.total_j_per_host_gib.unwrap(), energy.total_j * 32.0, "32 MiB are a part of a GiB");
}

/// Below other stations the flash counts in its own pages; the energy is of the count alone.
#[test]
fn a_drive_below_other_stations_has_an_energy() {
    for path in ["sfs:segment=512K/page/nand:size=64M,energy=on", "cache:size=1M/page/nand:size=64M,energy=on"] {
        let result = result("uniform:writes=8M", path, false);
        let energy = result.energy.unwrap();
        assert!(energy.programs_j > 0.0 && energy.idle_j.unwrap() > 0.0, "{path}: {energy:?}");
        let programs = energy.operations.iter().find(|of| of.operation == "program").unwrap().count;
        assert_eq!(programs, result.flash.programs, "{path}: without what was written before the count");
    }
    assert!(result("uniform:writes=1M", "page/nand:size=64M", false).energy.is_none());
}
