//! Records what operations waited for.

use super::graph::{Kind, Node};
use crate::device::nand::cells::KindTimes;
use crate::device::nand::geometry::Geometry;
use crate::device::nand::timing::Latencies;
use crate::device::wait_log::{Holds, WaitLog, Waits};
use crate::time::Time;

/// The record of a drive's operations.
#[derive(Debug, Clone)]
pub(super) struct RecordedWaits {
    latencies: Latencies,
    /// The times of reads and programs, by kind of page.
    times: KindTimes,
    log: WaitLog,
    planes: Vec<Holds>,
    channels: Vec<Holds>,
    /// The operation of each plane.
    current: Vec<UnderWay>,
    /// The suspended operation of each plane.
    suspended: Vec<UnderWay>,
    /// The program whose page the register of each plane takes.
    loading: Vec<UnderWay>,
}

/// The operation of a plane, so far.
#[derive(Debug, Clone, Copy, Default)]
struct UnderWay {
    waits: Waits,
    /// When it began, and when it got the channel `channel`, both at most `loaded`.
    began: Time,
    granted: Time,
    channel: u32,
    /// True if it was loaded while its plane programmed another page.
    is_loaded: bool,
    /// The end of its transfer.
    loaded: Time,
    /// The time of its transfer, and of a command before.
    transfer_ns: u64,
}

impl RecordedWaits {
    pub fn new(geometry: &Geometry, latencies: Latencies, log: &WaitLog) -> RecordedWaits {
        let planes = geometry.units() as usize;
        RecordedWaits {
            latencies,
            times: latencies.of_kinds(),
            log: log.clone(),
            planes: vec![Holds::default(); planes],
            channels: vec![Holds::default(); geometry.channels as usize],
            current: vec![UnderWay::default(); planes],
            suspended: vec![UnderWay::default(); planes],
            loading: vec![UnderWay::default(); planes],
        }
    }

    /// The same record of flash with pages of these times.
    pub fn with_times(self, times: KindTimes) -> RecordedWaits {
        RecordedWaits { times, ..self }
    }

    /// The issuer of operations from now on.
    pub fn asker(&self) -> u32 {
        self.log.asker()
    }

    /// A plane begins an operation.
    #[inline(never)]
    pub fn begin(&mut self, plane: u32, node: &Node, now: Time) {
        let waits = self.planes[plane as usize].wait(node.asked, now, |waits| &mut waits.die_ns);
        self.current[plane as usize] = UnderWay { waits, began: now, granted: now, ..UnderWay::default() };
    }

    /// A plane that needs its channel since the first instant, for a transfer or for a command, gets it at the second, until the
    /// third.
    #[inline(never)]
    pub fn transfer(&mut self, (plane, channel): (u32, u32), node: &Node, (since, now, until): (Time, Time, Time)) {
        let current = &mut self.current[plane as usize];
        (current.granted, current.channel) = (now, channel);
        let channel = &mut self.channels[channel as usize];
        current.waits.add(channel.wait(since, now, |waits| &mut waits.channel_ns));
        current.loaded = until;
        current.transfer_ns += until.since_ns(now);
        channel.hold(until, node.purpose, self.log.oldest());
    }

    /// The register of a plane takes a program from now on.
    pub fn begin_load(&mut self, plane: u32, now: Time) {
        self.loading[plane as usize] = UnderWay { began: now, is_loaded: true, ..UnderWay::default() };
    }

    /// [`RecordedWaits::transfer`] to the register of a plane.
    pub fn transfer_load(&mut self, places: (u32, u32), node: &Node, times: (Time, Time, Time)) {
        let plane = places.0 as usize;
        std::mem::swap(&mut self.current[plane], &mut self.loading[plane]);
        self.transfer(places, node, times);
        std::mem::swap(&mut self.current[plane], &mut self.loading[plane]);
    }

    /// A plane goes on with the program in its register.
    pub fn take_loaded(&mut self, plane: u32) {
        self.current[plane as usize] = std::mem::take(&mut self.loading[plane as usize]);
    }

