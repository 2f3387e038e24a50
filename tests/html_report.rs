//! The HTML report in a real browser: it draws every chart, offline, in light and dark, on a desktop and on a phone.
//!
//! Chromium is controlled from the command line: it loads the page, runs its scripts and prints the resulting document.
//! Without Chromium these tests print that and are skipped.

mod skipped;

use std::path::Path;
use std::process::{Command, Stdio};

use flashpath::report;
use flashpath::report::RunResult;

#[path = "../src/report/sample.rs"]
mod sample;

/// Text that a user may write by accident or malice.
const HOSTILE: &str = "</script><img src=x onerror=\"document.title='obeyed'\">%{x}";

const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
const DARK: &str = "--blink-settings=preferredColorScheme=0";
/// The page's `--ink`.
const INK_IN_LIGHT: &str = "rgb(26, 28, 31)";
const INK_IN_THE_DARK: &str = "rgb(230, 230, 227)";

/// Widths of a page, in pixels.
const DESK: u32 = 1280;
const PHONE: u32 = 390;

/// Shows the report in a frame, since the browser's own windows are never as narrow as a phone, and replaces the frame
/// with the drawn page.
const FRAME: &str = r#"<!doctype html><html><body style="margin:0">
<iframe src="report.html" style="border:0;width:WIDTHpx;height:900px"></iframe>
<script>
const frame = document.querySelector("iframe");
let presses = PRESSES;
const probe = () => {
  const root = frame.contentDocument.documentElement;
  if (!root.dataset.rendered && !root.dataset.scriptErrors) return setTimeout(probe, 20);
  if (presses-- > 0) {
    frame.contentDocument.getElementById("theme").click();
    return setTimeout(probe, 1000);
  }
  Object.assign(document.documentElement.dataset, root.dataset);
  document.documentElement.dataset.widths = `${root.scrollWidth} in ${frame.contentWindow.innerWidth}`;
  document.documentElement.dataset.frameTitle = frame.contentDocument.title;
  const text = frame.contentDocument.querySelector(".chart svg text");
  document.documentElement.dataset.ink = text ? frame.contentWindow.getComputedStyle(text).fill : "";
  const saved = (name, form) => frame.contentWindow.flashpathSaved(name, form);
  const names = Array.from(frame.contentDocument.querySelectorAll(".chart"), (chart) => chart.dataset.name);
  const files = names.map((name) => [name, saved(name, "svg"), saved(name, "csv")]);
  document.documentElement.dataset.saved = encodeURIComponent(JSON.stringify(files));
  const drawn = frame.contentDocument.body.cloneNode(true);
  drawn.querySelectorAll("script").forEach((script) => script.remove());
  document.body.replaceChildren(...drawn.childNodes);
};
frame.addEventListener("load", probe);
</script></body></html>"#;

/// A page after its scripts have run.
struct Drawn {
    document: String,
}

impl Drawn {
    /// The attribute of the root element with this name.
    fn root(&self, name: &str) -> Option<&str> {
        let root = &self.document[self.document.find("<html")?..];
        let root = &root[..root.find('>')?];
        root.split_once(&format!("data-{name}=\""))?.1.split('"').next()
    }
}

/// Loads the report in Chromium and presses the theme button `presses` times; `None`, with a message, without Chromium.
fn draw(results: &[RunResult], theme: &str, width: u32, presses: u32) -> Option<Drawn> {
    let directory = TemporaryDirectory::new();
    let frame = directory.0.join("frame.html");
    let framed = FRAME.replace("WIDTH", &width.to_string()).replace("PRESSES", &presses.to_string());
    std::fs::write(directory.0.join("report.html"), report::html(results)).expect("the page can be written");
    std::fs::write(&frame, framed).expect("the frame can be written");
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=10000", "--dump-dom", theme])
        .arg(format!("--window-size={},1000", width.max(500)))
        .arg(format!("--user-data-dir={}", directory.0.join("profile").display()))
        .arg(format!("file://{}", frame.display()))
        .stderr(Stdio::null())
        .output();
    match browser {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skipped::skipped("there is no chromium on the PATH");
            None
        }
        browser => {
            let document = String::from_utf8(browser.expect("chromium runs").stdout).expect("a document is UTF-8");
            Some(Drawn { document })
        }
    }
}

struct TemporaryDirectory(std::path::PathBuf);

