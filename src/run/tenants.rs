//! Tenants of a device: sources of requests with a queue each, and what is counted of each.
//!
//! A tenant issues its next request when its queue has room and the request has come. Of several that could, the one whose
//! request came first goes first, and then the next in turn.

use crate::report::{Latencies, LatencyHistogram, TenantResult};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use crate::workload::{Action, NextOf, Operation, Tenant, Workload, WorkloadError};

/// What was served of a tenant.
#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    read_blocks: u64,
    written_blocks: u64,
    discarded_blocks: u64,
}

/// A tenant, and its queue.
#[derive(Debug)]
struct Queue {
    tenant: Tenant,
    in_flight: u32,
    has_ended: bool,
    /// The request that it issues next.
    next: Option<Operation>,
    counts: Counts,
    read_latency: LatencyHistogram,
    write_latency: LatencyHistogram,
}

impl Queue {
    fn has_room(&self) -> bool {
        self.in_flight < self.tenant.queue_depth
    }
}

/// The tenants of a run.
#[derive(Debug)]
pub(super) struct Tenants {
    queues: Vec<Queue>,
    /// The tenant behind the one that issued last.
    turn: usize,
}

impl Tenants {
    /// Those of a workload; `None` if it has one queue.
    pub fn of(workload: &dyn Workload) -> Option<Tenants> {
        let queue = |tenant: &Tenant| Queue {
            tenant: tenant.clone(),
            in_flight: 0,
            has_ended: false,
            next: None,
            counts: Counts::default(),
            read_latency: LatencyHistogram::new(),
            write_latency: LatencyHistogram::new(),
        };
        let queues: Vec<Queue> = workload.tenants().iter().map(queue).collect();
        (!queues.is_empty()).then_some(Tenants { queues, turn: 0 })
    }

    /// Asks each tenant whose queue has room for its next request.
    pub fn ask(&mut self, workload: &mut dyn Workload, now: Time, is_idle: bool) -> Result<(), WorkloadError> {
        for (number, queue) in self.queues.iter_mut().enumerate() {
            if queue.next.is_some() || queue.has_ended || !queue.has_room() {
                continue;
            }
            workload.tell_time(now.0);
            match workload.next_of(number, is_idle)? {
                NextOf::Request(operation) => queue.next = Some(operation),
                NextOf::Waits => {}
                NextOf::Ended => queue.has_ended = true,
            }
        }
        Ok(())
    }

    /// The tenant that issues next, and when, not before `now`; `None` if none can until a request is done.
    pub fn first(&self, now: Time) -> Option<(usize, Time)> {
        let count = self.queues.len();
        let in_turn = (0..count).map(|step| (self.turn + step) % count);
        let comes = |number: usize| {
            let queue = &self.queues[number];
            queue.next.filter(|_| queue.has_room()).map(|next| (number, Time(next.time_ns).max(now)))
        };
        in_turn.filter_map(comes).min_by_key(|(_, at)| *at)
    }

    /// The next request of a tenant, which is in flight from now on.
    pub fn take(&mut self, number: usize) -> Operation {
        self.turn = (number + 1) % self.queues.len();
        let queue = &mut self.queues[number];
        queue.in_flight += 1;
        queue.next.take().expect("the tenant has a request")
    }

    /// A request of a tenant is done.
    pub fn land(&mut self, number: u32) {
        let queue = &mut self.queues[number as usize];
        queue.in_flight = queue.in_flight.saturating_sub(1);
    }

    /// Counts a request that was served.
    pub fn count(&mut self, operation: &Operation) {
        let Counts { requests, read_blocks, written_blocks, discarded_blocks } =
            &mut self.queues[operation.device as usize].counts;
        *requests += 1;
        let blocks = operation.end_bytes().div_ceil(BLOCK_BYTES) - operation.offset_bytes / BLOCK_BYTES;
        match operation.action {
            Action::Read => *read_blocks += blocks,
            Action::Write => *written_blocks += blocks,
            Action::Discard => *discarded_blocks += blocks,
            Action::Flush => {}
        }
    }

    /// Counts the latency of a request.
    pub fn record(&mut self, operation: &Operation, latency_ns: u64) {
        let queue = &mut self.queues[operation.device as usize];
        match operation.action {
            Action::Read => queue.read_latency.record(latency_ns),
            Action::Write => queue.write_latency.record(latency_ns),
            Action::Discard | Action::Flush => {}
        }
    }

    /// Starts the count.
    pub fn begin_counting(&mut self) {
        for queue in &mut self.queues {
            queue.counts = Counts::default();
            (queue.read_latency, queue.write_latency) = (LatencyHistogram::new(), LatencyHistogram::new());
        }
    }

    /// What was counted, in a run of so many simulated seconds; `None`: it has no times.
    pub fn results(&self, seconds: Option<f64>) -> Vec<TenantResult> {
        let result = |queue: &Queue| {
            let Counts { requests, read_blocks, written_blocks, discarded_blocks } = queue.counts;
            let mib = (read_blocks + written_blocks) as f64 * BLOCK_BYTES as f64 / (1 << 20) as f64;
            TenantResult {
                name: queue.tenant.name.clone(),
                queue_depth: queue.tenant.queue_depth,
                requests,
                read_blocks,
                written_blocks,
                discarded_blocks,
                throughput_mib_s: seconds.filter(|seconds| *seconds > 0.0).map(|seconds| mib / seconds),
                latency_ns: seconds.map(|_| Latencies {
                    read: queue.read_latency.percentiles(),
                    write: queue.write_latency.percentiles(),
                    ..Latencies::default()
                }),
            }
        };
        self.queues.iter().map(result).collect()
    }
}
