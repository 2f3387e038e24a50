//! The comparison of results: a row for each quantity, a cell for each path. The terminal and the HTML page show the
//! same rows.

use super::chart::absorbed;
use super::ledger_words::{order, order_of_content, phrase, writer};
use super::number::{self, NONE};
use super::row::{Better, Quantity, Row, make_row};
use super::{
    LatencyParts, LedgerRow, PercentileParts, Percentiles, RunResult, WriteRequestsResult, cache_rows, energy_rows,
    tenant_rows, translation_rows,
};
use crate::units::{BLOCK_BYTES, format_size};

/// The station that keeps files in memory alone.
const IN_MEMORY: &str = "tree";

/// A section of rows.
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The rows in the order of display.
    pub rows: Vec<Row>,
}

/// The latencies of a class of requests.
type OfClass = fn(&RunResult) -> Option<&Percentiles>;

/// A number of a distribution.
type Rank = fn(&Percentiles) -> u64;

/// What the latency at a rank is made of.
type Parts = fn(&PercentileParts) -> &LatencyParts;

/// All sections, the key numbers first. Rows without a value on any path are omitted.
pub fn sections(results: &[RunResult]) -> Vec<Section> {
    let judged = judged_if_same_work(results);
    let row = |label: &str, better: Better, quantity: &dyn Fn(&RunResult) -> Quantity| {
        make_row(results, label.to_string(), better, quantity)
    };
    let work = vec![
        row("requests", Better::Neither, &|r| counted(r.workload.requests)),
        row("written by the host", Better::Neither, &|r| blocks_as_bytes(r.workload.written_blocks)),
        row("written by applications", Better::Neither, &|r| {
            let written = r.workload.application_blocks.filter(|blocks| *blocks != r.workload.written_blocks);
            written.and_then(blocks_as_bytes)
        }),
        row("read by the host", Better::Neither, &|r| blocks_as_bytes(r.workload.read_blocks)),
        row("absorbed above the media", Better::Neither, &|r| {
            let (blocks, share) = absorbed_blocks(r)?;
            let bytes = number::bytes(blocks * BLOCK_BYTES as f64);
            Some((format!("{bytes} ({})", number::percent(share)), blocks))
        }),
        row("stored in NVM", Better::Neither, &|r| {
            let bytes = *r.translation.events.get("nvm_stored_bytes")?;
            (bytes > 0).then(|| (number::bytes(bytes as f64), bytes as f64))
        }),
        row("discarded by the host", Better::Neither, &|r| nonzero(r.workload.discarded_blocks, blocks_as_bytes)),
        row("rejected lines", Better::Neither, &|r| nonzero(r.workload.rejected_lines, counted)),
    ];
    let work = work.into_iter().chain(request_rows(results)).collect();
    let drive = vec![
        overprovisioning_row(results),
        row("erases per block, min / mean / max", Better::Neither, &|r| has_flash(r).then(|| (wear_range(r), 0.0))),
        row("lifetime until the first block wears out", Better::Higher, &|r| {
            tebibytes(r.wear.lifetime_host_tib_first_block)
        }),
        row("drive writes per day, for five years", Better::Higher, &|r| {
            r.wear.drive_writes_per_day.map(|writes| (number::three_digits(writes), writes))
        }),
        row("life used in SLC mode", Better::Neither, &|r| mode_used(r, 0)),
        row("life used in the mode of all bits", Better::Neither, &|r| mode_used(r, 1)),
        row("blocks worn out", Better::Lower, &|r| nonzero(r.wear.worn_out_blocks, counted)),
        row("bad blocks", Better::Lower, &|r| r.wear.bad_blocks.and_then(counted)),
        row("blocks left to spare", Better::Higher, &|r| r.wear.spare_blocks_left.and_then(counted)),
        row("pages read", judged, &|r| of_flash(r, r.flash.read_pages)),
    ];
    let latencies = [("write", write_of as OfClass), ("read", read_of)]
        .into_iter()
        .flat_map(|class| latency_rows(results, class))
        .collect();
    let speed = vec![
        throughput_row(results),
        row("simulated time", Better::Neither, &|r| r.seconds_simulated.map(|s| (number::seconds(s), s))),
        row("wall time", Better::Neither, &|r| {
            (r.seconds_wall > 0.0).then(|| (number::seconds(r.seconds_wall), r.seconds_wall))
        }),
        row("host writes simulated per second", Better::Neither, &|r| {
            let rate = r.workload.written_blocks as f64 / r.seconds_wall;
            // Runs that are not simulated have no windows.
            (r.seconds_wall > 0.0 && !r.windows.is_empty()).then(|| (number::decimal(rate, 0), rate))
        }),
    ];
    let mut sections = vec![
        Section { title: "Key numbers", rows: key_rows(results) },
        Section { title: stored_title(results), rows: programmed_rows(results, judged) },
        Section { title: "Workload", rows: work },
        Section { title: "Cache", rows: cache_rows::rows(results) },
        Section { title: "Tenants", rows: tenant_rows::rows(results) },
        Section { title: "Drive", rows: drive },
        Section { title: "Translation", rows: translation_rows::rows(results) },
        Section { title: "Latency", rows: latencies },
        Section { title: "Speed", rows: speed },
        Section { title: "Energy of the flash", rows: energy_rows::rows(results, judged) },
    ];
    for section in &mut sections {
        section.rows.retain(|row| !row.is_empty());
    }
    sections.retain(|section| !section.rows.is_empty());
    sections
}

