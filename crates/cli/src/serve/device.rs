//! Until paths are opened by the library: `conv:size=N`.

use crate::failure::Failure;
use flashpath::device::BlockDevice;
use flashpath::device::conv::Conventional;
use flashpath::units::{BLOCK_BYTES, parse_size};

pub fn open(path: &str, _seed: u64) -> Result<Box<dyn BlockDevice>, Failure> {
    let bytes = path.strip_prefix("conv:size=").and_then(parse_size);
    let bytes = bytes.ok_or_else(|| Failure::input(format!("cannot serve {path}"), Some("conv:size=1G".into())))?;
    Ok(Box::new(Conventional::in_memory(bytes / BLOCK_BYTES, BLOCK_BYTES as usize)))
}
