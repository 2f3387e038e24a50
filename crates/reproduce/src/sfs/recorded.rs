//! Figures 5, 6 and 8 with recorded calls of real programs, replayed on sfs: `scripts/record-loads` makes the recordings.
//!
//! A recording is repeated, with its files beside a cold one, until as much has been written as in the paper's runs. It runs with
//! the syncs of its programs, each of which is a checkpoint in the paper's SFS, and without them.

use super::devices::M;
use super::volume::{DEVICE, Full, LEAST, LFS_CB, Measured, Reading, SEGMENTS, SFS, path_of, side_by_side};
use super::{claim, exactly, panel};
use crate::ReproduceError;
use crate::lab::{Lab, Replayed};
use flashpath::report::figure::{Claim, Figure, Panel};
use flashpath::run::{Path, simulated_space};
use flashpath::workload::files::recorded::{RecordedCalls, Replays};
use std::collections::BTreeMap;

/// The figures, one for each of the paper's.
pub const GROUPS: &str = "sfs-fig5-recorded";
pub const QUANTIZERS: &str = "sfs-fig6-recorded";
pub const COST: &str = "sfs-fig8-recorded";

/// The recordings: names and files in the folder of --traces.
const RECORDINGS: [(&str, &str); 3] =
    [("TPC-C on PostgreSQL", "tpcc.fpcalls"), ("a desktop", "desktop.fpcalls"), ("a mail server", "mail.fpcalls")];
/// The place of the paper's TPC-C among them.
const TPCC: usize = 0;
/// The size of the device over the most bytes of a recording's files.
const DEVICE_OVER_FILES: u64 = 4;
const HIGH: f64 = 0.85;
const UTILIZATIONS: [f64; 3] = [0.5, 0.7, 0.9];
const FULLEST: usize = UTILIZATIONS.len() - 1;

/// A run.
#[derive(Clone, Debug)]
struct Wanted {
    /// The place among the recordings.
    load: usize,
    with_syncs: bool,
    options: String,
    full: Full,
}

impl Wanted {
    fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// The recordings, and all runs made so far.
pub struct Recorded<'a> {
    lab: &'a Lab<'a>,
    /// None where a recording is not there.
    calls: Vec<Option<RecordedCalls>>,
    made: BTreeMap<String, Measured>,
}

impl<'a> Recorded<'a> {
    /// Reads the recordings that are there.
    pub fn new(lab: &'a Lab<'a>) -> Result<Recorded<'a>, ReproduceError> {
        let read = |(name, file): (&str, &str)| match lab.kept(file) {
            Some(file) => Ok(Some(RecordedCalls::open(&file)?)),
            None => {
                lab.progress(&format!("no recording {file} of {name}: the figures are made without it"));
                Ok(None)
            }
        };
        let calls = RECORDINGS.into_iter().map(read).collect::<Result<_, ReproduceError>>()?;
        Ok(Recorded { lab, calls, made: BTreeMap::new() })
    }

    /// Makes the missing runs; returns the wanted ones in order.
    fn measure(&mut self, wanted: &[Wanted]) -> Result<Vec<Measured>, ReproduceError> {
        let mut missing: BTreeMap<String, &Wanted> = wanted.iter().map(|one| (one.key(), one)).collect();
        missing.retain(|key, _| !self.made.contains_key(key));
        let runs: Vec<(String, &Wanted)> = missing.into_iter().collect();
        let results = side_by_side(&runs, |(_, one)| self.run(one))?;
        self.made.extend(runs.into_iter().map(|(key, _)| key).zip(results));
        Ok(wanted.iter().map(|one| self.made[&one.key()].clone()).collect())
    }

    fn run(&self, wanted: &Wanted) -> Result<Measured, ReproduceError> {
        let Wanted { load, with_syncs, options, full } = wanted;
        let calls = self.calls[*load].as_ref().expect("only recordings that are there are wanted");
        let bytes = calls.bytes();
        let step = SEGMENTS * 4096;
        let device = (DEVICE_OVER_FILES * bytes.most).max(LEAST).div_ceil(step) * step;
        let path = Path::read(&path_of(options, device, "timing=off"))?;
        let room = simulated_space(&path, self.lab.seed)?.blocks * 4096;
        let live = match full.of {
            Reading::Volume => (room as f64 * full.share) as u64,
            Reading::Device => super::volume::live_bytes(device, full.share),
        };
        let (aging, measured) = full.of.amounts();
        let times = |amount: u64| {
            let amount = amount as f64 * (device as f64 / DEVICE as f64);
            (amount / bytes.written.max(1) as f64).ceil().max(1.0) as u32
        };
        let replays = Replays { uncounted: times(aging), counted: times(measured) };
        let name = RECORDINGS[*load].0;
        self.lab.progress(&format!("{name}, {}, on {}, live: {}", syncs(*with_syncs), path.text, full.about()));
        let replayed =
            Replayed { calls, replays, dummy: live.saturating_sub(bytes.most) & !4095, with_syncs: *with_syncs };
        Ok(Measured::of(&self.lab.replay_calls(&path, &replayed)?, None))
    }

    /// The write costs of each recording that is there, with and without syncs, with each of the options.
    fn costs(&mut self, options: &[&str], fulls: &[Full]) -> Result<Vec<Costs>, ReproduceError> {
        let mut all = Vec::new();
        for load in (0..RECORDINGS.len()).filter(|load| self.calls[*load].is_some()).collect::<Vec<_>>() {
            for with_syncs in [true, false] {
                let of = |full: &Full| {
                    let wanted =
                        |options: &&str| Wanted { load, with_syncs, options: options.to_string(), full: *full };
                    options.iter().map(wanted).collect::<Vec<_>>()
                };
                let measured = self.measure(&fulls.iter().flat_map(of).collect::<Vec<_>>())?;
                all.push(Costs { load, with_syncs, options: options.len(), measured });
            }
        }
        Ok(all)
    }
}

