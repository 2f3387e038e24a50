//! The energy of operations: the power of a plane or a channel while it does one, times how long that takes.
//!
//! ```text
//! energy = reads x read-power x read + programs x program-power x program + erases x erase-power x erase
//!        + pages transferred x transfer-power x transfer + commands x transfer-power x command
//!        + dies x idle-power x simulated time
//! ```
//!
//! Times are those of each kind of page. The operations are counted by their kinds where pages have any, and follow from the
//! counts of pages elsewhere: a drive without `energy` does nothing for it, and one with it nothing at an operation.
//!
//! | default | from |
//! |---|---|
//! | 82.5 mW for reads, programs and erases | 25 mA at 3.3 V, the defaults of SimpleSSD (2be37161, `pal/config.cc`) |
//! | 16.5 mW for transfers, 0.033 mW for an idle die | 5 mA of its bus and 10 uA of standby at 3.3 V (the same) |
//! | with `preset=vma` 30 mW and 0.03 mW | 10 mA and 10 uA at 3 V: typical currents of Numonyx NAND01G-B2B and NAND02G-B2C, large-page SLC of that time (table 23 of their data sheet) |

use super::cells::{Cells, KindTimes, PageKind, WordLinePrograms};
use super::geometry::Geometry;
use super::timing::{CommandTimes, Latencies};
use crate::device::{EnergyAccount, OperationEnergy};
use crate::expression::{ExpressionError, OptionKind, Settings, Values};

/// The greatest power of an option, in milliwatts.
const MOST_MW: f64 = 1e6;

pub(super) const ENERGY: OptionKind = OptionKind {
    name: "energy",
    values: Values::Switch,
    default: "off",
    about: "on: results have the energy of reads, programs, erases, transfers and idle dies; needs times",
};
pub(super) const READ_POWER: OptionKind = OptionKind {
    name: "read-power",
    values: Values::Real(0.0, MOST_MW),
    default: "82.5",
    about: "milliwatts of a plane that reads a page; needs energy",
};
pub(super) const PROGRAM_POWER: OptionKind = OptionKind {
    name: "program-power",
    values: Values::Real(0.0, MOST_MW),
    default: "82.5",
    about: "milliwatts of a plane that programs; needs energy",
};
pub(super) const ERASE_POWER: OptionKind = OptionKind {
    name: "erase-power",
    values: Values::Real(0.0, MOST_MW),
    default: "82.5",
    about: "milliwatts of a plane that erases a block; needs energy",
};
pub(super) const TRANSFER_POWER: OptionKind = OptionKind {
    name: "transfer-power",
    values: Values::Real(0.0, MOST_MW),
    default: "16.5",
    about: "milliwatts of a channel that transfers, with both of its ends; needs energy",
};
pub(super) const IDLE_POWER: OptionKind = OptionKind {
    name: "idle-power",
    values: Values::Real(0.0, MOST_MW),
    default: "0.033",
    about: "milliwatts of a die at all times, beside its operations; needs energy",
};

/// The options that need `energy`.
const OTHERS: [&str; 5] = ["read-power", "program-power", "erase-power", "transfer-power", "idle-power"];

/// Nanoseconds at so many milliwatts, in joules.
const JOULES_OF_MW_NS: f64 = 1e-12;

/// Operations on pages of flash by kind, since the flash was new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OperationCounts {
    /// Reads of pages of flash.
    pub reads: [u64; PageKind::COUNT],
    /// Pages of the mapping that these reads transferred.
    pub units_read: u64,
    /// Programs of what a kind says, a page of flash or a word line.
    pub programs: [u64; PageKind::COUNT],
}

/// The powers of a drive, and the times that they take.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergySettings {
    read_mw: f64,
    program_mw: f64,
    erase_mw: f64,
    transfer_mw: f64,
    idle_mw: f64,
    latencies: Latencies,
    times: KindTimes,
    /// The kinds of pages that a drive with these cells reads, and of what it programs.
    reads: Vec<PageKind>,
    programs: Vec<PageKind>,
    bits: u32,
}

