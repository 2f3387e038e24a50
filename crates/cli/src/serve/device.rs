//! Opens a path as a device with bytes, labelled by the layout of the file system on it.

use crate::failure::Failure;
use flashpath::device::BlockDevice;
use flashpath::run::{Labelling, Path, Payload, open_device};
use flashpath::time::Time;

/// Opens the path as a device that can be served.
pub fn open(text: &str, seed: u64) -> Result<Box<dyn BlockDevice>, Failure> {
    let path = Path::read(text)?;
    if path.file_system.is_some() {
        let message = format!("{text} has a file system on top, but serve exports a block device");
        return Err(Failure::input(
            message,
            Some("leave the file system out: the client makes one on the device".into()),
        ));
    }
    let device = open_device(&path, Payload::Bytes, seed)?;
    let labelling = Labelling::new(device, Time::ZERO).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Box::new(labelling))
}
