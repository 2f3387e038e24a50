//! The layouts of real file systems: made by mkfs, and compared with what their own tools say of them.
//!
//! A tool that is not installed is named, and its tests are skipped.

mod skipped;

#[path = "layout/btrfs.rs"]
mod btrfs;
#[path = "layout/damage.rs"]
mod damage;
#[path = "layout/ext.rs"]
mod ext;
#[path = "layout/image.rs"]
mod image;
#[path = "layout/labelling.rs"]
mod labelling;
#[path = "layout/xfs.rs"]
mod xfs;
