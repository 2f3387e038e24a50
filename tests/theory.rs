//! The page-level translation layer against theory: closed forms, mean fields, and the values of an independent program
//! where no formula is known.
//!
//! Every prediction uses the effective spare space that the run itself reports.

mod closed_forms;

use closed_forms::{fifo_uniform, root};
use flashpath::device::nand::NandSettings;
use flashpath::expression::{Amount, parse_term};
use flashpath::run::{Fill, Options, Path, prepare};
use flashpath::workload::generator::generator;

/// Write amplification over the second half of six device writes, and the exported share of the usable pages.
fn measure(workload: &str, page: &str, pages_per_block: u32) -> (f64, f64) {
    let text = format!("page:{page}/nand:size=2G,timing=off,endurance=100000,pages-per-block={pages_per_block}");
    let path = Path::read(&text).unwrap();
    let term = parse_term(workload).unwrap();
    let mut workload = generator(&term, path.drive().unwrap().exported_bytes(), 5).unwrap();
    let half = Amount::Times(3.0);
    let limit = Some(half.bytes(path.drive().unwrap().exported_bytes()) / 4096);
    let options = Options { fill: Fill::ALL, precondition: Some(half), limit, ..Options::default() };
    let outcome = prepare(&path, options.seed).unwrap().run(workload.as_mut(), &options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let result = outcome.result;
    (result.write_amplification.total.unwrap(), 1.0 / (1.0 + result.flash.effective_overprovisioning.unwrap()))
}

fn assert_near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    println!("{what}: measured {measured:.4}, expected {expected:.4} ({:+.2} %)", (measured / expected - 1.0) * 100.0);
    assert!((measured / expected - 1.0).abs() <= tolerance, "{what}: measured {measured:.4}, expected {expected:.4}");
}

/// d-choices under uniform random writes: the mean field of Van Houdt (SIGMETRICS '13), solved by Euler's method.
fn d_choices_uniform(u: f64, pages: usize, d: i32) -> f64 {
    // Blocks by their number of valid pages, binomial at first.
    let mut share = vec![0.0f64; pages + 1];
    let mut log = pages as f64 * (1.0 - u).ln();
    for (valid, x) in share.iter_mut().enumerate() {
        *x = log.exp();
        log += ((pages - valid) as f64 / (valid + 1) as f64).ln() + (u / (1.0 - u)).ln();
    }
    let step = 0.1 / pages as f64;
    let mut valid_in_victim = 0.0;
    for _ in 0..60_000 {
        let mut victim = vec![0.0; pages + 1];
        let mut tail = 0.0f64;
        for valid in (0..=pages).rev() {
            let more = tail;
            tail += share[valid];
            victim[valid] = tail.powi(d) - more.powi(d);
        }
        valid_in_victim = victim.iter().enumerate().map(|(valid, p)| valid as f64 * p).sum::<f64>();
        let writes = (pages as f64 - valid_in_victim) / (u * pages as f64);
        let old = share.clone();
        for valid in 0..=pages {
            let from_above = if valid < pages { (valid + 1) as f64 * old[valid + 1] } else { 0.0 };
            let refilled = if valid == pages { 1.0 } else { 0.0 };
            let change = refilled - victim[valid] + writes * (from_above - valid as f64 * old[valid]);
            share[valid] += step * change;
        }
    }
    pages as f64 / (pages as f64 - valid_in_victim)
}

/// Mixed hot and cold pages, FIFO cleaning: a share `r` of the pages gets a share `f` of the writes.
fn fifo_mixed(u: f64, r: f64, f: f64) -> f64 {
    let pass = |t: f64| {
        t * (f / (1.0 - (-f * t / r).exp()) + (1.0 - f) / (1.0 - (-(1.0 - f) * t / (1.0 - r)).exp())) - 1.0 / u
    };
    1.0 / (u * root(1e-9, 1.0 / u, pass))
}

