//! The picture of a path: the blocks of its ledger as flows from the workload, through every station, to the erases.
//!
//! ```text
//!   column 0        column 1          column 2 (media)    erases
//!   workload        page              nand
//!   ▌host data ─────▌ ────────────────▌ ──────────────────█ erased
//!                   ▌copied data ─────▌ ──────────────────█ not yet erased
//! ```
//!
//! | part | what it is |
//! |---|---|
//! | [`stations`] | the stations of a result and what they received and sent |
//! | [`links`] | nodes, and the blocks that flow between them |
//! | [`layout`] | the places of nodes, ribbons and labels |
//! | [`draw`] | the picture as SVG, and its numbers as CSV |
//!
//! A node is what a station sent of one cause, origin and content. What it sent for the one above is the end of
//! ribbons; what it adds begins there. What it absorbs ends in a node of its own. The ledger does not say of which contents the
//! erased pages were, so that the last column is one bar for each flash.

mod draw;
mod layout;
mod links;
mod stations;
#[cfg(test)]
mod tests;

use super::Width;
use crate::report::RunResult;
use layout::Layout;
use links::Links;
use stations::Stations;

/// The picture of one path.
pub struct PathPicture {
    name: String,
    summary: String,
    stations: Stations,
    links: Links,
    /// The blocks of the fullest column of all pictures.
    tallest: f64,
}

/// The pictures of the paths, to one scale; `None` for a path on which nothing was written.
pub fn pictures(results: &[RunResult]) -> Vec<Option<PathPicture>> {
    let linked = results.iter().map(|result| {
        let stations = Stations::of(result)?;
        let links = Links::of(&stations);
        Some((stations, links))
    });
    let linked: Vec<Option<(Stations, Links)>> = linked.collect();
    let tallest = linked.iter().flatten().map(|(stations, links)| links.tallest(stations)).fold(0.0, f64::max);
    let pictures = linked.into_iter().zip(results).enumerate().map(|(number, (linked, result))| {
        let (stations, links) = linked?;
        let summary = format!("The flow of writes through {}", crate::report::number::visible(&result.path));
        Some(PathPicture { name: format!("path-{number}"), summary, stations, links, tallest })
    });
    pictures.collect()
}

/// Blocks that a station received, and did not send on: overwritten there, or still there at the end.
pub struct Absorbed {
    /// The station.
    pub station: String,
    /// Blocks of 4 KiB.
    pub blocks: f64,
}

/// The blocks that the stations of a path absorbed, those that absorbed any, from the top down.
pub fn absorbed(result: &RunResult) -> Vec<Absorbed> {
    let Some(stations) = Stations::of(result) else { return Vec::new() };
    let links = Links::of(&stations);
    let of = |number: usize| {
        let nodes = links.nodes.iter().filter(|node| node.station == number && node.kind == links::Kind::Absorbed);
        Absorbed { station: stations.0[number].name.clone(), blocks: nodes.map(|node| node.share.blocks).sum() }
    };
    (1..stations.0.len()).map(of).filter(|absorbed| absorbed.blocks > stations::ROUNDING).collect()
}

impl PathPicture {
    /// Its name on the page and of its files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The picture as SVG.
    pub fn svg(&self, width: Width) -> String {
        let layout = Layout::of(&self.stations, &self.links, width, self.tallest);
        draw::draw(&self.name, &self.summary, &layout, &self.links, width)
    }

    /// Its numbers as CSV.
    pub fn csv(&self) -> String {
        draw::csv(&self.stations)
    }
}
