//! Journals of `ext` beside each other, of no paper: every journal, with the loads of the papers, by the number of threads and on three
//! drives; and the published factors of the journals that came since.
//!
//! | file | role |
//! |---|---|
//! | `matrix` | journals, loads and drives, as data |
//! | `runs` | a sweep for each drive and load, and what is taken of a run |
//! | `figures` | the map of bytes against latency, and the tables |
//! | `claims` | published factors, and the causes of ours |

mod claims;
mod figures;
mod matrix;
mod runs;

use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::Reproduction;
use matrix::{Drive, JOURNALS, Load, MOST, SQLITE, TPCC};
use runs::Runs;
use std::collections::BTreeMap;

/// The figures.
pub const FIGURES: &[&str] = &[
    "journals-map",
    "journals-varmail",
    "journals-tokubench",
    "journals-dbench",
    "journals-recorded",
    "journals-drives",
    "journals-factors",
    claims::ORDER,
];

/// The loads by threads.
const LOADS: [Load; 3] = [Load::Varmail, Load::Tokubench, Load::Dbench];
/// The drives beside the first.
const OTHERS: [Drive; 2] = [Drive::Zoned, Drive::SsdM];

/// The runs that figures share, each made once.
struct Made<'l> {
    lab: &'l Lab<'l>,
    runs: BTreeMap<(Drive, &'static str), Runs>,
}

impl Made<'_> {
    /// Makes the runs of a load on a drive, unless they were made.
    fn make(&mut self, drive: Drive, load: Load) -> Result<(), ReproduceError> {
        if !self.runs.contains_key(&(drive, load.name())) {
            let runs = Runs::make(self.lab, drive, load)?;
            self.runs.insert((drive, load.name()), runs);
        }
        Ok(())
    }

    fn get(&self, drive: Drive, load: Load) -> &Runs {
        &self.runs[&(drive, load.name())]
    }

    /// The runs of these loads on these drives.
    fn all(&mut self, pairs: &[(Load, Drive)]) -> Result<Vec<(Load, Drive, &Runs)>, ReproduceError> {
        for (load, drive) in pairs {
            self.make(*drive, *load)?;
        }
        Ok(pairs.iter().map(|(load, drive)| (*load, *drive, self.get(*drive, *load))).collect())
    }
}

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let mut made = Made { lab, runs: BTreeMap::new() };
    let mut all = Vec::new();
    for name in figures {
        all.push(match *name {
            "journals-map" => {
                let runs = made.all(&Drive::ALL.map(|drive| (Load::Varmail, drive)))?;
                let runs: Vec<(Drive, &Runs)> = runs.into_iter().map(|(_, drive, runs)| (drive, runs)).collect();
                figures::map(&runs)
            }
            "journals-varmail" => {
                made.make(Drive::Tlc, Load::Varmail)?;
                figures::by_threads(name, Load::Varmail, made.get(Drive::Tlc, Load::Varmail))
            }
            "journals-tokubench" => {
                made.make(Drive::Tlc, Load::Tokubench)?;
                figures::by_threads(name, Load::Tokubench, made.get(Drive::Tlc, Load::Tokubench))
            }
            "journals-dbench" => {
                made.make(Drive::Tlc, Load::Dbench)?;
                figures::by_threads(name, Load::Dbench, made.get(Drive::Tlc, Load::Dbench))
            }
            "journals-recorded" => {
                // TPC-C writes gigabytes at every scale: one drive has to do.
                let sqlite = Drive::ALL.map(|drive| (SQLITE, drive));
                figures::recorded(&made.all(&[&sqlite[..], &[(TPCC, Drive::Tlc)]].concat())?)
            }
            "journals-drives" => {
                let pairs = LOADS.map(|load| OTHERS.map(|drive| (load, drive)));
                figures::by_drive(&made.all(pairs.as_flattened())?)
            }
            "journals-factors" => {
                made.make(Drive::Tlc, Load::Varmail)?;
                claims::fast_commits(made.get(Drive::Tlc, Load::Varmail))
            }
            claims::ORDER => claims::order(lab)?,
            name => unreachable!("{name} is not in FIGURES"),
        });
    }
    Ok(Reproduction {
        paper: "journals".to_string(),
        title: "Journals of ext beside each other".to_string(),
        command: "flashpath reproduce journals".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(lab),
        figures: all,
    })
}

fn conditions(lab: &Lab) -> Vec<(String, String)> {
    let condition = |name: &str, value: String| (name.to_string(), value);
    let journals = JOURNALS.iter().filter_map(|journal| {
        let path = Drive::Tlc.volume(lab, journal, false)?;
        let drive = Drive::Tlc.path(lab, false);
        Some(format!("{}: `{}`", journal.name, path.replace(&drive, "DRIVE")))
    });
    let drives = Drive::ALL.map(|drive| format!("{}: `{}`", drive.name(), drive.path(lab, false)));
    vec![
        condition("journals", journals.collect::<Vec<_>>().join("; ")),
        condition("drives", format!("{}; recordings on a TLC drive of 2G", drives.join("; "))),
        condition(
            "loads",
            LOADS.map(|load| format!("`{}`", load.expression(lab, &MOST.to_string()))).join(", "),
        ),
        condition(
            "simulated",
            "each thread has a core and a clock of its own, with the CPU times of the program's table; drives are new when a run begins"
                .to_string(),
        ),
        condition(
            "not compared",
            "parallel commits, of which docs/decisions/0038-parallel-commits.md has the measurements; transactions by directory; checksums of data outside of the log"
                .to_string(),
        ),
    ]
}
