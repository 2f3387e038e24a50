//! SFS compared with a model: written data is read back, after remounts and crashes, on blocks and on zones.

#[path = "failing_disk/mod.rs"]
mod failing_disk;
#[path = "power_cut/mod.rs"]
mod power_cut;

#[path = "sfs/access_lists.rs"]
mod access_lists;
#[path = "sfs/calls.rs"]
mod calls;
#[path = "sfs/counted_writes.rs"]
mod counted_writes;
#[path = "sfs/damage.rs"]
mod damage;
#[path = "sfs/directed_cuts.rs"]
mod directed_cuts;
#[path = "sfs/failing_store.rs"]
mod failing_store;
#[path = "sfs/forged.rs"]
mod forged;
#[path = "sfs/generations.rs"]
mod generations;
#[path = "sfs/history.rs"]
mod history;
#[path = "sfs/load_cuts.rs"]
mod load_cuts;
#[path = "sfs/log_damage.rs"]
mod log_damage;
#[path = "sfs/machine.rs"]
mod machine;
#[path = "sfs/memory.rs"]
mod memory;
#[path = "sfs/model.rs"]
mod model;
#[path = "sfs/open_heads.rs"]
mod open_heads;
#[path = "sfs/power_cuts.rs"]
mod power_cuts;
#[path = "sfs/random_work.rs"]
mod random_work;
#[path = "sfs/repairs.rs"]
mod repairs;
#[path = "sfs/reservations.rs"]
mod reservations;
#[path = "sfs/slow_store.rs"]
mod slow_store;
#[path = "sfs/small_syncs.rs"]
mod small_syncs;
#[path = "sfs/space.rs"]
mod space;
#[path = "sfs/superblocks.rs"]
mod superblocks;
#[path = "sfs/threads.rs"]
mod threads;
#[path = "sfs/unclean.rs"]
mod unclean;
#[path = "sfs/unclean_damage.rs"]
mod unclean_damage;
#[path = "sfs/versions.rs"]
mod versions;
#[path = "sfs/wrong_fields.rs"]
mod wrong_fields;

use flashpath::device::BlockDevice;
use flashpath::expression::parse_term;
use flashpath::fs::sfs::{Identity, Medium, Sfs, SfsSettings, Timestamp};
use flashpath::task::Task;
use flashpath::time::Time;

/// Options that leave a volume nearly no memory for metadata: less than `memory=` allows, as the volumes of these tests
/// are small.
const LITTLE_MEMORY: &str = "memory=28M";

/// The settings of a term.
fn settings(text: &str) -> SfsSettings {
    let settings = SfsSettings::read(&parse_term(text).unwrap()).unwrap();
    let metadata_memory_bytes = text.ends_with(LITTLE_MEMORY).then_some(256 << 10);
    SfsSettings { metadata_memory_bytes, ..settings }
}

const IDENTITY: Identity = Identity { seed: 1, origin: Timestamp(1_700_000_000_000_000_000) };

fn blocks(device: impl BlockDevice + 'static) -> Medium {
    Medium::Blocks(Box::new(device))
}

fn create(medium: Medium, text: &str) -> Sfs {
    Sfs::create(&Task::at(Time::ZERO), medium, &settings(text), IDENTITY).unwrap()
}

fn open(medium: Medium, text: &str) -> Sfs {
    Sfs::open(&Task::at(Time::ZERO), medium, &settings(text), IDENTITY, false).unwrap()
}
