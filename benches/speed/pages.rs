//! The parts of the pages that are made from `docs/speed.json`. `tests/speed_pages.rs` compares them.

use crate::figures::{DriveRow, Figures, LayerRow, Rounds, Spread, Taken};
use std::path::{Path, PathBuf};

/// A part of a page: the file, the name of its marks, and its text.
struct Made {
    file: &'static str,
    name: &'static str,
    text: String,
}

/// The pages with their parts made anew: the file and its text.
pub fn pages(root: &Path) -> Vec<(PathBuf, String)> {
    let figures = std::fs::read_to_string(root.join("docs/speed.json")).expect("the figures");
    let figures: Figures = serde_json::from_str(&figures).expect("the figures as the benchmark writes them");
    let mut pages: Vec<(PathBuf, String)> = Vec::new();
    for Made { file, name, text } in made(&figures) {
        let file = root.join(file);
        let place = pages.iter().position(|(known, _)| *known == file).unwrap_or_else(|| {
            pages.push((file.clone(), std::fs::read_to_string(&file).expect("a page")));
            pages.len() - 1
        });
        let page = &mut pages[place].1;
        let (begin, end) = (format!("<!-- speed.json: {name} -->\n"), "<!-- end -->\n");
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{} has {begin}", file.display()));
        let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("{} has {end} after {begin}", file.display()));
        *page = format!("{before}{begin}{text}{end}{after}");
    }
    pages
}

fn made(figures: &Figures) -> Vec<Made> {
    let mut made = Vec::new();
    if let Some(drives) = &figures.drives {
        made.push(Made { file: "README.md", name: "summary", text: summary(&drives.rows) });
        made.push(Made { file: "docs/speed.md", name: "drives", text: of_drives(&drives.taken, &drives.rows) });
    }
    if let Some(layers) = &figures.layers {
        made.push(Made { file: "docs/speed.md", name: "layers", text: of_layers(&layers.taken, &layers.rows) });
    }
    if let Some(sources) = &figures.sources {
        let mut text =
            format!("{}\n| source | requests per CPU-second | load |\n|---|---:|---:|\n", origin(&sources.taken));
        for row in &sources.rows {
            text += &format!("| {} | {} | {} |\n", row.source, millions(row.requests_per_second), load(row.rounds));
        }
        made.push(Made { file: "docs/speed.md", name: "sources", text });
    }
    made
}

fn origin(Taken { commit, date, machine, seed }: &Taken) -> String {
    format!("{machine}; {date}, commit {commit}, seed {seed}. Medians, with the least and the greatest:\n")
}

/// In millions, with bounds.
fn millions(of: Spread) -> String {
    let short = |value: f64| {
        let value = value / 1e6;
        if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
    };
    format!("{} M ({} to {})", short(of.median), short(of.min), short(of.max))
}

fn load(rounds: Rounds) -> String {
    let one = |load: Option<f64>| load.map_or("unknown".into(), |load| format!("{load:.1}"));
    format!("{}, {}", one(rounds.load_at_start), one(rounds.load_at_end))
}

/// The rows of a drive: without and with the timing model, if it was measured.
fn pairs(rows: &[DriveRow]) -> impl Iterator<Item = (&DriveRow, Option<&DriveRow>)> {
    rows.iter().filter(|row| !row.is_timed).map(|row| {
        let is_same =
            |other: &&DriveRow| other.is_timed && (other.size_gib, other.planes) == (row.size_gib, row.planes);
        (row, rows.iter().find(is_same))
    })
}

fn of_drives(taken: &Taken, rows: &[DriveRow]) -> String {
    let mut text = origin(taken);
    text += "\n| drive, planes | counted | of the loop | with the timing model | of the queues | bare loop | bare queues | load |\n";
    text += "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for (untimed, timed) in pairs(rows) {
        let rate = timed.map_or(String::new(), |timed| millions(timed.writes_per_second));
        let (queues, share) = match timed.and_then(|timed| timed.bare_queues.zip(timed.of_queues)) {
            Some((queues, share)) => (millions(queues), format!("{:.2}", share.median)),
            None => Default::default(),
        };
        text += &format!(
            "| {} GiB, {} | {} | {:.2} | {rate} | {share} | {} | {queues} | {} |\n",
            untimed.size_gib,
            untimed.planes,
            millions(untimed.writes_per_second),
            untimed.of_loop.median,
            millions(untimed.bare_loop),
            load(untimed.rounds)
        );
    }
    let first = &rows[0];
    text + &format!(
        "\nMemory per flash page: {:.1} B. The write amplification of the first drive was {:.2}.\n",
        first.bytes_per_page, first.write_amplification
    )
}

fn of_layers(taken: &Taken, rows: &[LayerRow]) -> String {
    let mut text = origin(taken);
    text +=
        "\n| path | workload | host writes per CPU-second | of `page` | each program | write amplification | load |\n";
    text += "|---|---|---:|---:|---:|---:|---:|\n";
    for row in rows {
        text += &format!(
            "| `{}` | {} | {} | {:.2} | {:.0} ns | {:.2} | {} |\n",
            row.path,
            row.workload,
            millions(row.writes_per_second),
            row.of_page.median,
            row.ns_per_program.median,
            row.write_amplification,
            load(row.rounds)
        );
    }
    text
}

fn summary(rows: &[DriveRow]) -> String {
    let of_size = |gib: u64| {
        let rates = |timed: bool| {
            let medians = rows.iter().filter(move |row| (row.size_gib, row.is_timed) == (gib, timed));
            let medians: Vec<f64> = medians.map(|row| row.writes_per_second.median / 1e6).collect();
            let bound = |least: f64, of: fn(f64, f64) -> f64| medians.iter().copied().fold(least, of);
            format!("{:.1} to {:.1} million", bound(f64::INFINITY, f64::min), bound(0.0, f64::max))
        };
        (rates(false), rates(true))
    };
    let (counted, timed) = of_size(rows[0].size_gib);
    format!(
        "The simulator serves {counted} host writes per CPU-second on drives of {} GiB without the timing model,\nand {timed} with it. It needs {:.0} bytes of memory per flash page.\n",
        rows[0].size_gib, rows[0].bytes_per_page
    )
}
