//! A plug-in of Flashpath: policies and a translation layer that the library does not have.
//!
//! | file | adds |
//! |---|---|
//! | [`interval`] | a grouping of `sfs`: blocks that are written again after a like time share segments |
//! | [`cost_age_times`] | a victim policy of `page`: cost, age and erases (CAT) |
//! | [`block_map`] | a translation layer on flash: block-level mapping with one replacement block |
//!
//! [`stations`] is the library's table of stations with these in it. A path of this table is read, checked, run and
//! reported as any other:
//!
//! ```
//! use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, RunOptions, Work, run};
//!
//! let path = Path::read_with("page:victim=cost-age-times/nand:size=64M", &flashpath_plugin::stations())?;
//! let work = Work::Blocks(BlockWork::generated("zipf:writes=1x", 1)?);
//! let job = Job { work, place: Place::Path(&path), seed: 1, options: RunOptions::default() };
//! let outcome = run(job, &NoMachine, &mut |_| true)?;
//! assert!(outcome.result.write_amplification.total.unwrap() >= 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod block_map;
pub mod cost_age_times;
pub mod interval;

use flashpath::device::station::Offer;
use flashpath::run::{Below, STATIONS, Station};

/// The stations of the library, with those of this crate in place of the ones with their names.
pub fn stations() -> Vec<Station> {
    let on_blocks = Below { takes: &[Offer::Blocks], later: &[], count: (1, 1), example: None, several: None };
    let own = vec![
        Station::layer::<block_map::BlockMapSettings>(&block_map::KIND),
        Station::layer::<cost_age_times::Settings>(*cost_age_times::PAGE),
        Station::volume(*interval::SFS, on_blocks, interval::read_sfs),
    ];
    let is_own = |name: &str| own.iter().any(|station| station.kind.name == name);
    let others: Vec<Station> = STATIONS.iter().filter(|station| !is_own(station.kind.name)).cloned().collect();
    [others, own].concat()
}
