//! The steps common to all formats: times begin at zero and never go back, one device is selected if requested, and a
//! write that flushes first becomes a flush and a write.

use super::fields::{Extent, Reason};
use super::rejected::{Place, Rejections};
use crate::label::Content;
use crate::workload::{Action, Operation};

/// The request of a line or record, with the time as in the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// `time_ns` counts from the trace's own origin.
    pub operation: Operation,
    /// True if the request flushes first.
    pub flush_before: bool,
}

impl Request {
    /// A request of data on device 0.
    #[inline]
    pub fn new(time_ns: u64, action: Action, (offset_bytes, length_bytes): Extent) -> Request {
        let operation =
            Operation { time_ns, offset_bytes, length_bytes, action, content: Content::Data, stream: 0, device: 0 };
        Request { operation, flush_before: false }
    }

    /// A flush of device 0.
    pub fn flush(time_ns: u64) -> Request {
        Request::new(time_ns, Action::Flush, (0, 0))
    }

    /// The same request on another device.
    #[inline]
    pub fn on(mut self, device: u32) -> Request {
        self.operation.device = device;
        self
    }
}

/// Turns requests into operations and counts those that it drops.
#[derive(Debug, Default)]
pub(super) struct Intake {
    only_device: Option<u32>,
    base_ns: Option<u64>,
    last_ns: u64,
    held: Option<Operation>,
    /// The number of valid lines and records without an operation.
    pub others: u64,
    /// The number of operations with a time before that of an earlier one.
    pub backward_times: u64,
    /// The number of operations on other devices than the selected one.
    pub on_other_devices: u64,
    /// The number of devices that have appeared.
    pub devices: u32,
    /// The rejected lines and records.
    pub rejections: Rejections,
}

impl Intake {
    /// Selects the operations on `only_device`, if given.
    pub fn new(only_device: Option<u32>) -> Intake {
        Intake { only_device, ..Intake::default() }
    }

    /// Keeps times as they are, for formats whose times begin at zero by definition.
    pub fn with_times_from_zero(mut self) -> Intake {
        self.base_ns = Some(0);
        self
    }

    /// Appends the held operation, if any.
    #[inline]
    pub fn release(&mut self, out: &mut Vec<Operation>) -> bool {
        self.held.take().map(|operation| out.push(operation)).is_some()
    }

    /// Appends at most one operation and holds a second.
    #[inline]
    pub fn take(&mut self, request: Request, out: &mut Vec<Operation>) {
        let mut operation = request.operation;
        let since_ns = operation.time_ns.saturating_sub(*self.base_ns.get_or_insert(operation.time_ns));
        // A time before the first is also before the last.
        let backward = since_ns < self.last_ns || operation.time_ns < self.base_ns.unwrap_or(0);
        self.backward_times += u64::from(backward);
        self.last_ns = self.last_ns.max(since_ns);
        operation.time_ns = self.last_ns;
        self.devices = self.devices.max(operation.device + 1);
        if self.only_device.is_some_and(|only| only != operation.device) {
            self.on_other_devices += 1;
        } else if request.flush_before && operation.action != Action::Flush {
            let flush = Request::flush(operation.time_ns).on(operation.device);
            out.push(flush.operation);
            self.held = Some(operation);
        } else {
            out.push(operation);
        }
    }

    /// Takes a parser's result for a line or record.
    #[inline]
    pub fn settle(
        &mut self,
        parsed: Result<Option<Request>, Reason>,
        place: impl FnOnce() -> Place,
        line: &[u8],
        out: &mut Vec<Operation>,
    ) {
        match parsed {
            Ok(Some(request)) => self.take(request, out),
            Ok(None) => self.others += 1,
            Err(reason) => self.rejections.add(place(), reason, line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(intake: &mut Intake, requests: &[Request]) -> Vec<Operation> {
        let mut out = Vec::new();
        for request in requests {
            intake.take(*request, &mut out);
            intake.release(&mut out);
        }
        out
    }

    #[test]
    fn times_begin_at_the_first_record_and_never_go_back() {
        let mut intake = Intake::new(None);
        let requests = [500, 700, 600, 400, 900].map(|time_ns| Request::new(time_ns, Action::Read, (0, 512)));
        let times: Vec<u64> = taken(&mut intake, &requests).iter().map(|operation| operation.time_ns).collect();
        assert_eq!(times, [0, 200, 200, 200, 400]);
        assert_eq!(intake.backward_times, 2);
    }

    #[test]
    fn a_write_that_flushes_first_is_a_flush_and_a_write() {
        let mut write = Request::new(7, Action::Write, (4096, 512)).on(3);
        write.flush_before = true;
        let operations = taken(&mut Intake::new(None), &[write]);
        assert_eq!(
            operations.iter().map(|operation| operation.action).collect::<Vec<_>>(),
            [Action::Flush, Action::Write]
        );
        assert!(operations.iter().all(|operation| operation.device == 3 && operation.time_ns == 0));
        assert_eq!(operations[0].length_bytes, 0);
    }

    #[test]
    fn only_the_device_that_is_asked_for_passes() {
        let mut intake = Intake::new(Some(1));
        let requests = [0, 1, 2, 1].map(|device| Request::new(5, Action::Read, (0, 512)).on(device));
        assert_eq!(taken(&mut intake, &requests).len(), 2);
        assert_eq!((intake.on_other_devices, intake.devices), (2, 3));
    }
}
