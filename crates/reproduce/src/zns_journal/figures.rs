//! The figures of the runs.

use super::{FILES, LOADS, MODES, Measured, Replays, SYNCS};
use flashpath::report::RunResult;
use flashpath::report::figure::{Claim, Figure, Panel};

/// Parts into which the journal's writes are divided in figure 3.
const PARTS: usize = 12;

const SCHEMES: [&str; 2] = ["dm-zoned", "journal-zone"];

/// Blocks copied by reclaim, of one content or of all, without zeros that fill holes.
fn copies(result: &RunResult, content: Option<&str>) -> f64 {
    let is_counted = |of: &str| content.map_or(of != "mapping", |content| of == content);
    let rows = result.ledger.iter().filter(|row| row.station == "dm-zoned" && row.cause == "reclaim");
    rows.filter(|row| is_counted(&row.content)).map(|row| row.blocks).sum()
}

fn mean(measured: &Measured, of: impl Fn(&Replays) -> f64) -> f64 {
    measured.runs.iter().map(of).sum::<f64>() / measured.runs.len().max(1) as f64
}

fn share(measured: &Measured) -> f64 {
    mean(measured, |replays| copies(&replays.plain, Some("journal")))
        / mean(measured, |replays| copies(&replays.plain, None))
}

fn saved(measured: &Measured) -> f64 {
    1.0 - mean(measured, |replays| copies(&replays.separated, None))
        / mean(measured, |replays| copies(&replays.plain, None))
}

/// A panel with a group for each workload and a series for each mode.
fn by_mode(title: &str, measured: &[Measured], value: impl Fn(&Measured) -> f64) -> Panel {
    let of = |load: &str, mode: &str| measured.iter().find(|one| one.load == load && one.mode == mode).map(&value);
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let groups =
        LOADS.iter().map(|load| (load.name.to_string(), MODES.map(|mode| finite(of(load.name, mode))).to_vec()));
    Panel::new(title, MODES.map(String::from).to_vec(), groups.collect())
}

/// The lowest and the highest value.
fn ends(values: impl Iterator<Item = f64>) -> [Option<f64>; 2] {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    [values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max)]
}

/// The median.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

fn claim(
    says: impl Into<String>,
    place: &str,
    (low, high): (Option<f64>, Option<f64>),
    ours: Option<f64>,
    because: &str,
) -> Claim {
    Claim { says: says.into(), place: place.to_string(), low, high, ours, because: because.to_string(), shown_by: None }
}

const SIZES: &str = "the paper gives neither the file's size nor the amount written between two commits. With more \
                     chunks in use than conventional zones, the journal's chunk is copied whole after every commit \
                     that touches it, so that its share depends on the number of commits; data=journal touches more \
                     of it";

const SEQUENTIAL: &str = "beside sequential data, the journal stays in a buffer zone, which is not a victim while there are \
                          data zones";

/// Figure 3: the zone of the journal.
pub fn zones(measured: &[Measured]) -> Figure {
    let of = |mode: &str| measured.iter().find(|one| one.mode == mode && one.load == LOADS[0].name);
    let panel = |mode: &str| {
        let zones: [&[u32]; 2] = match of(mode).and_then(|one| one.runs.first()) {
            Some(replays) => [&replays.journal_zones[0], &replays.journal_zones[1]],
            None => [&[], &[]],
        };
        let groups = (0..PARTS).map(|part| {
            let at = |zones: &[u32]| zones.get((part * 2 + 1) * zones.len() / (2 * PARTS)).map(|zone| f64::from(*zone));
            (format!("{}/{PARTS}", part + 1), zones.map(at).to_vec())
        });
        Panel::new(mode, SCHEMES.map(String::from).to_vec(), groups.collect())
    };
    let distinct = |which: usize| {
        let counts = measured.iter().flat_map(|one| &one.runs).map(move |replays| {
            let mut zones = replays.journal_zones[which].clone();
            zones.sort_unstable();
            zones.dedup();
            zones.len() as f64
        });
        ends(counts)
    };
    Figure {
        name: "zns-journal-fig3".to_string(),
        title: "ZNS journal figure 3: zone number used for journal write requests".to_string(),
        unit: "number of the conventional zone".to_string(),
        about: "The conventional zone of the journal, over the journal's writes from mkfs on; uniform, first run."
            .to_string(),
        panels: MODES.map(panel).to_vec(),
        claims: vec![
            claim(
                "zones that held the journal, in the run with the most",
                "2.2: it is changed continuously",
                (Some(2.0), None),
                distinct(0)[1],
                SIZES,
            ),
            claim(
                "zones that held the journal with the journal zone, in the run with the most",
                "4.3, derived: all journal writes go to that zone",
                (Some(1.0), Some(1.0)),
                distinct(1)[1],
                "mkfs writes the journal before it can be recognised as one",
            ),
        ],
        made_by: None,
    }
    .over("part of the run")
}