impl TemporaryDirectory {
    fn new() -> Self {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("flashpath-report-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory can be made");
        TemporaryDirectory(path)
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // A file that cannot be removed is left to the system's cleaning of temporary files.
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}

/// Checks the properties of every page, and returns it.
fn drawn_well(results: &[RunResult], theme: &str, width: u32, charts: usize) -> Option<Drawn> {
    let drawn = draw(results, theme, width, 0)?;
    assert_eq!(drawn.root("script-errors"), None, "scripts failed");
    assert_eq!(drawn.root("rendered"), Some("yes"), "the charts were not all drawn");
    let visible = &drawn.document;
    assert_eq!(visible.matches("class=\"chart\" data-name").count(), charts, "charts in the page");
    for wrong in ["NaN", "Infinity", "undefined"] {
        assert!(!visible.contains(wrong), "the page says {wrong}");
    }
    let widths: Vec<u32> = drawn.root("widths").unwrap().split(" in ").map(|width| width.parse().unwrap()).collect();
    assert_eq!(widths[1], width);
    assert!(widths[0] <= widths[1], "a page of {} px scrolls sideways in {} px", widths[0], widths[1]);
    Some(drawn)
}

fn three() -> [RunResult; 3] {
    [
        sample::page_level("page:victim=greedy/nand:size=64G", 42),
        sample::log_structured("sfs:groups=4,cleaner=cost-hotness/zns:zone=64M,size=64G", 42),
        sample::journaled("ext:data=ordered,journal=inline/page/nand:size=64G", 42),
    ]
}

#[test]
fn three_paths_are_drawn_in_light_and_in_dark() {
    for (theme, ink) in [(LIGHT, INK_IN_LIGHT), (DARK, INK_IN_THE_DARK)] {
        let Some(drawn) = drawn_well(&three(), theme, DESK, 3 + 6) else { return };
        assert_eq!(drawn.root("ink"), Some(ink), "the charts' text");
    }
}

#[test]
fn the_button_changes_the_theme_of_the_charts_too() {
    let results = [sample::page_level("page/nand", 1)];
    for (theme, presses, ink, name) in [(LIGHT, 1, INK_IN_THE_DARK, "Light"), (DARK, 1, INK_IN_LIGHT, "Dark")] {
        let Some(drawn) = draw(&results, theme, DESK, presses) else { return };
        assert_eq!(drawn.root("script-errors"), None);
        assert_eq!(drawn.root("ink"), Some(ink), "the charts' text");
        assert!(drawn.document.contains(&format!(">{name}</button>")), "the button does not say {name}");
    }
}

#[test]
fn a_phone_shows_the_page_without_scrolling_sideways() {
    drawn_well(&three(), LIGHT, PHONE, 9);
    drawn_well(&three(), DARK, PHONE, 9);
}

#[test]
fn one_path_without_timing_has_no_latency_charts() {
    let results = [sample::without_timing("dftl/nand:timing=none", 7)];
    let Some(drawn) = drawn_well(&results, LIGHT, DESK, 1 + 5) else { return };
    assert!(!drawn.document.contains("<h2>Latency</h2>"));
}

#[test]
fn six_paths_one_of_them_empty_stand_side_by_side() {
    let [first, second, third] = three();
    let results =
        [first, second, third, sample::empty("page/nand"), sample::without_timing("dftl/nand", 42), three()[0].clone()];
    drawn_well(&results, LIGHT, DESK, 5 + 6);
    drawn_well(&results, LIGHT, PHONE, 5 + 6);
}

#[test]
fn an_empty_run_and_numbers_that_are_not_finite_are_drawn() {
    drawn_well(&[sample::empty("page/nand")], LIGHT, DESK, 1);
    let mut broken = sample::page_level("page/nand", 3);
    broken.write_amplification.total = Some(f64::NAN);
    broken.wear.lifetime_host_tib = Some(f64::INFINITY);
    broken.flash.effective_overprovisioning = Some(f64::NAN);
    broken.windows[3].write_amplification = Some(f64::NEG_INFINITY);
    broken.windows[3].stored_blocks = f64::NEG_INFINITY;
    broken.sums[0].left = f64::NAN;
    broken.seconds_wall = f64::NAN;
    drawn_well(&[broken], LIGHT, DESK, 1 + 6);
}

#[test]
fn hostile_text_is_shown_and_never_obeyed() {
    let mut result = sample::journaled(HOSTILE, 5);
    result.workload.name = HOSTILE.into();
    result.warnings = vec![HOSTILE.into()];
    result.sums[0].name = HOSTILE.into();
    result.options = vec![HOSTILE.into()];
    (result.maps[0].station, result.maps[0].unit) = (HOSTILE.into(), HOSTILE.into());
    result.window_causes[0].cause = HOSTILE.into();
    for row in result.ledger.iter_mut().filter(|row| row.station != "workload") {
        row.station = HOSTILE.to_string() + &row.station;
        row.content = HOSTILE.to_string() + &row.content;
        row.origin = HOSTILE.to_string() + &row.origin;
    }
    for station in &mut result.stations {
        station.name = HOSTILE.to_string() + &station.name;
        if station.above != "workload" {
            station.above = HOSTILE.to_string() + &station.above;
        }
    }
    let page = report::html(std::slice::from_ref(&result));
    assert!(!page.contains("<img src=x"), "the page holds the element");
    let Some(drawn) = drawn_well(&[result], LIGHT, DESK, 8) else { return };
    let visible = &drawn.document;
    assert!(drawn.root("frame-title").is_some_and(|title| title.contains("onerror")), "the element's script ran");
    assert!(!visible.contains("<img"), "a chart made the element");
}

/// The text of a percent-encoded attribute.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A saved figure of plotly.js had no legend, and its numbers could not be saved.
#[test]
fn each_figure_is_saved_with_its_legend_and_colours_and_its_numbers() {
    let Some(drawn) = drawn_well(&three(), DARK, DESK, 3 + 6) else { return };
    let files: Vec<[String; 3]> = serde_json::from_str(&decoded(drawn.root("saved").unwrap())).unwrap();
    let names: Vec<&str> = files.iter().map(|[name, ..]| name.as_str()).collect();
    let paths = ["path-0", "path-1", "path-2"];
    let charts = ["write-amplification", "causes-over-time", "over-time", "latency", "wear", "wear-map"];
    assert_eq!(names, [&paths[..], &charts].concat());
    for [name, svg, csv] in &files {
        assert!(svg.starts_with("<svg") && svg.contains("http://www.w3.org/2000/svg"), "{name} is no file of SVG");
        assert!(!svg.contains("var("), "{name} needs the page's colours");
        let is_light = svg.contains(&format!("fill=\"{INK_IN_LIGHT}\"")) && svg.contains("fill=\"#ffffff\"");
        assert!(is_light, "{name} is not in the colours of a light page");
        let legend = match name.as_str() {
            "causes-over-time" => "garbage-collection",
            "wear-map" => "mean of the neighbours",
            name if name.starts_with("path-") => "data",
            _ => "sfs:groups=4,cleaner=cost-hotness",
        };
        assert!(svg.contains(legend), "{name} has no legend");
        let fields = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().count() > 5 && fields >= 4, "{name}: {csv}");
    }
}

