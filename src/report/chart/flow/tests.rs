//! The layout of the pictures of random paths: any tree of stations, that absorb, add, or do nothing.

use super::layout::{Label, Layout, Place, Ribbon};
use super::links::{Kind, Links};
use super::stations::{ROUNDING, Share, Station, Stations};
use super::{draw, pictures};
use crate::label::{Cause, Content};
use crate::report::chart::Width;
use crate::report::sample;
use proptest::prelude::*;

/// A number of [0, 1) for each decision.
struct Decisions(std::vec::IntoIter<u32>);

impl Decisions {
    fn share(&mut self) -> f64 {
        f64::from(self.0.next().unwrap_or(7) % 1000) / 1000.0
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.next().unwrap_or(3) as usize % limit
    }
}

fn share(cause: Cause, origin: Cause, content: Content, blocks: f64) -> Share {
    Share {
        cause: cause.name().into(),
        origin: origin.name().into(),
        content: content.name().into(),
        blocks: blocks.round(),
    }
}

fn add(shares: &mut Vec<Share>, share: Share) {
    let is_alike = |other: &&mut Share| {
        (&other.cause, &other.origin, &other.content) == (&share.cause, &share.origin, &share.content)
    };
    match shares.iter_mut().find(is_alike) {
        Some(other) => other.blocks += share.blocks,
        None => shares.push(share),
    }
    shares.retain(|share| share.blocks > ROUNDING);
}

/// A path with an account that holds: each station received what those above sent, divided among them.
fn path(tree: &[usize], decisions: Vec<u32>) -> Stations {
    let mut decide = Decisions(decisions.into_iter());
    let unit = 10f64.powi(2 + decide.below(7) as i32);
    let mut all: Vec<Station> = Vec::new();
    for number in 0..=tree.len() {
        let above = number.checked_sub(1).map(|place| tree[place] % number);
        let name = if number == 0 { "workload".to_string() } else { format!("station-{number}") };
        all.push(Station { name, above, received: Vec::new(), sent: Vec::new(), erased: None });
    }
    for number in 0..all.len() {
        let is_medium = !all.iter().any(|other| other.above == Some(number));
        let mut sent: Vec<Share> = Vec::new();
        match number {
            0 => {
                for _ in 0..=decide.below(3) {
                    let content = Content::ALL[decide.below(3)];
                    add(&mut sent, share(Cause::HostWrite, Cause::HostWrite, content, unit * decide.share()));
                }
            }
            _ => {
                let keeps = if decide.below(2) == 0 { 1.0 } else { decide.share() };
                for received in all[number].received.clone() {
                    // A translation layer makes all a host write; a cache keeps the cause.
                    let cause =
                        if is_medium || number % 2 == 0 { received.cause.clone() } else { "host-write".to_string() };
                    let blocks = (received.blocks * keeps).round();
                    add(&mut sent, Share { cause, blocks, ..received });
                }
                for _ in 0..decide.below(4) {
                    let (cause, origin) = (
                        Cause::ALL[1 + decide.below(Cause::ALL.len() - 1)],
                        Cause::ALL[decide.below(Cause::ALL.len())],
                    );
                    let size = unit * decide.share() * [0.001, 1.0, 30.0][decide.below(3)];
                    let added = share(cause, origin, Content::ALL[decide.below(Content::ALL.len())], size);
                    // What it received of this kind must not look like something added.
                    if !is_medium
                        && !sent.iter().any(|share| {
                            share.cause == added.cause && share.origin == added.origin && share.content == added.content
                        })
                    {
                        add(&mut sent, added);
                    }
                }
            }
        }
        let below: Vec<usize> = (0..all.len()).filter(|other| all[*other].above == Some(number)).collect();
        for row in &sent {
            let mut left = row.blocks;
            for (place, other) in below.iter().enumerate() {
                let part = if place + 1 == below.len() { left } else { (left * decide.share()).round() };
                left -= part;
                add(&mut all[*other].received, Share { blocks: part, ..row.clone() });
            }
        }
        let total: f64 = sent.iter().map(|share| share.blocks).sum();
        if is_medium && decide.below(3) > 0 {
            all[number].erased = Some((total * 2.0 * decide.share()).round());
        }
        all[number].sent = sent;
    }
    Stations(all)
}

