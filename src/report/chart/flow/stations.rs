//! The stations of a result as a tree, with what each received and sent.

use crate::label::{Cause, Content};
use crate::report::{LedgerRow, RunResult};
use crate::units::BLOCK_BYTES;

/// The station of a non-volatile memory, which stores lines and no blocks, and the count of its bytes.
const MEMORY: &str = "nvm";
const STORED: &str = "nvm_stored_bytes";

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
        add_lines(&mut all, result);
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

/// The bytes stored in non-volatile memory, in lines, as blocks of a journal: from the station above it, which has it beside what the
/// ledger counts. A path with several memories has the count of all, which is not told apart.
fn add_lines(all: &mut [Station], result: &RunResult) {
    let memories: Vec<usize> = (0..all.len()).filter(|station| all[*station].name == MEMORY).collect();
    let ([memory], Some(bytes)) = (&memories[..], result.translation.events.get(STORED)) else { return };
    let blocks = *bytes as f64 / BLOCK_BYTES as f64;
    if blocks <= ROUNDING {
        return;
    }
    let name = |cause: Cause| cause.name().to_string();
    let share = Share {
        cause: name(Cause::JournalCommit),
        origin: name(Cause::JournalCommit),
        content: Content::Journal.name().to_string(),
        blocks,
    };
    if let Some(above) = all[*memory].above {
        add(&mut all[above].sent, share.clone());
    }
    add(&mut all[*memory].received, share.clone());
    add(&mut all[*memory].sent, share);
}

/// Adds a share; those of one cause, origin and content are one.
fn add(shares: &mut Vec<Share>, share: Share) {
    let is_alike = |other: &&mut Share| {
        (&other.cause, &other.origin, &other.content) == (&share.cause, &share.origin, &share.content)
    };
    match shares.iter_mut().find(is_alike) {
        Some(known) => known.blocks += share.blocks,
        None => shares.push(share),
    }
}

/// The rows with blocks; those of one cause, origin and content in one.
fn shares<'a>(rows: impl Iterator<Item = &'a LedgerRow>) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for row in rows.filter(|row| row.blocks.is_finite() && row.blocks > ROUNDING) {
        let (cause, origin, content) = (row.cause.clone(), row.origin.clone(), row.content.clone());
        add(&mut shares, Share { cause, origin, content, blocks: row.blocks });
    }
    shares
}
