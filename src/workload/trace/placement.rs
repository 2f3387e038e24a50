//! Maps a trace's addresses to a device of another size.
//!
//! A trace's devices are concatenated in the order of their numbers. Each has a region as long as its span, which
//! begins at a multiple of 1 MiB.

use super::{TraceSummary, unusable};
use crate::expression::Choice;
use crate::units::{BLOCK_BYTES, format_size, human_size};
use crate::workload::{Operation, WorkloadError};

const REGION_ALIGNMENT: u64 = 1 << 20;

/// The treatment of a trace that spans more than the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Refuse it; the error names the size needed.
    #[default]
    Refuse,
    /// Take addresses modulo the device's size; a request across its end continues at its beginning.
    Wrap,
    /// Scale addresses down, in whole 4 KiB blocks; requests keep their lengths, up to the device's end.
    Scale,
}

impl Addresses {
    /// The choice of this name: `refuse`, `wrap` or `scale`.
    pub fn parse(name: &str) -> Option<Addresses> {
        Addresses::of_word(name)
    }
}

impl Choice for Addresses {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("refuse", Addresses::Refuse, "a trace that spans more than the drive is an error"),
        ("wrap", Addresses::Wrap, "modulo the size of the drive"),
        ("scale", Addresses::Scale, "scaled down to the drive"),
    ];
}

/// The mapping of addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mapping {
    /// The regions fit the device.
    Direct,
    Wrap,
    Scale,
}

/// The regions of a trace's devices on one device.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    bases: Vec<u64>,
    spans: Vec<u64>,
    span_bytes: u64,
    usable_bytes: u64,
    mapping: Mapping,
}

impl Placement {
    /// Lays out the devices of `summary` on `device_bytes`.
    pub fn new(summary: &TraceSummary, device_bytes: u64, addresses: Addresses) -> Result<Placement, WorkloadError> {
        let mut bases = Vec::with_capacity(summary.devices.len());
        let mut end = Some(0u64);
        for device in &summary.devices {
            let base = end.and_then(|end| end.checked_next_multiple_of(REGION_ALIGNMENT));
            // A device without operations takes no space.
            end = if device.span_bytes == 0 { end } else { base.and_then(|base| base.checked_add(device.span_bytes)) };
            bases.push(base.unwrap_or(0));
        }
        let spans = summary.devices.iter().map(|device| device.span_bytes).collect();
        let span_bytes = end.ok_or_else(|| {
            unusable(&summary.file, "the addresses of its concatenated devices do not fit 64 bits".to_string())
        })?;
        let usable_bytes = device_bytes - device_bytes % BLOCK_BYTES;
        let mapping = match addresses {
            _ if span_bytes <= device_bytes => Mapping::Direct,
            Addresses::Refuse => return Err(too_small(summary, span_bytes, device_bytes)),
            _ if usable_bytes == 0 => {
                return Err(unusable(&summary.file, format!("a device of {device_bytes} bytes has no 4 KiB block")));
            }
            Addresses::Wrap => Mapping::Wrap,
            Addresses::Scale => Mapping::Scale,
        };
        Ok(Placement { bases, spans, span_bytes, usable_bytes, mapping })
    }

    /// True if addresses are only shifted, so that no operation is split.
    pub fn is_direct(&self) -> bool {
        self.mapping == Mapping::Direct
    }

    /// A note about the mapping, if addresses were wrapped or scaled.
    pub fn note(&self) -> Option<String> {
        let verb = match self.mapping {
            Mapping::Direct => return None,
            Mapping::Wrap => "wrapped around",
            Mapping::Scale => "scaled down to",
        };
        let (span, device) = (human_size(self.span_bytes as f64), human_size(self.usable_bytes as f64));
        Some(format!("its span of {span} is {verb} a device of {device}"))
    }

    /// The mapped operation, and its continuation at the beginning of the device, if any. `None` if the operation is
    /// outside the span of the summary.
    pub fn place(&self, mut operation: Operation) -> Option<(Operation, Option<Operation>)> {
        if operation.length_bytes == 0 {
            // A flush has no address.
            return Some((operation, None));
        }
        let number = operation.device as usize;
        if operation.end_bytes() > *self.spans.get(number)? {
            return None;
        }
        operation.offset_bytes = self.bases.get(number)?.checked_add(operation.offset_bytes)?;
        Some(match self.mapping {
            Mapping::Direct => (operation, None),
            Mapping::Wrap => self.wrap(operation),
            Mapping::Scale => (self.scale(operation), None),
        })
    }

    fn wrap(&self, mut operation: Operation) -> (Operation, Option<Operation>) {
        operation.offset_bytes %= self.usable_bytes;
        operation.length_bytes = operation.length_bytes.min(self.usable_bytes);
        let before_end = self.usable_bytes - operation.offset_bytes;
        if operation.length_bytes <= before_end {
            return (operation, None);
        }
        let mut rest = operation;
        operation.length_bytes = before_end;
        rest.offset_bytes = 0;
        rest.length_bytes -= before_end;
        (operation, Some(rest))
    }