fn overlap(a: Place, b: Place) -> bool {
    let slack = 1e-6;
    a.x + a.width > b.x + slack
        && b.x + b.width > a.x + slack
        && a.y + a.height > b.y + slack
        && b.y + b.height > a.y + slack
}

/// The vertical extent of a ribbon at an x, if it is there.
fn extent(ribbon: &Ribbon, x: f64) -> Option<(f64, f64)> {
    let [x0, x1, x2, x3] = ribbon.x;
    if !(x0..=x3).contains(&x) {
        return None;
    }
    // The curve lies between its ends; what matters is that none of it is over a label.
    let (low, high) = (ribbon.y[0].min(ribbon.y[1]), ribbon.y[0].max(ribbon.y[1]));
    Some(match x {
        x if x <= x1 => (ribbon.y[0], ribbon.y[0] + ribbon.height),
        x if x >= x2 => (ribbon.y[1], ribbon.y[1] + ribbon.height),
        _ => (low, high + ribbon.height),
    })
}

fn is_struck(label: &Label, ribbon: &Ribbon) -> bool {
    (0..=40).any(|step| {
        let x = label.place.x + 0.01 + (label.place.width - 0.02) * f64::from(step) / 40.0;
        extent(ribbon, x).is_some_and(|(top, bottom)| {
            bottom > label.place.y + 1e-6 && top < label.place.y + label.place.height - 1e-6
        })
    })
}

fn check(stations: &Stations, width: Width) -> Result<(), TestCaseError> {
    let links = Links::of(stations);
    let layout = Layout::of(stations, &links, width, links.tallest(stations));
    for (node, place) in links.nodes.iter().zip(&layout.nodes) {
        let column = stations.column(node.station) + usize::from(node.kind == Kind::Flash);
        prop_assert_eq!(place.x, layout.columns[column], "a node is not in its column");
        prop_assert!((place.height - node.share.blocks * layout.scale).abs() < 1e-6, "a bar is not to scale");
        prop_assert!(
            place.y >= 0.0 && place.y + place.height <= layout.size.1 + 1e-6,
            "a node is outside of the picture"
        );
    }
    for (number, place) in layout.nodes.iter().enumerate() {
        for other in &layout.nodes[..number] {
            prop_assert!(!overlap(*place, *other), "two nodes overlap");
        }
    }
    for (number, label) in layout.labels.iter().enumerate() {
        let inside = label.place.x + label.place.width <= layout.size.0 + 1e-6;
        prop_assert!(inside && label.place.y + label.place.height <= layout.size.1 + 1e-6, "a label is outside");
        for other in &layout.labels[..number] {
            prop_assert!(!overlap(label.place, other.place), "two labels overlap: {label:?} {other:?}");
        }
        prop_assert!(!layout.nodes.iter().any(|node| overlap(*node, label.place)), "a label is on a node: {label:?}");
        for ribbon in &layout.ribbons {
            prop_assert!(!is_struck(label, ribbon), "a flow strikes through {label:?}: {ribbon:?}");
        }
    }
    for ribbon in &layout.ribbons {
        let link = links.links[ribbon.link];
        let (from, to) = (layout.nodes[link.from], layout.nodes[link.to]);
        prop_assert!((ribbon.height - link.blocks * layout.scale).abs() < 1e-6);
        for (node, y) in [(from, ribbon.y[0]), (to, ribbon.y[1])] {
            prop_assert!(
                y >= node.y - 1e-6 && y + ribbon.height <= node.y + node.height + 1e-6,
                "a flow misses its node"
            );
        }
    }
    sums(stations, &links)
}

