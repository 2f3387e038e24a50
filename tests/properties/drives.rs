//! Properties of any drive, however small and odd, under any generator.

use flashpath::expression::parse_term;
use flashpath::run::{Options, Path, Replay, RunError, RunFault, prepare};
use flashpath::translation::TranslationError;
use flashpath::workload::generator::generator;

/// The maximum number of pages: larger drives are skipped, so that a run takes milliseconds.
const MOST_PAGES: u64 = 1 << 14;
const PAGES_ASKED: u64 = 20_000;

/// Runs `work` on the drive of `path`: every read returns the newest write, every sum holds, and only worn-out blocks
/// end the run. False if the drive was skipped.
pub fn check_drive(path: &str, work: &str, seed: u64) -> bool {
    let Ok(read) = Path::read(path) else { return false };
    let Some(drive) = read.drive() else { return false };
    let geometry = &drive.nand.geometry;
    if geometry.page_slots() as u64 > MOST_PAGES || geometry.units() > 4096 {
        return false;
    }
    let workload = || parse_term(work).and_then(|term| generator(&term, drive.exported_bytes(), seed));
    let (Ok(mut first), Ok(mut workload)) = (workload(), workload()) else { return false };
    let mut operations = Vec::new();
    first.next_batch(&mut operations, 1).expect("a generator reads no file");
    let Some(operation) = operations.first() else { return false };
    let pages = operation.length_bytes.div_ceil(u64::from(geometry.page_bytes)).max(1);
    let options = Options {
        seed,
        replay: Replay::Closed { depth: 1 + (seed % 40) as u32 },
        limit: Some(PAGES_ASKED.div_ceil(pages)),
        fill: seed.is_multiple_of(2).into(),
        verify: true,
        ..Options::default()
    };
    let outcome = prepare(&read, seed).unwrap().run(workload.as_mut(), &options, &mut |_| true);
    match outcome.failure {
        None => {}
        // A layer without space reports this, too: then blocks must be out of use.
        Some(RunError::Run(RunFault::Translation(TranslationError::WornOut { retired, .. }))) if retired > 0 => {}
        // Of flash with errors, blocks must be bad or worn out beyond what the drive can spare.
        Some(RunError::Run(RunFault::Translation(TranslationError::ReadOnly { retired, spare, .. })))
            if retired > 0 && (retired > spare || path.contains("failures=")) => {}
        Some(failure) => panic!("{work} on {path}, seed {seed}: {failure}"),
    }
    true
}
