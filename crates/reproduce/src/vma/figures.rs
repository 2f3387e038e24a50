//! Figures 2 to 5, from what the workloads have written in each system.

use super::claims::{
    ALL, MACRO, MICRO, PaperClaim, Savings, claim, largest, lifetimes, like_ordered, ratios, savings, smallest,
};
use super::{AGED, JOURNAL, LAYERS, MAX_REQUESTS, MODES, Measured, ORDERED, OURS, STATES, SYSTEMS, VMA, WRITEBACK};
use flashpath::report::RunResult;
use flashpath::report::figure::{Claim, Figure, Panel, Verdict};
use flashpath::run::DriveSettings;
use flashpath::units::human_size;

/// A panel with a value for each workload and system.
fn panel(title: &str, measured: &[Measured], value: impl Fn(&Measured, usize) -> f64) -> Panel {
    let groups = measured.iter().map(|load| {
        let values = (0..SYSTEMS.len()).map(|system| Some(value(load, system)));
        (load.load.to_string(), values.collect())
    });
    Panel::new(title, SYSTEMS.map(String::from).to_vec(), groups.collect())
}

const SAME_SYNCS: &str = "here the same syncs write back both modes, so that they differ by chance";

pub(super) fn requests(measured: &[Measured]) -> Figure {
    let panel = panel("", measured, |load, mode| load.requests[0][mode] as f64);
    let mut claims = vec![
        claim(
            PaperClaim {
                says: "ordered sends more requests than writeback, in the worst workload (ratio)".to_string(),
                place: "IV.A",
                bounds: (Some(1.0), None),
                because: SAME_SYNCS,
            },
            smallest(&ratios(&panel, &ALL, ORDERED, WRITEBACK)),
        ),
        claim(
            PaperClaim {
                says: "journal sends the most requests: over ordered, in the worst workload".to_string(),
                place: "IV.A, derived: VMA saves 9.4 % to 48.9 % of journal's requests and is like ordered",
                bounds: (Some(1.0 / (1.0 - 0.094)), None),
                because: "today's kernel writes a journal in large requests, which adds more bytes than requests",
            },
            smallest(&ratios(&panel, &ALL, JOURNAL, ORDERED)),
        ),
    ];
    let saved = Savings {
        what: "requests",
        place: "abstract, IV.A: 9.4 % to 48.9 % fewer",
        micro: (0.094, 0.489),
        others: (0.094, 0.489),
        because: "merging decides how many requests the same bytes are",
    };
    claims.extend(savings(&panel, "", &saved));
    Figure {
        name: "vma-fig2".to_string(),
        title: "VMA figure 2: number of I/O requests".to_string(),
        unit: "write requests".to_string(),
        about: "Write requests to the devices, merged up to 44 KiB; all guests together.".to_string(),
        panels: vec![panel],
        claims,
        made_by: None,
    }
}

pub(super) fn traffic(measured: &[Measured]) -> Figure {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let written = panel("", measured, |load, mode| mib(load.captured[mode].written_bytes));
    let journal = panel("journal alone", measured, |load, mode| mib(load.captured[mode].journal_bytes));
    let place = "IV.A, derived: VMA saves 42.4 % to 56.7 % of journal's traffic and is like ordered";
    let (low, high) = (1.0 / (1.0 - 0.424), 1.0 / (1.0 - 0.567));
    let over_ordered = |load: &str| smallest(&ratios(&written, &[load], JOURNAL, ORDERED));
    let claims = ALL.iter().map(|load| {
        let says = format!("journal's traffic over ordered's, {load}");
        let because = "it depends on the commit interval: with frequent commits, ordered writes the same metadata \
                       to its journal more often; with rare ones, more files are deleted before they are written";
        claim(PaperClaim { says, place, bounds: (Some(low), Some(high)), because }, over_ordered(load))
    });
    let saved = Savings {
        what: "traffic",
        place: "abstract, IV.A: 42.4 % to 56.7 % less",
        micro: (0.424, 0.567),
        others: (0.424, 0.567),
        because: "what data=journal writes home depends on the size of its journal: blocks that change again before a \
                  checkpoint go home once, and the journal's share is larger",
    };
    let more = claim(
        PaperClaim {
            says: "ordered writes more than writeback, in the worst workload (ratio)".to_string(),
            place: "IV.A",
            bounds: (Some(1.0), None),
            because: SAME_SYNCS,
        },
        smallest(&ratios(&written, &ALL, ORDERED, WRITEBACK)),
    );
    Figure {
        name: "vma-fig3".to_string(),
        title: "VMA figure 3: amount of I/O traffic".to_string(),
        unit: "MiB written".to_string(),
        about: "Bytes written to the devices, all guests together.".to_string(),
        claims: claims
            .chain([more])
            .chain(savings(&written, "", &saved))
            .chain(like_ordered(&written, "traffic", "IV.A"))
            .chain(ours_over_kernels(&written, "traffic"))
            .chain(ours_over_kernels(&journal, "journal"))
            .collect(),
        panels: vec![written, journal],
        made_by: None,
    }
}

