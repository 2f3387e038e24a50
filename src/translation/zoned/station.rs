//! dm-zoned as a station of a path: the devices below it, and how its volume is opened and made.

use super::error::ZonedVolumeError;
use super::{Devices, DmZoned, Uuids, ZonedSettings, mkfs};
use crate::device::Medium;
use crate::device::station::{DeviceNode, DeviceSettings, MakeOptions, Offer, OpenOptions, StationError};
use crate::device::zns::ZnsSettings;
use crate::expression::{ExpressionError, Term};

/// Parses the term and validates the devices below: one conventional device and zoned ones after it, or one zoned
/// device with conventional zones.
pub fn read(term: &Term, below: &[DeviceNode]) -> Result<ZonedSettings, ExpressionError> {
    let is_conventional = |node: &DeviceNode| node.offers == Offer::Blocks;
    let (conventional, zoned) = match below {
        [first, rest @ ..] if is_conventional(first) => (Some(first), rest),
        all => (None, all),
    };
    if let Some(DeviceNode { term: wrong, .. }) = zoned.iter().find(|node| is_conventional(node)) {
        let (message, help) = match conventional {
            Some(_) => ("dm-zoned has one conventional device", "remove it, or make the first one larger"),
            None => ("the conventional device comes first", "write conv before the zns, and + between them"),
        };
        return Err(wrong.error(wrong.span.clone(), message.to_string(), help.to_string()));
    }
    if let (Some(alone), []) = (conventional, zoned) {
        let message = "dm-zoned has no zones here: a zoned device is missing".to_string();
        let end = alone.term.span.end..alone.term.span.end;
        return Err(alone.term.error(end, message, "write +zns:size=4G after it".to_string()));
    }
    if let (None, [_, DeviceNode { term: second, .. }, ..]) = (conventional, zoned) {
        let message = "several zoned devices need a conventional one before them".to_string();
        let help = "write conv:size=1G+ before the first, or remove this one".to_string();
        return Err(second.error(second.span.clone(), message, help));
    }
    if conventional.is_none() {
        check_conventional_zones(&zoned[0])?;
    }
    ZonedSettings::read(term)
}

/// Checks the conventional zones of a single drive. An image's own geometry is checked when it is opened.
fn check_conventional_zones(node: &DeviceNode) -> Result<(), ExpressionError> {
    let drive = node.settings::<ZnsSettings>().filter(|drive| drive.is_in_memory());
    if drive.map(ZnsSettings::shape).transpose()?.is_some_and(|shape| shape.conventional == 0) {
        let message = "dm-zoned needs conventional zones for its metadata and for new writes, and there are none";
        let help = "write conv:size=1G+ before it, or conventional=16 among its options".to_string();
        return Err(node.term.error(node.term.span.clone(), message.to_string(), help));
    }
    Ok(())
}

impl Devices {
    /// The devices below a station, in the order of the path.
    ///
    /// # Panics
    ///
    /// If a block device is not the first: `read` rejects that. If one is memory: the table of stations does.
    pub fn of(below: Vec<Medium>) -> Devices {
        let mut devices = Devices { conventional: None, zoned: Vec::new() };
        for (at, medium) in below.into_iter().enumerate() {
            match medium {
                Medium::Blocks(device) => {
                    assert_eq!(at, 0, "the conventional device comes first");
                    devices.conventional = Some(device);
                }
                Medium::Zones(device) => devices.zoned.push(device),
                Medium::Memory(_) | Medium::Monitor(_) => {
                    panic!("the table of stations allows only blocks and zones below dm-zoned")
                }
            }
        }
        devices
    }
}

impl DeviceSettings for ZonedSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn has_volume(&self) -> bool {
        true
    }

    fn open(&self, below: Vec<Medium>, opening: &OpenOptions) -> Result<Medium, StationError> {
        let devices = Devices::of(below);
        let volume = match opening.is_new {
            true => DmZoned::create(devices, self, opening.seed)?,
            false => DmZoned::open(devices, self)?,
        };
        Ok(Medium::Blocks(Box::new(volume)))
    }

    fn make(&self, below: Vec<Medium>, making: &MakeOptions) -> Result<Medium, StationError> {
        let devices = Devices::of(below);
        let numbers = Uuids::from_seed(making.seed, devices.zoned.len());
        let devices = mkfs(devices, self, &numbers)?;
        Ok(Medium::Blocks(Box::new(DmZoned::open(devices, self)?)))
    }
}

impl From<ZonedVolumeError> for StationError {
    fn from(error: ZonedVolumeError) -> StationError {
        match error {
            ZonedVolumeError::Device(error) => StationError::Device(error),
            error => StationError::Volume {
                is_damaged: matches!(error, ZonedVolumeError::Damaged { .. }),
                source: Box::new(error),
            },
        }
    }
}
