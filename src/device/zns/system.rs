//! A zoned block device of the system instead of a drive.
//!
//! Zones of the kernel are managed by ioctls, which need unsafe code; this library has none. The program registers a
//! function that opens such a device.

use crate::device::{DeviceError, ZonedDevice};
use std::path::Path;
use std::sync::OnceLock;

/// Opens a zoned block device of the system.
pub type OpenSystemDevice = fn(&Path) -> Result<Box<dyn ZonedDevice>, DeviceError>;

static OPEN: OnceLock<OpenSystemDevice> = OnceLock::new();

/// Registers the function that opens zoned block devices of the system. Only the first call has an effect.
pub fn open_system_devices_with(open: OpenSystemDevice) {
    let _ = OPEN.set(open);
}

/// Opens a zoned block device of the system, for `zns:device=`.
pub fn open_system_device(path: &Path) -> Result<Box<dyn ZonedDevice>, DeviceError> {
    let no_way = || DeviceError::Station {
        station: "zns",
        reason: format!("{} cannot be opened: this program has no words for the kernel's zones", path.display()),
    };
    OPEN.get().ok_or_else(no_way)?(path)
}
