//! `flashpath layers`: the stations and workloads, with their options.

use crate::failure::Failure;
use flashpath::device::station::Offer;
use flashpath::expression::{Kind, Values, nearest, one_of};
use flashpath::run::{STATIONS, names_offering};
use flashpath::workload::{files, generator};
use std::fmt::Write;

/// Show all stations and workloads, with every option and default
#[derive(clap::Args)]
pub struct Layers {
    /// Show only this station or workload
    station: Option<String>,
}

impl Layers {
    /// Prints one kind, or all.
    pub fn run(self) -> Result<(), Failure> {
        let mut text = String::new();
        let mut known = Vec::new();
        if self.station.is_none() {
            text.push_str("A path from top to bottom: STATION:option=value,option=value/STATION:...\n\n");
        }
        for station in STATIONS {
            known.push(station.kind.name);
            if self.wants(station.kind.name) {
                let below = match station.below.takes {
                    [] => "at the bottom of a path".to_string(),
                    takes => format!("on {}", one_of(names_offering(STATIONS, takes))),
                };
                let below = match station.offers {
                    Offer::Memory => {
                        format!("{below}, the journal's device of {}", one_of(names_taking(Offer::Memory)))
                    }
                    Offer::Flash | Offer::Zones | Offer::Blocks | Offer::Files => below,
                };
                describe(&mut text, station.kind, &format!("{}, {below}", station.level), station.below.several);
            }
        }
        if self.station.is_none() {
            text.push_str("Workloads: a trace file, fio:JOBFILE, or a generator:\n\n");
        }
        for kind in generator::kinds() {
            known.push(kind.name);
            if self.wants(kind.name) {
                describe(&mut text, kind, "generator", None);
            }
        }
        if self.station.is_none() {
            text.push_str("Or, with --in DIR, a file workload:\n\n");
        }
        for kind in files::kinds() {
            known.push(kind.name);
            if self.wants(kind.name) {
                describe(&mut text, kind, "file workload", None);
            }
        }
        if let Some(name) = self.station.as_ref().filter(|name| !known.contains(&name.as_str())) {
            let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean {near}? "));
            let help = format!("{}known are: {}", near.unwrap_or_default(), known.join(", "));
            return Err(Failure::input(format!("unknown station or workload '{name}'"), Some(help)));
        }
        crate::print(&text)
    }

    fn wants(&self, name: &str) -> bool {
        self.station.as_ref().is_none_or(|wanted| wanted == name)
    }
}

/// The stations of which a second device may offer this.
fn names_taking(offer: Offer) -> impl Iterator<Item = &'static str> {
    STATIONS.iter().filter(move |station| station.below.later.contains(&offer)).map(|station| station.kind.name)
}

fn describe(text: &mut String, kind: &Kind, place: &str, devices: Option<&str>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}  ({place})\n    {}", kind.name, kind.about);
    if let Some(devices) = devices {
        let _ = writeln!(text, "    {devices}");
    }
    for option in kind.options {
        let default = if option.default.is_empty() { "not set" } else { option.default };
        let _ = writeln!(text, "    {:<16} {}", format!("{}={default}", option.name), option.about);
        match option.values {
            Values::Choice(words) => {
                for (word, about) in words() {
                    let _ =
                        writeln!(text, "    {:<16}   {word}{}{about}", "", if about.is_empty() { "" } else { ": " });
                }
            }
            values => {
                let _ = writeln!(text, "    {:<16}   {}", "", values.describe());
            }
        }
    }
    text.push('\n');
}