fn syncs(with_syncs: bool) -> &'static str {
    if with_syncs { "with its syncs" } else { "without syncs" }
}

/// The runs of one recording.
struct Costs {
    load: usize,
    with_syncs: bool,
    /// The number of options in a row.
    options: usize,
    /// A row for each utilization.
    measured: Vec<Measured>,
}

impl Costs {
    fn name(&self) -> String {
        format!("{} {}", RECORDINGS[self.load].0, syncs(self.with_syncs))
    }

    /// The write costs of a row.
    fn row(&self, at: usize) -> Vec<f64> {
        self.measured[at * self.options..][..self.options].iter().map(|one| M.write_cost(one)).collect()
    }

    fn is_tpcc(&self) -> bool {
        self.load == TPCC
    }
}

/// A panel of the row `at`, with a series for each recording.
fn of_options(title: &str, names: &[&str], costs: &[Costs], at: usize) -> Panel {
    let rows: Vec<Vec<f64>> = costs.iter().map(|one| one.row(at)).collect();
    let groups = names
        .iter()
        .enumerate()
        .map(|(place, name)| (name.to_string(), rows.iter().map(|row| Some(row[place])).collect::<Vec<Option<f64>>>()));
    panel(title, costs.iter().map(Costs::name).collect(), groups.collect())
}

fn figure(name: &str, title: &str, about: &str, panels: Vec<Panel>, claims: Vec<Claim>) -> Figure {
    Figure {
        name: name.to_string(),
        title: title.to_string(),
        unit: "write cost on SSD-M".to_string(),
        about: format!(
            "{about} Recorded by scripts/record-loads, repeated on a device of {DEVICE_OVER_FILES} times the files' size \
             (1 GiB at least), whose scale is the recording's."
        ),
        panels,
        claims,
        made_by: None,
    }
}

/// The claims of the paper's TPC-C for each reading and mode of syncs, or without a value where it is not recorded.
fn of_tpcc(costs: &[(Full, Vec<Costs>)], claims: impl Fn(&str, Option<&Costs>) -> Vec<Claim>) -> Vec<Claim> {
    let mut all = Vec::new();
    for (full, costs) in costs {
        let mut recorded: Vec<Option<&Costs>> = costs.iter().filter(|one| one.is_tpcc()).map(Some).collect();
        if recorded.is_empty() {
            recorded.push(None);
        }
        for one in recorded {
            let name = one.map_or(RECORDINGS[TPCC].0.to_string(), Costs::name);
            all.extend(claims(&format!("{name}, {}", full.about()), one));
        }
    }
    all
}

const READINGS: [Full; 2] = [Reading::Volume.at(HIGH), Reading::Device.at(HIGH)];
const LOAD: &str = "another database, size of its memory and length of the run: the paper gives none of them";
const SYNCS: &str = "each fsync is a checkpoint, whose rest is written regardless of groups";

fn because(costs: Option<&Costs>) -> &'static str {
    if costs.is_some_and(|costs| costs.with_syncs) { SYNCS } else { LOAD }
}

/// All options in both readings.
fn both(recorded: &mut Recorded, options: &[&str]) -> Result<Vec<(Full, Vec<Costs>)>, ReproduceError> {
    READINGS.into_iter().map(|full| Ok((full, recorded.costs(options, &[full])?))).collect()
}

