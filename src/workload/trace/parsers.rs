//! The parsers of the text formats.

use super::blkparse::{Blkparse, Ftrace};
use super::captured::{Captured, Operations};
use super::columns::{DiskSim, Fiu, Midas, Mqsim};
use super::comma_separated::{Alibaba, Msr, Spc, Systor, Tencent, VscsiCsv};
use super::format::{Format, Stage};
use super::iolog::Iolog;
use super::lines::LineParser;
use super::strace::Strace;

/// The parser of a text format; `None` for the other formats.
pub(super) fn line_parser(format: Format, stage: Stage) -> Option<Box<dyn LineParser>> {
    Some(match format {
        Format::Captured => Box::new(Captured),
        Format::Operations => Box::<Operations>::default(),
        Format::Msr => Box::<Msr>::default(),
        Format::Spc => Box::<Spc>::default(),
        Format::Alibaba => Box::<Alibaba>::default(),
        Format::Tencent => Box::<Tencent>::default(),
        Format::Systor => Box::<Systor>::default(),
        Format::VscsiCsv => Box::new(VscsiCsv),
        Format::Blkparse => Box::new(Blkparse::new(stage)),
        Format::Ftrace => Box::<Ftrace>::default(),
        Format::FioV2 => Box::new(Iolog::new(2)),
        Format::FioV3 => Box::new(Iolog::new(3)),
        Format::Fiu => Box::<Fiu>::default(),
        Format::DiskSim => Box::<DiskSim>::default(),
        Format::Mqsim | Format::Ssdsim => Box::<Mqsim>::default(),
        Format::Midas => Box::new(Midas),
        Format::Strace => Box::<Strace>::default(),
        Format::Parquet | Format::Vscsi | Format::Blktrace | Format::OracleGeneral | Format::Filebench => return None,
    })
}
