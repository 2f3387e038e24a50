//! One change of O-JFS at a time, with 16 threads in Varmail.

use super::journals::Journal;
use super::real::Bench;
use super::{MOST, VARMAIL, region_bytes, simulated};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Figure, Panel};

/// A property: its name, and what it may be: a word, options of `ext`, and options of the memory.
type Property = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

const PROPERTIES: &[Property] = &[
    (
        "partitions",
        &[
            ("1", ",partitions=1", ""),
            ("2", ",partitions=2", ""),
            ("4", ",partitions=4", ""),
            ("8", ",partitions=8", ""),
            ("16", ",partitions=16", ""),
        ],
    ),
    ("checkpoint threads", &[("1", ",checkpointers=1", ""), ("8", ",checkpointers=8", "")]),
    ("partition of a block", &[("modulo", ",hash=modulo", ""), ("hash", ",hash=multiplicative", "")]),
    ("scheme", &[("helping", ",scheme=helping", ""), ("paper", ",scheme=paper", "")]),
];

/// The processor's stores have no time of their own in a simulation.
const STORES: Property = (
    "stores",
    &[
        ("non-temporal", "", ",persist=nt"),
        ("clwb", "", ",persist=clwb"),
        ("clflushopt", "", ",persist=clflushopt"),
        ("clflush", "", ",persist=clflush"),
    ],
);

/// In simulated threads.
pub fn simulated(lab: &Lab, name: &str) -> Result<Figure, ReproduceError> {
    let measure = |options: &str, memory: &str| {
        let path = Journal::OJfs.path(simulated::DRIVE, &format!("data=journal{options}"), region_bytes(lab), memory);
        Ok(simulated::run(lab, &VARMAIL, MOST, &path)?.throughput_mib_s)
    };
    figure(name, "simulated", PROPERTIES, &measure)
}

/// In real threads.
pub fn real(bench: &Bench, name: &str) -> Result<Figure, ReproduceError> {
    let properties = [PROPERTIES, &[STORES]].concat();
    let measure = |options: &str, memory: &str| bench.ours(Journal::OJfs, &VARMAIL, MOST, options, memory);
    figure(name, "real threads", &properties, &measure)
}

fn figure(
    name: &str,
    how: &str,
    properties: &[Property],
    measure: &dyn Fn(&str, &str) -> Result<Option<f64>, ReproduceError>,
) -> Result<Figure, ReproduceError> {
    let mut panels = Vec::new();
    for (property, values) in properties {
        let measured =
            values.iter().map(|(word, options, memory)| Ok((word.to_string(), vec![measure(options, memory)?])));
        let groups = measured.collect::<Result<Vec<_>, ReproduceError>>()?;
        panels.push(Panel::new(property, vec![Journal::OJfs.name().to_string()], groups));
    }
    Ok(Figure {
        name: name.to_string(),
        title: format!("O-JFS in Varmail with one change at a time, {how}"),
        unit: "MiB/s".to_string(),
        about: format!(
            "{MOST} threads; 8 partitions by block number modulo 8, 8 checkpoint threads, scheme=helping and non-temporal stores \
             unless a panel changes that."
        ),
        panels,
        claims: Vec::new(),
    })
}
