//! Flexible data placement: units, handles, isolation, statistics and events, and a cache's two engines against closed forms.

mod closed_forms;

use closed_forms::{fifo_uniform, root};
use flashpath::device::nand::{LogicalPage, Nand, Untimed};
use flashpath::device::station::Payload;
use flashpath::device::{BlockDevice, Isolation, Lba, PlacementAccount, PlacementEventKind};
use flashpath::expression::{Amount, parse_term};
use flashpath::label::{Content, Label, Provenance};
use flashpath::report::RunResult;
use flashpath::run::{Fill, Options, Path, open_device, prepare};
use flashpath::time::Time;
use flashpath::translation::fdp::{FdpLayer, FdpSettings};
use flashpath::translation::{Buffered, FlashLayer, PageWrite, Translation};
use flashpath::workload::fio_job::fio_job_text;
use flashpath::workload::generator::generator;

/// A drive of two channels with two dies each: units of four blocks of 16 pages.
const SHAPE: &str = "nand:size=16M,page=4K,pages-per-block=16,channels=2,dies=2,timing=off,endurance=100000";
/// Pages of a unit of it.
const UNIT: u64 = 64;

fn layer_on(options: &str, shape: &str) -> FdpLayer<Untimed> {
    let path = Path::read(&format!("page:export=50%,{options}/{shape}")).unwrap_or_else(|error| panic!("{error}"));
    let drive = path.drive().unwrap();
    let settings: &FdpSettings = drive.layer().expect("fdp= makes this layer");
    settings.on(Nand::new(drive.nand.geometry, drive.nand.endurance, true, Untimed), 1)
}

fn layer(options: &str) -> FdpLayer<Untimed> {
    layer_on(options, SHAPE)
}

/// Writes pages with a hint.
fn write(layer: &mut impl Translation<Timing = Untimed>, pages: std::ops::Range<u64>, hint: u8) {
    for page in pages {
        let page = LogicalPage(page as u32);
        layer.write(PageWrite { page, provenance: Provenance::UNKNOWN, stream: hint, stamp: 1 }, ()).unwrap();
    }
}

fn placement(layer: &impl Translation) -> PlacementAccount {
    layer.placement().expect("the layer places writes")
}

fn host_pages(layer: &impl Translation) -> Vec<u64> {
    placement(layer).handles.iter().map(|handle| handle.host_pages).collect()
}

#[test]
fn a_write_goes_to_the_unit_of_its_identifier_and_others_to_the_default() {
    let mut layer = layer("fdp=4,fdp-default=2");
    write(&mut layer, 0..5, 1);
    write(&mut layer, 5..8, 4);
    write(&mut layer, 8..10, 0);
    assert_eq!(host_pages(&layer), [5, 0, 2, 3]);
    let page = 4096;
    assert_eq!(placement(&layer).available, [(UNIT - 5) * page, UNIT * page, (UNIT - 2) * page, (UNIT - 3) * page]);
    write(&mut layer, 10..13, 5);
    let state = placement(&layer);
    assert_eq!(
        (host_pages(&layer), state.counts[PlacementEventKind::InvalidIdentifier as usize]),
        (vec![5, 0, 5, 3], 3)
    );
    assert_eq!((state.host_events.len(), state.drive_events.len()), (3, 0));
    assert_eq!(state.host_events[0].identifier, Some(4), "as it was asked for");
    assert_eq!((state.unit_bytes, state.host_bytes, state.media_bytes), (UNIT * page, 13 * page, 13 * page));
}

fn count(layer: &FdpLayer<Untimed>, name: &str) -> u64 {
    let events = layer.events();
    events.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}: {events:?}")).1
}

