//! Published factors, and what is claimed of them; and the figure in which their causes are taken away.

use super::matrix::{Drive, Load, MOST, THREADS, named, tlc, tlc_size};
use super::runs::{Measured, Runs, table};
use crate::ReproduceError;
use crate::lab::Lab;
use flashpath::report::figure::{Claim, Figure, Panel};

/// The figure of the ablations.
pub const ORDER: &str = "journals-order";

/// A published number.
struct Published {
    says: &'static str,
    source: &'static str,
    low: f64,
    /// None if there is only a least number.
    high: Option<f64>,
}

/// The sources are the abstracts, but for OptFS's, of which the number is remembered.
const SHARE: Published = Published {
    says: "the journal's share of what a mail server has the drive write, without fast commits",
    source: "Shirwadkar, Kadekodi and Ts'o, USENIX ATC '24 (abstract): about 76 %",
    low: 0.76,
    high: Some(0.76),
};
const FAST: Published = Published {
    says: "throughput with fast commits over that without, at the best number of threads",
    source: "Shirwadkar, Kadekodi and Ts'o, USENIX ATC '24 (abstract): up to 120 % more",
    low: 1.0,
    high: Some(2.2),
};
const BARRIER: Published = Published {
    // The factor follows the number of dies: a single number of one drive says nothing of another.
    says: "synced writes of 4 KiB are faster with order alone than durable; how much follows the number of dies",
    source: "Won and others, BarrierFS, FAST '18 (abstract): 73 times with SQLite, on a drive of its own",
    low: 1.0,
    high: None,
};
const OPTIMISTIC: Published = Published {
    says: "mail with optimistic order alone over durable data journaling",
    source: "Chidambaram and others, OptFS, SOSP '13: up to ten times (not read again)",
    low: 1.0,
    high: Some(10.0),
};
const CJFS: Published = Published {
    says: "Varmail with parallel commits over jbd2's",
    source: "Oh and others, CJFS, FAST '23 (abstract): 81 % more",
    low: 1.81,
    high: Some(1.81),
};
const Z_JOURNAL: Published = Published {
    says: "throughput with a journal for each core over jbd2's, 80 cores",
    source: "Kim and others, Z-Journal, USENIX ATC '21 (abstract): up to about 40 times",
    low: 1.0,
    high: Some(40.0),
};

fn claim(published: &Published, ours: Option<f64>, because: &str, shown_by: Option<&str>) -> Claim {
    Claim {
        says: published.says.to_string(),
        place: published.source.to_string(),
        low: Some(published.low),
        high: published.high,
        ours,
        because: because.to_string(),
        shown_by: shown_by.map(str::to_string),
    }
}

fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other.filter(|other| *other > 0.0)?)
}

/// The shares and factors of Varmail on the TLC drive by threads, with the claims that are made of them.
pub fn fast_commits(varmail: &Runs) -> Figure {
    let share = |threads| {
        let run = varmail.of(threads, named("ordered"))?;
        Some(run.journal_mib() / run.mib(|cause, _, _| cause == "host-write"))
    };
    let factor = |name: &str, threads| {
        let calls = |name: &str| varmail.of(threads, named(name)).and_then(Measured::throughput);
        over(calls(name), calls("ordered"))
    };
    let rows = THREADS.map(|threads| {
        let values = vec![share(threads), factor("fast commits", threads), factor("journal, overwrites", threads)];
        (threads.to_string(), values)
    });
    let series = ["journal's share, ordered", "fast commits over ordered", "journal, overwrites over ordered"];
    let panel = Panel {
        axis: Some("threads".to_string()),
        ..Panel::new("Varmail", series.map(String::from).to_vec(), rows.to_vec())
    };
    let best = THREADS.iter().filter_map(|threads| factor("fast commits", *threads)).reduce(f64::max);
    let few = "fewer threads share fewer commits: the abstract tells neither their number nor the load, and the table has the share at each";
    let parallel = "parallel commits are not in ext: a closed transaction shares the bytes of its blocks already, and with more commits fewer \
                    fsyncs share one (docs/decisions/0038-parallel-commits.md)";
    Figure {
        name: "journals-factors".to_string(),
        title: "Published factors of journals".to_string(),
        unit: "ratio".to_string(),
        about: "Varmail on the page-level TLC drive, throughput in calls. iJournaling's abstract has no number that applies here: fast \
                commits are its heir in ext4."
            .to_string(),
        panels: vec![panel],
        claims: vec![
            claim(&SHARE, share(THREADS[0]), few, None),
            claim(&FAST, best, "", None),
            claim(&CJFS, None, parallel, None),
            claim(&Z_JOURNAL, None, parallel, None),
        ],
        made_by: None,
    }
}

