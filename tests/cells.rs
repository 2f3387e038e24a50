//! Cells of several bits and a cache in SLC mode, against closed forms: times by page of the word line, programs of whole word
//! lines, the fall of the bandwidth when the cache is full, folding, and the wear of both modes.

use flashpath::device::nand::{LogicalPage, Nand, PhysicalPage, Reserving, Scheduled, Timing};
use flashpath::device::wait_log::Purpose;
use flashpath::expression::parse_term;
use flashpath::label::{Cause, Content, Label};
use flashpath::report::RunResult;
use flashpath::run::{Fill, Options, Path, Replay, prepare};
use flashpath::time::Time;
use flashpath::translation::page_level::PageSettings;
use flashpath::translation::{Buffered, FlashLayer, PageWrite, Translation};
use flashpath::workload::generator::generator;

const US: u64 = 1_000;

/// A drive that does one request after the other.
struct Timed<L> {
    drive: L,
    now: Time,
}

/// The layer `page` of a path, on flash with queues.
fn timed(path: &str) -> Timed<impl Translation<Timing = Scheduled> + use<>> {
    let (layer, flash) = parts(path);
    Timed { drive: layer.on(flash, 1), now: Time::ZERO }
}

fn parts(path: &str) -> (PageSettings, Nand<Scheduled>) {
    let path = Path::read(path).unwrap();
    let drive = path.drive().unwrap();
    let nand = &drive.nand;
    let timing = Scheduled::new(nand.geometry, nand.latencies.unwrap(), None).with_cells(nand.cells.as_ref());
    let flash = Nand::new(nand.geometry, nand.endurance, false, timing).with_cells(nand.cells.as_ref());
    (drive.layer::<PageSettings>().unwrap().clone(), flash)
}

impl<L: Translation<Timing = Scheduled>> Timed<L> {
    /// Writes a page; returns how long that takes, in microseconds.
    fn write(&mut self, page: u32) -> f64 {
        let provenance = Label::host(Content::Data).provenance();
        let write = PageWrite { page: LogicalPage(page), provenance, stream: 0, stamp: 0 };
        self.take(|drive, at| drive.write(write, at).unwrap())
    }

    fn read(&mut self, page: u32) -> f64 {
        self.take(|drive, at| {
            let (_, read) = drive.read(LogicalPage(page), at).unwrap();
            let rest = drive.end_reads(at);
            drive.timing().later(read, rest)
        })
    }

    fn take(
        &mut self,
        request: impl FnOnce(&mut L, <Scheduled as Timing>::Moment) -> <Scheduled as Timing>::Moment,
    ) -> f64 {
        let begin = self.drive.timing().instant(self.now);
        let done = request(&mut self.drive, begin);
        let done = self.drive.timing().settle(done, Time(u64::MAX)).unwrap();
        let took = done.since_ns(self.now);
        self.now = done;
        took as f64 / US as f64
    }

    /// The mean time of writes of these pages, in microseconds.
    fn mean(&mut self, pages: std::ops::Range<u32>) -> f64 {
        let count = f64::from(pages.end - pages.start);
        pages.map(|page| self.write(page)).sum::<f64>() / count
    }

    fn event(&self, name: &str) -> u64 {
        self.drive.events().into_iter().find(|(known, _)| *known == name).unwrap().1
    }
}

/// A die of 128 blocks of 32 word lines: a transfer takes 10 us, an SLC page 200, another 500, an erase 3 ms.
const DIE: &str = "nand:size=48M,pages-per-block=96,cells=tlc,slc-program=200us,program=500us,transfer=10us,erase=3ms";

/// 12 of 128 blocks, with a third of their pages.
const CACHED: u32 = 12 * 32;

