//! A zoned device that several clients use at once: a zoned namespace.
//!
//! The drive has one lock: a command on a zone may close another one, and the order of writes to a zone is that in which they
//! come.

use super::counts::{Counts, Request};
use super::fault::ServeError;
use super::{Clock, Served, Shared, Sharing};
use crate::device::{Account, DeviceError, Lba, ZEROS, Zone, ZoneError, ZoneState, ZonedDevice, ZonedShape};
use crate::label::{Content, Label};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The label of clients' writes.
const LABEL: Label = Label::host(Content::Data);

/// A command on a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// The zone is closed.
    Close,
    /// The zone becomes full.
    Finish,
    /// The zone is opened explicitly.
    Open,
    /// An empty zone is opened explicitly, with a random write area.
    OpenWithArea,
    /// The write pointer of a zone with a random write area moves to this block of it.
    FlushArea(u64),
    /// The zone becomes empty.
    Reset,
    /// A read-only zone goes out of use.
    Offline,
}

/// A zoned device, and the counts of its clients' requests.
pub struct ServedZones {
    shape: ZonedShape,
    device: Mutex<Box<dyn ZonedDevice>>,
    counts: Mutex<Counts>,
}

/// A zoned device and its clock.
pub type SharedZones = Shared<ServedZones>;

impl Served for ServedZones {
    const NAME: &'static str = "device";
    type Error = ServeError;

    fn work(&self, _at: Time) -> Result<Option<Time>, ServeError> {
        Ok(None)
    }
}

impl ServedZones {
    fn device(&self) -> MutexGuard<'_, Box<dyn ZonedDevice>> {
        // After a panic no later request is let in.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted(&self) -> MutexGuard<'_, Counts> {
        // Numbers can be added to after any panic.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedZones {
    /// Shares `device`, whose blocks must be carried as bytes: clients read the bytes that they wrote.
    ///
    /// # Errors
    ///
    /// [`ServeError::NoBytes`] if they are carried as stamps.
    pub fn new(device: Box<dyn ZonedDevice>, sharing: Sharing, clock: Clock) -> Result<SharedZones, ServeError> {
        if device.block_width() as u64 != BLOCK_BYTES {
            return Err(ServeError::NoBytes { width: device.block_width() });
        }
        let served = ServedZones { shape: device.shape(), device: Mutex::new(device), counts: Mutex::default() };
        Ok(Shared::over(served, sharing, clock))
    }

    /// The geometry.
    pub fn shape(&self) -> ZonedShape {
        self.served.shape
    }

