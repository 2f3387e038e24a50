//! The nodes of the picture, and the blocks that flow between them.

use super::stations::{ROUNDING, Share, Stations};
use crate::label::Cause;
use crate::report::ledger_words::order_of_content;

/// The blocks that a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Blocks that the station sent for one cause, of one origin and content.
    Sent,
    /// Blocks that it received of one origin and content, and did not send.
    Absorbed,
    /// Everything that a flash programmed, split into what it erased and the rest.
    Flash,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// The number of its station.
    pub station: usize,
    /// The blocks that it stands for.
    pub kind: Kind,
    /// Cause, origin, content and blocks.
    pub share: Share,
    /// Blocks that flow into it.
    pub received: f64,
}

/// A flow between two nodes.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The number of the node where it begins.
    pub from: usize,
    /// The number of the node where it ends.
    pub to: usize,
    /// Blocks.
    pub blocks: f64,
}

/// Nodes and flows. The nodes of a station are in the order in which they stand below each other.
#[derive(Clone, Debug)]
pub struct Links {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The flows.
    pub links: Vec<Link>,
}

impl Links {
    /// The nodes and flows of a path.
    pub fn of(stations: &Stations) -> Links {
        let mut links = Links { nodes: Vec::new(), links: Vec::new() };
        let mut unsent: Vec<f64> = Vec::new();
        for number in 0..stations.0.len() {
            links.add_sent(number, stations, &mut unsent);
            links.add_received(number, stations, &mut unsent);
        }
        for number in 1..stations.0.len() {
            if stations.is_medium(number) {
                links.add_flash(number, stations);
            }
        }
        links.in_order()
    }

    /// The blocks of the fullest column.
    pub fn tallest(&self, stations: &Stations) -> f64 {
        let mut columns = vec![0.0; stations.last_column() + 2];
        for node in &self.nodes {
            let column = stations.column(node.station) + usize::from(node.kind == Kind::Flash);
            columns[column] += node.share.blocks;
        }
        columns.into_iter().fold(0.0, f64::max)
    }

    fn add_sent(&mut self, station: usize, stations: &Stations, unsent: &mut Vec<f64>) {
        for share in &stations.0[station].sent {
            unsent.push(share.blocks);
            self.nodes.push(Node { station, kind: Kind::Sent, share: share.clone(), received: 0.0 });
        }
    }

    /// The flows from the station above: into the nodes of what was sent on, and of what was absorbed.
    fn add_received(&mut self, station: usize, stations: &Stations, unsent: &mut Vec<f64>) {
        let Some(above) = stations.0[station].above else { return };
        let is_alone = stations.below(above).count() == 1;
        // A station alone below another received all that that one sent, also where it counts in other units.
        let all = || {
            let sources = (0..self.nodes.len()).filter(|node| self.nodes[*node].station == above);
            sources.filter(|node| self.nodes[*node].kind == Kind::Sent)
        };
        let of = |node: usize| {
            let of = &self.nodes[node].share;
            let received = stations.0[station].received.iter();
            received.filter(|share| is_alike(share, of, true)).map(|share| share.blocks).sum::<f64>()
        };
        let flows: Vec<(usize, f64)> =
            all().map(|node| (node, if is_alone { unsent[node] } else { of(node).min(unsent[node]) })).collect();
        let is_medium = stations.is_medium(station);
        for (from, blocks) in flows {
            unsent[from] -= blocks;
            self.pass(from, station, blocks, is_medium, unsent);
        }
    }