    /// A plane has suspended its operation, which it has held up to now.
    #[inline(never)]
    pub fn suspend(&mut self, plane: u32, node: &Node, now: Time) {
        self.suspended[plane as usize] = std::mem::take(&mut self.current[plane as usize]);
        self.planes[plane as usize].hold(now, node.purpose, self.log.oldest());
    }

    /// A plane resumes its suspended operation.
    #[inline(never)]
    pub fn resume(&mut self, plane: u32) {
        self.current[plane as usize] = self.suspended[plane as usize];
    }

    /// A plane ends an operation. A program is recorded as two: who waits for a place in a drive's buffer goes on from the end
    /// of the transfer. The time in which it was suspended is a wait for the plane.
    #[inline(never)]
    pub fn end(&mut self, plane: u32, node: &Node, now: Time) {
        let (erase_ns, times) = (self.latencies.erase_ns, self.times[node.page_kind().index()]);
        let under_way = std::mem::take(&mut self.current[plane as usize]);
        if under_way.is_loaded {
            self.record_late(plane, under_way, node, now);
            return self.planes[plane as usize].hold(now, node.purpose, self.log.oldest());
        }
        let UnderWay { waits, loaded, transfer_ns, .. } = under_way;
        let purpose = node.purpose;
        let serviced = |service_ns| Waits { service_ns, ..waits };
        let record = |times, waits| self.log.record_of(node.asker, purpose, times, waits);
        match node.kind {
            Kind::Read | Kind::Copy => record((node.asked, now), serviced(times.read_ns + transfer_ns)),
            Kind::Program => {
                let purpose = self.log.purpose_of_program(purpose);
                let record = |times, waits| self.log.record_of(node.asker, purpose, times, waits);
                record((node.asked, loaded), serviced(transfer_ns));
                let suspended_ns = now.since_ns(loaded) - times.program_ns;
                record((loaded, now), Waits { service_ns: times.program_ns, die_ns: suspended_ns, ..Waits::default() });
            }
            Kind::Erase => {
                let mut waits = serviced(erase_ns + transfer_ns);
                waits.die_ns += now.since_ns(node.asked) - waits.total_ns();
                record((node.asked, now), waits);
            }
            Kind::Sum => unreachable!("a sum needs no plane"),
        }
        self.planes[plane as usize].hold(now, purpose, self.log.oldest());
    }

    /// The operation of a plane ends, and with it one that joined it; [`RecordedWaits::end`] follows.
    #[inline(never)]
    pub fn end_joined(&mut self, plane: u32, node: &Node, now: Time) {
        self.record_late(plane, self.current[plane as usize], node, now);
    }

    /// Records a program or an erase whose waits were not looked at when it began: its plane was busy then with what is known
    /// now, or it came later than the one that it joined.
    fn record_late(&self, plane: u32, under_way: UnderWay, node: &Node, now: Time) {
        let UnderWay { began, granted, channel, loaded, transfer_ns, .. } = under_way;
        let of_plane = |from, until| self.planes[plane as usize].wait(from, until, |waits| &mut waits.die_ns);
        let mut waits = of_plane(node.asked, began);
        if node.kind == Kind::Erase {
            waits.service_ns += self.latencies.erase_ns + transfer_ns;
            waits.die_ns += now.since_ns(node.asked) - waits.total_ns();
            return self.log.record_of(node.asker, node.purpose, (node.asked, now), waits);
        }
        let program_ns = self.times[node.page_kind().index()].program_ns;
        let for_channel =
            self.channels[channel as usize].wait(began.max(node.asked), granted, |waits| &mut waits.channel_ns);
        waits.add(for_channel);
        waits.service_ns += transfer_ns;
        let purpose = self.log.purpose_of_program(node.purpose);
        self.log.record_of(node.asker, purpose, (node.asked, loaded), waits);
        let mut waits = of_plane(loaded, Time(now.0 - program_ns));
        waits.service_ns += program_ns;
        waits.die_ns += now.since_ns(loaded) - waits.total_ns();
        self.log.record_of(node.asker, purpose, (loaded, now), waits);
    }
}