/// The writes of `ext` against those of the kernel.
fn ours_over_kernels(panel: &Panel, what: &str) -> Vec<Claim> {
    let because = "ext3 has block maps, and allocates when a call writes; ext has extents, and allocates when the bytes are \
                   written back; and what is deleted or overwritten between two syncs depends on when they come";
    let claim_of = |(load, mode): (&str, usize)| {
        let says = format!("{what} of ext over the kernel's, {load} in {}", MODES[mode]);
        let bounds = (Some(0.9), Some(1.1));
        claim(
            PaperClaim { says, place: "the same workloads", bounds, because },
            smallest(&ratios(panel, &[load], OURS + mode, mode)),
        )
    };
    ALL.iter().flat_map(|load| (0..MODES.len()).map(move |mode| (*load, mode))).map(claim_of).collect()
}

const AGED_DRIVE: &str = "the paper does not give the utilization of its drive; ours is full and aged, so that \
                               every write needs collected space; and FAST's merges depend on the scatter of the \
                               writes, which a journal changes little";

/// The erases of each layer, on drives in a state.
fn erase_panels(measured: &[Measured], state: usize) -> Vec<Panel> {
    let erased =
        |load: &Measured, layer: usize, mode: usize| load.replayed[state][layer][mode].flash.erased_blocks as f64;
    (0..LAYERS.len()).map(|layer| panel(LAYERS[layer], measured, |load, mode| erased(load, layer, mode))).collect()
}

/// The claims about the aged drive. One that is outside there and inside in another state is shown to depend on the state.
fn shown_by_states(
    measured: &[Measured],
    panels: impl Fn(&[Measured], usize) -> Vec<Panel>,
    claims: fn(&[Panel]) -> Vec<Claim>,
) -> Vec<Claim> {
    let is_replayed = |state: &usize| measured.iter().all(|load| !load.replayed[*state][0].is_empty());
    let others: Vec<(usize, Vec<Claim>)> = (0..STATES.len())
        .filter(|state| *state != AGED && is_replayed(state))
        .map(|state| (state, claims(&panels(measured, state))))
        .collect();
    let shown = |(at, claim): (usize, Claim)| {
        let inside = others.iter().find(|(_, claims)| claims[at].verdict() == Verdict::Inside);
        match inside {
            Some((state, claims)) if claim.verdict() == Verdict::NotReproduced => {
                let ours = claims[at].ours.unwrap_or(f64::NAN);
                let because = format!("{}. On a drive that is {} it is {ours:.3}", claim.because, STATES[*state].0);
                Claim { because, ..claim }.shown_by("vma-state")
            }
            _ => claim,
        }
    };
    claims(&panels(measured, AGED)).into_iter().enumerate().map(shown).collect()
}

pub(super) fn erases(measured: &[Measured]) -> Figure {
    Figure {
        name: "vma-fig4".to_string(),
        title: "VMA figure 4: erase counts".to_string(),
        unit: "erased blocks".to_string(),
        about: "The traces of figures 2 and 3, replayed on a filled drive. The page-level layer, with its whole map \
                in RAM, is not in the paper; it shows the bound."
            .to_string(),
        claims: shown_by_states(measured, erase_panels, erase_claims),
        panels: erase_panels(measured, AGED),
        made_by: None,
    }
}

