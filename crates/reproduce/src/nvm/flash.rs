//! Pages that each journal programs on a drive with flash, by the ledger.

use super::journals::{Journal, Sizes, Stack};
use super::loads::Load;
use super::measured::Measured;
use super::simulated::{Wanted, simulate};
use super::{MOST_THREADS, panel};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::LedgerRow;
use flashpath::report::figure::{Claim, Figure, Panel};
use flashpath::task::CpuTable;

/// A page-level layer on 32 dies.
const DRIVE: &str = "page/nand:channels=8,dies=4,";
/// The flash, as the ledger calls it.
const FLASH: &str = "nand";

/// Makes the figure.
pub fn figure(lab: &Lab) -> Result<Figure, ReproduceError> {
    let loads = [Load::Varmail, Load::Tokubench];
    let points = loads.iter().flat_map(|load| Journal::ALL.map(|journal| (load, journal)));
    let wanted: Vec<Wanted> = points
        .map(|(load, journal)| Wanted {
            path: Stack::of(journal).simulated(&Sizes::of(lab), DRIVE),
            expression: load.expression(lab, MOST_THREADS),
            cpu: CpuTable::DEFAULT,
        })
        .collect();
    let made = simulate(lab, &wanted)?;
    let runs: Vec<(&Load, &[Measured])> = loads.iter().zip(made.chunks(Journal::ALL.len())).collect();
    let panels = runs.iter().flat_map(|(load, runs)| {
        [("by content", content as Key), ("by cause", cause as Key)]
            .map(|(by, key)| table(&format!("{}, {by}", load.name()), runs, key))
    });
    let claims = runs.iter().map(|(load, runs)| Claim {
        says: format!("{}: pages programmed with O-JFS, our scheme, over those with JFS", load.name()),
        place: "not of the paper: the journal leaves the drive".to_string(),
        low: None,
        high: Some(1.0),
        ours: Some(mib(&runs[3], |_| true) / mib(&runs[0], |_| true)).filter(|ratio| ratio.is_finite()),
        because: "checkpoints write home what JFS still has in its journal at the end of the run".to_string(),
        shown_by: None,
    });
    Ok(Figure {
        name: "nvm-flash".to_string(),
        title: "What the journals write to flash".to_string(),
        unit: "MiB programmed".to_string(),
        about: format!(
            "16 simulated threads on `{}`. Counted until all is durable: what a journal then has that is not home is not \
             written again. The device of N-JFS's journal is in memory, and no flash.",
            DRIVE.trim_end_matches(',')
        ),
        panels: panels.collect(),
        claims: claims.collect(),
        made_by: None,
    })
}

/// The key by which rows are counted.
type Key = fn(&LedgerRow) -> &str;

fn content(row: &LedgerRow) -> &str {
    &row.content
}

fn cause(row: &LedgerRow) -> &str {
    &row.cause
}

fn mib(run: &Measured, is_counted: impl Fn(&LedgerRow) -> bool) -> f64 {
    let rows = run.result.ledger.iter().filter(|row| row.station == FLASH && is_counted(row));
    rows.map(|row| row.blocks).sum::<f64>() * 4096.0 / f64::from(1 << 20)
}

fn table(title: &str, runs: &[Measured], key: Key) -> Panel {
    let rows = runs.iter().flat_map(|run| &run.result.ledger).filter(|row| row.station == FLASH);
    let mut names: Vec<&str> = rows.map(key).collect();
    names.sort_unstable();
    names.dedup();
    let group = |name: &str, is_counted: &dyn Fn(&LedgerRow) -> bool| {
        (name.to_string(), runs.iter().map(|run| Some(mib(run, is_counted))).collect::<Vec<_>>())
    };
    let named = names.iter().map(|name| group(name, &|row| key(row) == *name));
    panel(title, &Journal::NAMES, named.chain([group("all", &|_| true)]).collect())
}