/// Figure 5.
pub fn groups(recorded: &mut Recorded) -> Result<Figure, ReproduceError> {
    let options: Vec<String> = (1..=6).map(|groups| format!("{SFS},groups={groups}")).collect();
    let options: Vec<&str> = options.iter().enumerate().map(|(at, text)| if at == 3 { SFS } else { text }).collect();
    let costs = both(recorded, &options)?;
    let names = ["1", "2", "3", "4", "5", "6"];
    let claims = of_tpcc(&costs, |name, one| {
        let row = one.map(|one| one.row(0));
        let cost = |groups: usize| row.as_ref().map_or(f64::NAN, |row| row[groups - 1]);
        let why = because(one);
        let mut claims = vec![
            exactly(format!("{name}: write cost with one group"), "4.2", 5.98, cost(1), why),
            exactly(format!("{name}: write cost with four groups"), "4.2", 2.64, cost(4), why),
            exactly(format!("{name}: four groups over one"), "4.2, derived", 2.64 / 5.98, cost(4) / cost(1), why),
        ];
        for (text, groups) in [("two", 2), ("three", 3)] {
            claims.push(claim(
                format!("{name}: {text} groups over one"),
                "4.2: no significant reduction; 10 % counts as significant",
                Some(0.9),
                None,
                Some(cost(groups) / cost(1)),
                why,
            ));
        }
        claims.push(claim(
            format!("{name}: six groups over four"),
            "4.2: from five groups on the reduction is marginal; 10 % counts as marginal",
            Some(0.9),
            Some(1.1),
            Some(cost(6) / cost(4)),
            why,
        ));
        claims
    });
    let panels = costs.iter().map(|(full, costs)| of_options(&full.about(), &names, costs, 0)).collect();
    let about = "Cleaned by cost-hotness.";
    Ok(figure(GROUPS, "SFS figure 5 with recorded loads: number of groups", about, panels, claims)
        .over("number of groups"))
}

/// Figure 6.
pub fn quantizers(recorded: &mut Recorded) -> Result<Figure, ReproduceError> {
    let options = [SFS, "preset=paper,quantizer=equi-height", "preset=paper,quantizer=equi-width"];
    let costs = both(recorded, &options)?;
    let claims = of_tpcc(&costs, |name, one| {
        let row = one.map(|one| one.row(0));
        let over = |at: usize| row.as_ref().map_or(f64::NAN, |row| row[at] / row[0]);
        let place = "4.2, read as a ratio: \"135 % over\" and so on";
        vec![
            exactly(format!("{name}: equi-height over iterative"), place, 1.35, over(1), because(one)),
            exactly(format!("{name}: equi-width over iterative"), place, 1.92, over(2), because(one)),
        ]
    });
    let names = ["iterative", "equi-height", "equi-width"];
    let panels = costs.iter().map(|(full, costs)| of_options(&full.about(), &names, costs, 0)).collect();
    let about =
        "Four groups, cleaned by cost-hotness; equi-height divides the range of hotness, as in the paper's terms.";
    Ok(figure(QUANTIZERS, "SFS figure 6 with recorded loads: quantization", about, panels, claims).over("quantization"))
}

/// Figure 8.
pub fn write_cost(recorded: &mut Recorded) -> Result<Figure, ReproduceError> {
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for of in super::volume::READINGS {
        let costs = recorded.costs(&[SFS, LFS_CB], &UTILIZATIONS.map(|share| of.at(share)))?;
        for one in &costs {
            let title = format!("{}, {}", one.name(), of.name());
            let groups = UTILIZATIONS.iter().enumerate().map(|(at, share)| {
                (format!("{:.0} %", share * 100.0), one.row(at).into_iter().map(Some).collect::<Vec<_>>())
            });
            panels.push(panel(&title, vec!["SFS".to_string(), "LFS-CB".to_string()], groups.collect()));
            let over = |at: usize| one.row(at)[1] / one.row(at)[0];
            claims.push(claim(
                format!("{title}: write cost of LFS-CB over SFS at 90 %, over the same at 50 %"),
                "4.3.1: the gap grows with utilization",
                Some(1.0),
                None,
                Some(over(FULLEST) / over(0)),
                because(Some(one)),
            ));
            let shares = one.measured.iter().map(Measured::metadata_over_data);
            claims.push(claim(
                format!("{title}: metadata written over data written, in the run with most"),
                "4.1: 5 to 10 %",
                Some(0.05),
                Some(0.10),
                Some(shares.fold(0.0, f64::max)),
                because(Some(one)),
            ));
        }
        claims.extend(of_tpcc(&[(of.at(UTILIZATIONS[FULLEST]), costs)], |name, one| {
            let over = one.map_or(f64::NAN, |one| one.row(FULLEST)[0] / one.row(FULLEST)[1]);
            vec![exactly(format!("{name}: write cost of SFS over LFS-CB"), "4.3.1", 1.0 - 0.774, over, because(one))]
        }));
    }
    let about = "Section 4.1's cost, as in figure 8.";
    Ok(figure(COST, "SFS figure 8 with recorded loads: write cost by utilization", about, panels, claims)
        .over("utilization"))
}
