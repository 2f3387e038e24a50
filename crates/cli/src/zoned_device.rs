//! A zoned block device of the kernel as a [`ZonedDevice`], for `zns:device=/dev/...`.
//!
//! The zones are reported at open, after errors, and after each zone management command. A zone that the drive closes
//! by itself, to open another, is shown as open until then.

use flashpath::device::{Account, DeviceError, Lba, Zone, ZoneError, ZoneKind, ZoneState, ZonedDevice, ZonedShape};
use flashpath::label::{Label, Tally};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use flashpath_kernel::{BlockZone, BlockZoneCondition, BlockZoneKind, KernelError, ZoneRequest, ZonedBlockDevice};
use nix::errno::Errno;
use std::io;
use std::path::Path;

/// A zoned block device of the kernel.
struct SystemZoned {
    device: ZonedBlockDevice,
    zones: Vec<Zone>,
    zone_blocks: u64,
    received: Tally,
    read_blocks: u64,
}

/// Opens a zoned block device of the kernel.
pub fn open(path: &Path) -> Result<Box<dyn ZonedDevice>, DeviceError> {
    Ok(Box::new(SystemZoned::open(path)?))
}

impl SystemZoned {
    fn open(path: &Path) -> Result<SystemZoned, DeviceError> {
        let device = ZonedBlockDevice::open(path).map_err(|error| match error {
            KernelError::Failed { doing, source } => DeviceError::Io { doing, source },
            KernelError::Missing { what, help } | KernelError::Invalid { what, help } => {
                DeviceError::Station { station: "zns", reason: format!("{what}; {help}") }
            }
        })?;
        let zone_bytes = device.zone_bytes();
        if !zone_bytes.is_power_of_two() || zone_bytes < 2 * BLOCK_BYTES {
            let reason = format!("{} has zones of {zone_bytes} bytes, no power of two from 8K on", device.name());
            return Err(DeviceError::Station { station: "zns", reason });
        }
        let report = device
            .report(0, device.zones())
            .map_err(DeviceError::io(format!("report the zones of {}", device.name())))?;
        // A shorter last zone is not used.
        let zones = report.iter().take_while(|zone| zone.length == zone_bytes).map(of_report).collect();
        let zone_blocks = zone_bytes / BLOCK_BYTES;
        Ok(SystemZoned { device, zones, zone_blocks, received: Tally::default(), read_blocks: 0 })
    }

    fn locate(&self, first: Lba, bytes: usize) -> Result<(u32, u64, u64), DeviceError> {
        assert!(bytes.is_multiple_of(BLOCK_BYTES as usize), "a buffer holds whole blocks");
        let (count, blocks) = (bytes as u64 / BLOCK_BYTES, self.zones.len() as u64 * self.zone_blocks);
        if first.0.checked_add(count).is_none_or(|end| end > blocks) {
            return Err(DeviceError::BeyondEnd { first, count, blocks });
        }
        let (zone, from) = (first.0 / self.zone_blocks, first.0 % self.zone_blocks);
        Ok((zone as u32, from, count))
    }

    /// Checks an access against the known state of a zone: the kernel would report a plain I/O error.
    fn check(&self, zone: u32, from: u64, count: u64, is_write: bool) -> Result<(), ZoneError> {
        let Some(known) = self.zones.get(zone as usize) else { return Ok(()) };
        let is_in_order = is_write && known.kind == ZoneKind::Sequential;
        let (write_pointer, end) = (known.write_pointer, from + count);
        let capacity = if is_in_order { known.capacity } else { self.zone_blocks };
        match known.state {
            ZoneState::Offline => Err(ZoneError::IsOffline { zone }),
            ZoneState::ReadOnly if is_write => Err(ZoneError::IsReadOnly { zone }),
            ZoneState::Full if is_write => Err(ZoneError::IsFull { zone }),
            _ if is_in_order && from != write_pointer => Err(ZoneError::InvalidWrite { zone, from, write_pointer }),
            _ if end > capacity => Err(ZoneError::BoundaryError { zone, from, end, capacity }),
            _ => Ok(()),
        }
    }