impl EnergySettings {
    /// Reads the options; `None` with `energy=off`. Errors point at an option that would have no effect.
    pub(super) fn read(
        settings: &Settings,
        latencies: Option<Latencies>,
        cells: Option<&Cells>,
    ) -> Result<Option<EnergySettings>, ExpressionError> {
        if !settings.switch("energy") {
            let Some(name) = OTHERS.into_iter().find(|name| settings.is_given(name)) else { return Ok(None) };
            let message = format!("{name} has no effect without energy");
            return Err(settings.error(name, message, "add energy=on, or remove it".to_string()));
        }
        let Some(latencies) = latencies else {
            let message = "without times an operation takes no energy".to_string();
            return Err(settings.error("energy", message, "remove timing=off, or energy".to_string()));
        };
        let [read_mw, program_mw, erase_mw, transfer_mw, idle_mw] = OTHERS.map(|name| settings.real(name));
        let of_line = |cells: &Cells| (0..cells.bits).map(PageKind::of_word_line).collect::<Vec<_>>();
        let (reads, programs) = match cells {
            None => (vec![PageKind::ALIKE], vec![PageKind::ALIKE]),
            Some(cells) => {
                let programs = match cells.programs {
                    WordLinePrograms::ByPage => of_line(cells),
                    WordLinePrograms::OneShot => vec![PageKind::WORD_LINE],
                    WordLinePrograms::TwoPasses => vec![PageKind::WORD_LINE, PageKind::FINE],
                };
                let with_slc = |kinds: Vec<PageKind>| kinds.into_iter().chain([PageKind::SLC]).collect();
                (with_slc(of_line(cells)), with_slc(programs))
            }
        };
        Ok(Some(EnergySettings {
            read_mw,
            program_mw,
            erase_mw,
            transfer_mw,
            idle_mw,
            latencies,
            times: cells.map_or_else(|| latencies.of_kinds(), Cells::times),
            reads,
            programs,
            bits: cells.map_or(1, |cells| cells.bits),
        }))
    }