/// The flows out of a node sum up to the node; those into a station, to the blocks that it received.
fn sums(stations: &Stations, links: &Links) -> Result<(), TestCaseError> {
    for (number, node) in links.nodes.iter().enumerate() {
        let out: f64 = links.links.iter().filter(|link| link.from == number).map(|link| link.blocks).sum();
        let into: f64 = links.links.iter().filter(|link| link.to == number).map(|link| link.blocks).sum();
        let goes_on = !stations.is_medium(node.station) || stations.0[node.station].erased.is_some_and(|_| true);
        let expected = if node.kind == Kind::Sent && goes_on { node.share.blocks } else { 0.0 };
        let parts = stations.0.len() as f64;
        prop_assert!((out - expected).abs() <= parts * ROUNDING, "{out} of {expected} blocks flow out of {node:?}");
        prop_assert!(into <= node.share.blocks + ROUNDING, "{into} blocks flow into {node:?}");
        if node.kind == Kind::Absorbed {
            prop_assert!((into - node.share.blocks).abs() <= ROUNDING);
        }
    }
    for number in 1..stations.0.len() {
        let is_here = |node: &usize| links.nodes[*node].station == number && links.nodes[*node].kind != Kind::Flash;
        let into: f64 = links.links.iter().filter(|link| is_here(&link.to)).map(|link| link.blocks).sum();
        let received: f64 = stations.0[number].received.iter().map(|share| share.blocks).sum();
        let slack = ROUNDING * (stations.0[number].received.len() + 1) as f64;
        prop_assert!((into - received).abs() <= slack, "{into} of {received} blocks flow into station {number}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The picture was plotly's: stations without links stood in the wrong column, erases in the middle, flows over
    /// headings.
    #[test]
    fn any_path_has_its_nodes_in_their_columns_and_no_flow_over_a_label(
        tree in prop::collection::vec(0usize..8, 1..8),
        decisions in prop::collection::vec(any::<u32>(), 400),
    ) {
        let stations = path(&tree, decisions);
        check(&stations, Width::Wide)?;
        check(&stations, Width::Narrow)?;
    }
}

#[test]
fn a_path_whose_account_does_not_hold_is_drawn_all_the_same() {
    let mut result = sample::journaled("ext/page/nand", 1);
    for (number, row) in result.ledger.iter_mut().enumerate() {
        row.blocks = [0.0, f64::NAN, f64::INFINITY, 1e18, 3.0][number % 5];
    }
    let svg = pictures(&[result]).remove(0).unwrap().svg(Width::Wide);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

/// `cache-fill` had the hatching of `checkpoint`.
#[test]
fn every_origin_has_a_hatching_of_its_own() {
    let origins = &Cause::ALL[..Cause::ORIGINS];
    let mut hatchings: Vec<_> = origins.iter().map(|cause| draw::hatching(cause.name())).collect();
    hatchings.sort();
    hatchings.dedup();
    assert_eq!(hatchings.len(), origins.len());
}

#[test]
fn paths_of_one_report_have_one_scale() {
    let results = [sample::page_level("page/nand", 1), sample::log_structured("sfs/zns", 1)];
    let pictures: Vec<_> = pictures(&results).into_iter().map(Option::unwrap).collect();
    let layouts = pictures.iter().map(|of| Layout::of(&of.stations, &of.links, Width::Wide, of.tallest));
    let scales: Vec<f64> = layouts.map(|layout| layout.scale).collect();
    assert_eq!(scales[0], scales[1]);
}

#[test]
fn absorbed_blocks_end_at_their_station_and_added_ones_begin_there() {
    let mut result = sample::page_level("page/nand", 1);
    for row in result.ledger.iter_mut().filter(|row| row.station != "workload" && row.cause == "host-write") {
        row.blocks /= 2.0;
    }
    let stations = Stations::of(&result).unwrap();
    let links = Links::of(&stations);
    let absorbed = links.nodes.iter().find(|node| node.kind == Kind::Absorbed).unwrap();
    assert_eq!((absorbed.station, absorbed.share.blocks), (1, result.workload.written_blocks as f64 / 2.0));
    let copies = links.nodes.iter().find(|node| node.share.cause == "garbage-collection").unwrap();
    assert_eq!(copies.received, 0.0);
}

/// dm-zoned and a cache keep the cause of what they are asked to write: the picture showed such blocks twice, as absorbed
/// and as added.
#[test]
fn a_station_that_keeps_causes_passes_the_blocks_on() {
    let mut result = sample::journaled("ext/page/nand", 1);
    let ext: Vec<_> = result.ledger.iter().filter(|row| row.station == "ext").cloned().collect();
    result.ledger.retain(|row| row.station == "workload" || row.station == "ext");
    for below in ["page", "nand"] {
        result.ledger.extend(ext.iter().cloned().map(|row| crate::report::LedgerRow { station: below.into(), ..row }));
    }
    let links = Links::of(&Stations::of(&result).unwrap());
    assert!(links.nodes.iter().all(|node| node.kind != Kind::Absorbed), "{:?}", links.nodes);
    let passed = links.nodes.iter().filter(|node| node.station >= 2 && node.kind == Kind::Sent);
    assert!(passed.clone().all(|node| node.received == node.share.blocks));
}

#[test]
fn a_cache_that_absorbs_everything_has_a_picture() {
    let mut result = sample::page_level("cache/nand", 1);
    result.ledger.retain(|row| row.station == "workload");
    let picture = pictures(&[result]).remove(0).unwrap();
    assert!(picture.svg(Width::Wide).contains("absorbed data, 336"));
}

#[test]
fn a_run_without_writes_has_no_picture_and_the_csv_has_the_ledger() {
    let results = [sample::empty("page/nand"), sample::page_level("page/nand", 1)];
    let pictures = pictures(&results);
    assert!(pictures[0].is_none());
    let csv = draw::csv(&pictures[1].as_ref().unwrap().stations);
    assert!(
        csv.starts_with("station,cause,origin,content,blocks of 4 KiB\nworkload,host-write,host-write,data,88080384\n")
    );
    assert!(csv.lines().last().unwrap().starts_with("nand,erased,,,"));
}

/// A journal in NVM was no part of its path's picture: the memory stood there with nothing in it.
#[test]
fn stores_to_a_memory_are_in_the_picture_of_their_path() {
    let mut result = sample::journaled("ext/page/nand+nvm", 1);
    let station = |name: &str, above: &str| crate::report::StationResult {
        name: name.to_string(),
        above: above.to_string(),
        received: Vec::new(),
        erased_blocks: None,
    };
    let of_path = [("ext", "workload"), ("page", "ext"), ("nand", "page"), ("nvm", "ext")];
    result.stations = of_path.map(|(name, above)| station(name, above)).into();
    result.translation.events.insert("nvm_stored_bytes".to_string(), 4096 * 700);
    let stations = Stations::of(&result).unwrap();
    let memory = stations.0.iter().position(|station| station.name == "nvm").unwrap();
    let blocks = |shares: &[Share]| shares.iter().map(|share| share.blocks).sum::<f64>();
    assert_eq!(blocks(&stations.0[memory].received), 700.0);
    let links = Links::of(&stations);
    let into = |node: usize| links.links.iter().filter(|link| link.to == node).map(|link| link.blocks).sum::<f64>();
    let nodes = (0..links.nodes.len()).filter(|node| links.nodes[*node].station == memory);
    assert_eq!(nodes.map(into).sum::<f64>(), 700.0, "all of it flows from the file system");
    result.translation.events.clear();
    assert!(Stations::of(&result).unwrap().0[memory].received.is_empty());
}