/// Event 81h tells of a handle that the controller modified "not due to any host action (e.g., a write command that has a size
/// greater than the remaining capacity)", and 80h of moved data of initially isolated handles alone. Each full unit was one of the
/// first, and each collected unit one of the second.
#[test]
fn only_what_the_specification_calls_one_is_an_event_of_the_drive() {
    for (isolation, has_events) in [("", true), (",fdp-isolation=persistent", false)] {
        let layer = collected(isolation);
        let state = placement(&layer);
        let moved = state.counts[PlacementEventKind::Reallocated as usize];
        assert_eq!((moved > 0, !state.drive_events.is_empty()), (has_events, has_events), "{isolation}");
        assert!(state.drive_events.iter().all(|event| event.kind == PlacementEventKind::Reallocated));
        assert!(count(&layer, "fdp_units_reallocated") >= moved.max(1) && count(&layer, "fdp_handles_modified") > 0);
    }
    let state = placement(&collected(",fdp-persistent=1"));
    let identifiers = state.drive_events.iter().filter_map(|event| event.identifier);
    assert!(
        !state.drive_events.is_empty() && identifiers.into_iter().all(|number| number == 0),
        "the other is persistent"
    );
}

#[test]
fn a_full_unit_is_followed_by_an_erased_one_and_a_given_up_one_is_an_event() {
    let mut layer = layer("fdp=2");
    write(&mut layer, 0..UNIT, 1);
    assert_eq!(placement(&layer).available[0], 0);
    write(&mut layer, 0..1, 1);
    let state = placement(&layer);
    assert_eq!((count(&layer, "fdp_handles_modified"), state.drive_events.len()), (1, 0), "the host filled it");
    assert_eq!(state.available[0], (UNIT - 1) * 4096);
    layer.update_handle(0, ()).unwrap();
    let state = placement(&layer);
    assert_eq!((state.handles[0].updates, state.available[0]), (1, UNIT * 4096));
    assert_eq!(state.counts[PlacementEventKind::UnitNotFilled as usize], 1);
    // A unit that is full, or none, is given up without an event.
    write(&mut layer, 0..UNIT, 2);
    layer.update_handle(1, ()).unwrap();
    layer.update_handle(1, ()).unwrap();
    assert_eq!(placement(&layer).counts[PlacementEventKind::UnitNotFilled as usize], 1);
    write(&mut layer, 0..1, 2);
    assert_eq!(placement(&layer).available[1], (UNIT - 1) * 4096);
}

/// Two handles, each with pages that stay between pages that are written again and again, until collection copies both.
fn collected(isolation: &str) -> FdpLayer<Untimed> {
    let mut layer = layer(&format!("fdp=2{isolation}"));
    let pages = layer.exported_pages();
    for page in 0..pages / 2 {
        write(&mut layer, page..page + 1, 1);
        write(&mut layer, pages / 2 + page..pages / 2 + page + 1, 2);
    }
    for round in 0..40 * pages {
        // Odd pages of both halves.
        let page = (round * 7919 % pages) | 1;
        write(&mut layer, page..page + 1, if page < pages / 2 { 1 } else { 2 });
    }
    layer
}

#[test]
fn copies_are_mixed_if_handles_are_initially_isolated_and_stay_apart_if_for_good() {
    let mixed = placement(&collected(""));
    assert!(mixed.shared_copied_pages > 0, "units with copies of both were collected again");
    let apart = placement(&collected(",fdp-isolation=persistent"));
    assert_eq!(apart.shared_copied_pages, 0);
    assert!(apart.handles.iter().all(|handle| handle.isolation == Isolation::Persistent && handle.copied_pages > 0));
    let one = placement(&collected(",fdp-persistent=1"));
    assert_eq!(
        one.handles.iter().map(|handle| handle.isolation).collect::<Vec<_>>(),
        [Isolation::Initial, Isolation::Persistent]
    );
    assert!(one.counts[PlacementEventKind::Reallocated as usize] > 0);
    let moved = one.drive_events.iter().filter_map(|event| event.moved.zip(event.identifier));
    let of_handle = |handle: u8, (offset, bytes): (u64, u64)| {
        assert!(bytes > 0 && bytes <= UNIT * 4096);
        // The second half of the drive is the second handle's.
        handle == 0 || offset >= 2048 * 4096 / 2
    };
    assert!(moved.clone().count() > 0 && moved.into_iter().all(|(moved, handle)| of_handle(handle, moved)));
}

/// The pages of each unit are of one half of the drive, whatever was copied.
#[test]
fn the_units_of_persistently_isolated_handles_hold_pages_of_one() {
    let layer = collected(",fdp-isolation=persistent");
    let state = placement(&layer);
    let written: u64 = state.handles.iter().map(|handle| handle.host_pages).sum();
    assert_eq!(written * 4096, state.host_bytes);
    let copied: u64 = state.handles.iter().map(|handle| handle.copied_pages).sum();
    assert_eq!((written + copied) * 4096, state.media_bytes);
    assert_eq!(state.erased_bytes % state.unit_bytes, 0, "full units alone were erased");
}