/// Figure 7: the journal's share of the copied blocks.
pub fn journal_share(measured: &[Measured]) -> Figure {
    let [low, high] = ends(measured.iter().map(share));
    let place = "5.1: about 10 to 30 %, except for the highest";
    let middle = median(measured.iter().map(share));
    Figure {
        name: "zns-journal-fig7".to_string(),
        title: "ZNS journal figure 7: journal data copied during garbage collection".to_string(),
        unit: "share of the blocks copied by reclaim".to_string(),
        about: "dm-zoned without the scheme. Zeros that fill holes are not counted; the done part of cancelled \
                copies is."
            .to_string(),
        panels: vec![by_mode("", measured, share)],
        claims: vec![
            claim(
                "the journal's share, the median of all workloads and modes",
                place,
                (Some(0.10), Some(0.30)),
                middle,
                SIZES,
            )
            .shown_by("zns-journal-sync"),
            claim(
                "the journal's share, in the workload and mode with the least",
                place,
                (Some(0.10), Some(0.30)),
                low,
                SEQUENTIAL,
            ),
            claim(
                "the journal's share, in the workload and mode with the most",
                "5.1: up to 48.5 %",
                (Some(0.485), Some(0.485)),
                high,
                SIZES,
            )
            .shown_by("zns-journal-sync"),
        ],
        made_by: None,
    }
}

/// Figure 8: the reduction of copies.
pub fn reduction(measured: &[Measured]) -> Figure {
    let [low, high] = ends(measured.iter().map(saved));
    let band = (Some(0.14), Some(0.268));
    let left =
        measured.iter().flat_map(|one| &one.runs).map(|replays| copies(&replays.separated, Some("journal"))).sum();
    let blocks = |which: fn(&Replays) -> &RunResult| {
        move |one: &Measured| mean(one, |replays| copies(which(replays), None)) * 4096.0 / f64::from(1 << 20)
    };
    Figure {
        name: "zns-journal-fig8".to_string(),
        title: "ZNS journal figure 8: reduction of the data copied during garbage collection".to_string(),
        unit: "share of the copies saved".to_string(),
        about: "The same traces on dm-zoned with and without the journal zone.".to_string(),
        panels: vec![
            by_mode("reduction", measured, saved),
            Panel {
                unit: Some("MiB copied".to_string()),
                ..by_mode("dm-zoned", measured, blocks(|replays| &replays.plain))
            },
            Panel {
                unit: Some("MiB copied".to_string()),
                ..by_mode("journal-zone", measured, blocks(|replays| &replays.separated))
            },
        ],
        claims: vec![
            claim(
                "the reduction, the median of all workloads and modes",
                "5.1",
                band,
                median(measured.iter().map(saved)),
                SIZES,
            )
            .shown_by("zns-journal-sync"),
            claim("the reduction, in the workload and mode with the least", "5.1", band, low, SEQUENTIAL),
            claim("the reduction, in the workload and mode with the most", "5.1", band, high, SIZES)
                .shown_by("zns-journal-sync"),
            claim(
                "journal blocks copied by reclaim with the journal zone, in all runs",
                "4.4: it is never a reclaim target",
                (Some(0.0), Some(0.0)),
                Some(left),
                "a journal zone must not be reclaimed",
            ),
        ],
        made_by: None,
    }
}

