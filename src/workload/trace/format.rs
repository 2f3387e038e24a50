//! The formats of traces, by name.

use std::fmt;

/// A format of traces. `docs/traces.md` has a sample line of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// `time_us,rwbs,sector,nsect,comm`: block events of a kernel.
    Captured,
    /// `time_ns,device,action,offset_bytes,length_bytes,content,stream`: the output of `convert`.
    Operations,
    /// The same columns in a Parquet file.
    Parquet,
    /// MSR Cambridge (SNIA 388).
    Msr,
    /// The Storage Performance Council's format: UMass Financial and WebSearch.
    Spc,
    /// Alibaba's block traces of 2020.
    Alibaba,
    /// Tencent's cloud block storage traces.
    Tencent,
    /// SYSTOR'17: a virtual desktop infrastructure's LUNs (SNIA 4928).
    Systor,
    /// VMware's vscsiStats as CSV.
    VscsiCsv,
    /// VMware's vscsiStats, binary, version 1 (CloudPhysics).
    Vscsi,
    /// blkparse's output.
    Blkparse,
    /// blktrace's binary records, version 7 or 8, in either byte order.
    Blktrace,
    /// `block_bio_queue` lines of ftrace.
    Ftrace,
    /// fio's I/O log, version 2.
    FioV2,
    /// fio's I/O log, version 3.
    FioV3,
    /// FIU's traces with a hash per block (SNIA 391).
    Fiu,
    /// DiskSim's ASCII format: times are milliseconds.
    DiskSim,
    /// MQSim's format: times are nanoseconds.
    Mqsim,
    /// SSDsim's format: the layout of MQSim's.
    Ssdsim,
    /// The format of MiDAS (FAST'24).
    Midas,
    /// File calls of `strace -f -ttt -yy`: every file is a device.
    Strace,
    /// libCacheSim's oracleGeneral: recognised and refused, because it does not tell writes from reads.
    OracleGeneral,
    /// A filebench workload model: recognised and refused, because it is a program, not a trace.
    Filebench,
}

impl Format {
    /// All formats in the order of recognition: of two equally good matches, the first wins. A captured line ends in
    /// any text, so that stricter formats come before it.
    pub const ALL: [Format; 23] = [
        Format::Operations,
        Format::Parquet,
        Format::Blktrace,
        Format::Vscsi,
        Format::Msr,
        Format::Spc,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor,
        Format::VscsiCsv,
        Format::Captured,
        Format::Blkparse,
        Format::Ftrace,
        Format::FioV2,
        Format::FioV3,
        Format::Fiu,
        Format::Mqsim,
        Format::Ssdsim,
        Format::DiskSim,
        Format::Midas,
        Format::Strace,
        Format::OracleGeneral,
        Format::Filebench,
    ];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Format::Captured => "captured",
            Format::Operations => "operations",
            Format::Parquet => "parquet",
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Systor => "systor17",
            Format::VscsiCsv => "vscsi-csv",
            Format::Vscsi => "vscsi",
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace",
            Format::Ftrace => "ftrace",
            Format::FioV2 => "fio-v2",
            Format::FioV3 => "fio-v3",
            Format::Fiu => "fiu",
            Format::DiskSim => "disksim",
            Format::Mqsim => "mqsim",
            Format::Ssdsim => "ssdsim",
            Format::Midas => "midas",
            Format::Strace => "strace",
            Format::OracleGeneral => "oracle-general",
            Format::Filebench => "filebench",
        }
    }

    /// The format of this name.
    pub fn parse(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The reason, if the format is recognised but cannot be read.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            Format::OracleGeneral => Some(
                "an oracleGeneral trace (libCacheSim) has no field that tells reads from writes: \
                 it cannot drive a simulator of writes. Use the trace it was made from",
            ),
            Format::Filebench => Some(
                "a filebench workload model is a program, not a trace. \
                 Run it and capture the file system's writes",
            ),
            _ => None,
        }
    }

    /// True if the format records each request at several stages.
    pub(super) fn has_stages(self) -> bool {
        matches!(self, Format::Blkparse | Format::Blktrace)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A stage of a request in blktrace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// `Q`: queued by the file system or program. The process is known, and with it the journal.
    #[default]
    Queue,
    /// `D`: issued to the device, after merging.
    Issue,
    /// `C`: completed.
    Complete,
}

impl Stage {
    /// The letter in blkparse's output.
    pub fn letter(self) -> u8 {
        match self {
            Stage::Queue => b'Q',
            Stage::Issue => b'D',
            Stage::Complete => b'C',
        }
    }

    /// The stage of this letter.
    pub fn parse(letter: &str) -> Option<Stage> {
        [Stage::Queue, Stage::Issue, Stage::Complete].into_iter().find(|stage| letter.as_bytes() == [stage.letter()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(Format::parse(format.name()), Some(format));
        }
        assert_eq!(Format::parse("vhd"), None);
    }

    #[test]
    fn a_stage_is_named_by_its_letter() {
        assert_eq!(Stage::parse("D"), Some(Stage::Issue));
        assert_eq!(Stage::parse("X"), None);
    }
}
