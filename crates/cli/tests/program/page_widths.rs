//! Pages of every kind in Chromium, as wide as a desk and as narrow as a phone: nothing is wider than the page or cut off, and the
//! answer is on the first screen.

use super::bench::Bench;
use super::skipped::skipped;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Widths of the pages, in pixels, and the heights of their first screens.
const SCREENS: [(u32, u32); 2] = [(1400, 900), (420, 860)];

/// A kind of page: its file, the words of its answer, and the commands that make it.
const PAGES: [(&str, &str, &[&str]); 9] = [
    ("run.html", ".hero", &["run", "uniform:writes=3x", "--fill", "--on", "page:op=14%/nand:size=96M"]),
    (
        "comparison.html",
        ".hero",
        &[
            "run",
            "uniform:writes=2x",
            "--fill",
            "--on",
            "small=page:op=14%/nand:size=96M",
            "--on",
            "page:op=28%,victim=cost-benefit,streams=content,wear=static/nand:size=128M",
            "--on",
            "dftl:table=1000/nand:size=96M",
        ],
    ),
    (
        "windows.html",
        ".hero",
        &[
            "run",
            "traces/loop_ext4_events.txt.zst",
            "--timed",
            "--window",
            "1s",
            "--fill",
            "--on",
            "page:op=14%/nand:size=96M",
        ],
    ),
    (
        "lifetimes.html",
        ".verdict",
        &[
            "run",
            "varmail:files=200,loops=2500",
            "--rate",
            "50GB/day",
            "--on",
            "ordered=ext:data=ordered/page/nand:size=64M",
            "--on",
            "journal=ext:data=journal/page/nand:size=64M",
        ],
    ),
    (
        "cache.html",
        ".hero",
        &["run", "kvcache:writes=2x,region=256K", "--on", "page:op=14%,fdp=2/nand:size=96M,pages-per-block=64"],
    ),
    (
        "sweep.html",
        ".chart",
        &[
            "sweep",
            "uniform:writes=2x",
            "--fill",
            "--on",
            "page:op=14%:28%,victim=greedy:cost-benefit/nand:size=96M",
            "--seed",
            "1..2",
        ],
    ),
    (
        "goal.html",
        ".answer",
        &[
            "sweep",
            "uniform:writes=2x",
            "--fill",
            "--on",
            "page:export=64M,op=10%..60%/nand:pages-per-block=64",
            "--seed",
            "1..2",
            "--goal",
            "write_amplification.total<2.5",
        ],
    ),
    (
        "volumes.html",
        ".chart",
        &[
            "sweep",
            "traces/volumes.csv.zst",
            "--device",
            "all",
            "--addresses",
            "scale",
            "--fill",
            "--on",
            "page:op=14%,streams=none:content/nand:size=96M,pages-per-block=64",
        ],
    ),
    ("reproduce.html", "table", &["reproduce", "--from", "results.json"]),
];

/// Opens each page in a frame of each width, and lists what does not fit.
const FRAMES: &str = r#"<!doctype html><html><body style="margin:0"><pre id="found"></pre><script>
const found = document.getElementById("found");
const say = (text) => { found.textContent += text + "\n"; };
const pages = PAGES, screens = SCREENS;
// What lies in a box that scrolls may be as wide as it likes.
const isInScrolled = (element, view) => {
  for (let at = element.parentElement; at; at = at.parentElement)
    if (/auto|scroll/.test(view.getComputedStyle(at).overflowX)) return true;
  return false;
};
const check = (frame, page, answer, width, height) => {
  const view = frame.contentWindow, root = frame.contentDocument.documentElement, name = page + " at " + width;
  if (root.scrollWidth > width) say(name + ": the page is " + root.scrollWidth + " px wide");
  for (const element of root.querySelectorAll("body *")) {
    if (element.getClientRects().length === 0) continue;
    const box = element.getBoundingClientRect();
    const words = element.tagName + " " + element.textContent.trim().slice(0, 60);
    if (!isInScrolled(element, view) && (box.right > width + 1 || box.left < -1)) say(name + ": from " + box.left + " to " + box.right + ": " + words);
    if (element.tagName === "text") {
      const svg = element.ownerSVGElement.getBoundingClientRect();
      if (box.right > svg.right + 2 || box.left < svg.left - 2 || box.top < svg.top - 2 || box.bottom > svg.bottom + 2)
        say(name + ": cut off by its picture: " + words);
    }
  }
  const first = root.querySelector(answer);
  if (!first) say(name + ": there is no " + answer);
  else if (first.getBoundingClientRect().top > height - 200) say(name + ": the answer begins at " + first.getBoundingClientRect().top);
};
let left = pages.length * screens.length;
for (const [page, answer] of pages) for (const [width, height] of screens) {
  const frame = document.createElement("iframe");
  frame.style = "border:0;width:" + width + "px;height:" + height + "px";
  frame.onload = () => setTimeout(() => {
    try { check(frame, page, answer, width, height); } catch (error) { say(page + ": " + error); }
    if (--left === 0) document.documentElement.dataset.done = "yes";
  }, 200);
  frame.src = page;
  document.body.append(frame);
}
</script></body></html>"#;

#[test]
fn no_kind_of_page_is_wider_than_its_screen_or_hides_its_answer() {
    let bench = Bench::new();
    let root = std::path::Path::new(ROOT);
    symlink(root.join("traces"), bench.path("traces")).unwrap();
    symlink(root.join("docs/results.json"), bench.path("results.json")).unwrap();
    let quoted = |text: &str| format!("\"{text}\"");
    let list = |texts: Vec<String>| format!("[{}]", texts.join(","));
    let pages = PAGES.iter().map(|(page, answer, _)| list(vec![quoted(page), quoted(answer)])).collect();
    let screens = SCREENS.iter().map(|(width, height)| format!("[{width},{height}]")).collect();
    bench.write("frames.html", FRAMES.replace("PAGES", &list(pages)).replace("SCREENS", &list(screens)));
    let mut browser = Command::new("chromium");
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=30000", "--dump-dom"])
        .args(["--window-size=1500,1000", "--blink-settings=preferredColorScheme=1"])
        .arg(format!("--user-data-dir={}", bench.path("profile").display()))
        .arg(format!("file://{}", bench.path("frames.html").display()))
        .stderr(Stdio::null());
    if Command::new("chromium").arg("--version").stderr(Stdio::null()).output().is_err() {
        return skipped("there is no chromium on the PATH");
    }
    for (page, _, command) in PAGES {
        let answer = bench.flashpath(&[command, &["--report", page]].concat());
        assert_eq!(answer.code, Some(0), "{page}: {answer:?}");
    }
    let document = String::from_utf8(browser.output().unwrap().stdout).unwrap();
    assert!(document.contains("data-done=\"yes\""), "not all pages were loaded: {document}");
    let found = document.split_once("<pre id=\"found\">").unwrap().1.split_once("</pre>").unwrap().0;
    assert!(found.trim().is_empty(), "{found}");
}