/// Figure 9: throughput.
pub fn throughput(measured: &[Measured]) -> Figure {
    let seconds = |result: &RunResult| result.seconds_simulated.unwrap_or(f64::NAN);
    let speed = |one: &Measured, of: fn(&Replays) -> &RunResult| {
        one.application_mib / mean(one, |replays| seconds(of(replays)))
    };
    let speeds = |one: &Measured| [speed(one, |replays| &replays.plain), speed(one, |replays| &replays.separated)];
    let ratio = |one: &Measured| {
        let [plain, separated] = speeds(one);
        separated / plain
    };
    let panel = |mode: &str| {
        let groups = measured.iter().filter(|one| one.mode == mode).map(|one| {
            (one.load.to_string(), speeds(one).map(|value| Some(value).filter(|value| value.is_finite())).to_vec())
        });
        Panel::new(mode, SCHEMES.map(String::from).to_vec(), groups.collect())
    };
    let lowest = |mode: &str| ends(measured.iter().filter(|one| one.mode == mode).map(ratio))[0];
    let because = "the scheme saves copies, but leaves one zone less for all other blocks";
    Figure {
        name: "zns-journal-fig9".to_string(),
        title: "ZNS journal figure 9: I/O performance".to_string(),
        unit: "MiB/s in simulated time".to_string(),
        about: "Bytes that fio wrote, over the simulated time of the replay at fio's depth.".to_string(),
        panels: MODES.map(panel).to_vec(),
        claims: vec![
            claim(
                "ordered: throughput with the journal zone over without, in the worst workload",
                "5.2: no significant improvement; 5 % counts as significant",
                (Some(0.95), None),
                lowest("ordered"),
                because,
            ),
            claim(
                "journal: throughput with the journal zone over without, in the worst workload",
                "5.2: it has improved; 1 % counts as improved",
                (Some(1.01), None),
                lowest("journal"),
                because,
            ),
        ],
        made_by: None,
    }
}

/// Blocks that dm-zoned wrote for one purpose, on both devices together.
fn written(result: &RunResult, is_counted: impl Fn(&str, &str) -> bool) -> f64 {
    let rows = result.ledger.iter().filter(|row| row.station == "dm-zoned");
    rows.filter(|row| is_counted(&row.cause, &row.content)).map(|row| row.blocks).sum()
}