#[test]
fn pages_of_a_word_line_take_their_own_times() {
    let mut drive = timed(
        "page/nand:size=48M,pages-per-block=96,cells=tlc,read=50us+60us+70us,program=400us+600us+900us,transfer=10us",
    );
    for line in 0..20 {
        let wrote = [0, 1, 2].map(|page| drive.write(3 * line + page));
        assert_eq!(wrote, [410.0, 610.0, 910.0], "word line {line}");
    }
    for line in 0..20 {
        assert_eq!([0, 1, 2].map(|page| drive.read(3 * line + page)), [60.0, 70.0, 80.0], "word line {line}");
    }
    // Two pages of the word line make the pattern of the old MLC, four that of QLC.
    let mut drive = timed("page/nand:size=48M,pages-per-block=96,cells=mlc,program=400us+900us,transfer=10us");
    assert_eq!([0, 1, 2, 3].map(|page| drive.write(page)), [410.0, 910.0, 410.0, 910.0]);
}

/// The model that answers at once has the same times.
#[test]
fn both_models_of_the_clock_have_the_times_of_each_kind_of_page() {
    use flashpath::device::nand::{EraseBlock, PageKind};
    for passes in ["", ",program-passes=2"] {
        let programs = if passes.is_empty() { "400us+600us+900us" } else { "900us+700us" };
        let text = format!("page:buffer=1M/{DIE},read=50us+60us+70us{passes}")
            .replace("program=500us", &format!("program={programs}"));
        let path = Path::read(&text).unwrap();
        let nand = &path.drive().unwrap().nand;
        let (geometry, latencies, cells) = (nand.geometry, nand.latencies.unwrap(), nand.cells.as_ref().unwrap());
        let kinds = [0, 1, 2].map(PageKind::of_word_line);
        for kind in kinds.into_iter().chain([PageKind::SLC, PageKind::WORD_LINE, PageKind::FINE]) {
            let times = cells.times_of(kind);
            let mut reserving = Reserving::new(geometry, latencies, None).with_cells(Some(cells));
            let mut scheduled = Scheduled::new(geometry, latencies, None).with_cells(Some(cells));
            let begin = scheduled.instant(Time::ZERO);
            let (block, purpose) = (EraseBlock(3), Purpose::Host);
            let programmed = scheduled.program_kind(block, kind, purpose, begin);
            let read = scheduled.read_kind(block, 1, kind, purpose, programmed);
            let found = scheduled.settle(read, Time(u64::MAX)).unwrap();
            let programmed = reserving.program_kind(block, kind, purpose, Time::ZERO);
            assert_eq!(reserving.read_kind(block, 1, kind, purpose, programmed), found, "{kind:?}");
            let transfers = 10_000 * u64::from(times.pages) + 10_000;
            assert_eq!(found.0, times.program_ns + times.read_ns + transfers, "{kind:?}");
            assert_eq!(times.pages, if kind == PageKind::WORD_LINE || kind == PageKind::FINE { 3 } else { 1 });
        }
    }
}

#[test]
fn cells_alone_change_no_count_and_hardly_a_time() {
    let plain = "nand:size=64M,pages-per-block=96,channels=2,dies=2";
    let options = Options { fill: Fill::ALL, replay: Replay::Closed { depth: 16 }, ..Options::default() };
    for layer in ["page:op=20%", "dftl:op=20%,table=2000", "page:op=20%,buffer=1M"] {
        let run = |flash: &str| result("uniform:writes=2x,reads=20%", &format!("{layer}/{flash}"), &options);
        let (without, with) = (run(plain), run(&format!("{plain},cells=tlc")));
        assert_eq!(without.write_amplification.total, with.write_amplification.total, "{layer}");
        // A copy is two operations of the clock then, which changes the order of some that begin at the same instant.
        let times = with.seconds_simulated.unwrap() / without.seconds_simulated.unwrap();
        assert!((times - 1.0).abs() < 0.005, "{layer}: {times} times as long");
        assert!(with.wear.modes.is_empty(), "no block was in SLC mode");
    }
}

/// A word line of three pages takes three transfers and one program; in two passes it takes both twice. The buffer is answered at
/// once, so that the mean write is a third of a word line.
#[test]
fn word_lines_programmed_as_a_whole_have_the_bandwidth_of_the_closed_form() {
    for (options, word_line) in [
        ("program=900us,program-passes=1", 900.0 + 30.0),
        ("program=900us+600us,program-passes=2", 900.0 + 600.0 + 60.0),
        ("program=900us,program-passes=2", 1800.0 + 60.0),
    ] {
        let path =
            format!("page:export=70%,buffer=64K/nand:size=96M,pages-per-block=96,cells=tlc,transfer=10us,{options}");
        let (layer, flash) = parts(&path);
        let buffer = layer.buffer().unwrap();
        let mut drive = Timed { drive: Buffered::new(layer.on(flash, 1), buffer), now: Time::ZERO };
        let mean = drive.mean(0..9000);
        let expected = word_line / 3.0;
        assert!((mean / expected - 1.0).abs() < 0.01, "{options}: {mean} us a page, and {expected}");
    }
}