/// The rows of the latencies of a class and, where they are known, of their parts: `write, p99, of it erases`.
fn latency_rows(results: &[RunResult], (class, of_class): (&str, OfClass)) -> Vec<Row> {
    let ranks: [(&str, Rank, Parts); 4] = [
        ("p50", |p| p.p50, |parts| &parts.p50),
        ("p99", |p| p.p99, |parts| &parts.p99),
        ("p99.9", |p| p.p999, |parts| &parts.p999),
        ("max", |p| p.max, |parts| &parts.max),
    ];
    let mut rows = Vec::new();
    for (name, of, parts_of) in ranks {
        let quantity = |result: &RunResult| latency(of_class(result), of);
        rows.push(make_row(results, format!("{class}, {name}"), Better::Lower, &quantity));
        for (at, (part, _)) in LatencyParts::default().named().into_iter().enumerate() {
            let quantity = |result: &RunResult| {
                let parts = parts_of(of_class(result)?.parts.as_ref()?).named();
                let (ns, all) = (parts[at].1, parts.iter().map(|(_, ns)| ns).sum::<f64>());
                let text = || format!("{} ({})", number::latency(ns.round() as u64), number::percent(ns / all));
                (ns >= 0.5).then(|| (text(), ns))
            };
            rows.push(make_row(results, format!("{class}, {name}, of it {part}"), Better::Neither, &quantity));
        }
    }
    rows
}

/// The rows of a file system's write requests, to each station that gets any.
fn request_rows(results: &[RunResult]) -> Vec<Row> {
    let mut stations: Vec<&WriteRequestsResult> = Vec::new();
    for requests in results.iter().flat_map(|result| &result.write_requests) {
        if stations.iter().all(|other| other.station != requests.station) {
            stations.push(requests);
        }
    }
    let row = |to: &WriteRequestsResult| {
        make_row(results, format!("write requests to {}", to.station), Better::Neither, &|result| {
            let mut requests = result.write_requests.iter();
            counted(requests.find(|requests| requests.station == to.station)?.merged)
        })
    };
    stations.into_iter().map(row).collect()
}

/// The key numbers.
pub fn key_rows(results: &[RunResult]) -> Vec<Row> {
    let judged = judged_if_same_work(results);
    let row = |label: &str, better: Better, quantity: &dyn Fn(&RunResult) -> Quantity| {
        make_row(results, label.to_string(), better, quantity)
    };
    let rows = vec![
        row("write amplification, steady", Better::Lower, &|r| factor(r.write_amplification.steady)),
        row("write amplification, total", Better::Lower, &|r| factor(r.write_amplification.total)),
        row("write amplification, application bytes", Better::Lower, &|r| factor(r.write_amplification.application)),
        row("lifetime, host writes", Better::Higher, &|r| tebibytes(r.wear.lifetime_host_tib)),
        row("lifetime, application bytes", Better::Higher, &|r| tebibytes(r.wear.lifetime_application_tib)),
    ];
    let at_rate = rates(results).into_iter().map(|rate| {
        make_row(results, rate_label(rate), Better::Higher, &|r| {
            let found = r.wear.rate.as_ref().filter(|of_run| (of_run.bytes_per_day, of_run.of) == rate)?;
            found.years.map(|years| (format!("{} years", number::three_digits(years)), years))
        })
    });
    let rest = vec![
        row("pages programmed", judged, &|r| of_flash(r, r.flash.programmed_pages)),
        row("programs of several pages at once", judged, &|r| {
            if r.flash.program_bytes > r.flash.page_bytes { of_flash(r, r.flash.programs) } else { None }
        }),
        row("blocks erased", judged, &|r| of_flash(r, r.flash.erased_blocks)),
        row("write latency, p99", Better::Lower, &|r| latency(write_of(r), |p| p.p99)),
    ];
    rows.into_iter().chain(at_rate).chain(rest).collect()
}