    fn refresh(&mut self, zone: u32) -> Result<(), DeviceError> {
        let report =
            self.device.report(zone, 1).map_err(DeviceError::io(format!("report a zone of {}", self.device.name())))?;
        if let (Some(known), Some(reported)) = (self.zones.get_mut(zone as usize), report.first()) {
            *known = of_report(reported);
        }
        Ok(())
    }

    /// The error for a failed access. The kernel splits long writes and returns a plain I/O error for the last part, so
    /// the cause is derived from a new report of the zones.
    fn failed(&mut self, doing: &str, zone: u32, source: io::Error) -> DeviceError {
        if let Err(error) = self.refresh_all() {
            return error;
        }
        let state = self.zones.get(zone as usize).map(|zone| zone.state);
        let takes_resource = doing != "read" && doing != "reset";
        let count = |states: &[ZoneState]| self.zones.iter().filter(|zone| states.contains(&zone.state)).count() as u32;
        let (max_open, max_active) = (self.device.max_open(), self.device.max_active());
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen, Offline, ReadOnly};
        match (state, source.raw_os_error().map(Errno::from_raw)) {
            // The block layer's errors BLK_STS_ZONE_OPEN_RESOURCE and BLK_STS_ZONE_ACTIVE_RESOURCE.
            (_, Some(Errno::ETOOMANYREFS)) => ZoneError::TooManyOpen { zone, limit: max_open }.into(),
            (_, Some(Errno::EOVERFLOW)) => ZoneError::TooManyActive { zone, limit: max_active }.into(),
            (Some(Offline), _) => ZoneError::IsOffline { zone }.into(),
            (Some(ReadOnly), _) if doing == "write" => ZoneError::IsReadOnly { zone }.into(),
            (Some(Empty), _)
                if takes_resource
                    && max_active > 0
                    && count(&[ImplicitlyOpen, ExplicitlyOpen, Closed]) >= max_active =>
            {
                ZoneError::TooManyActive { zone, limit: max_active }.into()
            }
            (Some(Empty | Closed), _) if takes_resource && max_open > 0 && count(&[ExplicitlyOpen]) >= max_open => {
                ZoneError::TooManyOpen { zone, limit: max_open }.into()
            }
            _ => DeviceError::Io { doing: format!("{doing} zone {zone} of {}", self.device.name()), source },
        }
    }

    fn refresh_all(&mut self) -> Result<(), DeviceError> {
        let report = self
            .device
            .report(0, self.zones.len() as u32)
            .map_err(DeviceError::io(format!("report the zones of {}", self.device.name())))?;
        for (known, reported) in self.zones.iter_mut().zip(&report) {
            *known = of_report(reported);
        }
        Ok(())
    }

    fn manage(&mut self, zone: u32, request: ZoneRequest, action: &'static str) -> Result<(), DeviceError> {
        let first = Lba(u64::from(zone) * self.zone_blocks);
        self.locate(first, (self.zone_blocks * BLOCK_BYTES) as usize)?;
        self.refresh(zone)?;
        let known = self.zones[zone as usize];
        let is_allowed = known.kind == ZoneKind::Sequential
            && match known.state {
                ZoneState::ReadOnly | ZoneState::Offline => false,
                ZoneState::Full => matches!(request, ZoneRequest::Finish | ZoneRequest::Reset),
                ZoneState::Empty => request != ZoneRequest::Close,
                _ => true,
            };
        if !is_allowed {
            return Err(ZoneError::InvalidTransition { zone, action, state: known.state }.into());
        }
        self.device.manage(zone, request).map_err(|source| self.failed(action, zone, source))?;
        self.refresh(zone)
    }
}