/// Order in place of durability: by the number of dies, the buffer and the time of a program.
pub fn order(lab: &Lab) -> Result<Figure, ReproduceError> {
    const CAUSES: [(&str, &str, &str, &str); 6] = [
        ("8 dies, a buffer of 4M, programs of 660 us", ",dies=2", "4M", "660us"),
        ("4 dies", ",dies=1", "4M", "660us"),
        ("16 dies", ",dies=4", "4M", "660us"),
        ("a buffer of 64M, which is never full", ",dies=2", "64M", "660us"),
        ("programs of 200 us", ",dies=2", "4M", "200us"),
        ("programs of 2 ms", ",dies=2", "4M", "2ms"),
    ];
    let writes = lab.scaled(256 << 20, 4 << 20).max(16 << 20) >> 20;
    let one = format!("rnd_write:file=32M,writes={writes}M,fsync-every=1");
    let mail = Load::Varmail.expression(lab, &MOST.to_string());
    // With pairs of loads and journals: durable, and in order alone.
    let pairs = [
        (&one, "ordered", "fdatabarrier", "barrier"),
        (&mail, "ordered", "fbarrier", "barrier"),
        (&mail, "fast commits", "fbarrier", "barrier, fast commits"),
        (&mail, "journal", "fbarrier", "optimistic"),
    ];
    let on = |name: &str, (_, dies, buffer, program): &(&str, &str, &str, &str)| {
        format!("ext:{}/{}", named(name).options, tlc(tlc_size(lab), dies, buffer, program))
    };
    let mut columns = Vec::new();
    for (number, (load, durable, call, in_order)) in pairs.into_iter().enumerate() {
        let ordered = format!("{load},sync-call={call}");
        let paths = |name| CAUSES.iter().map(|cause| on(name, cause)).collect::<Vec<_>>();
        let before = table(lab, &format!("journals-durable-{number}"), std::slice::from_ref(load), &paths(durable))?;
        let after = table(lab, &format!("journals-order-{number}"), std::slice::from_ref(&ordered), &paths(in_order))?;
        let seconds = |made: &std::collections::BTreeMap<(String, String), Measured>, load: &String, path: String| {
            made.get(&(load.clone(), path)).and_then(Measured::seconds)
        };
        columns.push(CAUSES.map(|cause| {
            over(seconds(&before, load, on(durable, &cause)), seconds(&after, &ordered, on(in_order, &cause)))
        }));
    }
    let series = [
        "synced writes of 4 KiB, barrier",
        "Varmail, barrier",
        "Varmail, barrier and fast commits",
        "Varmail, optimistic",
    ];
    let rows = CAUSES
        .iter()
        .enumerate()
        .map(|(number, (name, ..))| (name.to_string(), columns.iter().map(|column| column[number]).collect()));
    let panel =
        Panel::new("time of durable syncs over that of order alone", series.map(String::from).to_vec(), rows.collect());
    Ok(Figure {
        name: ORDER.to_string(),
        title: "Order in place of durability".to_string(),
        unit: "ratio".to_string(),
        about: format!(
            "Each fsync is an fbarrier or fdatabarrier, on {} with a volatile buffer. One thread writes blocks of 4 KiB at random and syncs \
             each; Varmail has {MOST} threads.",
            Drive::Tlc.name()
        ),
        panels: vec![panel],
        claims: vec![
            claim(
                &BARRIER,
                columns[0][0],
                "a durable sync waits for programs of one or two pages, and order alone for the rate of all dies: with half of the dies the factor is about half",
                Some(ORDER),
            ),
            claim(&OPTIMISTIC, columns[3][0], "", None),
        ],
        made_by: None,
    })
}
