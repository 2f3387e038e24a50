//! dm-zoned: any block device on zones.

mod settings;

pub use settings::{KIND, ZonedSettings};