#[test]
fn groups_have_planes_of_their_own_and_take_over_from_a_full_one() {
    let mut layer = layer("fdp=2,fdp-groups=2");
    assert_eq!(placement(&layer).unit_bytes, UNIT / 2 * 4096);
    // Identifiers 0 and 1 are handles of group 0, 2 and 3 of group 1.
    write(&mut layer, 0..10, 3);
    let programmed = layer.flash().programmed_pages.to_vec();
    let in_group = |group: usize| programmed.iter().skip(group).step_by(2).sum::<u32>();
    assert_eq!((in_group(0), in_group(1)), (0, 10));
    // All of the drive to one group.
    let pages = layer.exported_pages();
    for _ in 0..3 {
        write(&mut layer, 0..pages, 1);
    }
    let state = placement(&layer);
    assert!(state.redirected_pages > 0, "half of the planes do not hold it");
    assert_eq!(host_pages(&layer), [10 + 3 * pages, 0]);
    // Without an identifier a write goes where there is room.
    write(&mut layer, 0..4, 0);
    assert_eq!(host_pages(&layer)[0], 14 + 3 * pages);
}

#[test]
fn content_or_nothing_can_place_writes_in_place_of_identifiers() {
    let mut layer = layer("fdp=4,streams=content");
    let provenance = Provenance { content: Content::Journal, ..Provenance::UNKNOWN };
    layer.write(PageWrite { page: LogicalPage(0), provenance, stream: 1, stamp: 1 }, ()).unwrap();
    assert_eq!(host_pages(&layer), [0, 0, 1, 0]);
    assert!(!placement(&layer).is_by_identifier);
    let mut layer = self::layer("fdp=4,streams=none,fdp-default=3");
    write(&mut layer, 0..7, 1);
    assert_eq!((host_pages(&layer), placement(&layer).host_events.len()), (vec![0, 0, 0, 7], 0));
}

/// What a cut of power leaves of open units: each goes on for its handle, and at the same page.
#[test]
fn an_open_unit_has_its_handle_after_a_cut_of_power() {
    for options in ["fdp=3", "fdp=3,fdp-groups=2", "fdp=3,fdp-persistent=1"] {
        let mut layer = layer(options);
        let pages = layer.exported_pages();
        for step in 0..20 * pages {
            let page = step * 7919 % pages;
            write(&mut layer, page..page + 1, 1 + (page * 3 / pages) as u8);
        }
        let before = placement(&layer);
        let mut after = layer.after_power_cut().unwrap();
        let state = placement(&after);
        // A unit that is full is open no more.
        let left = |state: &PlacementAccount| -> Vec<u64> {
            state.available.iter().map(|left| if *left == 0 { state.unit_bytes } else { *left }).collect()
        };
        assert_eq!(left(&state), left(&before), "{options}");
        assert_eq!(
            (&state.handles, state.host_bytes, state.media_bytes),
            (&before.handles, before.host_bytes, before.media_bytes)
        );
        write(&mut after, 0..pages, 1);
        assert!(placement(&after).erased_bytes > before.erased_bytes);
    }
}

#[test]
fn an_update_takes_what_a_buffer_holds_for_the_handle_with_it() {
    let shape = "nand:size=32M,page=16K,unit=4K,pages-per-block=16,channels=2,timing=off";
    let path = Path::read(&format!("page:export=30%,fdp=2,buffer=256K/{shape}")).unwrap();
    let drive = path.drive().unwrap();
    let settings: &FdpSettings = drive.layer().unwrap();
    let flash = Nand::new(drive.nand.geometry, drive.nand.endurance, true, Untimed);
    let mut layer = Buffered::new(settings.on(flash, 1), settings.buffer().unwrap());
    write(&mut layer, 0..3, 1);
    write(&mut layer, 3..6, 2);
    write(&mut layer, 6..8, 0);
    layer.update_handle(0, ()).unwrap();
    let state = placement(&layer);
    assert_eq!(state.handles[0].host_pages, 5, "with those that go to the default handle");
    assert_eq!(
        (state.handles[1].host_pages, state.host_bytes),
        (0, 8 * 4096),
        "the host wrote what the buffer holds, too"
    );
    assert_eq!(state.counts[PlacementEventKind::UnitNotFilled as usize], 1);
    assert_eq!(state.media_bytes, 8 * 4096, "five pages, and three that fill the last page of flash");
}

