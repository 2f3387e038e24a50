//! The matrix as data: journals, loads and drives.

use crate::lab::Lab;
use flashpath_sweep::WorkloadRequest;

/// A journal of `ext`.
#[derive(Clone, Copy, Debug)]
pub struct Journal {
    pub name: &'static str,
    /// The options of `ext`.
    pub options: &'static str,
    /// The device beside the drive, if there is one.
    pub beside: Beside,
    /// It needs a drive that keeps order: one with a write buffer.
    pub is_in_order: bool,
}

/// The second device of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// A device of blocks for the journal.
    Blocks,
    /// Memory, of this model.
    Memory(&'static str),
}

const fn inline(name: &'static str, options: &'static str) -> Journal {
    Journal { name, options, beside: Beside::Nothing, is_in_order: false }
}

const fn in_memory(name: &'static str, model: &'static str) -> Journal {
    Journal { name, options: "data=journal", beside: Beside::Memory(model), is_in_order: false }
}

/// All journals.
pub const JOURNALS: [Journal; 14] = [
    inline("writeback", "data=writeback"),
    inline("ordered", "data=ordered"),
    inline("journal", "data=journal"),
    inline("journal, delayed", "data=journal,log-data=delayed"),
    inline("journal, overwrites", "data=journal,log-data=overwrites"),
    Journal { beside: Beside::Blocks, ..inline("own device", "data=ordered") },
    in_memory("memory", "dram"),
    in_memory("CXL flash", "cxl-flash"),
    inline("monitor", "journal=vmm"),
    inline("fast commits", "fast-commit=on"),
    Journal { is_in_order: true, ..inline("barrier", "flush=barrier") },
    Journal { is_in_order: true, ..inline("barrier, fast commits", "flush=barrier,fast-commit=on") },
    Journal { is_in_order: true, ..inline("optimistic", "flush=optimistic,data=journal") },
    Journal { is_in_order: true, ..inline("optimistic, delayed", "flush=optimistic,data=journal,log-data=delayed") },
];

/// The names in figures, in the order of [`JOURNALS`].
pub fn names() -> Vec<String> {
    JOURNALS.iter().map(|journal| journal.name.to_string()).collect()
}

/// The journal of this name.
pub fn named(name: &str) -> &'static Journal {
    JOURNALS.iter().find(|journal| journal.name == name).expect("it is in the table")
}

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drive {
    /// A page-level layer on flash of three bits a cell, with a volatile write buffer.
    Tlc,
    /// Zones, with conventional ones for the journal.
    Zoned,
    /// The SFS paper's SSD-M.
    SsdM,
}

impl Drive {
    pub const ALL: [Drive; 3] = [Drive::Tlc, Drive::Zoned, Drive::SsdM];

    pub fn name(self) -> &'static str {
        match self {
            Drive::Tlc => "page-level TLC",
            Drive::Zoned => "ZNS with dm-zoned",
            Drive::SsdM => "SSD-M of the SFS paper",
        }
    }

    /// The path of the drive. `is_large`: for a recording, whose files have a size of their own at every scale.
    pub fn path(self, lab: &Lab, is_large: bool) -> String {
        match self {
            Drive::Tlc => tlc(if is_large { "2G".to_string() } else { size(lab, TLC_BYTES) }, ",dies=2", "4M", "660us"),
            Drive::Zoned => "dm-zoned:journal-zone/conv:size=1G+zns:size=4G".to_string(),
            Drive::SsdM => "fast:op=10%/nand:preset=ssd-m,size=2G".to_string(),
        }
    }

    /// The path of a volume with this journal; `None` if the drive can have none.
    pub fn volume(self, lab: &Lab, journal: &Journal, is_large: bool) -> Option<String> {
        let drive = self.path(lab, is_large);
        // dm-zoned takes all devices of blocks that follow, and keeps no order.
        if self == Drive::Zoned && journal.beside == Beside::Blocks || journal.is_in_order && self != Drive::Tlc {
            return None;
        }
        let beside = match journal.beside {
            Beside::Nothing => String::new(),
            Beside::Blocks => format!("+conv:size={}", size(lab, JOURNAL_BYTES)),
            Beside::Memory(model) => format!("+nvm:size={},model={model}", size(lab, MEMORY_BYTES)),
        };
        Some(format!("ext:{}/{drive}{beside}", journal.options))
    }
}

/// The flash of the TLC drive, a journal's device, and memory, at full scale.
const TLC_BYTES: u64 = 4 << 30;
const JOURNAL_BYTES: u64 = 512 << 20;
const MEMORY_BYTES: u64 = 1 << 30;

fn size(lab: &Lab, bytes: u64) -> String {
    // The least: a drive has blocks enough on each die, and a region slots enough in each partition.
    let least = (1.0 / 16.0 / lab.scale).max(1.0);
    flashpath::units::format_size(((lab.scaled(bytes, 1 << 20) as f64 * least) as u64) >> 20 << 20)
}

/// The TLC drive of this size, with these dies, this buffer and this time of a program.
pub fn tlc(size: String, dies: &str, buffer: &str, program: &str) -> String {
    format!(
        "page:op=30%,buffer={buffer},buffer-policy=volatile/nand:channels=4{dies},page=16K,unit=4K,cells=tlc,\
         pages-per-block=15,read=50us,program={program},erase=3500us,size={size}"
    )
}

/// The size of a TLC drive with more dies.
pub fn tlc_size(lab: &Lab) -> String {
    size(lab, 2 * TLC_BYTES)
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Varmail,
    Tokubench,
    Dbench,
    /// Recorded calls, in this file of the folder of `--traces`.
    Recorded(&'static str, &'static str),
}

/// Numbers of simulated threads.
pub const THREADS: [u64; 4] = [1, 4, 16, 64];
/// Those of the tables with one number.
pub const MOST: u64 = 16;

pub const SQLITE: Load = Load::Recorded("SQLite, recorded", "sqlite.fpcalls");
pub const TPCC: Load = Load::Recorded("TPC-C on PostgreSQL, recorded", "tpcc.fpcalls");

impl Load {
    pub fn name(self) -> &'static str {
        match self {
            Load::Varmail => "Varmail",
            Load::Tokubench => "Tokubench",
            Load::Dbench => "dbench-like",
            Load::Recorded(name, _) => name,
        }
    }

    pub fn is_recorded(self) -> bool {
        matches!(self, Load::Recorded(..))
    }

    /// The expression with this text for the number of threads: a number, or several in braces.
    pub fn expression(self, lab: &Lab, threads: &str) -> String {
        let count = |all: u64| lab.scaled_count(all).max(64);
        match self {
            Load::Varmail => format!("varmail:threads={threads},loops={},files=2000", count(128_000)),
            Load::Tokubench => format!("tokubench:threads={threads},files={}", count(128_000)),
            Load::Dbench => format!("dbench:threads={threads},loops={},files=400", count(160_000)),
            Load::Recorded(_, file) => file.to_string(),
        }
    }

    /// The request to a sweep; `None` if the recording is not there.
    pub fn request(self, lab: &Lab, threads: &str) -> Option<WorkloadRequest> {
        match self {
            Load::Recorded(_, name) => {
                lab.kept(name).map(|file| WorkloadRequest::Recording { file, name: Some(name.to_string()) })
            }
            _ => Some(WorkloadRequest::Expression(self.expression(lab, threads))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_have_names_of_their_own() {
        let mut names = names();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), JOURNALS.len());
        assert_eq!(named("ordered").options, "data=ordered");
    }
}
