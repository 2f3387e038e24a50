//! The setup and the counted part of a workload, run separately.

use crate::model::{SMALL, workload};
use crate::runs::{found, run_part};
use flashpath::expression::parse_term;
use flashpath::fs::directory::Directory;
use flashpath::run::{DiskFile, FilesRun, Fill, InputFault, Part, RunError, SetupFault};
use flashpath::workload::files::FileWorkload;
use flashpath::workload::generator::generator;
use tempfile::TempDir;

fn run(place: &TempDir, workload: FileWorkload, part: Part) -> FilesRun {
    run_part(&Directory::open(place.path()).unwrap(), workload, part, None, true)
}

/// Runs a part that must succeed.
fn run_well(place: &TempDir, text: &str, part: Part) -> FilesRun {
    let outcome = run(place, workload(text, 3), part);
    assert!(outcome.failure.is_none() && !outcome.interrupted, "{text}, {part:?}: {:?}", outcome.failure);
    outcome
}

#[test]
fn the_two_parts_of_a_workload_leave_the_same_files_as_the_whole() {
    for text in SMALL {
        let [whole, parts] = [(); 2].map(|()| TempDir::new().unwrap());
        let asked = run_well(&whole, text, Part::Whole);
        let setup = run_well(&parts, text, Part::Setup);
        let counted = run_well(&parts, text, Part::Counted);
        assert!(found(whole.path()) == found(parts.path()), "{text}: the files differ");

        let requests = [&asked, &setup, &counted].map(|done| done.workload.requests);
        assert_eq!((requests[0], 0), (requests[2], requests[1]), "{text}");
        let warns = !setup.warnings.is_empty();
        let [asked, setup, counted] = [asked, setup, counted].map(|done| done.files.unwrap());
        assert_eq!((counted.bytes.written, setup.bytes.written), (asked.bytes.written, 0), "{text}");
        let names = |stages: &[flashpath::report::StageResult]| stages.iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!([names(&setup.stages), names(&counted.stages)].concat(), names(&asked.stages), "{text}");
        assert!(setup.stages.iter().all(|stage| !stage.counted) && counted.stages[0].counted, "{text}");
        assert_eq!(text.starts_with("untar"), warns, "only untar needs no setup");
    }
}

/// The error of the counted part of `text` with this seed after `prepare`.
fn fault(text: &str, seed: u64, prepare: impl FnOnce(&TempDir)) -> SetupFault {
    let place = TempDir::new().unwrap();
    prepare(&place);
    match run(&place, workload(text, seed), Part::Counted).failure {
        Some(RunError::Input(InputFault::NotSetUp(fault))) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_counted_part_without_its_setup_names_the_missing_file() {
    for text in SMALL.into_iter().filter(|text| !text.starts_with("untar")) {
        let root = text.split(':').next().unwrap();
        let found = fault(text, 3, |_| {});
        assert!(matches!(&found, SetupFault::Missing(path) if path == root), "{text}: {found}");
    }
}

#[test]
fn a_setup_with_other_options_or_another_seed_is_detected() {
    let after = |text, part| {
        move |place: &TempDir| {
            run_well(place, text, part);
        }
    };

    let found = fault("varmail:files=300,prealloc=100%", 3, after("varmail:files=299,prealloc=100%", Part::Setup));
    assert!(matches!(&found, SetupFault::Missing(path) if path == "varmail/00000299"), "{found}");

    let found = fault("rnd_write:file=2M,writes=64K", 3, after("rnd_write:file=1M,writes=64K", Part::Setup));
    let expected = (1 << 20, 2 << 20);
    assert!(
        matches!(&found, SetupFault::Length { found, expected: wanted, .. } if (*found, *wanted) == expected),
        "{found}"
    );

    let found = fault("rnd_write:file=1M,writes=64K", 4, after("rnd_write:file=1M,writes=64K", Part::Setup));
    assert!(matches!(&found, SetupFault::Contents(path) if path == "rnd_write/file0"), "{found}");

    // The counted part finds all its files, and others.
    let found = fault("tokubench:files=10", 3, after("tokubench:files=10", Part::Whole));
    assert!(matches!(found, SetupFault::Unexpected(_)), "{found}");
}

#[test]
fn a_workload_that_keeps_its_file_open_cannot_be_run_in_parts() {
    let blocks = generator(&parse_term("uniform:writes=64K").unwrap(), 1 << 20, 5).unwrap();
    let disk = DiskFile { size_bytes: 1 << 20, fill: Fill::ALL, fsync_every: None }.workload(blocks, 5);
    let outcome = run(&TempDir::new().unwrap(), disk, Part::Counted);
    assert!(matches!(outcome.failure, Some(RunError::Input(InputFault::Inseparable(_)))), "{:?}", outcome.failure);
}
