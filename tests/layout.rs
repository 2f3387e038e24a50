//! The layouts of real file systems: made by mkfs, and compared with the output of their own tools.
//!
//! Tests whose tool is not installed are skipped with its name.

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
