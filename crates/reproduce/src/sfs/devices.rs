//! The paper's three devices (Table 1) as times of `conv`, and the request size at which random writes are as fast as
//! sequential ones (figure 1).
//!
//! `conv` has a service time for a block and a number of units, without flash: it models reads and sequential writes,
//! on which SFS depends. The cost of random writes is the translation layer's, so figure 1 is measured on flash below
//! two of them.

use super::volume::{Measured, Points};
use super::{claim, panel};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::Figure;
use flashpath::units::format_size;

/// A device: sequential reads, random 4 KB reads, sequential writes and random 4 KB writes in megabytes (10^6) per
/// second.
pub struct Device {
    pub name: &'static str,
    pub paper: [f64; 4],
}

pub const DEVICES: [Device; 3] = [
    Device { name: "SSD-H", paper: [216.9, 13.8, 170.0, 5.3] },
    Device { name: "SSD-M", paper: [212.6, 10.6, 87.0, 0.6] },
    Device { name: "SSD-L", paper: [69.1, 5.3, 38.0, 0.002] },
];
pub const M: &Device = &DEVICES[1];

impl Device {
    /// The options of `conv`: a random read gives the time of a 4 KB read, sequential reads give the number of parallel
    /// units, and sequential writes the time of a write on one unit.
    pub fn times(&self) -> String {
        let [sequential_read, random_read, sequential_write, _] = self.paper;
        let units = (sequential_read / random_read).round();
        let nanoseconds = |megabytes: f64, blocks: f64| (blocks * 4096.0 / megabytes * 1e3).round() as u64;
        format!(
            "read={}ns,write={}ns,units={units}",
            nanoseconds(random_read, 1.0),
            nanoseconds(sequential_write, units)
        )
    }

    /// Section 4.1's Wc with g blocks copied for each new one: 1 + g (1 + sequential write / random read).
    pub fn write_cost(&self, measured: &Measured) -> f64 {
        let [_, random_read, sequential_write, _] = self.paper;
        1.0 + measured.copies() * (1.0 + sequential_write / random_read)
    }
}

/// Table 1.
pub fn table(lab: &Lab) -> Result<Figure, ReproduceError> {
    const KINDS: [(&str, &str); 4] = [
        ("sequential read", "sequential:reads=100%,request=1M,writes=64M"),
        ("random 4 KB read", "uniform:reads=100%,writes=4M"),
        ("sequential write", "sequential:request=1M,writes=64M"),
        ("random 4 KB write", "uniform:writes=4M"),
    ];
    let (mut groups, mut claims) = (Vec::new(), Vec::new());
    for (kind, (name, load)) in KINDS.into_iter().enumerate() {
        let mut values = Vec::new();
        for device in &DEVICES {
            let path = format!("conv:size=256M,{}", device.times());
            let result = lab.run_alone(&path, load, None)?;
            // MiB to the paper's MB.
            let ours = result.throughput_mib_s.map(|value| value * 1.048_576);
            values.extend([Some(device.paper[kind]), ours]);
            claims.push(claim(
                format!("{}: {name}, MB/s", device.name),
                "Table 1",
                Some(device.paper[kind]),
                Some(device.paper[kind]),
                ours,
                "conv has no flash below, and a single random write takes one program; figure 1 shows the cost of \
                 random writes on translation layers. SFS writes only its superblock at random",
            ));
        }
        groups.push((name.to_string(), values));
    }
    let series =
        DEVICES.iter().flat_map(|device| [format!("{}, paper", device.name), format!("{}, ours", device.name)]);
    Ok(Figure {
        name: "sfs-table1".to_string(),
        title: "SFS table 1: the devices".to_string(),
        unit: "MB/s".to_string(),
        about: format!(
            "The devices as times of `conv`, one request at a time: {}.",
            DEVICES.iter().map(|device| format!("{} `{}`", device.name, device.times())).collect::<Vec<_>>().join(", ")
        ),
        panels: vec![panel("", series.collect(), groups)],
        claims,
        made_by: None,
    })
}

const REQUESTS: [u64; 6] = [4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20];
/// One erase block on each of 32 dies: 16 MiB, the clustered block of H and L.
const CLUSTERED: u64 = 16 << 20;
/// The share of the sequential speed at which random writes count as equally fast.
const AS_FAST: f64 = 0.95;
const FLASH: &str = "page=4K,pages-per-block=128,channels=8,dies=4";

/// Figure 1.
pub fn request_sizes(points: &Points) -> Result<Figure, ReproduceError> {
    let lab = points.lab;
    let size = lab.scaled(32 << 30, 1 << 30);
    let (mut panels, mut claims) = (Vec::new(), Vec::new());
    for layer in ["page", "fast"] {
        let path = format!("{layer}:op=10%/nand:size={},{FLASH}", format_size(size));
        let mut groups = Vec::new();
        for request in REQUESTS {
            // The paper ages with twice the capacity. On FAST, small requests reach their steady state long before, and
            // would take too long.
            let counted = (size / 4).min(request * if layer == "fast" { 2048 } else { 1 << 20 }) / request * request;
            // Aging is in whole batches of requests of up to 1 MiB.
            let aging = 2 * counted / (request >> 20).max(1);
            let speed = |pattern: &str| -> Result<Option<f64>, ReproduceError> {
                let load = format!("{pattern}:request={},writes={}", format_size(request), format_size(64 * counted));
                Ok(lab.run_alone(&path, &load, Some((aging, counted / request)))?.throughput_mib_s)
            };
            let (sequential, random) = (speed("sequential")?, speed("uniform")?);
            groups.push((format_size(request), vec![sequential, random]));
        }
        let best = groups.iter().filter_map(|(_, values): &(String, Vec<Option<f64>>)| values[0]).fold(0.0, f64::max);
        let share = |random: Option<f64>| random.map(|random| random / best);
        let converges = REQUESTS.iter().zip(&groups).find(|(_, (_, values))| share(values[1]) >= Some(AS_FAST));
        claims.push(claim(
            format!("{layer}: random writes of 32 MiB over the fastest sequential ones"),
            "2.2: random writes are as fast; 95 % counts as equal",
            Some(AS_FAST),
            None,
            share(groups.last().and_then(|(_, values)| values[1])),
            "the page-level layer mixes requests in erase blocks, so it collects garbage after large requests, too; \
             FAST switches the whole erase blocks that a request covers",
        ));
        if let Some((request, _)) = converges {
            claims.push(claim(
                format!("{layer}: MiB of the smallest request at which random writes are as fast"),
                "2.2: 16 MB on H and L, 32 MB on M",
                Some(16.0),
                Some(32.0),
                Some(*request as f64 / (1 << 20) as f64),
                "FAST switches whole erase blocks, and needs only a request that covers one on each die",
            ));
        }
        panels.push(panel(layer, ["sequential", "random"].map(String::from).to_vec(), groups));
    }
    Ok(Figure {
        name: "sfs-fig1".to_string(),
        title: "SFS figure 1: sequential and random writes by request size".to_string(),
        unit: "MiB/s in simulated time".to_string(),
        about: format!(
            "`nand:size={},{FLASH}` with `op=10%`, filled in order and aged with the measured load; one erase block \
             on each die is {} in all.",
            format_size(size),
            format_size(CLUSTERED)
        ),
        panels,
        claims,
        made_by: None,
    }
    .over("request size"))
}