/// The rates at which lives were asked for, and whose bytes they are of.
fn rates(results: &[RunResult]) -> Vec<(u64, &'static str)> {
    let mut rates = Vec::new();
    for rate in results.iter().filter_map(|result| result.wear.rate.as_ref()) {
        if !rates.contains(&(rate.bytes_per_day, rate.of)) {
            rates.push((rate.bytes_per_day, rate.of));
        }
    }
    rates
}

/// The label of a life at a rate: `life at 186 GiB a day of the host`.
fn rate_label((bytes_per_day, of): (u64, &str)) -> String {
    format!("life at {} a day of the {of}", format_size(bytes_per_day))
}

/// The row of the effective over-provisioning.
pub fn overprovisioning_row(results: &[RunResult]) -> Row {
    make_row(results, "effective over-provisioning".into(), Better::Neither, &|r| {
        let share = r.flash.effective_overprovisioning?;
        Some((number::percent(share), share))
    })
}

/// The row of the bytes read and written a second.
pub fn throughput_row(results: &[RunResult]) -> Row {
    make_row(results, "throughput".into(), Better::Higher, &|r| {
        r.throughput_mib_s.map(|mib| (format!("{} MiB/s", number::three_digits(mib)), mib))
    })
}

/// Lower totals are better only if every path did the same work: a path that wrote less has programmed less.
fn judged_if_same_work(results: &[RunResult]) -> Better {
    let same_work = results.windows(2).all(|pair| {
        let (a, b) = (&pair[0].workload, &pair[1].workload);
        (&a.name, a.requests, a.written_blocks) == (&b.name, b.requests, b.written_blocks)
    });
    if same_work { Better::Lower } else { Better::Neither }
}

/// True if a medium of the path is flash.
fn has_flash(result: &RunResult) -> bool {
    result.flash.blocks > 0
}

/// A count of flash operations; `None` without flash.
fn of_flash(result: &RunResult, value: u64) -> Quantity {
    if has_flash(result) { counted(value) } else { None }
}

/// The heading of [`programmed_rows`]: only flash is programmed.
fn stored_title(results: &[RunResult]) -> &'static str {
    let is_flash_alone = |result: &RunResult| {
        let stored = result.programmed().map(|row| row.blocks).sum::<f64>() * BLOCK_BYTES as f64;
        let programmed = (result.flash.programmed_pages * result.flash.page_bytes) as f64;
        programmed + 0.5 * BLOCK_BYTES as f64 >= stored
    };
    if results.iter().all(is_flash_alone) { "Pages programmed" } else { "Pages stored" }
}

/// Cause, origin and content of blocks that media stored.
type Kind<'a> = (&'a str, &'a str, &'a str);

/// The kind of a row. What a station below others writes for its host has the cause that its host had, which is the
/// origin: so a file system's cleaning is one kind on zones and on a drive.
fn kind_of(row: &LedgerRow) -> Kind<'_> {
    let cause = if row.cause == "host-write" { &row.origin } else { &row.cause };
    (cause, &row.origin, &row.content)
}

/// The pages stored by the media, by cause, origin and content, with shares.
fn programmed_rows(results: &[RunResult], better: Better) -> Vec<Row> {
    let mut kinds: Vec<Kind> = Vec::new();
    for row in results.iter().flat_map(RunResult::programmed).filter(|row| row.blocks > 0.0) {
        if !kinds.contains(&kind_of(row)) {
            kinds.push(kind_of(row));
        }
    }
    let pages = |result: &RunResult, kind: Kind| {
        let rows = result.programmed().filter(|row| kind_of(row) == kind);
        let blocks = rows.map(|row| row.blocks).sum::<f64>();
        let pages = blocks * BLOCK_BYTES as f64 / result.flash.page_bytes.max(1) as f64;
        let all = result.programmed().map(|row| row.blocks).sum::<f64>();
        let share = blocks / all;
        (blocks > 0.0).then(|| (format!("{} ({})", number::decimal(pages, 0), number::percent(share)), pages))
    };
    // What the host wrote is the same for all paths: only the rest can be better or worse.
    let better_of = |kind: Kind| if kind.0 == "host-write" { Better::Neither } else { better };
    let causes = crate::label::Cause::ALL.map(|cause| cause.name());
    kinds.sort_by_key(|kind| (order(&causes, kind.0), order(&causes, kind.1), order_of_content(kind.2)));
    let row =
        |kind: &Kind| make_row(results, label_of(*kind, &kinds), better_of(*kind), &|result| pages(result, *kind));
    kinds.iter().map(row).collect()
}