/// Pages of a word line that is not programmed are read from the controller.
#[test]
fn a_page_is_read_from_the_controller_until_its_word_line_is_programmed() {
    for (passes, on_flash) in [(1, 3), (2, 0)] {
        let (layer, flash) = parts(&format!("page:buffer=64K/{DIE},read=50us,program-passes={passes}"));
        let mut drive = Timed { drive: layer.on(flash, 1), now: Time::ZERO };
        (0..5).for_each(|page| {
            drive.write(page);
        });
        let took = [0, 1, 2, 3, 4].map(|page| drive.read(page));
        let expected = [0, 1, 2, 3, 4].map(|page| if page < on_flash { 60.0 } else { 0.0 });
        assert_eq!(took, expected, "{passes} passes");
    }
}

/// Sequential writes are as fast as SLC until the cache is full, and as TLC from then on; after idle time they are fast again. Both
/// kinds of cache hold twelve blocks.
#[test]
fn writes_are_fast_until_the_cache_is_full_and_again_when_it_was_folded() {
    for kind in ["static", "dynamic"] {
        let mut drive = timed(&format!("page:export=50%,slc-cache={kind},slc-share=10%/{DIE}"));
        assert_eq!(drive.mean(0..CACHED), 210.0, "{kind}: the first writes");
        let after = drive.mean(CACHED..2 * CACHED);
        assert_eq!(after, 510.0, "{kind}: the cache is full");
        assert_eq!(drive.event("slc_blocks_opened"), 12);
        let (from, until) = (drive.now, Time(drive.now.0 + 2_000_000_000));
        drive.drive.idle(from, until).unwrap();
        drive.now = until;
        assert_eq!(drive.event("slc_blocks_folded"), 12, "{kind}");
        // A block of all bits is still open.
        let rest = 96 - CACHED % 96;
        drive.mean(2 * CACHED..2 * CACHED + rest % 96);
        let first = 2 * CACHED + rest % 96;
        assert_eq!(drive.mean(first..first + CACHED), 210.0, "{kind}: after the idle time");
        let sent = drive.drive.sent();
        assert_eq!(sent.of_cause(Cause::Fold), u64::from(CACHED), "{kind}: each page was folded once");
        assert_eq!(sent.of_cause(Cause::GarbageCollection), 0);
        let modes = drive.drive.flash().modes.unwrap();
        assert_eq!(modes.slc_erases.iter().sum::<u32>(), 12, "{kind}");
        assert_eq!(modes.is_slc.iter().filter(|slc| **slc).count(), 12, "{kind}: they are full again");
        assert_eq!(modes.fixed, if kind == "static" { 12 } else { 0 });
    }
}

/// Idle time that is too short folds a part, and what was overwritten is not copied.
#[test]
fn idle_time_folds_as_much_as_it_has_time_for() {
    let mut drive = timed(&format!("page:export=50%,slc-cache=static,slc-share=10%/{DIE}"));
    drive.mean(0..CACHED);
    // A fold takes 32 reads and programs and an erase, 20 ms.
    let from = drive.now;
    drive.drive.idle(from, Time(from.0 + 50_000_000)).unwrap();
    assert_eq!(drive.event("slc_blocks_folded"), 3);
    drive.now = Time(from.0 + 1_000_000_000);
    // All pages of the cache are written again, which leaves nothing to copy.
    drive.mean(96..CACHED);
    let before = drive.drive.sent().of_cause(Cause::Fold);
    let from = drive.now;
    drive.drive.idle(from, Time(from.0 + 9_000_000_000)).unwrap();
    let copied = drive.drive.sent().of_cause(Cause::Fold) - before;
    assert!(copied <= 96, "{copied} pages were the newest of the blocks that were folded");
}

