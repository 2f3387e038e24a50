//! The map of the factor: O-JFS and our scheme over N-JFS by threads, what the log holds, the size of the journal and the drive.

use super::journals::{Journal, Logs, Sizes, Stack};
use super::loads::Load;
use super::measured::Measured;
use super::simulated::{DRIVE, FAST_DRIVE, Wanted, simulate};
use super::{at_least, panel, ratio};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Figure, Panel};
use flashpath::task::CpuTable;
use flashpath::units::format_size;

/// Simulated threads, each with a core.
const THREADS: [u64; 3] = [1, 16, 64];
/// Sizes of the journal, as multiples of the figures'.
const JOURNALS: [u64; 2] = [1, 4];
const DRIVES: [(&str, &str); 2] = [("drive of the figures", DRIVE), ("drive without times", FAST_DRIVE)];
/// The factor is over the first.
const COMPARED: [Journal; 3] = [Journal::NJfs, Journal::OJfs, Journal::Ours];
/// The paper's factor of Varmail.
const PAPERS: f64 = 5.09;

/// A place in the map.
#[derive(Clone, Copy)]
struct Point {
    threads: u64,
    logs: Logs,
    sizes: Sizes,
    drive: (&'static str, &'static str),
}

impl Point {
    fn all(lab: &Lab) -> Vec<Point> {
        let sizes = Sizes::of(lab);
        let sized = JOURNALS.map(|times| {
            let journal_bytes = (times * sizes.journal_bytes).min(1 << 30);
            Sizes { journal_bytes, volume_bytes: sizes.volume_bytes.max(4 * journal_bytes), ..sizes }
        });
        let mut all = Vec::new();
        for logs in Logs::ALL {
            for drive in DRIVES {
                for sizes in sized {
                    all.extend(THREADS.map(|threads| Point { threads, logs, sizes, drive }));
                }
            }
        }
        all
    }

    fn name(&self) -> String {
        let Point { threads, logs, sizes, drive } = self;
        format!("{}, {}, journal of {}, {threads} threads", logs.name(), drive.0, format_size(sizes.journal_bytes))
    }

    fn wanted(&self, lab: &Lab, load: Load) -> [Wanted; COMPARED.len()] {
        COMPARED.map(|journal| Wanted {
            path: Stack::of(journal).of_logs(self.logs).simulated(&self.sizes, self.drive.1),
            expression: load.expression(lab, self.threads),
            cpu: CpuTable::DEFAULT,
        })
    }
}

/// Makes the figure.
pub fn figure(lab: &Lab) -> Result<Figure, ReproduceError> {
    let points = Point::all(lab);
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for load in [Load::Varmail, Load::Tokubench] {
        let wanted: Vec<Wanted> = points.iter().flat_map(|point| point.wanted(lab, load)).collect();
        let made = simulate(lab, &wanted)?;
        let rows: Vec<&[Measured]> = made.chunks(COMPARED.len()).collect();
        let over = |row: &[Measured], ours: usize| ratio(Some(&row[ours]), Some(&row[0]));
        let groups = points.iter().zip(&rows).map(|(point, row)| (point.name(), vec![over(row, 1), over(row, 2)]));
        let groups: Vec<_> = groups.collect();
        let greatest = |ours: usize| {
            let factors = groups.iter().filter_map(|(name, values)| Some((name, values[ours]?)));
            factors.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(name, factor)| (name.clone(), factor))
        };
        for (ours, name) in ["O-JFS", "O-JFS, our scheme,"].into_iter().enumerate() {
            let Some((place, factor)) = greatest(ours) else { continue };
            let says = format!("{}: the greatest factor of {name} over N-JFS in the map", load.name());
            let because = format!("it is at: {place}. The log of our N-JFS takes less time than the paper's");
            claims.push(at_least(&says, "IV, sought: where is it so?", PAPERS, Some(factor), because));
        }
        let title = format!("{}: over N-JFS, simulated", load.name());
        let panel = panel(&title, &["O-JFS", "O-JFS, our scheme"], groups);
        panels.push(Panel { axis: Some("where".to_string()), ..panel });
    }
    Ok(Figure {
        name: "nvm-regime".to_string(),
        title: "Where a journal in partitioned memory is faster".to_string(),
        unit: "throughput over that of N-JFS".to_string(),
        about: "Each row is a place in the map; a factor above 1 is a place where partitioned memory wins. Where the journal holds \
                all that a run changes, N-JFS writes nothing home and, without syncs, commits little of it within the run; O-JFS \
                has stored all of it when a call returns. The paper's N-JFS does 369 MB/s of Varmail with 16 threads, ours \
                several times as much: the factor is as much N-JFS's as O-JFS's."
            .to_string(),
        panels,
        claims,
        made_by: None,
    })
}
