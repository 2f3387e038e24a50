//! `ext` against those who know ext4: images that the kernel filled, and what e2fsprogs says of ours.

#[path = "ext/features.rs"]
mod features;
#[path = "ext/image.rs"]
mod image;
#[path = "ext/reading.rs"]
mod reading;
#[path = "skipped/mod.rs"]
mod skipped;
#[path = "ext/walk.rs"]
mod walk;