/// All that is written: the title of the paper is about write amplification.
pub fn total(measured: &[Measured]) -> Figure {
    /// A part of the written blocks, by cause and content.
    type Part = (&'static str, fn(&str, &str) -> bool);
    const PARTS: [Part; 5] = [
        ("requests", |cause, _| cause == "host-write"),
        ("commits", |cause, _| cause == "mapping"),
        ("copies", |cause, content| cause == "reclaim" && content != "mapping"),
        ("zeros in holes", |cause, content| cause == "reclaim" && content == "mapping"),
        ("all", |_, _| true),
    ];
    /// The replay of a volume.
    type Of = fn(&Replays) -> &RunResult;
    const VOLUMES: [(&str, Of); 3] = [
        ("dm-zoned", |replays| &replays.plain),
        ("journal-zone", |replays| &replays.separated),
        ("journal-zone, one more zone", |replays| &replays.roomier),
    ];
    let mib = |one: &Measured, part: Part, of: Of| {
        mean(one, |replays| written(of(replays), part.1)) * 4096.0 / f64::from(1 << 20)
    };
    let panel = |part: Part| {
        let row = |one: &Measured| {
            let values = VOLUMES.map(|(_, of)| Some(mib(one, part, of)).filter(|value| value.is_finite()));
            (format!("{}, {}", one.load, one.mode), values.to_vec())
        };
        Panel::new(part.0, VOLUMES.map(|(name, _)| name.to_string()).to_vec(), measured.iter().map(row).collect())
    };
    let [.., all] = PARTS;
    let [plain, separated, roomier] = VOLUMES.map(|(_, of)| of);
    let over = |of| measured.iter().map(move |one| mib(one, all, of) / mib(one, all, plain));
    let with_a_zone_more = median(over(roomier));
    let because = "the journal zone takes one of the conventional zones, so that the others are reclaimed more often, and each \
                   reclaim fills the holes of a whole zone with zeros";
    let says =
        |who: &str| format!("all blocks written {who} over those without it, the median of all workloads and modes");
    let mut with = claim(
        says("with the journal zone"),
        "title, abstract: it reduces the write amplification",
        (None, Some(1.0)),
        median(over(separated)),
        because,
    );
    // The zone is the cause if giving it back takes the increase away.
    if with_a_zone_more.is_some_and(|ratio| ratio <= 1.0) {
        with = with.shown_by("zns-journal-total");
    }
    Figure {
        name: "zns-journal-total".to_string(),
        title: "ZNS journal: all blocks written to both devices".to_string(),
        unit: "MiB written".to_string(),
        about: "What dm-zoned writes to the conventional and the zoned device. The paper counts copies, without the zeros with \
                which reclaim fills the holes of a zone. In the third column the volume has one conventional zone more: as many \
                as without the scheme remain for all other blocks."
            .to_string(),
        panels: PARTS.map(panel).to_vec(),
        claims: vec![
            with,
            claim(
                says("with the journal zone and one conventional zone more"),
                "not of the paper: an ablation",
                (None, Some(1.0)),
                with_a_zone_more,
                because,
            ),
        ],
        made_by: None,
    }
}

/// The sensitivity of figures 7 and 8 to the sync interval, the file's size and the mode.
pub fn sensitivity(measured: &[Measured]) -> Figure {
    let cases: Vec<(u64, &str)> = FILES.iter().flat_map(|file| MODES.map(|mode| (*file, mode))).collect();
    let name = |(file, mode): &(u64, &str)| format!("{} GiB, {mode}", file >> 30);
    let panel = |title: &str, value: &dyn Fn(&Measured) -> f64| {
        let at = |sync: f64, (file, mode): (u64, &str)| {
            let is_it = |one: &&Measured| (one.setting.file, one.mode) == (file, mode) && one.setting.sync == sync;
            measured.iter().find(is_it).map(value).filter(|value| value.is_finite())
        };
        let row = |sync: f64| (format!("{sync} s"), cases.iter().map(|case| at(sync, *case)).collect());
        Panel::new(title, cases.iter().map(name).collect(), SYNCS.map(row).to_vec())
    };
    let all =
        |of: fn(&Replays) -> &RunResult| move |one: &Measured| mean(one, |replays| written(of(replays), |_, _| true));
    let growth = |one: &Measured| all(|replays| &replays.separated)(one) / all(|replays| &replays.plain)(one);
    let of_mode = |mode: &'static str| measured.iter().filter(move |one| one.mode == mode).map(share);
    let [least, most] = ends(MODES.into_iter().flat_map(of_mode));
    Figure {
        name: "zns-journal-sync".to_string(),
        title: "ZNS journal: what the shares depend on".to_string(),
        unit: "share of the blocks copied by reclaim".to_string(),
        about: "Uniform writes, one seed. The journal's share (figure 7), the reduction of copies (figure 8), and all blocks \
                written with the journal zone over those without."
            .to_string(),
        panels: vec![
            panel("journal's share", &share),
            panel("reduction", &saved),
            Panel { unit: Some("ratio".to_string()), ..panel("all written, with over without", &growth) },
        ],
        claims: vec![
            claim(
                "the journal's share, in the setting with the least",
                "5.1: from about 10 %",
                (None, Some(0.10)),
                least,
                SIZES,
            ),
            claim("the journal's share, in the setting with the most", "5.1: to 48.5 %", (Some(0.485), None), most, SIZES),
        ],
        made_by: None,
    }
    .over("seconds between syncs")
}
