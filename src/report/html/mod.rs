//! Results as one offline HTML page: key numbers, flows, charts, and the commands to repeat the runs.
//!
//! | part | what it is |
//! |---|---|
//! | `mod.rs` | the page: its sections, in order |
//! | [`parts`] | cards and tables |
//! | [`charts`] | the charts that compare paths |
//! | [`along`], [`bins`] | the horizontal axis of runs over time, and their parts |
//! | [`over_time`] | the charts of runs over time, and the maps of their stations |
//! | [`files`] | the stages and operations of runs in files |
//! | `page.css`, `page.js`, `errors.js` | style and scripts, included verbatim |
//!
//! The page fetches nothing: its figures are drawn here, by [`chart`](super::chart). User text (a path, a warning) passes
//! through [`escape`](super::escape).

mod along;
mod bins;
mod charts;
mod files;
mod over_time;
mod parts;

use super::chart::{self, Chart, embedded, embedded_path};
use super::comparison::comparability;
use super::escape::{escape, escape_path, shell_option, shell_word};
use super::row::{BEST_LEGEND, WARNED_LEGEND};
use super::{RunResult, number};

/// The results as a self-contained HTML page of less than 600 kB for 12 paths. Its scripts change the theme and save
/// figures: without them all else is there.
pub fn html(results: &[RunResult]) -> String {
    let sections = [
        parts::verdict(results),
        notes(results),
        section("Key numbers", &parts::cards(results)),
        flows(results),
        amplification(results),
        rates(results),
        latencies(results),
        wear(results),
        operations(results),
        section(
            "Comparison",
            &format!("<div class=\"panel\">{}{}</div>", parts::comparison(results), compared(results)),
        ),
        section("Checked sums", &format!("<div class=\"panel\">{}</div>", parts::sums(results))),
        section("Commands to repeat the runs", &repeat(results)),
    ];
    let workload = title(results);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} \u{b7} Flashpath</title>\n<style>\n{css}</style>\n<script>\n{errors}</script>\n</head>\n<body>\n\
         <header><div><div class=\"eyebrow\">Flashpath report</div><h1>{heading}</h1><p class=\"muted\">{subtitle}</p></div>\
         <button id=\"theme\" type=\"button\" aria-label=\"Change between light and dark\">Dark</button></header>\n\
         <main>\n{sections}</main>\n<footer>Blocks are 4 KiB. Sizes are binary. A dot (\u{2022}): {best}. \
         An exclamation mark (!): {warned}.</footer>\n\
         <script>\n{script}</script>\n<script>\n{charts}</script>\n</body>\n</html>\n",
        title = escape(&workload),
        heading = escape_path(&workload),
        css = chart::css() + include_str!("page.css"),
        errors = include_str!("errors.js"),
        subtitle = subtitle(results),
        best = BEST_LEGEND,
        warned = WARNED_LEGEND,
        sections = sections.concat(),
        script = include_str!("page.js"),
        charts = chart::SCRIPT,
    )
}

/// The value that all results share, if they do.
fn shared<T: PartialEq>(results: &[RunResult], of: impl Fn(&RunResult) -> T) -> Option<T> {
    let first = of(results.first()?);
    results.iter().all(|result| of(result) == first).then_some(first)
}

fn title(results: &[RunResult]) -> String {
    match shared(results, |result| result.workload.name.clone()) {
        Some(name) => name,
        None => format!("{} runs", results.len()),
    }
}

fn subtitle(results: &[RunResult]) -> String {
    let mut facts = vec![match results.len() {
        1 if results[0].is_in_directory() => "in a directory".to_string(),
        1 => "one path".to_string(),
        paths => format!("{paths} paths"),
    }];
    if let Some(blocks) = shared(results, |result| result.workload.written_blocks) {
        let written = number::bytes(blocks as f64 * crate::units::BLOCK_BYTES as f64);
        facts.push(format!("{written} written by the host"));
    }
    if let Some(bytes) = shared(results, |result| result.flash.exported_bytes).filter(|bytes| *bytes > 0) {
        facts.push(format!("device of {}", number::bytes(bytes as f64)));
    }
    facts.extend(shared(results, |result| result.seed).map(|seed| format!("seed {seed}")));
    facts.join(" \u{b7} ")
}

fn section(title: &str, body: &str) -> String {
    format!("<section><h2>{title}</h2>\n{body}</section>\n")
}

/// Interruptions, broken sums and warnings, if any.
fn notes(results: &[RunResult]) -> String {
    let mut notes = String::new();
    for (index, result) in results.iter().enumerate() {
        let tag = parts::tag(index);
        if result.interrupted {
            notes += &format!(
                "<li>{tag}<span class=\"alarm\">interrupted</span>: the figures cover the completed part</li>"
            );
        }
        for sum in result.sums.iter().filter(|sum| !sum.holds) {
            notes += &format!("<li>{tag}<span class=\"alarm\">a sum does not hold</span>: {}</li>", escape(&sum.name));
        }
        for warning in &result.warnings {
            notes += &format!("<li>{tag}{}</li>", escape(warning));
        }
    }
    if notes.is_empty() {
        return notes;
    }
    format!("<section class=\"notes\" role=\"note\"><h2>Warnings</h2><ul>{notes}</ul></section>\n")
}

/// Sentences on the limits of the comparison.
fn compared(results: &[RunResult]) -> String {
    let sentences = comparability(results);
    sentences.iter().map(|sentence| format!("<p class=\"muted\">{}</p>", escape(sentence))).collect()
}

