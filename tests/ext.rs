//! `ext` against those who know ext4: images that the kernel filled, and what e2fsprogs says of ours.

#[path = "ext/beside_the_kernel.rs"]
mod beside_the_kernel;
#[path = "ext/caching.rs"]
mod caching;
#[path = "ext/checking.rs"]
mod checking;
#[path = "ext/crashes.rs"]
mod crashes;
#[path = "ext/damaged_and_unclean.rs"]
mod damaged_and_unclean;
#[path = "ext/damaged_mounts.rs"]
mod damaged_mounts;
#[path = "ext/external.rs"]
mod external;
#[path = "ext/fast_commits.rs"]
mod fast_commits;
#[path = "ext/fast_crashes.rs"]
mod fast_crashes;
#[path = "ext/fast_writes.rs"]
mod fast_writes;
#[path = "ext/features.rs"]
mod features;
#[path = "ext/flights.rs"]
mod flights;
#[path = "ext/full.rs"]
mod full;
#[path = "ext/huge.rs"]
mod huge;
#[path = "ext/image.rs"]
mod image;
#[path = "ext/in_use.rs"]
mod in_use;
#[path = "ext/journal_file.rs"]
mod journal_file;
#[path = "ext/kept.rs"]
mod kept;
#[path = "ext/killed_repairs.rs"]
mod killed_repairs;
#[path = "ext/log_damage.rs"]
mod log_damage;
#[path = "ext/log_data.rs"]
mod log_data;
#[path = "ext/logs.rs"]
mod logs;
#[path = "ext/memory.rs"]
mod memory;
#[path = "ext/nvm.rs"]
mod nvm;
#[path = "ext/nvm_regions.rs"]
mod nvm_regions;
#[path = "ext/orders.rs"]
mod orders;
#[path = "ext/other_makers.rs"]
mod other_makers;
#[path = "ext/pair.rs"]
mod pair;
#[path = "power_cut/mod.rs"]
mod power_cut;
#[path = "ext/reading.rs"]
mod reading;
#[path = "ext/real_images.rs"]
mod real_images;
#[path = "ext/replaced.rs"]
mod replaced;
#[path = "ext/replay.rs"]
mod replay;
#[path = "ext/simulated.rs"]
mod simulated;
#[path = "skipped/mod.rs"]
mod skipped;
#[path = "ext/unclean_damage.rs"]
mod unclean_damage;
#[path = "ext/walk.rs"]
mod walk;
#[path = "ext/work.rs"]
mod work;
#[path = "ext/write_out.rs"]
mod write_out;
#[path = "ext/writing.rs"]
mod writing;