/// The label of a kind among all that are listed; with the origin if there are several: `cleaned data`, `copied data that
/// segment cleaning wrote`.
fn label_of((cause, origin, content): Kind, listed: &[Kind]) -> String {
    let mut alike = listed.iter().filter(|other| (other.0, other.2) == (cause, content));
    match alike.all(|other| other.1 == origin) {
        true => phrase(cause, content),
        false => format!("{} that {} wrote", phrase(cause, content), writer(origin)),
    }
}

/// The blocks by which the media stored less than the host wrote, as the rest was overwritten above them or was still there at the
/// end, and their share of what the host wrote. `None` without media, or if these stored as much.
fn absorbed_blocks(result: &RunResult) -> Option<(f64, f64)> {
    let written = result.workload.written_blocks as f64;
    let blocks = written - result.programmed().map(|row| row.blocks).sum::<f64>();
    (!result.media.is_empty() && written > 0.0 && blocks > 0.5).then(|| (blocks, blocks / written))
}

/// Sentences on what the rows of a table do not compare.
pub fn comparability(results: &[RunResult]) -> Vec<String> {
    let mut sentences = Vec::new();
    let label = |result: &RunResult| number::visible(result.label());
    if results.iter().any(|result| !result.is_in_memory_alone()) {
        let in_memory = results.iter().filter(|result| result.is_in_memory_alone());
        sentences.extend(in_memory.map(|result| {
            format!("{} keeps its files in memory alone: nothing of them would survive, and it is not compared with what stores them", label(result))
        }));
    }
    for result in results {
        let Some((_, share)) = absorbed_blocks(result) else { continue };
        let stations: Vec<String> =
            absorbed(result).iter().map(|absorbed| number::visible(&absorbed.station)).collect();
        sentences.push(format!(
            "{}: at least {} of what the host wrote was absorbed above the media{}, overwritten there or still there at the end: \
             its write amplification counts what was stored alone",
            label(result),
            number::percent(share),
            if stations.is_empty() { String::new() } else { format!(", by {}", stations.join(" and ")) }
        ));
    }
    if results.len() > 1 && judged_if_same_work(results) == Better::Neither {
        sentences
            .push("the paths did not do the same work: totals, such as pages programmed, are not compared".to_string());
    }
    sentences
}

impl RunResult {
    /// True if the path is a file system in memory, which is its own medium.
    pub(super) fn is_in_memory_alone(&self) -> bool {
        matches!(&self.media[..], [medium] if medium == IN_MEMORY)
    }

    /// The ledger's rows of the media.
    pub(super) fn programmed(&self) -> impl Iterator<Item = &super::LedgerRow> {
        self.ledger.iter().filter(|row| self.media.contains(&row.station) && row.station != "workload")
    }
}

fn write_of(result: &RunResult) -> Option<&Percentiles> {
    result.latency_ns.as_ref()?.write.as_ref()
}

fn read_of(result: &RunResult) -> Option<&Percentiles> {
    result.latency_ns.as_ref()?.read.as_ref()
}

fn latency(percentiles: Option<&Percentiles>, of: impl Fn(&Percentiles) -> u64) -> Quantity {
    percentiles.map(of).map(|nanoseconds| (number::latency(nanoseconds), nanoseconds as f64))
}

fn counted(value: u64) -> Quantity {
    Some((number::count(value), value as f64))
}

fn nonzero(value: u64, quantity: fn(u64) -> Quantity) -> Quantity {
    if value > 0 { quantity(value) } else { None }
}

fn factor(value: Option<f64>) -> Quantity {
    value.map(|value| (number::decimal(value, 3), value))
}

fn tebibytes(value: Option<f64>) -> Quantity {
    let text = |value: f64| if value.is_finite() { number::three_digits(value) + " TiB" } else { NONE.into() };
    value.map(|value| (text(value), value))
}

fn blocks_as_bytes(blocks: u64) -> Quantity {
    let bytes = blocks as f64 * BLOCK_BYTES as f64;
    Some((number::bytes(bytes), bytes))
}

/// The share of their life that blocks have used in a mode; `None` if none was in SLC mode.
fn mode_used(result: &RunResult, mode: usize) -> Quantity {
    let wear = result.wear.modes.get(mode)?;
    Some((format!("{} ({} erases)", number::percent(wear.used), number::count(wear.erases)), wear.used))
}

