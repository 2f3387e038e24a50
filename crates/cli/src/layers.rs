//! `flashpath layers`: the stations and workloads, with their options.

use crate::failure::Failure;
use flashpath::device::station::Offer;
use flashpath::expression::{Kind, OptionKind, Values, nearest, one_of};
use flashpath::run::{STATIONS, names_offering};
use flashpath::workload::{files, generator};
use std::fmt::Write;

/// Show all stations and workloads, with every option and default
#[derive(clap::Args)]
pub struct Layers {
    /// Show only this station or workload
    station: Option<String>,
    /// Print the reference as Markdown: a section for each, with a table of its options
    #[arg(long)]
    markdown: bool,
}

/// A station or a workload, and its place in a path or a command.
struct Entry {
    kind: &'static Kind,
    place: String,
    /// A sentence on its devices, if it takes several.
    devices: Option<&'static str>,
}

/// Entries of one sort, their title in the reference, and the line before them in a terminal.
struct Group {
    title: &'static str,
    line: &'static str,
    entries: Vec<Entry>,
}

impl Layers {
    /// Prints one kind, or all.
    pub fn run(self) -> Result<(), Failure> {
        let mut groups = groups();
        if let Some(name) = &self.station {
            let known: Vec<&str> =
                groups.iter().flat_map(|group| &group.entries).map(|entry| entry.kind.name).collect();
            if !known.contains(&name.as_str()) {
                let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean {near}? "));
                let help = format!("{}known are: {}", near.unwrap_or_default(), known.join(", "));
                return Err(Failure::input(format!("unknown station or workload '{name}'"), Some(help)));
            }
            for group in &mut groups {
                group.entries.retain(|entry| entry.kind.name == name);
            }
        }
        let mut text = String::new();
        for group in groups.iter().filter(|group| !group.entries.is_empty()) {
            if self.station.is_none() {
                let line = if self.markdown { format!("## {}", group.title) } else { group.line.to_string() };
                text.push_str(&format!("{line}\n\n"));
            }
            for entry in &group.entries {
                if self.markdown { describe_in_markdown(&mut text, entry) } else { describe(&mut text, entry) }
            }
        }
        crate::print(&text)
    }
}

/// All stations and workloads, in the order of the tables.
fn groups() -> Vec<Group> {
    let stations = STATIONS.iter().map(|station| {
        let below = match station.below.takes {
            [] => "at the bottom of a path".to_string(),
            takes => format!("on {}", one_of(names_offering(STATIONS, takes))),
        };
        let below = match station.offers {
            Offer::Memory => format!("{below}, the journal's device of {}", one_of(names_taking(Offer::Memory))),
            Offer::Flash | Offer::Zones | Offer::Blocks | Offer::Files => below,
        };
        let place = format!("{}, {below}", station.level);
        Entry { kind: station.kind, place, devices: station.below.several }
    });
    let workload = |place: &'static str| move |kind| Entry { kind, place: place.to_string(), devices: None };
    vec![
        Group {
            title: "Stations",
            line: "A path from top to bottom: STATION:option=value,option=value/STATION:...",
            entries: stations.collect(),
        },
        Group {
            title: "Generators",
            line: "Workloads: a trace file, fio:JOBFILE, or a generator:",
            entries: generator::kinds().into_iter().map(workload("generator")).collect(),
        },
        Group {
            title: "File workloads",
            line: "Or, with --in DIR, a file workload:",
            entries: files::kinds().into_iter().map(workload("file workload")).collect(),
        },
    ]
}

/// The stations of which a second device may offer this.
fn names_taking(offer: Offer) -> impl Iterator<Item = &'static str> {
    STATIONS.iter().filter(move |station| station.below.later.contains(&offer)).map(|station| station.kind.name)
}

/// The default of an option as shown.
fn default_of(option: &OptionKind) -> &'static str {
    if option.default.is_empty() { "not set" } else { option.default }
}

fn describe(text: &mut String, Entry { kind, place, devices }: &Entry) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}  ({place})\n    {}", kind.name, kind.about);
    if let Some(devices) = devices {
        let _ = writeln!(text, "    {devices}");
    }
    for option in kind.options {
        let _ = writeln!(text, "    {:<16} {}", format!("{}={}", option.name, default_of(option)), option.about);
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

fn describe_in_markdown(text: &mut String, Entry { kind, place, devices }: &Entry) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "### {}\n\n{place}: {}\n", kind.name, cell(kind.about));
    if let Some(devices) = devices {
        let _ = writeln!(text, "{}\n", cell(devices));
    }
    if kind.options.is_empty() {
        return;
    }
    let _ = writeln!(text, "| option | default | meaning | values |\n|---|---|---|---|");
    for option in kind.options {
        let values = match option.values {
            Values::Choice(words) => words()
                .into_iter()
                .map(|(word, about)| format!("`{word}`{}{}", if about.is_empty() { "" } else { ": " }, cell(about)))
                .collect::<Vec<_>>()
                .join("<br>"),
            values => cell(&values.describe()),
        };
        let default = if option.default.is_empty() { "not set".to_string() } else { format!("`{}`", option.default) };
        let _ = writeln!(text, "| `{}` | {default} | {} | {values} |", option.name, cell(option.about));
    }
    text.push('\n');
}

/// A text as it can stand in a cell of a table.
fn cell(text: &str) -> String {
    text.chars().fold(String::new(), |mut cell, character| {
        if matches!(character, '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']') {
            cell.push('\\');
        }
        cell.push(character);
        cell
    })
}