/// Converts a zone report. A zone without a write pointer counts as written to its end.
fn of_report(zone: &BlockZone) -> Zone {
    let kind = match zone.kind {
        BlockZoneKind::Conventional | BlockZoneKind::SequentialPreferred => ZoneKind::Conventional,
        BlockZoneKind::Sequential => ZoneKind::Sequential,
    };
    let state = match zone.condition {
        BlockZoneCondition::NoWritePointer | BlockZoneCondition::Empty => ZoneState::Empty,
        BlockZoneCondition::ImplicitlyOpen => ZoneState::ImplicitlyOpen,
        BlockZoneCondition::ExplicitlyOpen => ZoneState::ExplicitlyOpen,
        BlockZoneCondition::Closed => ZoneState::Closed,
        BlockZoneCondition::ReadOnly => ZoneState::ReadOnly,
        BlockZoneCondition::Full => ZoneState::Full,
        BlockZoneCondition::Offline => ZoneState::Offline,
    };
    let capacity = zone.capacity / BLOCK_BYTES;
    let write_pointer = match (kind, state) {
        (ZoneKind::Conventional, _) => 0,
        (_, ZoneState::Full) => capacity,
        _ => (zone.written / BLOCK_BYTES).min(capacity),
    };
    Zone { kind, state, write_pointer, capacity, has_area: false }
}

impl ZonedDevice for SystemZoned {
    fn shape(&self) -> ZonedShape {
        ZonedShape {
            zones: self.zones.len() as u32,
            zone_blocks: self.zone_blocks,
            max_open: self.device.max_open(),
            max_active: self.device.max_active(),
            areas: None,
        }
    }

    fn block_width(&self) -> usize {
        BLOCK_BYTES as usize
    }

    fn zone(&self, zone: u32) -> Zone {
        self.zones[zone as usize]
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let (zone, from, count) = self.locate(first, buffer.len())?;
        self.check(zone, from, count, false)?;
        // Beyond the write pointer, drives return zeros, ones or errors; this returns zeros.
        let known = self.zones.get(zone as usize).copied();
        let below = match known {
            Some(Zone { kind: ZoneKind::Sequential, state, write_pointer, .. }) if state != ZoneState::ReadOnly => {
                write_pointer.saturating_sub(from).min(count)
            }
            _ => count,
        };
        let (below, beyond) = buffer.split_at_mut((below * BLOCK_BYTES) as usize);
        self.device.read_at(first.0 * BLOCK_BYTES, below).map_err(|source| self.failed("read", zone, source))?;
        beyond.fill(0);
        self.read_blocks += count;
        Ok(at)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let (zone, from, count) = self.locate(first, buffer.len())?;
        if count == 0 {
            return Ok(at);
        }
        self.check(zone, from, count, true)?;
        self.device.write_at(first.0 * BLOCK_BYTES, buffer).map_err(|source| self.failed("write", zone, source))?;
        let known = &mut self.zones[zone as usize];
        if known.kind == ZoneKind::Sequential {
            known.write_pointer += count;
            known.state = match known.state {
                _ if known.write_pointer == known.capacity => ZoneState::Full,
                ZoneState::ExplicitlyOpen => ZoneState::ExplicitlyOpen,
                _ => ZoneState::ImplicitlyOpen,
            };
        }
        self.received.add(label, count);
        Ok(at)
    }

    fn open(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.manage(zone, ZoneRequest::Open, "open").map(|()| at)
    }

    fn close(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.manage(zone, ZoneRequest::Close, "close").map(|()| at)
    }

    fn finish(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.manage(zone, ZoneRequest::Finish, "finish").map(|()| at)
    }

    fn reset(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.manage(zone, ZoneRequest::Reset, "reset").map(|()| at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.device.sync().map_err(DeviceError::io(format!("make {} durable", self.device.name())))?;
        Ok(at)
    }

    fn account(&self) -> Account {
        Account {
            station: "zns",
            received: self.received.clone(),
            sent: self.received.clone(),
            read_blocks: self.read_blocks,
            ..Account::default()
        }
    }
}

#[cfg(test)]
mod tests;
