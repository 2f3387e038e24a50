//! Opens paths as devices with bytes: of blocks, labelled by the layout of the file system on them, or of zones.

use crate::failure::Failure;
use crate::resident::{cannot, clock_since};
use flashpath::device::{BlockDevice, Medium};
use flashpath::run::shared::{EventCount, SharedDevice, SharedZones, Sharing};
use flashpath::run::{Labelling, Path, Payload, open_device, open_medium};
use flashpath::time::Time;
use flashpath_nvme::Drive;
use std::sync::Arc;
use std::time::Instant;

/// Opens the path as a device of blocks that can be served.
fn open_blocks(path: &Path, seed: u64) -> Result<Box<dyn BlockDevice>, Failure> {
    labelled(open_device(path, Payload::Bytes, seed)?)
}

fn labelled(device: Box<dyn BlockDevice>) -> Result<Box<dyn BlockDevice>, Failure> {
    let labelling = Labelling::new(device, Time::ZERO).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Box::new(labelling))
}

/// Opens and shares the devices of these paths, which have one clock and one count of news. A device of zones is refused unless
/// `takes_zones`.
pub fn open(texts: &[String], takes_zones: bool, seed: u64, sharing: Sharing) -> Result<Vec<Drive>, Failure> {
    let (began, news) = (Instant::now(), Arc::<EventCount>::default());
    let open = |text: &String| {
        let path = if takes_zones { Path::read_drive(text)? } else { Path::read(text)? };
        if path.file_system.is_some() {
            let message = format!("{text} has a file system on top, but serve exports a block device");
            let help = "leave the file system out: the client makes one on the device";
            return Err(Failure::input(message, Some(help.into())));
        }
        let failed = |error| cannot("serve the device", error);
        let blocks = |device| {
            let device = SharedDevice::new(device, sharing, clock_since(began)).map_err(failed)?;
            Ok(Drive::Blocks(Arc::new(device.with_news(Arc::clone(&news)))))
        };
        if !takes_zones {
            return blocks(open_blocks(&path, seed)?);
        }
        match open_medium(&path, Payload::Bytes, seed)? {
            Medium::Blocks(device) => blocks(labelled(device)?),
            Medium::Zones(zones) => {
                let zones = SharedZones::new(zones, sharing, clock_since(began)).map_err(failed)?;
                Ok(Drive::Zones(Arc::new(zones.with_news(Arc::clone(&news)))))
            }
            Medium::Memory(_) | Medium::Monitor(_) => {
                let message = format!("{text} cannot be a namespace: it has neither blocks nor zones");
                Err(Failure::input(message, Some("a namespace is a device of blocks, such as conv, or zns".into())))
            }
        }
    };
    texts.iter().map(open).collect()
}
