//! A zoned block device of the system in a drive's place.
//!
//! Its zones are managed by requests to the kernel, for which this library, without unsafe code, has no words. The program
//! has them, and says here once how such a device is opened.

use crate::device::{DeviceError, ZonedDevice};
use std::path::Path;
use std::sync::OnceLock;

/// Opens a zoned block device of the system.
pub type OpenSystemDevice = fn(&Path) -> Result<Box<dyn ZonedDevice>, DeviceError>;

static OPEN: OnceLock<OpenSystemDevice> = OnceLock::new();

/// Says how zoned block devices of the system are opened. The first word counts.
pub fn open_system_devices_with(open: OpenSystemDevice) {
    let _ = OPEN.set(open);
}

/// Opens a zoned block device of the system: what `zns:device=` names.
pub fn open_system_device(path: &Path) -> Result<Box<dyn ZonedDevice>, DeviceError> {
    let no_way = || DeviceError::Station {
        station: "zns",
        reason: format!("{} cannot be opened: this program has no words for the kernel's zones", path.display()),
    };
    OPEN.get().ok_or_else(no_way)?(path)
}
