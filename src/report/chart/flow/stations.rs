//! The stations of a result as a tree, with what each received and sent.

use crate::report::{LedgerRow, RunResult};

/// Fewer blocks than this are a rounding error.
pub const ROUNDING: f64 = 0.5;

/// Blocks of one cause, origin and content.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The cause.
    pub cause: String,
    /// The origin.
    pub origin: String,
    /// The content.
    pub content: String,
    /// Blocks of 4 KiB.
    pub blocks: f64,
}

/// A station. The first is the workload.
#[derive(Clone, Debug)]
pub struct Station {
    /// Its name in the ledger.
    pub name: String,
    /// The number of the station above it, which is less than its own; `None` for the workload.
    pub above: Option<usize>,
    /// The blocks that it received, with the causes of the station above.
    pub received: Vec<Share>,
    /// The blocks that it sent; of a medium, those that it stored.
    pub sent: Vec<Share>,
    /// The blocks in the flash that it erased; `None` if it has no flash.
    pub erased: Option<f64>,
}

/// The stations of a path, each behind the one above it.
#[derive(Clone, Debug)]
pub struct Stations(pub Vec<Station>);

impl Stations {
    /// The stations of a result; `None` if nothing was written, or nothing is known of what lies below the workload.
    pub fn of(result: &RunResult) -> Option<Stations> {
        let workload = "workload";
        let sent = |name: &str| shares(result.ledger.iter().filter(|row| row.station == name));
        let top =
            Station { name: workload.into(), above: None, received: Vec::new(), sent: sent(workload), erased: None };
        let mut all = vec![top];
        for station in &result.stations {
            let above = all.iter().position(|other| other.name == station.above)?;
            all.push(Station {
                name: station.name.clone(),
                above: Some(above),
                received: shares(station.received.iter()),
                sent: sent(&station.name),
                erased: station.erased_blocks.filter(|blocks| blocks.is_finite() && *blocks >= 0.0),
            });
        }
        let is_empty = all.len() == 1 || all.iter().all(|station| station.sent.is_empty());
        (!is_empty).then_some(Stations(all))
    }

    /// The stations below one.
    pub fn below(&self, station: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len()).filter(move |other| self.0[*other].above == Some(station))
    }

    /// True if nothing is below the station.
    pub fn is_medium(&self, station: usize) -> bool {
        self.below(station).next().is_none()
    }

    /// The number of stations above one.
    pub fn depth(&self, station: usize) -> usize {
        self.0[station].above.map_or(0, |above| self.depth(above) + 1)
    }

    /// The column of a station: its depth; all media share the last.
    pub fn column(&self, station: usize) -> usize {
        match self.is_medium(station) {
            true => self.last_column(),
            false => self.depth(station),
        }
    }

    /// The column of the media.
    pub fn last_column(&self) -> usize {
        (0..self.0.len()).map(|station| self.depth(station)).max().unwrap_or(0)
    }
}

/// The rows with blocks; those of one cause, origin and content in one.
fn shares<'a>(rows: impl Iterator<Item = &'a LedgerRow>) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for row in rows.filter(|row| row.blocks.is_finite() && row.blocks > ROUNDING) {
        let is_alike = |share: &&mut Share| {
            (&share.cause, &share.origin, &share.content) == (&row.cause, &row.origin, &row.content)
        };
        match shares.iter_mut().find(is_alike) {
            Some(share) => share.blocks += row.blocks,
            None => shares.push(Share {
                cause: row.cause.clone(),
                origin: row.origin.clone(),
                content: row.content.clone(),
                blocks: row.blocks,
            }),
        }
    }
    shares
}