/// The claims of section IV.B, from the erases of each layer.
fn erase_claims(panels: &[Panel]) -> Vec<Claim> {
    let dftl = &panels[2];
    let untar = |mode| smallest(&ratios(dftl, &["untar"], mode, JOURNAL));
    let mut claims = vec![
        claim(
            PaperClaim {
                says: "untar on DFTL: writeback's erases over journal's".to_string(),
                place: "IV.B",
                bounds: (Some(0.378), Some(0.378)),
                because: AGED_DRIVE,
            },
            untar(WRITEBACK),
        ),
        claim(
            PaperClaim {
                says: "untar on DFTL: ordered's erases over journal's".to_string(),
                place: "IV.B",
                bounds: (Some(0.40), Some(0.40)),
                because: AGED_DRIVE,
            },
            untar(ORDERED),
        ),
    ];
    let paper_layers = &panels[..3];
    let all_ratios = |loads: &[&str], over, under| -> Vec<f64> {
        paper_layers.iter().flat_map(|panel| ratios(panel, loads, over, under)).collect()
    };
    let worst = largest(&all_ratios(&ALL, ORDERED, JOURNAL));
    claims.push(claim(
        PaperClaim {
            says: "journal erases the most: ordered's erases over journal's, in the worst workload and layer"
                .to_string(),
            place: "IV.B",
            bounds: (None, Some(1.0)),
            because: AGED_DRIVE,
        },
        worst,
    ));
    for (loads, name, low, high) in [(&MICRO[..], "micro", 0.346, 0.56), (&MACRO[..], "macro", 0.484, 0.865)] {
        let ratios = all_ratios(loads, ORDERED, JOURNAL);
        for (which, ours) in [("the lowest", smallest(&ratios)), ("the highest", largest(&ratios))] {
            claims.push(claim(
                PaperClaim {
                    says: format!(
                        "{name} benchmarks: ordered's erases over journal's, {which} of all workloads and layers"
                    ),
                    place: "IV.B, derived: VMA saves that share and is like ordered",
                    bounds: (Some(1.0 - high), Some(1.0 - low)),
                    because: AGED_DRIVE,
                },
                ours,
            ));
        }
    }
    for (more, less) in [(0, 1), (1, 2), (1, 3)] {
        let value = |layer: usize, mode: usize| {
            panels[layer].groups.iter().find(|(load, _)| load == "rnd_write").and_then(|(_, values)| values[mode])
        };
        let ratios: Vec<f64> =
            (0..MODES.len()).filter_map(|mode| Some(value(more, mode)? / value(less, mode)?)).collect();
        claims.push(claim(
            PaperClaim {
                says: format!("rnd_write: erases of {} over {}, in the worst mode", LAYERS[more], LAYERS[less]),
                place: if more == 0 { "IV.B" } else { "the order of the figure's legend" },
                bounds: (Some(1.0), None),
                because: "a superblock collects garbage within itself, which suits clustered writes; a table too \
                          small for random writes costs DFTL more",
            },
            smallest(&ratios),
        ));
    }
    for (panel, layer) in paper_layers.iter().zip(LAYERS) {
        let saved = Savings {
            what: "erases",
            place: "IV.B: 34.6 % to 56 % fewer in the micro benchmarks, 48.4 % to 86.5 % in the others",
            micro: (0.346, 0.56),
            others: (0.484, 0.865),
            because: AGED_DRIVE,
        };
        claims.extend(savings(panel, &format!(" on {layer}"), &saved));
    }
    claims.extend(lifetimes(paper_layers, AGED_DRIVE));
    claims
}

/// Seconds of flash time other than host writes: Table II's times for copies, mapping and erases.
fn collection_seconds(result: &RunResult, timed: &DriveSettings) -> f64 {
    let latencies = timed.nand.latencies.expect("the preset has times");
    let host: f64 = result.ledger.iter().filter(|row| row.station == "workload").map(|row| row.blocks).sum();
    let host_pages = host * 4096.0 / result.flash.page_bytes as f64;
    let programs = result.flash.programmed_pages as f64 - host_pages;
    // The traces have no reads: all reads are for copies, merges or mapping.
    let reads = result.flash.read_pages as f64;
    let read = latencies.read_ns + latencies.read_transfer_ns;
    let program = latencies.program_ns + latencies.program_transfer_ns;
    let ns =
        programs * program as f64 + reads * read as f64 + result.flash.erased_blocks as f64 * latencies.erase_ns as f64;
    ns / 1e9
}

pub(super) fn collection(measured: &[Measured], timed: &DriveSettings) -> Figure {
    let panels = |measured: &[Measured], state: usize| -> Vec<Panel> {
        let seconds =
            |load: &Measured, layer: usize, mode: usize| collection_seconds(&load.replayed[state][layer][mode], timed);
        (0..LAYERS.len()).map(|layer| panel(LAYERS[layer], measured, |load, mode| seconds(load, layer, mode))).collect()
    };
    Figure {
        name: "vma-fig5".to_string(),
        title: "VMA figure 5: garbage collection overhead".to_string(),
        unit: "seconds of flash time".to_string(),
        about: "The same runs: all flash reads, programs and erases other than host writes, at Table II's 88, 263 \
                and 2,000 us. The paper does not define its unit."
            .to_string(),
        claims: shown_by_states(measured, panels, collection_claims),
        panels: panels(measured, AGED),
        made_by: None,
    }
}

