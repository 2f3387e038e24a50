//! Records what operations waited for.

use super::graph::{Kind, Node};
use crate::device::nand::geometry::Geometry;
use crate::device::nand::timing::Latencies;
use crate::device::wait_log::{Holds, WaitLog, Waits};
use crate::time::Time;

/// The record of a drive's operations.
#[derive(Debug, Clone)]
pub(super) struct RecordedWaits {
    latencies: Latencies,
    log: WaitLog,
    planes: Vec<Holds>,
    channels: Vec<Holds>,
    /// The waits of the operation of each plane, so far.
    current: Vec<Waits>,
    /// The end of its transfer, and how long that takes.
    loaded: Vec<Time>,
    transfers: Vec<u64>,
}

impl RecordedWaits {
    pub fn new(geometry: &Geometry, latencies: Latencies, log: &WaitLog) -> RecordedWaits {
        let planes = geometry.units() as usize;
        RecordedWaits {
            latencies,
            log: log.clone(),
            planes: vec![Holds::default(); planes],
            channels: vec![Holds::default(); geometry.channels as usize],
            current: vec![Waits::default(); planes],
            loaded: vec![Time::ZERO; planes],
            transfers: vec![0; planes],
        }
    }

    /// The issuer of operations from now on.
    pub fn asker(&self) -> u32 {
        self.log.asker()
    }

    /// A plane begins an operation.
    pub fn begin(&mut self, plane: u32, node: &Node, now: Time) {
        self.current[plane as usize] = self.planes[plane as usize].wait(node.asked, now, |waits| &mut waits.die_ns);
    }

    /// A plane that needs its channel since the first instant gets it at the second, until the third.
    pub fn transfer(&mut self, (plane, channel): (u32, u32), node: &Node, (since, now, until): (Time, Time, Time)) {
        let channel = &mut self.channels[channel as usize];
        self.current[plane as usize].add(channel.wait(since, now, |waits| &mut waits.channel_ns));
        self.transfers[plane as usize] = until.since_ns(now);
        channel.hold(until, node.purpose, self.log.oldest());
        self.loaded[plane as usize] = until;
    }

    /// A plane ends an operation. A program is recorded as two: who waits for a place in a drive's buffer goes on from the end
    /// of the transfer.
    pub fn end(&mut self, plane: u32, node: &Node, now: Time) {
        let Latencies { read_ns, program_ns, erase_ns, .. } = self.latencies;
        let transfer_ns = self.transfers[plane as usize];
        let purpose = node.purpose;
        let waits = std::mem::take(&mut self.current[plane as usize]);
        let serviced = |service_ns| Waits { service_ns, ..waits };
        let record = |times, waits| self.log.record_of(node.asker, purpose, times, waits);
        match node.kind {
            Kind::Read | Kind::Copy => record((node.asked, now), serviced(read_ns + transfer_ns)),
            Kind::Program => {
                let loaded = self.loaded[plane as usize];
                record((node.asked, loaded), serviced(transfer_ns));
                record((loaded, now), Waits { service_ns: program_ns, ..Waits::default() });
            }
            Kind::Erase => record((node.asked, now), serviced(erase_ns)),
            Kind::Sum => unreachable!("a sum needs no plane"),
        }
        self.planes[plane as usize].hold(now, purpose, self.log.oldest());
    }
}