    /// Bytes of all zones, with the gap between the capacity and the size of each.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.served.shape.zones) * self.served.shape.zone_blocks * BLOCK_BYTES
    }

    /// Reports zones from `first` on, each to `report`, until that answers false.
    pub fn report(&self, first: u32, mut report: impl FnMut(u32, Zone) -> bool) -> Result<Time, ServeError> {
        self.request(|served, at| {
            let device = served.device();
            (first..served.shape.zones).all(|zone| report(zone, device.zone(zone)));
            Ok(at)
        })
    }

    /// Reads whole blocks of one zone.
    pub fn read(&self, first: Lba, buffer: &mut [u8]) -> Result<Time, ServeError> {
        let bytes = buffer.len() as u64;
        self.serve(Some(Request::Read), bytes, |device, at| device.read(first, buffer, at))
    }

    /// Writes whole blocks of one zone, at its write pointer, or in its random write area; if `durable`, they survive a cut of power as soon as this answers.
    pub fn write(&self, first: Lba, buffer: &[u8], durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        self.serve(Some(Request::Write), buffer.len() as u64, |device, at| {
            let done = device.write(first, buffer, LABEL, at)?;
            if durable { device.flush(done) } else { Ok(done) }
        })
    }

    /// Writes whole blocks at the write pointer of `zone`; returns their address.
    pub fn append(&self, zone: u32, buffer: &[u8], durable: bool) -> Result<(Lba, Time), ServeError> {
        self.check_writable()?;
        let mut place = Lba(0);
        let done = self.serve(Some(Request::Write), buffer.len() as u64, |device, at| {
            let (first, done) = device.append(zone, buffer, LABEL, at)?;
            place = first;
            if durable { device.flush(done) } else { Ok(done) }
        })?;
        Ok((place, done))
    }

    /// Writes zeros at the write pointer of a zone, or in its random write area: all of them, or none if they do not fit.
    pub fn write_zeroes(&self, first: Lba, blocks: u64, durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        let zone_blocks = self.served.shape.zone_blocks;
        self.serve(Some(Request::WriteZeroes), blocks * BLOCK_BYTES, |device, at| {
            let (zone, from) = ((first.0 / zone_blocks) as u32, first.0 % zone_blocks);
            let Zone { write_pointer, capacity, has_area, .. } = device.zone(zone);
            let end = from + blocks;
            let is_writable = match device.shape().areas.filter(|_| has_area) {
                Some(areas) if from >= write_pointer => {
                    if end > write_pointer + 2 * areas.blocks {
                        return Err(ZoneError::InvalidWrite { zone, from, write_pointer }.into());
                    }
                    true
                }
                _ => from == write_pointer,
            };
            if is_writable && from < capacity && end > capacity {
                return Err(ZoneError::BoundaryError { zone, from, end, capacity }.into());
            }
            let (mut next, mut left, mut done) = (first, blocks, at);
            while left > 0 {
                let piece = left.min(ZEROS.len() as u64 / BLOCK_BYTES);
                let zeros = &ZEROS[..(piece * BLOCK_BYTES) as usize];
                done = done.max(device.write(next, zeros, LABEL, at)?);
                (next, left) = (next + piece, left - piece);
            }
            if durable { device.flush(done) } else { Ok(done) }
        })
    }

    /// Does a command on a zone; returns the state after it.
    pub fn manage(&self, zone: u32, action: ZoneAction) -> Result<(ZoneState, Time), ServeError> {
        self.check_writable()?;
        let mut state = ZoneState::Empty;
        let bytes = self.served.shape.zone_blocks * BLOCK_BYTES;
        let counted = (action == ZoneAction::Reset).then_some(Request::Discard);
        let done = self.serve(counted, bytes, |device, at| {
            let done = match action {
                ZoneAction::Close => device.close(zone, at),
                ZoneAction::Finish => device.finish(zone, at),
                ZoneAction::Open => device.open(zone, at),
                ZoneAction::OpenWithArea => device.open_with_area(zone, at),
                ZoneAction::FlushArea(end) => device.flush_area(zone, end, at),
                ZoneAction::Reset => device.reset(zone, at),
                ZoneAction::Offline => device.take_offline(zone, at),
            }?;
            state = device.zone(zone).state;
            Ok(done)
        })?;
        Ok((state, done))
    }

    /// Makes all that was answered durable, of all clients.
    pub fn flush(&self) -> Result<Time, ServeError> {
        self.serve(Some(Request::Flush), 0, |device, at| device.flush(at))
    }

    /// Ends in good order: makes everything durable.
    pub fn close(&self) -> Result<Time, ServeError> {
        self.beside(|served, at| Ok(served.device().flush(at)?))
    }

    /// The account of the device since it was opened.
    pub fn account(&self) -> Result<Account, ServeError> {
        self.beside(|served, _| Ok(served.device().account()))
    }

    /// The counts of clients' requests since the device was opened.
    pub fn counts(&self) -> Result<Counts, ServeError> {
        Ok(self.served.counted().clone())
    }

    fn check_writable(&self) -> Result<(), ServeError> {
        if self.sharing.read_only { Err(ServeError::ReadOnly) } else { Ok(()) }
    }

    /// Serves one request. A request that a zone does not allow is an answer to the client, and no failure of the device.
    fn serve(
        &self,
        request: Option<Request>,
        bytes: u64,
        act: impl FnOnce(&mut dyn ZonedDevice, Time) -> Result<Time, DeviceError>,
    ) -> Result<Time, ServeError> {
        self.request(|served, at| {
            let acted = act(&mut **served.device(), at);
            match (&acted, request) {
                (Ok(done), Some(request)) => {
                    let answered = if self.sharing.paced { (*done).max(self.now()) } else { self.now() };
                    served.counted().served(request, bytes, answered.since_ns(at));
                }
                (Err(DeviceError::Zone(_) | DeviceError::BeyondEnd { .. }) | Ok(_), _) => {}
                (Err(error), request) => served.counted().failed(request.unwrap_or(Request::Write), error),
            }
            Ok(acted?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::zns::{Zns, ZnsSettings};
    use crate::expression::parse_term;

    fn zones(read_only: bool) -> SharedZones {
        let settings = ZnsSettings::read(&parse_term("zns:size=4M,zone=1M,timing=off").unwrap()).unwrap();
        let device = Zns::new(&settings, BLOCK_BYTES as usize);
        SharedZones::new(Box::new(device), Sharing { read_only, paced: false }, Box::new(|| Time(7))).unwrap()
    }

    #[test]
    fn zeros_are_written_as_a_whole_or_not_at_all() {
        let zones = zones(false);
        let capacity = zones.shape().zone_blocks;
        zones.append(1, &[5; 4096], false).unwrap();
        assert!(zones.write_zeroes(Lba(capacity + 1), capacity, false).is_err());
        let mut pointer = 0;
        zones
            .report(1, |_, zone| {
                pointer = zone.write_pointer;
                false
            })
            .unwrap();
        assert_eq!(pointer, 1, "nothing was written");
        zones.write_zeroes(Lba(capacity + 1), capacity - 1, true).unwrap();
        let (state, _) = zones.manage(1, ZoneAction::Finish).unwrap();
        assert_eq!(state, ZoneState::Full);
        assert_eq!(zones.counts().unwrap().of(Request::WriteZeroes).served, 1);
        assert_eq!(zones.counts().unwrap().failed_in_all(), 0, "a zone's answer is no failure of the device");
    }

    #[test]
    fn a_drive_for_reading_only_changes_nothing() {
        let zones = zones(true);
        assert!(zones.append(0, &[5; 4096], false).is_err() && zones.manage(0, ZoneAction::Open).is_err());
        zones
            .report(0, |_, zone| {
                assert_eq!(zone.state, ZoneState::Empty);
                true
            })
            .unwrap();
    }
}
