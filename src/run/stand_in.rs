//! Stands in for the options of `conv` and `zns` until the devices are there.
#![allow(missing_docs)]
use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values};

pub static CONV: Kind = Kind {
    name: "conv",
    about: "a conventional device",
    options: &[OptionKind { name: "size", values: Values::Size(4096, 1 << 50), default: "1G", about: "bytes" }],
};
pub static ZNS: Kind = Kind {
    name: "zns",
    about: "a zoned device",
    options: &[
        OptionKind { name: "size", values: Values::Size(4096, 1 << 50), default: "4G", about: "bytes" },
        OptionKind { name: "zone", values: Values::Size(4096, 1 << 40), default: "64M", about: "bytes of a zone" },
        OptionKind { name: "conventional", values: Values::Count(0, 1 << 20), default: "0", about: "zones" },
    ],
};

#[derive(Debug, Clone)]
pub struct ConventionalSettings {
    pub size_bytes: u64,
    pub written_out: String,
}
impl ConventionalSettings {
    pub fn read(term: &Term) -> Result<Self, ExpressionError> {
        let settings = term.settle(&CONV)?;
        Ok(Self { size_bytes: settings.size("size"), written_out: settings.written_out(&[]) })
    }
}
#[derive(Debug, Clone)]
pub struct ZnsSettings {
    pub conventional_zones: u32,
    pub written_out: String,
}
impl ZnsSettings {
    pub fn read(term: &Term) -> Result<Self, ExpressionError> {
        let settings = term.settle(&ZNS)?;
        Ok(Self { conventional_zones: settings.count("conventional") as u32, written_out: settings.written_out(&[]) })
    }
}