/// Hot and cold pages in separate blocks with separate spare space: the hot pages' optimal share of the spare space,
/// and the write amplification with it.
fn separated(u: f64, r: f64, f: f64) -> (f64, f64) {
    let spare = 1.0 / u - 1.0;
    (1..1000)
        .map(|permille| {
            let share = f64::from(permille) / 1000.0;
            let (hot, cold) = (spare * share, spare * (1.0 - share));
            let a = f * fifo_uniform(r / (r + hot)) + (1.0 - f) * fifo_uniform((1.0 - r) / (1.0 - r + cold));
            (share, a)
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap()
}

#[test]
fn the_formulas_give_the_published_values() {
    assert_near("FIFO, rho 0.3", fifo_uniform(1.0 / 1.3), 2.3642, 1e-4);
    assert_near("FIFO, u 0.9", fifo_uniform(0.9), 5.1787, 1e-4);
    assert_near("d-choices, u 0.9, 16 pages", d_choices_uniform(0.9, 16, 10), 4.3048, 1e-3);
    assert_near("d-choices, u 0.8, 64 pages", d_choices_uniform(0.8, 64, 10), 2.6754, 1e-3);
    assert_near("mixed, u 0.8", fifo_mixed(0.8, 0.2, 0.8), 3.0345, 1e-4);
    assert_near("separated, u 0.9", separated(0.9, 0.1, 0.9).1, 2.3356, 1e-3);
}

/// A new drive under FIFO cleaning was called steady at 2 % below the closed form, while its amplification still rose.
#[test]
fn a_steady_state_that_a_run_finds_is_that_of_theory() {
    let mut found = 0;
    for device_writes in 5..=12 {
        let path = Path::read("page:export=90%,victim=fifo/nand:size=512M,timing=off").unwrap();
        let exported = path.drive().unwrap().exported_bytes();
        let term = parse_term(&format!("uniform:writes={device_writes}x")).unwrap();
        let mut workload = generator(&term, exported, 1).unwrap();
        let outcome = prepare(&path, 1).unwrap().run(workload.as_mut(), &Options::default(), &mut |_| true);
        let u = 1.0 / (1.0 + outcome.result.flash.effective_overprovisioning.unwrap());
        if let Some(steady) = outcome.result.write_amplification.steady {
            assert_near(&format!("fifo after {device_writes} device writes"), steady, fifo_uniform(u), 0.005);
            found += 1;
        }
    }
    assert!(found >= 3, "{found} of the runs were steady");
}

#[test]
fn fifo_meets_the_closed_form() {
    for (export, frontiers) in [(0.8, "separate"), (0.875, "shared"), (0.9, "separate"), (0.9346, "shared")] {
        let page = format!("export={export},victim=fifo,frontiers={frontiers}");
        let (measured, u) = measure("uniform:writes=100x", &page, 64);
        assert_near(&format!("fifo, u {u:.5}, {frontiers}"), measured, fifo_uniform(u), 0.01);
    }
}

#[test]
fn d_choices_meets_the_mean_field() {
    for (export, pages) in [(0.9, 16), (0.9, 64), (0.8, 64)] {
        let (measured, u) = measure("uniform:writes=100x", &format!("export={export},victim=d-choices"), pages);
        let expected = d_choices_uniform(u, pages as usize, 10);
        assert_near(&format!("d-choices, u {u:.5}, {pages} pages"), measured, expected, 0.01);
    }
}

#[test]
fn random_is_d_choices_with_one_choice() {
    let (measured, u) = measure("uniform:writes=100x", "export=80%,victim=random", 64);
    assert_near("random", measured, d_choices_uniform(u, 64, 1), 0.01);
}

/// The reference was measured by an independent counting program on as many pages (524,288), for the nominal spare
/// space of a program that keeps one block free.
#[test]
fn greedy_meets_an_independent_count() {
    for (pages, reference) in [
        (16, [(0.8, 2.359), (0.875, 3.413), (0.9, 3.984), (0.9346, 5.333)]),
        (64, [(0.8, 2.598), (0.875, 3.949), (0.9, 4.825), (0.9346, 7.020)]),
        (256, [(0.8, 2.673), (0.875, 4.136), (0.9, 5.105), (0.9346, 7.653)]),
    ] {
        for (u, expected) in reference {
            // Exported so that the effective share is the reference's: two blocks in reserve, half a block open.
            let blocks = 524_288.0 / f64::from(pages);
            let export = u * (1.0 - 2.5 / blocks);
            let (measured, effective) = measure("uniform:writes=100x", &format!("export={export}"), pages);
            assert!((effective - u).abs() < 0.0005, "{effective} {u}");
            assert_near(&format!("greedy, u {effective:.5}, {pages} pages"), measured, expected, 0.01);
            assert!(measured < fifo_uniform(effective) * 1.001, "greedy is no worse than FIFO");
        }
    }
}

#[test]
fn mixed_hot_and_cold_pages_meet_the_closed_form() {
    for (export, r, f) in [(0.8, 0.2, 0.8), (0.9, 0.1, 0.9)] {
        let workload = format!("hotcold:r={r},f={f},writes=100x");
        let (measured, u) = measure(&workload, &format!("export={export},victim=fifo"), 64);
        assert_near(&format!("mixed, u {u:.5}, r {r}, f {f}"), measured, fifo_mixed(u, r, f), 0.02);
    }
}

#[test]
fn separated_hot_and_cold_pages_meet_the_optimum() {
    for (export, r, f) in [(0.8, 0.2, 0.8), (0.9, 0.1, 0.9), (0.9, 0.2, 0.8)] {
        let workload = format!("hotcold:r={r},f={f},writes=100x");
        let (share, _) = separated(export, r, f);
        let page = format!("export={export},victim=fifo,streams=hint,spare-shares={share}+{}", 1.0 - share);
        let (measured, u) = measure(&workload, &page, 64);
        let (_, expected) = separated(u, r, f);
        assert_near(&format!("separated, u {u:.5}, r {r}, f {f}"), measured, expected, 0.02);
    }
}

/// Write amplification of uniform 4 KiB writes on the pages of a current drive, in steady state, and the exported share of
/// the usable pages.
fn on_pages_of_16k(page: &str, nand: &str) -> (f64, f64) {
    uniform_on(&format!(
        "page:op=28%{page}/nand:preset=tlc,size=2G,channels=1,dies=1,planes=1,pages-per-block=128,timing=off{nand}"
    ))
}

/// The same on any path.
fn uniform_on(text: &str) -> (f64, f64) {
    let path = Path::read(text).unwrap();
    let exported = path.drive().unwrap().exported_bytes();
    let mut workload = generator(&parse_term("uniform:writes=100x").unwrap(), exported, 5).unwrap();
    let half = Amount::Times(3.0);
    let limit = Some(half.bytes(exported) / 4096);
    let options = Options { fill: Fill::ALL, precondition: Some(half), limit, ..Options::default() };
    let outcome = prepare(&path, options.seed).unwrap().run(workload.as_mut(), &options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let result = outcome.result;
    (result.write_amplification.total.unwrap(), 1.0 / (1.0 + result.flash.effective_overprovisioning.unwrap()))
}

/// The drive that is sold: it maps 4 KiB on pages of 16 KiB, and packs writes in a buffer. Without the unit each write
/// costs four times as much, as it did before; without the buffer each fills a page of flash with padding.
#[test]
fn small_writes_on_large_pages_cost_what_theory_says_with_units_and_a_buffer() {
    let (measured, u) = on_pages_of_16k(",victim=fifo,buffer=1M", ",unit=4K");
    assert_near(&format!("unit and buffer, fifo, u {u:.5}"), measured, fifo_uniform(u), 0.01);
    // Greedy, which with 512 units in a block is hardly better.
    let (measured, u) = on_pages_of_16k(",buffer=1M", ",unit=4K");
    assert_near(&format!("unit and buffer, greedy, u {u:.5}"), measured, fifo_uniform(u), 0.01);
    assert_near("unit and buffer, greedy, nominal spare space", measured, fifo_uniform(1.0 / 1.28), 0.02);
    // Before each erase open pages of flash are padded.
    let (measured, u) = on_pages_of_16k(",buffer=1M,buffer-policy=volatile", ",unit=4K");
    assert_near(&format!("unit and volatile buffer, u {u:.5}"), measured, fifo_uniform(u), 0.03);
    let (whole, u) = on_pages_of_16k(",victim=fifo", "");
    assert_near(&format!("whole pages, u {u:.5}"), whole, 4.0 * fifo_uniform(u), 0.02);
    let (buffered, _) = on_pages_of_16k(",victim=fifo,buffer=1M", "");
    assert_near("whole pages with a buffer", buffered, 4.0 * fifo_uniform(u), 0.02);
    let (padded, _) = on_pages_of_16k("", ",unit=4K");
    println!("units without a buffer: {padded:.3}");
    assert!(padded > 4.0 && padded < whole, "a page of flash for each write, and copies packed");
}

/// A small drive of a preset is the large one with shorter blocks.
#[test]
fn presets_of_kinds_of_drives_cost_what_theory_says_at_any_size() {
    for (size, preset) in [("4G", "enterprise-tlc"), ("8G", "enterprise-tlc"), ("4G", "tlc,unit=4K")] {
        let text = format!("page:op=28%,ahead=0,buffer=16M,victim=fifo/nand:preset={preset},size={size},timing=off");
        let (measured, u) = uniform_on(&text);
        assert_near(&format!("{preset} of {size}, u {u:.5}"), measured, fifo_uniform(u), 0.02);
    }
    for (preset, unit_bytes) in [("enterprise-tlc", 4096), ("qlc", 16384)] {
        for size in ["4G", "64G", "1T"] {
            let term = parse_term(&format!("nand:preset={preset},size={size}")).unwrap();
            let geometry = NandSettings::read(&term).unwrap().geometry;
            assert_eq!((geometry.units(), geometry.page_bytes), (128, unit_bytes), "{preset} of {size}");
            assert!(geometry.blocks >= 64 * 128, "{preset} of {size}: {} blocks", geometry.blocks);
        }
    }
}