fn flows(results: &[RunResult]) -> String {
    if results.iter().all(RunResult::is_in_directory) {
        return String::new();
    }
    let scale = if results.len() > 1 { " Widths are to one scale in all paths." } else { "" };
    let mut body = format!(
        "<p class=\"muted\">From the host\u{2019}s writes to the erases. Blocks that a station adds begin there; \
         blocks that it absorbs end there.{scale}</p><div class=\"flows\">"
    );
    for (index, (result, picture)) in results.iter().zip(chart::pictures(results)).enumerate() {
        let heading =
            format!("<h3>{}<span class=\"path\">{}</span></h3>", parts::tag(index), escape_path(&result.full_label()));
        let drawn = match picture {
            Some(picture) => {
                let ledger = parts::ledger(result);
                let table = format!("<details><summary>The ledger as a table</summary>{ledger}</details>");
                embedded_path(&picture) + &table
            }
            None => "<p class=\"muted\">Nothing was written.</p>".to_string(),
        };
        body += &format!("<figure class=\"panel\">{heading}{drawn}</figure>");
    }
    section("Write path", &(body + "</div>"))
}

fn amplification(results: &[RunResult]) -> String {
    let Some(figure) = charts::write_amplification(results) else { return String::new() };
    let is_steady = |result: &RunResult| result.write_amplification.steady_from_fraction.is_some();
    let caption = if results.iter().any(is_steady) {
        "<figcaption>The steady part of a line is thick.</figcaption>"
    } else {
        "<figcaption>No run reached a steady state.</figcaption>"
    };
    let causes = over_time::causes(results).map_or(String::new(), |figure| {
        let caption = match results.iter().any(|result| result.window_seconds.is_some()) {
            true => "<figcaption>By cause and, if it is another, origin: what the media stored for it.</figcaption>",
            false => {
                "<figcaption>By cause and, if it is another, origin: what the media stored for it, over what the host wrote.\
                 </figcaption>"
            }
        };
        panel(&figure, caption)
    });
    section("Write amplification over time", &(panel(&figure, caption) + &causes))
}

fn rates(results: &[RunResult]) -> String {
    let caption = "<figcaption>Of the windows behind a point, the slowest one&#39;s latency is drawn.</figcaption>";
    let rest = "<p class=\"muted\">With more than six paths, causes over time, all latencies over time and maps of the stations \
         are in the JSON alone.</p>";
    let rest = if over_time::is_in_full(results) { "" } else { rest };
    over_time::rates(results).map_or(String::new(), |figure| {
        section("Throughput, latency and free blocks over time", &(panel(&figure, caption) + rest))
    })
}

fn latencies(results: &[RunResult]) -> String {
    let Some(figure) = charts::latency(results) else { return String::new() };
    let caption =
        "<figcaption>The cumulative share of requests by latency, with equal space for each nine.</figcaption>";
    section("Latency", &panel(&figure, caption))
}

fn wear(results: &[RunResult]) -> String {
    let panels = [charts::wear(results), over_time::wear_map(results), over_time::space_map(results)];
    match panels.into_iter().flatten().map(|figure| panel(&figure, "")).collect::<String>() {
        none if none.is_empty() => none,
        panels => section("Wear and space at the end", &panels),
    }
}

/// A chart in a box, with a caption.
fn panel(figure: &Chart, caption: &str) -> String {
    format!("<figure class=\"panel\">{}{caption}</figure>", embedded(figure))
}

fn operations(results: &[RunResult]) -> String {
    match files::files(results) {
        none if none.is_empty() => none,
        body => section("Operations on files", &body),
    }
}

/// The commands that repeat the runs, with the full paths and drives.
fn repeat(results: &[RunResult]) -> String {
    let command = |result: &RunResult, paths: &[&RunResult]| {
        let mut words = vec!["flashpath run".to_string(), shell_word(&result.workload.name)];
        words.push(format!("--seed {}", result.seed));
        words.extend(result.options.iter().map(|option| shell_option(option)));
        let place = |path: &&RunResult| if path.is_in_directory() { "--in" } else { "--on" };
        let named = |path: &&RunResult| {
            let name = path.name.as_ref().map_or_else(String::new, |name| format!("{name}="));
            shell_word(&format!("{name}{}", path.path_in_full))
        };
        let on = paths.iter().map(|path| format!("\\\n    {} {}", place(path), named(path)));
        words.extend(on);
        format!("<pre>{}</pre>", escape_lines(&words.join(" ")))
    };
    let all: Vec<&RunResult> = results.iter().collect();
    let asked = |result: &RunResult| (result.workload.name.clone(), result.seed, result.options.clone());
    let commands = match shared(results, asked) {
        Some(_) => command(all[0], &all),
        None => results.iter().map(|result| command(result, &[result])).collect(),
    };
    format!("<div class=\"panel\">{commands}{}</div>", parts::drives(results))
}

/// Text of several lines for a `<pre>`.
fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn one_command_repeats_all_paths_of_one_workload() {
        let results = [sample::page_level("page/nand", 1), sample::log_structured("sfs/zns", 1)];
        let text = repeat(&results);
        assert_eq!(text.matches("flashpath run").count(), 1);
        assert_eq!(text.matches("--on").count(), 2);
        assert!(text.contains("--seed 1 --fill"));
        let other_seed = [sample::page_level("page/nand", 1), sample::page_level("page/nand", 2)];
        assert_eq!(repeat(&other_seed).matches("flashpath run").count(), 2);
    }

    #[test]
    fn a_page_of_no_results_is_a_page() {
        let page = html(&[]);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    }
}