    /// Lets blocks of a node flow into a station below.
    fn pass(&mut self, from: usize, station: usize, blocks: f64, is_medium: bool, unsent: &mut Vec<f64>) {
        let source = self.nodes[from].share.clone();
        let mut left = blocks;
        // A medium keeps the cause. To a translation layer all is a host write, whatever its cause was above; what it
        // sends of the same cause is its own. Others keep the cause.
        let rank = |node: &Node| match (node.share.cause == source.cause, node.share.cause.as_str()) {
            (true, _) => Some(if is_medium { 0 } else { 2 }),
            (false, "host-write") => Some(1),
            _ => None,
        };
        let mut targets: Vec<usize> = (0..self.nodes.len())
            .filter(|node| {
                let node = &self.nodes[*node];
                node.station == station && node.kind == Kind::Sent && is_alike(&node.share, &source, false)
            })
            .filter(|node| rank(&self.nodes[*node]).is_some())
            .collect();
        targets.sort_by_key(|node| rank(&self.nodes[*node]));
        for to in targets {
            let room = (self.nodes[to].share.blocks - self.nodes[to].received).max(0.0);
            left -= self.link(from, to, left.min(room));
        }
        if left > ROUNDING {
            let to = self.absorbed(station, &source, unsent);
            self.nodes[to].share.blocks += left;
            self.link(from, to, left);
        }
    }

    fn link(&mut self, from: usize, to: usize, blocks: f64) -> f64 {
        if blocks <= ROUNDING {
            return 0.0;
        }
        self.nodes[to].received += blocks;
        self.links.push(Link { from, to, blocks });
        blocks
    }

    /// The node of what a station absorbed of an origin and content.
    fn absorbed(&mut self, station: usize, of: &Share, unsent: &mut Vec<f64>) -> usize {
        let known = self.nodes.iter().position(|node| {
            node.station == station && node.kind == Kind::Absorbed && is_alike(&node.share, of, false)
        });
        known.unwrap_or_else(|| {
            let share = Share { cause: String::new(), blocks: 0.0, ..of.clone() };
            self.nodes.push(Node { station, kind: Kind::Absorbed, share, received: 0.0 });
            unsent.push(0.0);
            self.nodes.len() - 1
        })
    }

    /// The bar of a flash: all that it programmed flows into it. If it erased more, the rest was programmed before.
    fn add_flash(&mut self, station: usize, stations: &Stations) {
        let Some(erased) = stations.0[station].erased else { return };
        let sources: Vec<usize> = (0..self.nodes.len())
            .filter(|node| self.nodes[*node].station == station && self.nodes[*node].kind == Kind::Sent)
            .collect();
        let programmed: f64 = sources.iter().map(|node| self.nodes[*node].share.blocks).sum();
        let blocks = programmed.max(erased);
        if blocks <= ROUNDING {
            return;
        }
        let nothing = String::new;
        let share = Share { cause: nothing(), origin: nothing(), content: nothing(), blocks };
        self.nodes.push(Node { station, kind: Kind::Flash, share, received: 0.0 });
        let to = self.nodes.len() - 1;
        for from in sources {
            self.link(from, to, self.nodes[from].share.blocks);
        }
    }

    /// Sorts the nodes by station, origin, content and cause: so flows of one origin and content run side by side.
    fn in_order(self) -> Links {
        let causes = Cause::ALL.map(Cause::name);
        let rank = |cause: &str| causes.iter().position(|known| *known == cause).unwrap_or(causes.len());
        let key = |node: &Node| {
            let Share { cause, origin, content, .. } = &node.share;
            let origin = (rank(origin), origin.clone());
            let content = (order_of_content(content), content.clone());
            (node.station, node.kind == Kind::Flash, origin, content, node.kind, rank(cause), cause.clone())
        };
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_cached_key(|node| key(&self.nodes[*node]));
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, node)| places[*node] = place);
        let mut links: Vec<Link> =
            self.links.iter().map(|link| Link { from: places[link.from], to: places[link.to], ..*link }).collect();
        links.sort_by_key(|link| (link.from, link.to));
        Links { nodes: order.into_iter().map(|node| self.nodes[node].clone()).collect(), links }
    }
}

fn is_alike(share: &Share, other: &Share, by_cause: bool) -> bool {
    let is_of_cause = !by_cause || share.cause == other.cause;
    is_of_cause && share.origin == other.origin && share.content == other.content
}
