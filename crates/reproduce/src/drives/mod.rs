//! Published numbers of drives that are sold, of no paper: endurance by random and by sequential writes, throughput of random
//! writes after a fill, of reads and writes mixed, and a cache with placement.
//!
//! | file | role |
//! |---|---|
//! | `mod` | the published numbers with their sources, and the conditions |
//! | `runs` | the drive of the runs, and a run |
//! | `figures` | the tables of runs, and what is claimed of them |
//!
//! Makers tell the capacity of a drive, and not its flash. A capacity of 3.2 or 6.4 TB is taken for that of 4 or 8 TiB of flash (37.4 %
//! spare), 3.84 TB for that of 4 TiB (14.5 %), 4.0 TB for that of 4 TiB (10 %).

mod figures;
mod runs;

use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::Reproduction;
use runs::Drive;

/// The figures.
pub const FIGURES: &[&str] = &["drives-endurance", "drives-random", "drives-mixed", "drives-placement"];

/// Spare space over the capacity, by the number of a drive's writes per day.
const HALF_A_WRITE: &str = "10%";
const ONE_WRITE: &str = "14.5%";
const THREE_WRITES: &str = "37.4%";
const SPARE: [&str; 5] = [HALF_A_WRITE, ONE_WRITE, "20%", "28%", THREE_WRITES];

/// A published range of one quantity.
struct Published {
    says: &'static str,
    source: &'static str,
    low: f64,
    high: f64,
}

/// TB written by sequential over TB written by random writes until the end of the warranty, of the capacities 25.6 TB
/// (282,600 / 140,160) to 3.2 TB (37,200 / 17,520).
const ENDURANCE: Published = Published {
    says: "endurance by sequential over that by random writes, 3 drive writes per day",
    source: "Micron 9550 MAX, 3.2 to 25.6 TB (specifications in StorageReview's review): 282,600 / 140,160 to 37,200 / 17,520 TB; 37.4 % \
             spare, derived",
    low: 2.016,
    high: 2.124,
};

/// Random writes of 4 KiB over sequential writes, both in bytes a second.
const HALF_A_WRITE_SPEED: Published = Published {
    says: "random over sequential write throughput, about 0.5 drive writes per day",
    source: "Intel P4500, 1 to 4 TB (Lenovo's product guide): 30,500, 38,000 and 62,500 writes of 4 KiB a second, 0.6, 1.05 and 1.8 GB/s; 10 % \
             spare, derived",
    low: 0.142,
    high: 0.208,
};
const ONE_WRITE_SPEED: Published = Published {
    says: "random over sequential write throughput, 1 drive write per day",
    source: "Intel D7-P5500 (announcement): 130,000 writes of 4 KiB a second, 4,300 MB/s; 14.5 % spare, derived",
    low: 0.124,
    high: 0.124,
};
const THREE_WRITES_SPEED: Published = Published {
    says: "random over sequential write throughput, 3 drive writes per day",
    source: "Intel D7-P5600 (announcement): 260,000 and 4,300 MB/s, and Micron 9550 MAX: 540,000 to 1,200,000 and 10,000 MB/s; 37.4 % spare, \
             derived",
    low: 0.221,
    high: 0.492,
};
const MORE_SPARE: Published = Published {
    says: "random writes with 3 drive writes per day over those with 1, of the same flash",
    source: "Intel D7-P5600 and D7-P5500 (announcement): 260,000 over 130,000 a second; 37.4 and 14.5 % spare, derived",
    low: 2.0,
    high: 2.0,
};

/// Of a load with 70 % reads.
const MIXED: Published = Published {
    says: "writes a second among 70 % reads over writes alone, random, 3 drive writes per day",
    source: "Micron 9550 MAX, four capacities: 0.3 x 640,000 / 540,000 to 0.3 x 1,300,000 / 1,200,000",
    low: 0.325,
    high: 0.366,
};