#[test]
fn stations_that_pass_writes_on_pass_their_hints_and_others_have_no_placement() {
    let open = |path: &str| open_device(&Path::read(path).unwrap(), Payload::Bytes, 1).unwrap();
    let write = |device: &dyn BlockDevice| {
        let label = Label::host(Content::Data);
        device.write_placed(Lba(0), &[1; 4096], label, 2, Time(5)).unwrap();
        device.account()
    };
    let drive = format!("page:export=50%,fdp=2/{SHAPE}");
    for (path, depth) in [(drive.clone(), 0), (format!("hold-journal/{drive}"), 1)] {
        let device = open(&path);
        let account = write(&*device);
        let of_drive = if depth == 0 { &account } else { &account.below[0] };
        let handles = &of_drive.placement.as_ref().expect("the drive places writes").handles;
        assert_eq!(handles.iter().map(|handle| handle.host_pages).collect::<Vec<_>>(), [0, 1], "{path}");
        let placement = device.placement().expect("hints arrive");
        placement.update_handle(1, Time(9)).unwrap();
        let events = placement.placement_account().host_events;
        assert_eq!((events.len(), events[0].at, events[0].identifier), (1, Time(9), Some(1)));
    }
    let cached = open(&format!("cache:size=1M/{drive}"));
    write(&*cached);
    cached.flush(Time(6)).unwrap();
    let account = cached.account();
    let handles = &account.below.last().unwrap().placement.as_ref().unwrap().handles;
    assert_eq!(
        handles.iter().map(|handle| handle.host_pages).collect::<Vec<_>>(),
        [1, 0],
        "written back without a hint"
    );
    assert!(cached.placement().is_none());
    assert!(open(&format!("page:export=50%,fdp=4,streams=content/{SHAPE}")).placement().is_none());
    assert!(open(&format!("page:export=50%/{SHAPE}")).placement().is_none());
}

