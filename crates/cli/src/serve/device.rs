//! The device that a path makes: with bytes, and with labels that the file systems on it tell.

use crate::failure::Failure;
use flashpath::device::BlockDevice;
use flashpath::run::{Holds, Labelling, Path, open_device};
use flashpath::time::Time;

/// Opens the path as a device that can be served.
pub fn open(text: &str, seed: u64) -> Result<Box<dyn BlockDevice>, Failure> {
    let path = Path::read(text)?;
    if path.file_system.is_some() {
        let message = format!("{text} has a file system on top, and what is served is a block device");
        return Err(Failure::input(
            message,
            Some("leave the file system out: whoever uses the device makes it".into()),
        ));
    }
    let device = open_device(&path, Holds::Bytes, seed)?;
    let labelling = Labelling::new(device, Time::ZERO).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Box::new(labelling))
}