/// The claims of section IV.C, from the overhead of each layer.
fn collection_claims(panels: &[Panel]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (loads, name, low, high) in [(&MICRO[..], "micro", 0.131, 0.632), (&MACRO[..], "macro", 0.27, 0.806)] {
        let ratios: Vec<f64> = panels[..3].iter().flat_map(|panel| ratios(panel, loads, ORDERED, JOURNAL)).collect();
        for (which, ours) in [("the lowest", smallest(&ratios)), ("the highest", largest(&ratios))] {
            claims.push(claim(
                PaperClaim {
                    says: format!(
                        "{name} benchmarks: ordered's overhead over journal's, {which} of all workloads and layers"
                    ),
                    place: "IV.C, derived: VMA saves that share and is like ordered",
                    bounds: (Some(1.0 - high), Some(1.0 - low)),
                    because: AGED_DRIVE,
                },
                ours,
            ));
        }
    }
    for (panel, layer) in panels[..3].iter().zip(LAYERS) {
        let saved = Savings {
            what: "overhead",
            place: "IV.C: 13.1 % to 63.2 % less in the micro benchmarks, 27 % to 80.6 % in the others",
            micro: (0.131, 0.632),
            others: (0.27, 0.806),
            because: AGED_DRIVE,
        };
        claims.extend(savings(panel, &format!(" on {layer}"), &saved));
    }
    claims
}

/// The ratio of requests of VMA to those of journal, at several sizes of the largest request.
pub(super) fn request_sizes(measured: &[Measured]) -> Figure {
    let ratio = |load: &Measured, size: usize| {
        Some(load.requests[size][OURS + VMA] as f64 / load.requests[size][OURS + JOURNAL] as f64)
    };
    let row =
        |load: &Measured| (load.load.to_string(), (0..MAX_REQUESTS.len()).map(|size| ratio(load, size)).collect());
    let names = MAX_REQUESTS.map(|size| human_size(size as f64));
    Figure {
        name: "vma-requests".to_string(),
        title: "VMA: the saved requests by the size of the largest".to_string(),
        unit: "requests of VMA over journal, both of ext".to_string(),
        about: "The traces of figure 2, merged up to other sizes. At one block the ratio is that of the bytes; the larger the requests, \
                the fewer are of the journal, which is sequential."
            .to_string(),
        panels: vec![Panel::new("", names.to_vec(), measured.iter().map(row).collect())],
        claims: Vec::new(),
        made_by: None,
    }
}

/// The savings of figure 4 by the state of the drive.
pub(super) fn drive_states(measured: &[Measured]) -> Figure {
    let panel = |layer: usize| {
        let ratio = |load: &Measured, state: usize, (over, under): (usize, usize)| {
            let erased =
                |system: usize| load.replayed[state][layer].get(system).map(|run| run.flash.erased_blocks as f64);
            Some(erased(over)? / erased(under)?).filter(|ratio| ratio.is_finite())
        };
        let row = |load: &Measured, pair: (usize, usize)| {
            let values = (0..STATES.len()).map(|state| ratio(load, state, pair)).collect();
            (format!("{}: {} over {}", load.load, SYSTEMS[pair.0], SYSTEMS[pair.1]), values)
        };
        let pairs = [(ORDERED, JOURNAL), (OURS + VMA, OURS + JOURNAL)];
        let rows = measured.iter().flat_map(|load| pairs.map(|pair| row(load, pair)));
        Panel::new(LAYERS[layer], STATES.map(|(name, _)| name.to_string()).to_vec(), rows.collect())
    };
    Figure {
        name: "vma-state".to_string(),
        title: "VMA: the saved erases by the state of the drive".to_string(),
        unit: "ratio of erased blocks".to_string(),
        about: "The replays of figure 4 on a new drive, on one that was filled once in order, and on ones that were aged by the same \
                trace until it had written the spare space twice and six times. On a new drive nothing may be erased: no value."
            .to_string(),
        panels: (0..LAYERS.len()).map(panel).collect(),
        claims: Vec::new(),
        made_by: None,
    }
}