    fn scale(&self, mut operation: Operation) -> Operation {
        let blocks = u128::from(self.span_bytes.div_ceil(BLOCK_BYTES));
        let usable_blocks = u128::from(self.usable_bytes / BLOCK_BYTES);
        let scaled = u128::from(operation.offset_bytes / BLOCK_BYTES) * usable_blocks / blocks;
        // The offset within a block stays, so that a request touches as many blocks as before.
        operation.offset_bytes = scaled as u64 * BLOCK_BYTES + operation.offset_bytes % BLOCK_BYTES;
        operation.length_bytes = operation.length_bytes.min(self.usable_bytes.saturating_sub(operation.offset_bytes));
        operation
    }
}

fn too_small(summary: &TraceSummary, span_bytes: u64, device_bytes: u64) -> WorkloadError {
    let unit = if span_bytes > 1 << 30 { 1u64 << 30 } else { 1 << 20 };
    let enough = span_bytes.checked_next_multiple_of(unit).unwrap_or(span_bytes);
    let has = human_size(device_bytes as f64);
    let spans = human_size(span_bytes as f64);
    let concatenated = match summary.devices.iter().filter(|device| device.span_bytes > 0).count() {
        1 => String::new(),
        count => format!(" ({count} devices concatenated)"),
    };
    let reason = format!(
        "it spans {spans}{concatenated}, but the path exports {has}: use a path that exports {}, or map \
         its addresses with --addresses wrap or --addresses scale",
        format_size(enough)
    );
    unusable(&summary.file, reason)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::summary::summarise;
    use super::super::testing::{operation, reader_of};
    use super::super::{DeviceSummary, TraceOptions};
    use super::*;
    use crate::workload::Action;

    fn placement(spans: &[u64], device_bytes: u64, addresses: Addresses) -> Result<Placement, WorkloadError> {
        let reader = reader_of(samples::CAPTURED, TraceOptions::default());
        let mut summary = summarise(reader, "sample", |_| Ok(())).unwrap();
        summary.devices = spans
            .iter()
            .map(|span_bytes| DeviceSummary { span_bytes: *span_bytes, ..DeviceSummary::default() })
            .collect();
        Placement::new(&summary, device_bytes, addresses)
    }

    fn extents(placed: (Operation, Option<Operation>)) -> Vec<(u64, u64)> {
        let both = [Some(placed.0), placed.1];
        both.into_iter().flatten().map(|part| (part.offset_bytes, part.length_bytes)).collect()
    }

    #[test]
    fn devices_lie_concatenated_at_multiples_of_a_mebibyte() {
        let placement = placement(&[5000, 0, 3 << 20, 512], 1 << 30, Addresses::Refuse).unwrap();
        let offset = |device| {
            let request = Operation { device, ..operation(0, Action::Read, 0, 512) };
            placement.place(request).map(|placed| placed.0.offset_bytes)
        };
        assert_eq!([0, 2, 3].map(offset), [Some(0), Some(1 << 20), Some(4 << 20)]);
        assert_eq!(offset(1), None);
        assert_eq!(offset(4), None);
    }

    #[test]
    fn a_trace_that_is_too_large_is_refused_with_the_size_needed() {
        for (span, enough) in
            [(4_434_000_000, "5G"), (5 << 20, "5M"), ((5 << 20) + 1, "6M"), (u64::MAX, "18446744073709551615")]
        {
            let error = placement(&[span], 1 << 20, Addresses::Refuse).unwrap_err().to_string();
            assert!(
                error.contains(&format!("a path that exports {enough},"))
                    && error.contains("--addresses wrap or --addresses scale"),
                "{error}"
            );
        }
        assert!(placement(&[u64::MAX, 4096], 1 << 20, Addresses::Wrap).is_err());
        assert!(placement(&[1 << 20], 4095, Addresses::Wrap).is_err());
        assert!(placement(&[1 << 20], 1 << 20, Addresses::Refuse).is_ok());
    }

    #[test]
    fn a_wrapped_request_across_the_end_goes_on_at_the_beginning() {
        let placement = placement(&[1 << 30], (1 << 20) + 100, Addresses::Wrap).unwrap();
        let mega = 1 << 20;
        let placed = |offset, length| extents(placement.place(operation(0, Action::Write, offset, length)).unwrap());
        assert_eq!(placed(3 * mega + 4096, 512), [(4096, 512)]);
        assert_eq!(placed(2 * mega - 4096, 12_288), [(mega - 4096, 4096), (0, 8192)]);
        assert_eq!(placed(4096, 5 * mega), [(4096, mega - 4096), (0, 4096)]);
    }

    #[test]
    fn scaled_requests_keep_their_order_and_end_on_the_device() {
        let span = 10 << 20;
        let device = 1 << 20;
        let placement = placement(&[span], device, Addresses::Scale).unwrap();
        let mut last = 0;
        for offset in (0..span - 8192).step_by(512) {
            let placed = extents(placement.place(operation(0, Action::Write, offset, 8192)).unwrap());
            let [(scaled, length)] = placed[..] else { panic!("{placed:?}") };
            assert!(scaled + length <= device && length > 0);
            assert_eq!(scaled % 4096, offset % 4096);
            assert!(scaled / 4096 >= last / 4096);
            last = scaled;
        }
        assert!(last > device * 9 / 10);
    }

    #[test]
    fn the_choices_have_names() {
        assert_eq!(Addresses::parse("scale"), Some(Addresses::Scale));
        assert_eq!(Addresses::parse("shrink"), None);
    }
}
