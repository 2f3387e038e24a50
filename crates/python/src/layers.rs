//! All that can stand in a path or be a workload, as JSON.

use crate::fault;
use crate::policies;
use flashpath::device::station::Offer;
use flashpath::expression::{Kind, Values};
use flashpath::run::{Path, RunOptions, Station, memory_bytes, prepare};
use flashpath::workload::{files, generator};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// All stations, generators and file workloads, with every option and default, as JSON.
#[pyfunction]
pub fn layers() -> String {
    let stations = policies::tables().stations.iter().map(station);
    let generators = generator::kinds().into_iter().map(|kind| described(kind, "generator"));
    let files = files::kinds().into_iter().map(|kind| described(kind, "file workload"));
    Value::from_iter(stations.chain(generators).chain(files)).to_string()
}

/// A path with its options written out, the bytes that it exports and the memory that a run on it takes, as JSON.
///
/// Fails if the path is wrong.
#[pyfunction]
pub fn read_path(py: Python<'_>, text: &str) -> PyResult<String> {
    py.detach(|| {
        let path = policies::reading(|tables| Path::read_with(text, tables.stations)).map_err(fault::expression)?;
        let exported = match path.kernel() {
            Some(_) => Value::Null,
            None => prepare(&path, 1).map_err(|error| fault::refused(error.into()))?.exported_bytes().into(),
        };
        let memory = memory_bytes(&path, &RunOptions::default());
        let value =
            json!({ "text": path.text, "in_full": path.in_full, "exported_bytes": exported, "memory_bytes": memory });
        Ok(value.to_string())
    })
}

fn station(station: &Station) -> Value {
    let mut value = described(station.kind, "station");
    value["level"] = station.level.into();
    value["offers"] = word(station.offers).into();
    value["takes"] = station.below.takes.iter().copied().map(word).collect();
    value["several"] = station.below.several.into();
    value
}

fn word(offer: Offer) -> &'static str {
    match offer {
        Offer::Flash => "flash",
        Offer::Zones => "zones",
        Offer::Blocks => "blocks",
        Offer::Memory => "memory",
        Offer::Files => "files",
    }
}

fn described(kind: &Kind, role: &str) -> Value {
    let option = |option: &flashpath::expression::OptionKind| {
        let words: serde_json::Map<String, Value> = match option.values {
            Values::Choice(words) => {
                words().into_iter().map(|(word, about)| (word.to_string(), about.into())).collect()
            }
            _ => serde_json::Map::new(),
        };
        let default = Some(option.default).filter(|default| !default.is_empty());
        json!({
            "name": option.name, "about": option.about, "default": default, "values": option.values.describe(),
            "words": words,
        })
    };
    let options: Vec<Value> = kind.options.iter().map(option).collect();
    json!({ "name": kind.name, "role": role, "about": kind.about, "options": options })
}