/// With `slc-full=fold` each page costs its SLC program, and its fold: a read, a program of TLC, two transfers, and its share of
/// the erase.
#[test]
fn folding_for_hosts_has_the_bandwidth_of_the_closed_form() {
    for kind in ["static", "dynamic"] {
        let mut drive =
            timed(&format!("page:export=80%,slc-cache={kind},slc-share=10%,slc-full=fold/{DIE},slc-read=25us"));
        assert_eq!(drive.mean(0..CACHED), 210.0);
        let mean = drive.mean(CACHED..CACHED + 3200);
        let expected = 210.0 + (25.0 + 10.0) + (10.0 + 500.0) + 3000.0 / 32.0;
        assert!((mean / expected - 1.0).abs() < 0.005, "{kind}: {mean} us a page, and {expected}");
        assert_eq!(drive.event("slc_full_blocks_bypassed"), 0, "{kind}");
        assert_eq!(drive.drive.sent().of_cause(Cause::Fold), 3200, "{kind}: a copy for each page");
    }
}

fn result(work: &str, path: &str, options: &Options) -> RunResult {
    let path = Path::read(path).unwrap();
    let exported = path.drive().unwrap().exported_bytes();
    let mut workload = generator(&parse_term(work).unwrap(), exported, options.seed).unwrap();
    let outcome = prepare(&path, options.seed).unwrap().run(workload.as_mut(), options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{}: {:?}", path.text, outcome.failure);
    let result = outcome.result;
    assert!(result.sums.iter().all(|sum| sum.holds), "{}: {:?}", path.text, result.sums);
    result
}

fn blocks_of(result: &RunResult, cause: &str) -> f64 {
    result.ledger.iter().filter(|row| row.station == "nand" && row.cause == cause).map(|row| row.blocks).sum()
}

/// All writes go through the cache, and are folded: write amplification is two, and the wear of both modes is told.
#[test]
fn the_ledger_and_the_wear_tell_folds_and_both_modes() {
    let options = Options { verify: true, ..Options::default() };
    for (kind, times, blocks) in [("static", "4x", [102, 922]), ("dynamic", "1x", [1024, 1024])] {
        let path = format!(
            "page:export=60%,slc-cache={kind},slc-share=10%,slc-full=fold/nand:size=384M,pages-per-block=96,cells=tlc,timing=off"
        );
        let result = result(&format!("sequential:writes={times}"), &path, &options);
        let (host, folded) = (blocks_of(&result, "host-write"), blocks_of(&result, "fold"));
        assert!(folded > 0.9 * host && folded <= host, "{kind}: {folded} of {host} blocks were folded");
        let [slc, tlc] = &result.wear.modes[..] else { panic!("{:?}", result.wear.modes) };
        assert_eq!((slc.mode.as_str(), tlc.mode.as_str()), ("slc", "tlc"));
        assert_eq!([slc.blocks, tlc.blocks], blocks, "{kind}");
        assert_eq!((slc.endurance, tlc.endurance), (30_000, 3_000));
        assert_eq!(slc.erases + tlc.erases, (result.wear.erase_count_mean * 1024.0).round() as u64);
        assert!((slc.erases as f64 * 32.0 / folded - 1.0).abs() < 0.01, "{kind}: each erase gave 32 pages");
        for mode in [slc, tlc] {
            let used = mode.erases as f64 / mode.blocks as f64 / f64::from(mode.endurance);
            assert!((mode.used - used).abs() < 1e-12);
        }
        // The life of a drive ends when its blocks have used theirs: those of a static cache are not among them.
        let life = if kind == "static" { tlc.used } else { slc.used + tlc.used };
        let host_tib = host * 4096.0 / (1u64 << 40) as f64;
        let lifetime = result.wear.lifetime_host_tib.unwrap();
        assert!((lifetime / (host_tib / life) - 1.0).abs() < 0.01, "{kind}: {lifetime} TiB, and {}", host_tib / life);
        assert!(result.wear.lifetime_host_tib_first_block.unwrap() <= lifetime);
    }
}

/// A dynamic cache holds no space back: on a full drive without spare blocks beyond those that collection keeps, write
/// amplification is that without a cache.
#[test]
fn a_dynamic_cache_gives_way_on_a_full_drive() {
    let options = Options { fill: Fill::ALL, ..Options::default() };
    let flash = "nand:size=384M,pages-per-block=96,cells=tlc,timing=off";
    let run = |cache: &str| result("uniform:writes=4x", &format!("page:op=20%{cache}/{flash}"), &options);
    let (without, with) = (run(""), run(",slc-cache=dynamic,slc-share=30%"));
    let amplification = |result: &RunResult| result.write_amplification.steady.unwrap();
    let ratio = amplification(&with) / amplification(&without);
    assert!((0.97..1.03).contains(&ratio), "{} with, {} without", amplification(&with), amplification(&without));
    // A static one costs the spare space that it takes, and a write through it costs one more.
    let fixed = run(",slc-cache=static,slc-share=5%");
    assert!(amplification(&fixed) > 1.1 * amplification(&without), "{}", amplification(&fixed));
}

/// Blocks of a static cache wear out by their own endurance, and the drive goes on without a cache; those of a dynamic one have one
/// life for both modes.
#[test]
fn a_cache_that_is_worn_out_is_no_end_of_the_drive() {
    let options = Options { verify: true, ..Options::default() };
    let flash = "nand:size=48M,pages-per-block=96,cells=tlc,timing=off,slc-endurance=20,endurance=3000";
    let path = format!("page:export=60%,slc-cache=static,slc-share=10%,slc-full=fold/{flash}");
    let worn = result("sequential:writes=20x", &path, &options);
    assert_eq!(worn.wear.worn_out_blocks, 12);
    assert_eq!(worn.wear.modes[0].erases, 12 * 20);
    assert_eq!(worn.wear.modes[0].used, 1.0);
    let path = format!("page:export=60%,slc-cache=dynamic,slc-share=10%,slc-full=fold/{flash}");
    let shared = result("sequential:writes=4x", &path, &options);
    let [slc, tlc] = &shared.wear.modes[..] else { panic!("{:?}", shared.wear.modes) };
    assert!(slc.used > 50.0 * tlc.used, "an erase in SLC mode costs 150 times as much here: {slc:?} {tlc:?}");
    assert_eq!(shared.wear.worn_out_blocks, 0);
}

#[test]
fn what_a_drive_cannot_have_is_refused_with_what_would_be_right() {
    for (text, help) in [
        ("page/nand:read=50us+60us", "such as cells=tlc"),
        ("page/nand:cells=tlc,pages-per-block=96,read=50us+60us", "write one for all, or 3 joined by +"),
        ("page/nand:cells=qlc,program=1us+2us+3us", "or 4 joined by +"),
        ("page/nand:cells=tlc,read=1us+2us+3us+4us+5us", "up to 4 of them"),
        ("page/nand:cells=plc", "slc, mlc, tlc or qlc"),
        ("page/nand:cells=tlc,pages-per-block=256", "take pages-per-block=255 or 258"),
        ("page/nand:program-passes=1", "add cells=tlc"),
        ("page/nand:slc-program=100us", "add cells=tlc"),
        ("page/nand:cells=tlc,program-passes=1", "add buffer=32M"),
        ("page:buffer=1M,buffer-policy=volatile/nand:cells=tlc,program-passes=1", "take buffer-policy=protected"),
        ("fast/nand:cells=tlc,program-passes=2", "add buffer=32M"),
        ("page:buffer=1M/nand:cells=tlc,program-passes=1,program=1us+2us", "write one"),
        ("page:slc-cache=static/nand", "add cells=tlc behind nand:"),
        ("page:slc-cache=dynamic/nand:cells=slc", "remove slc-cache"),
        ("page:slc-share=3%/nand:cells=tlc", "add slc-cache=dynamic"),
        ("page:slc-full=fold/nand:cells=tlc", "add slc-cache=dynamic"),
        ("page:slc-cache=on/nand:cells=tlc", "static or dynamic"),
        ("page:slc-cache=static,slc-share=40%/nand:cells=tlc", "take at most slc-share="),
        ("page:slc-cache=static,slc-share=120%/nand:cells=tlc", "a share from"),
        ("page:slc-cache=static,slc-share=0.1%/nand:size=64M,cells=tlc", "take at least slc-share="),
        ("page:slc-cache=dynamic,frontiers=shared/nand:cells=tlc", "remove frontiers=shared"),
        ("dftl:slc-cache=dynamic,pace=4/nand:cells=tlc", "remove pace"),
        ("superblock:slc-cache=dynamic/nand:cells=tlc", "superblock takes"),
        ("sfs/zns:cells=tlc", "zns takes"),
    ] {
        let error = Path::read(text).expect_err(text);
        assert!(error.help.contains(help), "{text}: {error}");
    }
    // What is advised is accepted, and no more.
    let text = "page:slc-cache=static,slc-share=40%/nand:cells=tlc";
    let help = Path::read(text).expect_err(text).help;
    let most = help.split("slc-share=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    Path::read(&text.replace("40%", most)).unwrap();
}

/// The preset has the same planes, times and ratios at any size, and its path of two stations runs.
#[test]
fn the_preset_of_a_consumer_drive_keeps_its_ratios_at_any_size() {
    for size in ["4G", "16G", "64G", "512G"] {
        let path = Path::read(&format!("page:buffer=8M/nand:preset=consumer-tlc,size={size}")).unwrap();
        let nand = &path.drive().unwrap().nand;
        let geometry = nand.geometry;
        assert_eq!((geometry.units(), geometry.pages_per_program, geometry.cell_bits), (32, 4, 3), "{size}");
        assert!(geometry.blocks / 32 >= 64, "{size}: {} blocks", geometry.blocks);
        assert!(geometry.raw_bytes() as f64 > 0.99 * flashpath::units::parse_size(size).unwrap() as f64);
        assert_eq!(nand.latencies.unwrap().program_ns, 1_489_000);
    }
    let path = "dftl:op=10%,table=20000,slc-cache=dynamic,slc-share=20%,buffer=8M/nand:preset=consumer-tlc,size=2G";
    let options = Options { replay: Replay::Closed { depth: 32 }, ..Options::default() };
    let result = result("sequential:writes=1x,request=128K", path, &options);
    assert!(result.translation.events["slc_blocks_opened"] > 0 && result.translation.mapping_reads > 0);
    let at = |share: f64| {
        let blocks = (result.windows.last().unwrap().written_blocks as f64 * share) as u64;
        let window = result.windows.iter().find(|window| window.written_blocks >= blocks).unwrap();
        (window.written_blocks as f64 * 4096.0 / (1 << 20) as f64, window.seconds_simulated.unwrap())
    };
    let ((early, early_at), (late, late_at), (all, end)) = (at(0.05), at(0.7), at(1.0));
    let (first, last) = (early / early_at, (all - late) / (end - late_at));
    println!("{first:.0} MiB/s at first, {last:.0} at the end");
    assert!(first > 1.5 * last, "{first} MiB/s at first, {last} at the end");
}

/// The first page of a block in SLC mode is on flash at once; the physical page of a word line is another matter.
#[test]
fn a_block_holds_a_page_for_each_word_line_in_slc_mode() {
    let (_, mut flash) = parts(&format!("page:slc-cache=dynamic/{DIE}"));
    let block = flashpath::device::nand::EraseBlock(5);
    assert_eq!(flash.pages_of(block), 96);
    flash.set_slc(block, true);
    assert_eq!(flash.pages_of(block), 32);
    let first = flash.geometry().first_page(block);
    let begin = flash.timing().instant(Time::ZERO);
    let content = (LogicalPage(0), Label::host(Content::Data).provenance());
    for page in 0..32 {
        flash.program(PhysicalPage(first.0 + page), content, 0, Cause::HostWrite, begin).unwrap();
    }
    assert!(flash.is_slc(block));
    flash.erase(block, begin).unwrap();
    let counts = flash.counts();
    assert_eq!((counts.erased_blocks, counts.erased_unprogrammed), (1, 64), "the slots that SLC mode leaves unused");
}