/// plotly.js alone was 4.7 MB.
#[test]
fn a_report_of_twelve_paths_is_below_600_kilobytes() {
    let mut results = Vec::new();
    for seed in 0..4 {
        for (number, mut result) in three().into_iter().enumerate() {
            result.path =
                result.path.clone() + &format!(",variant={seed},of={number},with=a-longer-description-than-usual");
            // As many windows and points as are drawn at most.
            let windows: Vec<_> = (0..256).map(|window| result.windows[window % 60].clone()).collect();
            result.windows = windows;
            for cause in &mut result.window_causes {
                cause.write_amplification = (0..256).map(|window| cause.write_amplification[window % 60]).collect();
                cause.blocks = (0..256).map(|window| cause.blocks[window % 60]).collect();
            }
            for (number, window) in result.windows.iter_mut().enumerate() {
                window.written_blocks = (number as u64 + 1) * 344_064;
            }
            results.push(result);
        }
    }
    let bytes = report::html(&results).len();
    assert!(bytes < 600_000, "{bytes} bytes");
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = report::html(&three());
    for outside in ["http:", "https:", "src=", "href=", "@import", "//cdn"] {
        // The name of SVG's elements is no address.
        let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!page.contains(outside), "the page contains {outside}");
    }
    assert!(page.split("url(").skip(1).all(|rest| rest.starts_with('#')), "the page fetches a picture");
}