fn wear_range(result: &RunResult) -> String {
    let wear = &result.wear;
    format!(
        "{} / {} / {}",
        number::count(wear.erase_count_min.into()),
        number::decimal(wear.erase_count_mean, 1),
        number::count(wear.erase_count_max.into())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn find<'a>(sections: &'a [Section], label: &str) -> &'a Row {
        sections.iter().flat_map(|section| &section.rows).find(|row| row.label == label).unwrap()
    }

    #[test]
    fn the_lowest_write_amplification_and_the_longest_life_are_best() {
        let sections = sections(&[sample::page_level("a", 1), sample::log_structured("b", 1)]);
        for label in ["write amplification, total", "lifetime, host writes", "pages programmed", "copied data"] {
            let best: Vec<bool> = find(&sections, label).cells.iter().map(|cell| cell.best).collect();
            let expected = if label == "copied data" { [false, false] } else { [false, true] };
            assert_eq!(best, expected, "{label}");
        }
    }

    #[test]
    fn totals_are_not_compared_if_the_paths_did_different_work() {
        let mut less = sample::log_structured("b", 1);
        less.workload.written_blocks /= 2;
        let sections = sections(&[sample::page_level("a", 1), less]);
        assert!(find(&sections, "pages programmed").cells.iter().all(|cell| !cell.best));
        assert!(find(&sections, "write amplification, total").cells[1].best);
    }

    #[test]
    fn an_interrupted_run_is_never_best() {
        let sections = sections(&[
            sample::page_level("a", 1),
            sample::without_timing("b", 1),
            RunResult { interrupted: true, ..sample::log_structured("c", 1) },
        ]);
        assert!(!find(&sections, "write amplification, total").cells[2].best);
        assert!(find(&sections, "write amplification, total").cells[0].best);
    }

    /// A file system in memory was marked as the best beside durable ones, and a write amplification of 0.24 stood without a word.
    #[test]
    fn memory_is_not_compared_and_what_was_absorbed_is_told() {
        let mut memory = sample::log_structured("tree", 1);
        memory.media = vec![IN_MEMORY.to_string()];
        let results = [sample::page_level("a", 1), sample::without_timing("b", 1), memory];
        let compared = sections(&results);
        assert!(!find(&compared, "write amplification, total").cells[2].best);
        assert!(comparability(&results).iter().any(|line| line.starts_with("tree keeps its files in memory alone")));
        let mut absorbs = sample::page_level("cache/page", 1);
        let stored: f64 = absorbs.programmed().map(|row| row.blocks).sum();
        absorbs.workload.written_blocks = (stored * 4.0) as u64;
        let compared = sections(&[absorbs.clone()]);
        assert!(find(&compared, "absorbed above the media").cells[0].text.ends_with("(75.0 %)"));
        assert!(comparability(&[absorbs]).concat().contains("at least 75.0 % of what the host wrote was absorbed"));
        assert!(comparability(&[sample::page_level("a", 1)]).is_empty());
    }

    #[test]
    fn a_quantity_that_no_path_measured_has_no_row() {
        let sections = sections(&[sample::without_timing("a", 1), sample::empty("b")]);
        let labels = || sections.iter().flat_map(|section| &section.rows).map(|row| row.label.as_str());
        assert!(!labels().any(|label| label.contains("latency") || label.contains("throughput")));
        assert!(labels().any(|label| label == "copied mapping"));
    }

    /// All that sfs wrote stood in the drive as "host data", and all copies as "copied data".
    #[test]
    fn pages_are_named_by_their_origin_where_there_are_several() {
        let mut result = sample::page_level("sfs/page/nand", 1);
        let of_host: Vec<_> = result.ledger.iter().filter(|row| row.station == "nand").cloned().collect();
        result.ledger.extend(of_host.into_iter().map(|row| LedgerRow { origin: "segment-cleaning".into(), ..row }));
        let rows = programmed_rows(&[result], Better::Lower);
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        let copied = ["copied data that the host wrote", "copied data that segment cleaning wrote"];
        assert_eq!(labels, ["host data", "cleaned data", copied[0], copied[1]]);
        assert!(rows.iter().all(|row| row.cells[0].text.contains(" %)")));
    }

    #[test]
    fn the_shares_of_the_programmed_pages_add_up() {
        let results = [sample::journaled("a", 1)];
        let rows = programmed_rows(&results, Better::Lower);
        assert_eq!(rows.len(), 8);
        let share = |row: &Row| {
            let text = &row.cells[0].text;
            text[text.find('(').unwrap() + 1..text.find(" %").unwrap()].parse::<f64>().unwrap()
        };
        assert!((rows.iter().map(share).sum::<f64>() - 100.0).abs() < 0.5);
    }
}