fn run(path: &str, workload: &str, options: &Options) -> RunResult {
    let path = Path::read(path).unwrap_or_else(|error| panic!("{error}"));
    let exported = path.drive().unwrap().exported_bytes();
    let mut workload = match workload.strip_prefix("fio:") {
        Some(text) => fio_job_text("x.fio", text, exported, 1).unwrap_or_else(|error| panic!("{error}")),
        None => generator(&parse_term(workload).unwrap(), exported, 1).unwrap_or_else(|error| panic!("{error}")),
    };
    let outcome = prepare(&path, options.seed).unwrap().run(workload.as_mut(), options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(Path::read(&outcome.result.path_in_full).unwrap().in_full, path.in_full, "it can be written again");
    outcome.result
}

fn handle_blocks(result: &RunResult) -> Vec<u64> {
    let placement = result.translation.placement.as_ref().expect("the path places writes");
    placement.handles.iter().map(|handle| handle.host_bytes / 4096).collect()
}

#[test]
fn fio_jobs_with_fdp_write_to_the_handles_that_they_name() {
    let drive = format!("page:export=50%,fdp=4/{SHAPE}");
    let verified = Options { verify: true, ..Options::default() };
    let job = "[a]\nrw=randwrite\nsize=4m\nfdp=1\nfdp_pli=1,3\n[b]\nrw=write\nsize=1m\ndataplacement=fdp\nplids=2\n";
    let result = run(&drive, &format!("fio:{job}"), &verified);
    assert_eq!(handle_blocks(&result), [0, 512, 256, 512]);
    let job = "[a]\nrw=randwrite\nsize=4m\ndataplacement=streams\nplids=1,2\nplid_select=random\nnorandommap\n";
    let [one, two, none, never] = handle_blocks(&run(&drive, &format!("fio:{job}"), &verified))[..] else { panic!() };
    assert!(one > 400 && two > 400 && one + two == 1024 && none + never == 0, "{one} and {two}");
    let wrong = run(&drive, "fio:[a]\nrw=write\nsize=1m\nfdp=1\nplids=4\n", &verified);
    assert_eq!((handle_blocks(&wrong), wrong.translation.events["fdp_invalid_identifiers"]), (vec![256, 0, 0, 0], 256));
}

/// The statistics are sums of the ledger.
#[test]
fn the_statistics_are_those_of_the_ledger() {
    let result = run(
        &format!("page:export=70%,fdp=3,fdp-persistent=0/{SHAPE}"),
        "cache:small=20%,region=256K,writes=20x",
        &Options { verify: true, fill: Fill::ALL, ..Options::default() },
    );
    let placement = result.translation.placement.as_ref().unwrap();
    let ledger = |cause: &str| -> f64 {
        result.ledger.iter().filter(|row| row.station == "nand" && row.cause == cause).map(|row| row.blocks).sum()
    };
    let bytes = |blocks: f64| (blocks * 4096.0) as u64;
    assert_eq!(placement.host_bytes, result.workload.written_blocks * 4096);
    assert_eq!(placement.media_bytes, bytes(ledger("host-write") + ledger("garbage-collection")));
    let copied: u64 = placement.handles.iter().map(|handle| handle.copied_bytes).sum();
    assert_eq!(copied + placement.shared_copied_bytes, bytes(ledger("garbage-collection")));
    assert_eq!(placement.erased_bytes, result.flash.erased_blocks * 16 * 4096);
    assert_eq!(result.sums.iter().filter(|sum| sum.name.contains("handles of page")).count(), 1);
}

#[test]
fn options_that_contradict_are_refused_with_what_would_be_right() {
    let shape = SHAPE;
    for (options, message, help) in [
        ("page:fdp-groups=2", "fdp-groups has no effect without fdp", "add fdp=8"),
        ("page:fdp-persistent=0", "fdp-persistent has no effect without fdp", "add fdp=8"),
        ("page:fdp=0", "'0' is not a value of page:fdp", "from 1 to 128"),
        ("page:fdp=4,fdp-default=4", "there is no handle 4", "take at most 3"),
        ("page:fdp=4,fdp-persistent=0+4", "'4' is no handle", "numbers up to 3"),
        ("page:fdp=4,fdp-isolation=persistent,fdp-persistent=0", "all handles are persistently", "remove it"),
        ("page:fdp=2,fdp-groups=3", "the 4 planes are no 3 equal groups", "take 1, 2, 4"),
        ("page:fdp=64,fdp-groups=4", "256 placement identifiers", "at most 128"),
        ("page:fdp=3,streams=content", "4 contents have no handle each", "fdp=4"),
        ("page:fdp=4,streams=hint,hints=4", "hints has no effect on reclaim units", "those of fdp"),
        ("page:fdp=4,frontiers=shared", "frontiers has no effect", "remove it"),
        ("page:fdp=4,scope=drive", "scope has no effect", "fdp-groups"),
        ("page:fdp=4,spare-shares=50%+50%", "spare-shares has no effect", "streams=hint without fdp"),
        ("page:fdp=4,pace=4", "pace has no effect", "remove it"),
        ("page:fdp=4,ahead=4", "ahead has no effect", "remove it"),
        ("page:fdp=4,wear=static", "not moved", "wear=dynamic"),
        ("page:fdp=4,d=3", "d has no effect", "victim=d-choices"),
        ("page:fdp=64", "of the 64 units of a group, 68 can be", "fewer handles than fdp=64"),
        ("page:fdp=4,export=99%", "too small for its reserves", "export=87.5%"),
        ("dftl:fdp=4", "dftl has no option 'fdp'", ""),
        ("superblock:fdp=4", "superblock has no option 'fdp'", ""),
    ] {
        let error = Path::read(&format!("{options}/{shape}")).expect_err(options);
        assert!(error.message.contains(message) && error.help.contains(help), "{options}: {error}");
    }
    let error = Path::read("sfs/zns:fdp=4").expect_err("zones have no handles");
    assert!(error.message.contains("zns has no option 'fdp'"), "{error}");
    let fits = Path::read(&format!("page:fdp=4,export=87.5%/{shape}"));
    assert!(fits.is_ok(), "what is right is accepted: {fits:?}");
}

// A cache's two engines

/// Apart: regions are invalid as whole units and cost no copies, so that the buckets have all of the spare pages. A share `r` of the
/// exported pages is buckets and gets a share `f` of the writes; a share `u` of the pages is exported.
fn apart(u: f64, r: f64, f: f64) -> f64 {
    let spare = 1.0 / u - 1.0;
    f * fifo_uniform(r / (r + spare)) + (1.0 - f)
}

/// Mixed, first in first out: a page that is written now is looked at after t writes of the host, in units of the exported pages,
/// and again after each t. A bucket is still valid with exp(-f t / r), a region if it is younger than its round of (1 - r) / (1 - f). Each
/// page stays for t, so that t times the programs for each write is the number of pages, 1 / u. Several t may solve this, and a drive stays
/// in the state of any of them.
fn mixed_fifo(u: f64, r: f64, f: f64) -> Vec<f64> {
    let round = (1.0 - r) / (1.0 - f);
    let programs = |t: f64, copies: f64| f / (1.0 - (-f * t / r).exp()) + (1.0 - f) * (1.0 + copies);
    let with_copies = |copies: f64| {
        let t = root(1e-9, 1.0 / u, |t| t * programs(t, copies) - 1.0 / u);
        ((round / t).floor() == copies).then(|| programs(t, copies))
    };
    (0..1000).filter_map(|copies| with_copies(f64::from(copies))).collect()
}

/// The share of the span that is buckets, and of the writes that go to them.
const SMALL: f64 = 0.1;
const TO_SMALL: f64 = 0.5;

/// The steady write amplification of the two engines in a part `span` of the exported space, and the spare pages over the exported
/// ones, as collection finds them.
fn two_engines(page: &str, span: f64) -> (f64, f64) {
    let path = format!(
        "page:export=90%,{page}/nand:size=256M,page=4K,pages-per-block=16,channels=4,timing=off,endurance=100000"
    );
    let exported = Path::read(&path).unwrap().drive().unwrap().exported_bytes();
    let workload = format!("cache:small={SMALL},f={TO_SMALL},region=256K,span={span},writes=100x");
    let half = Amount::Times(4.0);
    let limit = Some((half.bytes(exported) as f64 * span) as u64 / 4096);
    let options = Options { precondition: Some(half), limit, ..Options::default() };
    let result = run(&path, &workload, &options);
    (result.write_amplification.total.unwrap(), result.flash.effective_overprovisioning.unwrap())
}

/// At 50 to 100 % of the exported space, with the handles of the two engines and without.
#[test]
fn a_caches_two_engines_meet_the_closed_forms_with_placement_and_without() {
    println!("span: placed, closed form; not placed; mixed fifo, closed form");
    let mut gains = Vec::new();
    for percent in [50, 60, 70, 80, 90, 100] {
        let span = f64::from(percent) / 100.0;
        // The pages that the cache does not write are spare.
        let used = |spare: f64| span / (1.0 + spare);
        let (placed, spare) = two_engines("fdp=2,reserve=1", span);
        let expected = apart(used(spare), SMALL, TO_SMALL);
        let (together, _) = two_engines("fdp=2,reserve=1,streams=none", span);
        let (fifo, spare_of_fifo) = two_engines("fdp=1,reserve=1,streams=none,victim=fifo", span);
        let states = mixed_fifo(used(spare_of_fifo), SMALL, TO_SMALL);
        let far = |state: &f64| (fifo / state - 1.0).abs();
        let of_fifo = states.into_iter().min_by(|a, b| far(a).total_cmp(&far(b))).expect("there is a state");
        println!("{percent} %: {placed:.3}, {expected:.3}; {together:.3}; {fifo:.3}, {of_fifo:.3}");
        assert!((placed / expected - 1.0).abs() < 0.03, "{percent} %: placed {placed:.4}, closed form {expected:.4}");
        assert!((fifo / of_fifo - 1.0).abs() < 0.06, "{percent} %: fifo {fifo:.4}, closed form {of_fifo:.4}");
        assert!(placed <= together * 1.005, "{percent} %: placement does not harm");
        gains.push(together - placed);
    }
    assert!(gains[5] > gains[0], "it gains most on a full drive: {gains:?}");
}