    /// The options without effect, given the others.
    pub(super) fn meaningless(settings: &Settings) -> Vec<&'static str> {
        match settings.switch("energy") {
            true => Vec::new(),
            // The switch itself is not written where it is off: paths of earlier results stay as they are.
            false => OTHERS.into_iter().chain(["energy"]).collect(),
        }
    }

    /// The energy of these operations and erases. Each list of a drive has the same operations, in the same order.
    pub(super) fn account(&self, geometry: &Geometry, counts: &OperationCounts, erases: u64) -> EnergyAccount {
        let of = |mw: f64, ns: u64| mw * ns as f64 * JOULES_OF_MW_NS;
        let times = |kind: PageKind| self.times[kind.index()];
        let operation =
            |operation, of: String, count, joules_each| OperationEnergy { operation, of, count, joules_each };
        let reads = self.reads.iter().map(|&kind| {
            let joules = of(self.read_mw, times(kind).read_ns);
            operation("read", self.name(kind), counts.reads[kind.index()], joules)
        });
        let programs = self.programs.iter().map(|&kind| {
            let joules = of(self.program_mw, times(kind).program_ns);
            operation("program", self.name(kind), counts.programs[kind.index()], joules)
        });
        let programmed: u64 =
            self.programs.iter().map(|&kind| self.pages_of(kind) * counts.programs[kind.index()]).sum();
        let units = u64::from(geometry.pages_per_program);
        let of_channel = |ns: u64| of(self.transfer_mw, ns);
        let read_transfer = of_channel(self.latencies.read_transfer_ns) / units as f64;
        let program_transfer = of_channel(self.latencies.program_transfer_ns) / units as f64;
        let erase = of(self.erase_mw, self.latencies.erase_ns);
        let others = [
            operation("erase", "block".to_string(), erases, erase),
            operation("transfer", "unit read".to_string(), counts.units_read, read_transfer),
            operation("transfer", "unit programmed".to_string(), programmed * units, program_transfer),
        ];
        let CommandTimes { read_ns, program_ns, erase_ns } = self.latencies.command;
        let commands = [
            ("read", self.reads.iter().map(|kind| counts.reads[kind.index()]).sum(), read_ns),
            ("page programmed", programmed, program_ns),
            ("erase", erases, erase_ns),
        ];
        let commands = commands.into_iter().filter(|(.., ns)| *ns > 0);
        let commands = commands.map(|(of, count, ns)| operation("command", of.to_string(), count, of_channel(ns)));
        EnergyAccount {
            operations: reads.chain(programs).chain(others).chain(commands).collect(),
            idle_watts: self.idle_mw / 1e3 * f64::from(geometry.channels * geometry.dies),
        }
    }

    /// Pages of flash that a program of this kind transfers.
    fn pages_of(&self, kind: PageKind) -> u64 {
        self.times[kind.index()].pages.into()
    }

    /// The name of a kind: `page`, `tlc page 1`, `slc page`, `word line`.
    fn name(&self, kind: PageKind) -> String {
        let cells = super::cell_name(self.bits);
        match kind {
            PageKind::ALIKE => "page".to_string(),
            PageKind::SLC => "page in SLC mode".to_string(),
            PageKind::WORD_LINE => format!("{cells} word line"),
            PageKind::FINE => format!("{cells} word line, fine"),
            PageKind(place) => format!("{cells} page {place} of {}", self.bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::nand::NandSettings;
    use crate::expression::parse_term;

    fn settings(text: &str) -> Result<NandSettings, ExpressionError> {
        NandSettings::read(&parse_term(text).unwrap())
    }

    #[test]
    fn the_energy_of_an_operation_is_its_power_times_its_time() {
        let flash =
            settings("nand:size=64M,page=16K,unit=4K,dies=2,energy=on,read=50us,transfer=40us,idle-power=0.5").unwrap();
        let counts = OperationCounts { reads: [3; PageKind::COUNT], units_read: 7, programs: [2; PageKind::COUNT] };
        let account = flash.energy.unwrap().account(&flash.geometry, &counts, 5);
        let found: Vec<_> =
            account.operations.iter().map(|of| (of.operation, of.count, of.joules_each * 1e9)).collect();
        let expected = [
            ("read", 3, 82.5 * 50.0),
            ("program", 2, 82.5 * 500.0),
            ("erase", 5, 82.5 * 3000.0),
            ("transfer", 7, 16.5 * 10.0),
            ("transfer", 8, 16.5 * 10.0),
        ];
        for ((name, count, nj), (expected_name, expected_count, expected_nj)) in found.into_iter().zip(expected) {
            assert_eq!((name, count), (expected_name, expected_count));
            assert!((nj - expected_nj).abs() < 1e-6, "{name}: {nj} nJ, not {expected_nj}");
        }
        assert_eq!((account.operations.len(), account.idle_watts), (5, 0.001), "two dies at half a milliwatt");
    }

    #[test]
    fn pages_of_a_word_line_have_an_energy_each_and_a_whole_line_one() {
        let kinds = |options: &str| {
            let flash = settings(&format!("nand:size=64M,pages-per-block=12,cells=tlc,energy=on{options}")).unwrap();
            let account = flash.energy.unwrap().account(&flash.geometry, &OperationCounts::default(), 0);
            let names =
                account.operations.iter().map(|of| format!("{} {}: {:.0}", of.operation, of.of, of.joules_each * 1e9));
            names.collect::<Vec<_>>()
        };
        let by_page = kinds(",read=50us+60us+70us,program=1ms,slc-read=20us,slc-program=100us");
        assert_eq!(
            by_page[..4],
            [
                "read tlc page 1 of 3: 4125",
                "read tlc page 2 of 3: 4950",
                "read tlc page 3 of 3: 5775",
                "read page in SLC mode: 1650"
            ]
        );
        assert_eq!(by_page[6..8], ["program tlc page 3 of 3: 82500", "program page in SLC mode: 8250"]);
        let two_passes = kinds(",program=1ms+2ms,program-passes=2");
        assert_eq!(two_passes[4..6], ["program tlc word line: 82500", "program tlc word line, fine: 165000"]);
    }

    #[test]
    fn a_power_without_energy_and_energy_without_times_are_refused() {
        for (text, said) in [
            ("nand:read-power=50", "read-power has no effect without energy"),
            ("nand:energy=on,timing=off", "without times an operation takes no energy"),
            ("nand:energy=on,idle-power=-1", "idle-power"),
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.message.contains(said), "{text}: {error}");
        }
        assert!(settings("nand:preset=vma").unwrap().energy.is_none(), "a preset's powers do not turn it on");
        let written = settings("nand:preset=vma,energy=on").unwrap().written_out;
        assert!(written.contains("energy=on,read-power=30,"), "{written}");
        assert!(!settings("nand").unwrap().written_out.contains("power"), "paths of earlier results stay as they are");
    }
}