const PLACED: Published = Published {
    says: "write amplification of a full cache of two engines, with a handle for each",
    source: "Allison and others, EuroSys '25 (abstract): \"an ideal device write amplification of ~1\" of CacheLib on FDP drives",
    low: 1.0,
    high: 1.0,
};

/// Makes the figures.
pub fn reproduce(lab: &Lab, figures: &[&'static str]) -> Result<Reproduction, ReproduceError> {
    let drive = Drive::of(lab.scale);
    let made = figures.iter().map(|figure| match *figure {
        "drives-endurance" => figures::endurance(lab, &drive),
        "drives-random" => figures::random(lab, &drive),
        "drives-mixed" => figures::mixed(lab, &drive),
        "drives-placement" => figures::placement(lab),
        name => unreachable!("{name} is not in FIGURES"),
    });
    Ok(Reproduction {
        paper: "drives".to_string(),
        title: "Drives that are sold: published numbers".to_string(),
        command: "flashpath reproduce drives".to_string(),
        scale: lab.scale,
        seed: lab.seed,
        conditions: conditions(&drive),
        figures: made.collect::<Result<_, _>>()?,
    })
}

fn conditions(drive: &Drive) -> Vec<(String, String)> {
    let condition = |name: &str, value: String| (name.to_string(), value);
    vec![
        condition(
            "drive",
            format!(
                "`{}`: the preset is of no maker's drive. Its blocks are shorter than those of a large drive, and an erase takes a time in \
                 proportion, so that erases have their share of a large drive",
                drive.path("37.4%")
            ),
        ),
        condition(
            "spare space",
            "makers tell a drive's capacity, and not its flash: 3.2 TB are taken for those of 4 TiB of flash, 3.84 TB of 4 TiB, 4.0 TB of 4 TiB"
                .to_string(),
        ),
        condition(
            "state",
            "the drive is filled once in order; of random loads three times the capacity is written, and the last of it counted".to_string(),
        ),
        condition(
            "not compared",
            "absolute speeds, which are those of a drive's number of dies and of its interface; published WA of placement by object size \
             (LMCache on a Samsung PM9D3a: 2.600 and 1.425), of which the rates of each class are not told"
                .to_string(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each bound is made of the numbers that its source has.
    #[test]
    fn the_bounds_are_those_of_the_sources() {
        let speed = |writes: f64, sequential_mb: f64| writes * 4096.0 / (sequential_mb * 1e6);
        let lowest = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let micron = [(540e3, 640e3), (640e3, 720e3), (820e3, 1000e3), (1200e3, 1300e3)];
        let endurance = [37_200.0 / 17_520.0, 74_200.0 / 35_040.0, 143_100.0 / 70_080.0, 282_600.0 / 140_160.0];
        let p4500 = [speed(30_500.0, 600.0), speed(38_000.0, 1050.0), speed(62_500.0, 1800.0)];
        let three = [speed(260e3, 4300.0)]
            .into_iter()
            .chain(micron.map(|(writes, _)| speed(writes, 10_000.0)))
            .collect::<Vec<_>>();
        let mixed = micron.map(|(writes, mixed)| 0.3 * mixed / writes);
        let factor = [260e3 / 130e3];
        for (published, values) in [
            (&ENDURANCE, &endurance[..]),
            (&HALF_A_WRITE_SPEED, &p4500[..]),
            (&ONE_WRITE_SPEED, &[speed(130e3, 4300.0)][..]),
            (&THREE_WRITES_SPEED, &three[..]),
            (&MORE_SPARE, &factor[..]),
            (&MIXED, &mixed[..]),
        ] {
            let (low, high) = (lowest(values), highest(values));
            assert!((published.low / low - 1.0).abs() < 0.003, "{}: {low}", published.says);
            assert!((published.high / high - 1.0).abs() < 0.003, "{}: {high}", published.says);
        }
    }
}
